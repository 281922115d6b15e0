import { Buffer } from 'node:buffer'
import type { Hex } from 'viem'
import { hexToBigInt, hexToNumber } from 'viem/utils'
import { ASSETS } from '../assets/catalogue.ts'
import { transaction, violatedConstraint, type Database, type Transaction } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import type { DepositKeys } from './evm-deposit-keys.ts'
import { at, headOf, type Receipt } from './evm-node.ts'
import { closePurse, openPurse } from './evm-nonces.ts'
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
  publishingFee,
  replacement,
  send,
  signed,
  standingsOf,
  tooDear,
  transferOf,
  type EvmChain,
  type EvmSigner,
  type EvmTransaction,
  type Fees,
  type Sent,
} from './evm-transactions.ts'
import type { IsFrozen, PostSweep, SignedTransaction } from './networks.ts'

/** Most addresses where one call begins, or looks at balances again. */
const PLACES_MAX = 100
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
}

/** A deposit address that holds enough of something to be worth its fee. */
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
}

/**
 * Moves what lies at deposit addresses to the hot wallet, a step at a time: gas for a token's transfer from the hot
 * wallet, the token, then the native asset. A step is a transaction that is kept before it is broadcast; there is at
 * most one under way at an address, and its nonce makes it once. Anything below the smallest withdrawal stays until
 * more has come. What one has cost is posted in the transaction that ends it. Gives how many steps it took; throws
 * what failed, after the other addresses. On a frozen network nothing is signed, and what is kept is followed on.
 */
export async function sweep(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  post: PostSweep,
  isFrozen: IsFrozen,
): Promise<number> {
  await chain.ready()
  const fees = await feesNow(chain)
  const failures: unknown[] = []
  const failed = (error: unknown) => void failures.push(error)
  let steps = await followAll(db, chain, keys, fees, post, isFrozen, failed)
  await lookAgain(db, chain)
  if (tooDear(fees, chain) === undefined && !(await transaction(db, (tx) => isFrozen(tx, chain.network)))) {
    for (const place of await worthSweeping(db, chain)) {
      try {
        if (await begin(db, chain, keys, fees, place, isFrozen)) steps += 1
      } catch (error) {
        failed(error)
      }
    }
    steps += await followAll(db, chain, keys, fees, post, isFrozen, failed, 'SIGNED')
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
  post: PostSweep,
  isFrozen: IsFrozen,
  failed: (error: unknown) => void,
  only?: 'SIGNED',
): Promise<number> {
  const { rows } = await db.query<Sweep>(
    `
    select s.customer_id, s.id, s.address, s.kind, s.asset, s.state, s.raw_transaction, s.crypto_tx_hash, s.replaced,
           s.signed_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000) as stuck,
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
  for (const [index, one] of unsent.entries()) {
    const refusal = refusals[index]
    if (refusal !== undefined && !refusal.isTooCheap) failed(new Error(refusal.reason))
    else if (await move(db, one, 'BROADCAST')) moved += 1
  }
  const sent = rows.filter(({ state }) => state === 'BROADCAST')
  const standings = sent.length === 0 ? [] : await standingsOf(chain, sent)
  for (const [index, one] of sent.entries()) {
    const standing = standings[index]!
    if (standing.state === 'MINED') {
      if (standing.deep && (await end(db, chain, one, standing.receipt, post))) moved += 1
      continue
    }
    const bumped = one.stuck ? await bump(chain, keys, fees, one) : undefined
    if (bumped !== undefined && (await replace(db, chain, one, bumped, isFrozen))) moved += 1
    else if (standing.state === 'UNKNOWN' && (await move(db, one, 'SIGNED'))) moved += 1
  }
  return moved
}

/** Only from the state and the bytes that were seen: another worker may have been faster. */
async function move(db: Database, one: Sweep, state: 'SIGNED' | 'BROADCAST'): Promise<boolean> {
  const { rowCount } = await db.query(
    'update evm_sweeps set state = $5 where customer_id = $1 and id = $2 and state = $3 and crypto_tx_hash = $4',
    [one.customer_id, one.id, one.state, one.crypto_tx_hash, state],
  )
  return rowCount === 1
}

/** In the chain to stay. What it has cost is kept, and posted; the balances are looked at again. */
async function end(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  receipt: Receipt,
  post: PostSweep,
): Promise<boolean> {
  const state = hexToBigInt(receipt.status) === 1n ? 'DONE' : 'FAILED'
  const made = receipt.transactionHash
  // Those that were replaced moved another amount.
  const { value } =
    made === one.crypto_tx_hash
      ? parse(one.raw_transaction)
      : await chain.node.call<{ value: Hex }>('eth_getTransactionByHash', made)
  const amount = isNative(chain, one.asset) ? offChain(chain, one.asset, BigInt(value)) : null
  const networkFee = feePaid(chain, receipt)
  return transaction(db, async (tx) => {
    // The row is locked from here on: of two workers that end it, one finds that it has ended, and posts nothing.
    const { rowCount } = await tx.query(
      `
      update evm_sweeps
      set state = $3, crypto_tx_hash = $4, network_fee = $5, amount = coalesce($6, amount),
          ended_at = clock_timestamp()
      where customer_id = $1 and id = $2 and state = 'BROADCAST'`,
      [one.customer_id, one.id, state, made, networkFee.amount, amount],
    )
    if (rowCount === 0) return false
    await tx.query(
      `update evm_holdings set stale_at = clock_timestamp()
       where customer_id = $1 and network = $2 and address = $3`,
      [one.customer_id, chain.network, one.address],
    )
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
  const bumped = await replacement(chain, fees, signer, raw_transaction, { fromValue })
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
  isFrozen: IsFrozen,
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

/** Reads the balances that may have changed, where nothing is under way. */
async function lookAgain(db: Database, chain: EvmChain): Promise<void> {
  const { rows } = await db.query<Holding>(
    `${HOLDINGS} and h.stale_at is not null order by h.stale_at limit $2`,
    [chain.network, PLACES_MAX],
  )
  const still = rows.filter(({ under_way }) => !under_way)
  if (still.length === 0) return
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

/** Addresses that hold at least the smallest withdrawal of an asset, and where nothing is under way. */
async function worthSweeping(db: Database, chain: EvmChain): Promise<Place[]> {
  const assets = ASSETS.flatMap(({ symbol, networks }) => {
    const minimum = networks[chain.network]?.minimum
    return minimum === undefined ? [] : [{ symbol, minimum }]
  })
  const { rows } = await db.query<Place>(
    `
    select h.customer_id, h.address, array_agg(h.asset order by h.asset = $4, h.asset) as assets,
           (select d.derivation from deposit_addresses d
            where d.customer_id = h.customer_id and d.address = h.address limit 1) as derivation
    from evm_holdings h
    join unnest($2::text[], $3::numeric[]) as a (asset, minimum) on a.asset = h.asset and h.balance >= a.minimum
    where h.network = $1 and h.balance > 0 and not exists (
      select from evm_sweeps s
      where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
        and s.state in ('SIGNED', 'BROADCAST'))
    group by h.customer_id, h.address
    -- So that some which cannot be swept never hold up the others.
    order by random()
    limit ${PLACES_MAX}`,
    [chain.network, assets.map(({ symbol }) => symbol), assets.map(({ minimum }) => minimum), chain.gasAsset],
  )
  return rows
}

/** Signs and keeps the next transaction at an address. False when there is nothing to do, or another worker did. */
async function begin(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  fees: Fees,
  place: Place,
  isFrozen: IsFrozen,
): Promise<boolean> {
  const signer = keys.signerOf(place.address, place.derivation)
  if (signer === undefined)
    throw new Error(`${place.address} was derived from another key than the one given`)
  const plan = await planAt(chain, fees, place)
  if (plan === 'NOTHING_THERE') await doubt(db, chain, place)
  if (plan === undefined || plan === 'NOTHING_THERE') return false
  try {
    return await transaction(db, async (tx) => {
      if (await isFrozen(tx, chain.network)) return false
      const bytes =
        plan.kind === 'TOP_UP' ? await toppedUp(tx, chain, place, plan) : await swept(chain, signer, plan)
      await keep(tx, chain, place, plan, bytes)
      return true
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'evm_sweeps_under_way') throw error
    return false
  }
}

/** What should be there is not: it was swept where this database does not know of it. The balance is read anew. */
async function doubt(
  db: Database,
  { network }: EvmChain,
  { customer_id, address, assets: [asset] }: Place,
): Promise<void> {
  await db.query(
    `update evm_holdings set stale_at = clock_timestamp()
     where customer_id = $1 and network = $2 and address = $3 and asset = $4`,
    [customer_id, network, address, asset],
  )
}

async function planAt(
  chain: EvmChain,
  fees: Fees,
  { address, assets }: Place,
): Promise<Plan | 'NOTHING_THERE' | undefined> {
  const [asset] = assets
  if (asset === undefined) return undefined
  const block = await headOf(chain.node)
  const [gas = 0n, amount = 0n] = await balancesAt(chain, block, [
    { address, asset: chain.gasAsset },
    { address, asset },
  ])
  if (amount === 0n) return 'NOTHING_THERE'
  const publishing = await publishingFee(chain)
  const gasOf = async (move: { from: Hex; to: Hex; data?: Hex | undefined; value?: Hex }) =>
    gasWithRoom(hexToBigInt(await chain.node.call<Hex>('eth_estimateGas', move, at(block))))
  if (isNative(chain, asset)) {
    // Offered and paid are the same, so that nothing is left behind.
    const fee = { maxFeePerGas: fees.offer, maxPriorityFeePerGas: fees.offer }
    const needed = await gasOf({ from: address, to: chain.hotWallet.address, value: '0x1' })
    const moved = amount - needed * fees.offer - publishing
    return moved <= 0n ? undefined : { kind: 'SWEEP', asset, amount: moved, gas: needed, fees: fee }
  }
  const fee = { maxFeePerGas: fees.offer, maxPriorityFeePerGas: fees.tip }
  const { to, data } = transferOf(chain, asset, chain.hotWallet.address, amount)
  const needed = await gasOf({ from: address, to, data })
  const missing = needed * fees.offer + publishing - gas
  if (missing <= 0n) return { kind: 'SWEEP', asset, amount, gas: needed, fees: fee }
  const toTopUp = await gasOf({ from: chain.hotWallet.address, to: address, value: '0x1' })
  return { kind: 'TOP_UP', asset: chain.gasAsset, amount: missing, gas: toTopUp, fees: fee }
}

/** Gas from the hot wallet, with the next of its nonces, if it has as much beside what is signed. */
async function toppedUp(
  tx: Transaction,
  chain: EvmChain,
  place: Place,
  plan: Plan,
): Promise<SignedTransaction> {
  const purse = await openPurse(tx, chain, [])
  if (purse.gap !== undefined) throw new Error(purse.gap)
  const needs = plan.amount + feeMax({ gas: plan.gas, maxFeePerGas: plan.fees.maxFeePerGas })
  const there = purse.left.get(chain.gasAsset)!
  if (there < needs) {
    const text = (units: bigint) => `${offChain(chain, chain.gasAsset, units)} ${chain.gasAsset}`
    throw new Error(
      `the hot wallet has ${text(there)} left, gas to sweep ${place.address} needs ${text(needs)}`,
    )
  }
  const bytes = await signed(chain.hotWallet, transactionOf(chain, plan, place.address, purse.nonce))
  await closePurse(tx, chain, { ...purse, nonce: purse.nonce + 1 })
  return bytes
}

async function swept(chain: EvmChain, signer: EvmSigner, plan: Plan): Promise<SignedTransaction> {
  const nonce = hexToNumber(await chain.node.call<Hex>('eth_getTransactionCount', signer.address, 'latest'))
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
