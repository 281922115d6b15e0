import { signal } from '@preact/signals'
import { API } from './address.ts'
import { ask } from './connection.ts'
import { customer, headersOf, session } from './session.ts'

/**
 * Events as they happen: one stream for the whole page (Server-Sent Events). It is read with `fetch`, because an EventSource
 * cannot send the headers that mark a request as this page's. After a break, the stream goes on after the last event
 * received. A hidden tab has no stream: a browser opens at most six connections to a service, and a seventh tab would wait
 * for ever.
 */

interface LiveEvent {
  id: string
  type: string
  /** The record that changed. */
  object: { id: string }
}

/** Whether the stream is open: the page then shows what happens without being loaded again. */
export const live = signal(false)

/** Undefined: events may have been missed that the stream will not send. */
type Listener = (event: LiveEvent | undefined) => void
const listeners = new Set<Listener>()
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 15_000]
/** Without a byte for this long, the connection is gone: the service sends a comment every 15 seconds. */
const SILENT_MS_MAX = 45_000
let running = false
let lastId = ''
/** The customer whose events the stream has. */
let followed = ''

/** Calls the listener with each event from now on. Returns a function that ends the calls. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener)
  if (!running) void run()
  return () => void listeners.delete(listener)
}

async function run(): Promise<void> {
  running = true
  let failures = 0
  while (listeners.size > 0 && session.value !== undefined) {
    if (document.hidden) await shown()
    const began = Date.now()
    const again = await follow().catch(() => true)
    live.value = false
    if (!again) break
    if (document.hidden) continue
    failures = Date.now() - began > 10_000 ? 0 : failures + 1
    await new Promise((resolve) => setTimeout(resolve, PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)]))
  }
  running = false
}

const shown = (): Promise<void> =>
  new Promise((resolve) => document.addEventListener('visibilitychange', () => resolve(), { once: true }))

/** Reads one connection to its end. False: another attempt is useless, as without the scope. */
async function follow(): Promise<boolean> {
  const control = new AbortController()
  if (followed !== customer.peek()) {
    followed = customer.peek()
    lastId = ''
  }
  const stopWatching = customer.subscribe((id) => id !== followed && control.abort())
  let silence = setTimeout(() => control.abort(), SILENT_MS_MAX)
  const onHidden = () => control.abort()
  document.addEventListener('visibilitychange', onHidden)
  try {
    const answer = await ask(`${API}/v2/events/stream`, {
      headers: { ...headersOf(true), ...(lastId !== '' && { 'last-event-id': lastId }) },
      signal: control.signal,
    })
    if (answer.status === 400 && lastId !== '') {
      // The events after the last one are too old for a stream.
      lastId = ''
      return true
    }
    if (!answer.ok || answer.body === null) return answer.status >= 500 || answer.status === 429
    live.value = true
    // Without an earlier event, there is no event to go on from: what the page has read may be from before the stream.
    if (lastId === '') for (const listener of listeners) listener(undefined)
    let text = ''
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done || listeners.size === 0) break
      clearTimeout(silence)
      silence = setTimeout(() => control.abort(), SILENT_MS_MAX)
      text += value
      const blocks = text.split('\n\n')
      text = blocks.pop()!
      blocks.forEach(take)
    }
    control.abort()
    return true
  } finally {
    clearTimeout(silence)
    stopWatching()
    document.removeEventListener('visibilitychange', onHidden)
  }
}

function take(block: string): void {
  const lines = block.split('\n')
  const member = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
  lastId = member('id') ?? lastId
  const data = member('data')
  if (data === undefined) return
  const event = JSON.parse(data) as LiveEvent
  for (const listener of listeners) listener(event)
}
