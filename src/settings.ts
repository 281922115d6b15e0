import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { bool, cleanEnv, host, makeValidator, str, type CleanedEnv, type ValidatorSpec } from 'envalid'

/** Formats of the log. `auto` is text on a terminal, and JSON otherwise. */
const LOG_FORMATS = ['auto', 'json', 'text'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** A whole number from `min` to `max`; undefined if it is absent and has no default. */
function wholeNumber<Default extends number | undefined>(
  min: number,
  max: number,
  spec: { default: Default; desc: string },
): ValidatorSpec<Default extends number ? number : number | undefined> {
  const validator = makeValidator<number>((text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN
    if (!(value >= min && value <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return value
  })
  return validator(spec as { default: number; desc: string })
}

/** A setting without a default. `read` throws an Error with the rule that the text breaks. */
const optional =
  (read: (text: string) => string) =>
  (desc: string): ValidatorSpec<string | undefined> =>
    makeValidator<string>(read)({ default: undefined, desc })

const anyText = optional((given) => given)

/** An address over HTTP. Error messages do not repeat it, because it may hold a password. */
const http = optional((text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const { protocol = '', host, search, hash, username, password } = url ?? ({} as Partial<URL>)
  if (!host || !['http:', 'https:'].includes(protocol))
    throw new Error('must be an address that begins with http:// or https://')
  if (search || hash) throw new Error('must be an address without ? and #')
  if (username || password) throw new Error('must be an address without a user and a password')
  return text
})

/** `prefer` and `allow` would leave to the network whether a connection is encrypted. */
const SSL_MODES = ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full']

/** The address of a database, on a host or over a socket (`?host=/folder`). Error messages do not repeat it. */
const postgres = optional((given) => {
  const [, scheme, authority, rest] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/s.exec(given.trim()) ?? []
  if (scheme === undefined)
    throw new Error('must be an address that begins with postgres:// or postgresql://')
  const hosts = authority!.slice(authority!.lastIndexOf('@') + 1)
  // `URL` refuses a user without a host. The driver goes by `?host=`.
  const text = `${scheme}${authority}${hosts === '' && /[?&]host=/.test(rest!) ? 'localhost' : ''}${rest}`
  const { host, username, password, searchParams } = URL.canParse(text) ? new URL(text) : ({} as Partial<URL>)
  if (
    !/[\s#]|@.*@/s.test(`${authority}${rest}`) &&
    [hosts, searchParams?.get('host')].some((part) => part?.includes(','))
  )
    throw new Error('names several hosts: give the address of the primary, or of a proxy that follows it')
  if (
    !host ||
    /[\s#]|[/?].*@/s.test(`${authority}${rest}`) ||
    /%(?![\da-f]{2})/i.test(`${username}${password}`)
  )
    throw new Error(
      'must name a host; in user and password, spaces and @ / : ? # % are percent-encoded (@ is %40)',
    )
  const mode = searchParams!.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode))
    throw new Error(`has an sslmode that is none of ${SSL_MODES.join(', ')}`)
  return text
})

/** Comma-separated IP addresses and networks in CIDR notation. */
const addresses = optional((text) => {
  for (const range of text.split(',')) {
    const [, ip = '', prefix = '0'] = /^\s*([^/]+?)(?:\/(\d+))?\s*$/.exec(range) ?? []
    if (isIP(ip) === 0 || Number(prefix) > (isIP(ip) === 4 ? 32 : 128))
      throw new Error('must be comma-separated addresses or networks (10.0.0.1,10.1.0.0/16)')
  }
  return text
})

/** Comma-separated origins, each as a browser sends it. */
const origins = optional((text) => {
  if (!text.split(',').every((url) => URL.canParse(url) && new URL(url).origin === url))
    throw new Error(
      'must be comma-separated origins without a path (https://app.example,http://localhost:3000)',
    )
  return text
})

const SOURCE_CHARACTERS_MAX = 200

/** A URI reference (CloudEvents 1.0, source): a name, a path or a URL. */
const source = makeValidator<string>((text) => {
  if (!/^[A-Za-z0-9._~:/@-]+$/.test(text) || text.length > SOURCE_CHARACTERS_MAX)
    throw new Error(`must be a name, path or URL of up to ${SOURCE_CHARACTERS_MAX} characters`)
  return text
})

/** Every setting of Bursar, read from the environment. `bursar serve --help` prints this list. */
export const SETTINGS = {
  DATABASE_URL: postgres('URL of a PostgreSQL 15 or newer, instead of the embedded server'),
  BURSAR_MIGRATIONS_DATABASE_URL: postgres(
    'URL of the same database for the role that owns the schema, for bursar migrate (default: DATABASE_URL, one role for both)',
  ),
  HOST: host({ default: '127.0.0.1', desc: 'address the API listens on' }),
  PORT: wholeNumber(0, 65535, { default: 8080, desc: 'port the API listens on; 0 picks a free one' }),
  BURSAR_DATA_DIR: str({
    default: '.bursar',
    desc: 'folder of the embedded PostgreSQL and the demo credentials',
  }),
  BURSAR_MODE: str({
    choices: ['sandbox', 'live'] as const,
    default: 'sandbox',
    desc: 'sandbox: simulated deposits and networks, test-network addresses; live: real money',
  }),
  BURSAR_BASE_URL: http(
    'public URL of the API, and the token issuer; the same for every process on one database (default: http://HOST:PORT)',
  ),
  BURSAR_MASTER_KEY_FILE: anyText(
    'file with the master key, 32 bytes in hex, and older keys on the lines below. Required in live mode (default in a sandbox: generated in BURSAR_DATA_DIR)',
  ),
  BURSAR_MASTER_KEY: anyText(
    'the master key itself, then older keys, comma-separated; use BURSAR_MASTER_KEY_FILE if you can',
  ),
  BURSAR_ACCEPTANCE_KEY_FILE: anyText(
    'file with the private key (JWK, Ed25519) with which this process signs the withdrawals that it accepts, for signer processes (docs/guides/signer.md)',
  ),
  BURSAR_WORKER: bool({ default: true, desc: 'whether this process runs the settlement worker' }),
  BURSAR_WORKER_INTERVAL_MS: wholeNumber(10, 60_000, {
    default: 200,
    desc: 'rest of the worker after it found nothing, in ms; longer where nothing has changed for 5 s',
  }),
  BURSAR_NETWORKS_FILE: anyText(
    'JSON file with a section for each real network (docs/guides/networks.md); a sandbox simulates all other networks',
  ),
  BURSAR_BANK_FILE: anyText(
    'live mode: JSON file with the bank account that customers send wires to (docs/guides/live-without-a-bank-interface.md); without it, fiat operations are refused',
  ),
  BURSAR_SIMULATED_CONFIRMATION_MS: wholeNumber(0, 3_600_000, {
    default: 2_000,
    desc: 'time in ms until a simulated network confirms a transaction',
  }),
  BURSAR_SIMULATED_HOLD_MS: wholeNumber(0, 3_600_000, {
    default: 5_000,
    desc: 'time in ms that the sandbox holds a withdrawal to a magic destination with a hold',
  }),
  BURSAR_SIMULATED_PRICE_DAYS: wholeNumber(0, 90, {
    default: 30,
    desc: 'days of simulated prices in a sandbox, for markets without real prices; 0: none',
  }),
  BURSAR_EVENTS_KEPT_DAYS: wholeNumber(7, 36_500, {
    default: 90,
    desc: 'days that events and their deliveries are kept, then dropped by whole weeks',
  }),
  BURSAR_WEBHOOK_ATTEMPTS_KEPT_DAYS: wholeNumber(7, 36_500, {
    default: 30,
    desc: 'days that the attempts of deliveries are kept, then dropped by whole weeks',
  }),
  BURSAR_TOKEN_TTL_SECONDS: wholeNumber(1, 86_400, {
    default: 3_600,
    desc: 'lifetime of an access token',
  }),
  BURSAR_OAUTH_ISSUER: http('external OAuth 2 issuer to trust instead of the built-in token endpoint'),
  BURSAR_OAUTH_AUDIENCE: anyText(
    "audience of the external issuer's tokens (default: BURSAR_BASE_URL); -: tokens need none, so each client of the issuer may call",
  ),
  BURSAR_OAUTH_TOKEN_TYPE: str({
    choices: ['at+jwt', 'any'],
    default: 'at+jwt',
    desc: "typ in the header of the external issuer's tokens; any: also JWT or none, and ID tokens are known by their claims",
  }),
  BURSAR_OAUTH_CUSTOMER_CLAIM: str({
    default: 'customer_id',
    desc: "claim of the external issuer's tokens with the id of the customer",
  }),
  BURSAR_OAUTH_SCOPE_CLAIM: anyText(
    "claim of the external issuer's tokens with the scopes, as text or a list (default: scope, else scp)",
  ),
  BURSAR_OAUTH_SCOPE_PREFIX: str({
    default: '',
    desc: "what the external issuer's scopes begin with, such as bursar/; the others do not count",
  }),
  BURSAR_OPENID_ISSUER: http(
    'OpenID provider with which operators may sign in; needs BURSAR_OPENID_CLIENT_ID. Live mode: https only',
  ),
  BURSAR_OPENID_CLIENT_ID: anyText(
    'client id of Bursar at the OpenID provider; its redirect URI is BURSAR_BASE_URL/sign-in/openid',
  ),
  BURSAR_OPENID_CLIENT_SECRET_FILE: anyText(
    'file with the client secret at the OpenID provider (default: a public client, with PKCE alone)',
  ),
  BURSAR_DATABASE_CONNECTIONS: wholeNumber(4, 500, {
    default: 20,
    desc: 'maximum database connections of this process, beside two for checks',
  }),
  BURSAR_STATEMENT_TIMEOUT_MS: wholeNumber(100, 600_000, {
    default: 25_000,
    desc: 'time limit in ms of a database statement; the request is then refused and changes nothing',
  }),
  BURSAR_REQUEST_TIMEOUT_MS: wholeNumber(100, 600_000, {
    default: 30_000,
    desc: 'time limit in ms of a request; it is then answered with 503',
  }),
  BURSAR_REQUESTS_MAX: wholeNumber(1, 100_000, {
    default: 5_000,
    desc: 'maximum concurrent requests of this process; more are refused with 503',
  }),
  BURSAR_CONNECTIONS_PER_ADDRESS: wholeNumber(0, 20_000, {
    default: 2_000,
    desc: 'maximum connections from one address (IPv6: one /64); more are closed; trusted proxies have no limit; 0: no limit',
  }),
  BURSAR_RATE_LIMIT_PER_SECOND: wholeNumber(0, 100_000, {
    default: 200,
    desc: 'requests per second of each API client to this process; more get 429; 0: no limit',
  }),
  BURSAR_RATE_LIMIT_BURST: wholeNumber(1, 1_000_000, {
    default: undefined,
    desc: 'requests that a client may send at once (default: five seconds of its rate)',
  }),
  BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND: wholeNumber(0, 1_000_000, {
    default: undefined,
    desc: "requests per second of all API clients of a customer to this process (default: five times a client's rate); 0: no limit",
  }),
  BURSAR_CUSTOMER_CHANGES_PER_DAY: wholeNumber(0, 1_000_000_000, {
    default: 0,
    desc: 'requests of a customer to this process in 24 hours that are not reads; 0: no limit',
  }),
  BURSAR_TOKEN_FAILURES_PER_MINUTE: wholeNumber(0, 100_000, {
    default: 60,
    desc: 'failed token requests per minute for each address and client_id, and ten times as many for each address; 0: no limit',
  }),
  BURSAR_TRUSTED_PROXIES: addresses(
    'proxies whose X-Forwarded-For is trusted: comma-separated addresses or networks (a,b/8)',
  ),
  BURSAR_CORS_ORIGINS: origins(
    'origins whose pages may call the API with an access token, comma-separated; public operations answer every page',
  ),
  BURSAR_WEBHOOK_SOURCE: source({
    default: 'bursar',
    desc: 'the member source of every webhook, which names this platform to receivers',
  }),
  BURSAR_WEBHOOK_ALLOWED_NETWORKS: addresses(
    'live mode: private networks that webhooks may reach besides public addresses: comma-separated addresses or networks (a,b/8)',
  ),
  BURSAR_SCREENING_URL: http(
    'HTTPS endpoint that allows each payment before it is signed or credited (docs/guides/screening.md); without it, nothing is screened',
  ),
  BURSAR_SCREENING_SECRET_FILE: anyText(
    'file with the secret that signs questions to the screening endpoint: whsec_ and base64',
  ),
  BURSAR_SCREENING_TIMEOUT_MS: wholeNumber(100, 30_000, {
    default: 3_000,
    desc: 'time limit in ms of a question to the screening endpoint; the payment then waits and it is asked again',
  }),
  BURSAR_CONVERT_USDC: bool({
    default: false,
    desc: 'whether USDC converts one to one with USD and the platform stablecoins in live mode, at the risk of the operator; a sandbox always does',
  }),
  BURSAR_DOCS: bool({
    default: undefined,
    desc: 'whether the API reference is served at /docs (default: in sandbox mode only)',
  }),
  BURSAR_CONSOLE: bool({
    default: true,
    desc: 'whether the console for operators is served at /console',
  }),
  BURSAR_DRAIN_DELAY_MS: wholeNumber(0, 600_000, {
    default: 0,
    desc: 'time in ms that a stopping process reports not ready at /health/ready before it stops listening',
  }),
  BURSAR_SHUTDOWN_TIMEOUT_MS: wholeNumber(1_000, 600_000, {
    default: 30_000,
    desc: 'time limit in ms to finish accepted work at the stop; then the exit code is 1',
  }),
  BURSAR_METRICS_HOST: host({ default: '127.0.0.1', desc: 'address of the Prometheus metrics' }),
  BURSAR_METRICS_PORT: wholeNumber(0, 65535, {
    default: undefined,
    desc: 'port of the metrics; 0 picks a free one (default: 9464, or no metrics if 9464 is in use)',
  }),
  BURSAR_LOG_LEVEL: str({
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const,
    default: 'info',
    desc: 'lowest level of the log on standard error',
  }),
  BURSAR_LOG_FORMAT: str({
    choices: LOG_FORMATS,
    default: 'auto',
    desc: 'json: one line of JSON for each entry; text: for people; auto: text on a terminal, otherwise json',
  }),
  BURSAR_LOG_REQUESTS: bool({ default: true, desc: 'whether each request is logged' }),
}

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>
type NameOf<Variable extends string> = Variable extends `BURSAR_${infer Name}`
  ? CamelCase<Name>
  : CamelCase<Variable>
type Given = CleanedEnv<typeof SETTINGS>
type Read = { [Variable in keyof typeof SETTINGS as NameOf<Variable>]: Given[Variable] }

/** The settings by their names in camel case, without the prefix: BURSAR_WORKER_INTERVAL_MS is `workerIntervalMs`. */
export type Settings = Omit<Read, 'rateLimitBurst' | 'customerRateLimitPerSecond' | 'docs'> & {
  rateLimitBurst: number
  customerRateLimitPerSecond: number
  docs: boolean
  /** All variables: the networks file names those with its secrets. */
  environment: Readonly<Record<string, string | undefined>>
}

/** How many API clients of a customer may use their full rate at once. */
const CLIENTS_AT_FULL_RATE = 5

const nameOf = (variable: string): string =>
  variable
    .replace(/^BURSAR_/, '')
    .toLowerCase()
    .replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/** One or more invalid settings. The message has one line for each, beginning with the setting's name. */
export class SettingsError extends Error {}

/** Makes a handler that throws a failure again as a `SettingsError` with the setting's name. */
export const blame =
  (setting: keyof typeof SETTINGS) =>
  (error: Error): never => {
    // A host name with several addresses fails with one error for each; the first is representative.
    const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : error
    throw new SettingsError(`${setting}: ${message}`, { cause: error })
  }

/** Reads and checks the settings. Throws `SettingsError` for an invalid value and for an unknown BURSAR_ name. */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const unknown = Object.keys(environment).filter((name) => name.startsWith('BURSAR_') && !(name in SETTINGS))
  const complaints = unknown.map((name) => `${name}: no such setting`)
  const given = Object.fromEntries(
    Object.keys(SETTINGS)
      .filter((name) => environment[name] !== undefined && environment[name] !== '')
      .map((name) => [name, environment[name]]),
  )
  const env = cleanEnv(given, SETTINGS, {
    reporter: ({ errors }) =>
      complaints.push(...Object.entries(errors).map(([name, error]) => `${name}: ${error.message}`)),
  })
  if (complaints.length > 0) throw new SettingsError(complaints.join('\n'))
  const read = Object.fromEntries(
    Object.keys(SETTINGS).map((variable) => [nameOf(variable), env[variable as keyof typeof SETTINGS]]),
  ) as Read
  return {
    ...read,
    dataDir: resolve(read.dataDir),
    baseUrl: read.baseUrl?.replace(/\/+$/, ''),
    rateLimitBurst: read.rateLimitBurst ?? Math.max(5 * read.rateLimitPerSecond, 1),
    customerRateLimitPerSecond:
      read.customerRateLimitPerSecond ?? CLIENTS_AT_FULL_RATE * read.rateLimitPerSecond,
    docs: read.docs ?? read.mode === 'sandbox',
    environment,
  }
}
