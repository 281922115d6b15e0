import { strict as assert } from 'node:assert'
import { parseAmount } from '../assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import { PRICE_DECIMALS, type UsdPrices } from '../assets/usd-value.ts'
import { initiatorOf, type Origin } from '../contract/actor.ts'
import { Problem, problem } from '../contract/problems.ts'
import { inOrder, type Transaction } from '../db/database.ts'
import type { Moment } from '../db/ids.ts'
import type { Transfer } from '../ledger/transfer.ts'
import { canonicalAddress } from '../networks/addresses.ts'
import { entriesAt, type KnownEntry } from '../records/destination-address.ts'
import { FIAT_ACCOUNTS, type FiatAccount } from '../records/fiat-account.ts'
import type { Holders } from '../records/holders.ts'
import {
  DEFAULT_DEADLINE_SECONDS,
  DEFAULT_ROLE,
  decimalsCounted,
  GOVERNED_TYPES,
  type Limit,
  type Policies,
  type PolicyVersion,
  type Rule,
  VALUE_DECIMALS,
} from '../records/policy.ts'
import type { RowMacs } from '../records/row-macs.ts'
import { Windows, type Window } from '../records/policy-windows.ts'
import type { ApprovalRequirement } from './approval.ts'
import type { Decision, Movement, Payment, View } from './decision.ts'

/**
 * Holds the policy of a customer over its payments (API behaviour, Policy). The rules are decided in the transaction that
 * moves the money, with the windows of their limits locked: any number of processes together keep a limit.
 *
 * What a caller can choose or hide must not help it. Where it is not certain whether a rule fits, a rule that blocks or
 * asks for approval fits, and a rule that allows does not.
 */

/** A payment that the policy does not refuse. */
export interface Verdict {
  /** The approval that it needs before it is signed. */
  requirement: ApprovalRequirement | undefined
  /** What it counts in the windows of the limits, once it is accepted. */
  counts: readonly Count[]
}
interface Count {
  window: Window
  periodMicros: number
  value: bigint
}

const ALLOWED: Verdict = { requirement: undefined, counts: [] }

const MICROS = 1_000_000

/** A rule, ready to be applied to payments. */
interface CompiledRule {
  rule: Rule
  /** Whether it restricts: an uncertain fact then counts as a match. */
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
  /** The place of its windows in the lists of the payments' windows; undefined for a limit of each payment. */
  windowAt: number | undefined
}

/** The facts by which most rules are told apart. Nearly all payments of a batch share them. */
interface Kind {
  type: Payment['type']
  asset: string
  network: string | undefined
  /** The client or operator that ordered it; undefined where nobody knows. */
  client: string | undefined
}
/** The rules that can fit payments of one kind, in order. */
interface Shortlist {
  rules: readonly CompiledRule[]
  /** Those whose limit counts the payments of a period. */
  windowed: readonly CompiledRule[]
}
/** Most shortlists of one version: clients of other ids begin anew. */
const SHORTLISTS_MAX = 1_000

/** A policy, ready to be applied. */
interface Compiled {
  version: number
  /** How long approvers have to decide. */
  deadlineSeconds: number
  rules: readonly CompiledRule[]
  /** By `keyOfKind`. Comparing each payment with each of ten rules took twice as long as all else. */
  shortlists: Map<string, Shortlist>
  readsAddressBook: boolean
  readsIdentities: boolean
  readsPrices: boolean
}

const compiled = new WeakMap<PolicyVersion, Compiled>()

function compile(policy: PolicyVersion): Compiled {
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

// The id of a client of another issuer may be any text, so it is the last part, and its absence is no text.
const keyOfKind = ({ type, asset, network, client }: Kind) =>
  `${type} ${asset} ${network}${client === undefined ? '' : ` ${client}`}`

/** Returns the rules that can fit payments of a kind. */
function shortlistOf({ rules, shortlists }: Compiled, kind: Kind): Shortlist {
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

/** All facts of one payment. */
interface Facts {
  payment: Payment
  shortlist: Shortlist
  /** The windows in which rules with a limit count it, at the rule's `windowAt`. */
  windows: Window[][]
  /** The identities that it names, of its account and of its profile's account too: none before these are read. */
  identities: readonly string[]
  /** The entries of the address book with its destination. */
  entries: readonly KnownEntry[]
  /** The destination as limits count it: the same for each spelling, on each EVM network. */
  destinationSubject: () => string
}

/** The records and services by which payments are judged. */
interface Sources {
  holders: Holders
  policies: Policies | undefined
  get: View['get']
  early: EarlyReads | undefined
}

/** What is read for a batch of payments by the policy that judged the last one, in the round trip of the balances. */
export interface EarlyReads {
  policy: Compiled
  facts: ReadonlyMap<Movement, Facts>
  windows: Windows
}

/** The policy in force for a batch of movements. */
export class Governance {
  readonly #policy: Compiled | undefined
  readonly #refusal: Problem | undefined
  readonly #facts: ReadonlyMap<Movement, Facts>
  readonly #windows: Windows | undefined
  readonly #prices: UsdPrices

  private constructor(parts: {
    policy?: Compiled
    refusal?: Problem
    facts?: ReadonlyMap<Movement, Facts>
    windows?: Windows
    prices?: UsdPrices
  }) {
    this.#policy = parts.policy
    this.#refusal = parts.refusal
    this.#facts = parts.facts ?? new Map()
    this.#windows = parts.windows
    this.#prices = parts.prices ?? new Map()
  }

  /**
   * Locks windows and reads the address book by the policy that is known from the last batch, so that this takes no round
   * trip of its own. Call it after the statement that locks the balances was sent. Returns undefined, and sends nothing,
   * where no policy is known. Nothing is decided by that policy unless `read` finds it to be the newest.
   */
  static async readEarly(
    tx: Transaction,
    customerId: string,
    movements: readonly Movement[],
    policies: Policies | undefined,
    get: View['get'],
  ): Promise<EarlyReads | undefined> {
    const last = policies?.last(customerId)
    if (policies === undefined || last === undefined) return undefined
    const policy = compile(last)
    const facts = factsOf(policy, movements, get)
    const windows = new Windows()
    wantWindows(windows, facts, 'EARLY')
    await inOrder([
      readAddressBook(tx, policies.rows, customerId, policy, facts),
      windows.lock(tx, customerId),
    ])
    return { policy, facts, windows }
  }

  /**
   * Reads the policy at this place (`POLICY_PLACE`) and all that it needs for the payments among these movements. Locks
   * the windows of its limits, after the balances are locked. A policy that cannot be trusted refuses every payment.
   */
  static async read(
    tx: Transaction,
    customerId: string,
    place: string,
    movements: readonly Movement[],
    { holders, policies, get, early }: Sources,
  ): Promise<Governance> {
    if (movements.every(({ payment }) => payment === undefined)) return new Governance({})
    if (policies === undefined) return new Governance({ refusal: withoutKey() })
    let policy: Compiled
    try {
      policy = compile(await policies.get(tx, customerId, place))
    } catch (refusal) {
      if (refusal instanceof Problem) return new Governance({ refusal })
      throw refusal
    }
    const isRead = early?.policy === policy
    const facts = isRead ? early.facts : factsOf(policy, movements, get)
    const windows = early?.windows ?? new Windows()
    if (policy.readsIdentities)
      for (const [{ holder }, one] of facts)
        if (holder !== undefined) one.identities = holders.identitiesOf(holder)
    if (!isRead) wantWindows(windows, facts, 'EARLY')
    // Always in two steps, so that every process locks in the same order.
    const lockedEarly = isRead ? undefined : windows.lock(tx, customerId)
    wantWindows(windows, facts, 'LATE')
    const [, , , prices] = await inOrder([
      isRead ? undefined : readAddressBook(tx, policies.rows, customerId, policy, facts),
      lockedEarly,
      windows.lock(tx, customerId),
      policy.readsPrices ? policies.prices(tx) : new Map<string, bigint>(),
    ])
    return new Governance({ policy, facts, windows, prices })
  }

  /**
   * Judges a payment as it was decided. Throws policy-refused, and unavailable for a policy that cannot be trusted.
   * Nothing is counted yet.
   */
  judge(movement: Movement, { transfer }: Decision, now: Moment): Verdict {
    requireDeclared(movement, transfer)
    if (this.#refusal !== undefined) throw this.#refusal
    const facts = this.#facts.get(movement)
    assert(facts !== undefined && this.#policy !== undefined, 'a governed movement must declare its payment')
    const { rules } = facts.shortlist
    if (rules.length === 0) return ALLOWED
    const counts: Count[] = []
    const values = new Values(transfer, this.#prices)
    for (const rule of rules) {
      if (!fits(rule, facts) || !this.#decides(rule, facts, values, now, counts)) continue
      return { requirement: requirementOf(rule.rule, this.#policy, transfer), counts }
    }
    return { requirement: undefined, counts }
  }

  /** Whether a rule that fits decides. Adds to `counts` what the payment counts in the rule's windows. */
  #decides(
    { limit, restricts }: CompiledRule,
    { windows }: Facts,
    values: Values,
    now: Moment,
    counts: Count[],
  ): boolean {
    if (limit === undefined) return true
    const { most, periodMicros, windowAt } = limit
    // Without a price, it counts as the whole limit and is beyond it.
    const priced = values.in(limit.asset)
    const value = priced ?? most
    let beyond = priced === undefined || value > most
    if (windowAt !== undefined) {
      const counted = windows[windowAt]
      assert(counted !== undefined, 'the windows of every rule that may fit are read')
      for (const window of counted) {
        assert(window.isLocked, 'a window that was not read would be an empty one')
        beyond ||= window.sumAt(now.micros, periodMicros) + value > most
        counts.push({ window, periodMicros, value })
      }
    }
    return restricts === beyond
  }

  /** Counts an accepted payment in the windows of the limits. */
  count({ counts }: Verdict, now: Moment): void {
    for (const { window, periodMicros, value } of counts) window.add(now.micros, periodMicros, value)
  }

  /** Sends the statement that writes what was counted. */
  async write(tx: Transaction, customerId: string): Promise<void> {
    await this.#windows?.write(tx, customerId)
  }
}

const withoutKey = () =>
  problem.unavailable('this customer has a policy, and this process has no master key to check it with')

const GOVERNED = new Set<string>(GOVERNED_TYPES)

/**
 * Whether a policy governs the transfer. The platform takes a reward back by a PAXOS_TRANSFER_DEBIT, too, which is no payment of
 * the customer and declares none.
 */
export const isGoverned = ({ type }: Transfer, { payment }: Movement): boolean =>
  GOVERNED.has(type) && (type !== 'PAXOS_TRANSFER_DEBIT' || payment !== undefined)

/** Whether a payment goes to a profile, at once: such payments have no destination in their record. */
const isToProfile = (type: string): boolean =>
  type === 'INTERNAL_TRANSFER_DEBIT' || type === 'PAXOS_TRANSFER_DEBIT'

/** A payment that moves something else than it declared would be judged by the wrong facts. */
function requireDeclared({ payment }: Movement, transfer: Transfer): void {
  const destination =
    transfer.type === 'CRYPTO_WITHDRAWAL' ? transfer.destination_address : transfer.fiat_account_id
  assert(
    payment !== undefined &&
      payment.type === transfer.type &&
      payment.profile_id === transfer.profile_id &&
      payment.asset === transfer.asset &&
      payment.crypto_network === transfer.crypto_network &&
      (isToProfile(payment.type) || payment.destination === destination),
    'a governed movement must declare the payment that it makes',
  )
}

/** Returns the facts of the payments among these movements, without their identities and entries of the address book. */
function factsOf(policy: Compiled, movements: readonly Movement[], get: View['get']): Map<Movement, Facts> {
  const facts = new Map<Movement, Facts>()
  for (const movement of movements) {
    const { payment, origin } = movement
    if (payment === undefined) continue
    const { type, asset, crypto_network } = payment
    const network = type === 'WIRE_WITHDRAWAL' ? 'WIRE' : crypto_network
    facts.set(movement, {
      payment,
      shortlist: shortlistOf(policy, { type, asset, network, client: clientOf(origin) }),
      windows: [],
      identities: [],
      entries: [],
      destinationSubject: once(() => destinationSubjectOf(payment, get)),
    })
  }
  return facts
}

/** Reads the entries of the address book with the payments' destinations, where the policy has rules about them. */
async function readAddressBook(
  tx: Transaction,
  macs: RowMacs,
  customerId: string,
  policy: Compiled,
  facts: ReadonlyMap<Movement, Facts>,
): Promise<void> {
  if (!policy.readsAddressBook) return
  const all = [...facts.values()].map((one) => ({ one, places: placeOf(one.payment) }))
  const entries = await entriesAt(
    tx,
    macs,
    customerId,
    all.flatMap(({ places }) => places),
  )
  for (const { one, places } of all)
    one.entries = places.flatMap((place) => entries.get(keyOfPlace(place)) ?? [])
}

/** Computes a value when it is first asked for: the checksum of an address takes longer than all rules. */
function once<T>(compute: () => T): () => T {
  let known: { value: T } | undefined
  return () => (known ??= { value: compute() }).value
}

/** The API client or operator that ordered a payment. The worker alone orders none: nobody knows who did. */
function clientOf(origin: Origin): string | undefined {
  const { type, id } = initiatorOf(origin)
  if (type === 'WORKER') return undefined
  // The user of the command line is no client, and its name must not pass for the id of one.
  return type === 'COMMAND_LINE' ? '' : id
}

function destinationSubjectOf({ type, destination, crypto_network }: Payment, get: View['get']): string {
  if (isToProfile(type)) return `PROFILE ${destination}`
  if (type === 'WIRE_WITHDRAWAL') return `BANK ${bankOf(get(FIAT_ACCOUNTS, destination), destination)}`
  const network = crypto_network!
  // An address of an EVM network has the same owner on each of them.
  const where = NETWORKS[network].family === 'evm' ? 'EVM' : network
  return `${where} ${canonicalOf(network, destination)}`
}

const canonicalOf = (network: CryptoNetwork, address: string): string =>
  canonicalAddress(network, address, { testNetworks: true }) ?? address

/** A bank account has any number of fiat accounts, and any spelling of its number. */
function bankOf(account: FiatAccount | undefined, id: string): string {
  const number = account?.fiat_network_instructions.wire.account_number ?? ''
  const plain = number
    .toUpperCase()
    .replaceAll(/[^0-9A-Z]/g, '')
    .replace(/^0+/, '')
  return plain === '' ? id : plain
}

/** A place of the address book. */
interface Place {
  crypto_network: string
  address: string
}
const keyOfPlace = ({ crypto_network, address }: Place) => `${crypto_network} ${address}`

/** Returns the place of a payment's destination in the address book; none for a wire or an internal transfer. */
const placeOf = ({ crypto_network, destination }: Payment): Place[] =>
  crypto_network === undefined ? [] : [{ crypto_network, address: canonicalOf(crypto_network, destination) }]

const isIn = (set: ReadonlySet<string> | undefined, value: string | undefined): boolean =>
  set === undefined || (value !== undefined && set.has(value))

/** Whether a rule can fit payments of a kind. */
const fitsKind = (
  { types, assets, networks, clients, limit, restricts }: CompiledRule,
  kind: Kind,
): boolean =>
  isIn(types, kind.type) &&
  isIn(assets, kind.asset) &&
  isIn(networks, kind.network) &&
  (limit === undefined || limit.asset === 'USD' || limit.asset === kind.asset) &&
  (kind.client === undefined ? clients === undefined || restricts : isIn(clients, kind.client))

/** Whether a rule of the payment's shortlist fits it. */
const fits = (rule: CompiledRule, facts: Facts): boolean =>
  fitsBeforeDestination(rule, facts) && fitsDestination(rule, facts)

const fitsBeforeDestination = ({ profiles, identities, restricts }: CompiledRule, facts: Facts): boolean =>
  (profiles === undefined || profiles.has(facts.payment.profile_id)) &&
  (identities === undefined || fitsIdentities(identities, facts, restricts))

/** A caller may name any identity beside that of the profile, so a rule that allows must list all of them. */
const fitsIdentities = (listed: ReadonlySet<string>, { identities }: Facts, restricts: boolean): boolean =>
  restricts
    ? identities.some((id) => listed.has(id))
    : identities.length > 0 && identities.every((id) => listed.has(id))

function fitsDestination({ destination, restricts }: CompiledRule, facts: Facts): boolean {
  if (destination === undefined) return true
  const approved = facts.entries.filter(({ status }) => status === 'APPROVED')
  if (destination === 'ADDRESS_BOOK') return approved.length > 0
  if (facts.payment.crypto_network === undefined) return destination.has(facts.payment.destination)
  return (restricts ? facts.entries : approved).some(({ id }) => destination.has(id))
}

/**
 * Names the windows in which a policy may count these payments, to be locked next; the address book may be unread. EARLY:
 * those that are known by the payments alone. LATE: those of identities and bank accounts, which are read with the balances.
 */
function wantWindows(windows: Windows, facts: ReadonlyMap<Movement, Facts>, when: 'EARLY' | 'LATE'): void {
  for (const one of facts.values())
    for (const compiledRule of one.shortlist.windowed) {
      if ((needsRecords(compiledRule, one) ? 'LATE' : 'EARLY') !== when) continue
      if (!fitsBeforeDestination(compiledRule, one)) continue
      const { rule, limit } = compiledRule
      one.windows[limit!.windowAt!] = subjectsOf(limit!, one).map((subject) =>
        windows.want({ rule_id: rule.id, asset: limit!.asset, subject }),
      )
    }
}

const needsRecords = ({ limit, identities }: CompiledRule, { payment }: Facts): boolean =>
  identities !== undefined ||
  limit!.per === 'IDENTITY' ||
  (limit!.per === 'DESTINATION' && payment.type === 'WIRE_WITHDRAWAL')

/** Whose payments a limit counts together. All payments without an identity share a window. */
function subjectsOf({ per = 'CUSTOMER' }: Limit, facts: Facts): string[] {
  switch (per) {
    case 'CUSTOMER':
      return ['CUSTOMER']
    case 'PROFILE':
      return [`PROFILE ${facts.payment.profile_id}`]
    case 'IDENTITY':
      return facts.identities.length === 0
        ? ['IDENTITY none']
        : facts.identities.map((id) => `IDENTITY ${id}`)
    case 'DESTINATION':
      return [`DESTINATION ${facts.destinationSubject()}`]
  }
}

/** The value of a payment in the assets of limits, computed once for all rules. */
class Values {
  readonly #asset: string
  readonly #total: bigint
  readonly #prices: UsdPrices
  #usd: bigint | undefined

  constructor({ asset, total }: Transfer, prices: UsdPrices) {
    this.#asset = asset
    this.#total = parseAmount(total, decimalsOf(asset))!
    this.#prices = prices
  }

  /**
   * The value in minor units of the limit's asset; in USD rounded up. Undefined without a price: then nobody knows
   * whether it is within the limit.
   */
  in(limitAsset: string): bigint | undefined {
    return limitAsset === 'USD' ? (this.#usd ??= this.#inUsd()) : this.#total
  }

  #inUsd(): bigint | undefined {
    const asset = this.#asset
    const price = asset === 'USD' ? 10n ** BigInt(PRICE_DECIMALS) : this.#prices.get(asset)
    if (price === undefined) return undefined
    const scale = 10n ** BigInt(decimalsOf(asset) + PRICE_DECIMALS - VALUE_DECIMALS)
    return (this.#total * price + scale - 1n) / scale
  }
}

/** Returns the approval that a deciding rule requires. Throws policy-refused where the rule lets nothing pass. */
function requirementOf(
  { id: rule_id, action, approvals, role = DEFAULT_ROLE }: Rule,
  { version: policy_version, deadlineSeconds: deadline_seconds }: Compiled,
  { type }: Transfer,
): ApprovalRequirement | undefined {
  if (action === 'ALLOW') return undefined
  const refuse = (why: string) => problem.policyRefused(why, { rule_id, policy_version })
  if (action === 'BLOCK') throw refuse('blocks this payment')
  if (isToProfile(type))
    throw refuse(
      `requires an approval, and ${type === 'INTERNAL_TRANSFER_DEBIT' ? 'an internal transfer' : 'a transfer to another customer'} cannot wait for one`,
    )
  return { approvals: approvals!, role, rule_id, policy_version, deadline_seconds }
}
