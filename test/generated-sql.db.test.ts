/*
 * Snapshots of the statements that the program composes from parts, so that a reader can run and explain them. test/sql
 * has one file for each request or function, with its statements in order. `--update` writes the files. Each statement
 * has run against the schema first.
 */
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, test } from 'vitest'
import { transaction } from '../src/db/database.ts'
import { lockMarket, writePrices } from '../src/money/records/write-prices.ts'
import { CLUSTER } from './cluster.ts'
import { fund, newCustomer, ownTestService } from './support.ts'

const service = await ownTestService()
const customer = await newCustomer(service)

const ID = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
const BETWEEN = 'created_at.gte=2026-01-01T00:00:00Z&created_at.lt=2026-02-01T00:00:00Z'
const UPDATED = BETWEEN.replaceAll('created_at', 'updated_at')
const HOUR = 60

const get = (path: string) => async () => expect((await customer.call('GET', path)).status).toBe(200)
const orchestrations = (query: string) => get(`/v2/orchestration/orchestrations?${query}`)
const prices = (query: string) => get(`/v2/markets/BTCUSD/historical-prices?${query}`)

/** The snapshot's name, the tables that its statements must name, and the function that runs these. */
const RUNS: [file: string, tables: RegExp, run: () => Promise<unknown>][] = [
  [
    'post',
    /insert into entries/,
    async () => {
      // The first posting makes the balance.
      await fund(customer, '100')
      await fund(customer, '100')
    },
  ],
  [
    'write-prices',
    /price_points/,
    () =>
      transaction(service.db, async (tx) => {
        const id = await lockMarket(tx, 'BTCUSD', 'REAL')
        const minute = Array.from({ length: 2 * HOUR }, (_, index) => 28_000_000 + index)
        const second = minute.map(() => 0)
        await writePrices(tx, id!, { coversMinutes: 1, minute, second, prices: [minute.map(() => '1.5')] })
      }),
  ],
  ['list-historical-prices-of-minutes', /price_minutes/, prices('increment=ONE_MINUTE')],
  ['list-historical-prices-of-hours', /price_points/, prices('increment=ONE_HOUR')],
  ['list-historical-prices-page', /price_points/, prices('increment=ONE_HOUR&pagination.offset=1001')],
  ['list-historical-prices-finest', /price_points/, prices('max_data_points=5')],
  [
    'list-historical-candles',
    /price_(minutes|points)/,
    async () => {
      for (const query of ['increment=ONE_MINUTE', 'increment=ONE_HOUR&order=ASC'])
        await get(`/v2/markets/BTCUSD/historical-candles?${query}`)()
    },
  ],
  ['list-profiles', /from profiles/, get(`/v2/profiles?ids=${ID}&nickname=Default&${BETWEEN}`)],
  [
    'list-identities',
    /from identities/,
    get(
      `/v2/identity/identities?ids=${ID}&ref_ids=a&summary_statuses=APPROVED&identity_type=PERSON&${BETWEEN}&${UPDATED}&order=ASC`,
    ),
  ],
  [
    'list-identities-with-all',
    /from identities/,
    get('/v2/identity/identities?include_details=true&include_institution_members=true'),
  ],
  [
    'list-accounts',
    /from accounts/,
    get(`/v2/identity/accounts?ids=${ID}&identity_ids=${ID}&ref_ids=a&${UPDATED}`),
  ],
  [
    'list-orchestration-rules',
    /from orchestration_rules/,
    get(`/v2/orchestration/rules?ids=${ID}&profile_ids=${ID}&ref_ids=a&statuses=ACTIVE&source_asset=USD`),
  ],
  [
    'list-deposit-addresses',
    /from deposit_addresses/,
    get(
      `/v2/transfer/deposit-addresses?ids=${ID}&addresses=a&crypto_networks=ETHEREUM&identity_ids=${ID}&account_ids=${ID}`,
    ),
  ],
  [
    'list-fiat-accounts',
    /from fiat_accounts/,
    get(`/v2/transfer/fiat-accounts?ids=${ID}&ref_ids=a&statuses=APPROVED&include_deleted=true`),
  ],
  [
    'list-fiat-deposit-instructions',
    /from fiat_deposit_instructions/,
    get(`/v2/transfer/fiat-deposit-instructions?ids=${ID}&profile_ids=${ID}&ref_ids=a&networks=WIRE`),
  ],
  [
    'list-transfers',
    /from transfers/,
    get(
      `/v2/transfer/transfers?metadata.order=1041&metadata.source=web&memo=INV-1&page_cursor=&${BETWEEN}&${UPDATED}&order_by=UPDATED_AT`,
    ),
  ],
  ['list-orchestrations', /from orchestrations/, orchestrations('')],
  ['list-orchestrations-by-id', /from orchestrations/, orchestrations(`orchestration_id=${ID}`)],
  ['list-orchestrations-by-ref-id', /from orchestrations/, orchestrations(`ref_id=orchestration_id.${ID}`)],
  ['list-orchestrations-by-rule', /from orchestrations/, orchestrations(`orchestration_rule_id=${ID}`)],
  ['list-orchestrations-by-profile', /from orchestrations/, orchestrations(`profile_id=${ID}&status=FAILED`)],
  ['list-orchestrations-by-kind', /from orchestrations/, orchestrations('source_asset=USD&order=ASC')],
]

// A cluster gets the statements of a posting one by one (src/db/together.ts).
const SENT = RUNS.filter(([file]) => CLUSTER.length === 0 || file !== 'post')

test.each(SENT)('test/sql/%s.sql is what runs', async (file, tables, run) => {
  const statements = (await statementsOf(run)).filter((text) => tables.test(text))
  expect(statements.length).toBeGreaterThan(0)
  const text = statements.map((statement) => `${dedented(statement)};\n`).join('\n')
  const path = fileURLToPath(new URL(`sql/${file}.sql`, import.meta.url))
  await expect(`${HEADER}\n${text}`, `if this is meant: npm run sql`).toMatchFileSnapshot(path)
})

const HEADER = '-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.\n'

type Query = (this: pg.Client, ...args: unknown[]) => unknown

/** Returns the texts of the statements that are sent while `run` runs, each once. */
async function statementsOf(run: () => Promise<unknown>): Promise<string[]> {
  const texts = new Set<string>()
  // oxlint-disable-next-line typescript/unbound-method -- called with its own client
  const query = pg.Client.prototype.query as Query
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [statement] = args as [string | { text: string }]
    texts.add(typeof statement === 'string' ? statement : statement.text)
    return query.apply(this, args)
  } as typeof pg.Client.prototype.query
  try {
    await run()
  } finally {
    pg.Client.prototype.query = query as typeof pg.Client.prototype.query
  }
  return [...texts]
}

/** Returns a statement without its indentation in the source and without blank lines. */
function dedented(statement: string): string {
  const lines = statement.split('\n').filter((line) => line.trim() !== '')
  const margin = Math.min(
    ...lines.slice(1).map((line) => line.search(/\S/)),
    lines[0]!.search(/\S/) || Infinity,
  )
  return lines.map((line, index) => (index === 0 ? line.trim() : line.slice(margin).trimEnd())).join('\n')
}
