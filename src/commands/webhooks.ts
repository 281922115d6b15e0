import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { Argument, InvalidArgumentError, Option, type Command } from 'commander'
import { EVENT_TYPES, type EventType } from '../contract/event-types.ts'
import { UUID } from '../db/ids.ts'
import { matchesType } from '../records/event-type-patterns.ts'
import type { Webhook, WebhookAuthBody } from '../records/webhook.ts'
import type { WebhookAttempt, WebhookDelivery } from '../records/webhook-delivery.ts'
import { openApi, Refused, type Api } from './call-api.ts'
import { uuid, wholeNumber } from './command-line.ts'
import { CREDENTIALS } from './events.ts'
import { print, table } from './output.ts'

const TYPES = Object.keys(EVENT_TYPES) as EventType[]
const TESTED_TYPE: EventType = 'transfer.crypto_withdrawal.completed'
/** Longest wait for the attempt of a test: one attempt takes 15 s at most, and an endpoint's limit may delay it. */
const TEST_WAIT_MS_MAX = 30_000
const LOOK_EVERY_MS = 200
const PAGE = 100

interface Options {
  credentials?: string
  json?: true
}

/** Of changes that a policy can make dependent on approvers. */
interface ChangeOptions extends Options {
  approval?: string
}
const APPROVAL = ['--approval <id>', 'approval of this change, where the policy requires one', uuid] as const

/** Sends a change, with the approval that it was given. Throws the service's refusal with the way on. */
async function change(api: Api, path: string, body: object, { approval }: ChangeOptions) {
  const query = approval === undefined ? '' : `?approval_id=${approval}`
  try {
    return await api.call<WithSecret>('POST', `${path}${query}`, body)
  } catch (error) {
    if (!(error instanceof Refused) || error.slug !== 'approval-required') throw error
    throw new Error(
      `${error.message}. After they have approved, run the same command with --approval and its id`,
      { cause: error },
    )
  }
}

interface Page<Item> {
  items: Item[]
  next_page_cursor?: string
}

interface WithSecret {
  webhook: Webhook
  secret: string
}

/** Defines `bursar webhooks`. */
export function webhookCommands(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('the webhooks of a customer: endpoints that events are delivered to')
  defineCreate(webhooks)
  defineList(webhooks)
  defineTest(webhooks)
  defineRotate(webhooks)
  defineRecover(webhooks)
  defineDeliveries(webhooks)
}

interface CreateOptions extends ChangeOptions {
  name: string
  url: string
  eventTypes: string[]
  payload?: string
  rateLimit?: number
  profileIds?: string[]
  apiKeyHeader?: string
  apiKeyFile?: string
}

function defineCreate(webhooks: Command): void {
  webhooks
    .command('create')
    .description('create a webhook; its signing secret is shown only once')
    .requiredOption('--name <name>', 'name of the webhook, unique for the customer')
    .requiredOption('--url <url>', 'where events are delivered: HTTPS, in a sandbox also HTTP')
    .requiredOption(
      '--event-types <types>',
      "comma-separated: '*', beginnings such as transfer.*, names",
      types,
    )
    .addOption(new Option('--payload <payload>', 'FULL has the object, too').choices(['THIN', 'FULL']))
    .option('--rate-limit <number>', 'most deliveries a second (default: 10)', wholeNumber(1, 100))
    .option('--profile-ids <ids>', 'comma-separated: only events of these profiles', uuids)
    .option('--api-key-header <name>', 'deliveries have an API key in this header')
    .option('--api-key-file <file>', 'file with that API key')
    .option(...APPROVAL)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line: {webhook, secret}')
    .action(async (options: CreateOptions) => {
      const auth = await apiKeyOf(options)
      const api = await openApi(options.credentials)
      const body = {
        name: options.name,
        url: options.url,
        event_types: options.eventTypes,
        ...(options.payload !== undefined && { payload: options.payload }),
        ...(options.rateLimit !== undefined && { rate_limit: options.rateLimit }),
        ...(options.profileIds !== undefined && { profile_ids: options.profileIds }),
        ...(auth && { auth }),
      }
      const made = await change(api, '/v2/webhooks', body, options)
      print(options.json ? made : linesOf(made))
    })
}

/** Reads the API key that deliveries carry. A file keeps it out of the list of processes and the shell's history. */
async function apiKeyOf({ apiKeyHeader, apiKeyFile }: CreateOptions): Promise<WebhookAuthBody | undefined> {
  if (apiKeyHeader === undefined && apiKeyFile === undefined) return undefined
  if (apiKeyHeader === undefined || apiKeyFile === undefined)
    throw new Error('--api-key-header and --api-key-file are given together')
  const key = (await readFile(apiKeyFile, 'utf8')).trimEnd()
  if (key === '') throw new Error(`--api-key-file ${apiKeyFile} has no API key`)
  return { type: 'API_KEY', header: apiKeyHeader, key }
}

const linesOf = ({ webhook: { id, name, url, event_types }, secret }: WithSecret) =>
  `id:          ${id}\nname:        ${name}\nurl:         ${url}\nevent_types: ${event_types.join(', ')}\nsecret:      ${secret}`

function defineList(webhooks: Command): void {
  webhooks
    .command('list')
    .description('list the webhooks, newest first; secrets are never shown again')
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON, one line for each webhook')
    .action(async (options: Options) => {
      const api = await openApi(options.credentials)
      const all: Webhook[] = []
      for await (const webhook of eachWebhook(api)) all.push(webhook)
      if (options.json) for (const webhook of all) print(webhook)
      else if (all.length === 0) print('there are no webhooks')
      else
        print(
          table(
            ['name', 'status', 'failing_since', 'event_types', 'url', 'id'],
            all.map(({ name, status, failing_since, event_types, url, id }) => [
              ...[name, status, failing_since],
              ...[event_types.join(', '), url, id],
            ]),
          ),
        )
    })
}

function defineTest(webhooks: Command): void {
  webhooks
    .command('test')
    .description(
      'deliver an example event with is_test, and wait for its first attempt; a failed one ends with 1',
    )
    .argument('<webhook>', WEBHOOK)
    .addArgument(new Argument('[type]', 'type of the event').choices(TYPES).default(TESTED_TYPE))
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line: {delivery, attempt}')
    .action(async (named: string, type: string, options: Options) => {
      const api = await openApi(options.credentials)
      const path = await pathOf(api, named)
      const delivery = await api.call<WebhookDelivery>('POST', `${path}/test`, { type })
      const attempt = await firstAttempt(api, `${path}/deliveries/${delivery.id}/attempts`)
      const { status_code: status, error = `status ${status}`, duration_ms } = attempt
      if (options.json) print({ delivery, attempt })
      if (status === undefined || status < 200 || status > 299)
        throw new Error(`the test was not delivered: ${error} (${duration_ms} ms)`)
      if (!options.json) print(`test event ${delivery.id} is delivered: status ${status} (${duration_ms} ms)`)
    })
}

/** Waits for the first attempt of a delivery. Throws when none is made in time. */
async function firstAttempt(api: Api, path: string): Promise<WebhookAttempt> {
  const deadline = performance.now() + TEST_WAIT_MS_MAX
  for (;;) {
    const { items } = await api.call<Page<WebhookAttempt>>('GET', path)
    const first = items.at(-1)
    if (first !== undefined) return first
    if (performance.now() > deadline)
      throw new Error(`no attempt was made within ${TEST_WAIT_MS_MAX / 1000} s: does a worker run?`)
    await pause(LOOK_EVERY_MS)
  }
}

function defineRotate(webhooks: Command): void {
  webhooks
    .command('rotate')
    .description('give a webhook a new signing secret, which is shown only once')
    .argument('<webhook>', WEBHOOK)
    .option(
      '--grace-seconds <seconds>',
      'how long the previous secret signs, too: up to 7 days (default: 86400)',
      wholeNumber(0, 7 * 24 * 60 * 60),
    )
    .option(...APPROVAL)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line: {webhook, secret}')
    .action(
      async (named: string, { graceSeconds, ...options }: ChangeOptions & { graceSeconds?: number }) => {
        const api = await openApi(options.credentials)
        const path = await pathOf(api, named)
        const body = graceSeconds === undefined ? {} : { grace_seconds: graceSeconds }
        const rotated = await change(api, `${path}/rotate-secret`, body, options)
        const until = rotated.webhook.previous_secret_until
        const previous =
          until === undefined
            ? 'The previous secret no longer signs.'
            : `The previous secret signs until ${until}, too.`
        print(options.json ? rotated : `${linesOf(rotated)}\n${previous}`)
      },
    )
}

function defineRecover(webhooks: Command): void {
  webhooks
    .command('recover')
    .description('deliver the events of a time that were not delivered, each once')
    .argument('<webhook>', WEBHOOK)
    .requiredOption('--since <time>', 'events from then on (RFC 3339)')
    .option('--until <time>', 'events before then (default: now)')
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line: {recovered}')
    .action(async (named: string, { since, until, ...options }: RecoverOptions) => {
      const api = await openApi(options.credentials)
      const path = await pathOf(api, named)
      let recovered = 0
      let cursor: string | undefined
      do {
        const body = { since, ...(until && { until }), ...(cursor && { page_cursor: cursor }) }
        const part = await api.call<{ recovered: number; next_page_cursor?: string }>(
          'POST',
          `${path}/recover`,
          body,
        )
        recovered += part.recovered
        cursor = part.next_page_cursor
      } while (cursor !== undefined)
      print(options.json ? { recovered } : `deliveries due now: ${recovered}`)
    })
}

interface RecoverOptions extends Options {
  since: string
  until?: string
}

function defineDeliveries(webhooks: Command): void {
  webhooks
    .command('deliveries')
    .description('list deliveries, newest event first')
    .argument('<webhook>', WEBHOOK)
    .addOption(
      new Option('--status <status>', 'only with this status').choices(['PENDING', 'DELIVERED', 'FAILED']),
    )
    .option('--type <type>', 'only of this type, or of its beginning such as transfer.*', type)
    .option('--limit <number>', 'most deliveries (1 to 100)', wholeNumber(1, PAGE), 20)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON, one line for each delivery')
    .addHelpText(
      'after',
      '\ntime is in UTC; tries is the number of attempts; next says when the next one is due.',
    )
    .action(async (named: string, { status, type, limit, ...options }: DeliveriesOptions) => {
      const api = await openApi(options.credentials)
      const path = await pathOf(api, named)
      const query = new URLSearchParams({ limit: String(limit) })
      if (status !== undefined) query.set('status', status)
      if (type !== undefined) query.set('type', type)
      const { items } = await api.call<Page<WebhookDelivery>>('GET', `${path}/deliveries?${query.toString()}`)
      const now = Date.now()
      if (options.json) for (const delivery of items) print(delivery)
      else if (items.length === 0) print('there are no such deliveries')
      else
        print(
          table(
            ['time', 'type', 'status', '>tries', '>next'],
            items.map((each) => rowOf(each, now)),
          ),
        )
    })
}

interface DeliveriesOptions extends Options {
  status?: string
  type?: string
  limit: number
}

/** A row of at most 80 columns: the longest type has 43, so that month, day, hour and minute remain of the time. */
const rowOf = (delivery: WebhookDelivery, now: number) => {
  const { created_at, event_type, status, attempts, next_attempt_at: next } = delivery
  const time = `${created_at.slice(5, 10)} ${created_at.slice(11, 16)}`
  return [time, event_type, status, attempts, next && span(Date.parse(next) - now)]
}

/** Formats how long something takes from now in at most 4 characters: 59s, 59m, 29h. */
function span(ms: number): string {
  if (ms <= 0) return 'now'
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 60) return `${seconds}s`
  return seconds < 3600 ? `${Math.floor(seconds / 60)}m` : `${Math.floor(seconds / 3600)}h`
}

const WEBHOOK = 'id or name of the webhook'

/** Finds the path of a webhook by its id or its name. Throws where no webhook has that name. */
async function pathOf(api: Api, named: string): Promise<string> {
  if (UUID.test(named)) return `/v2/webhooks/${named.toLowerCase()}`
  for await (const { id, name } of eachWebhook(api)) if (name === named) return `/v2/webhooks/${id}`
  throw new Error(`there is no webhook with the name ${named}`)
}

/** Iterates over the customer's webhooks, newest first. */
async function* eachWebhook(api: Api): AsyncGenerator<Webhook, void> {
  let cursor = ''
  for (;;) {
    const page = await api.call<Page<Webhook>>('GET', `/v2/webhooks?limit=${PAGE}${cursor}`)
    yield* page.items
    if (page.next_page_cursor === undefined) return
    cursor = `&page_cursor=${page.next_page_cursor}`
  }
}

/** Reads a type of event, or a beginning of types. For commander. */
function type(text: string): string {
  if (!TYPES.some((known) => matchesType(known, [text])))
    throw new InvalidArgumentError(`${text} must be *, the beginning of types such as transfer.*, or a type.`)
  return text
}

const types = (text: string): string[] => text.split(',').map((one) => type(one.trim()))
const uuids = (text: string): string[] => text.split(',').map((one) => uuid(one.trim()))
