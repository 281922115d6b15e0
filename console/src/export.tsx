import { useSignal } from '@preact/signals'
import { get, send, sendForFile, type Call } from './api.ts'
import { csvOf } from '../../src/contract/csv.ts'
import { filterOf } from './list.tsx'
import type { Page } from './records.ts'
import { may } from './session.ts'

/** Rows of an export: 100 pages of the API's largest size. The page and the file's name say where it was cut. */
const EXPORT_MAX = 100_000
const EXPORT_PAGE = 1_000

export function save(name: string, content: string, type: string): void {
  saveLink(name, URL.createObjectURL(new Blob([content], { type: `${type};charset=utf-8` })))
}

function saveLink(name: string, href: string): void {
  const link = document.createElement('a')
  link.href = href
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

const FILES = { csv: 'text/csv', json: 'application/json' }

/** Saves what a report answers as a file: for spreadsheets all of it, from the service. */
export function FileButton({
  name,
  call,
  of = 'Save',
  as = 'csv',
}: {
  name: string
  call: Call
  of?: string
  as?: keyof typeof FILES
}) {
  const state = useSignal('')
  const run = async () => {
    state.value = 'reading…'
    const { limit: _, page_cursor: __, ...query } = call.query ?? {}
    const link = URL.createObjectURL(await sendForFile({ ...call, query }, FILES[as]))
    saveLink(`${fileOf(name)}.${as}`, link)
    state.value = ''
  }
  return (
    <span class="export">
      <button
        type="button"
        onClick={() => void run().catch((reason: unknown) => (state.value = String(reason)))}
      >
        {of} as {as.toUpperCase()}
      </button>{' '}
      <small role="status">{state.value}</small>
    </span>
  )
}

/** The name of a file with the days that the address limits it to. */
const fileOf = (name: string) =>
  [
    name,
    ...['from', 'before'].flatMap((bound) => (filterOf(bound) === '' ? [] : [bound, filterOf(bound)])),
  ].join('-')

/** Ids in one filter of the API. */
const IDS_MAX = 100

/** A function that reads the records of these ids into a map, those that it has not read before; none without the scope. */
export const readerOf =
  <T extends { id: string }>(found: Map<string | undefined, T>, path: string, scope: string) =>
  async (ids: readonly (string | undefined)[]): Promise<void> => {
    if (!may(scope)) return
    const missing = [...new Set(ids)].filter((id) => id !== undefined && !found.has(id)) as string[]
    for (let start = 0; start < missing.length; start += IDS_MAX) {
      const query = { ids: missing.slice(start, start + IDS_MAX), limit: IDS_MAX }
      const { items } = await send<Page<T>>(get(path, query))
      for (const item of items) found.set(item.id, item)
    }
  }

/** Saves all records of a list with these filters as a CSV file. Amounts are written as the API writes them. */
export function Export<T>({
  name,
  path,
  query,
  columns,
  cellsOf,
  prepare,
  note = '',
}: {
  /** What the records are called, and the file. */
  name: string
  path: string
  query: Record<string, string>
  columns: readonly string[]
  cellsOf: (item: T) => string[]
  /** Reads what the cells of these records need besides. */
  prepare?: (items: readonly T[]) => Promise<void>
  note?: string
}) {
  const isRunning = useSignal(false)
  const progress = useSignal('')
  const run = async () => {
    const rows: string[][] = [[...columns]]
    let cursor = ''
    do {
      const answer = await send<Page<T> & { statements?: T[] }>(
        get(path, { ...query, limit: EXPORT_PAGE, page_cursor: cursor }),
      )
      const items = answer.items ?? answer.statements ?? []
      await prepare?.(items)
      rows.push(...items.map(cellsOf))
      cursor = answer.next_page_cursor ?? ''
      progress.value = `${rows.length - 1} ${name}`
    } while (cursor !== '' && rows.length <= EXPORT_MAX)
    const isCut = cursor !== ''
    save(`${fileOf(name)}${isCut ? '-incomplete' : ''}.csv`, csvOf(rows), 'text/csv')
    if (isCut) throw new Error(`The file has the first ${EXPORT_MAX} ${name} alone: choose a shorter time.`)
  }
  return (
    <span class="export">
      <button
        type="button"
        title={`${note} Text columns: an apostrophe marks what would become a number, a date or a formula.`.trim()}
        disabled={isRunning.value}
        onClick={() => {
          isRunning.value = true
          progress.value = 'reading…'
          void run()
            .catch((reason: unknown) => (progress.value = String(reason)))
            .finally(() => (isRunning.value = false))
        }}
      >
        Save as CSV
      </button>{' '}
      <small role="status">{progress.value}</small>
    </span>
  )
}
