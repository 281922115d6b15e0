/*
 * The invariants of the audit log's rows and chain:
 * 1. a change and its rows are committed together, or neither is;
 * 2. the links of a customer are numbered without a gap, each hash follows from the one before, and the head is the last;
 * 3. each digest follows from the row and its entries, as they are stored.
 */
import { expect, test } from 'vitest'
import { credit, ownDatabase } from '../../test/support.ts'
import { originOfLoop, type Origin } from '../contract/actor.ts'
import { createCustomer } from '../money/records/customer.ts'
import { transaction, type Transaction } from '../db/database.ts'
import { momentAt, PLATFORM_ID, readClock, type Moment } from '../db/ids.ts'
import { Ledger } from '../money/movements/queue.ts'
import { firstHash, linkHash, recordChanges } from './audit.ts'

const database = await ownDatabase()

const client = (id: string, request_id = crypto.randomUUID(), ip = '::1'): Origin => ({
  actor: { type: 'API_CLIENT', id },
  request_id,
  ip,
})

const change = <T>(work: (tx: Transaction, now: Moment) => Promise<T> | T) =>
  transaction(database.db, async (tx) => work(tx, await readClock(tx)))

interface Row {
  position: string
  actor_type: string
  actor_id: string
  action: string
  subject_type: string
  subject_id: string | null
  subject_ids: string[] | null
  request_ids: string[] | null
  ips: string[] | null
  outcome: string
  ledger_event: string | null
  changes: object | null
}

async function rowsOf(customerId: string): Promise<Row[]> {
  const { rows } = await database.db.query<Row>(
    `select position, actor_type, actor_id, action, subject_type, subject_id, subject_ids, request_ids, ips, outcome,
            ledger_event, changes
     from audit_log where customer_id = $1 order by position, id`,
    [customerId],
  )
  return rows
}

/** Returns the number of links, after recomputing the chain. */
async function chainOf(customerId: string): Promise<number> {
  const { rows } = await database.db.query<{ position: string; digests: Buffer; hash: Buffer }>(
    'select position, digests, hash from audit_links where customer_id = $1 order by position',
    [customerId],
  )
  const { rows: heads } = await database.db.query<{ position: string; hash: Buffer; covered_from: string }>(
    'select position, hash, covered_from from audit_heads where customer_id = $1',
    [customerId],
  )
  const { covered_from, ...head } = heads[0]!
  let hash = firstHash(customerId, momentAt(covered_from))
  rows.forEach((link, index) => {
    expect(Number(link.position)).toBe(index + 1)
    hash = linkHash(hash, link.digests)
    expect(link.hash).toEqual(hash)
  })
  expect(head).toEqual({ position: String(rows.length), hash })
  return rows.length
}

test('a change is recorded with its actor, request and address, and with its transaction', async () => {
  const { customer_id } = await createCustomer(database.db, 'Acme')
  const origin = client('c1')
  const changes = { before: { url: 'https://a.example/"x"' }, after: { url: 'https://b.example/\\' } }
  await change((tx, now) => {
    recordChanges(tx, customer_id, now, [
      { origin, action: 'webhook.update', subject: { type: 'webhook', id: 'w1' }, changes },
      {
        origin: originOfLoop('deliveries'),
        action: 'webhook.disable',
        subject: { type: 'webhook', id: 'w2' },
      },
    ])
    recordChanges(tx, PLATFORM_ID, now, [
      { origin, action: 'policy.set', subject: { type: 'policy', id: '1' }, outcome: 'REFUSED' },
    ])
  })
  expect(await rowsOf(customer_id)).toMatchObject([
    {
      position: '1',
      actor_type: 'API_CLIENT',
      actor_id: 'c1',
      action: 'webhook.update',
      subject_type: 'webhook',
      subject_id: 'w1',
      request_ids: [origin.request_id],
      ips: ['::1'],
      outcome: 'DONE',
      changes,
    },
    {
      position: '1',
      actor_type: 'WORKER',
      actor_id: 'deliveries',
      request_ids: null,
      ips: null,
      changes: null,
    },
  ])
  expect(await rowsOf(PLATFORM_ID)).toMatchObject([{ action: 'policy.set', outcome: 'REFUSED' }])
  expect([await chainOf(customer_id), await chainOf(PLATFORM_ID)]).toEqual([1, 1])
})

test('a transaction that fails records nothing, and the next one of its connection neither', async () => {
  const { customer_id } = await createCustomer(database.db, 'Acme')
  const tx = await database.db.connect()
  tx.release()
  const record = {
    origin: client('c1'),
    action: 'profile.create',
    subject: { type: 'profile', id: 'p' },
  } as const
  const failing = change((tx, now) => {
    recordChanges(tx, customer_id, now, [record])
    throw new Error('the process ends here')
  })
  await expect(failing).rejects.toThrow('the process ends here')
  await change(() => undefined)
  expect(await rowsOf(customer_id)).toEqual([])
  await change((tx, now) => recordChanges(tx, customer_id, now, [record]))
  expect(await chainOf(customer_id)).toBe(1)
})

test('without its chain, a customer can change nothing', async () => {
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  await database.owner.query('delete from audit_heads where customer_id = $1', [customer_id])
  const record = {
    origin: client('c1'),
    action: 'profile.create',
    subject: { type: 'profile', id: 'p' },
  } as const
  await expect(change((tx, now) => recordChanges(tx, customer_id, now, [record]))).rejects.toThrow(
    /division by zero|has no audit chain/,
  )
  await expect(credit(new Ledger(database.db), { customer_id, profile_id }, 'USD', '1')).rejects.toThrow()
  const { rows } = await database.db.query('select from entries where customer_id = $1', [customer_id])
  expect([rows, await rowsOf(customer_id)]).toEqual([[], []])
})

test('orchestrations of a batch share a row, one for each actor and action', async () => {
  const { customer_id } = await createCustomer(database.db, 'Acme')
  const ids = Array.from({ length: 3 }, () => crypto.randomUUID())
  const request_id = crypto.randomUUID()
  await change((tx, now) => {
    for (const id of ids)
      recordChanges(tx, customer_id, now, [
        {
          origin: client('c1', request_id),
          action: 'orchestration.create',
          subject: { type: 'orchestration', id },
        },
      ])
    recordChanges(tx, customer_id, now, [
      {
        origin: client('c2'),
        action: 'orchestration.create',
        subject: { type: 'orchestration', id: ids[0]! },
      },
    ])
  })
  expect(await rowsOf(customer_id)).toMatchObject([
    { actor_id: 'c1', subject_id: null, subject_ids: ids, request_ids: [request_id] },
    { actor_id: 'c2', subject_ids: [ids[0]] },
  ])
  expect(await chainOf(customer_id)).toBe(1)
})

test('movements of a batch share a row for each client, and parallel batches make one chain', async () => {
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  const ledgers = Array.from({ length: 3 }, () => new Ledger(database.db))
  const made = await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      credit(ledgers[index % 3]!, { customer_id, profile_id }, 'USD', '1', client(`c${index % 2}`)),
    ),
  )
  const rows = await rowsOf(customer_id)
  expect(new Set(rows.flatMap((row) => row.subject_ids))).toEqual(new Set(made.map(({ id }) => id)))
  expect(rows.every((row) => row.action === 'transfer.create' && row.ledger_event === 'CREATED')).toBe(true)
  for (const row of rows) expect(row.request_ids!.length).toBe(row.subject_ids!.length)
  expect(rows.length).toBeLessThan(100)
  expect(await chainOf(customer_id)).toBeLessThanOrEqual(rows.length)
})
