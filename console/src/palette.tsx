import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { open } from './address.ts'
import { listedPages } from './pages.tsx'

/** The command palette: every page by some letters of its name, and a search for the text. Ctrl+K or Cmd+K opens it. */

const isOpen = signal(false)

export const PaletteButton = () => (
  <button type="button" class="plain" title="Ctrl+K or Cmd+K" onClick={() => (isOpen.value = true)}>
    Go to…
  </button>
)

interface Entry {
  name: string
  group: string
  to: string
}

/** The pages whose name or group has this text, and at the end a search for it. */
function entriesFor(text: string): Entry[] {
  const wanted = text.trim().toLowerCase()
  const pages = listedPages().flatMap(({ group, pages }) =>
    pages.map(({ name, to }) => ({ name, to, group })),
  )
  const found = pages.filter(({ name, group }) => `${name} ${group}`.toLowerCase().includes(wanted))
  if (wanted === '') return found
  const search = { name: `Search for “${text.trim()}”`, group: 'Records' }
  return [...found, { ...search, to: `search?q=${encodeURIComponent(text.trim())}` }]
}

export function Palette() {
  useEffect(() => {
    const toggle = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 'k') return
      event.preventDefault()
      isOpen.value = !isOpen.value
    }
    addEventListener('keydown', toggle)
    return () => removeEventListener('keydown', toggle)
  }, [])
  return isOpen.value ? <Dialog /> : null
}

function Dialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const text = useSignal('')
  const chosen = useSignal(0)
  const entries = entriesFor(text.value)
  const close = () => (isOpen.value = false)
  const choose = (entry: Entry | undefined) => {
    if (entry === undefined) return
    close()
    open(entry.to)
  }
  useEffect(() => {
    const before = document.activeElement
    dialog.current!.showModal()
    // The element is removed, not closed: the browser would leave the focus on nothing.
    return () => before instanceof HTMLElement && before.focus()
  }, [])
  useEffect(() => {
    document.getElementById(`entry-${chosen.value}`)?.scrollIntoView({ block: 'nearest' })
  }, [chosen.value])
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) chosen.value = (chosen.value + step + entries.length) % entries.length
    else if (event.key === 'Enter') choose(entries[chosen.value])
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Go to"
      onClose={close}
      onClick={({ target }) => target === dialog.current && close()}
    >
      <input
        role="combobox"
        aria-label="Page, or a text to search for"
        aria-expanded="true"
        aria-controls="entries"
        aria-activedescendant={`entry-${chosen.value}`}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        maxLength={256}
        placeholder="Page, or a text to search for"
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          chosen.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="entries" role="listbox" aria-label="Pages">
        {entries.map((entry, index) => (
          <li
            key={entry.to}
            id={`entry-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onClick={() => choose(entry)}
          >
            {entry.name} <small>{entry.group}</small>
          </li>
        ))}
      </ul>
    </dialog>
  )
}
