/*
 * A worker that kills itself at one of its steps. It is a separate program, bundled by test/real-networks.ts.
 *
 * A step is a statement to the database or a request to a node. Between the reply to one step and the next step, only the
 * memory of this process changes, and a step that only reads changes nothing at all. The places to die are therefore: before
 * the first step, after the reply to each step that may have written, and before each step that starts while a writing step
 * is under way. With TEST_EVERY_STEP=1, the worker also dies after steps that only read.
 *
 * The worker prints READY. It then reads from standard input the number of a place, or a part of the text of the step to die
 * at, and works. If the worker reaches the end, it prints how many places there were.
 */
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { once } from 'node:events'
import pg from 'pg'
import { openDatabase } from '../src/db/database.ts'
import { masterKeysOf } from '../src/keys/master-keys.ts'
import { RowMacs, sealRowsWith } from '../src/audit/sealed-rows.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { configuredNetworks } from '../src/networks/open-networks.ts'
import { readSettings } from '../src/settings.ts'
import { EVERY_STEP } from './every-step.ts'
import { hurry, mine, workOff, type Mining } from './work-off.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'

let places = 0
let diesAt = Infinity
let diesIn = ''
let writing = 0
let counts = false

const READ =
  /^\s*(begin|select)\b|^((eth_(?!send)\w+|get(?!new)\w+|list\w+|estimate\w+|signrawtransaction\w+|testmempoolaccept|validateaddress) ?)+$/
const mayWrite = (step: string) => EVERY_STEP || !READ.test(step)

function place(what: string, step: string): void {
  if (!counts) return
  const shown = step.trim().replaceAll(/\s+/g, ' ').slice(0, 100)
  if (places++ !== diesAt && !(diesIn !== '' && shown.includes(diesIn))) return
  // Written directly: a stream would lose its buffer.
  writeSync(1, `DIES ${what} ${shown}\n`)
  process.kill(process.pid, 'SIGKILL')
}

function sent(step: string): void {
  if (writing > 0 || places === 0) place('before', step)
  if (mayWrite(step)) writing += 1
}

function replied(step: string): void {
  if (!mayWrite(step)) return
  writing -= 1
  place('after', step)
}

async function counted<T>(step: string, work: () => Promise<T>): Promise<T> {
  sent(step)
  return work().finally(() => replied(step))
}

type Query = (...args: unknown[]) => unknown
// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const query = pg.Client.prototype.query as Query
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [statement] = args as [string | { text: string }]
  const step = typeof statement === 'string' ? statement : statement.text
  const callback = args.at(-1)
  if (typeof callback !== 'function') return counted(step, () => query.apply(this, args) as Promise<unknown>)
  sent(step)
  return query.apply(this, [
    ...args.slice(0, -1),
    (...reply: unknown[]) => {
      replied(step)
      ;(callback as Query)(...reply)
    },
  ])
} as typeof pg.Client.prototype.query

const request = globalThis.fetch
globalThis.fetch = (...args) => {
  const { body } = args[1]!
  const methods = [...(body as string).matchAll(/"method":"(\w+)"/g)].map(([, method]) => method)
  return counted(methods.join(' '), () => request(...args))
}

async function uncounted(work: () => Promise<unknown>): Promise<void> {
  counts = false
  await work()
  counts = true
}

const { DATABASE_URL, BURSAR_NETWORKS_FILE, BURSAR_MASTER_KEY, MINING, ...environment } = process.env
const mining = JSON.parse(MINING!) as Mining
const db = openDatabase(DATABASE_URL!, { max: 4, onError: () => undefined })
const configured = await configuredNetworks(BURSAR_NETWORKS_FILE!, environment, db, 'sandbox', {
  signs: true,
  withdrawals: withdrawalReader,
})
const networks = new Map([...configured].map(([network, { adapter }]) => [network, adapter] as const))
await db.query('select')

const lines = createInterface(process.stdin)
console.log('READY')
const [line] = (await once(lines, 'line')) as [string]
if (/^[0-9]+$/.test(line)) diesAt = Number(line)
else diesIn = line
counts = true
const masterKeys = masterKeysOf([BURSAR_MASTER_KEY!], 'BURSAR_MASTER_KEY')
sealRowsWith(() => Promise.resolve(masterKeys))
const macs = new RowMacs(masterKeys)
await workOff({ db, ledger: new Ledger(db, { macs }), networks, settings: readSettings({}) }, () =>
  uncounted(async () => {
    await mine(mining)
    await hurry(db)
  }),
)
counts = false
console.log(`ENDED ${places}`)
process.exit(0)
