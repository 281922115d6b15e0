import { parseAmount } from '../../contract/assets/amount.ts'
import type { Payment } from '../../money/movements/decision.ts'
import { DEFAULT_DEADLINE_SECONDS, decimalsCounted, type Limit, type Rule } from './policy-document.ts'
import { type PolicyVersion } from './policy.ts'

const MICROS = 1_000_000

export interface CompiledRule {
  rule: Rule
  /** Whether the rule blocks or asks for approval: an uncertain fact then counts as a match. */
  restricts: boolean
  clients: ReadonlySet<string> | undefined
  profiles: ReadonlySet<string> | undefined
  identities: ReadonlySet<string> | undefined
  types: ReadonlySet<string> | undefined
  assets: ReadonlySet<string> | undefined
  networks: ReadonlySet<string> | undefined
  destination: 'ADDRESS_BOOK' | ReadonlySet<string> | undefined
  limit: CompiledLimit | undefined
}
interface CompiledLimit extends Limit {
  most: bigint
  periodMicros: number
  /** The index of the limit's windows in `Facts.windows`; undefined for a limit on each single payment. */
  windowAt: number | undefined
}

/** The facts that rule out most rules. Nearly all payments of a batch share them. */
interface PaymentKind {
  type: Payment['type']
  asset: string
  network: string | undefined
  /** The client or operator that ordered the payment; undefined if unknown. */
  client: string | undefined
}
/** The rules that can fit payments of one kind, in order. */
export interface Shortlist {
  rules: readonly CompiledRule[]
  /** The rules among them whose limit counts the payments of a period. */
  windowed: readonly CompiledRule[]
}
/** Most shortlists of one version. A further one, by a new client id for example, clears them all. */
const SHORTLISTS_MAX = 1_000

export interface Compiled {
  version: number
  deadlineSeconds: number
  rules: readonly CompiledRule[]
  /** By `keyOfKind`. Comparing each payment with each of ten rules took twice as long as all other work. */
  shortlists: Map<string, Shortlist>
  readsAddressBook: boolean
  readsIdentities: boolean
  readsPrices: boolean
}

const compiled = new WeakMap<PolicyVersion, Compiled>()

export function compile(policy: PolicyVersion): Compiled {
  const known = compiled.get(policy)
  if (known !== undefined) return known
  let windows = 0
  const rules = policy.document.rules.map((rule) =>
    compileRule(rule, (rule.limit?.period_seconds ?? 0) > 0 ? windows++ : undefined),
  )
  const made = {
    version: policy.version,
    deadlineSeconds: policy.document.approvals?.deadline_seconds ?? DEFAULT_DEADLINE_SECONDS,
    rules,
    shortlists: new Map<string, Shortlist>(),
    readsAddressBook: rules.some(({ destination }) => destination !== undefined),
    readsIdentities: rules.some(
      ({ identities, limit }) => identities !== undefined || limit?.per === 'IDENTITY',
    ),
    readsPrices: rules.some(({ limit }) => limit?.asset === 'USD'),
  }
  compiled.set(policy, made)
  return made
}

const setOf = (values: readonly string[] | undefined) => values && new Set(values)

function compileRule(rule: Rule, windowAt: number | undefined): CompiledRule {
  const { match = {}, limit } = rule
  const { destination } = match
  return {
    rule,
    restricts: rule.action !== 'ALLOW',
    clients: setOf(match.client_ids),
    profiles: setOf(match.profile_ids),
    identities: setOf(match.identity_ids),
    types: setOf(match.transfer_types),
    assets: setOf(match.assets),
    networks: setOf(match.networks),
    destination: typeof destination === 'string' ? addressBookOf(destination) : setOf(destination),
    limit: limit && {
      ...limit,
      most: parseAmount(limit.amount, decimalsCounted(limit))!,
      periodMicros: limit.period_seconds * MICROS,
      windowAt,
    },
  }
}

// A client id from an external token issuer may be any text, so it comes last. A missing id adds no part.
const keyOfKind = ({ type, asset, network, client }: PaymentKind) =>
  `${type} ${asset} ${network}${client === undefined ? '' : ` ${client}`}`

export function shortlistOf({ rules, shortlists }: Compiled, kind: PaymentKind): Shortlist {
  const key = keyOfKind(kind)
  const known = shortlists.get(key)
  if (known !== undefined) return known
  const fitting = rules.filter((rule) => fitsKind(rule, kind))
  const made = {
    rules: fitting,
    windowed: fitting.filter(({ limit }) => limit?.windowAt !== undefined),
  }
  if (shortlists.size >= SHORTLISTS_MAX) shortlists.clear()
  shortlists.set(key, made)
  return made
}

const addressBookOf = (destination: 'ANY' | 'ADDRESS_BOOK') =>
  destination === 'ADDRESS_BOOK' ? destination : undefined

const isIn = (set: ReadonlySet<string> | undefined, value: string | undefined): boolean =>
  set === undefined || (value !== undefined && set.has(value))

const fitsKind = (
  { types, assets, networks, clients, limit, restricts }: CompiledRule,
  kind: PaymentKind,
): boolean =>
  isIn(types, kind.type) &&
  isIn(assets, kind.asset) &&
  isIn(networks, kind.network) &&
  (limit === undefined || limit.asset === 'USD' || limit.asset === kind.asset) &&
  (kind.client === undefined ? clients === undefined || restricts : isIn(clients, kind.client))
