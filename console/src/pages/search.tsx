import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { address, open } from '../address.ts'
import { get, send } from '../api.ts'
import { inWords } from '../format.ts'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, RecordLink, Status, Time, Title } from '../parts.tsx'
import { pageOf, type Found } from '../records.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** One box that takes any id, `ref_id`, hash, address, memo, name or amount, whole or in part. */

const call = (q: string) => get('/v2/search', { q })
const listOf = (q: string) => `search?q=${encodeURIComponent(q)}`

/** The shortest text with suggestions, how many there are, and how long a person must have stopped typing. */
const SUGGESTED_FROM = 3
const SUGGESTIONS_MAX = 8
const SETTLE_MS = 200

/** Opens the only record with this name, or the list of them. */
async function find(q: string): Promise<void> {
  const { items } = await send<{ items: Found[] }>(call(q))
  const only = items.length === 1 ? pageOf(items[0]!) : undefined
  open(only ?? listOf(q))
}

/** What the box suggests: a page of the console, or a record. */
interface Suggestion {
  to: string
  shown: ComponentChildren
}

type Groups = readonly { group: string; pages: readonly { name: string; to: string }[] }[]

/** The pages with a word in their name or group that begins with this text. */
const pagesFor = (groups: Groups, text: string): Suggestion[] =>
  groups.flatMap(({ group, pages }) =>
    pages
      .filter(({ name }) => ` ${name} ${group}`.toLowerCase().includes(` ${text.toLowerCase()}`))
      .map(({ name, to }) => ({ to, shown: [<span>{name}</span>, ' ', <small>{group}</small>] })),
  )

const recordOf = (found: Found): Suggestion => ({
  to: pageOf(found) ?? listOf(found.id),
  shown: (
    <>
      <span>{inWords(found.type)}</span> <NameOf found={found} />
      <Status of={found.status} />
    </>
  ),
})

/** What is suggested for the text in the box, and which suggestion the keys have chosen. */
function useSuggestions(groups: Groups) {
  const text = useSignal('')
  const settled = useSignal('')
  const isOpen = useSignal(false)
  const isForPages = useSignal(false)
  const chosen = useSignal(-1)
  const timer = useRef(0)
  const { data } = useCall<{ items: Found[] }>(
    isOpen.value && settled.value.length >= SUGGESTED_FROM ? call(settled.value) : undefined,
  )
  const records = settled.value === text.value ? data.value?.items.slice(0, SUGGESTIONS_MAX) : []
  const items = isOpen.value ? [...pagesFor(groups, text.value), ...(records ?? []).map(recordOf)] : []
  const show = (value: string) => {
    clearTimeout(timer.current)
    text.value = value.trim()
    isOpen.value = true
    // Enter searches, unless a person has asked for the pages or chosen something.
    chosen.value = isForPages.value && pagesFor(groups, text.value).length > 0 ? 0 : -1
    timer.current = window.setTimeout(() => (settled.value = text.value), SETTLE_MS)
  }
  const close = () => {
    clearTimeout(timer.current)
    isOpen.value = false
    isForPages.value = false
    chosen.value = -1
  }
  const showPages = () => {
    isForPages.value = true
    show('')
  }
  useEffect(() => {
    document.getElementById(`suggestion-${chosen.value}`)?.scrollIntoView({ block: 'nearest' })
  }, [chosen.value])
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape') close()
    if (step === undefined || items.length === 0) return
    event.preventDefault()
    // The place before the first suggestion is the box itself.
    chosen.value = ((chosen.value + step + 1 + items.length + 1) % (items.length + 1)) - 1
  }
  return { items, chosen: chosen.value, close, show, showPages, onKey }
}

/** The box in the bar on top, which opens pages and finds records. `/` moves to it; Ctrl+K or Cmd+K also lists all pages. */
export function SearchBox({ pages }: { pages: Groups }) {
  const error = useSignal<unknown>(undefined)
  const box = useRef<HTMLInputElement>(null)
  const { items, chosen, close, show, showPages, onKey } = useSuggestions(pages)
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k'
      const { tagName } = event.target as HTMLElement
      if (!isCommand && (event.key !== '/' || ['INPUT', 'SELECT', 'TEXTAREA'].includes(tagName))) return
      event.preventDefault()
      box.current!.focus()
      box.current!.select()
      if (isCommand) showPages()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])
  const choose = ({ to }: Suggestion) => {
    close()
    error.value = undefined
    box.current!.value = ''
    open(to)
  }
  const isOpen = items.length > 0
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const q = box.current!.value.trim()
        error.value = undefined
        const suggestion = items[chosen]
        close()
        if (suggestion !== undefined) choose(suggestion)
        else if (q !== '') void find(q).catch((reason: unknown) => (error.value = reason))
      }}
    >
      <input
        ref={box}
        type="text"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls="suggestions"
        aria-activedescendant={chosen === -1 ? undefined : `suggestion-${chosen}`}
        maxLength={256}
        autocomplete="off"
        spellcheck={false}
        aria-label="Search: any id, ref_id, hash, address, memo, name or amount; or a page"
        placeholder="Where is this money? Any id, ref_id, hash, address, memo, name or amount (Ctrl+K: pages)"
        onInput={({ currentTarget: { value } }) => (value.trim() === '' ? close() : show(value))}
        onKeyDown={onKey}
        onBlur={close}
      />
      {isOpen && (
        <ul id="suggestions" role="listbox" aria-label="Pages and records">
          {items.map((suggestion, index) => (
            <li
              key={suggestion.to}
              id={`suggestion-${index}`}
              role="option"
              aria-selected={index === chosen}
              // The box keeps the focus.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(suggestion)}
            >
              {suggestion.shown}
            </li>
          ))}
        </ul>
      )}
      <Failure of={error.value} />
    </form>
  )
}

/** What tells a record from another: its amount and profile, or its name, or its id. */
const NameOf = ({ found: { amount, asset, name, id } }: { found: Found }) => (
  <>
    <Amount amount={amount} asset={asset} /> <span>{name}</span>
    {amount === undefined && name === undefined && <code>{id}</code>}
  </>
)

const COLUMNS: Column<Found>[] = [
  { name: 'Record', onCard: 1, cell: (found) => <RecordLink of={found} /> },
  { ...amountColumn<Found>('Amount', (found) => found), onCard: 2 },
  {
    name: 'Name or profile',
    onCard: 3,
    cell: ({ name, type, profile_id }) =>
      profile_id === undefined || type === 'profile' ? (
        name
      ) : (
        <Link to={`profiles/${profile_id}`}>{name ?? 'Profile'}</Link>
      ),
  },
  { name: 'Status', onCard: 4, cell: ({ status }) => <Status of={status} /> },
  { name: 'Found by', onCard: 7, cell: ({ found_by }) => inWords(found_by).toLowerCase() },
  { name: 'Created', onCard: 5, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Id', onCard: 6, cell: ({ id }) => <Id of={id} /> },
]

/** The records with a name: the page of a search that found none or several. */
export function SearchPage() {
  const q = address.value.query.get('q') ?? ''
  const read = useCall<{ items: Found[] }>(call(q))
  return (
    <>
      <Title of={`Search ${q}`}>
        Search: <code>{q}</code>
      </Title>
      {read.data.value?.items.length === 0 ? (
        <p>
          Nothing has this id, <code>ref_id</code>, hash, address, memo, name or amount. Of ids, hashes,
          addresses and names, the beginning is enough.
        </p>
      ) : (
        <TableOf of={read} name="What was found" columns={COLUMNS} keyOf={({ type, id }) => type + id} />
      )}
      <Curl of={call(q)} />
    </>
  )
}
