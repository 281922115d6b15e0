import type { SigningEvidence } from '../contract/approval.ts'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../db/database.ts'
import type { SecondaryStatus, StatusDetails } from '../contract/transfer-status.ts'
import type { Bank } from './bank/bank-account.ts'
import type { Treasury } from './marks.ts'
import type {
  CreditedStanding,
  DepositScan,
  DepositSight,
  DepositVerdict,
  DepthFrom,
  FoundDeposit,
} from './found-deposits.ts'
import type { BroughtOnChain, MovedOnChain, NetworkFee } from './moved-on-chain.ts'
import type { SignedByHand } from './signed-by-hand.ts'
import type { SweepRound } from './sweep-round.ts'
import type { PaymentRefusal, WaitingReason } from './waiting.ts'
import type { NetworkStatus, TakenBack } from './wallet-status.ts'

export type { PaymentRefusal } from './waiting.ts'

/** The network of a withdrawal: a blockchain, or the bank's wires. */
export type PayoutNetwork = CryptoNetwork | 'WIRE'

/** A withdrawal as a network needs to know it. Amounts are decimal strings of the asset. */
export interface Withdrawal {
  customer_id: string
  transfer_id: string
  profile_id: string
  network: PayoutNetwork
  asset: string
  amount: string
  /** What the customer paid for the transaction, of the same asset. */
  fee: string
  /** The fee's worth of the network's own asset at the newest prices; null where no price converts it. */
  fee_worth?: string | null
  /** An address; for a wire, the bank's account number. */
  destination_address: string
  /** For a wire: the record with the other bank details. */
  fiat_account_id: string | null
  memo: string | null
  /**
   * Of a consolidation, which moves money within the hot wallet to its own `destination_address`: the most that it pays per
   * 1,000 virtual bytes or, in gwei, per unit of gas, a decimal string. Absent or null for every other withdrawal.
   */
  consolidation_fee_max?: string | null
}

/** A signed transaction (or wire), stored in the database before it is broadcast: after a crash the same bytes are sent. */
export interface SignedTransaction {
  raw_transaction: Buffer
  crypto_tx_hash: string
  /** Where a network's transactions pay many withdrawals (`paysMany`): the output that pays this one. */
  crypto_tx_index?: string
  /** The number of withdrawals that such a transaction pays. */
  payments?: number
  /** The bytes are not signed: they are what a signer process is to be asked to sign. */
  isAsked?: true
}

export type BroadcastWithdrawal = Withdrawal &
  SignedTransaction & {
    /** The hashes of the transactions that this one replaced. Any one of them may be mined instead. */
    replaced: string[]
  }

/** A withdrawal that a transaction without a record has paid, with the withdrawal's own signed bytes, if any. */
export type PaidWithdrawal = Withdrawal & { raw_transaction: Buffer | null }

export interface EndedTransaction extends SignedTransaction {
  /** The hashes of the withdrawal's other transactions: one of them may be in the chain instead. */
  replaced: string[]
}

/** The decision about a withdrawal before anything is signed. */
export type Review =
  | { verdict: 'PASS' }
  | { verdict: 'REJECT'; refusal: PaymentRefusal }
  | {
      verdict: 'HOLD'
      secondary_status: SecondaryStatus
      status_details?: StatusDetails
      holdMs: number
    }

/**
 * The outcome of signing a withdrawal. SIGNED: a transaction, to be stored and then broadcast. REFUSED: the withdrawal can
 * never be paid. DEFERRED: it waits, for the hot wallet or for fees to fall.
 */
export type Signing =
  | ({ outcome: 'SIGNED' } & SignedTransaction)
  | { outcome: 'REFUSED'; refusal: PaymentRefusal }
  | { outcome: 'DEFERRED'; reason: WaitingReason }

/** A withdrawal that a signer process or a person is asked about. */
export type AskedWithdrawal = BroadcastWithdrawal & { evidence: SigningEvidence }

/** The answer: the signed transaction, why there is none yet, or how the withdrawal has ended without one. */
export type SignerAnswer =
  | { signed: SignedTransaction }
  | { reason: WaitingReason }
  | { status: Extract<PaymentStatus, { state: 'CONFIRMED' | 'VOID' }> }

/**
 * The outcome of a broadcast: the network accepts the transaction (`reason`: why no block may have it for long), refuses it for good, so that it can never be mined, or
 * does not accept it now, and the same bytes are broadcast again.
 */
export type BroadcastAnswer =
  | { accepted: true; reason?: WaitingReason }
  | { accepted: false; refusal: PaymentRefusal }
  | { accepted: false; reason: WaitingReason }

export interface ClaimedTransaction extends SignedTransaction {
  /** Writes what signing on depends on (a nonce), in the transaction that records the claim. */
  keep?: (tx: Transaction) => Promise<void>
}

/** How many confirmations a transaction has: 1 in the newest block. `needed` is absent where the node decides (`finalized`). */
export interface Confirmations {
  seen: number
  needed?: number
}

/**
 * How far a transaction is. PENDING: it waits for a block. MINED: it is in a block that needs more confirmations. UNKNOWN: the
 * network does not have it, or dropped it; the same bytes are broadcast again. FAILED: it is mined, and moved nothing but its
 * fee. UNRESOLVED: only a person can judge the outcome on the chain; the withdrawal stays PENDING with the reason, is checked
 * again, and is neither replaced nor refunded. VOID: another transaction, `usedBy`, has used its nonce in a confirmed block, or its
 * time bound has passed in the ledger that `usedBy` names, so that it can never be mined; the withdrawal is signed anew.
 */
export type PaymentStatus =
  | { state: 'CONFIRMED'; crypto_tx_hash?: string; crypto_tx_index: string; networkFee?: NetworkFee }
  /** `isTooCheap`: no block can have it at the current fees, so that it is replaced at once. `reason`: why none may have it for long. */
  | { state: 'PENDING' | 'UNKNOWN'; isTooCheap?: true; reason?: WaitingReason }
  | { state: 'MINED'; confirmations?: Confirmations }
  | {
      state: 'FAILED'
      refusal: PaymentRefusal
      networkFee?: NetworkFee
      /** The recipient may have caused the failure: its code ran, or the gas did not suffice. */
      byRecipient?: true
    }
  | { state: 'VOID'; usedBy: string }
  | {
      state: 'UNRESOLVED'
      reason: WaitingReason
      /** The transaction that an operator must judge, for the record of the answer. */
      crypto_tx_hash?: string
      crypto_tx_index?: string
      networkFee?: NetworkFee
      /** The error that kept the outcome from being judged, for the log. */
      error?: unknown
      /** Nothing says that the transaction is confirmed: after a refund it might pay all the same. */
      mayBeMined?: true
    }

/** Which of a customer's sweeps that a transaction sends gas for have ended, by their ids. */
export type EndedTopUps = (customerId: string, ids: readonly string[]) => Promise<string[]>

/** What is known of the nonce of stored bytes that no block has. */
export type NonceEnd = Extract<PaymentStatus, { state: 'VOID' | 'UNRESOLVED' }>

/** A payment from cold storage to the hot wallet, which this program cannot sign. */
export interface Refill {
  to: string
  /** The address in cold storage that holds the most of the asset. */
  from?: string
  /** The transaction to sign: its fields, and its bytes in hex. Absent where the wallet of cold storage makes it. */
  unsigned?: Record<string, string>
  lacks?: string
}

/** A consolidation before it is ordered. Amounts are decimal strings. */
export interface ConsolidationPlan {
  asset: string
  destination_address: string
  amount: string
  coins: number
  fee_max: string
  /** Per 1,000 virtual bytes, or in gwei: the requested rate, or the fee ceiling where that is lower. */
  max_fee_rate: string
}

/** A new address, and the derivation of its key, if it is derived. */
export interface NewAddress {
  address: string
  derivation?: string
  /** Writes what reading the address for deposits takes, in the transaction that records it. */
  keep?: (tx: Transaction, customerId: string) => Promise<void>
}

/**
 * Pays withdrawals. The worker calls `sign` until a withdrawal is signed once, and the other methods as often as needed.
 * Answers are in the order of the withdrawals. A call that throws is tried again later; after a NodeFailure, the withdrawals
 * wait with its reason meanwhile.
 */
export interface Payer {
  review(withdrawal: Withdrawal): Review
  /**
   * Signs in the database transaction that stores the signed bytes: what it writes there, such as a nonce, is committed or
   * rolled back with them. Signs in order: when a withdrawal must wait, later ones of its profile must wait, too.
   */
  sign(tx: Transaction, withdrawals: Withdrawal[]): Promise<Signing[]>
  /** What a recipient can make a payment cost is compared with what was paid for it: withdrawals to sign have `fee_worth`. */
  comparesFees?: true
  /** Why the signer process would refuse each of these payments; null where it would not. Asked before they are signed. */
  checkWithSigner?(tx: Transaction, evidence: readonly SigningEvidence[]): Promise<(string | null)[]>
  /** Asks the signer process for what is stored and not signed, or looks for what a person has signed. A crash repeats it. */
  askSigner?(db: Queryable, withdrawals: AskedWithdrawal[]): Promise<SignerAnswer[]>
  /** What a person signs outside of Bursar. */
  byHand?: SignedByHand<BroadcastWithdrawal>
  broadcast(withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]>
  checkStatus(withdrawals: BroadcastWithdrawal[]): Promise<PaymentStatus[]>
  /**
   * Replacements with higher fees for unmined transactions whose fee is below the current one. A replacement has the same nonce
   * or the same inputs, so that only one of the two can ever be mined, and is stored before it is broadcast. Called for unmined
   * transactions that were signed `stuckAfterMs` ago, or are too cheap for any block. Nothing is signed on the network
   * meanwhile.
   */
  replace?(tx: Transaction, withdrawals: BroadcastWithdrawal[]): Promise<(SignedTransaction | undefined)[]>
  stuckAfterMs?: number
  /** The hash of a transaction as a person types it, in the network's own spelling. Undefined: it is none of the network. */
  readHash?(text: string): string | undefined
  /**
   * The hot wallet's transaction with this hash, for an operator who says that it paid the withdrawal: it was signed, and
   * this database has no record of it. Asked with no transaction open. Throws an Error that says why it does not pay the
   * withdrawal, or that the withdrawal's own transaction may still be mined as well.
   */
  claimTransaction?(db: Queryable, withdrawal: PaidWithdrawal, hash: string): Promise<ClaimedTransaction>
  /**
   * Whether the transaction with this hash has used the nonce of the stored bytes: VOID where it has. UNRESOLVED otherwise,
   * with the reason why the bytes may still be mined, or why that is unknown. Called while signing, too.
   */
  usedBy?(withdrawal: BroadcastWithdrawal, hash: string): Promise<NonceEnd>
  /**
   * Broadcasts the stored bytes of a completed withdrawal again, for an operator. Throws an Error that says why not:
   * the chain has the transaction, or it can never be mined.
   */
  resend?(ended: EndedTransaction): Promise<void>
  /**
   * Broadcasts the hot wallet's dropped transactions again, from the stored bytes. It signs nothing, so a freeze does not stop
   * it. Returns all dropped transactions, in the order of their nonces.
   */
  rebroadcastTakenBack?(): Promise<TakenBack[]>
  /**
   * Broadcasts stored transactions of the hot wallet again, whatever became of them. Where a wallet's transactions are mined in
   * the order of their nonces, later ones need the earlier ones, also while the records of those cannot be read.
   */
  rebroadcast?(kept: readonly SignedTransaction[]): Promise<void>
  /** Which of a customer's sweeps that the hot wallet sends gas for have ended. Absent where it sends none. */
  endedTopUps?: EndedTopUps
  /** How long to wait before checking a status again, or before trying again to sign a withdrawal that had to wait. */
  pollMs: number
  /** Nothing outside this database moves: true of the sandbox's networks and its bank. */
  isSimulated?: true
  /** A real network in a sandbox: it pays a customer no more than the customer deposited over it. */
  paysDepositsOnly?: true
  /**
   * The most withdrawals that one transaction may pay, of any customers. `sign` gives them the same hash and bytes, which are
   * stored once. `replace` is asked about all withdrawals of a transaction together, and gives them the same replacement.
   */
  paysMany?: number
  /** Only one may sign at a time, because signing takes a wallet's inputs or nonces: the worker holds a lock. */
  signsAlone?: true
  /**
   * The adapter asks a node outside Bursar, which may be slow or hang. So the network has a loop of its own in the worker, and
   * no database transaction is open while the node is asked, except for signing.
   */
  asksNode?: true
  /** Called before a transaction is opened for signing. Throws a NodeFailure when the node does not answer. */
  ready?(): Promise<void>
}

/** What only a blockchain does: deposits, sweeps, fees and custody. */
interface Chain {
  /**
   * Returns a function that gives a new address of this network, for the record with an id. Only Bursar can spend from the
   * address. The function answers at once, so that it may be called in a transaction. A bank has none.
   */
  newDepositAddress?(network: CryptoNetwork): Promise<(id: string) => NewAddress>
  /**
   * The deposits after `cursor` (null: from the first block that may matter), and the cursor for the next call. A deposit may
   * be returned again. Throws ChainReorganised when the chain has dropped blocks that were scanned before.
   */
  scanDeposits?(cursor: string | null): Promise<DepositScan>
  /** Names the newest block: while it is the same, a scan finds nothing new. Absent where a scan costs no more. */
  newestBlock?(): Promise<string>
  /**
   * Returns the deposits in blocks without enough confirmations, and the number of the cursor's block. One node
   * reports these deposits, and nothing has verified them. Absent if the adapter finds only confirmed deposits.
   */
  seeDeposits?(cursor: string): Promise<DepositSight>
  /** The deposits in these blocks. Throws when the last of them is not confirmed. */
  scanBlocks?(first: bigint, last: bigint): Promise<FoundDeposit[]>
  /** Which found deposits are coins with tokens, which no payment spends: still HELD, or SPENT by a person in a mined transaction. */
  tokenCoins?(found: readonly FoundDeposit[]): Promise<('HELD' | 'SPENT' | undefined)[]>
  /** Checks found deposits against other evidence, before they are credited. Absent: no such check. */
  verifyDeposits?(found: FoundDeposit[]): Promise<DepositVerdict[]>
  /** The confirmations that these deposits have now; 0 where the chain does not have them. */
  confirmationsOf?(found: readonly FoundDeposit[]): Promise<number[]>
  /** From which value on a deposit needs how many confirmations, ascending; the first is that of the scan. */
  depths?: readonly DepthFrom[]
  /** The largest value, in USD, that is credited by one node's word. Absent: whatever it says is credited, or another node agrees. */
  oneNodeMax?: string
  /** With a second node in live mode: the value, in USD, above which its word is always needed. */
  secondNodeAbove?: string
  /** For a deposit that no scan finds and an operator reports. Throws an Error unless it has arrived. */
  requireReceived?(customerId: string, arrival: FoundDeposit): Promise<void>
  /** After a reorganisation: where credited deposits are now. */
  checkCredited?(deposits: FoundDeposit[]): Promise<CreditedStanding[]>
  /** The first of these cursors whose block is in the chain. */
  newestInChain?(cursors: string[]): Promise<string | undefined>
  /** The cursor after a scan of everything up to this block. */
  cursorAt?(block: bigint): Promise<string>
  /**
   * The smallest amount of an asset that is credited, a decimal string. Smaller deposits wait until those at their address
   * reach it together. Absent: everything is credited.
   */
  minimumDeposit?(asset: string): string
  /**
   * The cursor for the first scan; undefined where `cursor` is already one of this network. Asked before an address is given
   * out, where the first scan would otherwise miss earlier deposits.
   */
  initialCursor?(cursor: string | null): Promise<string | undefined>
  /**
   * Takes the next steps of moving money from deposit addresses to the hot wallet, and returns their number. Its transactions
   * are stored before they are broadcast.
   */
  sweep?(round: SweepRound): Promise<number>
  /**
   * Plans to merge the smallest coins of the hot wallet, or to move what a former one holds, at this fee rate at most. Nobody
   * may sign meanwhile. Throws an Error where there is nothing to do.
   */
  planConsolidation?(tx: Transaction, maxFeeRate: string | undefined): Promise<ConsolidationPlan>
  /**
   * The effect of a transaction that an operator says is the platform's own, made by hand or before a backup was restored. From
   * then on it no longer blocks signing: the adapter writes what that takes, such as a nonce, in `tx`. Throws an Error where
   * the transaction is known already, moves nothing of the hot wallet, is not confirmed, or has the nonce of a transaction that
   * has not ended.
   */
  movedBy?(tx: Transaction, hash: string): Promise<MovedOnChain>
  /**
   * The effect of a transaction that may be a refill, with no transaction open. Throws an Error as `movedBy` does, and where no
   * second node confirms it.
   */
  broughtBy?(db: Queryable, hash: string): Promise<BroughtOnChain>
  /** Whether an address, in its canonical spelling, belongs to the hot wallet or otherwise to the node. */
  isOwnAddress?(address: string): Promise<boolean>
  /**
   * The current cost of a withdrawal of the asset, in the asset that network fees are paid in; to this destination, where the
   * cost depends on it. Throws DestinationRefused for a destination that the platform does not pay.
   */
  estimateFee?(asset: string, destination?: string): Promise<NetworkFee>
  /** Confirmations that a transaction needs, or the chain's own finality; absent on a simulated network. */
  confirmations?: number | 'safe' | 'finalized'
  /** What the hot wallet should hold, and where cold storage is. */
  treasury?: Treasury
  /** Where a refill goes, and its unsigned transaction where the family has one. `cold` are the addresses that may pay it. */
  refill?(asset: string, amount: string, cold: readonly string[]): Promise<Refill>
  /** Why the platform does not pay an address, in its canonical spelling: it is the hot wallet, or a token's contract. */
  refusesDestination?(address: string): string | undefined
  /** The network carries no memo: a withdrawal with one is refused, since it could not arrive with it. */
  carriesNoMemo?: true
  /** The percentage that a quoted fee adds to the estimate, as a decimal string. */
  feeMargin?: string
  /**
   * Payouts stop when a day's transactions cost more than `factor` times the fees that withdrawals paid, and exceed those fees
   * by at least `minimum` of the network's own asset. Decimal strings.
   */
  feesLoss?: { factor: string; minimum: string }
  /** Throws when the node does not answer. */
  status?(): Promise<NetworkStatus>
}

export interface NetworkAdapter extends Payer, Chain, Bank {}

export const FEE_MARGIN_DECIMALS = 4
export const FEES_FACTOR_DECIMALS = 4

/** The adapter of each network that withdrawals can use. Without one, they are refused with 503. */
export type Networks = ReadonlyMap<PayoutNetwork, NetworkAdapter>
