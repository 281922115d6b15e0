/*
 * Invariant of the demo, wherever starts of the sandbox are interrupted and however many there are: after a complete
 * start every record exists once, and a further start changes nothing.
 */
import { beforeEach, expect, test } from 'vitest'
import { CLUSTER } from '../../../test/cluster.ts'
import { EVERY_STEP } from '../../../test/every-step.ts'
import { FAILURES, Failures, type Failure } from '../../../test/failures.ts'
import { SEED } from '../../../test/seed.ts'
import { ROW_MACS, emptier, everyTable, WEBHOOK_SECRETS, ownDatabase } from '../../../test/support.ts'
import type { Database } from '../../db/database.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { simulatedNetworks } from '../../networks/simulated/adapter.ts'
import { makeDemo } from './make-demo.ts'
import { ownFolder } from '../../../test/at-end.ts'

const database = await ownDatabase()
const empty = await emptier(database)
const folder = await ownFolder()
beforeEach(() => empty())

const start = (db: Database = database.db) =>
  makeDemo(
    {
      db,
      ledger: new Ledger(db),
      networks: simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 }),
      rowMacs: ROW_MACS,
      webhookSecrets: WEBHOOK_SECRETS,
    },
    { dataDir: folder, baseUrl: 'http://127.0.0.1:8080' },
  )

const rowsOf = async <T extends object>(text: string) => (await database.db.query<T>(text)).rows

async function expectComplete() {
  expect(await rowsOf('select name from customers')).toEqual([{ name: 'Demo' }])
  expect(
    await rowsOf(`select ref_id, total::text from transfers where type = 'WIRE_DEPOSIT' order by ref_id`),
  ).toEqual([
    { ref_id: 'demo-rule-wire', total: '100' },
    { ref_id: 'demo-wire', total: '10000' },
  ])
  // Strict clients require each member of a wire.
  const text = expect.any(String) as string
  const address = { country: text, address1: text, city: text, province: text, zip_code: text }
  expect(await rowsOf(`select fiat_network_instructions->'wire' as wire from fiat_accounts`)).toEqual([
    {
      wire: {
        account_number: text,
        fiat_account_owner_address: address,
        routing_details: {
          routing_number_type: 'ABA',
          routing_number: text,
          bank_name: text,
          bank_address: address,
        },
      },
    },
  ])
  expect(await rowsOf('select source_amount::text from orchestrations')).toEqual([{ source_amount: '100' }])
  const statements = await rowsOf<{ month: string; status: string; ago: number }>(
    `select replace(status, 'STATEMENT_STATUS_', '') as status,
            extract(month from age(date_trunc('month', now()), period_start))::integer as ago
     from statements order by period_start`,
  )
  expect(statements).toEqual([
    { status: 'PAID', ago: 3 },
    { status: 'PAID', ago: 2 },
    { status: 'GENERATED', ago: 1 },
  ])
  expect(await rowsOf(`select from transfers where type = 'PAXOS_TRANSFER_CREDIT'`)).toHaveLength(2)
}

/** A start that dies at this step and executes nothing after it. */
function startDyingAt(step: number, failure: Failure) {
  const failures = new Failures((at) => (at === step ? failure : at > step ? 'BEFORE' : undefined))
  return start(failures.database(database.db))
}

/** How far apart the steps are at which a start dies. Which steps they are is drawn. */
const STRIDE = EVERY_STEP ? 3 : 9
const DRAWN = Math.abs(SEED) % STRIDE

test.each(FAILURES)(
  `a start that dies %s a step after the commit of the customer is completed by the next start (TEST_SEED=${SEED})`,
  async (failure) => {
    const steps = new Failures(() => undefined)
    await start(steps.database(database.db))
    await expectComplete()

    // From the last step backwards, until no customer exists: that start died before the commit of the customer.
    let died = 0
    for (let step = steps.steps - 1 - DRAWN; step >= 0; step -= STRIDE) {
      await empty()
      await expect(startDyingAt(step, failure)).rejects.toThrow()
      if ((await rowsOf('select from customers')).length === 0) break
      died += 1
      expect(await start()).toBeUndefined()
      await expectComplete()
    }
    expect(died).toBeGreaterThanOrEqual(Math.floor(27 / STRIDE))
  },
)
test('a further start reads a complete demo and changes nothing', async () => {
  await start()
  const before = await everyTable(database.db)
  const steps = new Failures(() => undefined)
  expect(await start(steps.database(database.db))).toBeUndefined()
  // The transaction that finds a customer takes four steps, and the queries for the customer and missing records two. On a
  // cluster the transaction looks for newer places of shards when it begins and when it ends.
  expect(steps.steps).toBe(CLUSTER.length === 0 ? 6 : 8)
  expect(await everyTable(database.db)).toEqual(before)
})

test('simultaneous starts complete an unfinished demo once', async () => {
  const steps = new Failures(() => undefined)
  await start(steps.database(database.db))
  await empty()
  // Writing the demo's statements alone takes more than these 30 steps.
  await expect(startDyingAt(steps.steps - 30, 'BEFORE')).rejects.toThrow()
  expect(await rowsOf('select from customers')).toHaveLength(1)
  await Promise.all(Array.from({ length: 6 }, () => start()))
  await expectComplete()
})
