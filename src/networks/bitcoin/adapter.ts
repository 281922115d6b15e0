import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { RawOldTx, RawTx } from '@scure/btc-signer/script.js'
import { formatAmount, parseAmount, parseStoredAmount } from '../../assets/amount.ts'
import { NETWORKS } from '../../assets/catalogue.ts'
import type { Database, Queryable, Transaction } from '../../db/database.ts'
import { canonicalAddress } from '../addresses.ts'
import {
  Batch,
  CHANGE_MIN,
  consolidationOf,
  inputVbytes,
  spendableAtOnce,
  worthSpending,
  type Coin,
  type Payment,
  type Plan,
  type PlanLimits,
} from './batch.ts'
import { bitcoinRpc, RpcError, type BitcoinRpcConfig, type RpcCall } from './rpc.ts'
import { BEHIND_ANOTHER, type WaitingReason } from '../waiting.ts'
import {
  isTreasurySend,
  longestWaiting,
  neededByCustomers,
  unsignedWithdrawals,
  type Reserved,
} from '../longest-waiting.ts'
import type {
  FoundDeposit,
  BroadcastAnswer,
  BroadcastWithdrawal,
  ConsolidationPlan,
  DepositScan,
  EndedTransaction,
  MovedOnChain,
  NetworkAdapter,
  NetworkFee,
  PaidWithdrawal,
  PaymentStatus,
  Refusal,
  SignedTransaction,
  Signing,
  Withdrawal,
} from '../network.ts'

export type BitcoinNetwork = 'BITCOIN' | 'LITECOIN' | 'BITCOIN_CASH'

export interface BitcoinConfig extends BitcoinRpcConfig {
  /** How deep in the chain a transaction must be to stay: 1 is the tip. */
  confirmations: number
  /** The most that is paid for a kvB, in the coin. */
  feeCeiling: string
  /** Of the hot wallet, in the coin. Nothing here stops at it; it is for whoever watches. */
  lowMark?: string
  pollMs?: number
  /** What has been signed for so long and is in no block is replaced, if its fee is below the current. */
  stuckAfterMs?: number
  /** How long a withdrawal waits for the hot wallet before no younger one is paid from it. */
  reserveAfterMs?: number
  /** What the wallet has sent in blocks below this one was looked at, and is not Bursar's to know. */
  firstHeight?: number
}

const DECIMALS = 8
const BLOCK_HASH = /^[0-9a-f]{64}$/
const POLL_MS = 5_000
/** Long enough for the six blocks that fees are estimated for, where blocks take minutes. */
const STUCK_AFTER_MS = 3_600_000
/** Most withdrawals that one transaction pays. */
const PAYMENTS_MAX = 250
/** A consolidation merges so many coins at least. */
const CONSOLIDATED_MIN = 2
/** Most transactions that are made and tried, before one is signed that the node would take. */
const TRIES_MAX = 12
/** The rates that so many of the newest transactions have paid up to are remembered. */
const REMEMBERED_MAX = 1_000
/** Most times that coins are chosen anew, because those that were chosen are change of what pays too little. */
const LIFT_TRIES_MAX = 3
/** Inputs with a higher sequence cannot be replaced (BIP 125). */
const REPLACEABLE_SEQUENCE_MAX = 0xffff_fffd
const FINAL_SEQUENCE = 0xffff_ffff
/** How soon a withdrawal should be in a block, in blocks: what the fee is estimated for. */
const FEE_TARGET_BLOCKS = 6
/** Where the node cannot estimate, so many times the least that it relays for. */
const FALLBACK_FEE_FACTOR = 10n

// What the node says, by Bitcoin Core's rpc/protocol.h.
const VERIFY_ALREADY_IN_CHAIN = -27
const WALLET_ERROR = -4
const INVALID_ADDRESS_OR_KEY = -5
const BLOCK_NOT_FOUND = INVALID_ADDRESS_OR_KEY
const UNKNOWN_TRANSACTION = INVALID_ADDRESS_OR_KEY

/** Where the nodes of the family differ. */
interface Dialect {
  newAddress: RpcCall
  newChangeAddress: RpcCall
  changeScriptBytes: number
  /** Its reply is an amount per kvB, or an object with one as `feerate`; none or -1 when it cannot tell. */
  estimate: RpcCall
  /** Whether a transaction may be replaced by one that pays a higher fee (BIP 125). */
  isReplaceable: boolean
  /** Behind the raw transaction: the fee is under our own ceiling, whatever the node's is. */
  anyFee: unknown
  /** A withdrawal from two inputs, with change. */
  typicalVbytes: bigint
}

const CORE: Dialect = {
  newAddress: ['getnewaddress', '', 'bech32'],
  newChangeAddress: ['getrawchangeaddress', 'bech32'],
  changeScriptBytes: 22,
  estimate: ['estimatesmartfee', FEE_TARGET_BLOCKS],
  isReplaceable: true,
  anyFee: 0,
  typicalVbytes: 209n,
}

const DIALECTS: Record<BitcoinNetwork, Dialect> = {
  BITCOIN: CORE,
  LITECOIN: CORE,
  // Bitcoin Cash Node has no segregated witness and no replacement, and estimates without being told for what.
  BITCOIN_CASH: {
    newAddress: ['getnewaddress', ''],
    newChangeAddress: ['getrawchangeaddress'],
    changeScriptBytes: 25,
    estimate: ['estimatefee'],
    isReplaceable: false,
    anyFee: true,
    typicalVbytes: 374n,
  },
}

/** What is signed and has not ended, and whether it was sent. A network that was simulated before has other bytes. */
const KEPT = `
  select crypto_tx_hash, bool_and(state = 'SIGNED') as unsent, (array_agg(raw_transaction))[1] as raw_transaction
  from outgoing_transfers
  where network = $1 and due_at is not null and state in ('SIGNED', 'BROADCAST')
    and (raw_transaction is null or get_byte(raw_transaction, 0) <> ascii('{'))
  group by crypto_tx_hash`
const KEPT_ONCE = `
  select crypto_tx_hash, raw_transaction, payments
  from network_transactions
  where network = $1 and crypto_tx_hash = any ($2)`

/** What was replaced by something that has not ended. */
const REPLACED = `
  select distinct r.crypto_tx_hash
  from outgoing_transfers b
  join replaced_transactions r on r.customer_id = b.customer_id and r.transfer_id = b.transfer_id
  where b.network = $1 and b.due_at is not null`

/** An output of a transaction that was decoded. */
interface Output {
  value: string
  /** Newer nodes give one address. */
  scriptPubKey: { address?: string; addresses?: string[] }
}

/** An output, as 'txid:vout'. */
type Outpoint = string

/** What can be spent, and what can not be spent yet. */
interface Coins {
  ready: Coin[]
  /** Deposits that are not deep enough, in minor units. */
  shallow: bigint
  /** Change of what is signed and not broadcast. */
  unsentChange: bigint
  /** The hashes of what is signed and has not ended. */
  kept: ReadonlySet<string>
}

interface SigningLimits extends PlanLimits, Pick<Coins, 'kept'> {}

/** A transaction that is signed and has not ended. */
interface KeptTransaction {
  crypto_tx_hash: string
  unsent: boolean
  raw_transaction: Buffer
  /** How many of its outputs, from the first, are payments; none is known of those that were made by the wallet. */
  payments: number | undefined
}

/** A withdrawal that the node would pay. */
interface Payable extends Payment {
  withdrawal: Withdrawal
}

/** A transaction in the mempool. What it waits for counts it, too. */
interface PooledTransaction {
  vsize: string
  ancestorsize: string
  fees: { base: string; ancestor: string }
}

interface Unspent {
  txid: string
  vout: string
  amount: string
  confirmations: string
  scriptPubKey: string
  spendable: boolean
  safe: boolean
}

interface WalletTransaction {
  txid: string
  /** What the wallet has more for it, without the fee: negative for what it sends to others. */
  amount: string
  hex: string
  blockhash?: string
  confirmations: string
  /** Negative. */
  fee?: string
  walletconflicts: string[]
  details: { category: string; address?: string; amount: string; vout: string }[]
}

/** How far a transaction is; or the one that is deep in the chain; or those that were made in its place. */
type Standing =
  { state: 'MINED' | 'PENDING' | 'UNKNOWN' } | { made: WalletTransaction } | { instead: WalletTransaction[] }

/** Which of how many payments: the first is 0. */
interface Share {
  of: number
  rank: number
}
const ALONE: Share = { of: 1, rank: 0 }

/** What a transaction is to pay a withdrawal. */
type Destined = Pick<Withdrawal, 'transfer_id' | 'amount' | 'destination_address'>

/** Where a transaction is: in the wallet or not, how deep (below 0: how deep what conflicts with it is), waiting for a block. */
interface Whereabouts {
  transaction: WalletTransaction | undefined
  confirmations: number
  inMempool: boolean
}

/** What the wallet has sent and nobody here knows. Without a height it is in no block yet. */
interface UnknownSpend {
  txid: string
  height: number | undefined
}

interface Listed {
  category: string
  address?: string
  amount: string
  confirmations: string
  txid: string
  vout?: string
  abandoned?: boolean
}

/**
 * Moves coins over a node of the Bitcoin Core family (Bitcoin Core 0.21 and later, Litecoin Core 0.21, Bitcoin Cash
 * Node), whose wallet holds the keys, the coins of the withdrawals and those of the deposit addresses. The wallet is
 * for one Bursar database alone: what it finds locked there for no transaction of its own, it unlocks.
 *
 * The recipient gets exactly the amount; the network's fee is paid on top, by the platform.
 */
export function bitcoinAdapter(
  network: BitcoinNetwork,
  config: BitcoinConfig,
  db: Database,
): NetworkAdapter &
  Required<Pick<NetworkAdapter, 'newDepositAddress' | 'scanDeposits' | 'estimateFee' | 'status'>> {
  const { confirmations: depth, pollMs = POLL_MS } = config
  const rpc = bitcoinRpc(config)
  const dialect = DIALECTS[network]
  const coin = NETWORKS[network].gasAsset
  const ceiling = parseAmount(config.feeCeiling, DECIMALS)
  assert(ceiling !== undefined && ceiling > 0n, `the fee ceiling of ${network} is no amount of ${coin}`)
  assert(Number.isInteger(depth) && depth >= 1, `the confirmations of ${network} are no depth`)

  /** By a transaction's hash, the rate up to which it and those before it have paid for what they wait for. */
  const paidUpTo = new Map<string, bigint>()

  const canonical = (address: string) => canonicalAddress(network, address, { testNetworks: true })
  const inCoin = (minor: bigint) => `${formatAmount(minor, DECIMALS)} ${coin}`

  // ------------------------------------------------------------------------------------------------ fees

  /** What a kvB costs now: the node's estimate, but never less than it relays for. */
  async function feeRate(): Promise<bigint> {
    const [estimated, mempool] = await rpc.batch<unknown>([dialect.estimate, ['getmempoolinfo']])
    if (mempool instanceof RpcError) throw mempool
    const { mempoolminfee } = mempool as { mempoolminfee: string }
    const floor = minorOf(mempoolminfee)
    const estimate = estimateOf(estimated)
    if (estimate !== undefined) return estimate > floor ? estimate : floor
    const fallback = smaller(floor * FALLBACK_FEE_FACTOR, ceiling!)
    return fallback > floor ? fallback : floor
  }

  async function estimateFee(asset: string): Promise<NetworkFee> {
    assert(asset === coin, `${network} carries ${coin} only`)
    const rate = smaller(await feeRate(), ceiling!)
    return { asset: coin, amount: formatAmount(perKvb(rate, dialect.typicalVbytes), DECIMALS) }
  }

  // ------------------------------------------------------------------------------------------------ signing

  /**
   * The locks of the wallet are what keeps two transactions from spending the same output. They are in the node's
   * memory, and the node knows nothing of Bursar's transactions: a crash between funding and commit leaves a lock that
   * no transaction needs, a restart of the node forgets all. So that they are always those of the kept transactions
   * which are not made yet, whoever's they are, both are put right before anything is signed.
   */
  async function reconcileLocks(tx: Transaction): Promise<Coins> {
    const kept = await keptTransactions(tx)
    const taken = new Set(kept.flatMap(({ raw_transaction }) => decode(raw_transaction).inputs))
    // Until the replacement is broadcast, the wallet would spend the change of the one that it replaces.
    const replaced = await tx.query<{ crypto_tx_hash: string }>(REPLACED, [network])
    const gone = new Set(replaced.rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
    const isTaken = (outpoint: Outpoint) => taken.has(outpoint) || gone.has(hashIn(outpoint))
    const locked = await rpc.call<{ txid: string; vout: string }[]>('listlockunspent')
    await setLocks(
      'unlock',
      locked.map(outpointOf).filter((outpoint) => !isTaken(outpoint)),
    )

    const unspent = await rpc.call<Unspent[]>('listunspent', 0)
    // One that is spent already cannot be locked, and need not be.
    await setLocks('lock', unspent.map(outpointOf).filter(isTaken))
    const free = unspent.filter((output) => output.spendable && !isTaken(outpointOf(output)))
    // A deposit may be reorganised away, and what spends it with it. Change of our own is as good as what it came from.
    const young = free.filter(({ confirmations }) => Number(confirmations) < depth)
    const foreign = new Set(await unknownOf(tx, [...new Set(young.map(({ txid }) => txid))]))
    const isShallow = ({ txid, confirmations }: Unspent) => Number(confirmations) < depth && foreign.has(txid)
    const ready = free.filter((output) => output.safe && !isShallow(output))
    return {
      ready: ready.map((output) => ({
        outpoint: outpointOf(output),
        amount: minorOf(output.amount),
        vbytes: inputVbytes(output.scriptPubKey),
        isMined: Number(output.confirmations) > 0,
      })),
      shallow: free.filter(isShallow).reduce((sum, { amount }) => sum + minorOf(amount), 0n),
      unsentChange: kept
        .filter(({ unsent, payments }) => unsent && payments !== undefined)
        .flatMap(({ raw_transaction, payments }) => decode(raw_transaction).outputs.slice(payments))
        .reduce((sum, amount) => sum + amount, 0n),
      kept: new Set(kept.map(({ crypto_tx_hash }) => crypto_tx_hash)),
    }
  }

  /** Every transaction that is signed and has not ended, once. */
  async function keptTransactions(tx: Transaction): Promise<KeptTransaction[]> {
    const { rows } = await tx.query<{
      crypto_tx_hash: string
      unsent: boolean
      raw_transaction: Buffer | null
    }>(KEPT, [network])
    const shared = rows.filter(({ raw_transaction }) => raw_transaction === null)
    const once =
      shared.length === 0
        ? []
        : (
            await tx.query<{ crypto_tx_hash: string; raw_transaction: Buffer; payments: number }>(KEPT_ONCE, [
              network,
              shared.map(({ crypto_tx_hash }) => crypto_tx_hash),
            ])
          ).rows
    const byHash = new Map(once.map((one) => [one.crypto_tx_hash, one]))
    return rows.map(({ crypto_tx_hash, unsent, raw_transaction }) => {
      const found = byHash.get(crypto_tx_hash)
      const bytes = raw_transaction ?? found?.raw_transaction
      assert(bytes !== undefined, `transaction ${crypto_tx_hash} of ${network} is not kept`)
      return { crypto_tx_hash, unsent, raw_transaction: bytes, payments: found?.payments }
    })
  }

  async function setLocks(change: 'lock' | 'unlock', outpoints: Outpoint[]): Promise<void> {
    if (outpoints.length === 0) return
    const outputs = outpoints.map((outpoint) => {
      const [txid, vout] = outpoint.split(':')
      return { txid, vout: Number(vout) }
    })
    await rpc.call('lockunspent', change === 'unlock', outputs)
  }

  /**
   * What the wallet has sent and this database does not know may be what is about to be signed: after restoring an
   * older backup it would be paid again. Gives why nothing may be signed. When all is known, the next look begins at
   * the block at the depth.
   */
  async function whyUnknownSpends(tx: Transaction): Promise<WaitingReason | undefined> {
    const { rows } = await tx.query<{ checked_block: string }>(
      'select checked_block from wallet_checks where network = $1',
      [network],
    )
    const from = rows[0]?.checked_block ?? ''
    const behind = await catchesUp(from)
    if (behind !== undefined) return { code: 'NODE_BEHIND', detail: behind }
    const { transactions, lastblock } = await since(from)
    const sent = transactions.filter(
      ({ category, confirmations, abandoned }) =>
        category === 'send' && Number(confirmations) >= 0 && abandoned !== true,
    )
    const unknown = await unknownOf(tx, [...new Set(sent.map(({ txid }) => txid))])
    const [spend, ...others] = await unacknowledged(tx, unknown)
    if (spend !== undefined) return { code: 'UNKNOWN_SPENDS', detail: describeUnknownSpends(spend, others) }
    if (lastblock === from) return undefined
    await tx.query(
      `
      insert into wallet_checks (network, checked_block, updated_at) values ($1, $2, clock_timestamp())
      on conflict (network) do update set checked_block = excluded.checked_block, updated_at = excluded.updated_at`,
      [network, lastblock],
    )
    return undefined
  }

  /** A node that has not read the chain to its end does not know yet what the wallet has sent. */
  async function catchesUp(checkedBlock: string): Promise<string | undefined> {
    const { blocks, headers, initialblockdownload } = await rpc.call<{
      blocks: string
      headers: string
      initialblockdownload: boolean
    }>('getblockchaininfo')
    if (initialblockdownload || Number(blocks) < Number(headers))
      return `the node is catching up with its chain: ${blocks} blocks of ${headers}`
    if (checkedBlock === '') return undefined
    const [header] = await rpc.batch<object>([['getblockheader', checkedBlock]])
    return known(header!) === undefined
      ? `the node does not know block ${checkedBlock}, which it had: it is behind, or on another chain`
      : undefined
  }

  /**
   * Those of these hashes that are no withdrawal's, whatever replaced it, and that no operator has acknowledged. One that an
   * operator marked as a withdrawal's is known when all that it pays is accounted for.
   */
  async function unknownOf(tx: Transaction, hashes: string[]): Promise<string[]> {
    if (hashes.length === 0) return []
    // With the network's name in it, as the index has it.
    const { rows } = await tx.query<{ crypto_tx_hash: string }>(
      `
      select crypto_tx_hash from outgoing_transfers where network = '${network}' and crypto_tx_hash = any ($1)
      union
      select crypto_tx_hash from replaced_transactions where crypto_tx_hash = any ($1)`,
      [hashes],
    )
    const acknowledged = await tx.query<{ crypto_tx_hash: string }>(
      'select crypto_tx_hash from acknowledged_transactions where network = $1 and crypto_tx_hash = any ($2)',
      [network, hashes],
    )
    const partly = await tx.query<{ crypto_tx_hash: string }>(
      `
      select n.crypto_tx_hash
      from network_transactions n
      join outgoing_transfers b on b.network = '${network}' and b.crypto_tx_hash = n.crypto_tx_hash
      where n.network = '${network}' and n.kind = 'MARKED' and n.crypto_tx_hash = any ($1)
      group by n.crypto_tx_hash, n.payments
      having count(*) < n.payments`,
      [hashes],
    )
    const known = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
    for (const { crypto_tx_hash } of partly.rows) known.delete(crypto_tx_hash)
    for (const { crypto_tx_hash } of acknowledged.rows) known.add(crypto_tx_hash)
    return hashes.filter((hash) => !known.has(hash))
  }

  /** With their heights, those that were not looked at, and that are not made in the place of one that is known. */
  async function unacknowledged(tx: Transaction, hashes: string[]): Promise<UnknownSpend[]> {
    const spends: UnknownSpend[] = []
    for (const { txid, blockhash, walletconflicts } of await inWallet(hashes)) {
      if ((await unknownOf(tx, walletconflicts)).length < walletconflicts.length) continue
      const height = blockhash === undefined ? undefined : await heightOf(blockhash)
      if (height === undefined || height >= (config.firstHeight ?? 0)) spends.push({ txid, height })
    }
    return spends
  }

  async function heightOf(block: string): Promise<number> {
    const { height } = await rpc.call<{ height: string }>('getblockheader', block)
    return Number(height)
  }

  /**
   * Pays as many as it can with one transaction, in their order. What does not fit, or cannot be paid now, waits with the
   * reason, and its profile's later ones behind it. A consolidation has a transaction of its own, where nothing else is to be
   * signed.
   */
  async function sign(tx: Transaction, withdrawals: Withdrawal[]): Promise<Signing[]> {
    const strange = await whyUnknownSpends(tx)
    if (strange !== undefined) return withdrawals.map(() => waits(strange))
    const coins = await reconcileLocks(tx)
    const rate = await feeRate()
    if (rate > ceiling!) {
      const detail = `the network's fee is ${inCoin(rate)} for a kvB, and the ceiling ${inCoin(ceiling!)}`
      return withdrawals.map(() => waits({ code: 'FEE_ABOVE_CEILING', detail }))
    }
    const signings = new Map<Withdrawal, Signing>()
    const payouts = withdrawals.filter((one) => feeMaxOf(one) === undefined)
    const consolidations = withdrawals.filter((one) => feeMaxOf(one) !== undefined)
    if (payouts.length > 0) {
      const payable = await payableOf(payouts, signings)
      const [reserved] = await longestWaiting(tx, network, config.reserveAfterMs)
      const [unsigned] = payouts.some(isTreasurySend) ? await unsignedWithdrawals(tx, network) : []
      const needed = unsigned === undefined ? 0n : minorOf(unsigned.amount)
      const chosen = choose(payable, coins, { rate, reserved, needed }, signings)
      const limits = { rate, changeScriptBytes: dialect.changeScriptBytes, kept: coins.kept }
      await signSome(chosen, coins.ready, limits, signings)
    } else await signConsolidation(consolidations[0]!, coins, rate, signings)
    for (const one of consolidations)
      if (!signings.has(one))
        signings.set(one, waits({ code: 'NEXT_TRANSACTION', detail: 'another transaction is signed first' }))
    return withdrawals.map((withdrawal) => signings.get(withdrawal)!)
  }

  /**
   * Merges the wallet's smallest coins into one. It was planned for the most that it may pay, so that at a lower rate the
   * same coins do, and what is left is change.
   */
  async function signConsolidation(
    withdrawal: Withdrawal,
    { ready, kept }: Coins,
    rate: bigint,
    signings: Map<Withdrawal, Signing>,
  ): Promise<void> {
    const most = feeMaxOf(withdrawal)!
    if (rate > most) {
      const detail = `the network's fee is ${inCoin(rate)} for a kvB, and the consolidation pays ${inCoin(most)} at most`
      signings.set(withdrawal, waits({ code: 'FEE_ABOVE_CEILING', detail }))
      return
    }
    const payable = await payableOf([withdrawal], signings)
    const coins = mergeable(ready, most)
    const limits = { rate, changeScriptBytes: dialect.changeScriptBytes, consolidates: true, kept }
    if (payable.some((one) => !new Batch<Payable>(coins, limits).add(one)))
      signings.set(
        withdrawal,
        waits({
          code: 'COINS_SPENT',
          detail: 'coins that it was to merge are spent: cancel it, and order another',
        }),
      )
    else await signSome(payable, coins, limits, signings)
  }

  /** Coins in blocks: what is merged is one large transaction, and should wait for no other. */
  const mergeable = (ready: readonly Coin[], rate: bigint): Coin[] =>
    worthSpending(ready, rate).filter(({ isMined }) => isMined)

  /** Of a consolidation. */
  const feeMaxOf = ({ consolidation_fee_max }: Withdrawal): bigint | undefined =>
    consolidation_fee_max == null ? undefined : minorOf(consolidation_fee_max)

  /** Plans to merge coins. From here to the commit, nobody else signs. */
  async function planConsolidation(
    tx: Transaction,
    maxFeeRate: string | undefined,
  ): Promise<ConsolidationPlan> {
    const asked = maxFeeRate === undefined ? ceiling! : parseAmount(maxFeeRate, DECIMALS)
    if (asked === undefined || asked <= 0n) throw new Error(`the fee rate must be an amount of ${coin}`)
    const strange = await whyUnknownSpends(tx)
    if (strange !== undefined) throw new Error(strange.detail)
    const rate = smaller(asked, ceiling!)
    const { ready } = await reconcileLocks(tx)
    const { coins, amount, fee } = consolidationOf(mergeable(ready, rate), rate, dialect.changeScriptBytes)
    if (coins.length < CONSOLIDATED_MIN)
      throw new Error(
        `the wallet has ${ready.length} coins to spend, of which the largest stay as they are: there is nothing to merge`,
      )
    if (amount < CHANGE_MIN)
      throw new Error(
        `merging ${coins.length} coins may cost ${inCoin(fee)}, and they hold ${inCoin(amount + fee)}`,
      )
    const { address } = await newDepositAddress()
    return {
      destination_address: address,
      amount: formatAmount(amount, DECIMALS),
      coins: coins.length,
      fee_max: formatAmount(fee, DECIMALS),
      max_fee_rate: formatAmount(rate, DECIMALS),
    }
  }

  /** Those whose address the node knows to pay; the others are refused. */
  async function payableOf(
    withdrawals: Withdrawal[],
    signings: Map<Withdrawal, Signing>,
  ): Promise<Payable[]> {
    const checked = await rpc.batch<{ isvalid: boolean; scriptPubKey?: string; error?: string }>(
      withdrawals.map(({ destination_address }) => ['validateaddress', destination_address]),
    )
    return withdrawals.flatMap((withdrawal, index): Payable | [] => {
      const answer = checked[index]!
      if (answer instanceof RpcError) throw answer
      const { isvalid, scriptPubKey, error } = answer
      if (isvalid && scriptPubKey !== undefined)
        return {
          withdrawal,
          amount: minorOf(withdrawal.amount),
          script: Uint8Array.from(Buffer.from(scriptPubKey, 'hex')),
        }
      signings.set(withdrawal, refused('destination address', error ?? 'it is not valid', withdrawal))
      return []
    })
  }

  /**
   * Those that one transaction can pay, in their order; the others wait. A send to cold storage leaves `needed`, which is what
   * customers' withdrawals come to that are not signed.
   */
  function choose(
    payable: Payable[],
    coins: Coins,
    { rate, reserved, needed }: { rate: bigint; reserved: Reserved | undefined; needed: bigint },
    signings: Map<Withdrawal, Signing>,
  ): Payable[] {
    const there = coins.ready.reduce((sum, { amount }) => sum + amount, 0n)
    const batch = new Batch<Payable>(coins.ready, { rate, changeScriptBytes: dialect.changeScriptBytes })
    const waiting = new Set<string>()
    for (const one of payable) {
      const { withdrawal, amount } = one
      const { profile_id, transfer_id } = withdrawal
      const isYounger = reserved !== undefined && transfer_id > reserved.transfer_id
      const reason: WaitingReason | undefined = waiting.has(profile_id)
        ? BEHIND_ANOTHER
        : isYounger && there < batch.due + amount + minorOf(reserved.amount)
          ? {
              code: 'KEPT_FOR_OLDER',
              detail:
                `the hot wallet has ${inCoin(there - batch.due)} to spend, for which withdrawal ${reserved.transfer_id} ` +
                `has waited too long: ${inCoin(minorOf(reserved.amount))} of it are kept for that one`,
            }
          : needed > 0n && isTreasurySend(withdrawal) && there < batch.due + amount + needed
            ? neededByCustomers(inCoin(there - batch.due), inCoin(needed))
            : batch.add(one)
              ? undefined
              : { code: 'HOT_WALLET_SHORT', detail: shortOf(amount, there - batch.due, coins) }
      if (reason === undefined) continue
      waiting.add(profile_id)
      signings.set(withdrawal, waits(reason))
    }
    return [...batch.payments]
  }

  /** Why the coins do not do for an amount: what there is, what is not to be spent yet, and whether it is in too many coins. */
  function shortOf(amount: bigint, there: bigint, { ready, shallow, unsentChange }: Coins): string {
    const once = spendableAtOnce(ready)
    const also = [
      there > amount && once.count < ready.length
        ? `; it is in ${ready.length} coins, of which one transaction can spend ${once.count}, and these hold ` +
          `${inCoin(once.amount)}: 'bursar wallet consolidate' merges them`
        : '',
      unsentChange > 0n
        ? `; ${inCoin(unsentChange)} more are change of transactions that are not sent yet`
        : '',
      shallow > 0n ? `; ${inCoin(shallow)} more came in less than ${depth} blocks ago` : '',
    ]
    return (
      `the hot wallet has ${inCoin(there)} to spend, and ${inCoin(amount)} and the fee are needed` +
      also.join('')
    )
  }

  /**
   * Signs one transaction for these, or for some of them where the node would not take it for all: what is dust is refused,
   * and where another payment may be at fault, half of them is tried. Locks the coins of what it signed.
   */
  async function signSome(
    chosen: Payable[],
    coins: readonly Coin[],
    limits: SigningLimits,
    signings: Map<Withdrawal, Signing>,
  ): Promise<void> {
    const left: Payable[][] = [chosen]
    let why: WaitingReason = { code: 'NEXT_TRANSACTION', detail: 'the next transaction pays it' }
    for (let tries = 1; tries <= TRIES_MAX && left.length > 0; tries++) {
      const some = left.shift()!
      if (some.length === 0) continue
      const made = await signOne(some, coins, limits)
      if ('signed' in made) {
        for (const [index, { withdrawal }] of made.paid.entries()) {
          const crypto_tx_index = String(index)
          signings.set(withdrawal, { outcome: 'SIGNED', ...made.signed, crypto_tx_index })
        }
        break
      }
      why = {
        code: made.isShort === true ? 'FEE_NOT_COVERED' : 'NODE_REFUSED',
        detail: `the node does not take it: ${made.reason}`,
      }
      if (/dust/i.test(made.reason)) {
        const smallest = some.reduce((one, other) => (dustiness(other) < dustiness(one) ? other : one))
        signings.set(smallest.withdrawal, refused('amount', made.reason, smallest.withdrawal))
        left.unshift(some.filter((one) => one !== smallest))
      } else if (some.length > 1 && !made.ofAll) {
        const middle = Math.ceil(some.length / 2)
        left.unshift(some.slice(0, middle), some.slice(middle))
      }
    }
    for (const { withdrawal } of chosen) {
      if (!signings.has(withdrawal)) signings.set(withdrawal, waits(why))
    }
  }

  /** Signs a transaction that pays all of these, in their order, before its change. Throws RpcError, with nothing locked. */
  async function signOne(
    some: Payable[],
    coins: readonly Coin[],
    limits: SigningLimits,
  ): Promise<
    { signed: SignedTransaction; paid: Payable[] } | { reason: string; ofAll: boolean; isShort?: true }
  > {
    const { plan, paid, lifts } = await planned(some, coins, limits)
    if (paid.length === 0)
      return { reason: 'the hot wallet has too little for its fee', ofAll: true, isShort: true }
    const scripts = await changeScripts(plan.change.length)
    const unsigned = RawOldTx.encode({
      version: 2,
      inputs: plan.coins.map(({ outpoint }) => {
        const [txid, index] = outpoint.split(':') as [string, string]
        return {
          txid: Buffer.from(txid, 'hex'),
          index: Number(index),
          finalScriptSig: new Uint8Array(),
          sequence: dialect.isReplaceable ? REPLACEABLE_SEQUENCE_MAX : FINAL_SEQUENCE,
        }
      }),
      outputs: [
        ...plan.payments.map(({ amount, script }) => ({ amount, script })),
        ...plan.change.map((amount, index) => ({ amount, script: scripts[index]! })),
      ],
      lockTime: 0,
    })
    let raw_transaction: Buffer
    try {
      raw_transaction = await signed(Buffer.from(unsigned).toString('hex'))
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return { reason: error.message, ofAll: true }
    }
    const { txid, inputs, outputs } = decode(raw_transaction)
    const asked = [...plan.payments.map(({ amount }) => amount), ...plan.change]
    assert(
      outputs.length === asked.length && outputs.every((amount, index) => amount === asked[index]),
      'a transaction pays its withdrawals and the change, and nothing else',
    )
    const [test] = await rpc.call<{ allowed: boolean; 'reject-reason'?: string }[]>(
      'testmempoolaccept',
      [raw_transaction.toString('hex')],
      dialect.anyFee,
    )
    if (!test!.allowed) {
      const reason = test!['reject-reason'] ?? 'it gives no reason'
      return { reason, ofAll: /fee|chain|mempool|missing|conflict/i.test(reason) }
    }
    await setLocks('lock', inputs)
    if (lifts) rememberPaid(txid, limits.rate)
    return { signed: { raw_transaction, crypto_tx_hash: txid, payments: paid.length }, paid }
  }

  /** Forgets the oldest. */
  function rememberPaid(hash: string, rate: bigint): void {
    const [oldest] = paidUpTo.keys()
    if (paidUpTo.size >= REMEMBERED_MAX && oldest !== undefined) paidUpTo.delete(oldest)
    paidUpTo.set(hash, rate)
  }

  /**
   * Chooses the coins, with the fee that those of them need which are change of what pays too little. Where the wallet has
   * too little for that, it pays its own fee only and waits with the others: `lifts` says whether it pays all.
   */
  async function planned(
    some: Payable[],
    coins: readonly Coin[],
    limits: SigningLimits,
  ): Promise<{ plan: Plan<Payable>; paid: Payable[]; lifts: boolean }> {
    const plannedWith = (lift: bigint) => {
      const batch = new Batch<Payable>(coins, { ...limits, lift })
      const paid = some.filter((one) => batch.add(one))
      return { plan: batch.plan(), paid }
    }
    let lift = 0n
    for (let tries = 1; ; tries++) {
      const { plan, paid } = plannedWith(lift)
      if (paid.length === 0) return { ...plannedWith(0n), lifts: false }
      const unmined = plan.coins.filter(({ isMined }) => !isMined).map(({ outpoint }) => hashIn(outpoint))
      const missing = await missingFee(unmined, limits)
      // What is paid for them may take another coin, whose transaction may lack something, too.
      if (missing <= lift || tries === LIFT_TRIES_MAX) return { plan, paid, lifts: missing <= lift }
      lift = missing
    }
  }

  /**
   * What these transactions in the mempool, and those that they wait for, lack at a rate. What a transaction of ours behind
   * one of them has paid for it already is not lacking: up to the rate of that transaction with all that it waits for, or up
   * to the rate that it is remembered for. What spends put behind it changes nothing. That of one that is to be
   * replaced (`but`) does not count, nor what is remembered: others may rely on what it pays.
   *
   * It adds to `lifted` all that it looked at, and passes over what is there. Nodes of networks without replacements make
   * blocks without looking at what is behind a transaction: nothing is lacking there.
   */
  async function missingFee(
    hashes: readonly string[],
    { rate, kept }: Pick<SigningLimits, 'rate' | 'kept'>,
    { lifted = new Set<string>(), but }: { lifted?: Set<string>; but?: string } = {},
  ): Promise<bigint> {
    if (!dialect.isReplaceable || hashes.length === 0) return 0n
    const parents = [...new Set(hashes)]
    const pooled = await rpc.batch<PooledTransaction>(parents.map((hash) => ['getmempoolentry', hash]))
    const below = await rpc.batch<Record<string, PooledTransaction>>(
      parents.map((hash) => ['getmempoolancestors', hash, true]),
    )
    const all = new Map<string, PooledTransaction>()
    for (const [index, hash] of parents.entries()) {
      const entry = known(pooled[index]!)
      // It was mined, or dropped, in between.
      if (entry === undefined) continue
      all.set(hash, entry)
      for (const [ancestor, its] of Object.entries(known(below[index]!) ?? {})) all.set(ancestor, its)
    }
    const cheap = [...all].filter(
      ([hash, { vsize, fees }]) => !lifted.has(hash) && minorOf(fees.base) < perKvb(rate, BigInt(vsize)),
    )
    for (const hash of all.keys()) lifted.add(hash)
    const behind = await rpc.batch<Record<string, PooledTransaction>>(
      cheap.map(([hash]) => ['getmempooldescendants', hash, true]),
    )
    return cheap.reduce((missing, [, { vsize, fees }], index) => {
      const paidRates = Object.entries(known(behind[index]!) ?? {}).map(([hash, { ancestorsize, fees }]) => {
        if (hash === but || !kept.has(hash)) return 0n
        const together = (minorOf(fees.ancestor) * 1_000n) / BigInt(ancestorsize)
        return larger(together, but === undefined ? (paidUpTo.get(hash) ?? 0n) : 0n)
      })
      const paid = perKvb(paidRates.reduce(larger, 0n), BigInt(vsize))
      return missing + larger(perKvb(rate, BigInt(vsize)) - larger(paid, minorOf(fees.base)), 0n)
    }, 0n)
  }

  /** Scripts of new addresses for change. */
  async function changeScripts(count: number): Promise<Uint8Array[]> {
    const calls = (call: RpcCall) => Array.from({ length: count }, () => call)
    const addresses = await rpc.batch<string>(calls(dialect.newChangeAddress))
    const infos = await rpc.batch<{ scriptPubKey: string }>(
      addresses.map((address) => {
        if (address instanceof RpcError) throw address
        return ['getaddressinfo', address]
      }),
    )
    return infos.map((info) => {
      if (info instanceof RpcError) throw info
      return Uint8Array.from(Buffer.from(info.scriptPubKey, 'hex'))
    })
  }

  async function signed(hex: string): Promise<Buffer> {
    const method = 'signrawtransactionwithwallet'
    const reply = await rpc.call<{ hex: string; complete: boolean }>(method, hex)
    if (!reply.complete) throw new RpcError(method, WALLET_ERROR, 'the wallet has not all the keys')
    return Buffer.from(reply.hex, 'hex')
  }

  // ------------------------------------------------------------------------------------------------ on the chain

  /** Where transactions are now. The wallet knows those of its own that have been broadcast once. */
  async function whereabouts(hashes: string[]): Promise<Whereabouts[]> {
    // In this order: one that is mined in between is in the wallet by then.
    const pooled = await rpc.batch<object>(hashes.map((hash) => ['getmempoolentry', hash]))
    const found = await rpc.batch<WalletTransaction>(hashes.map((hash) => ['gettransaction', hash]))
    return found.map((one, index): Whereabouts => {
      const transaction = known(one)
      return {
        transaction,
        confirmations: Number(transaction?.confirmations ?? 0),
        inMempool: known(pooled[index]!) !== undefined,
      }
    })
  }

  /**
   * Refuses nothing, as nothing that the node says here is certain to stay: an input is gone because its parent is out
   * of the chain for now, a conflict is not deep, the fee is too low today. It waits with the node's reason and is
   * sent again. What is in the chain already, or can never be any more, is for `progress` to tell.
   */
  async function broadcast(withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]> {
    const bytes = new Map(withdrawals.map((one) => [one.crypto_tx_hash, one.raw_transaction]))
    const sent = await rpc.batch<string>(
      [...bytes.values()].map((raw) => ['sendrawtransaction', raw.toString('hex'), dialect.anyFee]),
    )
    const answers = new Map([...bytes.keys()].map((hash, index) => [hash, sent[index]!]))
    return withdrawals.map(({ crypto_tx_hash }) => {
      const answer = answers.get(crypto_tx_hash)!
      return answer instanceof RpcError && answer.code !== VERIFY_ALREADY_IN_CHAIN
        ? {
            accepted: false,
            reason: { code: 'NODE_REFUSED', detail: `the node does not take it yet: ${answer.message}` },
          }
        : { accepted: true }
    })
  }

  /**
   * For a withdrawal that was completed and whose block was taken back. The transaction may have been thrown out of the
   * mempool since; it pays the same withdrawals by the same outputs as before.
   */
  async function resend({ raw_transaction, crypto_tx_hash, replaced }: EndedTransaction): Promise<void> {
    const hashes = [crypto_tx_hash, ...replaced]
    for (const [index, { transaction, confirmations, inMempool }] of (await whereabouts(hashes)).entries()) {
      const hash = hashes[index]!
      if (confirmations > 0) throw new Error(`the chain has ${hash}, ${confirmations} blocks deep`)
      if (inMempool) throw new Error(`the node has ${hash}, and it waits for a block`)
      if (confirmations < 0 && hash === crypto_tx_hash)
        throw new Error(
          `${hash} can never be made: the chain has ${transaction!.walletconflicts.join(', ')} in its place`,
        )
    }
    const [sent] = await rpc.batch<string>([
      ['sendrawtransaction', raw_transaction.toString('hex'), dialect.anyFee],
    ])
    if (sent instanceof RpcError) throw new Error(`the node does not take it: ${sent.message}`)
  }

  async function checkStatus(withdrawals: BroadcastWithdrawal[]): Promise<PaymentStatus[]> {
    const byHash = new Map(withdrawals.map((one) => [one.crypto_tx_hash, one]))
    const now = await whereabouts([...byHash.keys()])
    const standings = new Map<string, Standing>()
    for (const [index, [hash, one]] of [...byHash].entries()) {
      const { transaction, confirmations, inMempool } = now[index]!
      if (transaction !== undefined && confirmations >= depth) standings.set(hash, { made: transaction })
      else if (transaction !== undefined && confirmations <= -depth)
        standings.set(hash, { instead: await inWallet(transaction.walletconflicts) })
      else if (confirmations !== 0) standings.set(hash, { state: 'MINED' })
      else if (inMempool) standings.set(hash, { state: 'PENDING' })
      else standings.set(hash, await lost(one))
    }
    const answers: PaymentStatus[] = []
    for (const withdrawal of withdrawals) {
      const standing = standings.get(withdrawal.crypto_tx_hash)!
      if ('made' in standing) answers.push(confirmed(standing.made, withdrawal))
      else if ('instead' in standing) answers.push(await madeInstead(standing.instead, withdrawal))
      else answers.push(standing)
    }
    return answers
  }

  /** Of its own transaction: each of several payments bears its part of the fee, so that all of them bear all of it. */
  function confirmed(transaction: WalletTransaction, withdrawal: BroadcastWithdrawal): PaymentStatus {
    const { crypto_tx_index } = withdrawal
    const paid = payments(transaction, withdrawal).find(
      ({ vout }) => crypto_tx_index === undefined || vout === crypto_tx_index,
    )
    assert(paid !== undefined, 'a withdrawal pays its destination')
    const all = sent(transaction)
    const share = { of: crypto_tx_index === undefined ? 1 : all.length, rank: all.indexOf(paid.vout) }
    return paidWith(transaction, paid.vout, crypto_tx_index === undefined ? ALONE : share)
  }

  function paidWith(transaction: WalletTransaction, crypto_tx_index: string, share: Share): PaymentStatus {
    assert(transaction.fee !== undefined, 'a transaction of the wallet has a fee')
    const amount = partOf(-minorOf(transaction.fee), share)
    return {
      state: 'CONFIRMED',
      crypto_tx_hash: transaction.txid,
      crypto_tx_index,
      networkFee: { asset: coin, amount: formatAmount(amount, DECIMALS) },
    }
  }

  /**
   * The network does not have it. It never will, if the wallet's own transactions, deep in the chain, have spent what
   * it spends, or what that came from: somebody has used the wallet while its locks were forgotten.
   */
  async function lost({ raw_transaction }: BroadcastWithdrawal): Promise<Standing> {
    for (const input of decode(raw_transaction).inputs) {
      const [txid, vout] = input.split(':') as [string, string]
      const [parent] = await inWallet([txid])
      const confirmations = Number(parent?.confirmations ?? 0)
      if (confirmations <= -depth) return { instead: [] }
      if (confirmations < depth || (await rpc.call('gettxout', txid, Number(vout), false)) !== null) continue
      const spender = await spenderSince(parent!.blockhash!, input)
      if (spender !== undefined) return { instead: [spender] }
    }
    return { state: 'UNKNOWN' }
  }

  /** The wallet's transaction that has spent the output, in the block or behind it, if it is deep. */
  async function spenderSince(block: string, outpoint: Outpoint): Promise<WalletTransaction | undefined> {
    const { previousblockhash } = await rpc.call<{ previousblockhash: string }>('getblockheader', block)
    const { transactions } = await rpc.call<{ transactions: Listed[] }>('listsinceblock', previousblockhash)
    const sent = transactions.filter(
      ({ category, confirmations }) => category === 'send' && Number(confirmations) >= depth,
    )
    const found = await inWallet([...new Set(sent.map(({ txid }) => txid))])
    return found.find(({ hex }) => decode(Buffer.from(hex, 'hex')).inputs.includes(outpoint))
  }

  /** What becomes of a withdrawal whose own transaction can never be made: one of these may have paid it. */
  async function madeInstead(
    others: WalletTransaction[],
    withdrawal: BroadcastWithdrawal,
  ): Promise<PaymentStatus> {
    for (const other of others) {
      if (Number(other.confirmations) < depth) continue
      const paid = await paidInstead(other, withdrawal)
      if (paid !== undefined) return paidWith(other, paid.vout, paid.share)
    }
    const spender = others.find(({ confirmations }) => Number(confirmations) >= depth)
    const message =
      spender === undefined
        ? 'a transaction that its own spends from can never be made'
        : `transaction ${spender.txid} has spent its coins, and pays nothing of it`
    return { state: 'FAILED', refusal: { status_details: { conflicting_transaction: { message } } } }
  }

  /**
   * The output of another transaction that is this withdrawal's payment: of its own after all, when that was mined a moment
   * ago, of one that it replaced, or of one that Bursar did not make, such as an operator's fee bump. Where its own pays
   * several, each output is one's of them. Another withdrawal's own is not.
   */
  async function paidInstead(
    other: WalletTransaction,
    withdrawal: BroadcastWithdrawal,
  ): Promise<{ vout: string; share: Share } | undefined> {
    const together = await payingTogether(withdrawal)
    const ids = together.map(({ transfer_id }) => transfer_id)
    const { rowCount } = await db.query(
      `select from outgoing_transfers where network = '${network}' and crypto_tx_hash = $1 and transfer_id <> all ($2) limit 1`,
      [other.txid, ids],
    )
    if (rowCount !== 0) return undefined
    const used = new Set<string>()
    const paid = together.flatMap((one) => {
      const found = payments(other, one).find(({ vout }) => !used.has(vout))
      if (found === undefined) return []
      used.add(found.vout)
      return [{ transfer_id: one.transfer_id, vout: found.vout }]
    })
    const rank = paid.findIndex(({ transfer_id }) => transfer_id === withdrawal.transfer_id)
    return rank < 0 ? undefined : { vout: paid[rank]!.vout, share: { of: paid.length, rank } }
  }

  /** The withdrawals that the same transaction pays, in the order of its outputs. */
  async function payingTogether(withdrawal: BroadcastWithdrawal): Promise<Destined[]> {
    if (withdrawal.crypto_tx_index === undefined) return [withdrawal]
    const { rows } = await db.query<Destined>(
      `
      select t.id as transfer_id, t.amount, t.destination_address
      from outgoing_transfers b
      join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
      where b.network = '${network}' and b.crypto_tx_hash = $1
      order by b.crypto_tx_index::int`,
      [withdrawal.crypto_tx_hash],
    )
    return rows.map((row) => ({
      ...row,
      destination_address: canonical(row.destination_address) ?? row.destination_address,
    }))
  }

  /** For an operator who says that this transaction of the wallet's is a withdrawal's. */
  async function claimTransaction(
    from: Queryable,
    withdrawal: PaidWithdrawal,
    hash: string,
  ): Promise<SignedTransaction> {
    // What is made instead of it is found without being told, once it is deep.
    if (withdrawal.raw_transaction !== null)
      throw new Error(
        `withdrawal ${withdrawal.transfer_id} has a transaction of its own, which may still be made`,
      )
    const [transaction] = await inWallet([hash])
    if (transaction === undefined) throw new Error(`the wallet of ${network} has no transaction ${hash}`)
    const { amount, destination_address } = withdrawal
    const paying = payments(transaction, withdrawal)
    if (paying.length === 0)
      throw new Error(`${hash} does not pay ${amount} ${coin} to ${destination_address}`)
    if (Number(transaction.confirmations) < 0)
      throw new Error(`another transaction was made instead of ${hash}`)
    const { rows } = await from.query<{ transfer_id: string; crypto_tx_index: string | null }>(
      `
      select b.transfer_id, coalesce(b.crypto_tx_index, t.crypto_tx_index) as crypto_tx_index
      from outgoing_transfers b
      join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
      where b.network = '${network}' and b.crypto_tx_hash = $1 and b.transfer_id <> $2`,
      [hash, withdrawal.transfer_id],
    )
    const owner = ({ vout }: { vout: string }) => rows.find(({ crypto_tx_index }) => crypto_tx_index === vout)
    const free = paying.find((output) => owner(output) === undefined)
    if (free === undefined)
      throw new Error(`${hash} is the transaction of withdrawal ${owner(paying[0]!)!.transfer_id}`)
    return {
      raw_transaction: Buffer.from(transaction.hex, 'hex'),
      crypto_tx_hash: transaction.txid,
      crypto_tx_index: free.vout,
      payments: sent(transaction).length,
    }
  }

  /**
   * What a transaction of the wallet has moved that an operator says is the platform's own. Outputs that withdrawals are
   * marked as paid by are theirs, and so is their part of the fee. Deposits in it are deposits.
   */
  async function movedBy(tx: Transaction, hash: string): Promise<MovedOnChain> {
    const [transaction] = await inWallet([hash])
    if (transaction === undefined) throw new Error(`the wallet of ${network} has no transaction ${hash}`)
    const { fee, confirmations } = transaction
    if (Number(confirmations) < depth)
      throw new Error(`${hash} has ${confirmations} confirmations, and needs ${depth}`)
    if ((await unknownOf(tx, [hash])).length === 0)
      throw new Error(`${hash} is known: it is a withdrawal's, or of the platform's own`)
    if (fee === undefined) return { moved: await broughtBy(tx, transaction), payments: [] }
    if (minorOf(fee) > 0n) throw new Error(`only a part of what ${hash} spends is the wallet's`)
    const { rows } = await tx.query<{ crypto_tx_index: string; amount: string }>(
      `
      select b.crypto_tx_index, t.amount
      from outgoing_transfers b
      join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
      where b.network = '${network}' and b.crypto_tx_hash = $1`,
      [hash],
    )
    const all = sent(transaction)
    const paid = rows.reduce((sum, { amount }) => sum + minorOf(amount), 0n)
    const theirs = rows.reduce(
      (sum, { crypto_tx_index }) =>
        sum + partOf(-minorOf(fee), { of: all.length, rank: all.indexOf(crypto_tx_index) }),
      0n,
    )
    // Negative: what all others than the wallet have got.
    const left = minorOf(transaction.amount) + paid
    const taken = new Set(rows.map(({ crypto_tx_index }) => crypto_tx_index))
    const free = transaction.details.filter(({ category, vout }) => category === 'send' && !taken.has(vout))
    return {
      payments: free.flatMap(({ address, amount }) => {
        const to = address === undefined ? undefined : canonical(address)
        return to === undefined
          ? []
          : { asset: coin, amount: formatAmount(-minorOf(amount), DECIMALS), address: to }
      }),
      moved: left === 0n ? [] : [{ asset: coin, amount: formatAmount(left, DECIMALS) }],
      networkFee: { asset: coin, amount: formatAmount(-minorOf(fee) - theirs, DECIMALS) },
    }
  }

  /** What somebody else's transaction has brought to the wallet, beside deposits. Throws an Error when that is nothing. */
  async function broughtBy(
    tx: Transaction,
    { txid, details }: WalletTransaction,
  ): Promise<MovedOnChain['moved']> {
    const received = details.flatMap(({ category, address, amount }) =>
      category === 'receive' ? [{ address: canonical(address ?? '') ?? '', amount: minorOf(amount) }] : [],
    )
    const { rows } = await tx.query<{ address: string }>(
      'select address from deposit_addresses where address = any ($1)',
      [received.map(({ address }) => address)],
    )
    const deposits = new Set(rows.map(({ address }) => address))
    const brought = received
      .filter(({ address }) => !deposits.has(address))
      .reduce((sum, { amount }) => sum + amount, 0n)
    if (brought === 0n)
      throw new Error(
        `${txid} has brought nothing to the hot wallet but deposits, which are credited by themselves`,
      )
    return [{ asset: coin, amount: formatAmount(brought, DECIMALS) }]
  }

  async function isOwnAddress(address: string): Promise<boolean> {
    const { ismine } = await rpc.call<{ ismine: boolean }>('getaddressinfo', address)
    return ismine
  }

  /**
   * The wallet's transactions behind a block ('': all), and the block at the depth. When the chain has left that block, the
   * node goes back to where it forked; when it does not even know the block, it gives everything.
   */
  async function since(
    block: string,
  ): Promise<{ transactions: Listed[]; removed?: Listed[]; lastblock: string }> {
    const list = (from: string) =>
      rpc.call<{ transactions: Listed[]; removed?: Listed[]; lastblock: string }>(
        'listsinceblock',
        from,
        depth,
      )
    return list(block).catch((error: unknown) => {
      if (error instanceof RpcError && error.code === BLOCK_NOT_FOUND) return list('')
      throw error
    })
  }

  /** Those of these transactions that the wallet knows. */
  async function inWallet(hashes: string[]): Promise<WalletTransaction[]> {
    const found = await rpc.batch<WalletTransaction>(hashes.map((hash) => ['gettransaction', hash]))
    return found.flatMap((one) => known(one) ?? [])
  }

  /** The outputs that pay the destination, in their order. Change is not among a transaction's details. */
  function payments(
    { details }: WalletTransaction,
    { amount, destination_address }: Omit<Destined, 'transfer_id'>,
  ) {
    return details
      .filter(
        (output) =>
          output.category === 'send' &&
          minorOf(output.amount) === -minorOf(amount) &&
          output.address !== undefined &&
          canonical(output.address) === destination_address,
      )
      .sort((one, other) => Number(one.vout) - Number(other.vout))
  }

  /** The outputs with which a transaction pays anybody, in their order. */
  function sent({ details }: WalletTransaction): string[] {
    const outputs = details.filter(({ category }) => category === 'send').map(({ vout }) => vout)
    return [...new Set(outputs)].sort((one, other) => Number(one) - Number(other))
  }

  // ------------------------------------------------------------------------------------------------ replacing

  /**
   * The same inputs and the same payment, and less change. The wallet's own `psbtbumpfee` may add inputs and send other
   * outputs, and `bumpfee` broadcasts what nobody has kept; this one spends exactly what the other spends, so that
   * whichever is made, the other can never be.
   *
   * One whose change is spent is not replaced, since all that spends it could never be made. The last of such a chain is,
   * and pays for those before it: nodes choose what they mine by what it pays together with all that it waits for.
   */
  async function replace(
    tx: Transaction,
    withdrawals: BroadcastWithdrawal[],
  ): Promise<(SignedTransaction | undefined)[]> {
    const rate = await feeRate()
    const { incrementalfee } = await rpc.call<{ incrementalfee: string }>('getnetworkinfo')
    // What is signed on the change of one that is replaced could never be made.
    const all = await keptTransactions(tx)
    const parents = new Set(all.flatMap(({ raw_transaction }) => decode(raw_transaction).inputs.map(hashIn)))
    const kept = new Set(all.map(({ crypto_tx_hash }) => crypto_tx_hash))
    const rates = { current: rate, step: minorOf(incrementalfee), lifted: new Set<string>(), kept }
    const replacements = new Map<string, SignedTransaction | undefined>()
    for (const { crypto_tx_hash } of withdrawals) {
      if (replacements.has(crypto_tx_hash)) continue
      const together = withdrawals.filter((one) => one.crypto_tx_hash === crypto_tx_hash)
      const isParent = parents.has(crypto_tx_hash)
      replacements.set(crypto_tx_hash, isParent ? undefined : await replacement(together, rates))
    }
    return withdrawals.map(({ crypto_tx_hash, crypto_tx_index }) => {
      const bumped = replacements.get(crypto_tx_hash)
      return bumped && { ...bumped, ...(crypto_tx_index !== undefined && { crypto_tx_index }) }
    })
  }

  /** Of the transaction that pays these, which are all that it pays. */
  async function replacement(
    together: BroadcastWithdrawal[],
    rates: { current: bigint; step: bigint; lifted: Set<string>; kept: ReadonlySet<string> },
  ): Promise<SignedTransaction | undefined> {
    const { raw_transaction, crypto_tx_hash } = together[0]!
    // Only a consolidation has a maximum of its own.
    const most = smaller(ceiling!, feeMaxOf(together[0]!) ?? ceiling!)
    const old = RawTx.decode(raw_transaction)
    if (!old.inputs.every(({ sequence }) => sequence <= REPLACEABLE_SEQUENCE_MAX)) return undefined
    const hex = raw_transaction.toString('hex')
    const [decoded, pooled] = await rpc.batch<{ vsize: string; vout: Output[]; descendantcount: string }>([
      ['decoderawtransaction', hex],
      ['getmempoolentry', crypto_tx_hash],
    ])
    // Others that came in on it would go with it, an operator's too.
    if (Number(known(pooled!)?.descendantcount ?? 1) > 1) return undefined
    const { vsize, vout } = known(decoded!)!
    const isPayment = (one: Output, index: number) =>
      together.some(({ crypto_tx_index, amount, destination_address }) => {
        if (crypto_tx_index !== undefined) return Number(crypto_tx_index) === index
        return minorOf(one.value) === minorOf(amount) && addressOf(one) === destination_address
      })
    const change = vout.flatMap((one, index) => (isPayment(one, index) ? [] : [index]))
    if (change.length === 0) return undefined
    for (const index of change) if (!(await isOwn(vout[index]!))) return undefined

    const paid = (await spentBy(decode(raw_transaction).inputs)) - sumOf(old.outputs)
    // A signature may be a byte longer than the last one.
    const size = BigInt(vsize) + BigInt(old.inputs.length)
    const amounts = old.outputs.map(({ amount }: { amount: bigint }) => amount)
    const there = change.reduce((sum, index) => sum + larger(amounts[index]! - CHANGE_MIN, 0n), 0n)
    const own = perKvb(rates.current, size)
    const parents = decode(raw_transaction).inputs.map(hashIn)
    const looked = new Set(rates.lifted)
    const atRate = { rate: rates.current, kept: rates.kept }
    const lift = await missingFee(parents, atRate, { lifted: looked, but: crypto_tx_hash })
    // Where the change does not do for both, its own fee comes first.
    const lifts = own + lift - paid <= there
    const fee = lifts ? own + lift : own
    // Nodes take nothing that pays less for being relayed again. What pays about the current fee stays.
    if (fee - own + perKvb(rates.current, BigInt(vsize)) < paid + perKvb(rates.step, size)) return undefined
    let missing = fee - paid
    for (const index of change) {
      const most = amounts[index]! - CHANGE_MIN
      if (most <= 0n) continue
      const taken = smaller(most, missing)
      amounts[index]! -= taken
      missing -= taken
    }
    if (rates.current > most || missing > 0n) return undefined
    const unsigned = RawOldTx.encode({
      version: old.version,
      inputs: old.inputs.map((input) => ({ ...input, finalScriptSig: new Uint8Array() })),
      outputs: old.outputs.map((output, index) => ({ ...output, amount: amounts[index]! })),
      lockTime: old.lockTime,
    })
    const bumped = await signed(Buffer.from(unsigned).toString('hex'))
    // As long as its mempool has the other one, a node may take none in its place: Litecoin Core does not by default.
    const [test] = await rpc.call<{ allowed: boolean }[]>(
      'testmempoolaccept',
      [bumped.toString('hex')],
      dialect.anyFee,
    )
    if (!test!.allowed) return undefined
    if (lifts) for (const hash of looked) rates.lifted.add(hash)
    const shared = together[0]!.crypto_tx_index !== undefined
    return {
      raw_transaction: bumped,
      crypto_tx_hash: decode(bumped).txid,
      ...(shared && { payments: together.length }),
    }
  }

  const addressOf = ({ scriptPubKey: { address, addresses = [] } }: Output) =>
    canonical(address ?? addresses[0] ?? '')

  /** Whether an output is the wallet's: one that an operator made may have several recipients. */
  async function isOwn({ scriptPubKey: { address, addresses = [] } }: Output): Promise<boolean> {
    const { ismine } = await rpc.call<{ ismine: boolean }>('getaddressinfo', address ?? addresses[0])
    return ismine
  }

  /** The sum of outputs of the wallet's transactions. */
  async function spentBy(inputs: Outpoint[]): Promise<bigint> {
    let sum = 0n
    for (const input of inputs) {
      const [txid, vout] = input.split(':') as [string, string]
      const { hex } = await rpc.call<WalletTransaction>('gettransaction', txid)
      sum += decode(Buffer.from(hex, 'hex')).outputs[Number(vout)]!
    }
    return sum
  }

  // ------------------------------------------------------------------------------------------------ deposits

  async function newDepositAddress() {
    const written = await rpc.call<string>(...dialect.newAddress)
    const address = canonical(written)
    assert(address !== undefined, `the node of ${network} gives out addresses of another kind: ${written}`)
    return { address }
  }

  /**
   * Every output that the wallet has received, once it is deep enough; without a cursor, from the wallet's beginning,
   * so that no deposit is missed that came before the first look. The cursor is the block at the depth: all at or
   * below it has been given.
   */
  async function scanDeposits(cursor: string | null): Promise<DepositScan> {
    // What was simulated before has left a cursor of another kind.
    const from = cursor !== null && BLOCK_HASH.test(cursor) ? cursor : ''
    const { transactions, removed = [], lastblock } = await since(from)
    // Those of blocks that the chain has left, at the depth: they were given before. Deep in new blocks they may stay.
    const gone = removed.flatMap(({ category, txid, vout, confirmations }) =>
      category === 'receive' && vout !== undefined && Number(confirmations) < depth
        ? [{ crypto_tx_hash: txid, crypto_tx_index: vout }]
        : [],
    )
    return {
      cursor: lastblock,
      found: await depositsIn(transactions),
      ...(gone.length > 0 && { removed: gone }),
    }
  }

  /** What came in since a block; up to which one the node cannot be told. */
  async function scanBlocks(first: bigint): Promise<FoundDeposit[]> {
    const before = first <= 1n ? '' : await rpc.call<string>('getblockhash', Number(first - 1n))
    return depositsIn((await since(before)).transactions)
  }

  /**
   * What came in, without what the wallet itself has sent and this database does not know. Coins that somebody has moved by hand
   * to a deposit address were in custody before: credited, they would be owed twice.
   */
  async function depositsIn(transactions: Listed[]): Promise<FoundDeposit[]> {
    const found = transactions.flatMap(foundDepositOf)
    const own = new Set(transactions.flatMap(({ category, txid }) => (category === 'send' ? txid : [])))
    const doubted = new Set(
      found.flatMap(({ crypto_tx_hash }) => (own.has(crypto_tx_hash) ? crypto_tx_hash : [])),
    )
    if (doubted.size === 0) return found
    const isPayment = await knownPayments([...doubted])
    return found.filter((one) => !doubted.has(one.crypto_tx_hash) || isPayment(one))
  }

  /**
   * Tells of an output of these transactions, all of the wallet's, whether it is a payment that this database knows. A fee bump
   * made by hand pays as what it conflicts with. Of a transaction that an operator said to have paid withdrawals, only their outputs are known.
   */
  async function knownPayments(
    hashes: string[],
  ): Promise<(output: Pick<FoundDeposit, 'crypto_tx_hash' | 'crypto_tx_index'>) => boolean> {
    const made = await ownPayments(hashes)
    const others = hashes.filter((hash) => !made.has(hash))
    const bumps = others.length === 0 ? [] : await inWallet(others)
    const conflicts = bumps.flatMap(({ walletconflicts }) => walletconflicts)
    const bumped = conflicts.length === 0 ? new Map() : await ownPayments(conflicts)
    const replacing = new Set(
      bumps.flatMap(({ txid, walletconflicts }) =>
        walletconflicts.some((hash) => bumped.has(hash)) ? txid : [],
      ),
    )
    return ({ crypto_tx_hash: hash, crypto_tx_index: index }) =>
      replacing.has(hash) || made.get(hash) === 'ALL' || made.get(hash)?.includes(index) === true
  }

  /** By the hashes of those that are withdrawals' or the platform's, or were replaced: which outputs are payments. */
  async function ownPayments(hashes: string[]): Promise<Map<string, 'ALL' | string[]>> {
    const { rows } = await db.query<{ crypto_tx_hash: string; outputs: string[] | null }>(
      `
      select b.crypto_tx_hash,
             case when bool_and(coalesce(n.kind, '') = 'MARKED') then array_agg(b.crypto_tx_index) end as outputs
      from outgoing_transfers b
      left join network_transactions n on n.network = b.network and n.crypto_tx_hash = b.crypto_tx_hash
      where b.network = '${network}' and b.crypto_tx_hash = any ($1)
      group by b.crypto_tx_hash
      union
      select crypto_tx_hash, null from replaced_transactions where crypto_tx_hash = any ($1)`,
      [hashes],
    )
    return new Map(rows.map(({ crypto_tx_hash, outputs }) => [crypto_tx_hash, outputs ?? 'ALL']))
  }

  /** Mined coins have other categories, and change is not listed. */
  function foundDepositOf({ category, address, amount, confirmations, txid, vout }: Listed): FoundDeposit[] {
    if (category !== 'receive' || Number(confirmations) < depth) return []
    const to = address === undefined ? undefined : canonical(address)
    if (to === undefined || vout === undefined) return []
    return [
      {
        address: to,
        asset: coin,
        amount: formatAmount(minorOf(amount), DECIMALS),
        crypto_tx_hash: txid,
        crypto_tx_index: vout,
      },
    ]
  }

  return {
    pollMs,
    signsAlone: true,
    paysMany: PAYMENTS_MAX,
    asksNode: true,
    ready: async () => void (await rpc.call('getblockcount')),
    review: () => ({ verdict: 'PASS' }),
    sign,
    broadcast,
    checkStatus: checkStatus,
    ...(dialect.isReplaceable && { replace, stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS }),
    claimTransaction: claimTransaction,
    resend,
    movedBy,
    isOwnAddress,
    planConsolidation,
    newDepositAddress,
    scanDeposits: scanDeposits,
    scanBlocks: scanBlocks,
    estimateFee,
    /**
     * Held is the wallet's trusted balance: outputs in a block and its own change in the mempool, locked or not. When
     * no withdrawal is on its way and all that was deposited is deep enough, that is what the ledger has in custody.
     */
    async status() {
      const [height, balance] = [
        await rpc.call<string>('getblockcount'),
        await rpc.call<string>('getbalance'),
      ]
      return { height: Number(height), held: { [coin]: formatAmount(minorOf(balance), DECIMALS) } }
    },
  }
}

/** The fee of so many virtual bytes, rounded up. */
const perKvb = (rate: bigint, vbytes: bigint): bigint => (rate * vbytes + 999n) / 1000n
const sumOf = (outputs: readonly { amount: bigint }[]) =>
  outputs.reduce((sum, { amount }) => sum + amount, 0n)
const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other)
const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)

const waits = (reason: WaitingReason): Signing => ({ outcome: 'DEFERRED', reason })

/** What an operator is told of transactions that this database does not know. */
function describeUnknownSpends(spend: UnknownSpend, others: UnknownSpend[]): string {
  const heights = [spend, ...others].map(({ height = Infinity }) => height)
  const top = Math.max(...heights)
  return (
    `the wallet has sent ${spend.txid}${others.length > 0 ? ` and ${others.length} more` : ''}, which this ` +
    `database does not know: it was restored from an older backup, or the wallet is used elsewhere; ` +
    `'bursar withdrawal mark-paid' says what was paid, 'bursar wallet acknowledge' what was the platform's own, first_height ` +
    `${top === Infinity ? '(once all are in blocks)' : top + 1} that all was looked at`
  )
}

/** The node will never pay this. */
function refused(
  what: 'amount' | 'destination address',
  reason: string,
  { destination_address }: Withdrawal,
): Signing {
  const message = `the network refused the ${what}: ${reason}`
  const refusal: Refusal = {
    status_details: { invalid_destination_address: { message, destination_address } },
  }
  return { outcome: 'REFUSED', refusal }
}

/** How near an output is to dust: nodes take more for one that costs more to spend. */
const dustiness = ({ amount, script }: Payment): bigint => {
  const isWitness = script[0] === 0 || (script[0]! >= 0x51 && script[0]! <= 0x60)
  return (amount * 1_000n) / BigInt(8 + 1 + script.length + (isWitness ? 67 : 148))
}

/** The part of a fee that one of several payments bears. All of them bear all of it, to the last unit. */
function partOf(fee: bigint, { of, rank }: Share): bigint {
  const upTo = (count: number) => (fee * BigInt(count)) / BigInt(of)
  return upTo(rank + 1) - upTo(rank)
}

/** What was found; undefined when the node does not know it. Throws on any other refusal. */
function known<T>(found: T | RpcError): T | undefined {
  if (!(found instanceof RpcError)) return found
  if (found.code === UNKNOWN_TRANSACTION) return undefined
  throw found
}

/** The estimate per kvB, where the node has one. */
function estimateOf(reply: unknown): bigint | undefined {
  if (reply instanceof RpcError) throw reply
  const text = typeof reply === 'string' ? reply : (reply as { feerate?: string }).feerate
  const rate = text === undefined ? -1n : minorOf(text)
  return rate > 0n ? rate : undefined
}

const minorOf = (amount: string): bigint => parseStoredAmount(amount, DECIMALS)
const outpointOf = ({ txid, vout }: { txid: string; vout: string }): Outpoint => `${txid}:${vout}`

const hashIn = (outpoint: Outpoint): string => outpoint.split(':')[0]!

/** What a raw transaction says: its hash, the outputs that it spends, and the amounts that it pays. */
function decode(raw: Buffer): { txid: string; inputs: Outpoint[]; outputs: bigint[] } {
  const { version, inputs, outputs, lockTime } = RawTx.decode(raw)
  // The hash leaves the witnesses out, and is written backwards.
  const hashed = sha256(sha256(RawOldTx.encode({ version, inputs, outputs, lockTime })))
  return {
    txid: hashed.reverse().toString('hex'),
    inputs: inputs.map(({ txid, index }) => `${Buffer.from(txid).toString('hex')}:${index}`),
    outputs: outputs.map((output: { amount: bigint }) => output.amount),
  }
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
