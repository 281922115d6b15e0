import { larger, minorOf, sum } from './amounts.ts'
import { feeAt } from './fees.ts'
import { known, type BitcoinWallet } from './wallet.ts'

/**
 * Child pays for parent (CPFP): a transaction that spends unmined change is mined only when its ancestors pay enough,
 * too. Its own fee adds what the fees of its ancestors lack at the current rate.
 */

/** A transaction in the mempool, in the node's words. `ancestorsize` and `fees.ancestor` count the transaction, too. */
interface MempoolEntry {
  vsize: string
  ancestorsize: string
  fees: { base: string; ancestor: string }
}

/**
 * The fee that unmined transactions and their ancestors lack at a rate, in minor units.
 *
 * An open descendant already pays for its ancestor: up to the descendant's rate together with all its ancestors, or up to
 * the rate remembered for it, if that is higher. Descendants that others have added do not count. Nor does the descendant
 * that is about to be replaced (`except`). Then no remembered rate counts either, because other transactions may rely on
 * that payment.
 *
 * Adds every transaction that it looked at to `counted`, and skips those already there. Networks without replacement lack
 * nothing: their miners ignore descendants.
 */
export async function missingAncestorFee(
  wallet: BitcoinWallet,
  hashes: readonly string[],
  { rate, open }: { rate: bigint; open: ReadonlySet<string> },
  { counted = new Set<string>(), except }: { counted?: Set<string>; except?: string } = {},
): Promise<bigint> {
  const { rpc, dialect, ancestorRates } = wallet
  if (!dialect.isReplaceable || hashes.length === 0) return 0n
  const unmined = await withAncestors(wallet, [...new Set(hashes)])
  const cheap = [...unmined].filter(
    ([hash, { vsize, fees }]) => !counted.has(hash) && minorOf(fees.base) < feeAt(rate, BigInt(vsize)),
  )
  for (const hash of unmined.keys()) counted.add(hash)
  const descendants = await rpc.batch<Record<string, MempoolEntry>>(
    cheap.map(([hash]) => ['getmempooldescendants', hash, true]),
  )
  return sum(
    cheap.map(([, { vsize, fees }], index) => {
      const rates = Object.entries(known(descendants[index]!) ?? {}).map(([hash, entry]) => {
        if (hash === except || !open.has(hash)) return 0n
        const packageRate = (minorOf(entry.fees.ancestor) * 1_000n) / BigInt(entry.ancestorsize)
        return larger(packageRate, except === undefined ? (ancestorRates.get(hash) ?? 0n) : 0n)
      })
      const paid = feeAt(rates.reduce(larger, 0n), BigInt(vsize))
      return larger(feeAt(rate, BigInt(vsize)) - larger(paid, minorOf(fees.base)), 0n)
    }),
  )
}

/** These transactions and their unmined ancestors, by hash: those that the mempool has. */
async function withAncestors(
  { rpc }: BitcoinWallet,
  hashes: readonly string[],
): Promise<Map<string, MempoolEntry>> {
  const entries = await rpc.batch<MempoolEntry>(hashes.map((hash) => ['getmempoolentry', hash]))
  const ancestors = await rpc.batch<Record<string, MempoolEntry>>(
    hashes.map((hash) => ['getmempoolancestors', hash, true]),
  )
  const unmined = new Map<string, MempoolEntry>()
  for (const [index, hash] of hashes.entries()) {
    const entry = known(entries[index]!)
    // The transaction was mined or dropped meanwhile.
    if (entry === undefined) continue
    unmined.set(hash, entry)
    for (const [ancestor, its] of Object.entries(known(ancestors[index]!) ?? {})) unmined.set(ancestor, its)
  }
  return unmined
}
