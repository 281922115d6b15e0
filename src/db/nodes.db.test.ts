import { expect, test } from 'vitest'
import { CLUSTER } from '../../test/cluster.ts'
import { ownDatabase } from '../../test/support.ts'
import { Cluster, hashOfUuid, onShard, shardOf } from './nodes.ts'
import { forCustomer, partsOf } from './parts.ts'

const database = await ownDatabase(2)

test('the hash of a customer is the one by which the database distributes', async () => {
  const ids = [
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    ...Array.from({ length: 500 }, () => crypto.randomUUID()),
  ]
  const { rows } = await database.db.query<{ hash: number }>(
    'select uuid_hash(id) as hash from unnest($1::uuid[]) with ordinality as ids (id, place) order by place',
    [ids],
  )
  expect(ids.map(hashOfUuid)).toEqual(rows.map(({ hash }) => hash))
  expect(hashOfUuid(ids[2]!.toUpperCase())).toBe(rows[2]!.hash)
  expect(() => hashOfUuid('')).toThrow('not a uuid')
})

test.skipIf(CLUSTER.length > 0)('a plain database is its only part', async () => {
  const cluster = await Cluster.open(database.db, (error) => expect.unreachable(String(error)))
  cluster.connect(database.db, (address) => expect.unreachable(address))
  expect(forCustomer(database.db, crypto.randomUUID())).toBe(database.db)
  expect(partsOf(database.db)).toEqual([{ name: '', db: database.db }])
  expect(partsOf(database.db)).toBe(partsOf(database.db))
  await cluster.close()
})

const shard = (min: number, max: number, node: string) => ({
  min,
  max,
  node,
  tables: new Map<string, string>(),
})

test('a customer is in the range of its hash', () => {
  const shards = [shard(-2147483648, -1, 'a:1'), shard(0, 2147483647, 'b:2')]
  for (let one = 0; one < 100; one++) {
    const id = crypto.randomUUID()
    expect(shardOf(shards, id).node).toBe(hashOfUuid(id) < 0 ? 'a:1' : 'b:2')
  }
  expect(() => shardOf([], crypto.randomUUID())).toThrow('no shard')
})

test('a statement about one shard names the shard of each distributed table, and leaves all other words', () => {
  const tables = new Map([
    ['transfers', 'transfers_1'],
    ['webhooks', 'webhooks_2'],
  ])
  const text = `
    select t.id, 'transfers' as kind, transfers_of.x
    from transfers t
    join webhooks w on w.customer_id = t.customer_id
    where exists (select from Transfers_old) and not exists (select from webhooks) and network in (select from freezes)`
  expect(onShard(text, { tables })).toBe(
    text
      .replace('from transfers t', 'from transfers_1 t')
      .replace('join webhooks w', 'join webhooks_2 w')
      .replace('select from webhooks)', 'select from webhooks_2)'),
  )
})
