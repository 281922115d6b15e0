import { randomBytes } from 'node:crypto'
import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import { connectionLost, type Database } from '../../db/database.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'
import { SANDBOX_ACCOUNT } from '../bank/bank-account.ts'
import { confirmationsOf, CONFIRMATIONS, isConfirmed, scanDeposits, seeDeposits } from './deposits.ts'
import { formatHash } from './hash.ts'
import {
  magicOutcome,
  magicWireOutcome,
  REJECTED_ACCOUNT_NUMBER,
  type MagicOutcome,
} from './magic-addresses.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  PayoutNetwork,
  NetworkAdapter,
  Networks,
  PaymentStatus,
  PaymentRefusal,
  Review,
  Signing,
  Withdrawal,
} from '../network.ts'
import { refusedDestination } from '../waiting.ts'
import { depositAddressesAmong } from '../deposit-addresses.ts'

export interface SimulatedOptions {
  confirmationMs: number
  holdMs: number
}

/** Creates the simulated networks and bank of a sandbox. One table stands for their chains. */
export function simulatedNetworks(db: Database, options: SimulatedOptions): Networks {
  const adapter = simulatedAdapter(db, options)
  return new Map<PayoutNetwork, NetworkAdapter>([
    ...CRYPTO_NETWORKS.map((network) => {
      const reads = {
        scanDeposits: () => scanDeposits(db, network, options.confirmationMs),
        seeDeposits: () => seeDeposits(db, network, options.confirmationMs),
      }
      return [network, { ...adapter, ...reads }] as const
    }),
    ['WIRE', { ...adapter, bankAccount: SANDBOX_ACCOUNT, simulatedWireMs: options.confirmationMs }],
  ])
}

/**
 * Creates a network that accepts repeated broadcasts of a transaction as one, and confirms it after a delay. Magic
 * destinations cause the documented failures (docs/reference/magic-destinations.md).
 */
function simulatedAdapter(db: Database, { confirmationMs, holdMs }: SimulatedOptions): NetworkAdapter {
  return {
    isSimulated: true,
    pollMs: Math.max(50, Math.min(confirmationMs, 1_000)),
    review: (withdrawal) => review(withdrawal, holdMs),
    sign: async (_tx, withdrawals) => withdrawals.map(sign),
    broadcast: (withdrawals) => broadcast(db, withdrawals),
    checkStatus: (withdrawals) => checkStatus(db, withdrawals, confirmationMs),
    newDepositAddress: async (network) => () => ({ address: addressFromBytes(network, randomBytes(32)) }),
    acceptsAccount: async (accountNumber) => accountNumber !== REJECTED_ACCOUNT_NUMBER,
  }
}

const outcomeOf = ({ network, destination_address }: Withdrawal): MagicOutcome | undefined =>
  network === 'WIRE' ? magicWireOutcome(destination_address) : magicOutcome(network, destination_address)

function review(withdrawal: Withdrawal, holdMs: number): Review {
  const outcome = outcomeOf(withdrawal)
  switch (outcome) {
    case 'TRAVEL_RULE_REJECTED':
      return rejected(outcome, 'the travel rule information was not accepted')
    case 'CUSTOMER_REJECTED':
      return rejected(outcome, 'the customer rejected the withdrawal')
    case 'TRAVEL_RULE_INFO_REQUESTED':
      return held(outcome, 'travel rule information was requested from the destination', holdMs)
    case 'PENDING_CUSTOMER_APPROVAL':
      return waitingForApproval(holdMs)
    default:
      return { verdict: 'PASS' }
  }
}

const rejected = (name: 'TRAVEL_RULE_REJECTED' | 'CUSTOMER_REJECTED', detail: string): Review => ({
  verdict: 'REJECT',
  refusal: { secondary_status: { name, detail } },
})

const held = (name: 'TRAVEL_RULE_INFO_REQUESTED', detail: string, holdMs: number): Review => ({
  verdict: 'HOLD',
  secondary_status: { name, detail },
  holdMs,
})

/** Like a withdrawal that a policy holds, but without an approval: nobody can decide it. */
function waitingForApproval(holdMs: number): Review {
  const message = 'the withdrawal waits for the approval of the customer'
  return {
    verdict: 'HOLD',
    secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL', detail: message },
    status_details: { pending_customer_approval: { message } },
    holdMs,
  }
}

/** Signs with a random nonce, as on a real network: signing twice would pay twice, and tests would notice it. */
function sign(withdrawal: Withdrawal): Signing {
  const raw_transaction = Buffer.from(
    JSON.stringify({ ...withdrawal, nonce: randomBytes(8).toString('hex') }),
  )
  return {
    outcome: 'SIGNED',
    raw_transaction,
    crypto_tx_hash: formatHash(withdrawal.network, raw_transaction),
  }
}

function refusalOf(withdrawal: Withdrawal): PaymentRefusal | undefined {
  const { asset, destination_address } = withdrawal
  switch (outcomeOf(withdrawal)) {
    case 'INVALID_DESTINATION_ADDRESS':
      return refusedDestination(withdrawal, 'the network refused the destination address')
    case 'STALE_FEE_QUOTE':
      return { status_details: { stale_fee_quote: { message: 'the network fee rose above the fee quoted' } } }
    case 'MISSING_TRUSTLINE': {
      const message = 'the destination has no trustline to the asset'
      return { status_details: { missing_trustline: { message, destination_address, asset } } }
    }
    case 'MAX_RENT_EXCEEDED': {
      const message = 'the rent of the destination account exceeds what may be paid for it'
      return { status_details: { max_rent_exceeded: { message, destination_address } } }
    }
    default:
      return undefined
  }
}

const OPENING_BRACE = 0x7b

/** Whether the simulation signed this transaction: its bytes are JSON, and no real transaction begins with a brace. */
export const isSimulatedPayment = ({ raw_transaction }: Pick<BroadcastWithdrawal, 'raw_transaction'>) =>
  raw_transaction[0] === OPENING_BRACE

/** Broadcasts. Each statement commits by itself, because a real network would not roll back with Bursar either. */
async function broadcast(db: Database, withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]> {
  const refusals = withdrawals.map(refusalOf)
  const sent = withdrawals.filter(
    (withdrawal, index) => refusals[index] === undefined && isSimulatedPayment(withdrawal),
  )
  // While a part of the database is gone, its deposit addresses are unknown: `arrives` stays null, and no scan finds
  // the transaction as a deposit.
  const depositAddresses = await depositAddressesAmong(
    db,
    sent.map(({ destination_address }) => destination_address),
  ).catch((error: unknown) => {
    if (!connectionLost(error)) throw error
    return undefined
  })
  await db.query({
    name: 'simulated broadcast',
    text: `
      insert into simulated_chain as c (crypto_network, hash, raw_transaction, arrives, broadcast_at)
      select *, clock_timestamp() from unnest($1::text[], $2::text[], $3::bytea[], $4::boolean[])
      on conflict (crypto_network, hash) do update
        set broadcast_at = case when c.dropped_at is null then c.broadcast_at else excluded.broadcast_at end`,
    values: [
      sent.map((withdrawal) => withdrawal.network),
      sent.map((withdrawal) => withdrawal.crypto_tx_hash),
      sent.map((withdrawal) => withdrawal.raw_transaction),
      sent.map(({ destination_address }) => depositAddresses?.has(destination_address) ?? null),
    ],
  })
  return withdrawals.map((withdrawal, index) => {
    // The transaction may have been broadcast on the real network; only that network knows.
    if (!isSimulatedPayment(withdrawal))
      return {
        accepted: false,
        reason: {
          code: 'SIGNED_ELSEWHERE',
          detail: `it was signed for a real ${withdrawal.network}, which is not configured`,
        },
      }
    const refusal = refusals[index]
    return refusal === undefined ? { accepted: true } : { accepted: false, refusal }
  })
}

async function checkStatus(
  db: Database,
  withdrawals: BroadcastWithdrawal[],
  confirmationMs: number,
): Promise<PaymentStatus[]> {
  const dropOnce = withdrawals.filter((withdrawal) => outcomeOf(withdrawal) === 'DROPPED_ONCE')
  const hashesOf = (transactions: BroadcastWithdrawal[]) => [
    transactions.map((withdrawal) => withdrawal.network),
    transactions.map((withdrawal) => withdrawal.crypto_tx_hash),
  ]
  const dropped = await db.query<{ hash: string }>({
    name: 'simulated drop',
    text: `
      update simulated_chain c set dropped_at = clock_timestamp()
      from unnest($1::text[], $2::text[]) as asked (crypto_network, hash)
      where c.crypto_network = asked.crypto_network and c.hash = asked.hash and c.dropped_at is null
      returning c.hash`,
    values: hashesOf(dropOnce),
  })
  const seen = await db.query<{ hash: string; confirmed: boolean; confirmations: number }>({
    name: 'simulated progress',
    text: `
      select c.hash, ${isConfirmed('$3')} as confirmed, ${confirmationsOf('$3')} as confirmations
      from unnest($1::text[], $2::text[]) as asked (crypto_network, hash)
      join simulated_chain c on c.crypto_network = asked.crypto_network and c.hash = asked.hash`,
    values: [...hashesOf(withdrawals), confirmationMs],
  })
  const droppedHashes = new Set(dropped.rows.map((row) => row.hash))
  const progress = new Map(seen.rows.map((row) => [row.hash, row]))
  return withdrawals.map((withdrawal): PaymentStatus => {
    const found = progress.get(withdrawal.crypto_tx_hash)
    if (found === undefined || droppedHashes.has(withdrawal.crypto_tx_hash)) return { state: 'UNKNOWN' }
    if (outcomeOf(withdrawal) === 'NEVER_CONFIRMS') return { state: 'PENDING' }
    if (found.confirmed) return { state: 'CONFIRMED', crypto_tx_index: '0' }
    if (found.confirmations === 0 || withdrawal.network === 'WIRE') return { state: 'PENDING' }
    return { state: 'MINED', confirmations: { seen: found.confirmations, needed: CONFIRMATIONS } }
  })
}
