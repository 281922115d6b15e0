import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { useSignal, type Signal } from '@preact/signals'
import { open, ROOT } from './address.ts'
import { curlOf, type Call } from './api.ts'
import { developer } from './developer.ts'
import { ago, dayOf, groupDigits, inWords, localTimeOf, short, signed, timeOf } from './format.ts'
import type { Loaded } from './load.ts'
import { pageOf } from './records.ts'
import { service } from './session.ts'

/** A link to another page of the console. */
export function Link({
  to,
  children,
  current = false,
  label,
  ...rest
}: {
  to: string
  children: ComponentChildren
  current?: boolean
  class?: string
  title?: string
  /** What a screen reader says, where the content is a picture. */
  label?: string
}) {
  return (
    <a
      href={ROOT + to}
      {...rest}
      {...(label !== undefined && { 'aria-label': label })}
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

/** The type of a record, as a link where it has a page. */
export const RecordLink = ({ of }: { of: { type: string; id: string } }) => {
  const page = pageOf(of)
  return page === undefined ? <>{inWords(of.type)}</> : <Link to={page}>{inWords(of.type)}</Link>
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
      {of instanceof Error ? of.message : 'Something failed.'}{' '}
      {approvalIn(of) !== undefined && <Link to={`approvals/${approvalIn(of)}`}>Open the approval</Link>}
    </p>
  )

/** The approval that a refused change waits for. */
const approvalIn = (error: unknown): string | undefined =>
  (error as { meta?: { approval_id?: string } }).meta?.approval_id

/** Whether the money is real: the most important fact on the page. */
export const Banner = () => {
  const live = service.value?.mode === 'live'
  return (
    <span class={live ? 'banner live' : 'banner'} title={live ? 'Real money' : 'Simulated money'}>
      {live ? 'LIVE' : 'SANDBOX'}
    </span>
  )
}

/** The status of a record, in words; nothing without one. The colour only helps. */
export const Status = ({ of }: { of: string | undefined }) => {
  if (of === undefined) return null
  const kind =
    /^(COMPLETED|DELIVERED|APPROVED|STATEMENT_STATUS_PAID|HOLDS|DONE|ACTIVE|OPEN|PAID|AVAILABLE|REACHABLE|ALLOWED|USED)$/.test(
      of,
    )
      ? 'good'
      : /^(FAILED|REFUSED|REJECTED|EXPIRED|DISABLED|FAILING|DELETED|DENIED|DIFFERS|STOPPED|BELOW|FROZEN|NOT REACHABLE|BLOCKED)$/.test(
            of,
          )
        ? 'bad'
        : 'wait'
  return <span class={`status ${kind}`}>{inWords(of.replace(/^STATEMENT_STATUS_/, ''))}</span>
}

/** Behind an amount of more characters, its asset may stand on the next line of a table. */
const LONG = 16

interface Money {
  amount: string | undefined
  asset: string | undefined
  sign?: boolean
}

/** An amount with its asset, its digits aligned; nothing without an amount. */
export const Amount = ({ amount, asset, sign = false }: Money) =>
  amount === undefined ? null : (
    <span class={amount.length > LONG ? 'amount long' : 'amount'}>
      {sign ? signed(amount) : groupDigits(amount)} <span class="asset">{asset}</span>
    </span>
  )

/**
 * A moment in UTC; `precise`: to the millisecond. Its tooltip has the reader's local time, and how long ago that is. A table
 * shows neither seconds nor the year that is now.
 */
export const Time = ({ at, precise = false }: { at: string; precise?: boolean }) => (
  <time
    dateTime={at}
    title={at}
    onPointerEnter={({ currentTarget }) =>
      (currentTarget.title = `${localTimeOf(at)} here, ${ago(at, Date.now())}\n${at}`)
    }
  >
    <span class="day">
      {dayOf(at).slice(0, -5)}
      <span class={at.startsWith(String(new Date().getUTCFullYear())) ? 'fine' : undefined}>
        {dayOf(at).slice(-5)}
      </span>
    </span>{' '}
    <span class="hour">
      {timeOf(at, precise).slice(0, 5)}
      <span class={precise ? undefined : 'fine'}>{timeOf(at, precise).slice(5)}</span> UTC
    </span>
  </time>
)

/** A text that people have chosen, of which two lines are shown; the tooltip has all of it. `to` is the page of its record. */
export const Name = ({ of, to }: { of: string; to?: string }) =>
  to === undefined ? (
    <span class="ref" title={of}>
      {of}
    </span>
  ) : (
    <Link to={to} class="ref" title={of}>
      {of}
    </Link>
  )

/** The name of an actor with its id, or its id alone. */
export const Actor = ({ of: { id, name } }: { of: { id: string; name?: string | undefined } }) => (
  <>
    {name !== undefined && <>{name} </>}
    {id.length === 36 ? <Id of={id} /> : <code>{id}</code>}
  </>
)

/**
 * An id, hash or address: shortened unless `whole`, with a button that copies all of it. The button is visible under a
 * pointer or the focus. `to` is the page of its record.
 */
export function Id({ of, whole = false, to }: { of: string; whole?: boolean; to?: string | undefined }) {
  const copied = useSignal(false)
  const code = <code title={of}>{whole ? of : short(of)}</code>
  return (
    <span class="id">
      {to === undefined ? code : <Link to={to}>{code}</Link>}
      <button
        type="button"
        class="copy"
        aria-label={`Copy ${of}`}
        onClick={() =>
          void navigator.clipboard.writeText(of).then(() => {
            copied.value = true
            setTimeout(() => (copied.value = false), 1_200)
          })
        }
      >
        {copied.value ? (
          'copied'
        ) : (
          <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
            <path
              d="M5 5V1.5h9.5V11H11M1.5 5H11v9.5H1.5z"
              fill="none"
              stroke="currentColor"
              stroke-width="1.5"
            />
          </svg>
        )}
      </button>
    </span>
  )
}

/** A call of the API as curl, so that a person can do the same without the page. Only the switch "Developer" shows it. */
export function Curl({ of }: { of: Call }) {
  if (!developer.value) return null
  const text = curlOf(of)
  return (
    <details class="curl">
      <summary>curl</summary>
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={() => void navigator.clipboard.writeText(text)}>
        Copy
      </button>
    </details>
  )
}

/** A secret that the service answers once, until it is put away. */
export const ShownOnce = ({ of, children }: { of: Signal<string>; children: ComponentChildren }) => (
  <div role="status">
    {of.value !== '' && (
      <div class="secret">
        <p>{children} It is shown once: save it now.</p>
        <p>
          <Id of={of.value} whole />
        </p>
        <button type="button" onClick={() => (of.value = '')}>
          I have saved it
        </button>
      </div>
    )}
  </div>
)

type NamedFact = readonly [name: string, value: ComponentChildren]

/** What is known of a record, each with its name. A fact that is undefined, null or false is left out. */
export const Facts = ({ of }: { of: readonly NamedFact[] }) => (
  <dl class="facts">
    {of.map(([name, value], index) =>
      (value ?? false) === false ? null : (
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ),
    )}
  </dl>
)

/**
 * Every member of a record that has a value, and of the objects in it, each with a button that copies it. A member is called
 * by its own name, and by those of the objects around it as far as others have the same; `whole`: by all of them.
 */
export function Members({ of, whole = false }: { of: object; whole?: boolean }) {
  const members = membersOf(of)
  const nameOf = (path: readonly string[], words: number): string => {
    const name = path.slice(-words).join(', ')
    const isUnique = members.filter(([other]) => other.slice(-words).join(', ') === name).length === 1
    return isUnique || words >= path.length ? inWords(name) : nameOf(path, words + 1)
  }
  return (
    <Facts
      of={members.map(([path, value]) => [nameOf(path, whole ? path.length : 1), <Id of={value} whole />])}
    />
  )
}

const membersOf = (of: object, path: readonly string[] = []): [path: string[], value: string][] =>
  Object.entries(of).flatMap(([name, value]: [string, unknown]): [string[], string][] => {
    if (value === null || value === undefined || value === '') return []
    const full = [...path, Array.isArray(of) ? String(Number(name) + 1) : name]
    return typeof value === 'object' ? membersOf(value, full) : [[full, `${value as string}`]]
  })

export const Loading = () => <p class="quiet">Loading…</p>

/** What is shown of an answer; until it has come, that it is read, or why it is not. */
export const Answered = <T,>({
  of: { data, error },
  isPart = false,
  children,
}: {
  of: Pick<Loaded<T>, 'data' | 'error'>
  /** Whether the page has more than this, and shows nothing in its place while it is read. */
  isPart?: boolean
  children: (answer: T) => ComponentChildren
}) => (
  <>
    <Failure of={error.value} />
    {data.value === undefined ? error.value === undefined && !isPart && <Loading /> : children(data.value)}
  </>
)
