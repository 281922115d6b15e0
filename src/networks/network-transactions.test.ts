import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newCustomer, startTestService, type TestCustomer, type TestService } from '../../test/support.ts'
import { transaction } from '../db/database.ts'
import {
  freeWhatHasEnded,
  keepTransactions,
  selectOpenTransactions,
  selectPayees,
  signedBefore,
} from './network-transactions.ts'

let service: TestService
let customers: TestCustomer[]

beforeAll(async () => {
  service = await startTestService()
  customers = [await newCustomer(service), await newCustomer(service)]
})
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

test('the migration gives older transactions their payees, and tells which have ended', async () => {
  const ids = Array.from({ length: 8 }, newId)
  const network_transaction = (hash: string, payments: number) =>
    service.owner.query(
      `insert into network_transactions (network, crypto_tx_hash, raw_transaction, kind, payments, signed_at)
       values ('LITECOIN', $1, $2, 'WITHDRAWALS', $3, now())`,
      [hash, Buffer.from(hash), payments],
    )
  await service.owner.query('delete from network_transactions')
  for (const [index, hash] of ['shared', 'shared', 'ended', 'own', 'own ended', 'simulated', ''].entries())
    await begin({
      customer: index % 2,
      id: ids[index]!,
      hash,
      state: hash === '' ? 'HELD' : hash.endsWith('ended') ? 'DONE' : 'SIGNED',
      ...(hash.startsWith('own') && { raw: hash }),
      ...(hash === 'simulated' && { raw: '{"nonce":1}' }),
    })
  await begin({ customer: 0, id: ids[7]!, hash: 'evm', state: 'BROADCAST', raw: 'evm', network: 'ETHEREUM' })
  await service.db.query(
    `insert into replaced_transactions (customer_id, transfer_id, crypto_tx_hash, replaced_at) values ($1, $2, 'before', now())`,
    [customers[0]!.customer_id, ids[0]],
  )
  for (const [hash, payments] of [
    ['shared', 2],
    ['before', 1],
    ['ended', 1],
    ['orphan', 1],
  ] as const)
    await network_transaction(hash, payments)
  await service.owner.query(`
    alter table network_transactions drop column customer_ids, drop column transfer_ids, drop column ended_at`)
  const file = new URL('../../migrations/066.do.payees-of-network-transactions.sql', import.meta.url)
  await transaction(service.owner, (tx) => tx.query(readFileSync(file, 'utf8')))
  const { rows } = await service.owner.query<{
    crypto_tx_hash: string
    customer_ids: string[]
    transfer_ids: string[]
    payments: number
    ended: boolean
    raw: string
  }>(`
    select crypto_tx_hash, customer_ids, transfer_ids, payments, ended_at is not null as ended,
           convert_from(raw_transaction, 'UTF8') as raw
    from network_transactions order by 1`)
  const [one, other] = customers.map(({ customer_id }) => customer_id)
  const sorted = rows.map((row) => ({ ...row, transfer_ids: [...row.transfer_ids].sort() }))
  expect(sorted).toMatchObject([
    { crypto_tx_hash: 'before', raw: 'before', customer_ids: [one], transfer_ids: [ids[0]], ended: false },
    { crypto_tx_hash: 'ended', customer_ids: [one], transfer_ids: [ids[2]], ended: true },
    { crypto_tx_hash: 'evm', raw: 'evm', payments: 1, transfer_ids: [ids[7]], ended: false },
    { crypto_tx_hash: 'orphan', customer_ids: [], transfer_ids: [], ended: true },
    { crypto_tx_hash: 'own', raw: 'own', customer_ids: [other], transfer_ids: [ids[3]], ended: false },
    { crypto_tx_hash: 'own ended', raw: 'own ended', transfer_ids: [ids[4]], ended: true },
    { crypto_tx_hash: 'shared', raw: 'shared', payments: 2, transfer_ids: [ids[0], ids[1]], ended: false },
  ])
})
