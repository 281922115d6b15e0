import { Link } from './parts.tsx'

/** Amounts side by side. The bars are only a picture: each says its amount as text. */

/** The short form of an amount, which fits above its bar. */
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

export interface Bar {
  key: string
  /** The text under the bar. */
  name: string
  /** The API's text; empty where there is none. */
  amount: string
  /** The bar's tooltip, and its text for screen readers. */
  label: string
  /** The page that the bar opens. */
  to?: string
  kind?: 'wait' | undefined
}

export function Bars({
  bars,
  label,
  small = false,
}: {
  bars: readonly Bar[]
  label: string
  small?: boolean
}) {
  const largest = Math.max(...bars.map(({ amount }) => Number(amount)), 0)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <ol class={small ? 'bars small' : 'bars'}>
        {bars.map(({ key, name, amount, label, to, kind }) => {
          const share = largest === 0 ? 0 : Math.round((Number(amount) / largest) * 1_000) / 1_000
          const bar = (
            <>
              <span class="room">
                {!small && <span class="value" data-value={amount && SHORT.format(Number(amount))} />}
                {Number(amount) > 0 && <span class={`bar ${kind ?? ''}`} style={{ '--share': share }} />}
              </span>
              <span class="name">{name}</span>
            </>
          )
          return (
            <li key={key} title={label}>
              {to === undefined ? (
                bar
              ) : (
                <Link to={to} label={`${name}: ${label}`}>
                  {bar}
                </Link>
              )}
            </li>
          )
        })}
      </ol>
    </div>
  )
}
