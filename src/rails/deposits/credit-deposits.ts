import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { parseStoredAmount } from '../../contract/assets/amount.ts'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, violatedConstraint, type Database, type Queryable } from '../../db/database.ts'
import { inParts } from '../../db/each-alone.ts'
import type { RailsContext } from '../payouts/context.ts'
import { creditedAs, CREDITED_ONCE } from '../../money/movements/credited-deposits.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { SeenOtherwise } from '../../money/movements/seen-deposits.ts'
import { freeze } from '../../money/records/freezes.ts'
import { selectOrchestratedPayments } from '../../money/records/orchestration.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { usdPrices } from '../../money/records/usd-prices.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { ChainReorganised, type DepositScan, type NetworkAdapter } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { lacksSettings, screenedSince } from '../screening/requirement.ts'
import type { Screening } from '../screening/screening.ts'
import { byCustomer, keepRenewing, LEASE_MS } from '../payouts/lease.ts'
import { paymentOfDeposit } from '../screening/screened-payments.ts'
import { failSeen } from './see-deposits.ts'
import { isReorganised, stopForReorganisation, takeBack } from './deposit-reorganisations.ts'
import {
  FORGED_DEPOSIT,
  forget,
  foundDepositOf,
  isRecorded,
  keepWaiting,
  markCredited,
  recordIncoming,
  selectDue,
  type IncomingTransfer,
  type DepositWaitingReason,
  type Waiting,
} from './incoming-transfers.ts'
import { recordRefills } from '../treasury/found-refills.ts'
import { creditTo, FORGED_ADDRESS, genuineAmong, selectOwners, type AddressOwner } from './owners.ts'
import { divideLarge } from './large-deposits.ts'
import { clearMinimum, wakeSmallDeposits } from './small-deposits.ts'

const LOOP = originOfLoop('deposits')

/** With `screening`, only deposits are credited that it allows. */
export type Crediting = Pick<RailsContext, 'db' | 'ledger' | 'settings'> & {
  screening?: Screening | undefined
  /** Who credits them; by default the loop of deposits. */
  origin?: Origin
}

export interface DepositRound {
  credited: number
  /** There is more to read at once. */
  isBehind: boolean
  /** How many deposits began to wait in this round, by reason. Small deposits are not counted. */
  waiting: ReadonlyMap<DepositWaitingReason, number>
  /** The deactivated profiles that the round credited: their owners may not look at them any more. */
  deactivated: ReadonlySet<string>
}

interface Gathered {
  waiting: Map<DepositWaitingReason, number>
  deactivated: Set<string>
}

export const readable = (networks: RailsContext['networks']): [CryptoNetwork, NetworkAdapter][] =>
  [...networks].flatMap(([network, adapter]): [CryptoNetwork, NetworkAdapter][] =>
    network === 'WIRE' || adapter.scanDeposits === undefined ? [] : [[network, adapter]],
  )

/**
 * Scans one network from its cursor, and credits the deposits that it found and those that waited. New deposits are
 * recorded in the transaction that moves the cursor. A deposit that cannot be credited waits, and delays neither the others
 * nor the cursor. The database guarantees that an output or log is credited once. Throws when the node does not answer.
 */
export async function creditDepositsOn(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<DepositRound> {
  const gathered: Gathered = { waiting: new Map(), deactivated: new Set() }
  if (await isReorganised(context.db, network)) return { credited: 0, isBehind: false, ...gathered }
  const failures: unknown[] = []
  const failed = (error: unknown) => void failures.push(error)
  const isBehind = await readOn(context, network, adapter).catch(failed)
  const credited = await creditWaiting(context, network, adapter, gathered).catch(failed)
  if (failures.length > 0) throw failures[0]
  return { credited: credited ?? 0, isBehind: isBehind ?? false, ...gathered }
}

// ---------------------------------------------------------------------------------------------- reading

/** Scans a network from its cursor, unless another worker does. Returns whether there is more to read at once. */
async function readOn(
  { db, ledger }: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<boolean> {
  if (adapter.scanDeposits === undefined) return false
  const lease = await takeLease(db, network)
  if (lease === undefined) return false
  try {
    // With no transaction open, because nodes may take long and connections are few.
    const stop = keepRenewing([lease], (own) => renewLease(db, network, own, LEASE_MS))
    let scan: DepositScan
    try {
      scan = await adapter.scanDeposits(lease.cursor)
    } finally {
      await stop()
    }
    // Before the cursor moves, because the network reports a removed deposit once.
    if (scan.removed !== undefined) await takeBack(db, network, scan.removed)
    await transaction(db, async (tx) => {
      const { rowCount } = await tx.query(
        `
        insert into network_cursors as c (network, cursor, updated_at) values ($1, $2, clock_timestamp())
        on conflict (network) do update
          set cursor = excluded.cursor, updated_at = excluded.updated_at, leased_until = null,
              earlier = case when c.cursor = excluded.cursor then c.earlier
                             else (array_prepend(c.cursor, c.earlier))[1:${EARLIER_MAX}] end
          where c.cursor = $3`,
        [network, scan.cursor, lease.cursor],
      )
      // Another worker was faster, and has recorded these deposits.
      if (rowCount === 0) return renewLease(tx, network, lease, null)
      await recordIncoming(tx, ledger, network, scan.found)
      await recordRefills(tx, network, scan.refills ?? [])
      await scan.keep?.(tx)
    })
    if (scan.failed !== undefined && scan.failed.length > 0)
      throw new AggregateError(scan.failed, `${scan.failed.length} addresses of ${network} were not read`)
    return scan.isBehind ?? false
  } catch (error) {
    await renewLease(db, network, lease, null)
    if (error instanceof ChainReorganised) await stopForReorganisation(db, network, adapter, error.message)
    throw error
  }
}

const EARLIER_MAX = 64

interface Lease {
  cursor: string | null
  leased_until: string | null
}

/**
 * Leases a network for reading; undefined while another worker has a lease. One that would outlast a new one shows that the
 * clock was set back, and is ignored.
 */
async function takeLease(db: Database, network: CryptoNetwork): Promise<Lease | undefined> {
  const { rows } = await db.query<{ cursor: string; leased_until: string }>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
    where network = $1 and (leased_until is null or leased_until <= clock_timestamp()
                            or leased_until > clock_timestamp() + make_interval(secs => $2::float8 / 1000))
    returning cursor, leased_until`,
    [network, LEASE_MS],
  )
  if (rows[0] !== undefined) return rows[0]
  const { rowCount } = await db.query('select 1 from network_cursors where network = $1', [network])
  return rowCount === 0 ? { cursor: null, leased_until: null } : undefined
}

/** Renews a worker's own lease, or ends it where `ms` is null. A lost one is not taken again: its cursor may be old. */
async function renewLease(db: Queryable, network: CryptoNetwork, lease: Lease, ms: number | null) {
  if (lease.leased_until === null) return
  const { rows } = await db.query<Pick<Lease, 'leased_until'>>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    where network = $1 and leased_until = $2
    returning leased_until`,
    [network, lease.leased_until, ms],
  )
  lease.leased_until = rows[0]?.leased_until ?? null
}

// ---------------------------------------------------------------------------------------------- crediting

/** Most deposits that are checked together: a transaction that pays many is asked for once. */
const DEPOSITS_PAGE = 1_000
const PAGES_MAX = 10
const CREDITED_TOGETHER = 200

/** The networks whose small deposits were compared with the minimum since this process began. */
const compared = new WeakSet<NetworkAdapter>()

async function creditWaiting(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  gathered: Gathered,
): Promise<number> {
  const minimumOf = adapter.minimumDeposit?.bind(adapter)
  if (minimumOf !== undefined && !compared.has(adapter)) {
    await wakeSmallDeposits(context.db, network, minimumOf)
    compared.add(adapter)
  }
  let credited = 0
  for (let page = 1; page <= PAGES_MAX; page++) {
    const due = await selectDue(context.db, network, DEPOSITS_PAGE)
    if (due.length === 0) break
    const failed: Waiting[] = []
    await inParts(
      due,
      async (some) => {
        credited += await creditDue(context, network, adapter, some, gathered)
        return []
      },
      (incoming, error): undefined =>
        void failed.push({ incoming, reason: 'FAILED', detail: (error as Error).message }),
      (error) => error instanceof NodeFailure,
    )
    await wait(context.db, failed, gathered)
  }
  return credited
}

const pricesIn = ({ db, settings }: Pick<Crediting, 'db' | 'settings'>) =>
  usdPrices(db, settings.mode === 'sandbox')

/**
 * Credits a recorded deposit for which one node's word is not enough, by an operator's. Everything else is checked as ever. Throws
 * an Error where it waits for another reason.
 */
export async function creditVouched(
  context: Crediting & { origin: Origin },
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  incoming: IncomingTransfer,
): Promise<void> {
  const believing = { ...adapter, oneNodeMax: undefined, minimumDeposit: undefined }
  const gathered = { waiting: new Map<DepositWaitingReason, number>(), deactivated: new Set<string>() }
  const credited = await creditDue(context, network, believing, [incoming], gathered)
  if (credited === 0)
    throw new Error(`${incoming.crypto_tx_hash} is not credited: 'bursar deposits list' says why`)
}

async function creditDue(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  due: IncomingTransfer[],
  gathered: Gathered,
): Promise<number> {
  const minimumOf = adapter.minimumDeposit?.bind(adapter)
  // What is never spent counts for no minimum.
  const spendable = await withoutTokens(context, adapter, due, gathered)
  // Small deposits are left out before a second node is asked: anybody can send any amount of dust.
  const cleared =
    minimumOf === undefined ? spendable : await clearMinimum(context.db, network, spendable, minimumOf)
  const { enough, needsSecondNode, large } = await divideLarge(adapter, cleared, () => pricesIn(context))
  const { agreed, doubted } = await verified(context, network, adapter, enough, needsSecondNode)
  await wait(context.db, [...large, ...doubted], gathered)
  let credited = 0
  for (let start = 0; start < agreed.length; start += CREDITED_TOGETHER) {
    const some = agreed.slice(start, start + CREDITED_TOGETHER)
    credited += await creditSome(context, network, adapter, some, gathered)
  }
  return credited
}

async function creditSome(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  agreed: IncomingTransfer[],
  gathered: Gathered,
): Promise<number> {
  const { db, ledger, screening, origin } = context
  const { owners, owned, forged } = await genuineOwners(context, network, agreed)
  const { allowed, held } = await screened(db, screening, owned, owners)
  const prices = await pricesIn(context)
  const hops = await hopsOf(db, network, allowed)
  const done: { incoming: IncomingTransfer; transfer_id: string; isNew: boolean }[] = []
  const waiting = [...forged, ...held]
  // All at once, so that the ledger posts the deposits of a customer in one transaction.
  await Promise.all(
    allowed.map(async (incoming) => {
      try {
        const owner = theOwner(owners.get(incoming.address))
        const terms = { owner, prices, hops: hops.get(incoming) ?? 0, origin }
        done.push({ incoming, ...(await credit({ db, ledger }, adapter, incoming, terms)) })
      } catch (error) {
        waiting.push({ incoming, reason: 'FAILED', detail: (error as Error).message })
      }
    }),
  )
  await markCredited(db, done)
  for (const profile of await deactivatedAmong(
    db,
    done.flatMap(({ incoming, isNew }) => (isNew ? (owners.get(incoming.address) ?? []) : [])),
  ))
    gathered.deactivated.add(profile)
  await wait(db, waiting, gathered)
  return done.filter(({ isNew }) => isNew).length
}

/** The owners by address, the deposits to credit, and the forged ones: Bursar did not record them or give out their address. */
async function genuineOwners(
  { db, ledger }: Crediting,
  network: CryptoNetwork,
  deposits: IncomingTransfer[],
): Promise<{ owners: Map<string, AddressOwner[]>; owned: IncomingTransfer[]; forged: Waiting[] }> {
  const all = await selectOwners(db, network, deposits)
  const owners = new Map([...all].map(([address, rows]) => [address, genuineAmong(ledger, rows)]))
  const owned: IncomingTransfer[] = []
  const forged: Waiting[] = []
  for (const incoming of deposits) {
    const genuine = owners.get(incoming.address)
    const detail =
      genuine?.length === 0
        ? FORGED_ADDRESS
        : genuine && !isRecorded(ledger, incoming)
          ? FORGED_DEPOSIT
          : undefined
    if (detail === undefined) owned.push(incoming)
    else forged.push({ incoming, reason: 'FORGED', detail })
  }
  return { owners, owned, forged }
}

async function deactivatedAmong(db: Database, owners: readonly AddressOwner[]): Promise<string[]> {
  if (owners.length === 0) return []
  const { rows } = await db.query<{ id: string }>(
    'select id from profiles where customer_id = any ($1) and id = any ($2) and deactivated_at is not null',
    [[...new Set(owners.map(({ customer_id }) => customer_id))], owners.map(({ profile_id }) => profile_id)],
  )
  return rows.map(({ id }) => id)
}

/** Records why deposits wait, and counts those that begin to. */
async function wait(db: Database, waiting: Waiting[], gathered: Gathered): Promise<void> {
  await keepWaiting(db, waiting)
  for (const { incoming, reason } of waiting) {
    // A deposit always waits for its screening and its confirmations first, which is not counted.
    if (reason !== 'SCREENING' && reason !== 'CONFIRMATIONS' && incoming.attempts === 0)
      gathered.waiting.set(reason, (gathered.waiting.get(reason) ?? 0) + 1)
  }
}

/** Divides deposits by their screening. Without screening, all of them are allowed while none must be screened. */
async function screened(
  db: Database,
  screening: Screening | undefined,
  deposits: IncomingTransfer[],
  owners: ReadonlyMap<string, AddressOwner[]>,
): Promise<{ allowed: IncomingTransfer[]; held: Waiting[] }> {
  if (screening === undefined) {
    const since = deposits.length === 0 ? undefined : await screenedSince(db)
    if (since === undefined) return { allowed: deposits, held: [] }
    const detail = lacksSettings(since)
    return { allowed: [], held: deposits.map((incoming) => ({ incoming, reason: 'SCREENING', detail })) }
  }
  const allowed: IncomingTransfer[] = []
  const held: Waiting[] = []
  for (const own of byCustomer(deposits).values()) {
    const payments = new Map(
      own.flatMap((incoming) => {
        const owner = owners.get(incoming.address)?.[0]
        return owner === undefined ? [] : [[incoming, paymentOfDeposit(incoming, owner)] as const]
      }),
    )
    const standings = await screening.standingsOf(db, [...payments.values()])
    for (const incoming of own) {
      const payment = payments.get(incoming)
      const standing = payment && standings.get(payment.subject)!
      // A deposit whose address nobody owns passes: its credit fails for that reason.
      if (standing === undefined || standing.allowed) allowed.push(incoming)
      else held.push({ incoming, reason: 'SCREENING', detail: standing.detail })
    }
  }
  return { allowed, held }
}

/** Keeps coins back that the wallet never spends: their owner would withdraw others. Forgets what a person has returned. */
async function withoutTokens(
  { db }: Crediting,
  adapter: NetworkAdapter,
  due: IncomingTransfer[],
  gathered: Gathered,
): Promise<IncomingTransfer[]> {
  const coins = due.length === 0 ? undefined : await adapter.tokenCoins?.(due.map(foundDepositOf))
  if (coins === undefined) return due
  const held: Waiting[] = []
  const detail = 'the coin has tokens on it, and the hot wallet spends none of those: return it'
  for (const [index, incoming] of due.entries())
    if (coins[index] === 'HELD') held.push({ incoming, reason: 'HAS_TOKENS', detail })
    else if (coins[index] === 'SPENT') await forget(db, incoming)
  await wait(db, held, gathered)
  return due.filter((_, index) => coins[index] === undefined)
}

/** Verifies found deposits against their receipts and a second node. Where two nodes disagree, payouts over the network stop. */
async function verified(
  { db, settings }: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  due: IncomingTransfer[],
  needsSecondNode: ReadonlySet<IncomingTransfer>,
): Promise<{ agreed: IncomingTransfer[]; doubted: Waiting[] }> {
  if (adapter.verifyDeposits === undefined) return { agreed: due, doubted: [] }
  // A sandbox's deposit from a time when the network was simulated has no block, and no node knows it.
  const isOnChain = ({ block_number }: IncomingTransfer) => block_number !== null || settings.mode === 'live'
  const onChain = due.filter(isOnChain)
  const verdicts = await adapter.verifyDeposits(
    onChain.map((one) => ({
      ...foundDepositOf(one),
      ...(needsSecondNode.has(one) && { needsSecondNode: true as const }),
    })),
  )
  const agreed = due.filter((one) => !isOnChain(one))
  const doubted: Waiting[] = []
  for (const [index, incoming] of onChain.entries()) {
    const verdict = verdicts[index]!
    if (verdict.verdict === 'AGREES') {
      agreed.push(incoming)
      continue
    }
    const { detail } = verdict
    const isDisagreement = verdict.verdict === 'DISAGREES'
    if (isDisagreement) await freeze(db, LOOP, { kind: 'NETWORK', network }, 'NODES_DISAGREE', detail)
    const reason = isDisagreement ? 'NODES_DISAGREE' : verdict.secondNode === true ? 'SECOND_NODE' : 'FAILED'
    doubted.push({ incoming, reason, detail })
  }
  return { agreed, doubted }
}

/** The owner of an address. Throws an Error where two records name different profiles. */
function theOwner(owners: AddressOwner[] | undefined): AddressOwner {
  const [owner, ...others] = owners ?? []
  if (owner === undefined) throw new Error('its deposit address is not there any more')
  if (others.some(({ profile_id }) => profile_id !== owner.profile_id))
    throw new Error('its deposit address belongs to more than one profile')
  return owner
}

/** For the deposits that an orchestration of this platform has paid, how many orchestrations their money has come through. */
async function hopsOf(
  db: Database,
  network: CryptoNetwork,
  deposits: IncomingTransfer[],
): Promise<ReadonlyMap<IncomingTransfer, number>> {
  const hashes = deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)
  const payments = hashes.length === 0 ? [] : await selectOrchestratedPayments(db, network, hashes)
  const canonical = (address: string) => canonicalAddress(network, address, { testNetworks: true })
  const hops = new Map<IncomingTransfer, number>()
  for (const incoming of deposits) {
    const own = payments.filter(
      ({ crypto_tx_hash, crypto_tx_index, destination_address }) =>
        crypto_tx_hash === incoming.crypto_tx_hash &&
        (crypto_tx_index === null || crypto_tx_index === incoming.crypto_tx_index) &&
        canonical(destination_address) === canonical(incoming.address),
    )
    if (own.length > 0) hops.set(incoming, Math.max(...own.map((payment) => payment.hops)))
  }
  return hops
}

/** Credits a deposit. Returns its transfer, also where it was credited before. */
async function credit(
  { db, ledger }: Pick<RailsContext, 'db' | 'ledger'>,
  { isSimulated }: Pick<NetworkAdapter, 'isSimulated'>,
  incoming: IncomingTransfer,
  terms: { owner: AddressOwner; prices: UsdPrices; hops: number; origin: Origin | undefined },
): Promise<{ transfer_id: string; isNew: boolean }> {
  const { owner, prices, hops, origin = originOfLoop('deposits') } = terms
  const { network, asset, crypto_tx_hash, crypto_tx_index } = incoming
  const known = findAsset(asset)
  if (known === undefined) throw new Error(`${asset} is not in the catalogue any more`)
  const minor = parseStoredAmount(incoming.amount, known.decimals)
  const arrived = deposit(
    owner.customer_id,
    {
      ...creditTo(owner, incoming, minor, prices),
      arrivedAt: isSimulated ? `simulated:${network}` : `custody:${network}`,
      hops,
      seenAs: { network, crypto_tx_hash, crypto_tx_index },
    },
    origin,
  )
  for (let attempt = 1; attempt <= CREDIT_ATTEMPTS_MAX; attempt++) {
    try {
      const { transfer } = await ledger.submit(owner.customer_id, arrived)
      return { transfer_id: transfer.id, isNew: true }
    } catch (error) {
      if (error instanceof SeenOtherwise) await failSeen(db, owner.customer_id, error.transfer_id)
      else if (![CREDITED_ONCE, 'transfers_arrival'].includes(violatedConstraint(error) ?? '')) throw error
    }
    const transfer_id = await creditedAs(db, owner.customer_id, { network, crypto_tx_hash, crypto_tx_index })
    if (transfer_id !== undefined) return { transfer_id, isNew: false }
    // Its PENDING transfer was created meanwhile, or has failed now.
  }
  throw new Error('its pending transfer changes too often')
}

/** How often a credit is decided again because the PENDING transfer of its deposit has changed. */
const CREDIT_ATTEMPTS_MAX = 3
