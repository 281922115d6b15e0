import { FeeBumpTransaction, TransactionBuilder } from '@stellar/stellar-base'
import type { Transaction } from '../../src/db/database.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { unknownSpends, unrecordedAmong } from '../kit/unknown-spends.ts'
import type { StellarChain } from './chain.ts'
import { PAGE, type TransactionRecord } from './horizon.ts'
import { hashIn } from './status.ts'

/** How far the newest ledger may be behind the second Horizon's: an older one hides what the wallet has sent since. */
const BEHIND_SECONDS = 180n
/** How long Horizon may show no new ledger: one closes every five seconds. */
const UNCHANGED_MS_MAX = 60_000
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
  const behind = await whyBehind(chain)
  if (behind !== undefined) return { code: 'NODE_BEHIND', detail: behind }
  const { rows } = await tx.query<{ checked_block: string }>(
    `select checked_block from wallet_checks where network = 'STELLAR'`,
  )
  // A paging token begins with its ledger.
  const first = BigInt(chain.firstLedger) << 32n
  const [address, checked] = rows[0]?.checked_block.split(' ') ?? []
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

/** Why Horizon may be behind, by the second Horizon, or alone by its own ledgers: clocks here may be wrong. */
async function whyBehind({ horizon, second }: StellarChain): Promise<string | undefined> {
  const { closedAt, history_latest_ledger: newest, unchangedMs } = await horizon.root()
  const there = await second?.root().catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
    return undefined
  })
  const behind = there === undefined ? 0n : there.closedAt - closedAt
  if (behind > BEHIND_SECONDS)
    return `the newest ledger of Horizon, ${newest}, is ${behind} seconds behind the second Horizon's`
  if (there !== undefined) return undefined
  if (unchangedMs === undefined) return `Horizon has shown no ledger after ${newest} yet`
  return unchangedMs > UNCHANGED_MS_MAX
    ? `Horizon has shown no ledger after ${newest} for ${Math.floor(unchangedMs / 1000)} seconds`
    : undefined
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
