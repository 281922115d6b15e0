import { FeeBumpTransaction, TransactionBuilder } from '@stellar/stellar-base'
import type { Transaction } from '../../src/db/database.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { unknownSpends, unrecordedAmong } from '../kit/unknown-spends.ts'
import type { StellarChain } from './chain.ts'
import { PAGE, type TransactionRecord } from './horizon.ts'
import { hashIn } from './status.ts'

/** How old the newest ledger may be: one closes every five seconds. An older one hides what the wallet has sent since. */
const BEHIND_SECONDS = 180n
const PAGES_MAX = 50
/** Operations of the wallet's account that pay nobody. */
const PAYS_NOBODY = new Set([
  'changeTrust',
  'manageData',
  'setOptions',
  'bumpSequence',
  'beginSponsoringFutureReserves',
  'endSponsoringFutureReserves',
])

/**
 * Why nothing may be signed: Horizon is behind, or the wallet has sent what this database does not know. After an older
 * backup was restored, such a transaction may have paid a withdrawal that is about to be paid again. Remembers how far it
 * has looked.
 */
export async function whyBlocked(tx: Transaction, chain: StellarChain): Promise<WaitingReason | undefined> {
  const { closedAt, history_latest_ledger: newest } = await chain.horizon.root()
  const { rows } = await tx.query<{ now: string; checked_block: string | null }>(
    `
    select floor(extract(epoch from clock_timestamp()))::bigint as now,
           (select checked_block from wallet_checks where network = 'STELLAR') as checked_block`,
  )
  const age = BigInt(rows[0]!.now) - closedAt
  if (age > BEHIND_SECONDS)
    return {
      code: 'NODE_BEHIND',
      detail: `the newest ledger of Horizon, ${newest}, closed ${age} seconds ago`,
    }
  // A paging token begins with its ledger.
  const first = BigInt(chain.firstLedger) << 32n
  const [address, checked] = rows[0]!.checked_block?.split(' ') ?? []
  // Another hot wallet has other transactions.
  let from = address === chain.address && BigInt(checked!) > first ? BigInt(checked!) : first
  for (let page = 1; page <= PAGES_MAX; page++) {
    const path = `/accounts/${chain.address}/transactions?cursor=${from}&order=asc&limit=${PAGE}`
    const records = await chain.horizon.records<TransactionRecord>(path)
    const spends = records.filter((record) => isSpend(chain, record))
    const hashes = spends.map((spend) => hashIn(chain, spend) ?? spend.hash)
    const unrecorded = new Set(await unrecordedAmong(tx, 'STELLAR', hashes))
    const [unknown, ...others] = spends.filter((_, index) => unrecorded.has(hashes[index]!))
    if (unknown !== undefined)
      return unknownSpends(unknown.hash, others.length, `first_ledger ${unknown.ledger + 1}`)
    from = BigInt(records.at(-1)?.paging_token ?? from)
    if (records.length < PAGE) {
      await keepChecked(tx, `${chain.address} ${from}`)
      return undefined
    }
  }
  await keepChecked(tx, `${chain.address} ${from}`)
  return { code: 'NODE_BEHIND', detail: `the wallet's transactions are read up to ledger ${from >> 32n}` }
}

const keepChecked = (tx: Transaction, checked: string) =>
  tx.query(
    `
    insert into wallet_checks (network, checked_block, updated_at) values ('STELLAR', $1, clock_timestamp())
    on conflict (network) do update set checked_block = excluded.checked_block, updated_at = excluded.updated_at
    where wallet_checks.checked_block <> excluded.checked_block`,
    [checked],
  )

/** Whether a transaction moves something of the wallet's account. One that cannot be read might. */
function isSpend(chain: StellarChain, { envelope_xdr }: TransactionRecord): boolean {
  try {
    const parsed = TransactionBuilder.fromXDR(envelope_xdr, chain.passphrase)
    const inner = parsed instanceof FeeBumpTransaction ? parsed.innerTransaction : parsed
    return inner.operations.some(
      ({ type, source = inner.source }) => source === chain.address && !PAYS_NOBODY.has(type),
    )
  } catch {
    return true
  }
}
