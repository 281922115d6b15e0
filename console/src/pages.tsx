import type { ComponentType } from 'preact'
import { Home } from './pages/home.tsx'
import { NoSuchPage } from './pages/no-such-page.tsx'

/** The console's pages: a line each, in the order of the list on the page. */

interface PageAt {
  page: ComponentType<Record<string, string>>
  parameters: Record<string, string>
}

/** Addresses and their pages. `:id` matches one part of an address. */
const ROUTES: [pattern: string, page: ComponentType<never>][] = [['', Home]]

/** The pages that the console lists. */
export const PAGES = [{ name: 'Home', to: '' }]

/** The page at this path, and the parts of the path that its pattern names. */
export function pageAt(path: string): PageAt {
  for (const [pattern, page] of ROUTES) {
    const parameters = match(pattern, path)
    if (parameters !== undefined) return { page: page as PageAt['page'], parameters }
  }
  return { page: NoSuchPage, parameters: {} }
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index]!
    if (part.startsWith(':')) parameters[part.slice(1)] = decodeURIComponent(value)
    else if (part !== value) return undefined
  }
  return parameters
}
