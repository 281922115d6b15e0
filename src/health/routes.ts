import type { FastifyInstance } from 'fastify'
import type { Database } from '../db/database.ts'
import { problem } from '../http/problems.ts'

/** GET /health/live: the process answers. GET /health/ready: so does its database. */
export async function healthRoutes(app: FastifyInstance, { db }: { db: Database }): Promise<void> {
  app.get('/health/live', { schema: { hide: true } }, async () => ({ status: 'live' }))

  app.get('/health/ready', { schema: { hide: true } }, async () => {
    await db.query('select 1 from customers limit 1').catch((error: unknown) => {
      throw problem.unavailable('the database does not answer', error)
    })
    return { status: 'ready' }
  })
}
