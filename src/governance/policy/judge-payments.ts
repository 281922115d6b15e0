import { strict as assert } from 'node:assert'
import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { PRICE_DECIMALS, VALUE_DECIMALS, type UsdPrices } from '../../contract/assets/usd-value.ts'
import { initiatorOf, type Origin } from '../../contract/actor.ts'
import { Problem, problem } from '../../contract/problems.ts'
import { inOrder, type Transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import type { Decision, Movement, Payment, View } from '../../money/movements/decision.ts'
import type { Govern, GovernedBatch, Governor, Verdict } from '../../money/movements/governor.ts'
import { entriesAt, type KnownEntry } from '../../money/records/destination-address.ts'
import { FIAT_ACCOUNTS, type FiatAccount } from '../../money/records/fiat-account.ts'
import type { Holders } from '../../money/records/holders.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { awaitApproval, type ApprovalRequirement } from '../approvals/approved-withdrawal.ts'
import { compile, shortlistOf, type Compiled, type CompiledRule, type Shortlist } from './compiled-policy.ts'
import { DEFAULT_ROLE, type Limit, type Rule } from './policy-document.ts'
import { type Policies } from './policy.ts'
import { Windows, type Window } from './policy-windows.ts'

/**
 * Applies the policy of a customer to its payments (API behaviour, Policy). The rules are judged in the transaction that
 * moves the money, with the windows of their limits locked, so that all processes together keep a limit.
 *
 * A caller must not gain by what it chooses or hides. Where it is not certain whether a rule fits, a rule that blocks or
 * asks for approval fits, and a rule that allows does not.
 */

/** What a payment adds to a window of a limit. */
export interface Count {
  window: Window
  periodMicros: number
  value: bigint
}

export interface Facts {
  payment: Payment
  shortlist: Shortlist
  /** The windows that count the payment, at the index `windowAt` of each rule with a limit. */
  windows: Window[][]
  /** The identities of the payment, of its account and of its profile's account. Empty until they are read. */
  identities: readonly string[]
  /** The entries of the address book for the payment's destination. */
  entries: readonly KnownEntry[]
  /** The destination as limits count it: the same for each spelling, on each EVM network. */
  destinationSubject: () => string
}

export const governBy =
  (policies: Policies): Govern =>
  (batch) =>
    new PolicyGovernor(policies, batch)

class PolicyGovernor implements Governor {
  readonly #policies: Policies
  readonly #batch: GovernedBatch
  #policy: Compiled | undefined
  #refusal: Problem | undefined
  #facts: ReadonlyMap<Movement, Facts> = new Map()
  #windows = new Windows()
  #prices: UsdPrices = new Map()

  constructor(policies: Policies, batch: GovernedBatch) {
    this.#policies = policies
    this.#batch = batch
  }

  /** Reads by the policy of the last batch. That policy decides nothing unless `read` finds that it is the newest. */
  async readEarly(): Promise<void> {
    const { tx, customerId } = this.#batch
    const last = this.#policies.last(customerId)
    if (last === undefined) return
    this.#begin(compile(last))
    await inOrder([this.#readAddressBook(), this.#windows.lock(tx, customerId)])
  }

  /** A policy that cannot be trusted refuses every payment. */
  async read(place: string, holders: Holders): Promise<void> {
    const { tx, customerId, movements } = this.#batch
    if (movements.every(({ payment }) => payment === undefined)) return
    let policy: Compiled
    try {
      policy = compile(await this.#policies.get(tx, customerId, place))
    } catch (refusal) {
      if (!(refusal instanceof Problem)) throw refusal
      this.#refusal = refusal
      return
    }
    const isRead = this.#policy === policy
    if (!isRead) this.#begin(policy)
    if (policy.readsIdentities)
      for (const facts of this.#facts.values()) facts.identities = holders.identitiesOf(facts.payment)
    // Always in two steps, so that every process locks in the same order.
    const lockedEarly = isRead ? undefined : this.#windows.lock(tx, customerId)
    wantWindows(this.#windows, this.#facts, 'LATE')
    const [, , , prices] = await inOrder([
      isRead ? undefined : this.#readAddressBook(),
      lockedEarly,
      this.#windows.lock(tx, customerId),
      policy.readsPrices ? this.#policies.prices(tx) : new Map<string, bigint>(),
    ])
    this.#prices = prices
  }

  /** Begins to judge by a policy: collects the facts of the payments, and the windows that follow from these facts alone. */
  #begin(policy: Compiled): void {
    this.#policy = policy
    this.#facts = factsOf(policy, this.#batch.movements, this.#batch.get)
    wantWindows(this.#windows, this.#facts, 'EARLY')
  }

  async #readAddressBook(): Promise<void> {
    if (this.#policy?.readsAddressBook !== true) return
    const { tx, customerId } = this.#batch
    await readEntries(tx, this.#policies.rows, customerId, [...this.#facts.values()])
  }

  judge(movement: Movement, decided: Decision, view: View): Verdict {
    const { transfer } = decided
    requireDeclared(movement, transfer)
    if (this.#refusal !== undefined) throw this.#refusal
    const facts = this.#facts.get(movement)
    assert(facts !== undefined && this.#policy !== undefined, 'a governed movement must declare its payment')
    const { now } = view
    const counts: Count[] = []
    const rule = decidingRule(facts, new Values(transfer, this.#prices), now, counts)
    const requirement = rule && requirementOf(rule, this.#policy, transfer)
    const { origin } = movement
    return {
      decision: requirement === undefined ? decided : awaitApproval(decided, requirement, origin, view),
      count: () => countIn(counts, now),
    }
  }

  async write(): Promise<void> {
    await this.#windows.write(this.#batch.tx, this.#batch.customerId)
  }
}

/** Reads the entries of the address book for the destinations of these payments. */
export async function readEntries(
  tx: Transaction,
  macs: RowMacs,
  customerId: string,
  facts: readonly Facts[],
): Promise<void> {
  const found = facts.map((paid) => ({ paid, places: addressPlacesOf(paid.payment) }))
  const entries = await entriesAt(
    tx,
    macs,
    customerId,
    found.flatMap(({ places }) => places),
  )
  for (const { paid, places } of found)
    paid.entries = places.flatMap((place) => entries.get(keyOfPlace(place)) ?? [])
}

/** Returns the rule that decides a payment; undefined where none does. Adds to `counts` what the payment counts in windows. */
export const decidingRule = (
  facts: Facts,
  values: Pick<Values, 'in'>,
  now: Pick<Moment, 'micros'>,
  counts: Count[],
): Rule | undefined =>
  facts.shortlist.rules.find((rule) => fits(rule, facts) && decides(rule, facts, values, now, counts))?.rule

/** Whether a rule that fits decides. Adds to `counts` what the payment counts in the rule's windows. */
function decides(
  { limit, restricts }: CompiledRule,
  { windows }: Facts,
  values: Pick<Values, 'in'>,
  now: Pick<Moment, 'micros'>,
  counts: Count[],
): boolean {
  if (limit === undefined) return true
  const { most, periodMicros, windowAt } = limit
  // A payment without a price counts as the whole limit and is beyond the limit.
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

export const countIn = (counts: readonly Count[], now: Pick<Moment, 'micros'>): void =>
  counts.forEach(({ window, periodMicros, value }) => window.add(now.micros, periodMicros, value))

/** Whether a payment goes to a profile, at once: such payments have no destination in their record. */
const isToProfile = (type: string): boolean =>
  type === 'INTERNAL_TRANSFER_DEBIT' || type === 'PAXOS_TRANSFER_DEBIT'

/** Asserts that a movement makes the payment that it declared: another one would be judged by the wrong facts. */
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
export function factsOf<M extends Pick<Movement, 'payment' | 'origin'>>(
  policy: Compiled,
  movements: readonly M[],
  get: View['get'],
): Map<M, Facts> {
  const facts = new Map<M, Facts>()
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

/** Computes a value when it is first asked for: the checksum of an address takes longer than all rules. */
function once<T>(compute: () => T): () => T {
  let known: { value: T } | undefined
  return () => (known ??= { value: compute() }).value
}

/** The API client or operator that ordered a payment; undefined for a payment of the worker without an initiator. */
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

/** One bank account may be registered as several fiat accounts, with different spellings of its number. */
function bankOf(account: FiatAccount | undefined, id: string): string {
  const number = account?.fiat_network_instructions.wire.account_number ?? ''
  const plain = number
    .toUpperCase()
    .replaceAll(/[^0-9A-Z]/g, '')
    .replace(/^0+/, '')
  return plain === '' ? id : plain
}

interface AddressPlace {
  crypto_network: string
  address: string
}
const keyOfPlace = ({ crypto_network, address }: AddressPlace) => `${crypto_network} ${address}`

/** Returns the place of a payment's destination in the address book; none for a wire or an internal transfer. */
const addressPlacesOf = ({ crypto_network, destination }: Payment): AddressPlace[] =>
  crypto_network === undefined ? [] : [{ crypto_network, address: canonicalOf(crypto_network, destination) }]

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
 * Requests the windows in which a policy may count these payments, to be locked next; the address book may be unread. EARLY:
 * windows known from the payments alone. LATE: those of identities and bank accounts, which are read with the balances.
 */
export function wantWindows(
  windows: Windows,
  facts: ReadonlyMap<unknown, Facts>,
  when: 'EARLY' | 'LATE',
): void {
  for (const paid of facts.values())
    for (const compiledRule of paid.shortlist.windowed) {
      if ((needsRecords(compiledRule, paid) ? 'LATE' : 'EARLY') !== when) continue
      if (!fitsBeforeDestination(compiledRule, paid)) continue
      const { rule, limit } = compiledRule
      paid.windows[limit!.windowAt!] = subjectsOf(limit!, paid).map((subject) =>
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
export class Values {
  readonly #asset: string
  readonly #total: bigint
  readonly #prices: UsdPrices
  #usd: bigint | undefined

  constructor({ asset, total }: Pick<Transfer, 'asset' | 'total'>, prices: UsdPrices) {
    this.#asset = asset
    this.#total = parseAmount(total, decimalsOf(asset))!
    this.#prices = prices
  }

  /**
   * The value in minor units of the limit's asset; in USD with eight decimals, rounded up. Undefined without a price: then
   * it is unknown whether the payment is within the limit.
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
export function requirementOf(
  { id: rule_id, action, approvals, role = DEFAULT_ROLE }: Rule,
  { version: policy_version, deadlineSeconds: deadline_seconds }: Compiled,
  { type }: Pick<Transfer, 'type'>,
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
