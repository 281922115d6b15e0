import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { address, open } from './address.ts'
import { downSince, slow } from './connection.ts'
import { developer, showCalls } from './developer.ts'
import { isReading } from './load.ts'
import { Banner, Link, Time } from './parts.tsx'
import { listedPages, pageAt } from './pages.tsx'
import { SearchBox } from './pages/search.tsx'
import { SignIn, signOut } from './pages/sign-in.tsx'
import { chooseCustomer, customer, service, session } from './session.ts'

/** The console: the bar on top, the list of pages, and the page that the address names. */
export function App() {
  const shown = service.value
  const path = address.value.path
  if (shown === undefined) return <Unreachable />
  if (session.value === undefined || path === 'sign-in' || path === 'sign-in/openid') return <SignIn />
  if (session.value.customer_id === undefined) return <ChooseCustomer />
  const { page: Page, parameters } = pageAt(path)
  return (
    <>
      <a class="skip" href="#main" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the page
      </a>
      <header class="top">
        <Link to="" class="brand">
          Bursar
        </Link>
        <Banner />
        <SearchBox pages={listedPages()} />
        <Who />
      </header>
      <Pages path={path} />
      <Down />
      {/* While the connection is down, the page may be out of date and its actions cannot succeed. */}
      <main id="main" tabIndex={-1} aria-busy={isReading} inert={downSince.value !== undefined}>
        <Page key={`${customer.value} ${path}`} {...parameters} />
      </main>
    </>
  )
}

/** Says that the service does not answer, and since when; or that it is slow. */
const Down = () =>
  downSince.value === undefined ? (
    slow.value > 0 && (
      <p class="failure down" role="status">
        The service has not answered for some seconds. The page still waits.
      </p>
    )
  ) : (
    <p class="failure down" role="alert">
      No connection to the service since <Time at={downSince.value} />. The page shows what was known then,
      and tries again by itself.
    </p>
  )

/** The list of pages. A narrow screen shows it when its button is pressed. */
function Pages({ path }: { path: string }) {
  const isOpen = useSignal(false)
  useEffect(() => void (isOpen.value = false), [path])
  const isCurrent = ({ to }: { to: string }) => to === path || (to !== '' && path.startsWith(`${to}/`))
  const groups = listedPages()
  const current = groups.flatMap(({ pages }) => pages).find(isCurrent)
  return (
    <nav class="pages" aria-label="Pages">
      <button
        type="button"
        aria-expanded={isOpen.value}
        aria-controls="groups"
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        <span aria-hidden="true">☰</span> {current?.name ?? 'Pages'}
      </button>
      <div id="groups" class={isOpen.value ? 'open' : undefined}>
        {groups.map(({ group, pages }) => (
          <div key={group} role="group" aria-label={group}>
            <span aria-hidden="true">{group}</span>
            {pages.map((page) => (
              <Link key={page.to} to={page.to} current={isCurrent(page)}>
                {page.name}
              </Link>
            ))}
          </div>
        ))}
      </div>
    </nav>
  )
}

function Who() {
  const { operator, customers } = session.value!
  return (
    <div class="who">
      {customers.length > 1 ? (
        <select
          aria-label="Customer"
          value={customer.value}
          onChange={({ currentTarget }) => {
            open('')
            void chooseCustomer(currentTarget.value)
          }}
        >
          {customers.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      ) : (
        <span class="customer">{customers[0]?.name}</span>
      )}
      <label class="developer" title="Shows each call of the API as curl">
        <input
          type="checkbox"
          role="switch"
          checked={developer.value}
          onChange={({ currentTarget }) => showCalls(currentTarget.checked)}
        />{' '}
        Developer
      </label>
      <Link to="sign-in/own" class="operator" title="Your sign-in: passkeys and sessions">
        {operator.name} <small>{operator.role}</small>
      </Link>
      <button type="button" class="plain" onClick={() => void signOut()}>
        Sign out
      </button>
    </div>
  )
}

function ChooseCustomer() {
  const { customers } = session.value!
  return (
    <main class="card" id="main">
      <Banner />
      <h1>Whose records?</h1>
      {customers.length === 0 && (
        <p>There is no customer yet. The command bursar customer create makes one.</p>
      )}
      <ul class="plain">
        {customers.map(({ id, name }) => (
          <li key={id}>
            <button type="button" onClick={() => void chooseCustomer(id)}>
              {name}
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="plain" onClick={() => void signOut()}>
        Sign out
      </button>
    </main>
  )
}

const Unreachable = () => (
  <main class="card" id="main">
    <h1>The service does not answer</h1>
    <button type="button" onClick={() => location.reload()}>
      Try again
    </button>
  </main>
)
