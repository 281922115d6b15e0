import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { acceptConsole } from '../access/console/console.ts'
import { rewriteConsole } from '../access/console/own-page.ts'
import { signInRoutes } from '../access/operators/routes.ts'
import { accessTokens, type AccessTokens } from '../access/tokens/access-tokens.ts'
import { ExternalIssuer } from '../access/tokens/external-issuer.ts'
import { listApiClients } from '../access/tokens/api-clients.ts'
import { ClientStanding } from '../access/tokens/client-standing.ts'
import { oauthRoutes } from '../access/tokens/routes.ts'
import { openSigningKeys, type SigningKeys } from '../access/tokens/signing-keys.ts'
import type { Database } from '../db/database.ts'
import { Policies } from '../governance/policy/policy.ts'
import { authenticator } from '../http/authenticate.ts'
import { docsPage } from '../http/docs-page.ts'
import { errorRoutes } from '../http/errors.ts'
import { FailNext } from '../http/fail-next.ts'
import { mount, type Guards, type Perform } from '../http/mount.ts'
import { OneByOneLimit } from '../http/one-by-one.ts'
import { openApi } from '../http/openapi.ts'
import { OwnMachine } from '../http/own-machine.ts'
import { rateLimitOfAddress, withRateLimit } from '../http/rate-limit.ts'
import type { Requests } from '../http/requests.ts'
import { createServer } from '../http/server.ts'
import { Shares } from '../http/shares.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
import { streamEvents } from '../resources/events/stream-events.ts'
import { documentEvents } from '../resources/webhooks/document-events.ts'
import { healthRoutes } from '../upkeep/health/routes.ts'
import type { AppOptions } from './app-options.ts'
import { OPERATIONS, OPERATOR_OPERATIONS } from './app.ts'
import { performWith } from './perform.ts'
import { recordRefusals } from './refusals.ts'
import { limitsOfRequests } from './request-limits.ts'

/** Most lists of a customer under way, each counted until the customer has read the answer. An answer may take 1 MiB. */
const LISTS_MAX = 16
/**
 * Most pages of a customer under way that have large records under two names each. A page may take 8 MiB: 1,000
 * orchestrations with the longest metadata.
 */
const COPIED_MAX = 1

/**
 * Builds the HTTP service, the same for production, tests and benchmarks. The caller listens and closes. Throws when the
 * signing keys cannot be read.
 */
export async function buildApp(options: AppOptions): Promise<FastifyInstance & { requests: Requests }> {
  const { db, settings, baseUrl, exampleRecords = async () => undefined } = options
  const macs = rowMacsOf(options)
  const { app, requests } = createServer({
    ...options,
    rewriteUrl: settings.console ? rewriteConsole : undefined,
  })
  errorRoutes(app, { baseUrl, docs: settings.docs })
  recordRefusals(app, options)
  const { keys, tokens, standing } = await openAuthentication(app, macs, options)
  const document = await openApi(app, {
    baseUrl,
    externalIssuer: settings.oauthIssuer,
    exampleRecords,
    documented: documentEvents(),
  })
  await app.register(healthRoutes, { db: options.health ?? db, requests })
  const rate = { perSecond: settings.rateLimitPerSecond, burst: settings.rateLimitBurst }
  const limitAddress = rateLimitOfAddress(rate)
  const ownMachine = new OwnMachine(settings, options.masterKeys.current.derive('ownMachine'))
  /** The customer whom this request may act for without credentials; undefined where it needs them. */
  const demoOf = async (request: FastifyRequest) =>
    ownMachine.sent(request) ? (await exampleRecords())?.customer_id : undefined
  const ofToken = authenticator(tokens, standing)
  const authenticate = settings.console
    ? acceptConsole(app, ofToken, {
        ...{ db, macs, settings, baseUrl, limitAddress, ownMachine, demoOf },
        beginAnew: options.beginAnew,
      })
    : ofToken
  const rateLimit = withRateLimit(authenticate, limitsOfRequests(settings))
  if (settings.oauthIssuer === undefined)
    await app.register(oauthRoutes, {
      db,
      keys,
      tokens,
      baseUrl,
      failuresPerMinute: settings.tokenFailuresPerMinute,
      macs,
      requireRateOfToken: rateLimit.requireRateOfToken,
    })
  const policies = new Policies(options.masterKeys, { sandbox: settings.mode === 'sandbox' })
  signInRoutes(app, {
    ...{ db, tokens, settings, rateLimit, limitAddress, macs, baseUrl, policies },
    masterKeys: options.masterKeys,
  })
  const perform = performWith(options, policies, macs)
  mountOperations(app, { rateLimit, limitAddress, requests, standing }, perform, options)
  streamEvents(app, {
    db: options.background ?? db,
    log: options.log,
    requireScope: rateLimit.requireScope,
    standing,
    isStopping: () => requests.draining,
  })
  if (settings.docs)
    docsPage(app, {
      baseUrl,
      document,
      sandbox: settings.mode === 'sandbox',
      ownMachine,
      ...(settings.mode === 'sandbox' &&
        settings.oauthIssuer === undefined && {
          demoToken: async (request) => tokenOfFirstClient(db, tokens, await demoOf(request)),
        }),
    })
  return Object.assign(app, { requests })
}

function mountOperations(
  app: FastifyInstance,
  guards: Pick<Guards, 'rateLimit' | 'limitAddress' | 'requests' | 'standing'>,
  perform: Perform,
  { settings: { mode }, baseUrl }: AppOptions,
): void {
  const isSandbox = mode === 'sandbox'
  const allGuards = {
    ...guards,
    turns: { lists: new Shares(LISTS_MAX), copied: new Shares(COPIED_MAX) },
    oneByOne: new OneByOneLimit(),
    failNext: isSandbox ? new FailNext() : undefined,
  }
  for (const operation of [...OPERATIONS, ...OPERATOR_OPERATIONS])
    if (isSandbox || operation.sandboxOnly !== true) mount(app, allGuards, perform, operation, baseUrl)
}

/** Issues a token for the oldest client of a customer that is not disabled; undefined without customer or client. */
async function tokenOfFirstClient(
  db: Database,
  tokens: AccessTokens,
  customerId: string | undefined,
): Promise<string | undefined> {
  if (customerId === undefined) return undefined
  const client = (await listApiClients(db, customerId)).find(({ disabled_at }) => disabled_at === null)
  if (client === undefined) return undefined
  const { client_id: clientId, scopes } = client
  return (await tokens.issue({ customerId, clientId, scopes })).token
}

/** Opens the signing keys, the access tokens and the standing of the API clients. They stop when the app closes. */
async function openAuthentication(
  app: FastifyInstance,
  macs: RowMacs,
  { db, background = db, settings, masterKeys, baseUrl, log }: AppOptions,
): Promise<{ keys: SigningKeys; tokens: AccessTokens; standing: ClientStanding }> {
  const keys = await openSigningKeys(db, masterKeys, (err) =>
    log.error({ err }, 'the signing keys could not be read again; the keys read before stay in use'),
  )
  app.addHook('onClose', async () => keys.close())
  const tokens = accessTokens({
    db,
    keys,
    baseUrl,
    ttlSeconds: settings.tokenTtlSeconds,
    externalIssuer:
      settings.oauthIssuer === undefined
        ? undefined
        : new ExternalIssuer(settings.oauthIssuer, baseUrl, settings),
  })
  const standing = await ClientStanding.start(background, macs, log)
  app.addHook('onClose', () => standing.stop())
  return { keys, tokens, standing }
}

/** The check of rows with MACs. It logs and counts the rows that it refuses. */
const rowMacsOf = ({ masterKeys, log, onForged }: AppOptions): RowMacs =>
  new RowMacs(masterKeys, tellForged(log, onForged))

/** Logs and counts each row that is refused. */
export const tellForged =
  (log: Logger, count: AppOptions['onForged']) =>
  (table: string, id: string, objection: string): void => {
    count?.(table)
    log.error({ table, id }, `a row was changed or invented in the database, and is refused: ${objection}`)
  }
