import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { createHash } from 'node:crypto'
import { Type, type Static, type TObject } from 'typebox'
import type { Origin } from '../../contract/actor.ts'
import { Closed, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { scopesOfRole } from '../../contract/roles.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { Failures } from '../../http/failures.ts'
import type { AccessTokens } from '../tokens/access-tokens.ts'
import { isFrozenFor } from '../../money/records/freezes.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { Settings } from '../../settings.ts'
import { operatorToWire, SessionSecret, sessionToWire } from './fields.ts'
import {
  findLink,
  isGenuine,
  lockOperator,
  recordOperatorChange,
  useLink,
  type Operator,
  type ReliedOn,
} from './operators.ts'
import {
  endSession,
  findSession,
  openSession,
  touchSession,
  type Session,
  type SignInMethod,
} from './sessions.ts'

/**
 * Sign-in of operators (docs/reference/operators.md): a proof of identity opens a session, and the session takes access
 * tokens. Like the token endpoint, these routes are no operations: they read no access token.
 */

export interface SignInOptions {
  db: Database
  tokens: AccessTokens
  settings: Settings
  macs: RowMacs
  limitAddress: onRequestHookHandler
}

const PREFIX = '/v2/operators'
/** The largest body: the answer of an authenticator has up to 3 KiB. */
const BODY_BYTES_MAX = 16 * 1024

interface Opened {
  operator: Operator
  session: Session
  secret: string
}

/** What proves who signs in. Of `usedOnce`, a link's secret or an answered challenge, the audit log has the digest from then on. */
type Proof = { operator: Operator | undefined; holds: boolean; usedOnce: string | undefined } & {
  restsOn?: ReliedOn
  passkeyId?: string
}

/** What every route of the sign-in needs. */
export class SignIn {
  readonly db: Database
  readonly tokens: AccessTokens
  readonly macs: RowMacs
  readonly mode: Settings['mode']
  readonly #app: FastifyInstance
  readonly #limitAddress: onRequestHookHandler
  readonly #failures: Failures

  constructor(app: FastifyInstance, { db, tokens, settings, macs, limitAddress }: SignInOptions) {
    this.#app = app
    this.db = db
    this.tokens = tokens
    this.macs = macs
    this.mode = settings.mode
    this.#limitAddress = limitAddress
    this.#failures = new Failures(settings.tokenFailuresPerMinute)
  }

  /** Adds a route: POST, a JSON body, no access token. Its secrets are in the body, because addresses are logged. */
  post<B extends TObject>(
    path: string,
    body: B,
    work: (body: Static<B>, request: FastifyRequest) => Promise<object>,
  ): void {
    this.#app.post(
      `${PREFIX}${path}`,
      {
        schema: { hide: true, body },
        bodyLimit: BODY_BYTES_MAX,
        config: { counts: 'token request' },
        onRequest: this.#limitAddress,
      },
      (request) => work(request.body as Static<B>, request),
    )
  }

  /**
   * Runs a sign-in in a transaction. `prove` returns the locked operator, whether its proof holds, and the row that it rests
   * on; undefined for an unknown link or passkey. Throws the 401 problem for a proof that does not hold or was used, and for
   * an operator that is disabled, or was changed or invented in the database. Throws the 429 problem after too many
   * failures.
   */
  async open(
    request: FastifyRequest,
    { method, refusal }: { method: SignInMethod; refusal: string },
    prove: (tx: Transaction) => Promise<Proof | undefined>,
  ): Promise<object> {
    const opened = await transaction(this.db, async (tx): Promise<Opened | undefined> => {
      const proved = await prove(tx)
      const operator = proved?.operator
      const proof = proved?.usedOnce && createHash('sha256').update(proved.usedOnce).digest('hex')
      const holds =
        proved?.holds === true &&
        operator?.disabled_at === null &&
        (await isGenuine(tx, this.macs, operator, proved.restsOn, proof))
      if (!holds) this.countFailure(request, method)
      if (operator === undefined) return undefined
      await recordOperatorChange(tx, operator, 'operator.sign_in', {
        origin: originOf(operator, request),
        outcome: holds ? 'DONE' : 'REFUSED',
        ...(holds && proof !== undefined && { changes: { after: { proof } } }),
      })
      return holds
        ? { operator, ...(await openSession(tx, this.macs, operator.id, method, proved.passkeyId)) }
        : undefined
    })
    if (opened === undefined) throw unauthorized(refusal)
    return answerOf(opened)
  }

  /** Throws the 429 problem when this address failed too often. */
  countFailure(request: FastifyRequest, name: string): void {
    const seconds = this.#failures.count(request.ip, `operator ${name}`)
    if (seconds > 0)
      throw problem.tooManyRequests('too many failed sign-ins from this address; try again later', seconds)
  }

  /** The open session with this secret and its operator, which is locked. Throws the 401 problem when it has ended. */
  async requireSession(
    tx: Transaction,
    secret: string,
    request: FastifyRequest,
  ): Promise<{ session: Session; operator: Operator }> {
    const found = await findSession(tx, secret)
    const operator = found && (await lockOperator(tx, found.operator_id))
    // Read again: the session may have ended before the operator was locked.
    const session = found && (await findSession(tx, secret))
    const isOpen = operator !== undefined && operator.disabled_at === null && session?.is_open === true
    if (
      !isOpen ||
      !(await isGenuine(tx, this.macs, operator, { table: 'operator_sessions', row: session }))
    ) {
      this.countFailure(request, 'session')
      throw unauthorized('there is no open session with this secret; sign in again')
    }
    return { session, operator }
  }
}

/** The origin of the changes that an operator makes by signing in or out: it has no access token. */
export const originOf = ({ id }: Operator, { id: request_id, ip }: FastifyRequest): Origin => ({
  actor: { type: 'OPERATOR', id },
  request_id,
  ip,
})

export const unauthorized = (detail: string) => problem.unauthorized(detail, 'Bearer realm="bursar"')

const answerOf = ({ operator, session, secret }: Opened) => ({
  operator: operatorToWire(operator),
  session: sessionToWire(session),
  session_secret: secret,
})

const LinkBody = Closed({
  link: Text(2_000, 'The link that bursar operator link printed, or the secret after its #.', 1),
})

export function addLinks(signIn: SignIn): void {
  const refusal =
    'the link is unknown, used or expired, or its operator is disabled; get another: bursar operator link'
  signIn.post('/sign-in/link', LinkBody, ({ link }, request) => {
    const secret = link.slice(link.indexOf('#') + 1)
    return signIn.open(request, { method: 'LINK', refusal }, async (tx) => {
      const row = await findLink(tx, signIn.macs, secret)
      const operator = row && (await lockOperator(tx, row.operator_id))
      const holds = operator?.disabled_at === null && (await useLink(tx, secret))
      return row && { operator, holds, restsOn: { table: 'operator_links', row }, usedOnce: secret }
    })
  })
}

const AccessTokenBody = Closed({
  session_secret: SessionSecret,
  customer_id: Type.Optional(Uuid('The customer that the token acts for.')),
})

const SignOutBody = Closed({ session_secret: SessionSecret })

/** Access tokens of a session, and its end. */
export function addAccessTokens(signIn: SignIn): void {
  signIn.post('/access-tokens', AccessTokenBody, async ({ session_secret, customer_id }, request) => {
    const grant = await transaction(signIn.db, async (tx) => {
      const { session, operator } = await signIn.requireSession(tx, session_secret, request)
      const customerId = await customerOf(tx, operator, customer_id)
      await touchSession(tx, session.id)
      return {
        operatorId: operator.id,
        sessionId: session.id,
        generation: operator.generation,
        customerId,
        scopes: scopesOfRole(operator.role, signIn.mode, operator.customer_id !== null),
        secondsLeft: session.seconds_left,
      }
    })
    const { token, ttlSeconds } = await signIn.tokens.issueToOperator(grant)
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: ttlSeconds,
      scope: grant.scopes.join(' '),
      customer_id: grant.customerId,
    }
  })

  signIn.post('/sign-out', SignOutBody, ({ session_secret }, request) =>
    transaction(signIn.db, async (tx) => {
      const { session, operator } = await signIn.requireSession(tx, session_secret, request)
      await endSession(tx, operator, session.id, originOf(operator, request))
      return {}
    }),
  )
}

/** The customer that an operator's token acts for. Throws a problem for a customer that it may not act for. */
async function customerOf(tx: Transaction, operator: Operator, asked: string | undefined) {
  const bound = operator.customer_id
  // The same answer whether or not the other customer exists.
  if (bound !== null && asked !== undefined && asked !== bound)
    throw problem.forbidden(`this operator may act for customer ${bound} only`)
  const customerId = bound ?? asked
  if (customerId === undefined)
    throw problem.badRequest('customer_id is required: this operator belongs to no customer', 'customer_id')
  const { rowCount } = await tx.query('select 1 from customers where id = $1', [customerId])
  if (rowCount === 0) throw problem.notFound('customer', customerId)
  if (await isFrozenFor(tx, { kind: 'CUSTOMER', customer_id: customerId }, 'DISABLED'))
    throw problem.forbidden(`customer ${customerId} is disabled`)
  return customerId
}
