import type { Queryable } from '../../src/db/database.ts'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { NonceEnd } from '../../src/networks/network.ts'
import { paysAnother } from '../../src/networks/network-transactions.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/** Signed bytes whose nonce, or number, another transaction has used. A "not found" is never evidence of that. */

/** The hash of a stored transaction, and of every transaction that it replaced on its nonce. */
export const hashesOf = ({ crypto_tx_hash, replaced }: { crypto_tx_hash: string; replaced: string[] }) => [
  crypto_tx_hash,
  ...replaced,
]

/** How long until it is asked again: a node rarely shows another transaction a moment later. */
const RECHECK_MS = 30_000

/** The bytes may be mined yet, or it is not known why not. */
export const mayBeMined = (detail: string): NonceEnd => ({
  state: 'UNRESOLVED',
  reason: { code: 'NONCE_USED', detail, recheckMs: RECHECK_MS },
  mayBeMined: true,
})

/** The nonce is used by what the node does not show. `whose` names it: nonce 7 of a wallet. */
export const usedByUnseen = (whose: string, transferId: string): NonceEnd =>
  mayBeMined(
    `a transaction that the node does not show has used ${whose}: find it in an explorer, and ` +
      `'bursar withdrawal resolve ${transferId} --outcome sign-anew --used-by <hash>' has the withdrawal signed anew`,
  )

/**
 * The end of a withdrawal's bytes whose nonce this confirmed transaction has used. One that makes the same payment is a
 * replacement that this database has lost, or a payment by hand; but of two equal withdrawals, it may pay the other. `doubt`
 * says why the node is not believed.
 */
export async function endedBy(
  db: Queryable,
  { network, transfer_id, hash }: { network: CryptoNetwork; transfer_id: string; hash: string },
  { isSamePayment, doubt }: { isSamePayment: boolean; doubt: () => Promise<WaitingReason | undefined> },
): Promise<NonceEnd> {
  if (isSamePayment && !(await paysAnother(db, network, hash, transfer_id)))
    return mayBeMined(
      `${hash} pays it: 'bursar withdrawal mark-paid ${transfer_id} --tx-hash ${hash}' says so`,
    )
  const reason = await doubt()
  return reason === undefined
    ? { state: 'VOID', usedBy: hash }
    : { state: 'UNRESOLVED', reason, mayBeMined: true }
}
