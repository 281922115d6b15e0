import { createHash, randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import { CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../../assets/catalogue.ts'
import type { Database, Queryable } from '../../db/database.ts'
import { addressFromBytes } from '../addresses.ts'
import { SANDBOX_ACCOUNT } from '../bank-account.ts'
import {
  magicOutcome,
  magicWireOutcome,
  REJECTED_ACCOUNT_NUMBER,
  type MagicOutcome,
} from './magic-addresses.ts'
import type {
  FoundDeposit,
  BroadcastAnswer,
  BroadcastWithdrawal,
  DepositScan,
  Network,
  NetworkAdapter,
  Networks,
  PaymentStatus,
  Refusal,
  Review,
  Signing,
  Withdrawal,
} from '../network.ts'

export interface SimulatedOptions {
  /** How long a transaction takes to confirm. */
  confirmationMs: number
  /** How long a held withdrawal is held. */
  holdMs: number
}

/** The sandbox's networks and its bank: all simulated, on one table that stands for what is outside of Bursar. */
export function simulatedNetworks(db: Database, options: SimulatedOptions): Networks {
  const adapter = simulatedAdapter(db, options)
  return new Map<Network, NetworkAdapter>([
    ...CRYPTO_NETWORKS.map((network) => {
      const read = () => scanDeposits(db, network, options.confirmationMs)
      return [network, { ...adapter, scanDeposits: read }] as const
    }),
    ['WIRE', { ...adapter, bankAccount: SANDBOX_ACCOUNT }],
  ])
}

/**
 * A network that behaves: it knows a transaction by its hash however often it is broadcast, and confirms it
 * after a delay. Magic destinations make it misbehave in each documented way (docs/reference/magic-destinations.md).
 */
function simulatedAdapter(db: Database, { confirmationMs, holdMs }: SimulatedOptions): NetworkAdapter {
  return {
    isSimulated: true,
    pollMs: Math.max(50, Math.min(confirmationMs, 1_000)),
    review: (withdrawal) => review(withdrawal, holdMs),
    sign: async (_tx, withdrawals) => withdrawals.map(sign),
    broadcast: (withdrawals) => broadcast(db, withdrawals),
    checkStatus: (withdrawals) => checkStatus(db, withdrawals, confirmationMs),
    newDepositAddress: async (network) => ({ address: addressFromBytes(network, randomBytes(32)) }),
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
function sign(withdrawal: Withdrawal): Signing {
  const raw_transaction = Buffer.from(
    JSON.stringify({ ...withdrawal, nonce: randomBytes(8).toString('hex') }),
  )
  return { outcome: 'SIGNED', raw_transaction, crypto_tx_hash: hashOf(withdrawal.network, raw_transaction) }
}

/** The hash as the network writes it: 0x and hex on EVM, a base58 signature of 64 bytes on Solana, else hex. */
export function hashOf(network: Network, raw: Buffer): string {
  const family = network === 'WIRE' ? undefined : NETWORKS[network].family
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

const OPENING_BRACE = 0x7b

/** Whether bytes were signed here: no transaction of a real network begins as JSON does. */
export const isSimulated = ({ raw_transaction }: Pick<BroadcastWithdrawal, 'raw_transaction'>) =>
  raw_transaction[0] === OPENING_BRACE

/**
 * A real network that was simulated before. What was signed for the simulation goes on there, and is never given to the
 * node; without a simulation, in live mode, it waits with the reason. What is signed from now on is real.
 */
export function routeBySigner(real: NetworkAdapter, simulation: NetworkAdapter | undefined): NetworkAdapter {
  const nowhere = {
    broadcast: async (past: BroadcastWithdrawal[]) =>
      past.map((): BroadcastAnswer => ({
        accepted: false,
        reason: { code: 'SIGNED_ELSEWHERE', detail: 'it was signed for a simulated network' },
      })),
    checkStatus: async (past: BroadcastWithdrawal[]) => past.map((): PaymentStatus => ({ state: 'UNKNOWN' })),
    replace: async (past: BroadcastWithdrawal[]) => past.map(() => undefined),
  }
  const before = simulation ?? nowhere
  return {
    ...real,
    broadcast: (withdrawals) =>
      eachBy(
        withdrawals,
        (past) => before.broadcast(past),
        (rest) => real.broadcast(rest),
      ),
    checkStatus: (withdrawals) =>
      eachBy(
        withdrawals,
        (past) => before.checkStatus(past),
        (rest) => real.checkStatus(rest),
      ),
    ...(real.replace !== undefined && {
      replace: (tx, withdrawals) => eachBy(withdrawals, nowhere.replace, (rest) => real.replace!(tx, rest)),
    }),
  }
}

/** Answers in the order of the withdrawals, those of the simulation's from one and the rest from the other. */
async function eachBy<T>(
  withdrawals: BroadcastWithdrawal[],
  ofSimulated: (past: BroadcastWithdrawal[]) => Promise<T[]>,
  ofReal: (rest: BroadcastWithdrawal[]) => Promise<T[]>,
): Promise<T[]> {
  const past = withdrawals.filter(isSimulated)
  if (past.length === 0) return ofReal(withdrawals)
  const rest = withdrawals.filter((withdrawal) => !isSimulated(withdrawal))
  const answers = new Map<BroadcastWithdrawal, T>()
  const note = (asked: BroadcastWithdrawal[], given: T[]) =>
    asked.forEach((withdrawal, index) => answers.set(withdrawal, given[index]!))
  note(past, await ofSimulated(past))
  if (rest.length > 0) note(rest, await ofReal(rest))
  return withdrawals.map((withdrawal) => answers.get(withdrawal)!)
}

/**
 * Whether a transaction is confirmed after so many milliseconds. One of the future was broadcast before the clock was set
 * back: it would otherwise wait for as long as that was.
 */
const isConfirmed = (milliseconds: string) =>
  `(broadcast_at <= clock_timestamp() - make_interval(secs => ${milliseconds}::float8 / 1000)
    or broadcast_at > clock_timestamp() + interval '1 second')`

/** Each statement commits by itself: a real network would not roll back with Bursar either. */
async function broadcast(db: Database, withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]> {
  const refusals = withdrawals.map(refusalOf)
  const sent = withdrawals.filter(
    (withdrawal, index) => refusals[index] === undefined && isSimulated(withdrawal),
  )
  const given = await givenOut(
    db,
    sent.map(({ destination_address }) => destination_address),
  )
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
      sent.map(({ destination_address }) => given.has(destination_address)),
    ],
  })
  return withdrawals.map((withdrawal, index) => {
    // It may have been broadcast there: only that network can tell.
    if (!isSimulated(withdrawal))
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
  const hashes = (some: BroadcastWithdrawal[]) => [
    some.map((withdrawal) => withdrawal.network),
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
      select c.hash, ${isConfirmed('$3')} as confirmed
      from unnest($1::text[], $2::text[]) as asked (crypto_network, hash)
      join simulated_chain c on c.crypto_network = asked.crypto_network and c.hash = asked.hash`,
    values: [...hashes(withdrawals), confirmationMs],
  })
  const forgotten = new Set(dropped.rows.map((row) => row.hash))
  const confirmed = new Map(seen.rows.map((row) => [row.hash, row.confirmed]))
  return withdrawals.map((withdrawal): PaymentStatus => {
    const state = confirmed.get(withdrawal.crypto_tx_hash)
    if (state === undefined || forgotten.has(withdrawal.crypto_tx_hash)) return { state: 'UNKNOWN' }
    if (!state || outcomeOf(withdrawal) === 'NEVER_CONFIRMS') return { state: 'PENDING' }
    return { state: 'CONFIRMED', crypto_tx_index: '0' }
  })
}

const ARRIVALS_MAX = 1_000
/** The simulation's place in its chain: each transaction is marked when it has arrived, so that no position is needed. */
const SIMULATED_CURSOR = 'simulated'

/**
 * What was withdrawn to an address that Bursar gave out arrives there, as it would on a real chain. A transaction that
 * pays such an address is marked when it is broadcast, and the mark goes in the transaction that records its arrival: so
 * none is missed, whatever the clock says and in whichever order concurrent broadcasts commit.
 */
async function scanDeposits(
  db: Database,
  network: CryptoNetwork,
  confirmationMs: number,
): Promise<DepositScan> {
  await markUnknown(db, network)
  const { rows } = await db.query<FoundDeposit>({
    name: 'simulated deposits',
    text: `
      select hash as crypto_tx_hash, '0' as crypto_tx_index, sent ->> 'asset' as asset, sent ->> 'amount' as amount,
             sent ->> 'destination_address' as address
      from (
        select hash, convert_from(raw_transaction, 'UTF8')::json as sent
        from simulated_chain
        where crypto_network = $1 and arrives is not false and arrives and ${isConfirmed('$2')}
        limit ${ARRIVALS_MAX}
      ) c`,
    values: [network, confirmationMs],
  })
  return {
    cursor: SIMULATED_CURSOR,
    found: rows,
    isBehind: rows.length === ARRIVALS_MAX,
    keep: (tx) => mark(tx, network, { arrived: rows.map(({ crypto_tx_hash }) => crypto_tx_hash) }),
  }
}

/** Marks what an earlier version broadcast: it said of none whether it arrives. */
async function markUnknown(db: Database, network: CryptoNetwork): Promise<void> {
  const { rows } = await db.query<{ hash: string; address: string | null }>(
    `
    select hash, convert_from(raw_transaction, 'UTF8')::json ->> 'destination_address' as address
    from simulated_chain
    where crypto_network = $1 and arrives is null
    limit ${ARRIVALS_MAX}`,
    [network],
  )
  if (rows.length === 0) return
  const given = await givenOut(
    db,
    rows.map(({ address }) => address ?? ''),
  )
  const arrives = ({ address }: { address: string | null }) => given.has(address ?? '')
  await mark(db, network, {
    arrives: rows.filter(arrives).map(({ hash }) => hash),
    arrived: rows.filter((row) => !arrives(row)).map(({ hash }) => hash),
  })
}

async function mark(
  db: Queryable,
  network: CryptoNetwork,
  { arrives = [], arrived }: { arrives?: string[]; arrived: string[] },
): Promise<void> {
  if (arrives.length + arrived.length === 0) return
  await db.query(
    `
    update simulated_chain set arrives = hash = any ($2::text[])
    where crypto_network = $1 and hash = any ($2::text[] || $3::text[])`,
    [network, arrives, arrived],
  )
}

/** Those of these addresses that Bursar gave out. */
async function givenOut(db: Database, addresses: string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ address: string }>(
    'select distinct address from deposit_addresses where address = any ($1::text[])',
    [addresses],
  )
  return new Set(rows.map(({ address }) => address))
}
