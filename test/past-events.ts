import { transaction, type Database } from '../src/db/database.ts'
import { idsAt, momentAt, readClock } from '../src/db/ids.ts'

/**
 * Inserts events from `minutesAgo` on, `perMoment` every 20 ms, and returns their ids in order. Their objects are
 * orchestrations that do not exist, because reading events does not need them.
 */
export async function insertPastEvents(
  db: Database,
  customerId: string,
  count: number,
  { perMoment = 7, minutesAgo = 60 } = {},
): Promise<string[]> {
  const { micros } = await transaction(db, readClock)
  const ids: string[] = []
  const times: string[] = []
  for (let at = micros - minutesAgo * 60_000_000; ids.length < count; at += 20_000) {
    const text = new Date(Math.floor(at / 1000)).toISOString().replace('Z', '000Z')
    const newId = idsAt(momentAt(text))
    for (let one = 0; one < perMoment && ids.length < count; one++) {
      ids.push(newId())
      times.push(text)
    }
  }
  await db.query(
    `insert into events (customer_id, id, created_at, type, object_id, is_test)
     select $1, id, created_at, 'orchestration.completed', gen_random_uuid(), false
     from unnest($2::uuid[], $3::timestamptz[]) as e (id, created_at)`,
    [customerId, ids, times],
  )
  return ids
}
