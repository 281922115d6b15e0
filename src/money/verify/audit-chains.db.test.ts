/*
 * The chain tells of each kind of tampering, made by a superuser, and names the first record touched: edited,
 * deleted, inserted, reordered, truncated, an entry changed with all sums kept, and cut off behind an anchored head.
 */
import { describe, expect, test } from 'vitest'
import { asAdmin, credit, movedBy, ownDatabase } from '../../../test/support.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { createCustomer } from '../records/customer.ts'
import { transaction } from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { readAuditHeads, recordChanges } from '../../audit/audit.ts'
import { Ledger } from '../movements/queue.ts'
import { verifyAuditChains, verifyNextLinks } from './audit-chains.ts'
import { verify } from './verify.ts'

const database = await ownDatabase()

const asSuperuser = (sql: string) => asAdmin(sql, database.url)

const origin = (id: string): Origin => ({
  actor: { type: 'API_CLIENT', id },
  request_id: crypto.randomUUID(),
  ip: '203.0.113.7',
})

interface Stored {
  id: string
  position: string
  subject_ids: string[] | null
}

/** A chain of six links: three deposits, a change of two webhooks, ten deposits of two clients, and one more. */
async function makeChain() {
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  const ledger = new Ledger(database.db)
  const deposit = (by: Origin) => credit(ledger, { customer_id, profile_id }, 'USD', '1.5', by)
  for (let n = 0; n < 3; n++) await deposit(origin('c1'))
  await transaction(database.db, async (tx) => {
    const changes = { before: { url: 'https://a.example' }, after: { url: 'https://b.example' } }
    recordChanges(
      tx,
      customer_id,
      await readClock(tx),
      ['w1', 'w2'].map((id) => ({
        origin: originOfLoop('deliveries'),
        action: 'webhook.update',
        subject: { type: 'webhook', id },
        changes,
      })),
    )
  })
  await Promise.all(Array.from({ length: 10 }, (_, n) => deposit(origin(`c${n % 2}`))))
  await deposit(origin('c1'))
  const { rows } = await database.db.query<Stored>(
    'select id, position, subject_ids from audit_log where customer_id = $1 order by position, id',
    [customer_id],
  )
  expect(rows.map(({ position }) => position)).toEqual(['1', '2', '3', '4', '4', '5', '5', '6'])
  return { customer_id, rows }
}

type Chain = Awaited<ReturnType<typeof makeChain>>

const faultsOf = async ({ customer_id }: Pick<Chain, 'customer_id'>, anchors = {}) =>
  (await verifyAuditChains(database.db, { customerId: customer_id, ...anchors })).faults

test('a whole chain has no fault, and its numbers are told', async () => {
  const { customer_id } = await makeChain()
  const heads = await readAuditHeads(database.db)
  const anchors = heads.filter((head) => head.customer_id === customer_id)
  expect(await verifyAuditChains(database.db, { customerId: customer_id, anchors })).toMatchObject({
    chains: 1,
    links: 6,
    records: 8,
    anchors: 1,
    faults: [],
  })
  const all = await verifyAuditChains(database.db)
  expect(all).toMatchObject({ chains: heads.length, faults: [] })
  expect(heads[0]!.customer_id).toBe(PLATFORM_ID)
})

type Tampering = [what: string, sql: (chain: Chain) => string, fault: (chain: Chain) => object]

const at = (index: number) => (chain: Chain) => chain.rows[index]!.id
const edit = (what: string, set: string): Tampering => [
  what,
  (chain) => `update audit_log set ${set} where id = '${at(3)(chain)}'`,
  (chain) => ({ position: 4, record_id: at(3)(chain), action: 'webhook.update', subject_ids: ['w1'] }),
]
const inLink = (position: number) => ({ position })
const own = ({ customer_id }: Chain) => `customer_id = '${customer_id}'`

const TAMPERINGS: Tampering[] = [
  edit('edited: its actor', `actor_id = 'someone else'`),
  edit('edited: its type of actor', `actor_type = 'OPERATOR'`),
  [
    'edited: its action',
    (chain) => `update audit_log set action = 'webhook.create' where id = '${at(3)(chain)}'`,
    (chain) => ({ position: 4, record_id: at(3)(chain) }),
  ],
  edit('edited: its outcome', `outcome = 'REFUSED'`),
  edit(
    'edited: its changes',
    `changes = '{"before":{"url":"https://a.example"},"after":{"url":"https://c.example"}}'`,
  ),
  edit('edited: its address', `ips = '{203.0.113.8}'`),
  edit('edited: its request', `request_ids = '{${crypto.randomUUID()}}'`),
  edit('edited: its time', `created_at = ${movedBy('created_at', '1 microsecond')}`),
  [
    'edited: its subject',
    (chain) => `update audit_log set subject_id = 'w3' where id = '${at(3)(chain)}'`,
    (chain) => ({ position: 4, record_id: at(3)(chain) }),
  ],
  [
    'deleted, one of a link',
    (chain) => `delete from audit_log where id = '${at(4)(chain)}'`,
    () => ({ position: 4, fault: 'link 4 has 2 records, and 1 of them are missing' }),
  ],
  [
    'deleted with its link',
    (chain) =>
      `delete from audit_log where id = '${at(1)(chain)}'; delete from audit_links where ${own(chain)} and position = 2`,
    () => ({ position: 2, fault: 'link 2 is missing' }),
  ],
  [
    'inserted into a link',
    (chain) => `
      insert into audit_log
      select (json_populate_record(l, json_build_object('id', replace(l.id::text, '0000', '0001'), 'subject_id', 'w9'))).*
      from audit_log l where id = '${at(3)(chain)}'`,
    () => ({ position: 4 }),
  ],
  [
    'inserted behind the last link',
    (chain) => `
      insert into audit_log
      select (json_populate_record(l, json_build_object('id', gen_random_uuid(), 'position', 7))).*
      from audit_log l where id = '${at(3)(chain)}'`,
    () => ({
      action: 'webhook.update',
      fault: expect.stringMatching(/^record \S+ was inserted: no link has it$/) as string,
    }),
  ],
  [
    'reordered: two records',
    (chain) => `update audit_log set position = case position when 2 then 3 else 2 end
                where ${own(chain)} and position in (2, 3)`,
    (chain) => ({ position: 2, record_id: at(2)(chain) }),
  ],
  [
    'reordered: two links with their records',
    (chain) => `
      update audit_log set position = case position when 2 then 3 else 2 end where ${own(chain)} and position in (2, 3);
      update audit_links set position = 99 where ${own(chain)} and position = 2;
      update audit_links set position = 2 where ${own(chain)} and position = 3;
      update audit_links set position = 3 where ${own(chain)} and position = 99`,
    () => ({ position: 2, fault: 'link 2 does not follow from the link before it' }),
  ],
  [
    'truncated',
    (chain) =>
      `delete from audit_log where ${own(chain)} and position > 4; delete from audit_links where ${own(chain)} and position > 4`,
    () => ({ position: 5, fault: 'the chain is truncated: links 5 to 6 are missing' }),
  ],
  [
    'truncated, with the head set back to another link',
    (chain) => `
      delete from audit_log where ${own(chain)} and position > 4; delete from audit_links where ${own(chain)} and position > 4;
      update audit_heads set position = 4 where ${own(chain)}`,
    () => ({ position: 4 }),
  ],
  [
    'an entry changed with all sums kept',
    (chain) =>
      `update entries set account = 'custody:ETHEREUM' where transfer_id = '${chain.rows[1]!.subject_ids![0]!}' and account = 'bank'`,
    (chain) => ({ position: 2, record_id: at(1)(chain), subject_ids: chain.rows[1]!.subject_ids }),
  ],
  [
    'the time of an entry changed',
    (chain) =>
      `update entries set created_at = ${movedBy('created_at', '-1 microsecond')} where transfer_id = '${chain.rows[0]!.subject_ids![0]!}'`,
    (chain) => ({ position: 1, record_id: at(0)(chain) }),
  ],
  [
    'the entries of an event deleted',
    (chain) => `delete from entries where transfer_id = '${chain.rows[5]!.subject_ids![2]!}'`,
    (chain) => ({ position: 5, record_id: at(5)(chain) }),
  ],
  [
    'entries inserted with all sums kept',
    (chain) => `
      insert into entries (customer_id, transfer_id, event, position, account, asset, amount, created_at)
      select customer_id, transfer_id, 'SETTLED', n, 'bank', 'USD', 3 - 2 * n, created_at
      from entries, generate_series(1, 2) n where transfer_id = '${chain.rows[2]!.subject_ids![0]!}' and position = 1`,
    (chain) => ({ subject_ids: [chain.rows[2]!.subject_ids![0]] }),
  ],
  [
    'the start of the coverage moved',
    (chain) => `update audit_heads set covered_from = now() where ${own(chain)}`,
    () => inLink(1),
  ],
  [
    'the time of a link changed',
    (chain) => `update audit_links set created_at = now() where ${own(chain)} and position = 3`,
    () => ({ position: 3, fault: 'the time of link 3 was changed' }),
  ],
  ['without its head', (chain) => `delete from audit_heads where ${own(chain)}`, () => ({})],
]

describe('a record that was tampered with is named', () => {
  test.each(TAMPERINGS)('%s', async (_, sql, fault) => {
    const chain = await makeChain()
    await asSuperuser(sql(chain))
    const [{ customer_id, ...found } = { customer_id: '', fault: '' }, ...others] = await faultsOf(chain)
    expect(others).toEqual([])
    expect({ customer_id, ...found }).toMatchObject({ customer_id: chain.customer_id, ...fault(chain) })
    // A walk along the links finds the same, unless the fault is in what no link has.
    const walked = await verifyNextLinks(database.db, chain.customer_id, undefined)
    expect(walked.fault).toEqual(found.fault.includes('inserted: no ') ? undefined : found)
  })
})

test('bursar verify does not see an entry that was changed with all sums kept', async () => {
  const chain = await makeChain()
  const { disagreements } = await verify(database.db)
  await asSuperuser(TAMPERINGS.find(([what]) => what.startsWith('an entry changed'))![1](chain))
  expect((await verify(database.db)).disagreements).toEqual(disagreements)
})

describe('against an anchored head', () => {
  const anchorsOf = async ({ customer_id }: Chain) => ({
    anchors: (await readAuditHeads(database.db)).filter((head) => head.customer_id === customer_id),
  })

  /** Removes the last links with all that they cover, as a backup of before would. */
  const cutOff = (chain: Chain) => `
    delete from entries where transfer_id in (select unnest(subject_ids) from audit_log where ${own(chain)} and position > 4);
    delete from audit_log where ${own(chain)} and position > 4;
    delete from audit_links where ${own(chain)} and position > 4;
    update audit_heads h set position = l.position, hash = l.hash
    from audit_links l where h.${own(chain)} and l.customer_id = h.customer_id and l.position = 4`

  test('a database that was cut off behind it is told from a whole one', async () => {
    const chain = await makeChain()
    const anchored = await anchorsOf(chain)
    await asSuperuser(cutOff(chain))
    expect(await faultsOf(chain)).toEqual([])
    expect(await faultsOf(chain, anchored)).toMatchObject([
      {
        position: 5,
        fault: 'the chain is cut off: it ends with link 4, and an anchored head is link 6',
      },
    ])
  })

  test('a chain that was written anew is told from the one that was anchored', async () => {
    const chain = await makeChain()
    const anchored = await anchorsOf(chain)
    await asSuperuser(cutOff(chain))
    for (let n = 0; n < 2; n++)
      await transaction(database.db, async (tx) =>
        recordChanges(tx, chain.customer_id, await readClock(tx), [
          { origin: origin('c1'), action: 'profile.create', subject: { type: 'profile', id: 'p' } },
        ]),
      )
    expect(await faultsOf(chain)).toEqual([])
    expect(await faultsOf(chain, anchored)).toMatchObject([
      { position: 6, fault: 'link 6 is not the anchored head: the chain was written anew, here or before' },
    ])
  })

  test('a chain that is gone is missed', async () => {
    const customer_id = crypto.randomUUID()
    const anchors = [{ customer_id, position: 1, hash: '0'.repeat(64) }]
    expect(await faultsOf({ customer_id }, { anchors })).toMatchObject([{ customer_id }])
  })
})
