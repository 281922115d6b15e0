import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { RawOldTx, RawTx } from '@scure/btc-signer/script.js'
import { formatAmount, parseAmount, parseStoredAmount } from '../assets/amount.ts'
import { NETWORKS } from '../assets/catalogue.ts'
import type { Database, Transaction } from '../db/database.ts'
import { canonicalAddress } from './addresses.ts'
import { bitcoinRpc, RpcError, type BitcoinRpcConfig, type RpcCall } from './bitcoin-rpc.ts'
import type {
  Arrival,
  BroadcastAnswer,
  BroadcastWithdrawal,
  NetworkAdapter,
  NetworkFee,
  PaidWithdrawal,
  Progress,
  Refusal,
  SignedTransaction,
  Signing,
  Withdrawal,
} from './networks.ts'

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
  /** What the wallet has sent in blocks below this one was looked at, and is not Bursar's to know. */
  firstHeight?: number
}

const DECIMALS = 8
const BLOCK_HASH = /^[0-9a-f]{64}$/
const POLL_MS = 5_000
/** Long enough for the six blocks that fees are estimated for, where blocks take minutes. */
const STUCK_AFTER_MS = 3_600_000
/** The least that is left to the change of a replacement: less may be dust, which no node relays. */
const CHANGE_MIN = 10_000n
/** Inputs with a higher sequence cannot be replaced (BIP 125). */
const REPLACEABLE_SEQUENCE_MAX = 0xffff_fffd
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
    estimate: ['estimatefee'],
    isReplaceable: false,
    anyFee: true,
    typicalVbytes: 374n,
  },
}

/** What is signed and has not ended. A network that was simulated before has other bytes. */
const KEPT = `
  select raw_transaction from broadcasts
  where network = $1 and due_at is not null and state in ('SIGNED', 'BROADCAST')
    and get_byte(raw_transaction, 0) <> ascii('{')`

/** What was replaced by something that has not ended. */
const REPLACED = `
  select r.crypto_tx_hash
  from broadcasts b
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

/** What can be spent, and what kept transactions are going to spend. */
interface Coins {
  free: Map<Outpoint, bigint>
  taken: Set<Outpoint>
  isTaken: (outpoint: Outpoint) => boolean
}

interface Unspent {
  txid: string
  vout: string
  amount: string
  spendable: boolean
  safe: boolean
}

interface WalletTransaction {
  txid: string
  hex: string
  blockhash?: string
  confirmations: string
  /** Negative. */
  fee?: string
  walletconflicts: string[]
  details: { category: string; address?: string; amount: string; vout: string }[]
}

/** Where a transaction is: in the wallet or not, how deep (below 0: how deep what conflicts with it is), waiting for a block. */
interface Whereabouts {
  transaction: WalletTransaction | undefined
  confirmations: number
  inMempool: boolean
}

/** What the wallet has sent and nobody here knows. Without a height it is in no block yet. */
interface Stranger {
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
  Required<Pick<NetworkAdapter, 'newDepositAddress' | 'arrivals' | 'estimateFee' | 'status'>> {
  const { confirmations: depth, pollMs = POLL_MS } = config
  const rpc = bitcoinRpc(config)
  const dialect = DIALECTS[network]
  const coin = NETWORKS[network].gasAsset
  const ceiling = parseAmount(config.feeCeiling, DECIMALS)
  assert(ceiling !== undefined && ceiling > 0n, `the fee ceiling of ${network} is no amount of ${coin}`)
  assert(Number.isInteger(depth) && depth >= 1, `the confirmations of ${network} are no depth`)

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
    const { rows } = await tx.query<{ raw_transaction: Buffer }>(KEPT, [network])
    const taken = new Set(rows.flatMap(({ raw_transaction }) => decode(raw_transaction).inputs))
    // Until the replacement is broadcast, the wallet would spend the change of the one that it replaces.
    const replaced = await tx.query<{ crypto_tx_hash: string }>(REPLACED, [network])
    const gone = new Set(replaced.rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
    const isTaken = (outpoint: Outpoint) => taken.has(outpoint) || gone.has(outpoint.split(':')[0]!)
    const locked = await rpc.call<{ txid: string; vout: string }[]>('listlockunspent')
    await setLocks(
      'unlock',
      locked.map(outpointOf).filter((outpoint) => !isTaken(outpoint)),
    )

    const unspent = await rpc.call<Unspent[]>('listunspent', 0)
    // One that is spent already cannot be locked, and need not be.
    await setLocks('lock', unspent.map(outpointOf).filter(isTaken))
    const free = unspent.filter((output) => output.spendable && output.safe && !isTaken(outpointOf(output)))
    return {
      free: new Map(free.map((output) => [outpointOf(output), minorOf(output.amount)])),
      taken,
      isTaken,
    }
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
  async function sentElsewhere(tx: Transaction): Promise<string | undefined> {
    const { rows } = await tx.query<{ checked_block: string }>(
      'select checked_block from wallet_checks where network = $1',
      [network],
    )
    const from = rows[0]?.checked_block ?? ''
    const behind = await catchesUp(from)
    if (behind !== undefined) return behind
    const { transactions, lastblock } = await since(from)
    const sent = transactions.filter(
      ({ category, confirmations, abandoned }) =>
        category === 'send' && Number(confirmations) >= 0 && abandoned !== true,
    )
    const unknown = await unknownOf(tx, [...new Set(sent.map(({ txid }) => txid))])
    const [stranger, ...others] = await notLookedAt(tx, unknown)
    if (stranger !== undefined) return elsewhere(stranger, others)
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

  /** Those of these hashes that are no withdrawal's, whatever replaced it. */
  async function unknownOf(tx: Transaction, hashes: string[]): Promise<string[]> {
    if (hashes.length === 0) return []
    // With the network's name in it, as the index has it.
    const { rows } = await tx.query<{ crypto_tx_hash: string }>(
      `
      select crypto_tx_hash from broadcasts where network = '${network}' and crypto_tx_hash = any ($1)
      union all
      select crypto_tx_hash from replaced_transactions where crypto_tx_hash = any ($1)`,
      [hashes],
    )
    const known = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
    return hashes.filter((hash) => !known.has(hash))
  }

  /** With their heights, those that were not looked at, and that are not made in the place of one that is known. */
  async function notLookedAt(tx: Transaction, hashes: string[]): Promise<Stranger[]> {
    const strangers: Stranger[] = []
    for (const { txid, blockhash, walletconflicts } of await inWallet(hashes)) {
      if ((await unknownOf(tx, walletconflicts)).length < walletconflicts.length) continue
      const height = blockhash === undefined ? undefined : await heightOf(blockhash)
      if (height === undefined || height >= (config.firstHeight ?? 0)) strangers.push({ txid, height })
    }
    return strangers
  }

  async function heightOf(block: string): Promise<number> {
    const { height } = await rpc.call<{ height: string }>('getblockheader', block)
    return Number(height)
  }

  async function sign(tx: Transaction, withdrawals: Withdrawal[]): Promise<Signing[]> {
    const strange = await sentElsewhere(tx)
    if (strange !== undefined) return withdrawals.map(() => waits(strange))
    const coins = await reconcileLocks(tx)
    const rate = await feeRate()
    const waiting = new Set<string>()
    const signings: Signing[] = []
    for (const withdrawal of withdrawals) {
      const signing = waiting.has(withdrawal.profile_id)
        ? waits('an earlier withdrawal of the profile waits')
        : await signOne(withdrawal, coins, rate)
      if (signing.outcome === 'WAITS') waiting.add(withdrawal.profile_id)
      signings.push(signing)
    }
    return signings
  }

  async function signOne(withdrawal: Withdrawal, coins: Coins, rate: bigint): Promise<Signing> {
    const amount = minorOf(withdrawal.amount)
    const there = [...coins.free.values()].reduce((sum, value) => sum + value, 0n)
    const short = `the hot wallet has ${inCoin(there)} to spend, and ${inCoin(amount)} and the fee are needed`
    if (there < amount) return waits(short)
    if (rate > ceiling!)
      return waits(`the network's fee is ${inCoin(rate)} for a kvB, and the ceiling ${inCoin(ceiling!)}`)
    try {
      return { outcome: 'SIGNED', ...(await fundAndSign(withdrawal, coins, rate)) }
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const refusal = refusalOf(error, withdrawal)
      if (refusal !== undefined) return { outcome: 'REFUSED', refusal }
      // Whatever it is, it is this one's, and holds up no other: the wallet may do tomorrow what it refuses today.
      return waits(`${short} (${error.message})`)
    }
  }

  /** Throws RpcError, with nothing locked. */
  async function fundAndSign(
    { amount, destination_address }: Withdrawal,
    { free, taken, isTaken }: Coins,
    rate: bigint,
  ): Promise<SignedTransaction> {
    const unfunded = await rpc.call<string>('createrawtransaction', [], [{ [destination_address]: amount }])
    const feeRate = formatAmount(rate, DECIMALS)
    const funded = await rpc.call<{ hex: string; changepos: string }>('fundrawtransaction', unfunded, {
      feeRate,
      lockUnspents: true,
      ...(dialect.isReplaceable && { replaceable: true }),
    })
    const { inputs, outputs } = decode(Buffer.from(funded.hex, 'hex'))
    // A node that restarts between the two calls has forgotten the locks. The next attempt puts them right.
    if (inputs.some(isTaken)) throw new Error(`the node of ${network} has lost its locks`)
    const paid = outputs.filter((_, index) => index !== Number(funded.changepos))
    assert(paid.length === 1 && paid[0] === minorOf(amount), 'a withdrawal pays its amount and nothing else')

    const raw_transaction = await signed(funded.hex).catch(async (error: unknown) => {
      if (error instanceof RpcError) await setLocks('unlock', inputs)
      throw error
    })
    for (const input of inputs) {
      free.delete(input)
      taken.add(input)
    }
    return { raw_transaction, crypto_tx_hash: decode(raw_transaction).txid }
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
    const sent = await rpc.batch<string>(
      withdrawals.map(({ raw_transaction }) => [
        'sendrawtransaction',
        raw_transaction.toString('hex'),
        dialect.anyFee,
      ]),
    )
    return sent.map((answer) =>
      answer instanceof RpcError && answer.code !== VERIFY_ALREADY_IN_CHAIN
        ? { accepted: false, waits: `the node does not take it yet: ${answer.message}` }
        : { accepted: true },
    )
  }

  async function progress(withdrawals: BroadcastWithdrawal[]): Promise<Progress[]> {
    const now = await whereabouts(withdrawals.map(({ crypto_tx_hash }) => crypto_tx_hash))
    const answers: Progress[] = []
    for (const [index, withdrawal] of withdrawals.entries()) {
      const { transaction, confirmations, inMempool } = now[index]!
      if (transaction !== undefined && confirmations >= depth)
        answers.push(confirmed(transaction, withdrawal))
      else if (transaction !== undefined && confirmations <= -depth)
        answers.push(await madeInstead(await inWallet(transaction.walletconflicts), withdrawal))
      else if (confirmations !== 0) answers.push({ state: 'MADE' })
      else if (inMempool) answers.push({ state: 'PENDING' })
      else answers.push(await lost(withdrawal))
    }
    return answers
  }

  function confirmed(transaction: WalletTransaction, withdrawal: Withdrawal): Progress {
    const paid = payment(transaction, withdrawal)
    assert(paid !== undefined && transaction.fee !== undefined, 'a withdrawal pays its destination')
    return {
      state: 'CONFIRMED',
      crypto_tx_hash: transaction.txid,
      crypto_tx_index: paid.vout,
      networkFee: { asset: coin, amount: formatAmount(-minorOf(transaction.fee), DECIMALS) },
    }
  }

  /**
   * The network does not have it. It never will, if the wallet's own transactions, deep in the chain, have spent what
   * it spends, or what that came from: somebody has used the wallet while its locks were forgotten.
   */
  async function lost(withdrawal: BroadcastWithdrawal): Promise<Progress> {
    for (const input of decode(withdrawal.raw_transaction).inputs) {
      const [txid, vout] = input.split(':') as [string, string]
      const [parent] = await inWallet([txid])
      const confirmations = Number(parent?.confirmations ?? 0)
      if (confirmations <= -depth) return madeInstead([], withdrawal)
      if (confirmations < depth || (await rpc.call('gettxout', txid, Number(vout), false)) !== null) continue
      const spender = await spenderSince(parent!.blockhash!, input)
      if (spender !== undefined) return madeInstead([spender], withdrawal)
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
  ): Promise<Progress> {
    for (const other of others) {
      if (Number(other.confirmations) < depth) continue
      if (await pays(other, withdrawal)) return confirmed(other, withdrawal)
    }
    return { state: 'FAILED', refusal: {} }
  }

  /** For an operator who says that this transaction of the wallet's is a withdrawal's. */
  async function paidBy(withdrawal: PaidWithdrawal, hash: string): Promise<SignedTransaction> {
    // What is made instead of it is found without being told, once it is deep.
    if (withdrawal.raw_transaction !== null)
      throw new Error(
        `withdrawal ${withdrawal.transfer_id} has a transaction of its own, which may still be made`,
      )
    const [transaction] = await inWallet([hash])
    if (transaction === undefined) throw new Error(`the wallet of ${network} has no transaction ${hash}`)
    const { amount, destination_address } = withdrawal
    if (payment(transaction, withdrawal) === undefined)
      throw new Error(`${hash} does not pay ${amount} ${coin} to ${destination_address}`)
    if (Number(transaction.confirmations) < 0)
      throw new Error(`another transaction was made instead of ${hash}`)
    return { raw_transaction: Buffer.from(transaction.hex, 'hex'), crypto_tx_hash: transaction.txid }
  }

  /**
   * The wallet's transactions behind a block ('': all), and the block at the depth. When the chain has left that block, the
   * node goes back to where it forked; when it does not even know the block, it gives everything.
   */
  async function since(block: string): Promise<{ transactions: Listed[]; lastblock: string }> {
    const list = (from: string) =>
      rpc.call<{ transactions: Listed[]; lastblock: string }>('listsinceblock', from, depth)
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

  /**
   * Whether a transaction is this withdrawal's payment: its own after all, when it was mined a moment ago, or one that
   * Bursar did not make, such as an operator's fee bump. Another withdrawal's own is not.
   */
  async function pays(transaction: WalletTransaction, withdrawal: BroadcastWithdrawal): Promise<boolean> {
    if (payment(transaction, withdrawal) === undefined) return false
    const { rowCount } = await db.query(
      'select from broadcasts where network = $1 and crypto_tx_hash = $2 and transfer_id <> $3 limit 1',
      [network, transaction.txid, withdrawal.transfer_id],
    )
    return rowCount === 0
  }

  /** The output that pays the destination. */
  function payment({ details }: WalletTransaction, { amount, destination_address }: Withdrawal) {
    return details.find(
      (output) =>
        output.category === 'send' &&
        minorOf(output.amount) === -minorOf(amount) &&
        output.address !== undefined &&
        canonical(output.address) === destination_address,
    )
  }

  // ------------------------------------------------------------------------------------------------ replacing

  /**
   * The same inputs and the same payment, and less change. The wallet's own `psbtbumpfee` may add inputs and send other
   * outputs, and `bumpfee` broadcasts what nobody has kept; this one spends exactly what the other spends, so that
   * whichever is made, the other can never be.
   */
  async function replace(
    tx: Transaction,
    withdrawals: BroadcastWithdrawal[],
  ): Promise<(SignedTransaction | undefined)[]> {
    const rate = await feeRate()
    const { incrementalfee } = await rpc.call<{ incrementalfee: string }>('getnetworkinfo')
    // What is signed on the change of one that is replaced could never be made.
    const { rows } = await tx.query<{ raw_transaction: Buffer }>(KEPT, [network])
    const parents = new Set(
      rows.flatMap(({ raw_transaction }) =>
        decode(raw_transaction).inputs.map((outpoint) => outpoint.split(':')[0]!),
      ),
    )
    const replacements: (SignedTransaction | undefined)[] = []
    for (const withdrawal of withdrawals) {
      const isParent = parents.has(withdrawal.crypto_tx_hash)
      const rates = { current: rate, step: minorOf(incrementalfee) }
      replacements.push(isParent ? undefined : await replacement(withdrawal, rates))
    }
    return replacements
  }

  async function replacement(
    { raw_transaction, crypto_tx_hash, amount, destination_address }: BroadcastWithdrawal,
    rates: { current: bigint; step: bigint },
  ): Promise<SignedTransaction | undefined> {
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
    const isPayment = ({ value, scriptPubKey: { address, addresses = [] } }: Output) =>
      minorOf(value) === minorOf(amount) && canonical(address ?? addresses[0] ?? '') === destination_address
    const change = vout.findIndex((output) => !isPayment(output))
    if (change < 0 || !(await isOwn(vout[change]!))) return undefined

    const paid = (await spentBy(decode(raw_transaction).inputs)) - sumOf(old.outputs)
    // A signature may be a byte longer than the last one.
    const size = BigInt(vsize) + BigInt(old.inputs.length)
    const fee = perKvb(rates.current, size)
    // Nodes take nothing that pays less for being relayed again. What pays about the current fee stays.
    if (perKvb(rates.current, BigInt(vsize)) < paid + perKvb(rates.step, size)) return undefined
    const left = old.outputs[change]!.amount - (fee - paid)
    if (rates.current > ceiling! || left < CHANGE_MIN) return undefined
    const unsigned = RawOldTx.encode({
      version: old.version,
      inputs: old.inputs.map((input) => ({ ...input, finalScriptSig: new Uint8Array() })),
      outputs: old.outputs.map((output, index) => (index === change ? { ...output, amount: left } : output)),
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
    return { raw_transaction: bumped, crypto_tx_hash: decode(bumped).txid }
  }

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
  async function arrivals(cursor: string | null): Promise<{ cursor: string; arrivals: Arrival[] }> {
    // What was simulated before has left a cursor of another kind.
    const { transactions, lastblock } = await since(cursor !== null && BLOCK_HASH.test(cursor) ? cursor : '')
    return { cursor: lastblock, arrivals: transactions.flatMap(arrivalOf) }
  }

  /** Mined coins have other categories, and change is not listed. */
  function arrivalOf({ category, address, amount, confirmations, txid, vout }: Listed): Arrival[] {
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
    asksNode: true,
    ready: async () => void (await rpc.call('getblockcount')),
    review: () => ({ verdict: 'PASS' }),
    sign,
    broadcast,
    progress,
    ...(dialect.isReplaceable && { replace, stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS }),
    paidBy: (_tx, withdrawal, hash) => paidBy(withdrawal, hash),
    newDepositAddress,
    arrivals,
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
const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)

const waits = (reason: string): Signing => ({ outcome: 'WAITS', reason })

/** What an operator is told of transactions that this database does not know. */
function elsewhere(stranger: Stranger, others: Stranger[]): string {
  const heights = [stranger, ...others].map(({ height = Infinity }) => height)
  const top = Math.max(...heights)
  return (
    `the wallet has sent ${stranger.txid}${others.length > 0 ? ` and ${others.length} more` : ''}, which this ` +
    `database does not know: it was restored from an older backup, or the wallet is used elsewhere; ` +
    `'bursar withdrawal mark-paid' says what was paid, first_height ` +
    `${top === Infinity ? '(once all are in blocks)' : top + 1} that all was looked at`
  )
}

/** Why the node will never pay this: what it says of the address, or that the amount is dust. */
function refusalOf(error: RpcError, { destination_address }: Withdrawal): Refusal | undefined {
  const isAddress = error.method === 'createrawtransaction' && error.code === INVALID_ADDRESS_OR_KEY
  const isDust = error.method === 'fundrawtransaction' && /amount too small|dust/i.test(error.reason)
  if (!isAddress && !isDust) return undefined
  const message = `the network refused the ${isDust ? 'amount' : 'destination address'}: ${error.reason}`
  return { status_details: { invalid_destination_address: { message, destination_address } } }
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
