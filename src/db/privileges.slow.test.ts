/*
 * Invariants of the two database roles:
 * 1. the service's role cannot change or delete a ledger entry, nor lift this protection;
 * 2. every table has its line in PRIVILEGES, and a statement in src needs every privilege there;
 * 3. `migrate` leaves the service's role exactly these privileges, and writes nothing if the role has them already;
 * 4. a role's faults are reported, and a start without the needed privileges fails with advice.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  asAdmin,
  cloneDatabase,
  createDatabase,
  everyTable,
  onEveryNode,
  ownDatabase,
} from '../../test/support.ts'
import { SEALED_TABLES } from '../audit/sealed-rows.ts'
import { openDatabase, transaction, type Database } from './database.ts'
import { bringUpToDate, migrate } from './migrate.ts'
import { sources } from '../../test/sources.ts'
import { undeclaredTables } from '../../test/undeclared-tables.ts'
import { grantDifferences, faultsOfRole, FUNCTIONS } from './privileges.ts'
import { PRIVILEGES } from './tables.ts'
import { atEnd } from '../../test/at-end.ts'

const database = await ownDatabase()

const role = () => new URL(database.url).username
const ownerRole = () => new URL(database.ownerUrl).username

function open(url: string): Database {
  const db = openDatabase(url, { max: 2, onError: () => undefined })
  atEnd(() => db.end())
  return db
}

const saysOf = async (db: Database) => (await faultsOfRole(db)).map(({ kind, says }) => `${kind} ${says}`)

describe("as the service's role", () => {
  test.each([
    ['update entries set amount = 0', 'denied'],
    ['update entries set created_at = created_at where false', 'denied'],
    ['delete from entries', 'denied'],
    ['truncate entries', 'denied'],
    [
      'merge into entries e using transfers t on t.customer_id = e.customer_id when matched then delete',
      'denied',
    ],
    [`select * from entries where customer_id = '${randomUUID()}' for update`, 'denied'],
    [`do 'begin lock table entries in access exclusive mode; end'`, 'denied'],
    ['drop table entries cascade', 'must be owner'],
    ['drop schema public cascade', 'must be owner'],
    ['alter table entries disable trigger all', 'must be owner'],
    ['alter table entries drop constraint entries_amount', 'must be owner'],
    ['alter table entries owner to current_user', 'must be owner'],
    ['alter table entries rename to more', 'must be owner'],
    [
      'create trigger t before insert on entries execute function suppress_redundant_updates_trigger()',
      'denied',
    ],
    ['create rule r as on insert to entries do instead nothing', 'must be owner'],
    ['create policy p on entries', 'must be owner'],
    ['create index on entries (amount)', 'must be owner'],
    [`create function f() returns int language sql as 'select 1'`, 'denied'],
    ['create table more (id int)', 'denied'],
    ['create temporary table entries (id int)', 'denied'],
    ['create schema more', 'denied'],
    ['create role more', 'denied'],
    ['create extension dblink', 'denied'],
    ['set session_replication_role = replica', 'denied'],
    // PostgreSQL 15 says it in its own words.
    ['alter role current_user superuser', /denied|must be superuser/],
    ['update pg_class set relacl = null', 'denied'],
    ['update transfers set destination_address = amount', 'denied'],
    ['update transfers set amount = 1', 'denied'],
    ['delete from transfers', 'denied'],
    ['delete from balances', 'denied'],
    ['delete from outgoing_transfers', 'denied'],
    [`update network_transactions set transfer_ids = '{}', customer_ids = '{}'`, 'denied'],
    ['delete from network_transactions', 'denied'],
    ['update api_clients set scopes = scopes', 'denied'],
    ['update deposit_addresses set address = address', 'denied'],
    ['update reward_rates set rate = 1', 'denied'],
    ['delete from replaced_transactions', 'denied'],
    ['insert into schema_version values (999)', 'denied'],
    ['delete from events', 'denied'],
    ['drop table events_default', 'must be owner'],
    [`alter function keep_partitions set lock_timeout = '1h'`, 'must be owner'],
  ])('%s is refused: %s', async (statement, reason) => {
    const before = await everyTable(database.db)
    await expect(database.db.query(statement)).rejects.toMatchObject({
      code: '42501',
      message: expect.stringMatching(reason) as string,
    })
    expect(await everyTable(database.db)).toEqual(before)
  })

  test('set role, set session authorization and reassigning to itself are refused', async () => {
    for (const statement of [
      `set role ${ownerRole()}`,
      `set session authorization ${ownerRole()}`,
      `reassign owned by ${ownerRole()} to ${role()}`,
      `grant ${ownerRole()} to ${role()}`,
    ])
      await expect(database.db.query(statement)).rejects.toMatchObject({ code: '42501' })
  })

  // PostgreSQL answers a grant without grant option with a warning where the role has another privilege.
  test.each([
    'grant update, delete, truncate on entries to current_user',
    'revoke all on entries from public',
  ])('%s changes nothing', async (statement) => {
    const may = async (): Promise<unknown> =>
      (await database.owner.query(`select relacl::text as acl from pg_class where oid = 'entries'::regclass`))
        .rows
    const before = await may()
    await database.db.query(statement).catch((error: { code: string }) => expect(error.code).toBe('42501'))
    expect(await may()).toEqual(before)
    await expect(database.db.query('delete from entries')).rejects.toMatchObject({ code: '42501' })
  })

  test('the role has no faults', async () => {
    expect(await faultsOfRole(database.db)).toEqual([])
  })
})

describe('PRIVILEGES', () => {
  test('has a line for every table and no others', async () => {
    const undeclared = await undeclaredTables(database.db)
    expect(undeclared, 'missing in src/db/tables.ts: declare the privileges of the service').toEqual([])
    const { rows } = await database.db.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
    )
    expect(Object.keys(PRIVILEGES).sort()).toEqual(rows.map(({ name }) => name).sort())
    const functions = await database.db.query<{ name: string }>(
      `select proname as name from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
    )
    expect(functions.rows.map(({ name }) => name)).toEqual(FUNCTIONS)
  })

  const statements = sources
    .filter(({ file }) => file !== 'src/db/privileges.ts')
    // Drop SQL string constants, whose quotes look like the end of a statement.
    .map(({ file, text }) => ({ file, text: text.replaceAll(/'[A-Z_]+'/g, '0') }))

  /** Privileges that only statements of the owner use: `bursar approvers` and `bursar screening waive`. */
  const OF_THE_OWNER = [
    'insert on approvers',
    'delete on screening_requirement',
    'update (status) on approvers',
    'update (revoked_at) on approvers',
  ]

  /** Returns the privileges that the statements in src need, as `insert on entries`, each with a file that uses it. */
  function needed(): Map<string, string> {
    const found = new Map<string, string>()
    const tables = Object.keys(PRIVILEGES).join('|')
    /**
     * Returns the columns of a list of assignments, which ends at where, from, returning or the end of the statement.
     */
    const columnsOf = (assignments: string) => {
      const until = /^[^]*?(?=\b(?:where|returning)\b|\bfrom\s+(?:\w+\b(?!\s*\.)|\()|[`;']\s*[,)\n]|$)/.exec(
        assignments,
      )![0]
      return [...until.matchAll(/(?:^|,)\s*(\w+)\s*=(?!=)/g)].map(([, column]) => column!)
    }
    for (const { file, text } of statements) {
      const note = (what: string) => found.set(what, file)
      for (const [, table] of text.matchAll(new RegExp(`\\binsert into (${tables})\\b`, 'g')))
        note(`insert on ${table}`)
      for (const [, table] of text.matchAll(new RegExp(`\\bdelete from (${tables})\\b`, 'g')))
        note(`delete on ${table}`)
      for (const [, table, rest] of text.matchAll(
        new RegExp(
          `\\bupdate (${tables})\\b(?:\\s+(?:as\\s+)?(?!set\\b)\\w+)?\\s+set\\s+(?=([^]{0,900}))`,
          'g',
        ),
      ))
        for (const column of columnsOf(rest!)) note(`update (${column}) on ${table}`)
      for (const [, table, rest] of text.matchAll(
        new RegExp(
          `\\binsert into (${tables})\\b(?:(?!\\binsert into\\b)[^])*?\\bdo update\\s+set\\s+(?=([^]{0,900}))`,
          'g',
        ),
      ))
        for (const column of columnsOf(rest!)) note(`update (${column}) on ${table}`)
    }
    return found
  }

  test('has exactly the privileges that the statements in src need', () => {
    const declared = Object.entries(PRIVILEGES).flatMap(
      ([table, { insert, update = [], delete: deletes }]) => [
        ...(insert ? [`insert on ${table}`] : []),
        ...update.map((column) => `update (${column}) on ${table}`),
        ...(deletes ? [`delete on ${table}`] : []),
      ],
    )
    const wanted = needed()
    const lacking = [...wanted].filter(([what]) => !declared.includes(what) && !OF_THE_OWNER.includes(what))
    expect(
      lacking.map(([what, file]) => `${what}, which src/${file} needs, is missing in src/db/tables.ts`),
    ).toEqual([])
    // The statements that seal rows name no table (src/audit/sealed-rows.ts).
    for (const table of SEALED_TABLES)
      for (const column of ['sealed_at', 'mac'])
        wanted.set(`update (${column}) on ${table}`, 'records/sealed-rows.ts')
    const idle = declared.filter((what) => !wanted.has(what))
    expect(idle, 'no statement in src needs this').toEqual([])
  })

  test('lets no role change past records', () => {
    for (const table of [
      'credited_deposits',
      'decided_orchestrations',
      'entries',
      'policies',
      'replaced_transactions',
      'resolved_withdrawals',
      'withdrawal_marks',
    ])
      expect(PRIVILEGES[table], table).toEqual({ insert: true })
    // Beside its MAC.
    expect(PRIVILEGES['reward_rates']).toEqual({ insert: true, update: ['sealed_at', 'mac'] })
    // No deleted row is a record: old quotes, deposits that a reorganisation took back before they
    // were credited, simulated prices, sights of deposits that ended, simulated transactions, endpoints of webhooks,
    // one-time links and sessions of operators, windows of limits in which nothing counts any more, old traces, questions
    // for addresses that were answered, refills that were posted.
    const removing = Object.entries(PRIVILEGES).flatMap(([table, may]) => (may.delete ? table : []))
    expect(removing).toEqual([
      'asked_addresses',
      'fee_quotes',
      'incoming_transfers',
      'operator_links',
      'operator_sessions',
      'policy_windows',
      'price_minutes',
      'price_points',
      'seen_deposits',
      'refills',
      'simulated_chain',
      'traces',
      'webhooks',
    ])
  })
})

describe('migrate', () => {
  test('revokes undeclared privileges, grants missing ones, and then writes nothing', async () => {
    const { db, owner } = await ownDatabase()
    for (const statement of [
      `grant update, delete on entries to ${role()}`,
      `grant update on transfers to ${role()} with grant option`,
      'grant delete on balances to public',
      `grant update (name) on customers to ${role()}`,
      'grant create on schema public to public',
      `revoke insert on transfers from ${role()}`,
      `revoke update (state) on outgoing_transfers from ${role()}`,
      `revoke execute on function keep_partitions from ${role()}`,
      'grant execute on function keep_partitions to public',
    ])
      await owner.query(statement)
    expect(await saysOf(db)).toEqual([
      `EXCESS the database role ${role()} may create tables or schemas`,
      expect.stringMatching(/^EXCESS .* may change ledger entries$/),
      `MISSING the database role ${role()} lacks update (state) on outgoing_transfers, insert on transfers, execute on keep_partitions`,
    ])
    expect((await grantDifferences(db, role())).at(-1)).toEqual({
      kind: 'function',
      name: 'keep_partitions',
      missing: ['execute on keep_partitions'],
      excess: ['execute by everyone on keep_partitions'],
    })
    await expect(bringUpToDate(db, undefined)).rejects.toThrow(
      /lacks update \(state\) on outgoing_transfers, insert on transfers, execute on keep_partitions: run "bursar migrate" with BURSAR_MIGRATIONS_DATABASE_URL/,
    )
    expect(await migrate(owner, role())).toEqual([])
    expect(await grantDifferences(db, role())).toEqual([])
    expect(await faultsOfRole(db)).toEqual([])

    const written = async () => {
      const { rows } = await owner.query<{ xmin: string }>(
        `select xmin::text from pg_class where relnamespace = 'public'::regnamespace
         union all
         select xmin::text from pg_proc where pronamespace = 'public'::regnamespace
         order by 1`,
      )
      return rows
    }
    const before = await written()
    await migrate(owner, role())
    expect(await written()).toEqual(before)
  })

  test('grants nothing on a table without a line', async () => {
    await expect(
      transaction(database.owner, async (tx) => {
        await tx.query('create table more (id int primary key)')
        expect(await undeclaredTables(tx)).toEqual(['more'])
        const { rows } = await tx.query(
          `select has_table_privilege($1, 'more', 'select, insert, update, delete') as may`,
          [role()],
        )
        expect(rows).toEqual([{ may: false }])
        throw new Error('undone')
      }),
    ).rejects.toThrow('undone')
  })

  test('explains how to reassign tables of another role, and changes nothing', async () => {
    const { db, ownerUrl } = await ownDatabase()
    const name = `test_${randomBytes(6).toString('hex')}`
    await asAdmin(`create role ${name} login password 'p'`)
    atEnd(() => asAdmin(`drop role ${name}`))
    const url = new URL(ownerUrl)
    url.username = name
    url.password = 'p'
    await expect(bringUpToDate(db, url.href)).rejects.toThrow(
      new RegExp(
        `the tables belong to the database role ${ownerRole()}, not to ${name}: .*reassign owned by`,
      ),
    )
    expect(await faultsOfRole(db)).toEqual([])
  })

  test('by an owner creates the schema of an empty database, which the service alone cannot', async () => {
    const { url, ownerUrl, drop } = await createDatabase()
    const db = openDatabase(url, { max: 2, onError: () => undefined })
    atEnd(async () => {
      await db.end()
      await drop()
    })
    await expect(bringUpToDate(db, undefined)).rejects.toThrow(
      /^the schema is at version 0, this program needs \d+, and the database role \w+ does not own it: run "bursar migrate" with BURSAR_MIGRATIONS_DATABASE_URL/,
    )
    expect((await bringUpToDate(db, ownerUrl)).length).toBeGreaterThan(0)
    expect(await bringUpToDate(db, ownerUrl)).toEqual([])
    expect(await bringUpToDate(db, undefined)).toEqual([])
    expect(await faultsOfRole(db)).toEqual([])
    expect(await grantDifferences(db, role())).toEqual([])
  })

  test('refuses the owner of another database', async () => {
    const [ours, other] = [await createDatabase(), await cloneDatabase()]
    atEnd(async () => {
      await other.drop()
      await ours.drop()
    })
    await expect(bringUpToDate(open(ours.url), other.ownerUrl)).rejects.toThrow(
      'DATABASE_URL and BURSAR_MIGRATIONS_DATABASE_URL must name one database',
    )
  })

  test('works with one role for both: that role cannot change entries unless it grants itself the right', async () => {
    const { ownerUrl, drop } = await createDatabase()
    const db = openDatabase(ownerUrl, { max: 2, onError: () => undefined })
    atEnd(async () => {
      await db.end()
      await drop()
    })
    expect((await bringUpToDate(db, undefined)).length).toBeGreaterThan(0)
    await expect(db.query('delete from entries')).rejects.toMatchObject({ code: '42501' })
    expect(await saysOf(db)).toEqual([
      `EXCESS the database role ${ownerRole()} owns the schema: ledger entries are not protected from it`,
    ])
    // As after restoring a dump without its privileges.
    await db.query('grant update, delete, truncate on entries to current_user')
    await bringUpToDate(db, undefined)
    await expect(db.query('delete from entries')).rejects.toMatchObject({ code: '42501' })
  })
})

describe('a role has excess rights when it', () => {
  test.each([
    [
      'is a superuser',
      (name: string) => `alter role ${name} superuser`,
      /is a superuser: ledger entries are not protected/,
    ],
    ['may create roles', (name: string) => `alter role ${name} createrole`, /may create roles/],
    [
      'is a member of the owner',
      (name: string) => `grant ${ownerRole()} to ${name}`,
      /owns the schema: ledger entries are not protected/,
    ],
    ['writes all data', (name: string) => `grant pg_write_all_data to ${name}`, /may change ledger entries/],
  ])('%s', async (_, statement, says) => {
    const { ownerUrl, drop } = await cloneDatabase()
    const name = `test_${randomBytes(6).toString('hex')}`
    const owner = openDatabase(ownerUrl, { max: 1, onError: () => undefined })
    await onEveryNode(`create role ${name} login password 'p'`)
    await migrate(owner, name)
    await owner.end()
    const url = new URL(ownerUrl)
    url.username = name
    url.password = 'p'
    const db = openDatabase(url.href, { max: 1, onError: () => undefined })
    atEnd(async () => {
      await db.end()
      await drop()
      await onEveryNode(`drop role ${name}`)
    })
    expect(await faultsOfRole(db)).toEqual([])
    await onEveryNode(statement(name))
    expect(await saysOf(db)).toEqual([expect.stringMatching(says)])
  })
})
