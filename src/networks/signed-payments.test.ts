import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { SignedPayment } from './signed-payment.ts'
import { disagreementOf } from './signed-payments.ts'

test('on a simulated network the signed message must match the withdrawal', async () => {
  const payment: Omit<SignedPayment, 'raw_transaction'> = {
    customer_id: randomUUID(),
    transfer_id: randomUUID(),
    network: 'ETHEREUM',
    asset: 'ETH',
    amount: '0.5',
    destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
  }
  const says = (message: string) =>
    disagreementOf({ ...payment, raw_transaction: Buffer.from(message) }, new Map())
  const signedFor = (changes: object) => says(JSON.stringify({ ...payment, ...changes, nonce: 'x' }))
  expect(await signedFor({})).toBeUndefined()
  for (const name of ['customer_id', 'transfer_id', 'network', 'asset', 'amount', 'destination_address'])
    expect(await signedFor({ [name]: 'another' })).toMatch(new RegExp(`^signed ${name} another for `))
  expect(await says('{')).toMatch(/cannot be read/)
})
