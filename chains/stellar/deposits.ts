import { createHash } from 'node:crypto'
import type { Database } from '../../src/db/database.ts'
import type { NewAddress } from '../../src/networks/network.ts'
import type { DepositScan, DepositVerdict, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { stroops, type StellarChain } from './chain.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { muxed } from './envelope.ts'
import { PAGE, type OperationRecord } from './horizon.ts'
import { hashIn } from './status.ts'

/**
 * Deposits. Each deposit address is a muxed address of the hot wallet's account: the account with a number of 63 bits. A payment
 * to the account with that number as its memo is to the same address, for senders that know no muxed addresses.
 */

/**
 * The number of an address, from its record's id, so that it is found again without the database. Some two of a million
 * addresses share a number with a probability of 1 in 18 million; a deposit there is credited to nobody
 * until a person has looked at it.
 */
const numberOf = (id: string): string =>
  (createHash('sha256').update(id).digest().readBigUInt64BE() >> 1n).toString()

export function newAddress({ address }: StellarChain, id: string): NewAddress {
  const number = numberOf(id)
  return { address: muxed(address, number), derivation: `muxed/${number}` }
}

/** A cursor of this network: a paging token. A simulated network's is another. */
const CURSOR = /^stellar:([0-9]+)$/
const cursorOf = (token: string | bigint) => `stellar:${token}`

const pathOf = ({ address }: StellarChain, cursor: string | bigint) =>
  `/accounts/${address}/payments?cursor=${cursor}&order=asc&limit=${PAGE}&join=transactions`

/** Where the first scan begins: now, unless the cursor is one of this network already. */
export async function initialCursor(chain: StellarChain, cursor: string | null): Promise<string | undefined> {
  if (cursor !== null && CURSOR.test(cursor)) return undefined
  const { history_latest_ledger } = await chain.horizon.root()
  return cursorOf(BigInt(history_latest_ledger) << 32n)
}

/** The deposits after the cursor. A ledger is final when it is closed. */
export async function scanDeposits(
  db: Database,
  chain: StellarChain,
  cursor: string | null,
): Promise<DepositScan> {
  const first = await initialCursor(chain, cursor)
  if (first !== undefined) return { cursor: first, found: [] }
  await chain.horizon.root()
  const [, token] = CURSOR.exec(cursor!)!
  const records = await chain.horizon.records<OperationRecord>(pathOf(chain, token!))
  return {
    cursor: cursorOf(records.at(-1)?.paging_token ?? token!),
    found: await depositsIn(db, chain, records),
    isBehind: records.length === PAGE,
  }
}

/** The deposits in these ledgers. Throws an Error when the last of them is not closed. */
export async function scanBlocks(
  db: Database,
  chain: StellarChain,
  first: bigint,
  last: bigint,
): Promise<FoundDeposit[]> {
  const { history_latest_ledger: newest } = await chain.horizon.root()
  if (last > BigInt(newest)) throw new Error(`ledger ${last} is not closed yet`)
  const found: FoundDeposit[] = []
  let from = (first << 32n) - 1n
  for (;;) {
    const records = await chain.horizon.records<OperationRecord>(pathOf(chain, from))
    const within = records.filter(({ paging_token }) => BigInt(paging_token) >> 32n <= last)
    found.push(...(await depositsIn(db, chain, within)))
    if (within.length < PAGE) return found
    from = BigInt(within.at(-1)!.paging_token)
  }
}

/** Verifies each found deposit: the second Horizon must have the same payment. */
export async function verifyDeposits(
  db: Database,
  chain: StellarChain,
  found: readonly FoundDeposit[],
): Promise<DepositVerdict[]> {
  const { second } = chain
  if (second === undefined) return found.map(() => ({ verdict: 'AGREES' }))
  const verdicts: DepositVerdict[] = []
  for (const deposit of found)
    verdicts.push(
      await verdictOn(db, { ...chain, horizon: second }, deposit).catch((error: unknown) => {
        if (!(error instanceof NodeFailure)) throw error
        return waits(`cannot tell: ${error.message}`)
      }),
    )
  return verdicts
}

const waits = (why: string): DepositVerdict => ({
  verdict: 'WAITS',
  detail: `the second Horizon ${why}`,
  secondNode: true,
})

async function verdictOn(
  db: Database,
  second: StellarChain,
  { crypto_tx_hash: hash, crypto_tx_index, address, asset, amount }: FoundDeposit,
): Promise<DepositVerdict> {
  await second.horizon.root()
  const records = await second.horizon.records<OperationRecord>(
    `/transactions/${hash}/operations?join=transactions&limit=${PAGE}`,
  )
  if (records.length === 0) return waits(`has no transaction ${hash}`)
  const there = (await depositsIn(db, second, records)).some(
    (record) =>
      record.crypto_tx_index === crypto_tx_index &&
      record.address === address &&
      record.asset === asset &&
      stroops(record.amount) === stroops(amount),
  )
  if (there) return { verdict: 'AGREES' }
  const detail = `the second Horizon has no payment of ${amount} ${asset} to ${address} in ${hash}`
  return { verdict: 'DISAGREES', detail }
}

/**
 * The deposits among the account's payments. What the hot wallet pays to itself is one only where it pays a withdrawal: moved by
 * hand, it was in custody before. A payment without a number belongs to nobody, and nothing records it: it is a refill.
 */
async function depositsIn(
  db: Database,
  chain: StellarChain,
  records: readonly OperationRecord[],
): Promise<FoundDeposit[]> {
  const symbolOf = new Map([...chain.assets].map(([symbol, asset]) => [asset, symbol]))
  const found: (FoundDeposit & { own: string | undefined })[] = []
  for (const record of records) {
    const arrived = await arrivalIn(chain, record)
    const asset = arrived && symbolOf.get(arrived.asset)
    if (arrived === undefined || asset === undefined) continue
    found.push({
      address: muxed(chain.address, arrived.number),
      asset,
      amount: arrived.amount,
      crypto_tx_hash: record.transaction_hash,
      // The lowest twelve bits of an operation's id are its place in the transaction, from 1 on.
      crypto_tx_index: String((BigInt(record.id) & 0xfffn) - 1n),
      block: { number: BigInt(record.id) >> 32n, hash: `ledger ${BigInt(record.id) >> 32n}` },
      own: record.source_account === chain.address ? hashIn(chain, record.transaction!) : undefined,
    })
  }
  const hashes = found.flatMap((deposit) => deposit.own ?? [])
  const byHand = new Set(await unrecordedAmong(db, 'STELLAR', hashes))
  return found.flatMap(({ own, ...deposit }) => (own !== undefined && byHand.has(own) ? [] : deposit))
}

/** As text, too: exchanges send a number as text. As a memo of type id it is nobody else's. */
const NUMBER = /^(?:0|[1-9][0-9]{0,18})$/

/** What an operation has brought to the account, and for which number; undefined where it brought nothing to one. */
export async function arrivalIn(
  chain: StellarChain,
  record: OperationRecord,
): Promise<{ asset: string; amount: string; number: string } | undefined> {
  if (!record.transaction_successful || record.transaction === undefined) return undefined
  const isMerge = record.type === 'account_merge'
  if (!isMerge && !record.type.startsWith('path_payment') && record.type !== 'payment') return undefined
  if ((isMerge ? record.into : record.to) !== chain.address) return undefined
  const { memo_type, memo } = record.transaction
  const number =
    (isMerge ? record.into_muxed_id : record.to_muxed_id) ??
    (memo_type === 'id' || (memo_type === 'text' && NUMBER.test(memo ?? '')) ? memo : undefined)
  if (number === undefined) return undefined
  if (!isMerge) {
    const asset = record.asset_type === 'native' ? 'native' : `${record.asset_code}:${record.asset_issuer}`
    return { asset, amount: record.amount!, number }
  }
  const effects = await chain.horizon.records<{ type: string; account: string; amount: string }>(
    `/operations/${record.id}/effects`,
  )
  const credited = effects.find(
    ({ type, account }) => type === 'account_credited' && account === chain.address,
  )
  return credited && { asset: 'native', amount: credited.amount, number }
}
