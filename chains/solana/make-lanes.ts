import type { Address } from '@solana/addresses'
import { transaction, type Database, type Transaction } from '../../src/db/database.ts'
import { idsAt, PLATFORM_ID, readClock } from '../../src/db/ids.ts'
import type { SweepRound } from '../../src/networks/network.ts'
import { nonceOf, readAccounts, type Accounts } from './accounts.ts'
import { feeIn, GAS_ASSET, lamportsText, NETWORK, type SolanaChain } from './chain.ts'
import { makeNonceAccount } from './instructions.ts'
import { laneAccounts, sweepAccounts } from './lanes.ts'
import { madeTransaction, statusesOf } from './node.ts'
import { send } from './send.ts'
import { parse, SIGNATURE_FEE, signBriefly } from './transaction.ts'

/**
 * Makes the missing nonce accounts of the hot wallet. Each is recorded like gas that is sent to a deposit address (evm_sweeps):
 * kept before it is broadcast, followed to its end, and its fee posted in the transaction that ends it. The rent stays the
 * platform's, and counts as held. Making an account that is there fails, so that no repeat can make two.
 */

/** How long the node must say that a transaction can never be made before it ends as VOID: one answer may lag. */
const LOST_SECONDS = 300

interface Making {
  id: string
  address: Address
  state: 'SIGNED' | 'BROADCAST'
  raw_transaction: Buffer
  crypto_tx_hash: string
}

/** Takes the next step of each missing nonce account. Returns how many steps were taken. */
export async function makeLanes(db: Database, chain: SolanaChain, round: SweepRound): Promise<number> {
  await chain.facts()
  const lanes = [
    ...laneAccounts(chain).filter(({ signs }) => signs),
    ...(chain.depositKeys === undefined ? [] : sweepAccounts(chain)),
  ]
  const accounts = await readAccounts(chain.rpc, [
    chain.hotWallet.address,
    ...lanes.map(({ account }) => account),
  ])
  const isMade = (account: Address) => nonceOf(accounts.get(account), chain.hotWallet.address) !== undefined
  const { rows: making } = await db.query<Making>(
    `select id, address, state, raw_transaction, crypto_tx_hash from evm_sweeps
     where customer_id = '${PLATFORM_ID}' and network = $1 and state in ('SIGNED', 'BROADCAST')`,
    [NETWORK],
  )
  const missing = lanes.filter(
    ({ account }) => !isMade(account) && !making.some(({ address }) => address === account),
  )
  const signed = missing.length === 0 ? [] : await signMissing(db, chain, accounts, missing, round)
  let steps = signed.length
  const under = [...making, ...signed]
  const standing = await statusesOf(
    chain.rpc,
    under.map(({ crypto_tx_hash }) => crypto_tx_hash),
  )
  for (const one of under) {
    const status = standing.get(one.crypto_tx_hash)
    if (status?.confirmationStatus === 'finalized') steps += await end(db, chain, one, round)
    else if (status == null) steps += await sendAgain(db, chain, one, round)
  }
  return steps
}

async function signMissing(
  db: Database,
  chain: SolanaChain,
  accounts: Accounts,
  missing: readonly { seed: string; account: Address }[],
  round: SweepRound,
): Promise<Making[]> {
  const { rentOfNonce, rentOfWallet } = await chain.facts()
  const wallet = chain.hotWallet.address
  const { value } = await chain.rpc.call<{ value: { blockhash: string } }>('getLatestBlockhash', {
    commitment: 'finalized',
  })
  const left = (accounts.get(wallet)?.lamports ?? 0n) - rentOfWallet
  const affordable = Number(left / (rentOfNonce + SIGNATURE_FEE))
  const made = missing.slice(0, Math.max(0, affordable)).map(({ seed, account }) => ({
    address: account,
    ...signBriefly(chain.hotWallet, makeNonceAccount(wallet, account, seed, rentOfNonce), value.blockhash),
  }))
  return transaction(db, async (tx) => {
    if (made.length === 0 || (await round.isFrozen(tx, NETWORK))) return []
    return keep(tx, made, lamportsText(rentOfNonce))
  })
}

async function keep(
  tx: Transaction,
  made: readonly Omit<Making, 'id' | 'state'>[],
  amount: string,
): Promise<Making[]> {
  const kept: Making[] = []
  const now = await readClock(tx)
  const newId = idsAt(now)
  for (const one of made) {
    const id = newId()
    const { rowCount } = await tx.query(
      `
      insert into evm_sweeps (customer_id, id, network, address, kind, asset, amount, state, raw_transaction, crypto_tx_hash,
                              replaced, created_at, signed_at)
      values ('${PLATFORM_ID}', $1, $2, $3, 'TOP_UP', $4, $5, 'SIGNED', $6, $7, '{}', $8, $8)
      on conflict do nothing`,
      [id, NETWORK, one.address, GAS_ASSET, amount, one.raw_transaction, one.crypto_tx_hash, now.text],
    )
    // Another worker was faster.
    if (rowCount === 1) kept.push({ ...one, id, state: 'SIGNED' })
  }
  return kept
}

/**
 * Broadcasts bytes that the network does not know. They end as VOID where their block's hash is too old, the account is missing
 * and both stay so for a while: then another transaction makes it.
 */
async function sendAgain(db: Database, chain: SolanaChain, one: Making, round: SweepRound): Promise<number> {
  await send(chain, one)
  const { value: isValid } = await chain.rpc.call<{ value: boolean }>(
    'isBlockhashValid',
    parse(one.raw_transaction).lifetime,
    { commitment: 'processed' },
  )
  if (isValid) return mark(db, one)
  const accounts = await readAccounts(chain.rpc, [one.address])
  if (nonceOf(accounts.get(one.address), chain.hotWallet.address) !== undefined) return 0
  const { rows } = await db.query<{ is_lost: boolean }>(
    `
    with lost as (
      update evm_sweeps set lost_since = coalesce(lost_since, (select clock_timestamp()))
      where customer_id = '${PLATFORM_ID}' and id = $1 and state in ('SIGNED', 'BROADCAST')
      returning lost_since
    )
    select lost_since <= clock_timestamp() - make_interval(secs => $2) as is_lost from lost`,
    [one.id, LOST_SECONDS],
  )
  return rows[0]?.is_lost === true ? endAs(db, one, 'VOID', 0n, round) : 0
}

async function mark(db: Database, { id }: Making): Promise<number> {
  const { rowCount } = await db.query(
    `update evm_sweeps set state = 'BROADCAST' where customer_id = '${PLATFORM_ID}' and id = $1 and state = 'SIGNED'`,
    [id],
  )
  return rowCount ?? 0
}

async function end(db: Database, chain: SolanaChain, one: Making, round: SweepRound): Promise<number> {
  const made = await madeTransaction(chain.rpc, one.crypto_tx_hash)
  if (made === undefined) return 0
  return endAs(db, one, made.err === null ? 'DONE' : 'FAILED', made.fee, round)
}

async function endAs(
  db: Database,
  { id }: Making,
  state: 'DONE' | 'FAILED' | 'VOID',
  fee: bigint,
  { post }: SweepRound,
): Promise<number> {
  const networkFee = feeIn(fee)
  return transaction(db, async (tx) => {
    // This locks the row: of two workers that end it, the second finds it ended and posts nothing.
    const { rowCount } = await tx.query(
      `update evm_sweeps set state = $2, network_fee = $3, ended_at = (select clock_timestamp())
       where customer_id = '${PLATFORM_ID}' and id = $1 and state in ('SIGNED', 'BROADCAST')`,
      [id, state, networkFee.amount],
    )
    if (rowCount === 0) return 0
    if (state !== 'VOID') await post(tx, { customer_id: PLATFORM_ID, id, network: NETWORK, networkFee })
    return 1
  })
}
