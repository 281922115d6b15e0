import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { AskedWithdrawal } from '../../src/networks/network.ts'
import { askSigner } from './remote-signer.ts'

test('bytes that somebody has changed to what cannot be read keep no other from being asked for', async () => {
  const signed = { raw_transaction: Buffer.of(2), crypto_tx_hash: 'hash' }
  const asked = [0, 1].map((byte) => ({ raw_transaction: Buffer.of(byte) }) as AskedWithdrawal)
  const answers = await askSigner(
    { query: async () => ({ rows: [] }) } as never,
    {
      network: 'SOLANA',
      signer: { ask: async () => ({ signed: '0x02', head: '0'.repeat(32) }) } as never,
      bytes: {
        async unsignedIn(raw) {
          if (raw[0] === 0) throw new Error('it is no transaction')
          return { wallet: 'hot', unsigned: '0x01' }
        },
        signedAs: async () => signed,
      },
    },
    asked,
  )
  expect([...answers.values()]).toEqual([
    { reason: { code: 'SIGNER_REFUSES', detail: expect.stringContaining('it is no transaction') as string } },
    { signed },
  ])
})
