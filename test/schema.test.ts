import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { transaction, type Queryable } from '../src/db/database.ts'
import { PLACES } from '../src/db/distribution.ts'
import { PRIVILEGES } from '../src/db/privileges.ts'
import { CLUSTER } from './cluster.ts'
import { cloneDatabase, type TestDatabase } from './support.ts'

// The whole database in one file, for readers: the result of the migrations, from PostgreSQL's own catalogues.
const SNAPSHOT = fileURLToPath(new URL('../migrations/schema.sql', import.meta.url))

/** Tables that belong to no customer: customers themselves, and state of the deployment or of the outside world. */
const NOT_TENANT_OWNED = [
  'acknowledged_transactions',
  'bank_wires',
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
  'reward_rates',
  'schema_version',
  'screening_requirement',
  'signing_keys',
  'simulated_chain',
  'wallet_checks',
]

let database: TestDatabase
beforeAll(async () => {
  database = await cloneDatabase(2)
})
afterAll(() => database.drop())

const HEADER = `-- The schema that the migrations make, as PostgreSQL's catalogues tell it. For readers: nothing runs this file.
-- \`npm run schema\` writes it, and a test compares it with a freshly migrated database.
-- Where no grants are shown, the owner may do all. What the service's role may do: src/db/privileges.ts.
`

test('migrations/schema.sql is the result of the migrations', async () => {
  const schema = HEADER + (await describeSchema(database.owner))
  await expect(schema, 'the schema has changed; `npm run schema` writes it down').toMatchFileSnapshot(
    SNAPSHOT,
  )
})

/**
 * Describes every table by name, with its columns, constraints, indexes and grants, and then the functions, as SQL that
 * PostgreSQL accepts.
 */
async function describeSchema(db: Queryable): Promise<string> {
  const tables = await db.query<{
    name: string
    columns: string
    constraints: string[]
    options: string | null
    partitions: string | null
  }>(`
    select c.relname as name,
           (select string_agg(
              format('  %I %s', a.attname, format_type(a.atttypid, a.atttypmod))
                || case when a.attnotnull then ' not null' else '' end
                || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), e',\\n' order by a.attnum)
            from pg_attribute a
            left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
           -- PostgreSQL 18 has one for each not null (n), which stands with its column.
           array(select format('  constraint %I %s', conname, pg_get_constraintdef(oid, true))
                 from pg_constraint
                 where conrelid = c.oid and contype <> 'n'
                 order by array_position('{p,u,f}', contype::text), conname) as constraints,
           array_to_string(c.reloptions, ', ') as options,
           pg_get_partkeydef(c.oid) as partitions
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname`)
  const indexes = await db.query<{ table: string; definition: string }>(`
    select indrelid::regclass::text as table, pg_get_indexdef(indexrelid, 0, true) as definition
    from pg_index i
    join pg_class c on c.oid = indrelid
    where c.relnamespace = 'public'::regnamespace
      and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
    order by indexrelid::regclass::text`)
  // MAINTAIN came with PostgreSQL 17.
  const grants = await db.query<{ table: string; role: string; privileges: string }>(
    `
    select relname as table,
           case grantee when relowner then 'owner' when 0 then 'public' else pg_get_userbyid(grantee) end as role,
           string_agg(lower(privilege_type), ', ' order by privilege_type) as privileges
    from pg_class c, aclexplode(coalesce(relacl, acldefault('r', relowner)))
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and privilege_type <> 'MAINTAIN' and pg_get_userbyid(grantee) <> $1
    group by 1, 2
    order by 1, 2`,
    [new URL(database.url).username],
  )

  const functions = await db.query<{ definition: string }>(`
    select pg_get_functiondef(oid) as definition
    from pg_proc where pronamespace = 'public'::regnamespace
    order by proname`)

  return tables.rows
    .map(({ name, columns, constraints, options, partitions }) => {
      const granted = grants.rows.filter(({ table }) => table === name)
      const all = granted.length === 1 && granted[0]!.privileges === ALL
      return [
        `\ncreate table ${name} (`,
        [columns, ...constraints].join(',\n'),
        `)${options === null ? '' : ` with (${options})`}${partitions === null ? '' : ` partition by ${partitions}`};`,
        ...indexes.rows.filter(({ table }) => table === name).map(({ definition }) => `${definition};`),
        ...(all ? [] : granted.map(({ role, privileges }) => `grant ${privileges} on ${name} to ${role};`)),
      ].join('\n')
    })
    .join('\n')
    .replaceAll('public.', '')
    .concat('\n', ...functions.rows.map(({ definition }) => `\n${definition.trim()};\n`))
}

const ALL = 'delete, insert, references, select, trigger, truncate, update'

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
  expect(Object.keys(PLACES).sort()).toEqual(Object.keys(PRIVILEGES).sort())
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
    'alter table profiles add color text',
    'alter table profiles drop description',
    'alter table profiles alter description set not null',
    "alter table profiles alter description set default ''",
    'alter table profiles alter description type varchar(500)',
    'alter table profiles rename description to about',
    'alter table profiles drop constraint profiles_type',
    'alter table profiles rename constraint profiles_nickname to nicknames',
    'alter table balances drop constraint balances_not_negative',
    'alter table balances set (fillfactor = 70)',
    'drop index transfers_profile',
    'create index transfers_memo on transfers (customer_id, memo)',
    'drop table signing_keys',
    'create table more (customer_id uuid)',
    'grant update on entries to current_user',
    'grant select on transfers to public',
    "alter function keep_partitions set lock_timeout = '1h'",
  ])('%s', async (statement) => {
    const before = await describeSchema(database.owner)
    expect(await after(statement, describeSchema)).not.toBe(before)
    expect(await describeSchema(database.owner)).toBe(before)
  })

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
