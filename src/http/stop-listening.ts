import type { Server as HttpServer } from 'node:http'
import { Server } from 'node:net'
import { setImmediate, setTimeout as pause } from 'node:timers/promises'
import type { Requests } from './requests.ts'

/** How long an idle connection stays open after the listener closed, because a request may be on its way. */
const LINGER_MS = 500
/** How long to wait for a request that has not arrived in full. */
const ARRIVAL_MS_MAX = 3_000
const RECHECK_MS = 20

/**
 * Drains the API: readiness fails for `drainMs`, the listener closes, and requests under way are answered with
 * `Connection: close`.
 */
export async function stopListening(server: HttpServer, requests: Requests, drainMs: number): Promise<void> {
  requests.drain()
  await pause(drainMs)
  // Not the HTTP server's own close(): it closes idle connections at once, although a request may be on its way.
  const closed = new Promise((resolve) => Server.prototype.close.call(server, resolve))
  const isClosed = closed.then(() => true)
  const start = performance.now()
  const elapsed = () => performance.now() - start
  while (!(await Promise.race([isClosed, pause(RECHECK_MS, false)]))) {
    // Data that arrived while this process did not run is read first. To close its connection would leave it unanswered.
    await setImmediate()
    if (elapsed() >= LINGER_MS) server.closeIdleConnections()
    if (elapsed() >= ARRIVAL_MS_MAX && requests.accepted === 0) server.closeAllConnections()
  }
}
