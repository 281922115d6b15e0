/*
 * The model of a list by creation time, for all filters, bounds, orders and page sizes: its pages have exactly the records
 * that a filter in memory selects, in order, each once.
 */
import fc from 'fast-check'
import { expect } from 'vitest'
import { runs, SEED } from './seed.ts'
import type { TestCustomer } from './support.ts'

export type Query = [name: string, value: string][]

/** Reads a list to its end, and calls `between` before each further page. */
export async function walkList<Item>(
  { call }: Pick<TestCustomer, 'call'>,
  url: string,
  query: Query,
  between?: () => Promise<unknown>,
): Promise<Item[]> {
  const seen: Item[] = []
  let cursor: string | undefined
  for (let page = 0; page < 1000; page++) {
    const parameters = new URLSearchParams(cursor === undefined ? query : [...query, ['page_cursor', cursor]])
    const { status, body } = await call<{ items: Item[]; next_page_cursor?: string }>(
      'GET',
      `${url}?${parameters.toString()}`,
    )
    expect(status).toBe(200)
    seen.push(...body.items)
    cursor = body.next_page_cursor
    if (cursor === undefined) return seen
    await between?.()
  }
  throw new Error('the list has no end')
}

export const COMPARE: Record<string, (a: string, b: string) => boolean> = {
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
  eq: (a, b) => a === b,
  gte: (a, b) => a >= b,
  gt: (a, b) => a > b,
}

/** A filter of a list: the values that are tried, and what it compares them with. */
export type ListFilter<Item> = [values: fc.Arbitrary<string[]>, of: (item: Item) => string | undefined]

/** Requires that a list equals the filter in memory. */
export async function equalsFilterInMemory<Item>(
  walk: (query: Query) => Promise<Item[]>,
  {
    all,
    filters,
    bounds,
    cases,
  }: {
    /** Every record, oldest first. */
    all: readonly Item[]
    filters: Record<string, ListFilter<Item>>
    /** The moments that are tried for each time of a record. */
    bounds: { [field in keyof Item]?: fc.Arbitrary<string> }
    cases: number
  },
): Promise<void> {
  const anyBound = fc.oneof(
    ...Object.entries(bounds).map(([field, values]) =>
      fc.record({
        field: fc.constant(field as keyof Item & string),
        comparison: fc.constantFrom(...Object.keys(COMPARE)),
        value: values as fc.Arbitrary<string>,
      }),
    ),
  )
  const requireSame = async (
    chosen: Record<string, string[]>,
    chosenBounds: { field: keyof Item & string; comparison: string; value: string }[],
    order: string | undefined,
    limit: number,
  ) => {
    const query: Query = [
      ...Object.entries(chosen).flatMap(([name, values]) =>
        values.map((value): [string, string] => [name, value]),
      ),
      ...chosenBounds.map(({ field, comparison, value }): [string, string] => [
        `${field}.${comparison}`,
        value,
      ]),
      ...(order === undefined ? [] : [['order', order] satisfies [string, string]]),
      ...(limit === 7 ? [['order_by', 'CREATED_AT'] satisfies [string, string]] : []),
      ['limit', String(limit)],
    ]
    const expected = all
      .filter((item) =>
        Object.entries(chosen).every(([name, values]) => values.includes(filters[name]![1](item) ?? '')),
      )
      .filter((item) =>
        chosenBounds.every(({ field, comparison, value }) =>
          COMPARE[comparison]!(item[field] as string, value),
        ),
      )
    expect(await walk(query)).toEqual(order === 'ASC' ? expected : expected.reverse())
  }
  // Several filters together often select nothing, which hides the effect of each. So each filter is tried alone first.
  for (const [name, [values]] of Object.entries(filters)) {
    const alone = fc.asyncProperty(values, (chosen) => requireSame({ [name]: chosen }, [], 'ASC', 1000))
    await fc.assert(alone, { seed: SEED, numRuns: 3 })
  }
  await fc.assert(
    fc.asyncProperty(
      fc
        .subarray(Object.keys(filters), { maxLength: 3 })
        .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, filters[name]![0]])))),
      // The service refuses a repeated parameter.
      fc.uniqueArray(anyBound, {
        selector: ({ field, comparison }) => `${field}.${comparison}`,
        maxLength: 2,
      }),
      fc.constantFrom('ASC', 'DESC', undefined),
      fc.constantFrom(7, 30, 1000),
      requireSame,
    ),
    runs(cases),
  )
}
