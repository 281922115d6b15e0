import type { ComponentChildren } from 'preact'
import type { Call } from './api.ts'
import { Filters, ListOf, Table, type Column, type List } from './list.tsx'
import type { Loaded } from './load.ts'
import { Amount, Answered, Curl, Title } from './parts.tsx'

/** Tables as pages share them: a list with its page, all records of one answer, and columns of amounts. */

/** The page of a list: its heading and filters, and its records a page at a time. */
export const ListPage = <T extends { id: string }>({
  head,
  above,
  children,
  below,
  ...list
}: {
  list: List<T>
  name: string
  /** What an empty list says. */
  none: string
  columns: readonly Column<T>[]
  /** What is above the filters; the name alone otherwise. */
  head?: ComponentChildren
  /** The filters. */
  children: ComponentChildren
  /** What is above and below the table. */
  above?: ComponentChildren
  below?: ComponentChildren
}) => (
  <>
    {head ?? <Title>{list.name}</Title>}
    <Filters>{children}</Filters>
    {above}
    <ListOf {...list}>{below}</ListOf>
  </>
)

/** All records of an answer as a table, and the call as curl. */
export const TableOf = <T,>({
  of,
  call,
  none,
  isPart = false,
  ...table
}: {
  of: Pick<Loaded<{ items: T[] }>, 'data' | 'error'>
  call?: Call
  name: string
  /** What is said where there is no record; an empty table otherwise. */
  none?: ComponentChildren
  /** Whether the page has more than the table, and shows nothing in its place while it is read. */
  isPart?: boolean
  columns: readonly Column<T>[]
  keyOf?: (item: T) => string | number
}) => (
  <>
    <Answered of={of} isPart={isPart}>
      {({ items }) =>
        items.length === 0 && none !== undefined ? (
          <p class="quiet">{none}</p>
        ) : (
          <Table items={items} {...table} />
        )
      }
    </Answered>
    {call !== undefined && <Curl of={call} />}
  </>
)

/** A column of amounts; blank without an amount. */
export const amountColumn = <T,>(
  name: string,
  moneyOf: (record: T) => { amount?: string | undefined; asset?: string | undefined } | undefined,
): Column<T> => ({
  name,
  number: true,
  cell(record) {
    const { amount, asset } = moneyOf(record) ?? {}
    return amount !== undefined && <Amount amount={amount} asset={asset} />
  },
})
