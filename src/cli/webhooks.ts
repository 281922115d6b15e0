import { readFile } from 'node:fs/promises'
import { Argument, Option, type Command } from 'commander'
import { EVENT_TYPES, type EventType } from '../contract/event-types.ts'
import { UUID } from '../db/ids.ts'
import type { Webhook, WebhookAuthBody } from '../money/records/webhook.ts'
import type { WebhookAttempt, WebhookDelivery } from '../money/records/webhook-delivery.ts'
import { overApi, Refused, until, type Api, type ListPage } from './call-api.ts'
import { APPROVAL, uuid, wholeNumber } from './arguments.ts'
import { define, type Subcommand } from './define.ts'
import { eventType } from './events.ts'
import { linesOf, print } from './output.ts'

const TYPES = Object.keys(EVENT_TYPES) as EventType[]
const TESTED_TYPE: EventType = 'transfer.crypto_withdrawal.completed'
/** Longest wait for the attempt of a test: one attempt takes 15 s at most, and an endpoint's limit may delay it. */
const TEST_WAIT_MS_MAX = 30_000
const PAGE = 100

/** Sends a change, with the approval that it was given. Throws the service's refusal, with the next step for the person. */
async function change(api: Api, path: string, body: object, approval: string | undefined) {
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

interface WithSecret {
  webhook: Webhook
  secret: string
}

export function webhookCommands(program: Command): void {
  const webhooks = define(
    program,
    'webhooks',
    'the webhooks of a customer: endpoints that events are delivered to',
  )
  defineCreate(webhooks)
  define(webhooks, 'list', 'list the webhooks, newest first; secrets are never shown again').list(overApi, {
    none: 'there are no webhooks',
    read: async (api) => {
      const all: Webhook[] = []
      for await (const webhook of eachWebhook(api)) all.push(webhook)
      return all
    },
    columns: [
      ...(['name', 'status', 'failing_since'] as const),
      ['event_types', ({ event_types }) => event_types.join(', ')],
      ...(['url', 'id'] as const),
    ],
  })
  defineTest(webhooks)
  defineRotate(webhooks)
  defineRecover(webhooks)
  defineDeliveries(webhooks)
}

interface CreateOptions {
  name: string
  url: string
  eventTypes: string[]
  payload?: string
  rateLimit?: number
  profileIds?: string[]
  apiKeyHeader?: string
  apiKeyFile?: string
  approval?: string
}

function defineCreate(webhooks: Subcommand): void {
  define(webhooks, 'create', 'create a webhook; its signing secret is shown only once')
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
    .option('--json', 'print JSON on one line: {webhook, secret}')
    .answer(overApi, async (api, options: CreateOptions) => {
      const auth = await apiKeyOf(options)
      // JSON leaves out what is undefined.
      const body = {
        name: options.name,
        url: options.url,
        event_types: options.eventTypes,
        payload: options.payload,
        rate_limit: options.rateLimit,
        profile_ids: options.profileIds,
        auth,
      }
      const made = await change(api, '/v2/webhooks', body, options.approval)
      return [made, describe(made)]
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

const describe = ({ webhook: { id, name, url, event_types }, secret }: WithSecret) =>
  linesOf({ id, name, url, event_types: event_types.join(', '), secret })

function defineTest(webhooks: Subcommand): void {
  define(
    webhooks,
    'test',
    'deliver an example event with is_test, and wait for its first attempt; a failed one ends with 1',
  )
    .argument('<webhook>', WEBHOOK)
    .addArgument(new Argument('[type]', 'type of the event').choices(TYPES).default(TESTED_TYPE))
    .option('--json', 'print JSON on one line: {delivery, attempt}')
    .answer(overApi, async (api, named: string, type: string, { json }: { json?: true }) => {
      const path = await pathOf(api, named)
      const delivery = await api.call<WebhookDelivery>('POST', `${path}/test`, { type })
      const attempt = await firstAttempt(api, `${path}/deliveries/${delivery.id}/attempts`)
      const { status_code: status, error = `status ${status}`, duration_ms } = attempt
      const answer = { delivery, attempt }
      if (status === undefined || status < 200 || status > 299) {
        if (json) print(answer)
        throw new Error(`the test was not delivered: ${error} (${duration_ms} ms)`)
      }
      return [answer, `test event ${delivery.id} is delivered: status ${status} (${duration_ms} ms)`]
    })
}

/** Waits for the first attempt of a delivery. Throws when none is made in time. */
async function firstAttempt(api: Api, path: string): Promise<WebhookAttempt> {
  const read = async () => (await api.call<ListPage<WebhookAttempt>>('GET', path)).items.at(-1)
  const first = await until(TEST_WAIT_MS_MAX, read)
  if (first !== undefined) return first
  throw new Error(`no attempt was made within ${TEST_WAIT_MS_MAX / 1000} s: does a worker run?`)
}

function defineRotate(webhooks: Subcommand): void {
  define(webhooks, 'rotate', 'give a webhook a new signing secret, which is shown only once')
    .argument('<webhook>', WEBHOOK)
    .option(
      '--grace-seconds <seconds>',
      'how long the previous secret signs, too: up to 7 days (default: 86400)',
      wholeNumber(0, 7 * 24 * 60 * 60),
    )
    .option(...APPROVAL)
    .option('--json', 'print JSON on one line: {webhook, secret}')
    .answer(overApi, async (api, named: string, options: { graceSeconds?: number; approval?: string }) => {
      const path = await pathOf(api, named)
      const body = { grace_seconds: options.graceSeconds }
      const rotated = await change(api, `${path}/rotate-secret`, body, options.approval)
      const until = rotated.webhook.previous_secret_until
      const previous =
        until === undefined
          ? 'The previous secret no longer signs.'
          : `The previous secret signs until ${until}, too.`
      return [rotated, `${describe(rotated)}\n${previous}`]
    })
}

function defineRecover(webhooks: Subcommand): void {
  define(webhooks, 'recover', 'deliver the events of a time that were not delivered, each once')
    .argument('<webhook>', WEBHOOK)
    .requiredOption('--since <time>', 'events from then on (RFC 3339)')
    .option('--until <time>', 'events before then (default: now)')
    .option('--json', 'print JSON on one line: {recovered}')
    .answer(overApi, async (api, named: string, { since, until }: { since: string; until?: string }) => {
      const path = `${await pathOf(api, named)}/recover`
      let recovered = 0
      let page_cursor: string | undefined
      do {
        const body = { since, ...(until && { until }), ...(page_cursor && { page_cursor }) }
        const part = await api.call<{ recovered: number; next_page_cursor?: string }>('POST', path, body)
        recovered += part.recovered
        page_cursor = part.next_page_cursor
      } while (page_cursor !== undefined)
      return [{ recovered }, `deliveries due now: ${recovered}`]
    })
}

function defineDeliveries(webhooks: Subcommand): void {
  define(webhooks, 'deliveries', 'list deliveries, newest event first')
    .argument('<webhook>', WEBHOOK)
    .addOption(
      new Option('--status <status>', 'only with this status').choices(['PENDING', 'DELIVERED', 'FAILED']),
    )
    .option('--type <type>', 'only of this type, or of its beginning such as transfer.*', eventType)
    .option('--limit <number>', 'most deliveries (1 to 100)', wholeNumber(1, PAGE), 20)
    .addHelpText(
      'after',
      '\ntime is in UTC; tries is the number of attempts; next says when the next one is due.',
    )
    .list(overApi, {
      none: 'there are no such deliveries',
      read: async (api, named: string, { status, type, limit }: DeliveriesOptions) => {
        const path = await pathOf(api, named)
        const query = new URLSearchParams({ limit: String(limit) })
        if (status !== undefined) query.set('status', status)
        if (type !== undefined) query.set('type', type)
        return (await api.call<ListPage<WebhookDelivery>>('GET', `${path}/deliveries?${query.toString()}`))
          .items
      },
      // At most 80 columns: the longest type takes 43, so the time has only its month, day, hour and minute.
      columns: [
        ['time', ({ created_at }) => `${created_at.slice(5, 10)} ${created_at.slice(11, 16)}`],
        ['type', ({ event_type }) => event_type],
        'status',
        ['>tries', ({ attempts }) => attempts],
        ['>next', ({ next_attempt_at }) => next_attempt_at && span(Date.parse(next_attempt_at) - Date.now())],
      ],
    })
}

interface DeliveriesOptions {
  status?: string
  type?: string
  limit: number
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
    const page = await api.call<ListPage<Webhook>>('GET', `/v2/webhooks?limit=${PAGE}${cursor}`)
    yield* page.items
    if (page.next_page_cursor === undefined) return
    cursor = `&page_cursor=${page.next_page_cursor}`
  }
}

const types = (text: string): string[] => text.split(',').map((one) => eventType(one.trim()))
const uuids = (text: string): string[] => text.split(',').map((one) => uuid(one.trim()))
