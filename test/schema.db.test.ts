import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { transaction, type Queryable } from '../src/db/database.ts'
import { PLATFORM_ID } from '../src/db/ids.ts'
import { migrate } from '../src/db/migrate.ts'
import { PLACES } from '../src/db/tables.ts'
import { CLUSTER } from './cluster.ts'
import { ownDatabase } from './support.ts'

/** Tables that belong to no customer: customers themselves, and state of the deployment or of the outside world. */
const NOT_TENANT_OWNED = [
  'acknowledged_transactions',
  'address_series',
  'asked_addresses',
  'bank_lines',
  'bank_matches',
  'bank_statements',
  'bank_wires',
  'closed_days',
  'customers',
  'deployment',
  'event_history',
  'evm_nonces',
  'failed_transactions',
  'freezes',
  'markets',
  'network_cursors',
  'network_fee_checks',
  'network_genesis',
  'network_transactions',
  'operator_challenges',
  'operator_links',
  'operator_passkeys',
  'operator_sessions',
  'operators',
  'price_imports',
  'price_minutes',
  'price_points',
  'refills',
  'reward_rates',
  'schema_version',
  'screening_requirement',
  'signing_keys',
  'simulated_chain',
  'solana_lanes',
  'wallet_checks',
]

const database = await ownDatabase(2)

/** Returns primary and unique keys of tenant-owned tables that are missing or do not begin with customer_id. */
async function keysAcrossTenants(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ offence: string }>(
    `
    select format('%s: the key %s begins with %s', c.relname, i.indexrelid::regclass, a.attname) as offence
    from pg_class c
    join pg_index i on i.indrelid = c.oid and (i.indisprimary or i.indisunique)
    left join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> all ($1)
      and a.attname is distinct from 'customer_id'
    union all
    select format('%s has no primary key', c.relname)
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> all ($1)
      and not exists (select from pg_index where indrelid = c.oid and indisprimary)
    union all
    select format('%s: the foreign key %s does not begin with customer_id', c.relname, f.conname)
    from pg_class c
    join pg_constraint f on f.conrelid = c.oid and f.contype = 'f'
    join pg_attribute a on a.attrelid = c.oid and a.attnum = f.conkey[1]
    where c.relnamespace = 'public'::regnamespace and c.relname <> all ($1) and a.attname <> 'customer_id'
    order by 1`,
    [NOT_TENANT_OWNED],
  )
  return rows.map(({ offence }) => offence)
}

/**
 * Returns every object that is neither a table nor an index: a distributed database refuses these or is slow with
 * them.
 */
async function otherObjects(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ object: string }>(`
    select format('relation %s of kind %s', relname, relkind) as object
    from pg_class where relnamespace = 'public'::regnamespace and relkind not in ('r', 'i', 'p', 'I')
    union all
    select format('trigger %s on %s', tgname, tgrelid::regclass) from pg_trigger where not tgisinternal
    union all
    select format('function %s', proname) from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select format('rule %s on %s', rulename, ev_class::regclass)
    from pg_rewrite join pg_class c on c.oid = ev_class where c.relnamespace = 'public'::regnamespace
    union all
    select format('type %s', typname) from pg_type
    where typnamespace = 'public'::regnamespace and typrelid = 0 and typelem = 0
    order by 1`)
  return rows.map(({ object }) => object)
}

/** Makes the database's schema the last of these migrations, as a program from before the first release left it. */
async function haveMigrations(last: number): Promise<void> {
  await database.owner.query('delete from schema_version where version > 1')
  await database.owner.query(
    "update schema_version set name = 'roles', md5 = 'of another file' where version = 1",
  )
  await database.owner.query(
    "insert into schema_version (version, name, md5) select n, 'later', 'of another file' from generate_series(2, $1::int) n",
    [last],
  )
}

test('the statement of docs/upgrading.md takes over a database from before the first release', async () => {
  const [, takeOver = ''] = /```sql\n([^]*?)```/.exec(readFileSync('docs/upgrading.md', 'utf8'))!
  const migrated = () => migrate(database.owner, new URL(database.url).username)

  await haveMigrations(151)
  expect(await database.owner.query(takeOver)).toMatchObject({ rowCount: 0 })
  await expect(migrated()).rejects.toThrow('the database is at version 151')

  await haveMigrations(152)
  await expect(migrated()).rejects.toThrow('the database is at version 152')
  expect(await database.owner.query(takeOver)).toMatchObject({ rowCount: 1 })
  // Citus refuses migration 004 (docs/guides/scale-out.md): a cluster's schema has the first four.
  const has = CLUSTER.length > 0 ? 4 : 1
  await database.owner.query(
    "insert into schema_version (version, name) select n, 'earlier' from generate_series(2, $1::int) n",
    [has],
  )
  const later: [migration: number, takenBack: string][] = [
    [14, 'alter table sweeps rename to evm_sweeps'],
    [14, 'alter table address_holdings rename to evm_holdings'],
    [2, 'alter table api_clients drop column name, drop column last_used_at'],
    [3, 'drop table traces'],
    [5, 'drop table solana_lanes'],
    [6, 'drop table refills'],
    [7, 'drop table address_series'],
    [7, 'drop table asked_addresses'],
    [7, 'alter table evm_holdings drop column if exists account, drop column if exists signature'],
    [9, 'drop index audit_log_ends'],
    [11, 'drop table transfer_metadata'],
    [11, 'drop index transfers_memo'],
    [13, 'drop table withdrawal_marks'],
    [18, 'drop table closed_days, day_sums; drop index entries_created_at'],
    [19, 'drop table bank_statements, bank_lines, bank_matches'],
  ]
  for (const [migration, takenBack] of later) if (migration > has) await database.owner.query(takenBack)
  await database.owner.query(
    `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, created_at,
                            updated_at, metadata)
     select of, gen_random_uuid(), gen_random_uuid(), 'CRYPTO_WITHDRAWAL', 'DEBIT', 'PENDING', 'USDP', 1, 0, 1, now(), now(), metadata
     from (values (gen_random_uuid(), '{"order": "1041", "": "x"}'::jsonb), (gen_random_uuid(), null),
                  ($1, '{"network_fee": {"rate": 2}}')) made (of, metadata)`,
    [PLATFORM_ID],
  )
  expect(await migrated()).toEqual(
    [
      '002.do.names-of-api-clients.sql',
      '003.do.traces.sql',
      '004.do.signer.sql',
      '005.do.solana.sql',
      '006.do.refills.sql',
      '007.do.solana-deposits.sql',
      '008.do.deposits-that-wait.sql',
      '009.do.ends-in-the-audit-log.sql',
      '010.do.keys-and-checks.sql',
      '011.do.filters-by-memo-and-metadata.sql',
      '012.do.no-limits-of-customers.sql',
      '013.do.marks-of-withdrawals.sql',
      '014.do.neutral-names.sql',
      '015.do.lanes-and-blocks.sql',
      '016.do.journal-heads.sql',
      '017.do.head-of-each-network.sql',
      '018.do.closed-days.sql',
      '019.do.bank-statements.sql',
      '020.do.sums-of-the-whole-ledger.sql',
    ].slice(has - 1),
  )
  const { rows } = await database.owner.query<{ key: string; value: string }>(
    `select key, value from transfer_metadata m join transfers t on t.customer_id = m.customer_id and t.id = m.transfer_id order by key`,
  )
  expect(rows).toEqual([
    { key: '', value: 'x' },
    { key: 'order', value: '1041' },
  ])
})

test('keys of tenant-owned tables begin with customer_id', async () => {
  expect(await keysAcrossTenants(database.owner)).toEqual([])
})

test('only the listed tables lack customer_id', async () => {
  const { rows } = await database.owner.query<{ name: string }>(`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and not exists (
      select from information_schema.columns
      where table_schema = 'public' and table_name = relname
        and column_name = 'customer_id' and is_nullable = 'NO' and data_type = 'uuid')
    order by 1`)
  expect(rows.map(({ name }) => name)).toEqual(NOT_TENANT_OWNED)
})

test('each table has its place on a distributed database: tables of a customer are distributed', () => {
  const elsewhere = Object.keys(PLACES).filter((table) => PLACES[table] !== 'CUSTOMER')
  expect(elsewhere.sort()).toEqual(NOT_TENANT_OWNED.filter((table) => table !== 'customers'))
})

// The owner's function is called alone and reads no table of a customer: a distributed database runs it on its coordinator.
// Citus adds triggers of its own.
test.skipIf(CLUSTER.length > 0)(
  'the schema has tables, indexes and two functions: no triggers, no sequences',
  async () => {
    expect(await otherObjects(database.owner)).toEqual(['function add_payees', 'function keep_partitions'])
  },
)

// Tests of these tests: they detect a change of the schema. A cluster refuses some of the changes.
describe.skipIf(CLUSTER.length > 0)('a change is detected:', () => {
  class Undone extends Error {}

  /** Returns what `look` finds after the statement, which is then rolled back. */
  async function after<T>(statement: string, look: (db: Queryable) => Promise<T>): Promise<T> {
    let seen: { value: T } | undefined
    await transaction(database.owner, async (tx) => {
      await tx.query(statement)
      seen = { value: await look(tx) }
      throw new Undone()
    }).catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error
    })
    return seen!.value
  }

  test.each([
    [
      'create table more (id uuid primary key, customer_id uuid not null)',
      'more: the key more_pkey begins with id',
    ],
    ['create table more (customer_id uuid not null)', 'more has no primary key'],
    ['create unique index memos on transfers (memo)', 'transfers: the key memos begins with memo'],
    ['create unique index memos on transfers (lower(memo))', 'transfers: the key memos begins with '],
    [
      'alter table entries add foreign key (profile_id, customer_id) references profiles (id, customer_id)',
      'entries: the foreign key entries_profile_id_customer_id_fkey does not begin with customer_id',
    ],
  ])('%s', async (statement, offence) => {
    const unique = 'create unique index other_way on profiles (id, customer_id); '
    const needed = statement.includes('references') ? unique : ''
    expect(await after(needed + statement, keysAcrossTenants)).toContain(offence)
  })

  test.each([
    ['create sequence s', 'relation s of kind S'],
    ['create view v as select 1', 'relation v of kind v'],
    ['create table more (id int generated always as identity)', 'relation more_id_seq of kind S'],
    ["create type t as enum ('A')", 'type t'],
    [
      `create function f() returns trigger language plpgsql as 'begin return new; end';
       create trigger entries_frozen before update on entries for each row execute function f()`,
      'trigger entries_frozen on entries',
    ],
  ])('%s', async (statement, object) => {
    expect(await after(statement, otherObjects)).toContain(object)
  })
})
