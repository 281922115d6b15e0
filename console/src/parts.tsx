import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { open, ROOT } from './address.ts'
import { service } from './session.ts'

/** Parts of pages. */

/** A link to another page of the console. */
export function Link({
  to,
  children,
  current = false,
  ...rest
}: {
  to: string
  children: ComponentChildren
  current?: boolean
  class?: string
  title?: string
}) {
  return (
    <a
      href={ROOT + to}
      {...rest}
      {...(current && { 'aria-current': 'page' as const })}
      onClick={(event) => {
        // With a modifier, the browser opens a tab of its own.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
        event.preventDefault()
        open(to)
      }}
    >
      {children}
    </a>
  )
}

/** The heading of a page, which also names the browser's tab. */
export function Title({ children, of }: { children: ComponentChildren; of?: string }) {
  const text = of ?? (typeof children === 'string' ? children : 'Console')
  useEffect(() => {
    document.title = `${text} - Bursar`
  }, [text])
  return <h1>{children}</h1>
}

/** Why something did not work; nothing without an error. */
export const Failure = ({ of }: { of: unknown }) =>
  of === undefined ? null : (
    <p class="failure" role="alert">
      {of instanceof Error ? of.message : String(of)}
    </p>
  )

/** Whether the money is real: the most important fact on the page. */
export const Banner = () => {
  const live = service.value?.mode === 'live'
  return (
    <span class={live ? 'banner live' : 'banner'} title={live ? 'Real money' : 'Simulated money'}>
      {live ? 'LIVE' : 'SANDBOX'}
    </span>
  )
}
