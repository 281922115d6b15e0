import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Database } from '../db/database.ts'
import { Problem, problem } from '../contract/problems.ts'
import type { Requests } from '../http/requests.ts'

/** How long the database may take for the answer at /health/ready. Load balancers wait for 3 s. */
const READY_MS_MAX = 2_000
/** For how long an earlier answer of the database counts while it takes longer than that. */
const READY_BEFORE_MS_MAX = 10_000

/**
 * GET /health/live: the process answers. GET /health/ready: so does its database, and it is not about to stop. Both are
 * answered however many requests are under way: a load balancer would take a process out because it is busy, and leave
 * its work to the others, which would follow. So one question is with the database at a time, and one that waits behind
 * requests for a connection does not count as no answer at once.
 */
export async function healthRoutes(
  app: FastifyInstance,
  { db, requests }: { db: Database; requests: Requests },
): Promise<void> {
  const config = { counts: 'always answered' } as const
  app.get('/health/live', { config, schema: { hide: true } }, async () => ({ status: 'live' }))

  let asking: Promise<void> | undefined
  let answeredAt = -Infinity
  const ask = () =>
    (asking ??= db
      .query('select 1 from customers limit 1')
      .then(() => void (answeredAt = performance.now()))
      .finally(() => (asking = undefined)))

  app.get('/health/ready', { config, schema: { hide: true } }, async () => {
    if (requests.draining) throw problem.unavailable('this process is about to stop')
    try {
      const answered = await withinMs(ask(), READY_MS_MAX)
      if (!answered && performance.now() - answeredAt > READY_BEFORE_MS_MAX)
        throw problem.unavailable('the database does not answer')
    } catch (error) {
      throw error instanceof Problem ? error : problem.unavailable('the database does not answer', error)
    }
    return { status: 'ready' }
  })
}

/** Whether the work ended in time. Throws what it throws until then. */
async function withinMs(work: Promise<void>, ms: number): Promise<boolean> {
  const tooLong = new AbortController()
  const late = pause(ms, false, { signal: tooLong.signal }).catch(() => false)
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    tooLong.abort()
  }
}
