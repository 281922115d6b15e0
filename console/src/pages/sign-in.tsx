import { useEffect } from 'preact/hooks'
import { useWork } from '../action.tsx'
import { address, API, open, ROOT } from '../address.ts'
import { bodyOf, send } from '../api.ts'
import { ask } from '../connection.ts'
import { forgetSession, headersOf, readSession, service, signInReason } from '../session.ts'
import { Banner, Failure } from '../parts.tsx'

/** Signing in and out. The service keeps the session's secret in a cookie that no script can read. */

/** The part of a link after `#`, which browsers send to no server. It is removed from the address at once. */
function secretInAddress(): string | undefined {
  const secret = location.hash.slice(1)
  if (!secret.startsWith('bursar_link_')) return undefined
  history.replaceState(null, '', location.pathname)
  return secret
}

async function post<T>(path: string, body: object): Promise<T> {
  const answer = await ask(path, {
    method: 'POST',
    headers: { ...headersOf(false), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return bodyOf<T>(answer)
}

const operators = (path: string) => `${API}/v2/operators/${path}`

/** Where the page was before the sign-in, so that it returns there. */
const RETURN_TO = 'return to'
/** Set by a sign-out in this tab. */
const SIGNED_OUT = 'signed out'
const ATTEMPT = 'attempt'

async function signedIn(): Promise<void> {
  // Another operator may have been signed in.
  forgetSession('')
  signInReason.value = ''
  const to = sessionStorage.getItem(RETURN_TO) ?? ''
  sessionStorage.removeItem(RETURN_TO)
  sessionStorage.removeItem(SIGNED_OUT)
  // The address changes first: once there is a session, the sign-in's address would show the sign-in again.
  open(to, { replace: true })
  await readSession()
}

async function signInWithLink(link: string): Promise<void> {
  await post(operators('sign-in/link'), { link })
  await signedIn()
}

async function signInToDemo(): Promise<void> {
  await post(`${ROOT}session/demo`, {})
  await signedIn()
}

async function signInWithPasskey(): Promise<void> {
  const options = await post<PublicKeyCredentialRequestOptionsJSON>(operators('sign-in/passkey/options'), {})
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  await post(operators('sign-in/passkey'), { response: credential.toJSON() as object })
  await signedIn()
}

async function startOpenId(): Promise<void> {
  const { authorization_url, attempt } = await post<{ authorization_url: string; attempt: string }>(
    operators('sign-in/openid/start'),
    {},
  )
  sessionStorage.setItem(ATTEMPT, attempt)
  location.assign(authorization_url)
}

async function endOpenId(): Promise<void> {
  const attempt = sessionStorage.getItem(ATTEMPT)
  const query = location.search.slice(1)
  history.replaceState(null, '', location.pathname)
  if (attempt === null) throw new Error('The sign-in did not begin in this tab. Begin again.')
  sessionStorage.removeItem(ATTEMPT)
  await post(operators('sign-in/openid'), { attempt, query })
  await signedIn()
}

/** Ends the session here and at the service. */
export async function signOut(): Promise<void> {
  await send({ method: 'POST', path: '/v2/operators/sign-out', body: {} }).catch(() => undefined)
  sessionStorage.setItem(SIGNED_OUT, 'yes')
  forgetSession('')
}

/** The sign-in: by the link or the OpenID answer in the address, else by a way that the operator chooses. */
export function SignIn() {
  const { isRunning, error, run } = useWork()
  useEffect(() => {
    document.title = 'Sign in - Bursar'
    const { path, query } = address.peek()
    const secret = secretInAddress()
    if (secret !== undefined) return run(() => signInWithLink(secret))
    if (path === 'sign-in/openid') return run(endOpenId)
    // A sandbox on this machine needs no question. After a sign-out, it asks.
    const signedOutHere = sessionStorage.getItem(SIGNED_OUT) !== null
    if (path !== 'sign-in' && !signedOutHere)
      sessionStorage.setItem(RETURN_TO, path + (query.size > 0 ? `?${query.toString()}` : ''))
    if (service.peek()?.demo && !signedOutHere && signInReason.peek() === '') run(signInToDemo)
  }, [])
  const { mode, demo, openid } = service.value!
  const way = (name: string, work: () => Promise<void>, kind?: 'main') => (
    <button type="button" class={kind} disabled={isRunning.value} onClick={() => run(work)}>
      {name}
    </button>
  )
  return (
    <main class="card" id="main">
      <Banner />
      <h1>Sign in to Bursar</h1>
      {signInReason.value !== '' && <p>{signInReason.value}</p>}
      <Failure of={error.value} />
      {demo && way("Open the demo's records", signInToDemo, 'main')}
      {openid && way('Sign in with your organisation', startOpenId, 'main')}
      {'credentials' in navigator && way('Sign in with a passkey', signInWithPasskey)}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const { value: link } = event.currentTarget.elements.namedItem('link') as HTMLInputElement
          if (link.trim() !== '') run(() => signInWithLink(link.trim()))
        }}
      >
        <label>
          One-time link
          <input name="link" autocomplete="off" spellcheck={false} maxLength={2000} />
        </label>
        <button type="submit" disabled={isRunning.value}>
          Use the link
        </button>
      </form>
      {mode === 'sandbox' && !demo && (
        <p>On the machine of this sandbox, open the address of the console that its start printed.</p>
      )}
      <p class="quiet">
        The command <code>bursar console link</code> prints a link that works once.
      </p>
    </main>
  )
}
