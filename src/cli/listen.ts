import { createHash } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { bodyOf } from '../deliveries/body.ts'
import { makeFolder } from '../keys/secret-file.ts'
import { signatureHeaders } from '../http/outbound/signature.ts'
import type { Event } from '../money/records/event.ts'
import { newSigningSecret } from '../money/records/webhook-secrets.ts'
import { readSettings } from '../settings.ts'
import { overApi, type Api } from './call-api.ts'
import { group, type Given } from './define.ts'
import { eventType, lineOf } from './events.ts'
import { stopSignal } from './exit.ts'
import { followEvents, walkStartOf, type EventCursor, type WalkStart } from './follow-events.ts'
import { print } from './output.ts'
import { ownProcess, printError } from './own-process.ts'

const WORDS = {
  '--forward-to <url>': ['address that gets each event as a POST', httpUrl],
  '--type <type>': ['types, such as transfer.*', eventType],
  '--after <place>': ['begin after this event id, at this RFC 3339 time, or now'],
  '--payload <kind>': ['body of the POST (default: THIN)', ['THIN', 'FULL']],
} as const
const USAGE = 'listen [--forward-to <url>] [--type <type...>] [--after <place>] [--payload <kind>]'
type Options = Given<typeof WORDS, typeof USAGE>

export function listenCommand(program: Command): void {
  group(program, [], overApi, WORDS).command(USAGE, {
    about: 'print every event once, and forward it to a program of yours, signed as a webhook is',
    json: 'print JSON: a line with the secret, then one line for each event',
    help: `
Without --after, it continues after the last event that it printed, with the same secret, and begins now the first time.
It keeps both in BURSAR_DATA_DIR, for each address and types. Lost connections are tried again for ever.`,
    run: (api, options) => listen(api, options),
  })
}

async function listen(api: Api, options: Options): Promise<void> {
  const { forward_to: forwardTo, type: types, after } = options
  const { dataDir, webhookSource: source } = readSettings(ownProcess().env)
  const file = stateFile(dataDir, [api.credentials.customer_id, forwardTo ?? '', ...(types ?? [])])
  const kept = await readState(file)
  const secret = kept?.secret ?? newSigningSecret()
  const place = (after === undefined ? placeIn(kept) : undefined) ?? (await walkStartOf(api, after ?? 'now'))
  await makeFolder(dataDir)
  // Written before the announcement: after a restart the secret is the same, and no event is missed.
  writeState(file, { secret, ...place })
  announce(options, secret, place)
  const signal = stopSignal()
  const onFailure = (reason: string) => printError(`${reason}; trying again`)
  let last: EventCursor | undefined
  for await (const event of followEvents(api, { types, ...place, signal, onFailure })) {
    const forwarded =
      forwardTo === undefined ? undefined : await forward(event, { ...options, source, secret })
    report(event, forwarded, options)
    last = { created_at: event.created_at, id: event.id }
    writeState(file, { secret, cursor: last })
  }
  if (last !== undefined && !options.json) print(`continue with: bursar listen --after ${last.id}`)
}

function announce({ forward_to: forwardTo, json }: Options, secret: string, place: WalkStart): void {
  const from = 'cursor' in place ? `after event ${place.cursor.id}` : `from ${place.since}`
  if (json) print({ listening: true, forward_to: forwardTo, secret, ...place })
  else if (forwardTo === undefined) print(`listening ${from}`)
  else print(`forwarding to ${forwardTo}, ${from}; signing secret ${secret}`)
}

interface Forwarded {
  /** Status of the answer; absent when there was none. */
  status?: number
  error?: string
  ms: number
}

const FORWARD_MS_MAX = 15_000

/** Posts an event, with the body and the headers of a webhook's request. Does not throw: a receiver may be down. */
async function forward(
  event: Event,
  { forward_to: forwardTo, payload = 'THIN', source, secret }: Options & { source: string; secret: string },
): Promise<Forwarded> {
  const { text, contentType } = bodyOf({ event, object_id: recordOf(event), is_test: false }, payload, source)
  const timestampSeconds = Math.floor(Date.now() / 1000)
  const start = performance.now()
  const elapsed = () => Math.round(performance.now() - start)
  try {
    const response = await fetch(forwardTo!, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': contentType,
        'user-agent': 'Bursar-Webhooks/listen',
        ...signatureHeaders([secret], { id: event.id, timestampSeconds, body: text }),
      },
      body: text,
      signal: AbortSignal.timeout(FORWARD_MS_MAX),
    })
    await response.body?.cancel()
    return { status: response.status, ms: elapsed() }
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } }
    return { error: cause?.code ?? message, ms: elapsed() }
  }
}

function recordOf({ object }: Event): string {
  if ('identity_id' in object) return object.identity_id
  if ('account_id' in object) return object.account_id
  return object.id
}

function report(event: Event, forwarded: Forwarded | undefined, { json }: Options): void {
  if (json) return print({ ...event, ...(forwarded && { forwarded }) })
  const how = forwarded && `  -> ${forwarded.status ?? forwarded.error} (${forwarded.ms} ms)`
  print(`${lineOf(event)}${how ?? ''}`)
}

function httpUrl(text: string): string {
  if (!URL.canParse(text) || !['http:', 'https:'].includes(new URL(text).protocol))
    throw new InvalidArgumentError('must be an address that begins with http:// or https://.')
  return text
}

/** What a listener keeps for its next start. */
interface State {
  secret: string
  cursor?: EventCursor
  /** The time at which the listener began; kept until the first event. */
  since?: string
}

function placeIn(state: State | undefined): WalkStart | undefined {
  if (state?.cursor !== undefined) return { cursor: state.cursor }
  return state?.since === undefined ? undefined : { since: state.since }
}

const stateFile = (dataDir: string, key: readonly string[]) =>
  join(dataDir, `listen-${createHash('sha256').update(key.join('\n')).digest('hex').slice(0, 12)}.json`)

async function readState(file: string): Promise<State | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as State
  } catch (cause) {
    throw new Error(`${file} is not JSON: remove it`, { cause })
  }
}

/**
 * Writes a temporary file and renames it, so that a listener that dies leaves the old state or the new one. Each event
 * writes the state. Writing synchronously takes a tenth of the time.
 */
function writeState(file: string, state: State): void {
  const fresh = `${file}.${process.pid}`
  writeFileSync(fresh, JSON.stringify(state), { mode: 0o600 })
  renameSync(fresh, file)
}
