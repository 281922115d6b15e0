/*
 * The parts of src that may name a table in SQL. Imports do not show this coupling: all parts that name a table change
 * with it. The test finds statements in the text of string and template literals.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PRIVILEGES } from '../src/db/privileges.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))
const TABLES = Object.keys(PRIVILEGES)

/** For each table: its owners, which are the parts of src that write it, and the parts that only read it. */
const ALLOWED: Record<string, { owners: string[]; readers: string[] }> = {
  account_members: { owners: ['accounts'], readers: ['demo', 'records'] },
  acknowledged_transactions: { owners: ['settlement'], readers: ['networks', 'verify'] },
  failed_transactions: { owners: ['settlement'], readers: [] },
  accounts: { owners: ['accounts'], readers: ['demo', 'records', 'verify'] },
  api_clients: { owners: ['api-credentials', 'oauth'], readers: ['commands', 'customers', 'demo', 'verify'] },
  audit_heads: { owners: ['ledger'], readers: ['deliveries', 'metrics', 'records', 'verify'] },
  audit_links: { owners: ['ledger'], readers: ['verify'] },
  audit_log: {
    owners: ['ledger'],
    readers: ['movements', 'oauth', 'operators', 'records', 'settlement', 'statements', 'verify'],
  },
  approval_decisions: { owners: ['settlement'], readers: ['records'] },
  approvals: { owners: ['records'], readers: ['approvals', 'metrics', 'movements', 'settlement', 'verify'] },
  approvers: { owners: ['records'], readers: [] },
  balances: { owners: ['ledger'], readers: ['metrics', 'profiles', 'statements', 'transfers', 'verify'] },
  bank_wires: { owners: ['records'], readers: ['verify'] },
  crypto_destination_addresses: {
    owners: ['destination-addresses'],
    readers: ['orchestrations', 'records', 'verify'],
  },
  credited_deposits: { owners: ['movements'], readers: [] },
  decided_orchestrations: { owners: ['orchestrations'], readers: ['verify'] },
  customer_fee_checks: { owners: ['settlement'], readers: [] },
  customer_freezes: {
    owners: ['records'],
    readers: [
      'commands',
      'customers',
      'ledger',
      'metrics',
      'oauth',
      'operators',
      'orchestrations',
      'settlement',
    ],
  },
  customer_limits: { owners: ['records'], readers: [] },
  customers: {
    owners: ['customers'],
    readers: [
      'commands',
      'console',
      'demo',
      'deployment',
      'oauth',
      'operators',
      'records',
      'settlement',
      'verify',
      'webhooks',
    ],
  },
  deployment: { owners: ['deployment'], readers: [] },
  deposit_addresses: { owners: ['records'], readers: ['deposit-addresses', 'networks', 'settlement'] },
  entries: {
    owners: ['ledger'],
    readers: ['movements', 'networks', 'profiles', 'records', 'settlement', 'statements', 'verify'],
  },
  event_history: { owners: [], readers: ['verify'] },
  events: {
    owners: ['ledger', 'webhooks'],
    readers: ['deliveries', 'demo', 'events', 'metrics', 'records', 'retention', 'verify'],
  },
  evm_holdings: { owners: ['networks', 'settlement'], readers: [] },
  evm_nonces: { owners: ['networks'], readers: [] },
  evm_sweeps: { owners: ['networks', 'settlement'], readers: ['metrics', 'verify'] },
  fee_quotes: { owners: ['records', 'transfers'], readers: [] },
  fiat_accounts: {
    owners: ['fiat-accounts', 'records'],
    readers: ['demo', 'movements', 'networks', 'settlement', 'verify'],
  },
  fiat_deposit_instructions: {
    owners: ['records'],
    readers: ['demo', 'deployment', 'fiat-deposit-instructions', 'sandbox', 'settlement'],
  },
  freezes: { owners: ['records'], readers: ['metrics', 'networks', 'settlement'] },
  identities: { owners: ['identities'], readers: ['accounts', 'demo', 'records', 'verify'] },
  incoming_transfers: { owners: ['settlement'], readers: ['metrics', 'networks', 'verify'] },
  institution_members: { owners: ['identities'], readers: ['demo'] },
  markets: { owners: ['markets'], readers: ['deployment', 'records'] },
  network_cursors: { owners: ['records', 'settlement'], readers: ['metrics', 'networks'] },
  network_fee_checks: { owners: ['settlement'], readers: [] },
  network_genesis: { owners: ['networks'], readers: ['commands'] },
  network_transactions: { owners: ['networks'], readers: ['settlement', 'verify'] },
  operator_challenges: { owners: ['operators'], readers: [] },
  operator_links: { owners: ['operators'], readers: [] },
  operator_passkeys: { owners: ['operators'], readers: [] },
  operator_sessions: { owners: ['operators'], readers: ['oauth', 'verify'] },
  operators: { owners: ['operators'], readers: ['oauth', 'records', 'verify'] },
  orchestration_rules: { owners: ['orchestrations'], readers: ['demo', 'deployment', 'records'] },
  orchestrations: {
    owners: ['orchestrations', 'records'],
    readers: ['commands', 'demo', 'metrics', 'verify'],
  },
  outgoing_transfers: {
    owners: ['settlement'],
    readers: ['commands', 'metrics', 'movements', 'networks', 'records', 'verify'],
  },
  policies: { owners: ['records'], readers: ['commands', 'ledger', 'verify'] },
  policy_windows: { owners: ['records'], readers: ['verify'] },
  price_imports: { owners: ['markets'], readers: [] },
  price_minutes: { owners: ['markets'], readers: ['records'] },
  price_points: { owners: ['markets'], readers: [] },
  profiles: {
    owners: ['customers', 'profiles', 'records'],
    readers: ['accounts', 'commands', 'demo', 'ledger', 'movements', 'settlement', 'statements', 'webhooks'],
  },
  replaced_transactions: { owners: ['settlement'], readers: ['networks', 'records', 'verify'] },
  reward_rates: { owners: ['statements'], readers: [] },
  schema_version: { owners: [], readers: ['db'] },
  resolved_withdrawals: { owners: ['settlement'], readers: [] },
  screening_requirement: { owners: ['screening'], readers: [] },
  screenings: { owners: ['screening'], readers: ['settlement'] },
  seen_deposits: { owners: ['movements', 'settlement'], readers: ['metrics', 'networks', 'verify'] },
  signing_keys: { owners: ['oauth'], readers: ['verify'] },
  simulated_chain: { owners: ['networks'], readers: ['deployment'] },
  statements: { owners: ['statements'], readers: ['demo', 'metrics', 'records', 'verify'] },
  transfers: {
    owners: ['ledger', 'movements', 'settlement'],
    readers: [
      'commands',
      'conversions',
      'deployment',
      'metrics',
      'networks',
      'records',
      'statements',
      'transfers',
      'verify',
    ],
  },
  wallet_checks: { owners: ['networks'], readers: [] },
  webhook_attempts: { owners: ['deliveries'], readers: ['records', 'retention', 'webhooks'] },
  webhook_deliveries: {
    owners: ['deliveries', 'records'],
    readers: ['events', 'metrics', 'retention', 'webhooks'],
  },
  webhooks: {
    owners: ['deliveries', 'records', 'webhooks'],
    readers: ['commands', 'demo', 'events', 'metrics'],
  },
  withdrawal_names: { owners: ['settlement'], readers: ['records'] },
}

interface Use {
  part: string
  table: string
  writes: boolean
}

const NAMES = `(?:only\\s+)?(${TABLES.join('|')})\\b`
const NAMED = new RegExp(`\\b(?:from|join|into|update|using|table)\\s+${NAMES}`, 'g')
/** A further table of a list. Outside a statement, a comma and a word are English text. */
const LISTED = new RegExp(`,\\s+${NAMES}`, 'g')
const WRITTEN = new RegExp(`\\b(?:insert\\s+into|update|delete\\s+from|merge\\s+into)\\s+${NAMES}`, 'g')
/** A comment, which does not count, or the text of a literal. Of nested templates the outer one is cut at the inner one. */
const LITERAL =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\[\s\S])*)`/g
const SQL = /\b(select|insert into|update|delete from|merge into|join)\b/

/** Returns the tables that the literals of a source text name in SQL. Parsing the files took 1 s of CPU. */
function usesOf(part: string, source: string): Use[] {
  const found: Use[] = []
  const add = (text: string) => {
    if (!SQL.test(text)) return
    const tablesBy = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, table]) => table!)
    const written = new Set(tablesBy(WRITTEN))
    const listed = /\bselect\b/.test(text) ? tablesBy(LISTED) : []
    for (const table of new Set([...tablesBy(NAMED), ...listed]))
      found.push({ part, table, writes: written.has(table) })
  }
  for (const [, single, double, template] of source.matchAll(LITERAL)) add(single ?? double ?? template ?? '')
  return found
}

/** Returns the parts that use each table, in the form of ALLOWED. */
function tableOf(uses: Use[]): typeof ALLOWED {
  const table: typeof ALLOWED = {}
  for (const name of TABLES) {
    const its = uses.filter((use) => use.table === name)
    const owners = [...new Set(its.filter(({ writes }) => writes).map(({ part }) => part))].sort()
    const readers = [...new Set(its.map(({ part }) => part))].filter((part) => !owners.includes(part)).sort()
    table[name] = { owners, readers }
  }
  return table
}

const uses = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .flatMap((file) => usesOf(file.split('/')[0]!.replace(/\.ts$/, ''), readFileSync(join(SRC, file), 'utf8')))

test.each(TABLES)('only the parts in ALLOWED name %s in SQL', (table) => {
  expect(tableOf(uses)[table]).toEqual(ALLOWED[table])
})

test('ALLOWED has every table and no others', () => {
  expect(Object.keys(ALLOWED).sort()).toEqual(TABLES.toSorted())
})

// Tests of the check itself: a statement that it misses would not be checked.
describe('the check finds', () => {
  test.each<[string, string[]]>([
    ["db.query('select id from transfers where id = $1')", ['reads transfers']],
    ['`update transfers set status = $1`', ['writes transfers']],
    ['`insert into entries (id) select id from transfers`', ['writes entries', 'reads transfers']],
    [
      '`with a as (delete from fee_quotes returning id) select * from a join profiles p on true`',
      ['writes fee_quotes', 'reads profiles'],
    ],
    ['`select * from ${other}, balances b`', ['reads balances']],
    ['`select * from entries for update of transfers`', ['reads entries']],
    ['const ITS = `join transfers t using (id)`', ['reads transfers']],
    ['// select * from transfers', []],
    ["'the transfers of a customer'", []],
  ])('%s', (source, found) => {
    const shown = usesOf('x', source).map(({ table, writes }) => `${writes ? 'writes' : 'reads'} ${table}`)
    expect(shown).toEqual(found)
  })
})
