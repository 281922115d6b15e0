import { setImmediate } from 'node:timers/promises'
import { Type, type Static } from 'typebox'
import { originOfLoop, type Actor } from '../../contract/actor.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { VALUE_DECIMALS, type UsdPrices } from '../../contract/assets/usd-value.ts'
import { Amount, AssetSymbol, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { Problem } from '../../contract/problems.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { firstIdAt, momentAt, readClock } from '../../db/ids.ts'
import { grouped, presentOf } from '../../db/rows.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import type { Payment, View } from '../../money/movements/decision.ts'
import { selectFiatAccounts } from '../../money/records/fiat-account.ts'
import { Holders } from '../../money/records/holders.ts'
import { compile, type Compiled } from './compiled-policy.ts'
import {
  countIn,
  decidingRule,
  factsOf,
  readEntries,
  requirementOf,
  Values,
  wantWindows,
  type Count,
} from './judge-payments.ts'
import type { PolicyDocument, Rule } from './policy-document.ts'
import { NO_POLICY, type Policies } from './policy.ts'
import { Windows } from './policy-windows.ts'

/**
 * What a policy would have done with the payments of the last days (docs/reference/operators.md). Nothing is written. Facts
 * that no record keeps are those of today: the address book, the owners of accounts, and the prices of payments that were
 * recorded without their value.
 */

const DAY_MICROS = 86_400_000_000
const DAYS = 30
/** Most payments that a trial judges. Each address costs a checksum. */
const PAYMENTS_MAX = 2_000
/** Payments that are judged without a pause. */
const AT_A_TIME = 50
/** Most transfers that an outcome names. */
const NAMED_MAX = 5

/** The receiver of a transfer to another customer is in no record of its sender. */
const TRIED_TYPES = ['CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL', 'INTERNAL_TRANSFER_DEBIT'] as const

const OUTCOMES = ['ALLOWED', 'APPROVAL', 'BLOCKED'] as const
type Outcome = (typeof OUTCOMES)[number]

/** The payments for which a rule has one outcome. */
export const PolicyTrial = Type.Object({
  from: Timestamp('Limits count the payments since then.'),
  judged: Type.Integer({ description: 'The number of payments.' }),
  has_more: Type.Boolean({ description: 'Whether older payments of the 30 days were left out.' }),
  outcomes: Type.Array(
    Type.Object({
      rule_id: Type.Optional(Type.String({ description: 'Absent where no rule decides.' })),
      outcome: OneOf(OUTCOMES, 'What the policy would have done.'),
      count: Type.Integer({ description: 'The number of payments.' }),
      notional_value: Amount('In USD; payments without a price are left out.'),
      totals: Type.Array(Type.Object({ asset: AssetSymbol, total: Amount('Their sum.') })),
      transfer_ids: Type.Array(Uuid('Transfer.'), { description: 'The newest first.' }),
    }),
  ),
})
type PolicyTrial = Static<typeof PolicyTrial>
type TriedOutcome = PolicyTrial['outcomes'][number]

type PaidRow = Pick<Transfer, 'id' | 'created_at' | 'profile_id' | 'asset' | 'total'> & {
  type: Payment['type']
  account_id: string | null
  identity_id: string | null
  crypto_network: CryptoNetwork | null
  notional_value: string | null
  destination: string
}

/** Judges the customer's payments of the last 30 days, oldest first, by this document. */
export const tryPolicy = (
  db: Database,
  policies: Policies,
  customerId: string,
  document: PolicyDocument,
): Promise<PolicyTrial> =>
  transaction(
    db,
    async (tx) => {
      const since = (await readClock(tx)).micros - DAYS * DAY_MICROS
      const found = await selectPaid(tx, customerId, since)
      const paid = found.slice(0, PAYMENTS_MAX).reverse()
      const policy = compile({ ...NO_POLICY, document, created_at: '' })
      const from = momentAtMicros(since)
      const has_more = found.length > PAYMENTS_MAX
      return {
        from: has_more ? paid[0]!.created_at : from,
        judged: paid.length,
        has_more,
        outcomes: outcomesOf(document, await judgeAll(tx, policies, customerId, policy, paid)),
      }
    },
    'isolation level repeatable read read only',
  )

const momentAtMicros = (micros: number): string => new Date(micros / 1000).toISOString()

/** Reads the newest payments, also those that failed later: the policy has let them pass. */
async function selectPaid(tx: Transaction, customerId: string, since: number): Promise<PaidRow[]> {
  const { rows } = await tx.query<PaidRow>(
    `
    select t.id, t.created_at, t.type, t.profile_id, t.account_id, t.identity_id, t.asset, t.total, t.crypto_network,
           t.notional_value,
           coalesce(t.destination_address, t.fiat_account_id::text, (
             select c.profile_id::text from transfers c
             where c.customer_id = $1 and c.group_id = t.group_id and c.id > t.id and c.type = 'INTERNAL_TRANSFER_CREDIT'
             order by c.id
             limit 1
           )) as destination
    from transfers t
    where t.customer_id = $1 and t.id >= $2 and t.type = any ($3::text[])
    order by t.id desc
    limit $4`,
    [customerId, firstIdAt(since), TRIED_TYPES, PAYMENTS_MAX + 1],
  )
  return rows
}

/** Reads who ordered these payments, from the audit log. For what the worker paid, the maker of the rule is unknown. */
async function selectOrderers(
  tx: Transaction,
  customerId: string,
  paid: readonly PaidRow[],
): Promise<Map<string, Actor>> {
  if (paid.length === 0) return new Map()
  const { rows } = await tx.query<Actor & { transfer_id: string }>(
    `
    select ordered.transfer_id, l.actor_type as type, l.actor_id as id
    from audit_log l
    cross join lateral unnest(l.subject_ids) as ordered (transfer_id)
    where l.customer_id = $1 and l.action = 'transfer.create' and l.id >= $2 and ordered.transfer_id = any ($3::uuid[])`,
    [customerId, firstIdAt(momentAt(paid[0]!.created_at).micros), paid.map(({ id }) => id)],
  )
  return new Map(rows.map(({ transfer_id, ...actor }) => [transfer_id, actor]))
}

interface Judged {
  paid: PaidRow
  usd: bigint | undefined
  rule: Rule | undefined
  outcome: Outcome
}

async function judgeAll(
  tx: Transaction,
  policies: Policies,
  customerId: string,
  policy: Compiled,
  paid: readonly PaidRow[],
): Promise<Judged[]> {
  const prices = await policies.prices(tx)
  const orderers = await selectOrderers(tx, customerId, paid)
  const payments = paid.map((row) => ({
    row,
    payment: paymentOf(row),
    origin: originFor(orderers.get(row.id)),
  }))
  const wires = payments.flatMap(({ payment: { type, destination } }) =>
    type === 'WIRE_WITHDRAWAL' ? [destination] : [],
  )
  const accounts = await selectFiatAccounts(tx, customerId, wires)
  const get: View['get'] = (_kind, key) => accounts.get(key as string) as never
  const facts = factsOf(policy, payments, get)
  if (policy.readsIdentities) {
    const holders = await Holders.read(tx, customerId, {
      profileIds: paid.map(({ profile_id }) => profile_id),
      holders: payments.map(({ payment }) => payment),
    })
    for (const paid of facts.values()) paid.identities = holders.identitiesOf(paid.payment)
  }
  if (policy.readsAddressBook) await readEntries(tx, policies.rows, customerId, [...facts.values()])
  const windows = new Windows()
  wantWindows(windows, facts, 'EARLY')
  wantWindows(windows, facts, 'LATE')
  windows.beginEmpty()
  const judged: Judged[] = []
  for (const [index, tried] of payments.entries()) {
    // Other requests go on in between.
    if (index % AT_A_TIME === 0) await setImmediate()
    const now = momentAt(tried.row.created_at)
    const counts: Count[] = []
    const values = valuesOf(tried.row, prices)
    const rule = decidingRule(facts.get(tried)!, values, now, counts)
    const outcome = outcomeOf(rule, policy, tried.row)
    if (outcome !== 'BLOCKED') countIn(counts, now)
    judged.push({ paid: tried.row, usd: values.in('USD'), rule, outcome })
  }
  return judged
}

function paymentOf(row: PaidRow): Payment {
  const { type, profile_id, asset, destination, account_id, identity_id, crypto_network } = row
  return { type, profile_id, asset, destination, ...presentOf({ account_id, identity_id, crypto_network }) }
}

const UNKNOWN = originOfLoop('policy-trials')
const originFor = (actor: Actor | undefined) => (actor === undefined ? UNKNOWN : { actor })

/** The value of a payment: in USD as it was recorded, else at the price of today. */
function valuesOf(paid: PaidRow, prices: UsdPrices): Pick<Values, 'in'> {
  const values = new Values(paid, prices)
  const { notional_value: recorded } = paid
  return {
    in: (limitAsset) =>
      limitAsset === 'USD' && recorded !== null
        ? parseAmount(recorded, VALUE_DECIMALS)
        : values.in(limitAsset),
  }
}

function outcomeOf(rule: Rule | undefined, policy: Compiled, { type }: PaidRow): Outcome {
  try {
    return rule === undefined || requirementOf(rule, policy, { type }) === undefined ? 'ALLOWED' : 'APPROVAL'
  } catch (refusal) {
    if (!(refusal instanceof Problem)) throw refusal
    return 'BLOCKED'
  }
}

/** Adds up what was judged, in the order of the rules; payments that no rule decides come last. */
function outcomesOf({ rules }: PolicyDocument, judged: readonly Judged[]): TriedOutcome[] {
  const groups = grouped(judged, ({ outcome, rule }) => `${outcome} ${rule?.id ?? ''}`)
  return [...rules.map(({ id }) => id), undefined].flatMap((id) =>
    (['ALLOWED', 'APPROVAL', 'BLOCKED'] as const).flatMap((outcome): TriedOutcome[] => {
      const own = groups.get(`${outcome} ${id ?? ''}`)
      if (own === undefined) return []
      const paid = own.map(({ paid }) => paid)
      const usd = own.reduce((sum, { usd }) => sum + (usd ?? 0n), 0n)
      const newest = paid.slice(-NAMED_MAX).reverse()
      return [
        {
          ...(id !== undefined && { rule_id: id }),
          ...{ outcome, count: own.length, notional_value: formatAmount(usd, VALUE_DECIMALS) },
          ...{ totals: totalsOf(paid), transfer_ids: newest.map((row) => row.id) },
        },
      ]
    }),
  )
}

function totalsOf(paid: readonly PaidRow[]): { asset: string; total: string }[] {
  const sums = new Map<string, bigint>()
  for (const { asset, total } of paid)
    sums.set(asset, (sums.get(asset) ?? 0n) + parseAmount(total, decimalsOf(asset))!)
  return [...sums].map(([asset, sum]) => ({ asset, total: formatAmount(sum, decimalsOf(asset)) }))
}
