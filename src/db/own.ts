import { arrayLiteral } from './array-literal.ts'

/** Columns of rows, with their types. */
type Columns = readonly { name: string; type: string }[]

/**
 * What a statement says for its customer and for the customer's own parameters: parameters, where it is of one customer. In a
 * statement of several customers they are columns, of rows for each customer (`ownSet`) or for each row to insert (`ownRows`).
 */
export interface Own {
  customer: string
  /** The own parameter with this number, from 1. */
  value: (number: number) => string
  /** An own parameter that is the same for all rows which are inserted for the customer. */
  constant: (number: number, type: string) => string
  /** The clause `from` with the customers, where there is one. */
  from: string
  /**
   * The clause `from` of an insert behind `changed`, which has these `members` of the customer's changed row, with the rows `r`:
   * the own parameters are arrays of their columns.
   */
  fromChanged: (changed: string, members: readonly string[], columns: Columns) => string
  /** How many customers there are. */
  count: string
}

const arraysOf = (first: number, columns: readonly { type: string }[]): string =>
  columns.map(({ type }, index) => `$${first + index}::${type}[]`).join(', ')
const namesOf = (columns: Columns): string => columns.map(({ name }) => name).join(', ')

/** The statement is of one customer, `$1`; its own parameters begin with `$first`. */
export function ownParameters(first: number): Own {
  const value = (number: number) => `$${first + number - 1}`
  return {
    customer: '$1',
    value,
    constant: (number, type) => `${value(number)}::${type}`,
    from: '',
    fromChanged: (changed, _, columns) =>
      `from ${changed} cross join unnest(${arraysOf(first, columns)}) as r (${namesOf(columns)})`,
    count: '1',
  }
}

/**
 * A row `s` for each customer, numbered by `s.n` from 1: the arrays from `$first` on are the customers and their own parameters, of
 * these types. A text that the statement casts is cast anew for each row that it is compared with.
 */
export function ownSet(first: number, types: readonly string[]): Own {
  const names = ['uuid', ...types].map((_, index) => `p${index}`)
  const arrays = arraysOf(
    first,
    ['uuid', ...types].map((type) => ({ type })),
  )
  return {
    ...ownParameters(first),
    customer: 's.p0',
    value: (number) => `s.p${number}`,
    from: `from unnest(${arrays}) with ordinality as s (${names.join(', ')}, n)`,
    count: `cardinality($${first}::uuid[])`,
  }
}

/**
 * All rows to insert: the arrays from `$first` on have an element for each of them. The first array has their customers or, behind
 * a changed row, the customers' numbers: a join would compare each row with each customer.
 */
export const ownRows = (first: number): Own => ({
  ...ownParameters(first + 1),
  customer: `unnest($${first}::uuid[])`,
  constant: (number, type) => `unnest($${first + number}::${type}[])`,
  fromChanged: (changed, members, columns) => {
    const ofCustomer = members.map(
      (name) => `(select array_agg(${name} order by n) from ${changed})[r.n] as ${name}`,
    )
    return `from unnest($${first}::int[], ${arraysOf(first + 1, columns)}) as r (n, ${namesOf(columns)})
      cross join lateral (select ${ofCustomer.join(', ')}) changed`
  },
})

/** A customer, or its number, with the values of its own parameters. */
export type OwnValues = readonly string[]

/** The values of a set. */
export const valuesOfSet = (customers: readonly OwnValues[]): string[] =>
  customers[0]!.map((_, index) => arrayLiteral(customers.map((own) => own[index])))

/**
 * The values of all rows. The last parameters of each customer are `columns` arrays of its rows, where an empty array has only
 * nulls. The elements of the first column have no comma.
 */
export function valuesOfRows(customers: readonly OwnValues[], columns: number): string[] {
  const constants = customers[0]!.length - columns
  const counts = customers.map((own) => own[constants]!.split(',').length)
  return customers[0]!.map((_, index) => {
    if (index >= constants && customers.every((own) => own[index] === '{}')) return '{}'
    const elements = customers.map((own, place) => {
      const value = own[index]!
      if (index >= constants && value !== '{}') return value.slice(1, -1)
      return Array.from({ length: counts[place]! }, () => (index < constants ? value : 'NULL')).join()
    })
    return `{${elements.join()}}`
  })
}
