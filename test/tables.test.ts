/*
 * The rooms of src that may name a table in SQL. Imports do not show this coupling: all rooms that name a table change
 * with it. The test finds statements in the text of string and template literals.
 */
import { describe, expect, test } from 'vitest'
import { PRIVILEGES } from '../src/db/tables.ts'
import { floorOf, MAY_IMPORT } from './floors.ts'
import { roomOf, sources } from './sources.ts'

const TABLES = Object.keys(PRIVILEGES)

/** For each table: the rooms that own it, which are those that write it, and after the bar those that read across. */
const ALLOWED: Record<string, string> = {
  account_members: 'money/records, resources/accounts | program/demo',
  accounts: 'money/records, resources/accounts | money/verify, program/demo, rails/wires, resources/search',
  acknowledged_transactions: 'networks | chains/evm, chains/kit, money/verify, rails/treasury',
  api_clients:
    'access/tokens, resources/api-credentials | access/audit-log, access/customers, cli, money/verify, program/demo, resources/search',
  approval_decisions: 'governance/approvals',
  approvals:
    'governance/approvals, money/records | money/movements, money/verify, rails/payouts, resources/approvals, resources/operators, resources/search, resources/transfers, upkeep/metrics',
  approvers: 'governance/approvals',
  address_series: 'chains/solana',
  asked_addresses: 'chains/solana',
  audit_heads: 'audit | deliveries, money/records, money/verify, upkeep/metrics',
  audit_links: 'audit | money/verify',
  audit_log:
    'audit | access/audit-log, access/operators, access/tokens, governance/approvals, governance/policy, money/movements, money/records, money/verify, resources/statements',
  balances:
    'money/ledger | money/books, money/verify, resources/profiles, resources/statements, resources/transfers, upkeep/metrics',
  bank_lines: 'rails/bank-statements',
  bank_matches: 'rails/bank-statements',
  bank_statements: 'rails/bank-statements',
  bank_wires:
    'money/records | money/ledger, money/verify, rails/bank-statements, resources/reports, resources/search',
  closed_days: 'money/books | money/ledger, money/verify, resources/reports',
  credited_deposits: 'money/movements',
  crypto_destination_addresses:
    'money/records, resources/destination-addresses | money/verify, resources/orchestrations, resources/search',
  customer_fee_checks: 'rails/treasury',
  customer_freezes:
    'money/records | access/customers, access/tokens, rails/payouts, resources/orchestrations, upkeep/metrics',
  customers:
    'money/records | access/console, access/customers, access/operators, access/tokens, cli, money/verify, program, program/demo, rails/payouts, rails/wires, resources/webhooks',
  day_sums: 'money/books | money/verify',
  decided_orchestrations: 'resources/orchestrations | money/verify',
  deployment: 'program | upkeep/metrics',
  deposit_addresses:
    'networks | chains/evm, chains/kit, chains/solana, money/records, rails/deposits, rails/treasury, rails/wallets, resources/deposit-addresses, resources/search',
  entries:
    'money/ledger | access/audit-log, money/books, money/movements, money/verify, rails/bank-statements, rails/payouts, rails/treasury, rails/wallets, resources/profiles, resources/reports, resources/statements, resources/transfers',
  event_history: ' | money/verify',
  events:
    'money/ledger, resources/webhooks | deliveries, money/records, money/verify, program/demo, resources/events, resources/search, resources/transfers, upkeep/metrics, upkeep/retention',
  address_holdings: 'chains/evm, chains/kit, chains/solana, rails/deposits',
  evm_nonces: 'chains/evm',
  sweeps:
    'chains/evm, chains/kit, rails/treasury | chains/solana, money/verify, rails/deposits, rails/wallets, upkeep/metrics',
  failed_transactions: 'rails/payouts',
  fee_quotes: 'money/records, resources/transfers',
  fiat_accounts:
    'money/records, resources/fiat-accounts | money/movements, money/verify, program/demo, rails/payouts, rails/screening, rails/wires, resources/search',
  fiat_deposit_instructions:
    'money/records | program, program/demo, rails/wires, resources/fiat-deposit-instructions, resources/sandbox, resources/search',
  freezes: 'money/records | rails/wallets, upkeep/metrics',
  identities:
    'money/records, resources/identities | money/verify, program/demo, rails/wires, resources/accounts, resources/search',
  incoming_transfers: 'rails/deposits | money/verify, rails/screening, rails/wallets, upkeep/metrics',
  institution_members: 'money/records, resources/identities | program/demo',
  markets: 'money/records | program, resources/markets',
  network_cursors: 'networks | rails/treasury, upkeep/metrics',
  network_fee_checks: 'rails/treasury',
  network_genesis: 'networks | cli',
  network_transactions: 'networks | chains/bitcoin, chains/kit, chains/solana, money/verify, rails/payouts',
  // Processes of the version before still write it.
  operator_challenges: '',
  operator_links: 'access/operators | money/verify',
  operator_passkeys: 'access/operators | money/verify',
  operator_sessions: 'access/operators | access/tokens, money/verify',
  operators: 'access/operators | access/audit-log, access/tokens, money/verify',
  orchestration_rules: 'money/records, resources/orchestrations | program, program/demo, resources/search',
  orchestrations:
    'money/records, resources/orchestrations | access/audit-log, money/verify, program/demo, rails/payouts, resources/search, resources/transfers, upkeep/metrics',
  outgoing_transfers:
    'networks | chains/bitcoin, chains/evm, money/movements, money/records, money/verify, networks/simulated, rails/payouts, rails/treasury, rails/wallets, rails/wires, resources/search, resources/transfers, upkeep/metrics',
  policies: 'money/records | cli, governance/policy, money/verify',
  policy_windows: 'governance/policy | money/verify',
  price_imports: 'resources/markets',
  price_minutes: 'money/records | resources/markets',
  price_points: 'money/records | resources/markets',
  profiles:
    'money/records, resources/profiles | access/customers, cli, money/movements, program/demo, rails/deposits, rails/wires, resources/search, resources/statements, resources/webhooks',
  replaced_transactions:
    'networks | chains/bitcoin, chains/evm, money/records, money/verify, rails/payouts, resources/search, resources/transfers',
  refills: 'rails/treasury | rails/wallets, upkeep/metrics',
  resolved_withdrawals: 'rails/payouts | rails/wires',
  reward_rates: 'resources/statements',
  schema_version: ' | db',
  screening_requirement: 'rails/screening',
  screenings: 'rails/screening',
  seen_deposits:
    'money/movements, rails/deposits, rails/wires | money/ledger, money/verify, rails/wallets, resources/search, upkeep/metrics',
  signing_keys: 'access/tokens | money/verify',
  simulated_chain: 'networks/simulated | program, rails/deposits',
  solana_lanes: 'chains/solana',
  statements: 'resources/statements | money/verify, program/demo, resources/search, upkeep/metrics',
  traces: 'money/records',
  transfer_metadata: 'money/ledger | resources/transfers',
  transfers:
    'money/ledger, money/movements, rails/deposits, rails/payouts, rails/treasury | cli, governance/policy, money/books, money/records, money/verify, program, rails/screening, rails/wallets, rails/wires, resources/conversions, resources/operators, resources/reports, resources/search, resources/statements, resources/transfers, upkeep/metrics',
  wallet_checks: 'chains/bitcoin, chains/kit, chains/stellar',
  webhook_attempts: 'deliveries | resources/transfers, resources/webhooks, upkeep/retention',
  webhook_deliveries:
    'deliveries, money/records | resources/events, resources/webhooks, upkeep/metrics, upkeep/retention',
  webhooks:
    'deliveries, money/records, resources/webhooks | program/demo, resources/events, resources/search, resources/transfers, upkeep/metrics',
  withdrawal_marks: 'rails/payouts | rails/wires',
  withdrawal_names: 'rails/payouts | resources/search',
}

/** Rooms that read the records of every floor, to compare or to count them. They decide nothing. */
const READ_ACROSS = ['money/verify', 'upkeep/metrics']

interface Use {
  /** The folder of the file, at most two deep: `money/ledger`. */
  room: string
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
function usesOf(room: string, source: string): Use[] {
  const found: Use[] = []
  const add = (text: string) => {
    if (!SQL.test(text)) return
    const tablesBy = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, table]) => table!)
    const written = new Set(tablesBy(WRITTEN))
    const listed = /\bselect\b/.test(text) ? tablesBy(LISTED) : []
    for (const table of new Set([...tablesBy(NAMED), ...listed]))
      found.push({ room, table, writes: written.has(table) })
  }
  for (const [, single, double, template] of source.matchAll(LITERAL)) add(single ?? double ?? template ?? '')
  return found
}

/** Returns the rooms that write a table and those that only read it, in the form of ALLOWED. */
function roomsOf(table: string): string {
  const its = uses.filter((use) => use.table === table)
  const sorted = (rooms: string[]) => [...new Set(rooms)].sort()
  const owners = sorted(its.filter(({ writes }) => writes).map(({ room }) => room))
  const across = sorted(its.map(({ room }) => room)).filter((room) => !owners.includes(room))
  return `${owners.join(', ')}${across.length === 0 ? '' : ` | ${across.join(', ')}`}`
}

const uses = sources.flatMap(({ file, text }) => usesOf(roomOf(file), text))

test.each(TABLES)('only the rooms in ALLOWED name %s in SQL', (table) => {
  expect(roomsOf(table)).toEqual(ALLOWED[table])
})

/** SQL follows the imports: a room names a table that it owns, or that a room of its floor or of one below owns. */
test('a table is named on the floors of its owners or above', () => {
  const isBelow = (room: string, owner: string) =>
    floorOf(room) !== floorOf(owner) && !MAY_IMPORT[floorOf(room)]!.includes(floorOf(owner))
  const below = TABLES.flatMap((table) => {
    const its = uses.filter((use) => use.table === table && !READ_ACROSS.includes(use.room))
    const owners = its.filter(({ writes }) => writes)
    return its
      .filter(({ room }) => owners.length > 0 && owners.every((owner) => isBelow(room, owner.room)))
      .map(({ room }) => `${room} names ${table}`)
  })
  expect(below).toEqual([])
})

test('ALLOWED has every table and no others', () => {
  expect(Object.keys(ALLOWED).sort()).toEqual(TABLES.toSorted())
})

/** Otherwise the database's locale decides: in a Turkish one, lower('ID') is not 'id', and in C, lower('É') is 'É'. */
test('each change of case in SQL names its collation', () => {
  const unnamed = sources.flatMap(({ file, text }) =>
    [
      ...text.matchAll(
        /(?<![.\w])(?:lower|upper|initcap)\((?<text>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|(?<insensitive>\silike\s|\s!?~~?\*\s)/g,
      ),
    ]
      .filter(({ groups }) => !groups!.text?.includes(' collate "'))
      .map(([found]) => `${file}: ${found.trim()}`),
  )
  expect(unnamed).toEqual([])
})

// Tests of the check itself: a statement that it misses would not be checked.
/**
 * Figures for people, and two places that read more: freezes.ts has the MACs of the ends (`held`), and run-orchestrations.ts asks it
 * for what this condition lets pass. Nothing else decides by the column, which the service's role may write.
 */
const READ_LIFTED_AT = [
  'src/access/customers/list-customers.ts',
  'src/money/records/freezes.ts',
  'src/rails/payouts/check-worker.ts',
  'src/rails/wallets/network-health.ts',
  'src/rails/wallets/network-status.ts',
  'src/resources/orchestrations/run-orchestrations.ts',
  'src/upkeep/metrics/database-gauges.ts',
]

test('only the listed files take a freeze for ended by its column', () => {
  const files = sources.filter(({ text }) => /lifted_at is (not )?null/.test(text)).map(({ file }) => file)
  expect(files.sort()).toEqual(
    [...READ_LIFTED_AT, 'src/access/tokens/client-standing.ts', 'src/audit/sealed-rows.ts'].sort(),
  )
})

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
