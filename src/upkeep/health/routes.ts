import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Database } from '../../db/database.ts'
import { Problem, problem } from '../../contract/problems.ts'
import type { Requests } from '../../http/requests.ts'
import { version } from '../../package.ts'

/** Time limit of the database for /health/ready. Load balancers wait for 3 s. */
const READY_MS_MAX = 2_000
/** How long the last answer of the database still counts while the next one exceeds that limit. */
const READY_BEFORE_MS_MAX = 10_000

/**
 * GET /health/live: the process answers. GET /health/ready: its database answers too, and the process is not stopping. Both
 * name the release, and ignore the limit of requests: otherwise a load balancer would remove a busy process, overload the
 * others and remove them too. So only one query is sent at a time, and a query that waits for a connection does not fail the
 * check at once. The query names no table: an unreachable part of the database must not take out the processes that serve
 * the other customers. `serve` has checked schema and mode at its start.
 */
export async function healthRoutes(
  app: FastifyInstance,
  { db, requests }: { db: Database; requests: Requests },
): Promise<void> {
  const config = { counts: 'always answered' } as const
  app.get('/health/live', { config, schema: { hide: true } }, async () => ({ status: 'live', version }))

  let asking: Promise<void> | undefined
  let answeredAt = -Infinity
  const ask = () =>
    (asking ??= db
      .query('select 1')
      .then(() => void (answeredAt = performance.now()))
      .finally(() => (asking = undefined)))

  app.get('/health/ready', { config, schema: { hide: true } }, async () => {
    if (requests.starting) throw problem.unavailable('this process is starting')
    if (requests.draining) throw problem.unavailable('this process is about to stop')
    try {
      const answered = await withinMs(ask(), READY_MS_MAX)
      if (!answered && performance.now() - answeredAt > READY_BEFORE_MS_MAX)
        throw problem.unavailable('the database does not answer')
    } catch (error) {
      throw error instanceof Problem ? error : problem.unavailable('the database does not answer', error)
    }
    return { status: 'ready', version }
  })
}

/** Whether the work ended in time. Throws its error if it fails in time. */
const withinMs = (work: Promise<void>, ms: number): Promise<boolean> =>
  Promise.race([work.then(() => true), pause(ms, false, { ref: false })])
