/*
 * The guide to scaling out works as written: one PostgreSQL that has served customers becomes a cluster, no record is lost or changed,
 * and customers are served as before. `npm run test:citus` runs it.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@bursar/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, OWNER } from '../src/db/database.ts'
import { CLUSTER, onNode } from './cluster.ts'
import { codeOf } from './guides.ts'
import {
  createClusterDatabase,
  DESTINATION,
  everyTable,
  runBursar,
  spawnBursar,
  type BursarProcess,
} from './support.ts'

/** The only block of the guide's steps in this language. */
function blockOf(language: string): string {
  const blocks = codeOf('docs/guides/scale-out.md', language, 'From one PostgreSQL to a cluster\n')
  expect(blocks).toHaveLength(1)
  return blocks[0]!.trim()
}

/** The statements of the guide that make a cluster, with the hosts of this one. */
function joinStatements(): string {
  const hosts = ['coordinator', 'worker-1', 'worker-2']
  return hosts.reduce((sql, host, at) => {
    const { hostname, port } = new URL(CLUSTER[at]!)
    const named = `'${host}.internal', 5432`
    expect(sql).toContain(named)
    return sql.replace(named, `'${hostname}', ${port}`)
  }, blockOf('sql'))
}

let database: Awaited<ReturnType<typeof createClusterDatabase>>
let folder: string
let bursar: BursarProcess | undefined
beforeAll(async () => {
  if (CLUSTER.length === 0) return
  database = await createClusterDatabase()
  folder = await mkdtemp(join(tmpdir(), 'bursar-scale-out-'))
})
afterAll(async () => {
  await bursar?.end('SIGTERM')
  await database?.drop()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
})

const start = async () =>
  (bursar = await spawnBursar({
    DATABASE_URL: database.url,
    BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
    BURSAR_DATA_DIR: folder,
    BURSAR_SIMULATED_CONFIRMATION_MS: '100',
  }))

/** Pays 25 USDP from the demo's profile, and waits until it is paid. */
async function pay(ref_id: string): Promise<void> {
  const demo = JSON.parse(await readFile(join(folder, 'sandbox-credentials.json'), 'utf8')) as {
    client_id: string
    client_secret: string
    profile_id: string
  }
  const client = createClient({
    baseUrl: bursar!.address,
    clientId: demo.client_id,
    clientSecret: demo.client_secret,
  })
  const made = await client.post('/v2/transfer/crypto-withdrawals', {
    body: {
      profile_id: demo.profile_id,
      asset: 'USDP',
      balance_asset: 'USD',
      crypto_network: 'ETHEREUM',
      amount: '25',
      destination_address: DESTINATION,
      ref_id,
    },
  })
  await expect
    .poll(() => client.get('/v2/transfer/transfers/{id}', { params: { path: { id: made.id } } }), {
      timeout: 60_000,
    })
    .toMatchObject({ status: 'COMPLETED' })
}

async function everyRecord() {
  const owner = openDatabase(database.ownerUrl, {
    max: 1,
    onError: () => undefined,
    applicationName: OWNER,
  })
  try {
    return await everyTable(owner)
  } finally {
    await owner.end()
  }
}

const command = (args: string[]) =>
  runBursar(args, { DATABASE_URL: database.url, BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl })

test.skipIf(CLUSTER.length === 0)(
  'one PostgreSQL becomes a cluster without losing a record',
  async () => {
    await start()
    await pay('before')
    await bursar!.end('SIGTERM')
    const before = await everyRecord()

    const superuser = new URL(CLUSTER[0]!)
    superuser.pathname = new URL(database.url).pathname
    await onNode(superuser.href, [joinStatements()])
    const distribute = blockOf('sh')
    expect(distribute).toMatch(
      /^DATABASE_URL=\.\.\. BURSAR_MIGRATIONS_DATABASE_URL=\.\.\. npx bursar migrate --distribute/,
    )
    const distributed = await command(distribute.split('npx bursar ')[1]!.split(' '))
    expect(distributed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Distributed /m) as string })

    const after = await everyRecord()
    const changed = Object.keys(before).filter((table) => before[table]!.join() !== after[table]!.join())
    expect(changed).toEqual([])
    expect(Object.keys(after)).toEqual(Object.keys(before))
    expect(await command(['verify'])).toMatchObject({ code: 0 })

    await start()
    await pay('after')
    await bursar!.end('SIGTERM')
    expect(await command(['verify'])).toMatchObject({ code: 0 })
    expect(await command(['audit', 'verify'])).toMatchObject({ code: 0 })
  },
  300_000,
)
