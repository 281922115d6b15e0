import { Amount } from './parts.tsx'
import type { Transfer } from './records.ts'

/** What a transfer has changed on its balance. A failed one gave everything back, or never came: 0, and the amount is struck. */
export function BalanceChange({ of }: { of: Transfer }) {
  const { direction, status, total, asset, balance_asset } = of
  const own = balance_asset ?? asset
  const asked = <Amount amount={direction === 'DEBIT' ? `-${total}` : total} asset={own} sign />
  if (status !== 'FAILED') return asked
  return (
    <>
      <Amount amount="0" asset={own} />{' '}
      <s class="quiet" title="It failed: this was given back, or never came.">
        {asked}
      </s>
    </>
  )
}
