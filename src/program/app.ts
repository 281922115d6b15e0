import Fastify, { LogController, type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { approve } from '../resources/approvals/approve.ts'
import { getApproval } from '../resources/approvals/get-approval.ts'
import { listApprovals } from '../resources/approvals/list-approvals.ts'
import { reject } from '../resources/approvals/reject.ts'
import { addAccountMembers } from '../resources/accounts/add-account-members.ts'
import { deleteCredentials } from '../resources/api-credentials/delete-credentials.ts'
import { listCredentials } from '../resources/api-credentials/list-credentials.ts'
import { rotateCredentials } from '../resources/api-credentials/rotate-credentials.ts'
import { createAccount } from '../resources/accounts/create-account.ts'
import { getAccount } from '../resources/accounts/get-account.ts'
import { listAccounts } from '../resources/accounts/list-accounts.ts'
import { removeAccountMember } from '../resources/accounts/remove-account-member.ts'
import { updateAccount } from '../resources/accounts/update-account.ts'
import { resendEvent } from '../resources/events/resend-event.ts'
import { listAssets } from '../resources/catalogue/list-assets.ts'
import { listNetworks } from '../resources/catalogue/list-networks.ts'
import { acceptConsole } from '../access/console/console.ts'
import { rewriteConsole } from '../access/console/own-page.ts'
import { asDatabase, CustomerPool } from '../db/customer-pool.ts'
import type { Database } from '../db/database.ts'
import { onlyNode, type Nodes } from '../db/nodes.ts'
import { createStablecoinConversion } from '../resources/conversions/create-stablecoin-conversion.ts'
import { getStablecoinConversion } from '../resources/conversions/get-stablecoin-conversion.ts'
import { listStablecoinConversions } from '../resources/conversions/list-stablecoin-conversions.ts'
import { healthRoutes } from '../upkeep/health/routes.ts'
import { authenticator } from '../http/authenticate.ts'
import { Connections } from '../http/connections.ts'
import { docsPage } from '../http/docs-page.ts'
import { OwnMachine } from '../http/own-machine.ts'
import { errorRoutes, refuseConnection, refuseOtherMethods, refuseUrl } from '../http/errors.ts'
import type { ExampleRecords } from '../contract/example-records.ts'
import { mount, type Perform } from '../http/mount.ts'
import { openApi } from '../http/openapi.ts'
import type { Context } from '../resources/context.ts'
import type { Operation, Request } from '../http/operation.ts'
import { rateLimitOfAddress, withRateLimit, type Limit, type Rate } from '../http/rate-limit.ts'
import { OneByOneLimit } from '../http/one-by-one.ts'
import { Requests, type RequestMeter } from '../http/requests.ts'
import { Shares } from '../http/shares.ts'
import { parseJson, serializerCompiler, validatorCompiler } from '../http/validation.ts'
import { addInstitutionMembers } from '../resources/identities/add-institution-members.ts'
import { createIdentity } from '../resources/identities/create-identity.ts'
import { getIdentity } from '../resources/identities/get-identity.ts'
import { listIdentities } from '../resources/identities/list-identities.ts'
import { removeInstitutionMember } from '../resources/identities/remove-institution-member.ts'
import { setIdentitySandboxStatus } from '../resources/identities/set-identity-sandbox-status.ts'
import { updateIdentity } from '../resources/identities/update-identity.ts'
import type { MasterKeys } from '../keys/master-keys.ts'
import type { Ledger } from '../money/movements/queue.ts'
import { listHistoricalCandles } from '../resources/markets/list-historical-candles.ts'
import { listHistoricalPrices } from '../resources/markets/list-historical-prices.ts'
import { listMarkets } from '../resources/markets/list-markets.ts'
import { listPrices } from '../resources/markets/list-prices.ts'
import type { Networks } from '../chains/network.ts'
import { listApiClients } from '../access/tokens/api-clients.ts'
import { accessTokens, type AccessTokens } from '../access/tokens/access-tokens.ts'
import { ClientStanding } from '../access/tokens/client-standing.ts'
import { oauthRoutes } from '../access/tokens/routes.ts'
import { openSigningKeys, type SigningKeys } from '../access/tokens/signing-keys.ts'
import { signInRoutes } from '../access/operators/routes.ts'
import { getEvent } from '../resources/events/get-event.ts'
import { listAuditLog } from '../resources/audit-log/list-audit-log.ts'
import { verifyAuditLog } from '../resources/audit-log/verify-audit-log.ts'
import { streamEvents } from '../resources/events/stream-events.ts'
import { listEvents } from '../resources/events/list-events.ts'
import { createOrchestrationRule } from '../resources/orchestrations/create-orchestration-rule.ts'
import { createOrchestration } from '../resources/orchestrations/create-orchestration.ts'
import { deleteOrchestrationRule } from '../resources/orchestrations/delete-orchestration-rule.ts'
import { getOrchestration } from '../resources/orchestrations/get-orchestration.ts'
import { listOrchestrationRules } from '../resources/orchestrations/list-orchestration-rules.ts'
import { listOrchestrations } from '../resources/orchestrations/list-orchestrations.ts'
import { getPolicy } from '../resources/policy/get-policy.ts'
import { listLimitUtilizations } from '../resources/policy/list-limit-utilizations.ts'
import { listPolicyVersions } from '../resources/policy/list-policy-versions.ts'
import { putPolicy } from '../resources/policy/put-policy.ts'
import { createProfile } from '../resources/profiles/create-profile.ts'
import { getBalance } from '../resources/profiles/get-balance.ts'
import { getProfile } from '../resources/profiles/get-profile.ts'
import { listBalances } from '../resources/profiles/list-balances.ts'
import { listEntries } from '../resources/profiles/list-entries.ts'
import { deactivateProfile } from '../resources/profiles/deactivate-profile.ts'
import { updateProfile } from '../resources/profiles/update-profile.ts'
import { listProfiles } from '../resources/profiles/list-profiles.ts'
import { depositToProfile } from '../resources/sandbox/deposit-to-profile.ts'
import { initiateFiatDeposit } from '../resources/sandbox/initiate-fiat-deposit.ts'
import {
  CustomerLimits,
  requestDefaults,
  type CustomerLimit,
  type RequestLimit,
} from '../money/records/customer-limits.ts'
import { Policies } from '../governance/policy/policy.ts'
import { RowMacs } from '../money/records/row-macs.ts'
import type { Problem } from '../contract/problems.ts'
import { Refusals } from './refusals.ts'
import { WebhookSecrets } from '../money/records/webhook-secrets.ts'
import { searchRecords } from '../resources/search/search-records.ts'
import type { Settings } from '../settings.ts'
import { getRewardsStatement } from '../resources/statements/get-rewards-statement.ts'
import { getStatementExplanation } from '../resources/statements/get-statement-explanation.ts'
import { listPayments } from '../resources/statements/list-payments.ts'
import { listRewardsRates } from '../resources/statements/list-rewards-rates.ts'
import { listRewardsStatements } from '../resources/statements/list-rewards-statements.ts'
import { listStatements } from '../resources/statements/list-statements.ts'
import { createCryptoWithdrawal } from '../resources/transfers/create-crypto-withdrawal.ts'
import { createCryptoWithdrawals } from '../resources/transfers/create-crypto-withdrawals.ts'
import { createDepositAddress } from '../resources/deposit-addresses/create-deposit-address.ts'
import { listDestinationAddresses } from '../resources/destination-addresses/list-destination-addresses.ts'
import { putDestinationAddress } from '../resources/destination-addresses/put-destination-address.ts'
import { createFiatAccount } from '../resources/fiat-accounts/create-fiat-account.ts'
import { deleteFiatAccount } from '../resources/fiat-accounts/delete-fiat-account.ts'
import { getFiatAccount } from '../resources/fiat-accounts/get-fiat-account.ts'
import { listFiatAccounts } from '../resources/fiat-accounts/list-fiat-accounts.ts'
import { updateFiatAccount } from '../resources/fiat-accounts/update-fiat-account.ts'
import { createFiatDepositInstructions } from '../resources/fiat-deposit-instructions/create-fiat-deposit-instructions.ts'
import { createFiatWithdrawal } from '../resources/transfers/create-fiat-withdrawal.ts'
import { createInternalTransfer } from '../resources/transfers/create-internal-transfer.ts'
import { createPaxosTransfer } from '../resources/transfers/create-paxos-transfer.ts'
import { cancelTransfer } from '../resources/transfers/cancel-transfer.ts'
import { getTransfer } from '../resources/transfers/get-transfer.ts'
import { listBalanceHistory } from '../resources/profiles/list-balance-history.ts'
import { listVolumes } from '../resources/transfers/list-volumes.ts'
import { verifyTransfer } from '../resources/transfers/verify-transfer.ts'
import { getTransferHistory } from '../resources/transfers/get-transfer-history.ts'
import { getFiatDepositInstructions } from '../resources/fiat-deposit-instructions/get-fiat-deposit-instructions.ts'
import { listDepositAddresses } from '../resources/deposit-addresses/list-deposit-addresses.ts'
import { listFiatDepositInstructions } from '../resources/fiat-deposit-instructions/list-fiat-deposit-instructions.ts'
import { listTransfers } from '../resources/transfers/list-transfers.ts'
import { createWebhook } from '../resources/webhooks/create-webhook.ts'
import { deleteWebhook } from '../resources/webhooks/delete-webhook.ts'
import { documentEvents } from '../resources/webhooks/document-events.ts'
import { getWebhook } from '../resources/webhooks/get-webhook.ts'
import { listDeliveryAttempts } from '../resources/webhooks/list-delivery-attempts.ts'
import { listWebhookDeliveries } from '../resources/webhooks/list-webhook-deliveries.ts'
import { listWebhooks } from '../resources/webhooks/list-webhooks.ts'
import { recoverWebhook } from '../resources/webhooks/recover-webhook.ts'
import { rotateWebhookSecret } from '../resources/webhooks/rotate-webhook-secret.ts'
import { testWebhook } from '../resources/webhooks/test-webhook.ts'
import { updateWebhook } from '../resources/webhooks/update-webhook.ts'
import { quoteCryptoWithdrawalFee } from '../resources/transfers/quote-crypto-withdrawal-fee.ts'

/** Every operation, the six of the contract first. */
export const OPERATIONS: readonly Operation[] = [
  createCryptoWithdrawal,
  listOrchestrations,
  listStatements,
  initiateFiatDeposit,
  getAccount,
  listHistoricalPrices,
  createProfile,
  listProfiles,
  getProfile,
  updateProfile,
  deactivateProfile,
  listBalanceHistory,
  listBalances,
  getBalance,
  listEntries,
  depositToProfile,
  createIdentity,
  listIdentities,
  getIdentity,
  updateIdentity,
  addInstitutionMembers,
  removeInstitutionMember,
  setIdentitySandboxStatus,
  createAccount,
  listAccounts,
  updateAccount,
  addAccountMembers,
  removeAccountMember,
  getTransfer,
  getTransferHistory,
  verifyTransfer,
  listVolumes,
  searchRecords,
  listTransfers,
  cancelTransfer,
  createInternalTransfer,
  createPaxosTransfer,
  createStablecoinConversion,
  listStablecoinConversions,
  getStablecoinConversion,
  createDepositAddress,
  listDepositAddresses,
  createFiatDepositInstructions,
  listFiatDepositInstructions,
  getFiatDepositInstructions,
  createFiatAccount,
  listFiatAccounts,
  getFiatAccount,
  updateFiatAccount,
  createFiatWithdrawal,
  quoteCryptoWithdrawalFee,
  createOrchestrationRule,
  listOrchestrationRules,
  deleteOrchestrationRule,
  deleteFiatAccount,
  createOrchestration,
  getOrchestration,
  listMarkets,
  listPrices,
  listHistoricalCandles,
  listAssets,
  listNetworks,
  listPayments,
  listRewardsStatements,
  getRewardsStatement,
  getStatementExplanation,
  listRewardsRates,
  createCryptoWithdrawals,
  listCredentials,
  rotateCredentials,
  deleteCredentials,
  putDestinationAddress,
  listDestinationAddresses,
  listEvents,
  listAuditLog,
  verifyAuditLog,
  getEvent,
  createWebhook,
  listWebhooks,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  testWebhook,
  recoverWebhook,
  resendEvent,
  listWebhookDeliveries,
  listDeliveryAttempts,
  getPolicy,
  putPolicy,
  listPolicyVersions,
  listLimitUtilizations,
  listApprovals,
  getApproval,
  approve,
  reject,
]

export const BODY_LIMIT = 64 * 1024
/** Limit of the request line and the headers together. Two filters of 100 non-Latin `ref_ids` take 100 KiB. */
const HEADERS_BYTES_MAX = 128 * 1024
/** How often to look for connections that take too long to send a request. */
const CONNECTIONS_CHECK_MS = 1_000
/** Time limits for a client to send a whole request, and for its headers alone. */
const RECEIVE_MS_MAX = 20_000
const HEADERS_MS_MAX = 10_000
/** How long a connection may stall while its answer is written, on top of the time limit of a request. */
const STALLED_MS_MAX = 30_000

export interface AppOptions {
  db: Database
  /** Connections to the nodes that have the customers (default: `db` alone). */
  nodes?: Nodes
  ledger: Ledger
  networks: Networks
  settings: Settings
  masterKeys: MasterKeys
  baseUrl: string
  log: Logger
  /** Called for each request. */
  meter?: RequestMeter | undefined
  /** Called for each row of a table that is refused, since its MAC is missing or wrong. */
  onForged?: (table: string) => void
  /** Called for each request that a limit of its customer refuses. */
  onLimit?: (limit: CustomerLimit) => void
  /** Reads the demo's records for the examples of the API reference; undefined while there are none. */
  exampleRecords?: () => Promise<ExampleRecords | undefined>
  /** Connections for background work, which requests do not occupy (default: `db`). */
  background?: Database
  /** The same to the nodes that have the customers. */
  backgroundNodes?: Nodes
  /** A connection for health checks, which no request occupies (default: `db`). */
  health?: Database
  /** How often refused requests are written to the audit log (default: each second). */
  refusalsEveryMs?: number
  /** Stops the service, empties its sandbox and starts it again; undefined where the console has no button for that. */
  beginAnew?: (() => void) | undefined
}

/**
 * Builds the HTTP service, the same for production, tests and benchmarks. The caller listens and closes. Throws when the
 * signing keys cannot be read.
 */
export async function buildApp(options: AppOptions): Promise<FastifyInstance & { requests: Requests }> {
  const { db, nodes = onlyNode(db), settings, baseUrl, exampleRecords = async () => undefined } = options
  const macs = rowMacsOf(options)
  const { app, requests } = createServer(options)
  const routes: { method: string; url: string }[] = []
  app.addHook(
    'onRoute',
    ({ method, url }) => void routes.push(...[method].flat().map((each) => ({ method: each, url }))),
  )
  errorRoutes(app, { baseUrl, docs: settings.docs })
  recordRefusals(app, options)
  const { keys, tokens, standing } = await openAuthentication(app, options)
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
  const limits = await openLimits(app, options)
  const rateLimit = withRateLimit(authenticate, limitsOfRequests(limits, settings))
  if (settings.oauthIssuer === undefined)
    await app.register(oauthRoutes, {
      nodes,
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
  const perform = performWith(options, limits, policies, macs)
  const turns = { lists: new Shares(LISTS_MAX), copied: new Shares(COPIED_MAX) }
  const oneByOne = new OneByOneLimit()
  for (const operation of OPERATIONS) {
    if (operation.sandboxOnly && settings.mode !== 'sandbox') continue
    mount(app, { rateLimit, limitAddress, oneByOne, requests, turns, standing }, perform, operation, baseUrl)
  }
  streamEvents(app, {
    nodes: options.backgroundNodes ?? onlyNode(options.background ?? db),
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
  refuseOtherMethods(app, baseUrl, [...routes])
  return Object.assign(app, { requests })
}

/** Issues a token of the oldest client of a customer that is not disabled; undefined without customer or client. */
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

/** Records refused requests in the audit log until the app closes. */
function recordRefusals(
  app: FastifyInstance,
  { db, background = db, log, refusalsEveryMs }: AppOptions,
): void {
  const onFailure = (err: unknown) => log.error({ err }, 'refused requests could not be recorded')
  const refusals = new Refusals(background, onFailure, refusalsEveryMs)
  app.addHook('onClose', () => refusals.close())
  app.decorate('noteRefusal', (request: FastifyRequest, { meta }: Problem) => {
    const { caller, id, ip, routeOptions } = request
    const { operationId = '' } = (routeOptions.schema ?? {}) as { operationId?: string }
    const ruleId = meta?.rule_id
    refusals.note({
      customerId: caller.customerId,
      origin: { actor: caller.actor, request_id: id, ip },
      ...(typeof ruleId === 'string'
        ? { action: 'policy_rule.refuse', subjectId: ruleId }
        : { action: 'request.refuse', subjectId: operationId }),
    })
  })
}

/** Some clients end every path with a slash. Only paths without links relative to them may: those of the API and of problems. */
const withoutTrailingSlash = (url: string): string =>
  url.endsWith('/') || url.includes('/?')
    ? url.replace(/^(\/(?:(?:v2|oauth2)\/[^?]*[^/?]|problems(?:\/[^/?]+)?))\/(?=\?|$)/, '$1')
    : url

/** Creates the HTTP server with its limits, its parser of JSON and its validation, and counts its requests. */
function createServer({ settings, baseUrl, log, meter }: AppOptions): {
  app: FastifyInstance
  requests: Requests
} {
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => crypto.randomUUID(),
    // A logger per request costs more than its few log lines are worth. http/errors.ts logs the request's id itself.
    childLoggerFactory: (logger) => logger,
    bodyLimit: BODY_LIMIT,
    // Overlong ids reach the schema and get its error. No route has a pattern that a long id could slow down.
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: HEADERS_BYTES_MAX },
    rewriteUrl: (request) => withoutTrailingSlash(settings.console ? rewriteConsole(request) : request.url!),
    frameworkErrors: refuseUrl(baseUrl),
    forceCloseConnections: 'idle',
    clientErrorHandler: refuseConnection(HEADERS_BYTES_MAX),
    http: {
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      headersTimeout: HEADERS_MS_MAX,
      maxHeaderSize: HEADERS_BYTES_MAX,
    },
    requestTimeout: RECEIVE_MS_MAX,
    connectionTimeout: settings.requestTimeoutMs + STALLED_MS_MAX,
    trustProxy: settings.trustedProxies ?? false,
  }) as unknown as FastifyInstance
  const connections = new Connections({
    perAddress: settings.connectionsPerAddress,
    trustedProxies: settings.trustedProxies,
    databaseConnections: settings.databaseConnections,
    log,
  })
  connections.watch(app.server)
  app.removeContentTypeParser('text/plain')
  parseJson(app)
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler(app))
  const requests = new Requests({
    max: settings.requestsMax,
    timeoutMs: settings.requestTimeoutMs,
    meter,
    connections,
    secure: { baseUrl, behindProxy: settings.trustedProxies !== undefined },
    ...(settings.logRequests && { log }),
  })
  requests.watch(app)
  return { app, requests }
}

/** Opens the signing keys, the access tokens and the standing of the API clients. They stop when the app closes. */
async function openAuthentication(
  app: FastifyInstance,
  {
    db,
    nodes = onlyNode(db),
    background = db,
    backgroundNodes = onlyNode(background),
    settings,
    masterKeys,
    baseUrl,
    log,
  }: AppOptions,
): Promise<{ keys: SigningKeys; tokens: AccessTokens; standing: ClientStanding }> {
  const keys = await openSigningKeys(db, masterKeys, (err) =>
    log.error({ err }, 'the signing keys could not be read again; the keys read before stay in use'),
  )
  app.addHook('onClose', async () => keys.close())
  const tokens = accessTokens({
    nodes,
    keys,
    baseUrl,
    ttlSeconds: settings.tokenTtlSeconds,
    externalIssuer: settings.oauthIssuer,
  })
  const standing = await ClientStanding.start(backgroundNodes, log)
  app.addHook('onClose', () => standing.stop())
  return { keys, tokens, standing }
}

/** Reads the limits of customers, and again and again until the app closes. */
async function openLimits(
  app: FastifyInstance,
  { db, background = db, backgroundNodes = onlyNode(background), settings, log, onLimit }: AppOptions,
): Promise<CustomerLimits> {
  const defaults = requestDefaults(settings)
  const limits = await CustomerLimits.start(backgroundNodes, log, defaults, onLimit)
  app.addHook('onClose', () => limits.stop())
  return limits
}

/** The bucket of a limit without a burst of its own holds the requests of this many seconds. */
const BURST_SECONDS = 5
const DAY_SECONDS = 24 * 60 * 60

/** The limits of requests: of each API client, of its customer, and of the customer's changes in a day. */
function limitsOfRequests(limits: CustomerLimits, settings: Settings): Limit[] {
  const aSecond = (most: number): Rate => ({ perSecond: most, burst: BURST_SECONDS * most })
  const aDay = (most: number): Rate => ({ perSecond: most / DAY_SECONDS, burst: most })
  const limit = (
    name: RequestLimit,
    { usual, rate, ...rest }: { usual?: Rate; rate: (most: number) => Rate } & Omit<Limit, 'rateOf'>,
  ): Limit => {
    const usualMost = requestDefaults(settings)[name]
    // Made once: most customers have the default.
    const usualRate = usual ?? rate(usualMost)
    return {
      ...rest,
      rateOf({ customerId }) {
        const most = limits.of(customerId, name)
        return most === usualMost ? usualRate : rate(most)
      },
      onRefusal: () => limits.refused(name),
    }
  }
  return [
    limit('client_requests_per_second', {
      usual: { perSecond: settings.rateLimitPerSecond, burst: settings.rateLimitBurst },
      rate: aSecond,
      keyOf: ({ customerId, clientId }) => `${customerId} ${clientId}`,
      countsReads: true,
      describe: ({ perSecond }) => `the rate limit of this client is ${perSecond} requests per second`,
    }),
    limit('requests_per_second', {
      rate: aSecond,
      keyOf: ({ customerId }) => customerId,
      countsReads: true,
      describe: ({ perSecond }) =>
        `the rate limit of this customer, for all its clients, is ${perSecond} requests per second`,
    }),
    limit('changes_per_day', {
      rate: aDay,
      keyOf: ({ customerId }) => customerId,
      countsReads: false,
      describe: ({ burst }) => `the limit of this customer is ${burst} requests in a day that are not reads`,
    }),
  ]
}

/** The check of rows that authenticate, which tells of those that it refuses. */
const rowMacsOf = ({ masterKeys, log, onForged }: AppOptions): RowMacs =>
  new RowMacs(masterKeys, tellForged(log, onForged))

/** Logs and counts each row that is refused. */
export const tellForged =
  (log: Logger, count: AppOptions['onForged']) =>
  (table: string, id: string, objection: string): void => {
    count?.(table)
    log.error({ table, id }, `a row was changed or invented in the database, and is refused: ${objection}`)
  }

/** Most lists of a customer under way, counted until it has read the answers. Each may take 1 MiB. */
const LISTS_MAX = 16
/**
 * Most pages of a customer under way whose records are large and which have them under two names. Each may take 8 MiB: 1,000
 * orchestrations with the longest metadata.
 */
const COPIED_MAX = 1
/** Most questions to nodes that a customer's requests have under way: estimates of fees. */
const QUESTIONS_MAX = 8
/** The part of the connections for requests that the statements of one customer may take. */
const CONNECTIONS_SHARE = 1 / 4

/** Returns the function that runs an operation for a request. */
function performWith(
  { db, nodes = onlyNode(db), ledger, networks, settings, masterKeys, baseUrl }: AppOptions,
  limits: CustomerLimits,
  policies: Policies,
  rowMacs: RowMacs,
): Perform {
  const webhookSecrets = new WebhookSecrets(masterKeys)
  const connections = new Shares(Math.max(1, Math.floor((db.options.max ?? 1) * CONNECTIONS_SHARE)))
  const questions = new Shares(QUESTIONS_MAX)
  const partOf = (pool: Database, { customerId, asker }: Request) =>
    asDatabase(new CustomerPool(pool, connections, customerId, asker))
  // Written out: spreading the context and the request took 2 % of a request.
  return (operation, request) => {
    // A public operation has no customer. All of them have one share.
    const pool = request.customerId === '' ? db : nodes.of(request.customerId)
    const part = partOf(pool, request)
    return operation.run({
      params: request.params,
      query: request.query,
      body: request.body,
      customerId: request.customerId,
      clientId: request.clientId,
      scopes: request.scopes,
      origin: request.origin,
      requireCaller: request.requireCaller,
      problemOf: request.problemOf,
      asker: request.asker,
      db: part,
      shared: pool === db ? part : partOf(db, request),
      ledger,
      networks,
      askNodes: (ask) => questions.run(request.customerId, request.asker, ask),
      settings,
      webhookSecrets,
      policies,
      rowMacs,
      limits,
      baseUrl,
    } satisfies Request & Context as never)
  }
}
