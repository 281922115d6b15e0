import { signal } from '@preact/signals'

/** The page's address: its path below `/console/` and its query, and how links change them without loading the page. */

/** The console's own root, such as `/console/`. The script is in `assets/` below it. */
export const ROOT = new URL('..', import.meta.url).pathname
/** Where the API's operations are, for this page. */
export const API = `${ROOT}api`

interface Address {
  /** Without the root and slashes around it: `transfers/0192...`. */
  path: string
  query: URLSearchParams
}

const read = (): Address => ({
  path: location.pathname.slice(ROOT.length).replace(/\/$/, ''),
  query: new URLSearchParams(location.search),
})

export const address = signal(read())

window.addEventListener('popstate', () => (address.value = read()))

/** Opens another page of the console. `replace` leaves no entry in the browser's history. */
export function open(to: string, { replace = false } = {}): void {
  const url = ROOT + to
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  address.value = read()
  if (!replace) window.scrollTo(0, 0)
}

/** Changes parameters of the address; an empty value removes its parameter. */
export function setQuery(changes: Record<string, string>): void {
  const query = new URLSearchParams(address.value.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  open(address.value.path + (text === '' ? '' : `?${text}`), { replace: true })
}
