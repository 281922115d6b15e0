import { afterAll, expect, test } from 'vitest'
import { newCustomer, startTestService, type TestCustomer } from '../../test/support.ts'
import { transaction } from '../db/database.ts'
import {
  freeWhatHasEnded,
  keepTransactions,
  selectOpenTransactions,
  selectPayees,
  signedBefore,
} from './network-transactions.ts'

const service = await startTestService()
const customers: TestCustomer[] = [await newCustomer(service), await newCustomer(service)]
afterAll(() => service?.close())

let count = 0
const newId = () => `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`

interface Row {
  customer: number
  id: string
  hash: string
  state: 'HELD' | 'SIGNED' | 'BROADCAST' | 'DONE'
  raw?: string
  network?: string
}

/** The record of a withdrawal, at its customer. */
async function begin({ customer, id, hash, state, raw, network = 'LITECOIN' }: Row): Promise<void> {
  await service.db.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, raw_transaction, crypto_tx_hash, created_at)
     values ($1, $2, $3, $4, $5, $6, now())`,
    [
      customers[customer]!.customer_id,
      id,
      network,
      state,
      raw === undefined ? null : Buffer.from(raw),
      hash === '' ? null : hash,
    ],
  )
}
const end = (id: string) =>
  service.db.query(`update outgoing_transfers set state = 'DONE' where transfer_id = $1`, [id])
const openHashes = async () =>
  (await selectOpenTransactions(service.db, 'LITECOIN')).map(({ crypto_tx_hash }) => crypto_tx_hash)

test('a transaction is under way until all that it pays has ended', async () => {
  const [first, second] = [newId(), newId()]
  const [its, others] = customers.map(({ customer_id }) => customer_id)
  const both = { raw_transaction: Buffer.from('both'), crypto_tx_hash: 'both', payments: 2 }
  const again = { raw_transaction: Buffer.from('again'), crypto_tx_hash: 'again', payments: 2 }
  await transaction(service.db, async (tx) => {
    for (const signed of [both, again])
      await keepTransactions(tx, 'LITECOIN', [
        { ...signed, customer_id: its!, transfer_id: first },
        { ...signed, customer_id: others!, transfer_id: second },
      ])
    const signed = ['both', 'again'].map((crypto_tx_hash) => {
      return { crypto_tx_hash, raw_transaction: Buffer.from(crypto_tx_hash), used_by: null }
    })
    expect(await signedBefore(tx, 'LITECOIN', [second])).toEqual(
      new Map([
        [first, signed],
        [second, signed],
      ]),
    )
    expect(await signedBefore(tx, 'LITECOIN', [newId()])).toEqual(new Map())
    expect(await selectPayees(tx, 'LITECOIN', ['both'])).toEqual(
      new Map([
        [
          'both',
          { kind: 'WITHDRAWALS', payments: 2, customer_ids: [its, others], transfer_ids: [first, second] },
        ],
      ]),
    )
  })
  // Without a record, as while its node has not committed yet.
  expect(await freeWhatHasEnded(service.db, 'LITECOIN')).toBe(true)
  expect(await openHashes()).toEqual(['both', 'again'])
  await begin({ customer: 0, id: first, hash: 'again', state: 'DONE' })
  await begin({ customer: 1, id: second, hash: 'again', state: 'BROADCAST' })
  await freeWhatHasEnded(service.db, 'LITECOIN')
  expect(await openHashes()).toEqual(['both', 'again'])
  await end(second)
  await freeWhatHasEnded(service.db, 'LITECOIN')
  expect(await openHashes()).toEqual([])
})
