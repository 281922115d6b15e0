import type { FastifyInstance } from 'fastify'
import type { Database } from '../db/database.ts'
import { problem } from '../http/problems.ts'
import type { Requests } from '../http/requests.ts'

/** GET /health/live: the process answers. GET /health/ready: so does its database, and it is not about to stop. */
export async function healthRoutes(
  app: FastifyInstance,
  { db, requests }: { db: Database; requests: Requests },
): Promise<void> {
  app.get('/health/live', { schema: { hide: true } }, async () => ({ status: 'live' }))

  app.get('/health/ready', { schema: { hide: true } }, async () => {
    if (requests.draining) throw problem.unavailable('this process is about to stop')
    await db.query('select 1 from customers limit 1').catch((error: unknown) => {
      throw problem.unavailable('the database does not answer', error)
    })
    return { status: 'ready' }
  })
}
