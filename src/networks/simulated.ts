import { createHash, randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import { CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { magicOutcome } from './magic-addresses.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  NetworkAdapter,
  Networks,
  Progress,
  Refusal,
  Review,
  Withdrawal,
} from './networks.ts'

export interface SimulatedOptions {
  /** How long a transaction takes to confirm. */
  confirmationMs: number
  /** How long a held withdrawal is held. */
  holdMs: number
}

/** The sandbox's networks: every one simulated, on one table that stands for their chains. */
export function simulatedNetworks(db: Database, options: SimulatedOptions): Networks {
  const adapter = simulatedAdapter(db, options)
  return new Map(CRYPTO_NETWORKS.map((network) => [network, adapter]))
}

/**
 * A network that behaves: it knows a transaction by its hash however often it is broadcast, and confirms it
 * after a delay. Magic destinations make it misbehave in each documented way (README, "Magic destinations").
 */
export function simulatedAdapter(db: Database, { confirmationMs, holdMs }: SimulatedOptions): NetworkAdapter {
  return {
    pollMs: Math.max(50, Math.min(confirmationMs, 1_000)),
    review: (withdrawal) => review(withdrawal, holdMs),
    sign: async (withdrawals) => withdrawals.map(sign),
    broadcast: (withdrawals) => broadcast(db, withdrawals),
    progress: (withdrawals) => progress(db, withdrawals, confirmationMs),
  }
}

const outcomeOf = (withdrawal: Withdrawal) =>
  magicOutcome(withdrawal.crypto_network, withdrawal.destination_address)

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
      return held(outcome, 'the withdrawal waits for the approval of the customer', holdMs)
    default:
      return { verdict: 'PASS' }
  }
}

const rejected = (name: 'TRAVEL_RULE_REJECTED' | 'CUSTOMER_REJECTED', detail: string): Review => ({
  verdict: 'REJECT',
  refusal: { secondary_status: { name, detail } },
})

const held = (
  name: 'TRAVEL_RULE_INFO_REQUESTED' | 'PENDING_CUSTOMER_APPROVAL',
  detail: string,
  holdMs: number,
): Review => ({ verdict: 'HOLD', secondary_status: { name, detail }, holdMs })

/** A signature differs each time, as on a real network: signing twice would be paying twice, and would show. */
function sign(withdrawal: Withdrawal) {
  const raw_transaction = Buffer.from(
    JSON.stringify({ ...withdrawal, nonce: randomBytes(8).toString('hex') }),
  )
  return { raw_transaction, crypto_tx_hash: hashOf(withdrawal.crypto_network, raw_transaction) }
}

/** The hash as the network writes it: 0x and hex on EVM, a base58 signature of 64 bytes on Solana, else hex. */
function hashOf(network: CryptoNetwork, raw: Buffer): string {
  const { family } = NETWORKS[network]
  if (family === 'solana') return base58.encode(createHash('sha512').update(raw).digest())
  const hex = createHash('sha256').update(raw).digest('hex')
  return family === 'evm' ? `0x${hex}` : hex
}

function refusalOf(withdrawal: Withdrawal): Refusal | undefined {
  const { asset, destination_address } = withdrawal
  switch (outcomeOf(withdrawal)) {
    case 'INVALID_DESTINATION_ADDRESS': {
      const message = 'the network refused the destination address'
      return { status_details: { invalid_destination_address: { message, destination_address } } }
    }
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

/** Each statement commits by itself: a real network would not roll back with Bursar either. */
async function broadcast(db: Database, withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]> {
  const refusals = withdrawals.map(refusalOf)
  const sent = withdrawals.filter((_, index) => refusals[index] === undefined)
  await db.query({
    name: 'simulated broadcast',
    text: `
      insert into simulated_chain as c (crypto_network, hash, raw_transaction, broadcast_at)
      select *, clock_timestamp() from unnest($1::text[], $2::text[], $3::bytea[])
      on conflict (crypto_network, hash) do update
        set broadcast_at = case when c.dropped_at is null then c.broadcast_at else excluded.broadcast_at end`,
    values: [
      sent.map((withdrawal) => withdrawal.crypto_network),
      sent.map((withdrawal) => withdrawal.crypto_tx_hash),
      sent.map((withdrawal) => withdrawal.raw_transaction),
    ],
  })
  return refusals.map((refusal) =>
    refusal === undefined ? { accepted: true } : { accepted: false, refusal },
  )
}

async function progress(
  db: Database,
  withdrawals: BroadcastWithdrawal[],
  confirmationMs: number,
): Promise<Progress[]> {
  const dropOnce = withdrawals.filter((withdrawal) => outcomeOf(withdrawal) === 'DROPPED_ONCE')
  const hashes = (some: BroadcastWithdrawal[]) => [
    some.map((withdrawal) => withdrawal.crypto_network),
    some.map((withdrawal) => withdrawal.crypto_tx_hash),
  ]
  const dropped = await db.query<{ hash: string }>({
    name: 'simulated drop',
    text: `
      update simulated_chain c set dropped_at = clock_timestamp()
      from unnest($1::text[], $2::text[]) as asked (crypto_network, hash)
      where c.crypto_network = asked.crypto_network and c.hash = asked.hash and c.dropped_at is null
      returning c.hash`,
    values: hashes(dropOnce),
  })
  const seen = await db.query<{ hash: string; confirmed: boolean }>({
    name: 'simulated progress',
    text: `
      select c.hash, c.broadcast_at + make_interval(secs => $3::float8 / 1000) <= clock_timestamp() as confirmed
      from unnest($1::text[], $2::text[]) as asked (crypto_network, hash)
      join simulated_chain c on c.crypto_network = asked.crypto_network and c.hash = asked.hash`,
    values: [...hashes(withdrawals), confirmationMs],
  })
  const forgotten = new Set(dropped.rows.map((row) => row.hash))
  const confirmed = new Map(seen.rows.map((row) => [row.hash, row.confirmed]))
  return withdrawals.map((withdrawal): Progress => {
    const state = confirmed.get(withdrawal.crypto_tx_hash)
    if (state === undefined || forgotten.has(withdrawal.crypto_tx_hash)) return { state: 'UNKNOWN' }
    if (!state || outcomeOf(withdrawal) === 'NEVER_CONFIRMS') return { state: 'PENDING' }
    return { state: 'CONFIRMED', crypto_tx_index: '0' }
  })
}
