import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { address, setQuery } from './address.ts'
import { daysOf, inWords, PERIODS } from './format.ts'
import { useCall, type Loaded } from './load.ts'
import { Curl, Failure, Loading } from './parts.tsx'
import type { Page } from './records.ts'

/** Lists of records: their filters and their place in the list are in the address, and a page is shown at a time. */

const PAGE_SIZE = 25

/** The parameter that keeps the place in the list. */
const CURSOR = 'cursor'

interface ListCall {
  method: 'GET'
  path: string
  query: Record<string, string | number>
}

export interface List<T> extends Omit<Loaded<Page<T>>, 'data'> {
  call: ListCall
  /** Undefined until the answer has come. */
  items: readonly T[] | undefined
  next: string | undefined
  /** Whether this is the first page, where new records appear. */
  isFirst: boolean
}

/** A filter's value in the address; empty where it is not set. */
export const filterOf = (name: string): string => address.value.query.get(name) ?? ''

/** Sets a filter. The list begins again at its first page, because a cursor belongs to its filters. */
const setFilter = (name: string, value: string): void => setQuery({ [name]: value.trim(), [CURSOR]: '' })

/** Reads the page of a list that the address names. Empty values of the query are left out. */
export function useList<T>(path: string, query: Record<string, string> = {}, limit = PAGE_SIZE): List<T> {
  const cursor = filterOf(CURSOR)
  const call: ListCall = { method: 'GET', path, query: { ...query, limit, page_cursor: cursor } }
  // List Statements names its records `statements`.
  const { data, error, again } = useCall<Page<T> & { statements?: T[] }>(call)
  return {
    call,
    items: data.value?.items ?? data.value?.statements,
    next: data.value?.next_page_cursor,
    isFirst: cursor === '',
    error,
    again,
  }
}

export interface Column<T> {
  /** Its heading. */
  name: string
  /** Whether its values are aligned as numbers. */
  number?: boolean
  cell: (item: T) => ComponentChildren
  /** Its place on a card. A column with a place has no heading there, unless it is named. */
  onCard?: number
  /** Whether its values need the heading on a card to be understood. */
  named?: boolean
}

/** A screen as narrow as this shows records as cards. */
const NARROW = matchMedia('(max-width: 700px)')
/** A table of at most this many columns stays a table on a narrow screen, if it fits. */
const COLUMNS_FEW = 3

/** The place on a card of columns without one. */
const LAST = 10
/** What cells without a value have. */
const NOTHING = new Set<ComponentChildren>([undefined, null, false, ''])

/** Records as a table. One that is wider than its place becomes cards, of two cells a line: an amount must not be cut. */
export function Table<T>({
  name,
  items,
  columns,
  keyOf = (item) => (item as { id: string }).id,
  ...rest
}: {
  name: string
  items: readonly T[]
  columns: readonly Column<T>[]
  /** What tells a record from the others; its id, where it is absent. */
  keyOf?: (item: T) => string | number
  class?: string
  classOf?: (item: T) => string | undefined
}) {
  const place = useRef<HTMLDivElement>(null)
  // A column without a value says nothing, and takes the place of others.
  const shown = columns.filter(
    ({ cell }) => items.length === 0 || items.some((item) => !NOTHING.has(cell(item))),
  )
  useLayoutEffect(() => {
    const { classList } = place.current!
    const choose = () => {
      classList.remove('cards')
      const isWide = place.current!.scrollWidth > place.current!.clientWidth
      classList.toggle('cards', isWide || (NARROW.matches && shown.length > COLUMNS_FEW))
    }
    choose()
    const observer = new ResizeObserver(choose)
    observer.observe(place.current!)
    return () => observer.disconnect()
  })
  return (
    <div ref={place} class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table class={rest.class}>
        <thead>
          <tr>
            {shown.map((column) => (
              <th key={column.name} class={column.number ? 'number' : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} class={rest.classOf?.(item)}>
              {shown.map((column) => (
                <td
                  key={column.name}
                  class={column.number ? 'number' : undefined}
                  data-name={column.named || column.onCard === undefined ? column.name : undefined}
                  style={{ order: String(column.onCard ?? LAST) }}
                >
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A page of a list: its table, the buttons to the other pages, and the call as curl. */
export const ListOf = <T,>({
  list,
  none,
  children,
  ...table
}: {
  list: List<T>
  name: string
  /** What an empty list says. */
  none: string
  columns: readonly Column<T>[]
  keyOf?: (item: T) => string | number
  /** What is below the table. */
  children?: ComponentChildren
}) => (
  <Paged list={list}>
    {list.items?.length === 0 ? <p class="quiet">{none}</p> : <Table items={list.items ?? []} {...table} />}
    {children}
  </Paged>
)

/** The frame of a page of a list: failure, buttons to other pages, and the call as curl. */
export const Paged = ({ list, children }: { list: List<unknown>; children: ComponentChildren }) => (
  <>
    <Failure of={list.error.value} />
    {list.items === undefined ? list.error.value === undefined && <Loading /> : children}
    <p class="pager">
      {!list.isFirst && (
        <button type="button" onClick={() => setQuery({ [CURSOR]: '' })}>
          First page
        </button>
      )}
      {list.next !== undefined && (
        <button type="button" onClick={() => setQuery({ [CURSOR]: list.next! })}>
          Next page
        </button>
      )}
    </p>
    <Curl of={list.call} />
  </>
)

/** The filters of a list. A filter applies as soon as it is chosen. */
export const Filters = ({ children }: { children: ComponentChildren }) => (
  <form class="filters" onSubmit={(event) => event.preventDefault()}>
    {children}
  </form>
)

/** A filter with a few values. */
export const Choice = ({
  name,
  filter,
  of,
  any = 'Any',
  say = inWords,
}: {
  name: string
  /** Its parameter in the address. */
  filter: string
  of: readonly string[]
  /** What the choice of no value is called. */
  any?: string
  /** How a value is written. */
  say?: (value: string) => string
}) => (
  <label>
    {name}
    <select value={filterOf(filter)} onChange={({ currentTarget }) => setFilter(filter, currentTarget.value)}>
      <option value="">{any}</option>
      {of.map((choice) => (
        <option key={choice} value={choice}>
          {say(choice)}
        </option>
      ))}
    </select>
  </label>
)

/** A filter by a day, UTC. */
const Day = ({ name, filter }: { name: string; filter: string }) => (
  <label>
    {name}
    <input
      type="date"
      value={filterOf(filter)}
      onChange={({ currentTarget }) => setFilter(filter, currentTarget.value)}
    />
  </label>
)

/** A filter by time: a period that people choose often, or any two days. */
export function Period() {
  const [from, before] = [filterOf('from'), filterOf('before')]
  const chosen = PERIODS.find((period) => {
    const days = daysOf(period, Date.now())
    return days.from === from && days.before === before
  })
  return (
    <>
      <label>
        Period
        <select
          value={chosen ?? (from + before === '' ? '' : 'days')}
          onChange={({ currentTarget: { value } }) => {
            const period = PERIODS.find((period) => period === value)
            const days = period === undefined ? { from: '', before: '' } : daysOf(period, Date.now())
            setQuery({ ...days, [CURSOR]: '' })
          }}
        >
          <option value="">Any</option>
          {PERIODS.map((period) => (
            <option key={period}>{period}</option>
          ))}
          <option value="days" disabled>
            Chosen days
          </option>
        </select>
      </label>
      <Day name="From (UTC)" filter="from" />
      <Day name="Before (UTC)" filter="before" />
    </>
  )
}

/** The filters of a `Period`, as the API names them. */
export const createdAt = () => ({
  'created_at.gte': startOfDay('from'),
  'created_at.lt': startOfDay('before'),
})

/** The day of a filter as the API's bound: its first moment. */
const startOfDay = (filter: string): string =>
  filterOf(filter) === '' ? '' : `${filterOf(filter)}T00:00:00Z`

export const TextFilter = ({
  name,
  filter,
  size = 36,
  inputMode = 'text',
}: {
  name: string
  filter: string
  size?: number
  inputMode?: 'text' | 'decimal'
}) => (
  <label>
    {name}
    <input
      value={filterOf(filter)}
      size={size}
      inputMode={inputMode}
      maxLength={100}
      spellcheck={false}
      onChange={({ currentTarget }) => setFilter(filter, currentTarget.value)}
    />
  </label>
)
