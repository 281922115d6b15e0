/*
 * Invariants of a distributed database:
 * 1. `migrate --distribute` refuses, with a clear error and without a change, what it cannot do;
 * 2. every shard and every node has exactly the privileges that the coordinator has, also after a shard was moved;
 * 3. the weekly partitions are made on the shards;
 * 4. the statements that move money go to the one shard of their customer, and those of settlement;
 * 5. what is on the coordinator and is written together with a customer's rows is committed in two phases.
 * All but the first need a cluster: TEST_CITUS_NODES names it (CONTRIBUTING.md).
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CLUSTER, onNode } from '../../test/cluster.ts'
import {
  cloneDatabase,
  createClusterDatabase,
  createDatabase,
  credit,
  fund,
  newCustomer,
  runBursar,
  startTestService,
  toldIn,
  type TestDatabase,
} from '../../test/support.ts'
import { openDatabase, transaction, WRITER } from './database.ts'
import { distributeNewTables, isDistributed } from './distribution.ts'
import { PLACES } from './tables.ts'
import { PLATFORM_ID } from './ids.ts'
import { settleWithdrawals } from '../rails/payouts/settle-withdrawals.ts'

const distributing = ({ url, ownerUrl }: { url: string; ownerUrl?: string }, ...args: string[]) =>
  runBursar(['migrate', '--distribute', ...args], {
    DATABASE_URL: url,
    ...(ownerUrl !== undefined && { BURSAR_MIGRATIONS_DATABASE_URL: ownerUrl }),
  })

describe('the command refuses', () => {
  let plain: Awaited<ReturnType<typeof createDatabase>>
  beforeAll(async () => {
    plain = await createDatabase()
  })
  afterAll(() => plain.drop())

  test('a database without Citus', async () => {
    const ended = await distributing(plain)
    expect(ended.code).toBe(1)
    expect(toldIn(ended).join()).toMatch(/this database has no Citus: run "create extension citus"/)
  })

  test('to run without the address of the owner', async () => {
    const ended = await distributing({ url: plain.url })
    expect(ended.code).toBe(1)
    expect(toldIn(ended).join()).toMatch(/BURSAR_MIGRATIONS_DATABASE_URL.* give the addresses of both roles/)
  })

  test.each([
    [['migrate', '--distribute', '--shards', '0'], /must be a whole number from 1 to 256/],
    [['migrate', '--distribute', '--shards', '257'], /must be a whole number from 1 to 256/],
    [['migrate', '--shards', '4'], /'--shards <number>' needs --distribute/],
  ])('%j', async (args, says) => {
    const ended = await runBursar(args, { DATABASE_URL: plain.url })
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(says)
  })
})

describe.skipIf(CLUSTER.length === 0)('the command on a cluster', () => {
  let empty: Awaited<ReturnType<typeof createClusterDatabase>>
  beforeAll(async () => {
    empty = await createClusterDatabase()
  })
  afterAll(() => empty.drop())

  const refused = async (says: RegExp, ...args: string[]) => {
    const ended = await distributing(empty, ...args)
    expect(ended.code).toBe(1)
    expect(toldIn(ended).join()).toMatch(says)
    const owner = openDatabase(empty.ownerUrl, { max: 1, onError: () => undefined })
    try {
      expect(await isDistributed(owner)).toBe(false)
    } finally {
      await owner.end()
    }
  }

  test('refuses a cluster without worker nodes, a table that it does not know, and company; then distributes once', async () => {
    await refused(/the cluster has no worker nodes/)
    await empty.join()
    await onNode(empty.ownerUrl, ['create table notes (id int)'])
    await refused(/no place is known for notes/)
    await onNode(empty.ownerUrl, ['drop table notes'])
    const other = new pg.Client({ connectionString: empty.url, application_name: WRITER })
    await other.connect()
    await refused(/1 other session of Bursar's programs uses? the database: stop/)
    await other.end()
    const first = await distributing(empty, '--shards', '4', '--json')
    expect(first.stderr).not.toMatch(/"level":[56]0/)
    expect(JSON.parse(first.stdout)).toMatchObject({
      distributed: { shards: 4, nodes: CLUSTER.slice(1).map((address) => new URL(address).host) },
    })
    const again = await distributing(empty, '--shards', '8')
    expect(again.stdout).toMatch(/is distributed already: 4 shards/)
    const migrated = await runBursar(['migrate'], {
      DATABASE_URL: empty.url,
      BURSAR_MIGRATIONS_DATABASE_URL: empty.ownerUrl,
    })
    expect(migrated.stdout).toBe('The schema is up to date.\n')
  })
})

describe.skipIf(CLUSTER.length === 0)('a distributed database', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await cloneDatabase()
  })
  afterAll(() => database.drop())

  const superuserOf = (node: string) => {
    const url = new URL(node)
    url.pathname = new URL(database.url).pathname
    return url.href
  }

  /** Returns the privileges on each table and shard of a node, by table. */
  async function privilegesOn(node: string): Promise<Record<string, string[]>> {
    const client = new pg.Client({ connectionString: superuserOf(node) })
    await client.connect()
    await client.query('set citus.override_table_visibility to off')
    const { rows } = await client.query<{ name: string; may: string }>(`
      select regexp_replace(relname, '_\\d{6,}$', '') as name,
             concat_ws(' ', (
               select string_agg(a::text, ' ' order by a::text) from unnest(relacl) a
               where a::text not like pg_get_userbyid(relowner) || '=%'), (
               select string_agg(attname || ':' || attacl::text, ' ' order by attname) from pg_attribute
               where attrelid = c.oid and attacl is not null)) as may
      from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`)
    await client.end()
    const byName: Record<string, Set<string>> = {}
    for (const { name, may } of rows) (byName[name] ??= new Set()).add(may)
    return Object.fromEntries(Object.entries(byName).map(([name, all]) => [name, [...all].sort()]))
  }

  const distributed = Object.keys(PLACES).filter((table) =>
    ['CUSTOMER', 'EVERYWHERE'].includes(PLACES[table]!),
  )

  async function expectPrivileges(): Promise<void> {
    const wanted = await privilegesOn(CLUSTER[0]!)
    for (const node of CLUSTER.slice(1)) {
      const found = await privilegesOn(node)
      for (const table of distributed)
        expect({ node, table, may: found[table] }).toEqual({ node, table, may: wanted[table] })
    }
  }

  test('has the same privileges on all shards and nodes, also after a shard was moved', async () => {
    await expectPrivileges()
    const [from, to] = CLUSTER.slice(1).map((address) => new URL(address))
    await onNode(superuserOf(CLUSTER[0]!), [
      `select citus_move_shard_placement(
         (select min(shardid) from citus_shards where table_name = 'entries'::regclass and nodeport = ${from!.port}),
         '${from!.hostname}', ${from!.port}, '${to!.hostname}', ${to!.port}, 'block_writes')`,
    ])
    await expectPrivileges()
  })

  test.each(['delete from entries', 'update entries set amount = 1', 'truncate entries'])(
    'refuses on every node, as the role of the service: %s',
    async (statement) => {
      for (const node of CLUSTER) {
        const url = new URL(database.url)
        url.host = new URL(node).host
        await expect(onNode(url.href, [statement])).rejects.toThrow(/permission denied/)
      }
      const { hostname, port } = new URL(CLUSTER[1]!)
      const shards = await database.owner.query<{ name: string }>(
        `select shard_name as name from citus_shards where table_name = 'entries'::regclass and nodeport = $1`,
        [port],
      )
      const worker = new URL(database.url)
      worker.host = `${hostname}:${port}`
      for (const { name } of shards.rows)
        await expect(onNode(worker.href, [statement.replace('entries', name)])).rejects.toThrow(
          /permission denied|is a shard of/,
        )
    },
  )

  test.each(Object.keys(PLACES).filter((table) => PLACES[table] === 'READABLE'))(
    'writes to %s together with a customer in two phases, because one phase could lose one of the two',
    async (table) => {
      const { rows } = await database.owner.query<{ column: string }>(
        'select attname as column from pg_attribute where attrelid = $1::regclass and attnum = 1',
        [table],
      )
      const { column } = rows[0]!
      const client = new pg.Client({ connectionString: database.ownerUrl })
      await client.connect()
      const remote: string[] = []
      client.on('notice', ({ message }) => void remote.push(message ?? ''))
      await client.query('set citus.log_remote_commands to on')
      for (const statement of [
        'begin',
        // They change no row, because only the statements matter.
        `update outgoing_transfers set leased_until = null where customer_id = '${PLATFORM_ID}' and transfer_id is null`,
        `update ${table} set ${column} = ${column} where ${column} is null`,
        'commit',
      ])
        await client.query(statement)
      await client.end()
      expect(remote).toContainEqual(expect.stringMatching(/^issuing PREPARE TRANSACTION/))
    },
  )

  test('gets the tables of later migrations', async () => {
    const undo = new Error('undo')
    await expect(
      transaction(database.owner, async (tx) => {
        await tx.query('drop table policy_windows')
        await tx.query(
          'create table policy_windows (customer_id uuid not null, id uuid, primary key (customer_id, id))',
        )
        expect(await distributeNewTables(tx)).toEqual(['policy_windows'])
        throw undo
      }),
    ).rejects.toBe(undo)
  })

  test('has weekly partitions on its shards', async () => {
    const partitions = () =>
      database.owner.query<{ name: string }>(`
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        join pg_dist_partition on logicalrelid = c.oid
        where inhparent = 'events'::regclass order by 1`)
    const { rows: before } = await partitions()
    await database.owner.query(`drop table ${before.at(-2)!.name}`)
    const { rows } = await database.db.query(`select keep_partitions('events', 90) as did`)
    expect(rows[0]).toEqual({ did: `made ${before.at(-2)!.name}` })
    expect((await partitions()).rows).toEqual(before)
  })
})

describe.skipIf(CLUSTER.length === 0)('the statements that move money', () => {
  test('go to the one shard of their customer, those of one table by the fast path', async () => {
    const service = await startTestService()
    try {
      const customer = await newCustomer(service)
      await fund(customer, '100')
      const seen = await statementsOf(() => fund(customer, '5'))
      const ofTables = seen.filter(({ text }) =>
        /\b(balances|entries|transfers|events|audit_\w+|policies|profiles)\b/.test(text),
      )
      expect(ofTables.length).toBeGreaterThan(5)
      const client = new pg.Client({ connectionString: service.url })
      await client.connect()
      const notices: string[] = []
      client.on('notice', ({ message }) => void notices.push(message ?? ''))
      await client.query('begin; set local client_min_messages to debug4')
      for (const { text, values } of ofTables) {
        notices.length = 0
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values)
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
        expect({ text, plan }).toMatchObject({ plan: expect.stringContaining('Task Count: 1') as string })
        if (!/^\s*insert|union all|exists \(/.test(text))
          expect({ text, notices }).toMatchObject({
            notices: expect.arrayContaining([expect.stringMatching(/fast-path router query/)]) as string[],
          })
      }
      await client.end()
    } finally {
      await service.close()
    }
  })

  test('and leave no plans in the sessions of its node', async () => {
    const service = await startTestService()
    try {
      const { customer_id, profile_id } = await newCustomer(service)
      for (const worker of CLUSTER.slice(1)) {
        const { pathname } = new URL(service.url)
        const session = openDatabase(Object.assign(new URL(worker), { pathname }).href, {
          max: 1,
          onError: () => undefined,
        })
        const update = async (times: number) => {
          for (let time = 0; time < times; time++)
            await session.query({
              name: 'update',
              text: 'update profiles set nickname = $3 where customer_id = $1 and id = $2',
              values: [customer_id, profile_id, `name ${time}`],
            })
        }
        const memory = async () => {
          const { rows } = await session.query<{ bytes: number }>(
            'select sum(total_bytes)::float8 as bytes from pg_backend_memory_contexts',
          )
          return rows[0]!.bytes
        }
        await update(50)
        const before = await memory()
        await update(200)
        expect((await memory()) - before).toBeLessThan(1_000_000)
        await session.end()
      }
    } finally {
      await service.close()
    }
  })

  test('and those of settlement go to one shard at a time', async () => {
    const service = await startTestService()
    try {
      const customer = await newCustomer(service)
      await credit(service.ledger, customer, 'BTC', '1')
      const { status } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        amount: '0.1',
        asset: 'BTC',
        crypto_network: 'BITCOIN',
        destination_address: 'bc1qqv9pzxqlyckngw6zf9g9whn9d3eh4qvg8d8phl',
      })
      expect(status).toBe(200)
      const seen = await statementsOf(async () => {
        while ((await settleWithdrawals(service.db, service.networks)) > 0);
      })
      const ofCustomer = seen.filter(
        ({ text, values }) => values[0] === customer.customer_id && /\$1/.test(text),
      )
      expect(ofCustomer.length).toBeGreaterThan(5)
      for (const { text, values } of ofCustomer) {
        const { rows } = await service.db.query<{ 'QUERY PLAN': string }>(
          `explain (costs off) ${text}`,
          values,
        )
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
        expect({ text, plan }).toMatchObject({
          plan: expect.not.stringMatching(/Task Count: [02-9]/) as string,
        })
        expect({ text, plan }).toMatchObject({ plan: expect.stringContaining('Task Count: 1') as string })
      }
    } finally {
      await service.close()
    }
  })
})

interface Sent {
  text: string
  values: unknown[]
}

/** Returns the statements with parameters that the driver sends meanwhile. */
async function statementsOf(work: () => Promise<unknown>): Promise<Sent[]> {
  type Query = (this: pg.Client, ...args: unknown[]) => unknown
  const { query } = pg.Client.prototype as unknown as { query: Query }
  const sent: Sent[] = []
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [config, values] = args as [string | { text?: string; values?: unknown[] }, unknown[] | undefined]
    const text = typeof config === 'string' ? config : config.text
    const given = typeof config === 'string' ? values : config.values
    if (text !== undefined && Array.isArray(given)) sent.push({ text, values: given })
    return query.apply(this, args)
  } as typeof pg.Client.prototype.query
  try {
    await work()
  } finally {
    pg.Client.prototype.query = query as typeof pg.Client.prototype.query
  }
  return sent
}
