/** A sandbox begins anew, and nothing but a stopped sandbox with invented money is ever deleted. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { openDatabase } from '../src/db/database.ts'
import { HAS_CHROMIUM, launchBrowser } from './browser.ts'
import { CLUSTER } from './cluster.ts'
import { cloneDatabase, everyTable, MASTER_KEY, runBursar, spawnBursar, ownBursar } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

async function emptySandbox() {
  const database = await cloneDatabase(2)
  const folder = await ownFolder()
  atEnd(() => database.drop())
  const environment: Record<string, string> = {
    DATABASE_URL: database.url,
    BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
    BURSAR_DATA_DIR: folder,
  }
  // The command refuses while sessions of Bursar are open, and the pools of a test database look like those.
  const db = openDatabase(database.ownerUrl, { max: 1, onError: () => undefined, applicationName: 'test' })
  atEnd(() => db.end())
  const name = new URL(database.url).pathname.slice(1)
  const reset = (more: Record<string, string> = {}, ...args: string[]) =>
    runBursar(['sandbox', 'reset', ...args], { ...environment, ...more })
  return { db, folder, environment, name, reset }
}

test.skipIf(CLUSTER.length > 0)('a stopped sandbox is deleted and begins with another demo', async () => {
  const { db, folder, environment, name, reset } = await emptySandbox()
  const file = credentialsFile(folder)
  const demo = async () => JSON.parse(await readFile(file, 'utf8')) as SandboxCredentials
  const first = await spawnBursar(environment)
  const before = await demo()
  const whileRunning = await reset({}, '--confirm', name)
  expect(whileRunning).toMatchObject({ code: 1 })
  expect(whileRunning.stderr).toMatch(
    /sessions of other processes of Bursar use the database: stop them first/,
  )
  await first.end('SIGTERM')

  await db.query('create table of_another_program (id int)')
  const records = await everyTable(db)
  for (const args of [[], ['--confirm', 'another']]) {
    const { code, stdout } = await reset({}, ...args)
    expect(code).toBe(2)
    expect(stdout).toMatch(/Nothing was deleted\. 1 customers and \d+ transfers would be/)
    expect(stdout).toContain(`--confirm ${name}`)
  }
  expect(await everyTable(db)).toEqual(records)

  const done = await reset({}, '--confirm', name, '--json')
  expect(JSON.parse(done.stdout)).toMatchObject({ reset: true, database: name, customers: 1 })
  const { rows } = await db.query('select * from customers')
  expect(rows).toEqual([])
  expect((await db.query('select * from of_another_program')).rowCount).toBe(0)

  const second = await ownBursar(environment)
  const after = await demo()
  expect(after.customer_id).not.toBe(before.customer_id)
  // A suite goes on with the credentials that it has.
  const token = await fetch(`${second.address}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: before.client_id,
      client_secret: before.client_secret,
    }),
  })
  expect(token.status).toBe(200)
})

test.skipIf(CLUSTER.length > 0)('Reset Sandbox begins anew, and the credentials stay', async () => {
  const { db, folder, environment } = await emptySandbox()
  const service = await ownBursar(environment)
  const demo = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as SandboxCredentials
  const { client_id, client_secret } = demo
  const takeToken = async () => {
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const answer = await fetch(`${service.address}/oauth2/token`, { method: 'POST', body })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const ask = async (token: string, path: string, method = 'GET') =>
    fetch(`${service.address}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
  const token = await takeToken()
  const other = openDatabase(new URL(environment.DATABASE_URL!).href, { max: 1, onError: () => undefined })
  await other.query('select')
  const inUse = await ask(token, '/v2/sandbox/reset', 'POST')
  expect({ status: inUse.status, ...((await inUse.json()) as object) }).toMatchObject({
    status: 409,
    detail: '1 sessions of other processes of Bursar use the database: stop them first',
  })
  await other.end()
  await expect.poll(async () => (await ask(token, '/v2/sandbox/reset', 'POST')).status).toBe(200)
  // From the answer on, readiness fails until the new demo is there.
  await expect
    .poll(
      () =>
        fetch(`${service.address}/health/ready`).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 60_000 },
    )
    .toBe(200)
  expect((await ask(token, '/v2/profiles')).status).toBe(401)
  const profiles = await ask(await takeToken(), '/v2/profiles')
  const { items } = (await profiles.json()) as { items: { id: string }[] }
  expect(items.length).toBeGreaterThan(0)
  expect(items.map(({ id }) => id)).not.toContain(demo.profile_id)
  const { rows } = await db.query('select 1 from customers where id = $1', [demo.customer_id])
  expect(rows).toEqual([])
  await db.query(
    `insert into network_genesis (network, block_hash, recorded_at) values ('ETHEREUM', 'x', now())`,
  )
  const refused = await ask(await takeToken(), '/v2/sandbox/reset', 'POST')
  expect(refused.status).toBe(403)
  expect(((await refused.json()) as { detail: string }).detail).toMatch(/has used a test network/)
})

test.skipIf(CLUSTER.length === 0)('a sandbox on a cluster is never deleted', async () => {
  const { db, name, reset } = await emptySandbox()
  await db.query(`insert into deployment (id, mode, stamped_at) values (1, 'sandbox', now())`)
  const records = await everyTable(db)
  expect(await reset({}, '--confirm', name)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/a distributed database is not reset: make another one/) as string,
  })
  expect(await everyTable(db)).toEqual(records)
})

test('live mode, a live database and a sandbox of a test network are never deleted', async () => {
  const { db, name, reset } = await emptySandbox()
  const confirm = ['--confirm', name]
  const live = { BURSAR_MODE: 'live', BURSAR_MASTER_KEY: MASTER_KEY }
  await db.query(`insert into deployment (id, mode, stamped_at) values (1, 'sandbox', now())
    on conflict (id) do update set mode = 'sandbox', issuer = null`)
  const records = await everyTable(db)
  expect(await reset(live, ...confirm)).toMatchObject({ code: 1 })
  const network = await reset({ BURSAR_NETWORKS_FILE: '/nowhere.json' }, ...confirm)
  expect(network.stderr).toMatch(/this sandbox has used a test network/)
  await db.query(`update deployment set mode = 'live'`)
  const asSandbox = await reset({}, ...confirm)
  expect(asSandbox.code).toBe(1)
  expect(asSandbox.stderr).toMatch(/this database is live/)
  await db.query(`update deployment set mode = 'sandbox'`)
  expect(await everyTable(db)).toEqual(records)
})

test.skipIf(!HAS_CHROMIUM || CLUSTER.length > 0)(
  'the button of the console begins anew, while the service keeps its address',
  async () => {
    const { db, folder, environment } = await emptySandbox()
    const file = credentialsFile(folder)
    const demo = async () => JSON.parse(await readFile(file, 'utf8')) as SandboxCredentials
    const service = await ownBursar(environment)
    const before = await demo()
    const forged = await fetch(`${service.address}/console/sandbox/reset`, {
      method: 'POST',
      headers: { 'x-bursar-console': 'page', origin: service.address },
    })
    expect(forged.status).toBe(401)
    const context = await launchBrowser(folder)
    atEnd(() => context.close())
    const page = await context.newPage()
    await page.goto(service.console)
    const open = () =>
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Sandbox' }).click()
    await open()
    await page.getByRole('button', { name: 'A wire of 100 USD' }).click()
    await page.getByRole('status').getByText('Made').waitFor()
    await page.getByRole('button', { name: 'Reset the sandbox' }).click()
    await page.getByRole('button', { name: 'No' }).click()
    await page.getByRole('button', { name: 'Reset the sandbox' }).click()
    const loaded = page.waitForEvent('load', { timeout: 0 })
    await page.getByRole('button', { name: 'Yes' }).click()
    await loaded
    // It has signed in to the new demo.
    await open()
    await page.getByRole('button', { name: 'Reset the sandbox' }).waitFor()
    const after = await demo()
    expect(after.customer_id).not.toBe(before.customer_id)
    const { rows } = await db.query<{ id: string }>('select id from customers')
    expect(rows.map(({ id }) => id)).toContain(after.customer_id)
    expect(rows.map(({ id }) => id)).not.toContain(before.customer_id)
  },
)
