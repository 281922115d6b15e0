import { computed, signal } from '@preact/signals'
import { ROOT } from './address.ts'
import { ask } from './connection.ts'

/** Who is signed in, and for which customer the page works. */

interface Session {
  operator: { id: string; name: string; role: string }
  expires_at: string
  /** The customers to choose from: one, unless the operator is the platform's. */
  customers: { id: string; name: string }[]
  customer_id?: string
  scopes?: string[]
}

interface Shown {
  mode: 'sandbox' | 'live'
  /** Whether this sandbox signs in without a link. */
  demo: boolean
  /** Whether this page can empty the sandbox. */
  begins_anew: boolean
  openid: boolean
  docs: boolean
  session?: Session
}

/** What the service says of itself and of the session; undefined until it has answered. */
export const service = signal<Shown | undefined>(undefined)
export const session = computed(() => service.value?.session)
/** The customer that an operator of the platform has chosen. It is remembered on this device. */
export const customer = signal(localStorage.getItem('customer') ?? '')
/** The name of a customer: of the chosen one, unless another is named. */
export const nameOfCustomer = (customerId = customer.value): string | undefined =>
  session.value?.customers.find(({ id }) => id === customerId)?.name
/** Why the sign-in is shown, where something happened before it. */
export const signInReason = signal('')

const ENDED = 'The session has ended. Sign in again.'

/** Whether the operator's role has this scope. Buttons for other actions are not shown. */
export const may = (scope: string): boolean => session.value?.scopes?.includes(scope) ?? false

/** The headers that mark a request as this page's. `background`: the page refreshes itself, without a person. */
export const headersOf = (background: boolean): Record<string, string> => ({
  'x-bursar-console': background ? 'background' : 'page',
  ...(customer.value !== '' && { 'bursar-customer': customer.value }),
})

/** Asks the service who is signed in, and changes nothing here. */
export async function askService(): Promise<Shown> {
  const answer = await ask(`${ROOT}session`, { headers: headersOf(false) })
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`)
  return (await answer.json()) as Shown
}

/** Asks the service who is signed in. Undefined: nobody. */
export async function readSession(): Promise<Session | undefined> {
  const shown = await askService()
  // The reason is set before the sign-in is shown: otherwise a sandbox would sign in again by itself.
  if (session.value !== undefined && shown.session === undefined) signInReason.value = ENDED
  const found = shown.session
  const [only, ...others] = found?.customers ?? []
  const right = found?.customer_id ?? (others.length === 0 ? only?.id : undefined)
  // Chosen before a page is shown, because the page would ask for the records of another customer.
  if (right !== undefined && right !== customer.value) return chooseCustomer(right)
  service.value = shown
  return found
}

/** Works for another customer from now on. */
export async function chooseCustomer(id: string): Promise<Session | undefined> {
  customer.value = id
  localStorage.setItem('customer', id)
  return readSession()
}

/** The session has ended: the sign-in is shown, with the reason. */
export function forgetSession(reason = ENDED): void {
  if (service.value?.session === undefined) return
  signInReason.value = reason
  const { session: _, ...rest } = service.value
  service.value = rest
}
