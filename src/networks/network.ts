import type { CryptoNetwork } from '../assets/catalogue.ts'
import type { Queryable, Transaction } from '../db/database.ts'
import type { SecondaryStatus, StatusDetails } from '../contract/transfer-status.ts'
import type { UsdPrices } from '../assets/usd-value.ts'
import type { BankAccount } from './bank-account.ts'
import type { WaitingReason } from './waiting.ts'

/** What withdrawals go over: a blockchain, or the bank's wires. */
export type Network = CryptoNetwork | 'WIRE'

/** A withdrawal as a network needs to know it. Amounts are decimal strings of the asset. */
export interface Withdrawal {
  customer_id: string
  transfer_id: string
  profile_id: string
  network: Network
  asset: string
  amount: string
  /** An address; for a wire, the bank's account number. */
  destination_address: string
  /** For a wire: where the rest of what the bank needs is kept. */
  fiat_account_id: string | null
  memo: string | null
  /**
   * Of a consolidation, which merges coins of the hot wallet into one at its own `destination_address`: the most that it
   * pays for 1,000 virtual bytes, a decimal string. Absent or null for what pays somebody.
   */
  consolidation_fee_max?: string | null
}

/** A signed transaction (or wire): kept in the database before it leaves, so that a crash repeats the same bytes. */
export interface SignedTransaction {
  raw_transaction: Buffer
  crypto_tx_hash: string
  /** Where a network's transactions pay many withdrawals (`paysMany`): the output that pays this one. */
  crypto_tx_index?: string
  /** And how many it pays. */
  payments?: number
}

export type BroadcastWithdrawal = Withdrawal &
  SignedTransaction & {
    /** The hashes of those that this one replaced: any of them may be the one that is made. */
    replaced: string[]
  }

/** One that was paid where this database does not know of it, with the transaction that is kept for it here, if any. */
export type PaidWithdrawal = Withdrawal & { raw_transaction: Buffer | null }

/** The transaction that has made a withdrawal, as it is kept. */
export interface EndedTransaction extends SignedTransaction {
  /** The hashes of the withdrawal's other transactions: one of them may be in the chain instead. */
  replaced: string[]
}

/** A transaction of the hot wallet that had ended, and that the chain does not have any more. */
export interface TakenBack {
  nonce: number
  /** Absent where no kept transaction has the nonce. */
  crypto_tx_hash?: string
  /** The withdrawal that it made. */
  transfer_id?: string
  /** Or the deposit address that it brought gas to. */
  top_up?: string
  /** The withdrawal had failed, and was refunded: its bytes are never broadcast again, since they might pay this time. */
  refunded?: true
  /** Why the node does not take it now. */
  refusal?: string
}

/** Why a withdrawal cannot be made, for good. */
export interface Refusal {
  secondary_status?: SecondaryStatus
  status_details?: StatusDetails
}

/** What is decided about a withdrawal before anything is signed. */
export type Review =
  | { verdict: 'PASS' }
  | { verdict: 'REJECT'; refusal: Refusal }
  | { verdict: 'HOLD'; secondary_status: SecondaryStatus; holdMs: number }

/**
 * What came of signing a withdrawal. SIGNED: the transaction, to be kept and then broadcast. REFUSED: it can never be
 * made. DEFERRED: it waits, for the hot wallet or for fees to fall.
 */
export type Signing =
  | ({ outcome: 'SIGNED' } & SignedTransaction)
  | { outcome: 'REFUSED'; refusal: Refusal }
  | { outcome: 'DEFERRED'; reason: WaitingReason }

/**
 * What came of broadcasting: the network takes it; it refuses it for good, so that it can never be mined; or it does not
 * take it now, and the same bytes are broadcast again.
 */
export type BroadcastAnswer =
  { accepted: true } | { accepted: false; refusal: Refusal } | { accepted: false; reason: WaitingReason }

/** A transaction that an operator claims for a withdrawal. */
export interface ClaimedTransaction extends SignedTransaction {
  /** Writes what signing on depends on (a nonce), in the transaction that records the claim. */
  keep?: (tx: Transaction) => Promise<void>
}

/** What a transaction has really cost, in the asset that the network's fees are paid in. A decimal string. */
export interface NetworkFee {
  asset: string
  amount: string
}

/**
 * How far a transaction is. PENDING: it waits for a block. MADE: it is in one that is not deep enough yet. UNKNOWN: the
 * network has no such transaction (any more); the same bytes are broadcast again. FAILED: it is in a block, and has
 * moved nothing but its fee. UNRESOLVED: the chain says something that only a person can judge; the withdrawal stays
 * PENDING with the reason, is asked about again, and is neither replaced nor refunded.
 */
export type PaymentStatus =
  | { state: 'CONFIRMED'; crypto_tx_hash?: string; crypto_tx_index: string; networkFee?: NetworkFee }
  | { state: 'PENDING' }
  | { state: 'MINED' }
  | { state: 'UNKNOWN' }
  | { state: 'FAILED'; refusal: Refusal; networkFee?: NetworkFee }
  | {
      state: 'UNRESOLVED'
      reason: WaitingReason
      /** Of the transaction that raises the question, for the record of an operator's answer. */
      crypto_tx_hash?: string
      crypto_tx_index?: string
      networkFee?: NetworkFee
    }

/** One payment of a transaction in the chain: an output, its value or a token's log. The amount is a decimal string. */
export interface PaymentOnChain {
  asset: string
  amount: string
  /** In its canonical spelling. */
  address: string
}

/** What a transaction in the chain has moved into or out of the hot wallet, and what it has cost the platform. */
export interface MovedOnChain {
  /** By asset; decimal strings, negative for what has left. What stays at addresses of ours is not among them. */
  moved: { asset: string; amount: string }[]
  /** Each payment in it that is not yet a withdrawal's, whoever gets it. */
  payments: PaymentOnChain[]
  /** Absent where somebody else has paid it. */
  networkFee?: NetworkFee
}

/** Which coins a consolidation would merge. Amounts are decimal strings. */
export interface ConsolidationPlan {
  /** The address of the hot wallet that gets the one coin. */
  destination_address: string
  amount: string
  coins: number
  /** Most that it costs. */
  fee_max: string
  /** For 1,000 virtual bytes: the asked rate, or the fee ceiling where that is lower. */
  max_fee_rate: string
}

/** Something that has come in: at one of our addresses, deep enough in the chain to stay. */
export interface FoundDeposit {
  /** As the network's addresses are written canonically. */
  address: string
  asset: string
  /** A decimal string of the asset. */
  amount: string
  crypto_tx_hash: string
  /** Which output or log of the transaction. */
  crypto_tx_index: string
  /** The block that it was found in, on networks that say. */
  block?: { number: bigint; hash: string }
}

/** What one read of a network for deposits found. */
export interface DepositScan {
  /** Where the next read begins. */
  cursor: string
  found: FoundDeposit[]
  /** There is more to read at once. */
  isBehind?: boolean
  /** Deposits that were given before, and whose transactions the chain has taken back: deeper than `confirmations`. */
  removed?: Pick<FoundDeposit, 'crypto_tx_hash' | 'crypto_tx_index'>[]
  /** Writes, in the transaction that records these deposits, that they need not be given again. */
  keep?(tx: Transaction): Promise<void>
}

/**
 * Whether a deposit that was found may be credited. WAITS: it cannot be told now, perhaps because the second node does not
 * answer. DISAGREES: the second node says something else.
 */
export type DepositVerdict =
  | { verdict: 'AGREES' }
  | { verdict: 'WAITS'; detail: string; secondNode?: true }
  | { verdict: 'DISAGREES'; detail: string }

/** Where a credited deposit is after a reorganisation: in its block, in another one that is deep enough, or nowhere. */
export type CreditedStanding = 'THERE' | 'MOVED' | 'GONE'

/** The chain has taken back blocks that were read for deposits: deeper than `confirmations`. */
export class ChainReorganised extends Error {}

/** A transaction of sweeping that is in the chain to stay, and what it has cost. */
export interface EndedSweep {
  customer_id: string
  id: string
  network: CryptoNetwork
  networkFee: NetworkFee
}

/** Posts to the ledger what a sweep has cost, in the transaction that ends it. */
type PostSweep = (tx: Transaction, ended: EndedSweep) => Promise<void>

/** Whether nothing may be signed on a network now. It stays true of what the transaction signs until that has ended. */
export type IsFrozen = (tx: Transaction, network: Network) => Promise<boolean>

/** What a round of sweeping is given. */
export interface SweepRound {
  /** Called in the transaction that ends a sweep. */
  post: PostSweep
  /** Called in each transaction that signs one. */
  isFrozen: IsFrozen
  /** By these it compares what a sweep costs with what it moves. */
  prices: UsdPrices
}

/** A new address, and where its key comes from, if it is derived. */
export interface NewAddress {
  address: string
  derivation?: string
}

/** What `bursar networks status` tells of a network. Amounts are decimal strings, by asset. */
export interface NetworkStatus {
  height: number
  /** What this adapter holds there: the hot wallet, and what is not swept to it yet. */
  held: Record<string, string>
  /** Of that, what the hot wallet has; absent where it is all. */
  hotWallet?: Record<string, string>
  /** What had ended and the chain does not have any more. */
  takenBack?: TakenBack[]
}

/**
 * One chain family, or a bank. The worker calls `sign` until it has signed a withdrawal once, and the others as often
 * as it takes; they answer in the order they were asked. A call that throws is tried again later; what was to be signed
 * or broadcast waits with the reason meanwhile, if it is a NodeFailure.
 */
export interface NetworkAdapter {
  review(withdrawal: Withdrawal): Review
  /**
   * In the transaction that will keep what is signed: what it writes there (a nonce) is kept or lost with it. In their
   * order: behind one that must wait, those of the same profile must wait too.
   */
  sign(tx: Transaction, withdrawals: Withdrawal[]): Promise<Signing[]>
  broadcast(withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]>
  checkStatus(withdrawals: BroadcastWithdrawal[]): Promise<PaymentStatus[]>
  /**
   * Transactions for higher fees, where those that wait are below what is paid now: of the same nonce or with the same
   * inputs, so that only one of two can ever be made. They are kept before they are broadcast. Asked of what has been
   * signed for `stuckAfterMs` and is in no block; while it is asked, nothing is signed on the network.
   */
  replace?(tx: Transaction, withdrawals: BroadcastWithdrawal[]): Promise<(SignedTransaction | undefined)[]>
  stuckAfterMs?: number
  /**
   * The hot wallet's transaction with this hash, for an operator who says that it paid the withdrawal: it was signed, and
   * this database has no record of it. Asked with no transaction open. Throws an Error that says why it does not pay the
   * withdrawal, or that the withdrawal's own transaction may still be mined as well.
   */
  claimTransaction?(db: Queryable, withdrawal: PaidWithdrawal, hash: string): Promise<ClaimedTransaction>
  /**
   * Broadcasts the kept bytes of a completed withdrawal again, for an operator. Throws an Error that says why not: the
   * chain has it, or it can never be made.
   */
  resend?(ended: EndedTransaction): Promise<void>
  /**
   * Broadcasts again what the hot wallet had made and the chain has taken back, from the kept bytes. It signs nothing, so
   * that it is done on a frozen network, too. Gives all that is taken back, in the order of the nonces.
   */
  rebroadcastTakenBack?(): Promise<TakenBack[]>
  /**
   * What a transaction has moved that an operator says is the platform's own, made by hand or before a backup was restored.
   * From then on the hot wallet is not held up by it: what is written for that in `tx` (a nonce) is kept with it. Throws an
   * Error where it is known already, moves nothing of the hot wallet, is not confirmed, or has the nonce of a kept
   * transaction that has not ended.
   */
  movedBy?(tx: Transaction, hash: string): Promise<MovedOnChain>
  /** Whether an address, in its canonical spelling, is one of the hot wallet's, or otherwise the node's own. */
  isOwnAddress?(address: string): Promise<boolean>
  /**
   * Plans to merge the smallest coins of the hot wallet, for at most this rate. Nobody may sign meanwhile. Throws an Error
   * where there are too few of them.
   */
  planConsolidation?(tx: Transaction, maxFeeRate: string | undefined): Promise<ConsolidationPlan>
  /** How long to wait before asking for progress again, or before signing again what had to wait. */
  pollMs: number
  /** Nothing outside of this database is moved: the sandbox's networks and its bank. */
  isSimulated?: true
  /** A real network in a sandbox: a customer is paid no more over it than has come in for them over it. */
  paysDepositsOnly?: true
  /**
   * A transaction may pay so many withdrawals, of any customers: what `sign` gives for them has the same hash and bytes, which
   * are kept once. `replace` is then asked about all withdrawals of a transaction together, and gives all the same.
   */
  paysMany?: number
  /** Signing takes what only one may take at a time, a wallet's inputs or nonces: the worker sees to it. */
  signsAlone?: true
  /**
   * A node outside of Bursar is asked, which may take its time or hang: the network has a loop of its own in the worker,
   * and but for signing no transaction of the database is open while it is asked.
   */
  asksNode?: true
  /** Asked before a transaction is opened to sign in: throws a NodeFailure when the node does not answer. */
  ready?(): Promise<void>
  /** A new address of this network that only Bursar can spend from, for the record with this id. A bank has none. */
  newDepositAddress?(network: CryptoNetwork, id: string): Promise<NewAddress>
  /** Of a bank: the platform's own account there, which customers send wires to. */
  bankAccount?: BankAccount
  /** Of a bank: the field that it cannot pay an account without, as a path below `wire`, where that is missing. */
  missingOfAccount?(wire: {
    account_number?: string
    routing_details?: { routing_number?: string }
  }): string | undefined
  /** Of a bank: whether it would pay to this account. */
  acceptsAccount?(accountNumber: string): Promise<boolean>
  /**
   * What has come in behind `cursor` (null: from the first block that may matter), and the cursor for the next call. What
   * was given may be given again. Throws ChainReorganised when the chain has taken back blocks that were read before.
   */
  scanDeposits?(cursor: string | null): Promise<DepositScan>
  /** What has come in within these blocks. Throws when the last of them is not deep enough. */
  scanBlocks?(first: bigint, last: bigint): Promise<FoundDeposit[]>
  /** Holds deposits that were found against other evidence, before they are credited. Absent: they are believed. */
  verifyDeposits?(found: FoundDeposit[]): Promise<DepositVerdict[]>
  /** Throws an Error unless this has come in, for an operator who says that it has and that no read can find it. */
  requireReceived?(customerId: string, arrival: FoundDeposit): Promise<void>
  /** After a reorganisation: where credited deposits are now. */
  checkCredited?(deposits: FoundDeposit[]): Promise<CreditedStanding[]>
  /** The first of these cursors whose block is in the chain. */
  newestInChain?(cursors: string[]): Promise<string | undefined>
  /** The cursor that says that everything up to this block was read. */
  cursorAt?(block: bigint): Promise<string>
  /**
   * The least that is credited of an asset, a decimal string: smaller deposits wait until those at their address come to
   * it together. Absent: everything is credited.
   */
  minimumDeposit?(asset: string): string
  /**
   * Where `scanDeposits` is to begin, unless `cursor` is one of its own; asked before an address is given out, where the
   * first call would otherwise miss what came before it.
   */
  initialCursor?(cursor: string | null): Promise<string | undefined>
  /**
   * Takes the moving of what lies at deposit addresses to the hot wallet a step on, and gives how many steps it took.
   * Its transactions are kept before they are broadcast.
   */
  sweep?(round: SweepRound): Promise<number>
  /**
   * The cost of a withdrawal of the asset now, in the asset that network fees are paid in; to this destination, where the
   * cost depends on it. Throws DestinationRefused for one that is not paid to.
   */
  estimateFee?(asset: string, destination?: string): Promise<NetworkFee>
  /** Why an address, in its canonical spelling, is not paid to: it is the hot wallet, or the contract of a token. */
  refusesDestination?(address: string): string | undefined
  /** The network carries no memo: a withdrawal with one is refused, since it could not arrive with it. */
  carriesNoMemo?: true
  /** How much more is charged for it, in percent: a decimal string. */
  feeMargin?: string
  /**
   * Payouts stop when a day's transactions have cost more than so many times the fees that withdrawals paid, and at least
   * `minimum` of the network's own asset more. Decimal strings.
   */
  feesLoss?: { factor: string; minimum: string }
  /** Throws when the node does not answer. */
  status?(): Promise<NetworkStatus>
}

/** Of a fee margin, in percent. */
export const FEE_MARGIN_DECIMALS = 4
/** Of the factor of `feesLoss`. */
export const FEES_FACTOR_DECIMALS = 4

/** The adapter of each network that withdrawals can go over; none means that they are refused with 503. */
export type Networks = ReadonlyMap<Network, NetworkAdapter>
