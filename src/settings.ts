import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { bool, cleanEnv, host, makeValidator, str, type CleanedEnv, type ValidatorSpec } from 'envalid'

/** How lines of the log are written: as JSON for programs, or as text for people. `auto` is text on a terminal, and else JSON. */
const LOG_FORMATS = ['auto', 'json', 'text'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** A whole number within bounds, both included; undefined where it may be left out and has no default. */
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

/** An address of one of these kinds. A complaint does not repeat it: it may hold a password. */
const address = (kinds: string[], { withQuery }: { withQuery: boolean }) =>
  makeValidator<string>((text) => {
    const { protocol, host, search, hash } = URL.canParse(text) ? new URL(text) : ({} as Partial<URL>)
    if (protocol === undefined || !host || !kinds.includes(protocol))
      throw new Error(`must be an address that begins with ${kinds.map((kind) => `${kind}//`).join(' or ')}`)
    if (!withQuery && (search || hash)) throw new Error('must be an address without ? and #')
    return text
  })

/** Addresses, each with the length of a prefix if it is a network, with commas between. */
const addresses = makeValidator<string>((text) => {
  for (const one of text.split(',')) {
    const [, ip = '', prefix = '0'] = /^\s*([^/]+?)(?:\/(\d+))?\s*$/.exec(one) ?? []
    if (isIP(ip) === 0 || Number(prefix) > (isIP(ip) === 4 ? 32 : 128))
      throw new Error('must be addresses or networks (10.0.0.1,10.1.0.0/16) with commas between')
  }
  return text
})

const postgres = address(['postgres:', 'postgresql:'], { withQuery: true })
const http = address(['http:', 'https:'], { withQuery: false })

/** Every setting of Bursar, read from the environment. `bursar serve --help` prints this list. */
export const SETTINGS = {
  DATABASE_URL: postgres({
    default: undefined,
    desc: 'PostgreSQL 15 or newer to use instead of the embedded one',
  }),
  BURSAR_MIGRATIONS_DATABASE_URL: postgres({
    default: undefined,
    desc: 'the same database for the role that owns the schema, for bursar migrate (default: DATABASE_URL, one role for both)',
  }),
  HOST: host({ default: '127.0.0.1', desc: 'address the API listens on' }),
  PORT: wholeNumber(0, 65535, { default: 8080, desc: 'port the API listens on; 0 picks a free one' }),
  BURSAR_DATA_DIR: str({
    default: '.bursar',
    desc: 'folder of the embedded PostgreSQL and the demo credentials',
  }),
  BURSAR_MODE: str({
    choices: ['sandbox', 'live'] as const,
    default: 'sandbox',
    desc: 'sandbox: simulated deposits and networks, test-network addresses; live: none of them',
  }),
  BURSAR_BASE_URL: http({
    default: undefined,
    desc: 'address clients reach the API at, and the token issuer; the same for every process on one database (default: http://HOST:PORT)',
  }),
  BURSAR_MASTER_KEY_FILE: str({
    default: undefined,
    desc: 'file with the master key, 32 bytes in hex; older ones on the lines below it. Required in live mode (default in a sandbox: generated in BURSAR_DATA_DIR)',
  }),
  BURSAR_MASTER_KEY: str({
    default: undefined,
    desc: 'the master key itself, older ones behind it with commas between, where there can be no file',
  }),
  BURSAR_WORKER: bool({ default: true, desc: 'whether this process runs the settlement worker' }),
  BURSAR_WORKER_INTERVAL_MS: wholeNumber(10, 60_000, {
    default: 200,
    desc: 'pause of the worker when there is nothing to do',
  }),
  BURSAR_NETWORKS_FILE: str({
    default: undefined,
    desc: 'JSON file with a section for each real network (docs/guides/networks.md); in sandbox mode the others are simulated',
  }),
  BURSAR_BANK_FILE: str({
    default: undefined,
    desc: 'JSON file with the bank account that customers send wires to, in live mode (docs/guides/live-without-a-bank-interface.md); without it fiat is refused',
  }),
  BURSAR_SIMULATED_CONFIRMATION_MS: wholeNumber(0, 3_600_000, {
    default: 2_000,
    desc: 'how long the simulated networks take to confirm a transaction',
  }),
  BURSAR_SIMULATED_HOLD_MS: wholeNumber(0, 3_600_000, {
    default: 5_000,
    desc: 'how long the sandbox holds a withdrawal to a magic destination that is held',
  }),
  BURSAR_SIMULATED_PRICE_DAYS: wholeNumber(0, 90, {
    default: 30,
    desc: 'days of simulated prices that the sandbox makes for markets without real ones; 0 makes none',
  }),
  BURSAR_FEE_QUOTE_TTL_SECONDS: wholeNumber(1, 86_400, {
    default: 300,
    desc: 'how long a guaranteed fee is good for',
  }),
  BURSAR_TOKEN_TTL_SECONDS: wholeNumber(1, 86_400, {
    default: 3_600,
    desc: 'how long an access token is good for',
  }),
  BURSAR_OAUTH_ISSUER: http({
    default: undefined,
    desc: 'external OAuth 2 issuer to trust instead of the built-in token endpoint; its tokens carry customer_id',
  }),
  BURSAR_DATABASE_CONNECTIONS: wholeNumber(4, 500, {
    default: 20,
    desc: 'most connections of this process to the database',
  }),
  BURSAR_STATEMENT_TIMEOUT_MS: wholeNumber(100, 600_000, {
    default: 25_000,
    desc: 'longest statement of a request; it is then refused, and nothing changed',
  }),
  BURSAR_REQUEST_TIMEOUT_MS: wholeNumber(100, 600_000, {
    default: 30_000,
    desc: 'longest time until a request is answered, if need be with 503',
  }),
  BURSAR_REQUESTS_MAX: wholeNumber(1, 100_000, {
    default: 5_000,
    desc: 'most requests under way in this process; more are refused with 503',
  }),
  BURSAR_CONNECTIONS_PER_ADDRESS: wholeNumber(0, 20_000, {
    default: 2_000,
    desc: 'most connections of an address that is no trusted proxy (of IPv6, of a /64); more are closed; 0: no limit',
  }),
  BURSAR_RATE_LIMIT_PER_SECOND: wholeNumber(0, 100_000, {
    default: 200,
    desc: 'requests a second of each API client to this process, then 429; 0: no limit',
  }),
  BURSAR_RATE_LIMIT_BURST: wholeNumber(1, 1_000_000, {
    default: undefined,
    desc: 'requests that a client may make at once (default: those of five seconds)',
  }),
  BURSAR_TOKEN_FAILURES_PER_MINUTE: wholeNumber(0, 100_000, {
    default: 60,
    desc: 'failed token requests a minute of a client_id from an address, and ten times as many of an address; 0: no limit',
  }),
  BURSAR_TRUSTED_PROXIES: addresses({
    default: undefined,
    desc: 'addresses of proxies (a,b/8) whose X-Forwarded-For tells where a request comes from',
  }),
  BURSAR_DOCS: bool({
    default: undefined,
    desc: 'whether the API reference is served at /docs (default: in sandbox mode only)',
  }),
  BURSAR_DRAIN_DELAY_MS: wholeNumber(0, 600_000, {
    default: 0,
    desc: 'how long a process that stops says so at /health/ready before it stops listening',
  }),
  BURSAR_SHUTDOWN_TIMEOUT_MS: wholeNumber(1_000, 600_000, {
    default: 30_000,
    desc: 'longest time to finish what was accepted; after it the exit code is 1',
  }),
  BURSAR_METRICS_HOST: host({ default: '127.0.0.1', desc: 'address that Prometheus metrics are served on' }),
  BURSAR_METRICS_PORT: wholeNumber(0, 65535, {
    default: undefined,
    desc: 'port of the metrics; 0 picks a free one (default: 9464, and no metrics if that is taken)',
  }),
  BURSAR_LOG_LEVEL: str({
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const,
    default: 'info',
    desc: 'what is logged, on standard error',
  }),
  BURSAR_LOG_FORMAT: str({
    choices: LOG_FORMATS,
    default: 'auto',
    desc: 'json: a line of JSON each; text: for people; auto: text on a terminal, and else json',
  }),
  BURSAR_LOG_REQUESTS: bool({ default: true, desc: 'whether each request is a line of the log' }),
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
export type Settings = Omit<Read, 'rateLimitBurst' | 'docs'> & { rateLimitBurst: number; docs: boolean }

const nameOf = (variable: string): string =>
  variable
    .replace(/^BURSAR_/, '')
    .toLowerCase()
    .replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/** A setting that is wrong. The message has a line for each, which names it. */
export class SettingsError extends Error {}

/** For the failure of what a setting decides: throws it again, with the setting's name. */
export const blame =
  (setting: keyof typeof SETTINGS) =>
  (error: Error): never => {
    // Where a name has several addresses, none answered, and each says why.
    const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : error
    throw new SettingsError(`${setting}: ${message}`, { cause: error })
  }

/** Reads and checks the settings. Throws `SettingsError` for a bad value and for a BURSAR_ name that is none. */
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
    docs: read.docs ?? read.mode === 'sandbox',
  }
}
