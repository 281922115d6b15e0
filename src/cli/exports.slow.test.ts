import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ownFolder } from '../../test/at-end.ts'
import { HOSTILE, makeBooks, randomOf } from '../../test/book-history.ts'
import { EVERY_STEP } from '../../test/every-step.ts'
import { SEED } from '../../test/seed.ts'
import { BASE_URL, newCustomer, newProfile, ownTestService, runBursar } from '../../test/support.ts'
import { ASSETS, decimalsOf } from '../contract/assets/catalogue.ts'
import { nameOfAccount } from '../money/books/plain-text.ts'

/** Programs by other people compute the books again: Debian's packages hledger and beancount. */
const has = (program: string) => spawnSync(program, ['--version']).status === 0
const [HAS_HLEDGER, HAS_BEANCOUNT] = [has('hledger'), has('bean-check')]

const service = await ownTestService({ BURSAR_MODE: 'sandbox' })
const folder = await ownFolder()
const customers = [await newCustomer(service), await newCustomer(service), await newCustomer(service)]
const holders = await Promise.all(
  customers.map(async (customer) => ({
    customer_id: customer.customer_id,
    profile_ids: [customer.profile_id, await newProfile(customer)],
  })),
)
await makeBooks(service.db, holders, EVERY_STEP ? 20_000 : 1_500, randomOf(SEED))

/** Times with history before, within and after them; `from` in the middle of a day. */
const TIMES = [
  { from: '1970-01-01', to: '2200-01-01' },
  { from: '2024-05-05T12:30:00.5Z', to: '2025-06-01' },
]
const CASES = TIMES.flatMap((time) => [
  { ...time, customer: undefined },
  { ...time, customer: customers[0]!.customer_id },
])

async function journalOf(program: string, { from, to, customer }: (typeof CASES)[number]) {
  const of = customer === undefined ? [] : ['--customer', customer]
  const { code, stdout, stderr } = await runBursar(['export', program, '--from', from, '--to', to, ...of], {
    ...{ DATABASE_URL: service.url, BURSAR_DATA_DIR: folder, BURSAR_BASE_URL: BASE_URL },
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const file = join(folder, `${program}.journal`)
  await writeFile(file, stdout)
  return { file, text: stdout }
}

/** What each account must have, computed by PostgreSQL alone: `Assets:Bank USD` and its decimals, all of them. */
async function balancesInSql({ from, to, customer }: (typeof CASES)[number]): Promise<Map<string, string>> {
  const { rows } = await service.db.query<{
    account: string
    profile_id: string | null
    asset: string
    before: string | null
    within: string | null
  }>(
    `select account, profile_id, asset, -sum(amount) filter (where created_at < $1) as before,
            -sum(amount) filter (where created_at >= $1) as within
     from entries where created_at < $2 and ($3::uuid is null or customer_id = $3) group by 1, 2, 3`,
    [from, to, customer],
  )
  const units = new Map<string, bigint>()
  const add = (name: string, asset: string, amount: string | null) => {
    if (amount === null) return
    const [whole, fraction = ''] = amount.split('.')
    const key = `${name} ${asset}`
    units.set(
      key,
      (units.get(key) ?? 0n) +
        BigInt(whole! + fraction.slice(0, decimalsOf(asset)).padEnd(decimalsOf(asset), '0')),
    )
  }
  for (const { asset, before, within, ...row } of rows) {
    const name = nameOfAccount(row.account, row.profile_id ?? undefined)
    add(/^(Income|Expenses)/.test(name) ? 'Equity:Retained-Earnings' : name, asset, before)
    add(name, asset, within)
  }
  return new Map(
    [...units].map(([key, minor]) => {
      const decimals = decimalsOf(key.split(' ')[1]!)
      const digits = String(minor < 0n ? -minor : minor).padStart(decimals + 1, '0')
      return [key, `${minor < 0n ? '-' : ''}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`]
    }),
  )
}

const run = (program: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 30 })
  return { status, stdout, stderr: stderr.slice(0, 2000) }
}
const PASSED = { status: 0, stderr: '' }

test('both programs take the names of all assets', () => {
  for (const { symbol, decimals } of ASSETS) {
    expect(symbol).toMatch(/^[A-Z]{2,24}$/)
    expect(decimals).toBeGreaterThan(0)
  }
})

describe.skipIf(!HAS_HLEDGER)(`hledger, a package of Debian (TEST_SEED=${SEED})`, () => {
  test.each(CASES)('computes the balances of SQL from $from to $to, customer $customer', async (asked) => {
    const { file } = await journalOf('hledger', asked)
    expect(run('hledger', '-f', file, 'check', '--strict')).toMatchObject(PASSED)
    const balances = run('hledger', '-f', file, 'bal', '--flat', '-N', '-O', 'csv', '--layout=bare')
    expect(balances).toMatchObject(PASSED)
    const found = [...balances.stdout.matchAll(/^"(.+)","(.+)","(.+)"$/gm)].slice(1)
    const expected = [...(await balancesInSql(asked))].filter(([, amount]) => /[1-9]/.test(amount))
    expect(expected.length).toBeGreaterThan(20)
    const computed = found.map(([, account, asset, amount]) => [`${account} ${asset}`, amount!])
    expect(new Map(computed as [string, string][])).toEqual(new Map(expected))
  })

  test('finds an entry that was changed', async () => {
    const { file, text } = await journalOf('hledger', CASES[0]!)
    const at = text.lastIndexOf(' = ')
    await writeFile(
      file,
      `${text.slice(0, at + 3)}${text.slice(at + 3).replace(/\d(?= )/, (digit) => String((Number(digit) + 1) % 10))}`,
    )
    expect(run('hledger', '-f', file, 'check').stderr).toContain('balance assertion')
  })
})

describe.skipIf(!HAS_BEANCOUNT)(`beancount, a package of Debian (TEST_SEED=${SEED})`, () => {
  test.each(CASES)('computes the balances of SQL from $from to $to, customer $customer', async (asked) => {
    const { file, text } = await journalOf('beancount', asked)
    const balances = [...(await balancesInSql(asked))].map(([key, amount]) => {
      const [account, asset] = key.split(' ')
      return `2201-01-01 balance ${account} ${amount} ~ 0 ${asset}`
    })
    expect(balances.length).toBeGreaterThan(20)
    await writeFile(file, `${text}\n${balances.join('\n')}\n`)
    expect(run('bean-check', file)).toEqual({ ...PASSED, stdout: '' })
    const [first] = balances
    const wrong = first!.replace(/\d(?= ~)/, (digit) => String((Number(digit) + 1) % 10))
    await writeFile(file, `${text}\n${wrong}\n`)
    expect(run('bean-check', file).stderr).toContain('Balance failed')
  })
})

test.each(['hledger', 'beancount'])('%s: has no text of a client', async (program) => {
  const { text } = await journalOf(program, CASES[0]!)
  expect(text).not.toMatch(/injected|include|passwd|calc|1999-/i)
  for (const refId of HOSTILE) expect(text).not.toContain(refId)
})
