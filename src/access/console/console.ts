import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import { originOfLoop } from '../../contract/actor.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Database } from '../../db/database.ts'
import type { Authenticate } from '../../http/authenticate.ts'
import type { OwnMachine } from '../../http/own-machine.ts'
import type { Scope } from '../../contract/scopes.ts'
import { createOperator, listOperators, makeLink, recordOperatorChange } from '../operators/operators.ts'
import { findSession } from '../operators/sessions.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { Settings } from '../../settings.ts'
import { SessionCookie } from './cookie-header.ts'
import { consoleFiles } from './files.ts'
import { isBackground, isOfConsole, requireOwnPage } from './own-page.ts'
import { takeLock } from '../../db/locks.ts'

/**
 * The console: a page at `/console` for operators (docs/guides/console.md). Its requests to `/console/api/v2/...` are those
 * of the API, made with the access token of the operator whose session the cookie names. The browser sees neither the token
 * nor the session's secret.
 */

/** Prefix of the operators' routes. A sign-in answers the session's secret, which the console moves into a cookie. */
const OPERATORS = '/v2/operators/'
const ACCESS_TOKENS = `${OPERATORS}access-tokens`
/** The customer that a request is for: an operator of the platform chooses it. */
const CUSTOMER_HEADER = 'bursar-customer'
/** A new access token is taken this long before the last one expires. */
const RENEW_MS = 30_000
/** Most access tokens in memory. The least recently used one is dropped. */
const TOKENS_MAX = 1_000
/** After this time without a person's use, the page's own refreshes take no further access token. */
const IDLE_MS = 3_600_000
/** Customers that an operator of the platform can choose from. */
const CUSTOMERS_MAX = 500
/** The operator of a sandbox's demo customer, whom the console signs in without a link. */
const DEMO_OPERATOR = 'Demo console'

export interface ConsoleOptions {
  db: Database
  macs: RowMacs
  settings: Settings
  baseUrl: string
  limitAddress: onRequestHookHandler
  ownMachine: OwnMachine
  /** The customer whom this request may sign in to without a proof: the demo's. Undefined where it needs a proof. */
  demoOf: (request: FastifyRequest) => Promise<string | undefined>
  /** Empties the sandbox and starts the service again; undefined where the console may not. */
  beginAnew?: (() => Promise<void>) | undefined
}

interface Taken {
  token: string
  scopes: string[]
  customerId: string
  /** When another token takes its place, in milliseconds since 1970. */
  until: number
  /** When a person last used the page. */
  usedAt: number
}

/** Answers of the sign-in, as far as the console reads them. */
interface AnswerOfToken {
  access_token: string
  expires_in: number
  scope: string
  customer_id: string
}

/** The sessions of the console: from the cookie to an access token. */
class Sessions {
  readonly #app: FastifyInstance
  readonly #baseUrl: string
  readonly cookie: SessionCookie
  readonly #taken = new LRUCache<string, Taken>({ max: TOKENS_MAX })

  constructor(app: FastifyInstance, baseUrl: string) {
    this.#app = app
    this.#baseUrl = baseUrl
    this.cookie = new SessionCookie(baseUrl)
  }

  /** Gives a request of the console its access token. Throws 401 without an open session, 403 for a forged request. */
  async authorize(request: FastifyRequest): Promise<void> {
    requireOwnPage(request, this.#baseUrl)
    const { token } = await this.take(request)
    request.headers.authorization = `Bearer ${token}`
  }

  /** Returns the session's access token. `anew` takes another one, with the rights that the operator has now. */
  async take(request: FastifyRequest, { customerId = chosenIn(request), anew = false } = {}): Promise<Taken> {
    const secret = this.cookie.secretIn(request)
    if (secret === undefined) throw signedOut('sign in to the console')
    const key = hash('sha256', `${secret} ${customerId ?? ''}`, 'base64')
    const now = Date.now()
    const known = this.#taken.get(key)
    const usedAt = known !== undefined && isBackground(request) ? known.usedAt : now
    if (known !== undefined) known.usedAt = usedAt
    if (!anew && known !== undefined && known.until > now) return known
    if (now - usedAt > IDLE_MS) throw signedOut('nobody used the console for an hour; sign in again')
    const payload = { session_secret: secret, ...(customerId !== undefined && { customer_id: customerId }) }
    const answer = await this.post<AnswerOfToken>(request, 'access-tokens', payload)
    const { access_token, expires_in, scope, customer_id } = answer
    const taken = {
      token: access_token,
      scopes: scope.split(' '),
      customerId: customer_id,
      until: now + expires_in * 1000 - RENEW_MS,
      usedAt,
    }
    this.#taken.set(key, taken)
    return taken
  }

  /** Posts to a route of the operators, for the client of this request. Throws the refusal as the page gets it. */
  async post<Answer>({ ip }: FastifyRequest, route: string, payload: object): Promise<Answer> {
    const url = `${OPERATORS}${route}`
    const answer = await this.#app.inject({ method: 'POST', url, remoteAddress: ip, payload })
    if (answer.statusCode === 200) return answer.json<Answer>()
    throw refusalOf(answer.statusCode, answer.json<{ detail: string }>().detail)
  }
}

/** The customer that the page works for; undefined for an operator of one customer. */
function chosenIn({ headers }: FastifyRequest): string | undefined {
  const chosen = headers[CUSTOMER_HEADER]
  return typeof chosen === 'string' ? chosen : undefined
}

const signedOut = (detail: string) => problem.unauthorized(detail, 'Bearer realm="bursar console"')

/** The refusal of an access token, as the console's page gets it. */
function refusalOf(status: number, detail: string) {
  if (status === 401) return signedOut(detail)
  if (status === 403) return problem.forbidden(detail)
  if (status === 429) return problem.tooManyRequests(detail, 1)
  return status < 500 ? problem.badRequest(detail) : problem.unavailable(detail)
}

/**
 * Authenticates requests of the console with the access token of their session, and all others as before. Call it before
 * the routes of operators are added.
 */
export function acceptConsole(
  app: FastifyInstance,
  authenticate: (scopes: readonly Scope[]) => Authenticate,
  options: ConsoleOptions,
): (scopes: readonly Scope[]) => Authenticate {
  const { baseUrl, ownMachine } = options
  const sessions = new Sessions(app, baseUrl)
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith(OPERATORS)) return
    route.onRequest = [guardSignIn(baseUrl), ...[route.onRequest ?? []].flat()]
    route.preValidation = [addSecret(sessions.cookie), ...[route.preValidation ?? []].flat()]
    route.preSerialization = [keepSecret(sessions.cookie), ...[route.preSerialization ?? []].flat()]
  })
  addSessionRoutes(app, sessions, options)
  // Where the API reference is served, `/` leads to the reference.
  if (!options.settings.docs)
    app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('./console/'))
  consoleFiles(app, `${new URL(baseUrl).pathname.replace(/\/$/, '')}/`, ownMachine)
  return (scopes) => {
    const withToken = authenticate(scopes)
    return (request) =>
      isOfConsole(request) ? sessions.authorize(request).then(() => withToken(request)) : withToken(request)
  }
}

/** Refuses forged requests to sign in or out. The page needs no access token, so it gets none. */
const guardSignIn =
  (baseUrl: string): onRequestHookHandler =>
  (request, _reply, done) => {
    if (isOfConsole(request)) {
      requireOwnPage(request, baseUrl)
      if (request.routeOptions.url === ACCESS_TOKENS)
        throw problem.forbidden('the console needs no access token')
    }
    done()
  }

/** Routes whose body needs the session's secret. The page does not know the secret, so `addSecret` reads the cookie. */
const NEED_SECRET: ReadonlySet<string> = new Set(['sign-out', 'passkeys', 'passkeys/options'])

const addSecret =
  (cookie: SessionCookie) =>
  async (request: FastifyRequest): Promise<void> => {
    if (request.method !== 'POST' || !isOfConsole(request)) return
    if (!NEED_SECRET.has(request.routeOptions.url!.slice(OPERATORS.length))) return
    const secret = cookie.secretIn(request)
    if (secret === undefined) throw signedOut('sign in to the console')
    request.body = { ...(request.body as object | undefined), session_secret: secret }
  }

/** Moves the secret of an opened session from the answer to the cookie, and removes the cookie with the session. */
const keepSecret =
  (cookie: SessionCookie) =>
  async (request: FastifyRequest, reply: FastifyReply, answer: unknown): Promise<unknown> => {
    if (!isOfConsole(request) || reply.statusCode !== 200) return answer
    if (request.routeOptions.url === `${OPERATORS}sign-out`) cookie.set(request, reply, undefined)
    const { session_secret, ...rest } = answer as { session_secret?: string }
    if (session_secret === undefined) return answer
    cookie.set(request, reply, session_secret)
    return rest
  }

/** Adds the console's own routes: who is signed in, and the sign-in of a sandbox's demo. */
function addSessionRoutes(app: FastifyInstance, sessions: Sessions, options: ConsoleOptions): void {
  const { db, macs, settings, baseUrl, limitAddress, demoOf, beginAnew } = options
  const route = {
    schema: { hide: true },
    config: { counts: 'token request' },
    onRequest: limitAddress,
  } as const

  app.get('/console/session', route, async (request) => {
    requireOwnPage(request, baseUrl)
    const isDemo = (await demoOf(request)) !== undefined
    const shown = {
      mode: settings.mode,
      demo: isDemo,
      begins_anew: isDemo && beginAnew !== undefined,
      openid: settings.openidIssuer !== undefined,
      docs: settings.docs,
    }
    const session = await openSessionOf(request, sessions, db)
    return { ...shown, ...(session !== undefined && { session }) }
  })

  app.post('/console/session/demo', route, async (request, reply) => {
    requireOwnPage(request, baseUrl)
    const customerId = await demoOf(request)
    if (customerId === undefined)
      throw problem.forbidden(
        'only a sandbox that listens on this machine alone signs in without a link, at the address that its start printed: npm start, or bursar console link',
      )
    const link = await linkOfDemo(db, macs, customerId)
    const { session_secret } = await sessions.post<{ session_secret: string }>(request, 'sign-in/link', {
      link,
    })
    sessions.cookie.set(request, reply, session_secret)
    return {}
  })

  if (beginAnew === undefined) return
  app.post('/console/sandbox/reset', route, async (request, reply) => {
    requireOwnPage(request, baseUrl)
    const { scopes } = await sessions.take(request)
    const isDemo = (await demoOf(request)) !== undefined
    if (!isDemo || !scopes.includes('operators:write_operator'))
      throw problem.forbidden(
        'only an ADMIN at the machine of a sandbox begins it anew: bursar sandbox reset',
      )
    // The service stops only after it has sent this answer.
    await beginAnew()
    return reply.code(202).send({})
  })
}

/** Makes a one-time link of the demo's operator, whom the first sign-in creates. Throws 403 for a disabled operator. */
const linkOfDemo = (db: Database, macs: RowMacs, customerId: string): Promise<string> =>
  transaction(db, async (tx) => {
    await takeLock(tx, 'demoConsole')
    const origin = originOfLoop('console')
    const isIts = (operator: { name: string; customer_id: string | null }) =>
      operator.name === DEMO_OPERATOR && operator.customer_id === customerId
    let operator = (await listOperators(tx)).find(isIts)
    if (operator?.disabled_at != null) throw problem.forbidden('the operator of the demo is disabled')
    if (operator === undefined) {
      operator = await createOperator(tx, macs, { name: DEMO_OPERATOR, role: 'ADMIN', customerId })
      const after = { role: operator.role, customer_id: customerId }
      await recordOperatorChange(tx, operator, 'operator.create', { origin, changes: { after } })
    }
    await recordOperatorChange(tx, operator, 'operator.link', { origin })
    return (await makeLink(tx, macs, operator.id)).secret
  })

/** Who is signed in, for the page; undefined without an open session. */
async function openSessionOf(
  request: FastifyRequest,
  sessions: Sessions,
  db: Database,
): Promise<object | undefined> {
  const secret = sessions.cookie.secretIn(request)
  const found = secret === undefined ? undefined : await transaction(db, (tx) => findSession(tx, secret))
  if (!found?.is_open) return undefined
  const operator = (await listOperators(db)).find(({ id }) => id === found.operator_id)
  if (operator === undefined || operator.disabled_at !== null) return undefined
  const { id, name, role, customer_id } = operator
  const customers = await customersOf(db, customer_id)
  const customerId = customer_id ?? chosenIn(request)
  // An operator of the platform has no access token before it has chosen a customer.
  const isKnown = customers.some((customer) => customer.id === customerId)
  const taken = isKnown ? await sessions.take(request, { customerId, anew: true }) : undefined
  return {
    operator: { id, name, role },
    expires_at: found.expires_at,
    customers,
    ...(taken !== undefined && { customer_id: taken.customerId, scopes: taken.scopes }),
  }
}

/** The customers that an operator may act for, oldest first. */
async function customersOf(db: Database, bound: string | null): Promise<{ id: string; name: string }[]> {
  const { rows } = await db.query<{ id: string; name: string }>(
    'select id, name from customers where $1::uuid is null or id = $1 order by id limit $2',
    [bound, CUSTOMERS_MAX],
  )
  return rows
}
