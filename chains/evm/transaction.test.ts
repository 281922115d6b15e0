import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { signed, type EvmSigner, type EvmTransaction } from './transaction.ts'

const KEY = generatePrivateKey()

describe('a remote signer', () => {
  const TRANSACTION: EvmTransaction = {
    type: 'eip1559',
    chainId: 1,
    nonce: 3,
    to: '0x52908400098527886E0F7030069857D2E4169EE7',
    value: 5n,
    gas: 21_000n,
    maxFeePerGas: 9n,
    maxPriorityFeePerGas: 1n,
  }
  /** Creates a signer with an address and a slow call, like a remote signer. */
  const remote = (change: Partial<EvmTransaction> = {}) => {
    const { address, signTransaction } = privateKeyToAccount(KEY)
    const asked: EvmTransaction[] = []
    const signer: EvmSigner = {
      address,
      async signTransaction(transaction) {
        asked.push(transaction)
        await new Promise((resolve) => setTimeout(resolve, 5))
        return signTransaction({ ...transaction, ...change })
      },
    }
    return { signer, asked }
  }

  test('signs the same transaction as the private key', async () => {
    const { signer, asked } = remote()
    const { raw_transaction, crypto_tx_hash } = await signed(signer, TRANSACTION)
    expect(asked).toEqual([TRANSACTION])
    expect(await signed(privateKeyToAccount(KEY), TRANSACTION)).toEqual({ raw_transaction, crypto_tx_hash })
  })

  test.each<Partial<EvmTransaction>>([
    { to: '0x0000000000000000000000000000000000000001' },
    { value: 6n },
    { nonce: 4 },
    { chainId: 5 },
    { gas: 22_000n },
    { maxFeePerGas: 10n },
    { maxPriorityFeePerGas: 2n },
    { data: '0x01' },
  ])('is refused when it changes %o', async (change) => {
    await expect(signed(remote(change).signer, TRANSACTION)).rejects.toThrow('the signer changed the')
  })
})
