import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { EVENT_TYPES, type EventType } from '../contract/event-types.ts'
import { UUID } from '../db/ids.ts'
import type { Webhook, WebhookAuthBody } from '../money/records/webhook.ts'
import type { WebhookAttempt, WebhookDelivery } from '../money/records/webhook-delivery.ts'
import { overApi, Refused, until, type Api, type ListPage } from './call-api.ts'
import { COMMON, uuid, wholeNumber } from './arguments.ts'
import { group, type Group } from './define.ts'
import { eventType } from './events.ts'
import { linesOf } from './output.ts'
import { printError } from './own-process.ts'

const TYPES = Object.keys(EVENT_TYPES) as EventType[]
const TESTED_TYPE: EventType = 'transfer.crypto_withdrawal.completed'
/** Longest wait for the attempt of a test: one attempt takes 15 s at most, and an endpoint's limit may delay it. */
const TEST_WAIT_MS_MAX = 30_000
const PAGE = 100
const LISTED = 20

const WORDS = {
  ...COMMON,
  '<webhook>': ['id or name of the webhook'],
  '<type>': [`type of the event (default: ${TESTED_TYPE})`, TYPES],
  '--name <name>': ['name of the webhook, unique for the customer'],
  '--url <url>': ['where events are delivered: HTTPS, in a sandbox also HTTP'],
  '--event-types <types>': ["comma-separated: '*', beginnings such as transfer.*, names", types],
  '--payload <payload>': ['FULL has the object, too', ['THIN', 'FULL']],
  '--rate-limit <number>': ['most deliveries a second (default: 10)', wholeNumber(1, 100)],
  '--profile-ids <ids>': ['comma-separated: only events of these profiles', uuids],
  '--api-key-header <name>': ['deliveries have an API key in this header'],
  '--api-key-file <file>': ['file with that API key'],
  '--grace-seconds <seconds>': [
    'how long the previous secret signs, too: up to 7 days (default: 86400)',
    wholeNumber(0, 7 * 24 * 60 * 60),
  ],
  '--since <time>': ['events from then on (RFC 3339)'],
  '--until <time>': ['events before then (default: now)'],
  '--status <status>': ['only with this status', ['PENDING', 'DELIVERED', 'FAILED']],
  '--type <type>': ['only of this type, or of its beginning such as transfer.*', eventType],
  '--limit <number>': [`most deliveries (1 to ${PAGE}, default: ${LISTED})`, wholeNumber(1, PAGE)],
} as const

interface WithSecret {
  webhook: Webhook
  secret: string
}

export function webhookCommands(program: Command): void {
  const about = 'the webhooks of a customer: endpoints that events are delivered to'
  const webhooks = group(program, ['webhooks', about], overApi, WORDS)
  webhooks.command(
    'create --name <name> --url <url> --event-types <types> [--payload <payload>] [--rate-limit <number>] [--profile-ids <ids>] [--api-key-header <name>] [--api-key-file <file>] [--approval <id>]',
    {
      about: 'create a webhook; its signing secret is shown only once',
      json: 'print JSON on one line: {webhook, secret}',
      async run(api, { api_key_header, api_key_file, approval, json: _, ...body }) {
        const auth = await apiKeyOf(api_key_header, api_key_file)
        return change(api, '/v2/webhooks', { ...body, auth }, approval)
      },
      says: describe,
    },
  )
  webhooks.list('list', {
    about: 'list the webhooks, newest first; secrets are never shown again',
    none: 'there are no webhooks',
    async run(api) {
      const webhooks: Webhook[] = []
      for await (const webhook of eachWebhook(api)) webhooks.push(webhook)
      return webhooks
    },
    columns: [
      ...(['name', 'status', 'failing_since'] as const),
      ['event_types', ({ event_types }) => event_types.join(', ')],
      ...(['url', 'id'] as const),
    ],
  })
  webhooks.command('test <webhook> [type]', {
    about: 'deliver an example event with is_test, and wait for its first attempt; a failed one ends with 1',
    json: 'print JSON on one line: {delivery, attempt}',
    async run(api, { webhook, type = TESTED_TYPE }) {
      const path = await pathOf(api, webhook)
      const delivery = await api.call<WebhookDelivery>('POST', `${path}/test`, { type })
      const attempt = await firstAttempt(api, `${path}/deliveries/${delivery.id}/attempts`)
      const { status_code: status, error = `status ${status}`, duration_ms } = attempt
      if (!isDelivered(attempt)) printError(`the test was not delivered: ${error} (${duration_ms} ms)`)
      return { delivery, attempt }
    },
    says: ({ delivery: { id }, attempt }) =>
      isDelivered(attempt)
        ? `test event ${id} is delivered: status ${attempt.status_code} (${attempt.duration_ms} ms)`
        : '',
    fails: ({ attempt }) => !isDelivered(attempt),
  })
  webhooks.command('rotate <webhook> [--grace-seconds <seconds>] [--approval <id>]', {
    about: 'give a webhook a new signing secret, which is shown only once',
    json: 'print JSON on one line: {webhook, secret}',
    run: async (api, { webhook, grace_seconds, approval }) =>
      change(api, `${await pathOf(api, webhook)}/rotate-secret`, { grace_seconds }, approval),
    says(rotated) {
      const { previous_secret_until: until } = rotated.webhook
      const previous =
        until === undefined
          ? 'The previous secret no longer signs.'
          : `The previous secret signs until ${until}, too.`
      return `${describe(rotated)}\n${previous}`
    },
  })
  defineDeliveries(webhooks)
}

function defineDeliveries(webhooks: Group<Api, typeof WORDS>): void {
  webhooks.command('recover <webhook> --since <time> [--until <time>]', {
    about: 'deliver the events of a time that were not delivered, each once',
    json: 'print JSON on one line: {recovered}',
    async run(api, { webhook, since, until }) {
      const path = `${await pathOf(api, webhook)}/recover`
      let recovered = 0
      let page_cursor: string | undefined
      do {
        const part = await api.call<{ recovered: number; next_page_cursor?: string }>('POST', path, {
          ...{ since, until, page_cursor },
        })
        recovered += part.recovered
        page_cursor = part.next_page_cursor
      } while (page_cursor !== undefined)
      return { recovered }
    },
    says: ({ recovered }) => `deliveries due now: ${recovered}`,
  })
  webhooks.list('deliveries <webhook> [--status <status>] [--type <type>] [--limit <number>]', {
    about: 'list deliveries, newest event first',
    help: '\ntime is in UTC; tries is the number of attempts; next says when the next one is due.',
    none: 'there are no such deliveries',
    async run(api, { webhook, status, type, limit = LISTED }) {
      const path = await pathOf(api, webhook)
      const query = new URLSearchParams({
        limit: String(limit),
        ...(status && { status }),
        ...(type && { type }),
      })
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

/** Sends a change, with the approval that it was given. Throws the service's refusal, with the next step for the person. */
async function change(api: Api, path: string, body: object, approval: string | undefined) {
  const query = approval === undefined ? '' : `?approval_id=${approval}`
  try {
    // JSON leaves out what is undefined.
    return await api.call<WithSecret>('POST', `${path}${query}`, body)
  } catch (error) {
    if (!(error instanceof Refused) || error.slug !== 'approval-required') throw error
    throw new Error(
      `${error.message}. After they have approved, run the same command with --approval and its id`,
      { cause: error },
    )
  }
}

/** Reads the API key that deliveries carry. A file keeps it out of the list of processes and the shell's history. */
async function apiKeyOf(
  header: string | undefined,
  file: string | undefined,
): Promise<WebhookAuthBody | undefined> {
  if (header === undefined && file === undefined) return undefined
  if (header === undefined || file === undefined)
    throw new Error('--api-key-header and --api-key-file are given together')
  const key = (await readFile(file, 'utf8')).trimEnd()
  if (key === '') throw new Error(`--api-key-file ${file} has no API key`)
  return { type: 'API_KEY', header, key }
}

const describe = ({ webhook: { id, name, url, event_types }, secret }: WithSecret) =>
  linesOf({ id, name, url, event_types: event_types.join(', '), secret })

const isDelivered = ({ status_code: status = 0 }: WebhookAttempt) => status >= 200 && status <= 299

/** Waits for the first attempt of a delivery. Throws when none is made in time. */
async function firstAttempt(api: Api, path: string): Promise<WebhookAttempt> {
  const read = async () => (await api.call<ListPage<WebhookAttempt>>('GET', path)).items.at(-1)
  const first = await until(TEST_WAIT_MS_MAX, read)
  if (first !== undefined) return first
  throw new Error(`no attempt was made within ${TEST_WAIT_MS_MAX / 1000} s: does a worker run?`)
}

/** Formats how long something takes from now in at most 4 characters: 59s, 59m, 29h. */
function span(ms: number): string {
  if (ms <= 0) return 'now'
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 60) return `${seconds}s`
  return seconds < 3600 ? `${Math.floor(seconds / 60)}m` : `${Math.floor(seconds / 3600)}h`
}

/** Finds the path of a webhook by its id or its name. Throws where no webhook has that name. */
async function pathOf(api: Api, named: string): Promise<string> {
  if (UUID.test(named)) return `/v2/webhooks/${named.toLowerCase()}`
  for await (const { id, name } of eachWebhook(api)) if (name === named) return `/v2/webhooks/${id}`
  throw new Error(`there is no webhook with the name ${named}`)
}

/** Iterates over the customer's webhooks, newest first. */
async function* eachWebhook(api: Api): AsyncGenerator<Webhook, void> {
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const page: ListPage<Webhook> = await api.call<ListPage<Webhook>>(
      'GET',
      `/v2/webhooks?limit=${PAGE}${cursor}`,
    )
    yield* page.items
    cursor = page.next_page_cursor && `&page_cursor=${page.next_page_cursor}`
  }
}

function types(text: string): string[] {
  return text.split(',').map((name) => eventType(name.trim()))
}

function uuids(text: string): string[] {
  return text.split(',').map((id) => uuid(id.trim()))
}
