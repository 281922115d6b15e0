import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { address, open } from '../address.ts'
import { send } from '../api.ts'
import { inWords } from '../format.ts'
import { Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Curl, Failure, Id, Link, Loading, Status, Time, Title } from '../parts.tsx'
import { pageOf, type Found } from '../records.ts'

/** One box that takes any id, `ref_id`, hash, address or memo. */

const call = (q: string) => ({ method: 'GET', path: '/v2/search', query: { q } }) as const

/** Opens the only record with this name, or the list of them. */
async function find(q: string): Promise<void> {
  const { items } = await send<{ items: Found[] }>(call(q))
  const only = items.length === 1 ? pageOf(items[0]!) : undefined
  open(only ?? `search?q=${encodeURIComponent(q)}`)
}

/** The box in the bar on top. The key `/` moves to it. */
export function SearchBox() {
  const error = useSignal<unknown>(undefined)
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const { tagName } = event.target as HTMLElement
      if (event.key !== '/' || ['INPUT', 'SELECT', 'TEXTAREA'].includes(tagName)) return
      event.preventDefault()
      box.current?.focus()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const q = box.current!.value.trim()
        error.value = undefined
        if (q !== '') void find(q).catch((reason: unknown) => (error.value = reason))
      }}
    >
      <input
        ref={box}
        type="search"
        maxLength={256}
        autocomplete="off"
        spellcheck={false}
        aria-label="Search: any id, ref_id, hash, address or memo"
        placeholder="Where is this money? Any id, ref_id, hash, address or memo"
      />
      <Failure of={error.value} />
    </form>
  )
}

const COLUMNS: Column<Found>[] = [
  {
    name: 'Record',
    onCard: 1,
    cell: (found) => {
      const page = pageOf(found)
      return page === undefined ? inWords(found.type) : <Link to={page}>{inWords(found.type)}</Link>
    },
  },
  { name: 'Id', onCard: 4, cell: ({ id }) => <Id of={id} /> },
  { name: 'Found by', onCard: 5, cell: ({ found_by }) => found_by.toLowerCase() },
  { name: 'Status', onCard: 2, cell: ({ status }) => status !== undefined && <Status of={status} /> },
  { name: 'Created', onCard: 3, cell: ({ created_at }) => <Time at={created_at} /> },
]

/** The records with a name: the page of a search that found none or several. */
export function SearchPage() {
  const q = address.value.query.get('q') ?? ''
  const { data, error } = useCall<{ items: Found[] }>(call(q))
  return (
    <>
      <Title of={`Search ${q}`}>
        Search: <code>{q}</code>
      </Title>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value?.items.length === 0 && (
        <p>
          Nothing has this id, <code>ref_id</code>, hash, address or memo. A search finds whole names, not
          parts of them.
        </p>
      )}
      {data.value !== undefined && data.value.items.length > 0 && (
        <Table
          name="What was found"
          items={data.value.items}
          columns={COLUMNS}
          keyOf={({ type, id }) => type + id}
        />
      )}
      <Curl of={call(q)} />
    </>
  )
}
