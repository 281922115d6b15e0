import { Buffer } from 'node:buffer'
import type { Hex } from 'viem'
import { hexToBigInt, hexToNumber } from 'viem/utils'
import { transaction, violatedConstraint, type Database, type Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import type { DepositKeys } from './deposit-keys.ts'
import { confirmedHead, standingsOf } from './confirmations.ts'
import { at, headOf, type Receipt } from './node.ts'
import { closeReservation, openReservation } from './nonces.ts'
import {
  balancesAt,
  feeMax,
  feePaid,
  feesNow,
  gasWithRoom,
  isNative,
  offChain,
  onChain,
  parse,
  PLAIN_GAS,
  publishingFee,
  replacement,
  send,
  signed,
  tooDear,
  transferOf,
  type EvmChain,
  type EvmSigner,
  type EvmTransaction,
  type Fees,
  type Sent,
} from './transactions.ts'
import { tryTransfers, type Move } from './simulation.ts'
import { leastWorthSweeping, sweepGasPrice } from './sweep-worth.ts'
import type { NetworkFee, SignedTransaction, SweepRound } from '../network.ts'

/** Most addresses where one call begins a sweep. */
const PLACES_MAX = 100
/** Most balances that one statement refreshes, and how long one call goes on with the next of them. */
const REFRESHED_MAX = 500
const REFRESH_MS_MAX = 5_000
/** How long the network must say that a transaction can never be mined before it ends as VOID. */
const LOST_SECONDS = 300
/** What a token's transfer takes at least: addresses that hold less than this is worth are not looked at. */
const TOKEN_GAS_MIN = 45_000n
/** Most sweeps of one address whose bytes are broadcast again. */
const SWEEPS_AGAIN_MAX = 20
/** Most transactions under way that one call follows. */
const UNDER_WAY_MAX = 1_000

/** A transaction of sweeping that is under way, with where the key of its address comes from. */
interface Sweep extends Sent {
  customer_id: string
  id: string
  address: Hex
  derivation: string
  kind: 'TOP_UP' | 'SWEEP'
  asset: string
  state: 'SIGNED' | 'BROADCAST'
  stuck: boolean
  /** The network has said before that it can never be mined. */
  lost: boolean
}

/** A deposit address that may hold enough of an asset to be worth the fee of sweeping it. */
interface Place {
  customer_id: string
  address: Hex
  derivation: string
  /** Tokens first: the native asset is what sweeping them is paid with. */
  assets: string[]
}

/** What to do at an address next. */
interface Plan {
  kind: 'TOP_UP' | 'SWEEP'
  asset: string
  /** In units of the chain. */
  amount: bigint
  gas: bigint
  fees: Pick<EvmTransaction, 'maxFeePerGas' | 'maxPriorityFeePerGas'>
  /** Why the asset is not swept after all: it would deliver less than is sent. */
  loses?: string | undefined
}

/** What sweeping costs now, and what it is compared with. */
interface Market {
  fees: Fees
  /** Wei for a unit of gas of a sweep. */
  gasPrice: bigint
  prices: SweepRound['prices']
}

/**
 * Moves what lies at deposit addresses to the hot wallet, a step at a time: gas for a token's transfer from the hot
 * wallet, the token, then the native asset. A step is a transaction that is kept before it is broadcast; there is at
 * most one under way at an address, and its nonce makes it once. An amount that is not worth the fee stays until more
 * has come or fees fall (`leastWorthSweeping`). The fee is posted in the transaction that ends the sweep. Gives how many
 * steps it took; throws what failed, after the other addresses. On a frozen network nothing is signed; kept transactions
 * are still followed.
 */
export async function sweep(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  round: SweepRound,
): Promise<number> {
  await chain.ready()
  const fees = await feesNow(chain)
  const failures: unknown[] = []
  const failed = (error: unknown) => void failures.push(error)
  let steps = await followAll(db, chain, keys, fees, round, failed)
  await refreshStale(db, chain)
  const isCheap = fees.current <= chain.sweeps.feeCeiling && tooDear(fees, chain) === undefined
  if (isCheap && !(await transaction(db, (tx) => round.isFrozen(tx, chain.network)))) {
    const market = { fees, gasPrice: sweepGasPrice(chain, fees), prices: round.prices }
    const losses = new Map<string, string>()
    for (const place of await worthSweeping(db, chain, market, failed)) {
      try {
        if (await begin(db, chain, keys, market, place, { isFrozen: round.isFrozen, losses })) steps += 1
      } catch (error) {
        failed(error)
      }
    }
    for (const reason of losses.values()) failed(new Error(reason))
    steps += await followAll(db, chain, keys, fees, round, failed, 'SIGNED')
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} sweeps failed`)
  return steps
}

// ---------------------------------------------------------------------------------------------- under way

/** Takes every transaction that is under way a step on. Gives how many moved. */
async function followAll(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  fees: Fees,
  round: SweepRound,
  failed: (error: unknown) => void,
  only?: 'SIGNED',
): Promise<number> {
  const { rows } = await db.query<Sweep>(
    `
    select s.customer_id, s.id, s.address, s.kind, s.asset, s.state, s.raw_transaction, s.crypto_tx_hash, s.replaced,
           s.lost_since is not null as lost, s.signed_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000) as stuck,
           (select d.derivation from deposit_addresses d
            where d.customer_id = s.customer_id and d.address = s.address limit 1) as derivation
    from evm_sweeps s
    where s.network = $1 and s.state in ('SIGNED', 'BROADCAST') and ($3::text is null or s.state = $3)
    order by s.signed_at
    limit ${UNDER_WAY_MAX}`,
    [chain.network, chain.stuckAfterMs, only],
  )
  const unsent = rows.filter(({ state }) => state === 'SIGNED')
  const refusals = await send(chain, unsent)
  let moved = 0
  const refused = unsent.filter((_, index) => refusals[index] !== undefined && !refusals[index].isTooCheap)
  const lost = new Set(await neverMined(chain, refused))
  for (const [index, one] of unsent.entries()) {
    const refusal = refusals[index]
    if (one.lost && !lost.has(one)) await move(db, one, 'SIGNED')
    if (lost.has(one) && (await endLost(db, chain, one, round))) moved += 1
    else if (refusal !== undefined && !refusal.isTooCheap) failed(new Error(refusal.reason))
    else if (await move(db, one, 'BROADCAST')) moved += 1
  }
  const sent = rows.filter(({ state }) => state === 'BROADCAST')
  const standings = sent.length === 0 ? [] : await standingsOf(chain, sent)
  for (const [index, one] of sent.entries()) {
    const standing = standings[index]!
    if (standing.state === 'MINED') {
      if (standing.deep && (await end(db, chain, one, standing.receipt, round))) moved += 1
      continue
    }
    const bumped = one.stuck ? await bump(chain, keys, fees, one) : undefined
    if (bumped !== undefined && (await replace(db, chain, one, bumped, round.isFrozen))) moved += 1
    else if (standing.state === 'UNKNOWN' && (await move(db, one, 'SIGNED'))) moved += 1
  }
  return moved
}

/** Only from the state and the bytes that were seen: another worker may have been faster. */
async function move(db: Database, one: Sweep, state: 'SIGNED' | 'BROADCAST'): Promise<boolean> {
  const { rowCount } = await db.query(
    `update evm_sweeps set state = $5, lost_since = null
     where customer_id = $1 and id = $2 and state = $3 and crypto_tx_hash = $4`,
    [one.customer_id, one.id, one.state, one.crypto_tx_hash, state],
  )
  return rowCount === 1
}

/**
 * Those that can never be mined: deep in the chain their nonce is used, and the node has none of their transactions. A
 * backend that lagged gave a used nonce when they were signed, or the database is older than what replaced them.
 */
async function neverMined(chain: EvmChain, refused: readonly Sweep[]): Promise<Sweep[]> {
  if (refused.length === 0) return []
  const deep = await confirmedHead(chain)
  const nonces = await chain.node.all<Hex>(
    refused.map(({ kind, address }) => {
      const sender = kind === 'TOP_UP' ? chain.hotWallet.address : address
      return ['eth_getTransactionCount', sender, at(deep)] as const
    }),
  )
  const used = refused.filter((one, index) => {
    return Number(hexToBigInt(nonces[index]!)) > parse(one.raw_transaction).nonce
  })
  const standings = used.length === 0 ? [] : await standingsOf(chain, used)
  return used.filter((_, index) => standings[index]!.state === 'UNKNOWN')
}

/**
 * Ends a sweep that can never be mined, once the network has said so for a while: one answer may be of a node that lags.
 * It costs nothing; the balance is read again, and a new sweep is planned with a new nonce.
 */
async function endLost(db: Database, chain: EvmChain, one: Sweep, round: SweepRound): Promise<boolean> {
  const { rows } = await db.query<{ isLost: boolean }>(
    `
    update evm_sweeps set lost_since = coalesce(lost_since, clock_timestamp())
    where customer_id = $1 and id = $2 and state = 'SIGNED' and crypto_tx_hash = $3
    returning lost_since <= clock_timestamp() - make_interval(secs => $4) as "isLost"`,
    [one.customer_id, one.id, one.crypto_tx_hash, LOST_SECONDS],
  )
  if (rows[0]?.isLost !== true) return false
  const nothing = { asset: chain.gasAsset, amount: '0' }
  return endAs(
    db,
    chain,
    one,
    { state: 'VOID', from: 'SIGNED', hash: one.crypto_tx_hash, amount: null },
    nothing,
    round,
  )
}

/** In the chain to stay. What it has cost is kept, and posted; the balances are looked at again. */
async function end(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  receipt: Receipt,
  round: SweepRound,
): Promise<boolean> {
  const state = hexToBigInt(receipt.status) === 1n ? 'DONE' : 'FAILED'
  const made = receipt.transactionHash
  // Those that were replaced moved another amount.
  const { value } =
    made === one.crypto_tx_hash
      ? parse(one.raw_transaction)
      : await chain.node.call<{ value: Hex }>('eth_getTransactionByHash', made)
  const amount = isNative(chain, one.asset) ? offChain(chain, one.asset, BigInt(value)) : null
  return endAs(
    db,
    chain,
    one,
    { state, from: 'BROADCAST', hash: made, amount, block: hexToBigInt(receipt.blockNumber) },
    feePaid(chain, receipt),
    round,
  )
}

interface SweepEnd {
  state: 'DONE' | 'FAILED' | 'VOID'
  from: Sweep['state']
  hash: string
  /** Null where it is as planned. */
  amount: string | null
  /** The block that made it. */
  block?: bigint
}

async function endAs(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  { state, from, hash, amount, block }: SweepEnd,
  networkFee: NetworkFee,
  { post }: SweepRound,
): Promise<boolean> {
  return transaction(db, async (tx) => {
    // The row is locked from here on: of two workers that end it, one finds that it has ended, and posts nothing.
    const { rowCount } = await tx.query(
      `
      update evm_sweeps
      set state = $3, crypto_tx_hash = $4, network_fee = $5, amount = coalesce($6, amount),
          ended_at = clock_timestamp(), audit_block = $8
      where customer_id = $1 and id = $2 and state = $7`,
      [
        ...[one.customer_id, one.id, state, hash, networkFee.amount, amount, from],
        // What it moved is held against the deposits once they are read up to there (`audit-sweeps.ts`).
        one.kind === 'SWEEP' && state === 'DONE' ? block?.toString() : null,
      ],
    )
    if (rowCount === 0) return false
    await tx.query(
      `update evm_holdings set stale_at = clock_timestamp()
       where customer_id = $1 and network = $2 and address = $3`,
      [one.customer_id, chain.network, one.address],
    )
    if (state !== 'VOID')
      await post(tx, { customer_id: one.customer_id, id: one.id, network: chain.network, networkFee })
    return true
  })
}

/** The same with higher fees. What sweeps the native asset pays them from what it moves. */
async function bump(
  chain: EvmChain,
  keys: DepositKeys,
  fees: Fees,
  { kind, asset, address, derivation, raw_transaction }: Sweep,
): Promise<SignedTransaction | undefined> {
  const signer = kind === 'TOP_UP' ? chain.hotWallet : keys.signerOf(address, derivation)
  if (signer === undefined) return undefined
  const fromValue = kind === 'SWEEP' && isNative(chain, asset)
  const ceiling = kind === 'TOP_UP' ? chain.feeCeiling : chain.sweeps.feeCeiling
  const bumped = await replacement({ ...chain, feeCeiling: ceiling }, fees, signer, raw_transaction, {
    fromValue,
  })
  if (bumped === undefined) return undefined
  const { value, ...rest } = parse(bumped.raw_transaction)
  const there = hexToBigInt(await chain.node.call<Hex>('eth_getBalance', signer.address, 'latest'))
  return there >= value + feeMax(rest) ? bumped : undefined
}

async function replace(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  { raw_transaction, crypto_tx_hash }: SignedTransaction,
  isFrozen: SweepRound['isFrozen'],
): Promise<boolean> {
  const { value } = parse(raw_transaction)
  const amount = isNative(chain, one.asset) ? offChain(chain, one.asset, value) : null
  return transaction(db, async (tx) => {
    if (await isFrozen(tx, chain.network)) return false
    const { rowCount } = await tx.query(
      `
      update evm_sweeps
      set raw_transaction = $4, crypto_tx_hash = $5, replaced = replaced || crypto_tx_hash, state = 'SIGNED',
          amount = coalesce($6, amount), signed_at = clock_timestamp()
      where customer_id = $1 and id = $2 and state = 'BROADCAST' and crypto_tx_hash = $3`,
      [one.customer_id, one.id, one.crypto_tx_hash, raw_transaction, crypto_tx_hash, amount],
    )
    return rowCount === 1
  })
}

// ---------------------------------------------------------------------------------------------- balances

interface Holding {
  customer_id: string
  address: Hex
  asset: string
  balance: string
  stale_at: string | null
  under_way: boolean
}

const HOLDINGS = `
  select h.customer_id, h.address, h.asset, h.balance, h.stale_at,
         exists (select from evm_sweeps s
                 where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
                   and s.state in ('SIGNED', 'BROADCAST')) as under_way
  from evm_holdings h
  where h.network = $1`

/** Reads the balances that may have changed, where nothing is under way: as many as there is time for. */
async function refreshStale(db: Database, chain: EvmChain): Promise<void> {
  const end = performance.now() + REFRESH_MS_MAX
  while ((await refreshSome(db, chain)) === REFRESHED_MAX && performance.now() < end);
}

async function refreshSome(db: Database, chain: EvmChain): Promise<number> {
  const { rows: still } = await db.query<Holding>(
    `select * from (${HOLDINGS} and h.stale_at is not null) stale
     where not under_way order by stale_at limit $2`,
    [chain.network, REFRESHED_MAX],
  )
  if (still.length === 0) return 0
  const balances = await balancesAt(chain, await headOf(chain.node), still)
  await db.query(
    `
    update evm_holdings h set balance = seen.balance, stale_at = null
    from unnest($2::uuid[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])
      as seen (customer_id, address, asset, balance, stale_at)
    where h.customer_id = seen.customer_id and h.network = $1 and h.address = seen.address and h.asset = seen.asset
      and h.stale_at = seen.stale_at`,
    [
      chain.network,
      still.map(({ customer_id }) => customer_id),
      still.map(({ address }) => address),
      still.map(({ asset }) => asset),
      still.map(({ asset }, index) => offChain(chain, asset, balances[index]!)),
      still.map(({ stale_at }) => stale_at),
    ],
  )
  return still.length
}

/** What deposit addresses hold at a block, by asset, in units of the chain. What may have changed is read anew. */
export async function unswept(db: Database, chain: EvmChain, block: bigint): Promise<Map<string, bigint>> {
  const { rows } = await db.query<Holding>(
    `${HOLDINGS} and (h.balance > 0 or h.stale_at is not null) order by h.customer_id`,
    [chain.network],
  )
  const known = rows.filter(({ asset }) => asset === chain.gasAsset || chain.tokens.has(asset))
  const uncertain = known.filter(({ stale_at, under_way }) => stale_at !== null || under_way)
  const balances = await balancesAt(chain, block, uncertain)
  const now = new Map(uncertain.map((holding, index) => [holding, balances[index]!]))
  const sums = new Map<string, bigint>()
  for (const holding of known) {
    const units = now.get(holding) ?? onChain(chain, holding.asset, holding.balance)
    sums.set(holding.asset, (sums.get(holding.asset) ?? 0n) + units)
  }
  return sums
}

// ---------------------------------------------------------------------------------------------- beginning

/** Addresses that may hold enough of an asset to be worth its fee, and where nothing is under way. */
async function worthSweeping(
  db: Database,
  chain: EvmChain,
  { gasPrice, prices }: Market,
  failed: (error: unknown) => void,
): Promise<Place[]> {
  const assets = [...chain.tokens.keys(), chain.gasAsset]
  const least = assets.map((asset) => {
    const gas = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS_MIN
    const units = leastWorthSweeping(chain, prices, asset, gas * gasPrice)
    return units === undefined ? null : offChain(chain, asset, units)
  })
  const { rows } = await db.query<Place & { unpriced: string[] | null }>(
    `
    select h.customer_id, h.address,
           array_agg(h.asset order by h.asset = $4, h.asset) filter (where a.least is not null) as assets,
           array_agg(h.asset) filter (where a.least is null) as unpriced,
           (select d.derivation from deposit_addresses d
            where d.customer_id = h.customer_id and d.address = h.address limit 1) as derivation
    from evm_holdings h
    join unnest($2::text[], $3::numeric[]) as a (asset, least) on a.asset = h.asset and h.balance >= coalesce(a.least, 0)
    where h.network = $1 and h.balance > 0 and not exists (
      select from evm_sweeps s
      where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
        and s.state in ('SIGNED', 'BROADCAST'))
    group by h.customer_id, h.address
    -- So that some which cannot be swept never hold up the others.
    order by random()
    limit ${PLACES_MAX}`,
    [chain.network, assets, least, chain.gasAsset],
  )
  for (const asset of new Set(rows.flatMap(({ unpriced }) => unpriced ?? []))) {
    const missing = [asset, chain.gasAsset].filter((one) => !prices.has(one)).join(' and ')
    failed(
      new Error(
        `${asset} is not swept: market history has no price of ${missing}; sweep_minimum.${asset} says from what amount on it is`,
      ),
    )
  }
  return rows.flatMap(({ customer_id, address, derivation, assets }) => {
    return (assets as string[] | null) === null ? [] : [{ customer_id, address, derivation, assets }]
  })
}

/**
 * Signs and keeps the next transaction at an address. False when there is nothing to do, or another worker did. An asset that
 * would deliver less than is sent stays there, and `losses` gets the reason, one for each asset.
 */
async function begin(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  market: Market,
  place: Place,
  { isFrozen, losses }: Pick<SweepRound, 'isFrozen'> & { losses: Map<string, string> },
): Promise<boolean> {
  const signer = keys.signerOf(place.address, place.derivation)
  if (signer === undefined)
    throw new Error(`${place.address} was derived from another key than the one given`)
  for (const asset of place.assets) {
    const plan = await planAt(chain, market, place.address, asset)
    if (plan === 'NOTHING_THERE') await markStale(db, chain, place, asset)
    else if (plan?.loses !== undefined) losses.set(asset, plan.loses)
    else if (plan !== undefined) return signAndKeep(db, chain, signer, place, plan, isFrozen)
  }
  return false
}

async function signAndKeep(
  db: Database,
  chain: EvmChain,
  signer: EvmSigner,
  place: Place,
  plan: Plan,
  isFrozen: SweepRound['isFrozen'],
): Promise<boolean> {
  try {
    return await transaction(db, async (tx) => {
      if (await isFrozen(tx, chain.network)) return false
      const bytes =
        plan.kind === 'TOP_UP'
          ? await toppedUp(tx, chain, place, plan)
          : await swept(tx, chain, signer, place, plan)
      await keep(tx, chain, place, plan, bytes)
      return true
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'evm_sweeps_under_way') throw error
    return false
  }
}

/** The balance that should be there is not: it was swept where this database does not know of it. It is read again. */
async function markStale(
  db: Database,
  { network }: EvmChain,
  { customer_id, address }: Place,
  asset: string,
): Promise<void> {
  await db.query(
    `update evm_holdings set stale_at = clock_timestamp()
     where customer_id = $1 and network = $2 and address = $3 and asset = $4`,
    [customer_id, network, address, asset],
  )
}

/** The next transaction for an asset at an address; undefined while the asset is not worth the fee. */
async function planAt(
  chain: EvmChain,
  { fees, gasPrice, prices }: Market,
  address: Hex,
  asset: string,
): Promise<Plan | 'NOTHING_THERE' | undefined> {
  const block = await headOf(chain.node)
  const [gas = 0n, amount = 0n] = await balancesAt(chain, block, [
    { address, asset: chain.gasAsset },
    { address, asset },
  ])
  if (amount === 0n) return 'NOTHING_THERE'
  const publishing = await publishingFee(chain)
  const gasOf = async (move: { from: Hex; to: Hex; data?: Hex | undefined; value?: Hex }) =>
    gasWithRoom(hexToBigInt(await chain.node.call<Hex>('eth_estimateGas', move, at(block))))
  const isWorth = (cost: bigint) => {
    const least = leastWorthSweeping(chain, prices, asset, cost)
    return least !== undefined && amount >= least
  }
  const paying = (price: bigint) => ({ maxFeePerGas: price, maxPriorityFeePerGas: price })
  if (isNative(chain, asset)) {
    const needed = await gasOf({ from: address, to: chain.hotWallet.address, value: '0x1' })
    const cost = needed * gasPrice + publishing
    return amount <= cost || !isWorth(cost)
      ? undefined
      : { kind: 'SWEEP', asset, amount: amount - cost, gas: needed, fees: paying(gasPrice) }
  }
  const { to, data } = transferOf(chain, asset, chain.hotWallet.address, amount)
  const needed = await gasOf({ from: address, to, data })
  const cost = needed * gasPrice + publishing
  const losing = async (plan: Plan): Promise<Plan> => {
    const call = { from: address, to, value: '0x0', data, gas: `0x${needed.toString(16)}` } as const
    return {
      ...plan,
      loses: await lossOf(chain, { asset, recipient: chain.hotWallet.address, call }, amount, block),
    }
  }
  if (gas >= needed * fees.current + publishing) {
    // Gas that was sent for this sweep is used, also where the price has risen a little since.
    const price = gas >= cost ? gasPrice : (gas - publishing) / needed
    return isWorth(needed * price + publishing)
      ? losing({ kind: 'SWEEP', asset, amount, gas: needed, fees: paying(price) })
      : undefined
  }
  const toTopUp = await gasOf({ from: chain.hotWallet.address, to: address, value: '0x1' })
  if (!isWorth(cost + toTopUp * gasPrice + publishing)) return undefined
  const offered = { maxFeePerGas: fees.offer, maxPriorityFeePerGas: fees.tip }
  return losing({ kind: 'TOP_UP', asset: chain.gasAsset, amount: cost - gas, gas: toTopUp, fees: offered })
}

/**
 * Why a token is not swept: the hot wallet would get less than is sent, where the node can tell (eth_simulateV1). What was
 * deposited is owed in full, so that each such sweep would be the platform's loss.
 */
async function lossOf(
  chain: EvmChain,
  move: Move,
  amount: bigint,
  block: bigint,
): Promise<string | undefined> {
  const { trials } = await tryTransfers(chain, block, [move], [])
  const { arrives } = trials[0]!
  if (arrives === undefined || arrives >= amount) return undefined
  const { asset, call } = move
  return (
    `${asset} is not swept: of ${offChain(chain, asset, amount)} at ${call.from}, ${offChain(chain, asset, arrives)} ` +
    `would arrive, since it takes a fee from transfers`
  )
}

/** Gas from the hot wallet, with the next of its nonces, if it has as much beside what is signed. */
async function toppedUp(
  tx: Transaction,
  chain: EvmChain,
  place: Place,
  plan: Plan,
): Promise<SignedTransaction> {
  const reservation = await openReservation(tx, chain, [])
  if (reservation.blockedReason !== undefined) throw new Error(reservation.blockedReason.detail)
  const needs = plan.amount + feeMax({ gas: plan.gas, maxFeePerGas: plan.fees.maxFeePerGas })
  const there = reservation.spendable.get(chain.gasAsset)!
  if (there < needs) {
    const text = (units: bigint) => `${offChain(chain, chain.gasAsset, units)} ${chain.gasAsset}`
    throw new Error(
      `the hot wallet has ${text(there)} left, gas to sweep ${place.address} needs ${text(needs)}`,
    )
  }
  const bytes = await signed(chain.hotWallet, transactionOf(chain, plan, place.address, reservation.nonce))
  await closeReservation(tx, chain, { ...reservation, nonce: reservation.nonce + 1 })
  return bytes
}

async function swept(
  tx: Transaction,
  chain: EvmChain,
  signer: EvmSigner,
  { customer_id, address }: Place,
  plan: Plan,
): Promise<SignedTransaction> {
  const nonce = hexToNumber(await chain.node.call<Hex>('eth_getTransactionCount', signer.address, 'latest'))
  const { rows } = await tx.query<SignedTransaction>(
    `
    select raw_transaction, crypto_tx_hash from evm_sweeps
    where customer_id = $1 and network = $2 and address = $3 and kind = 'SWEEP' and state in ('DONE', 'FAILED')
    order by id desc
    limit ${SWEEPS_AGAIN_MAX}`,
    [customer_id, chain.network, address],
  )
  const used = rows.filter(({ raw_transaction }) => parse(raw_transaction).nonce >= nonce)
  if (used.length > 0) {
    // Where the chain has taken them back, their bytes bring the coins again; a node that only lags has them already.
    await send(
      chain,
      used.map((one) => ({ ...one, replaced: [] })),
    )
    throw new Error(
      `the node is behind: it says nonce ${nonce} of ${address} is free, which swept before; or blocks were taken back: ` +
        `the same bytes were broadcast again`,
    )
  }
  return signed(signer, transactionOf(chain, plan, chain.hotWallet.address, nonce))
}

const transactionOf = (
  chain: EvmChain,
  { asset, amount, gas, fees }: Plan,
  to: Hex,
  nonce: number,
): EvmTransaction => ({
  type: 'eip1559',
  chainId: chain.chainId,
  nonce,
  ...transferOf(chain, asset, to, amount),
  gas,
  ...fees,
})

async function keep(
  tx: Transaction,
  chain: EvmChain,
  { customer_id, address }: Place,
  { kind, asset, amount }: Plan,
  { raw_transaction, crypto_tx_hash }: SignedTransaction,
): Promise<void> {
  const now = await readClock(tx)
  await tx.query(
    `
    insert into evm_sweeps (customer_id, id, network, address, kind, asset, amount, state, raw_transaction,
                            crypto_tx_hash, replaced, created_at, signed_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'SIGNED', $8, $9, '{}', $10, $10)`,
    [
      customer_id,
      newId(now),
      chain.network,
      address,
      kind,
      asset,
      offChain(chain, asset, amount),
      Buffer.from(raw_transaction),
      crypto_tx_hash,
      now.text,
    ],
  )
  // What is topped up or paid for gas changes what of the native asset lies there, too.
  await tx.query(
    `
    insert into evm_holdings (customer_id, network, address, asset, balance, stale_at)
    select $1, $2, $3, asset, 0, clock_timestamp() from unnest($4::text[]) as a (asset)
    on conflict (customer_id, network, address, asset) do update set stale_at = excluded.stale_at`,
    [customer_id, chain.network, address, [...new Set([chain.gasAsset, asset])]],
  )
}
