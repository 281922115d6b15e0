import { expect, test } from 'vitest'
import { atEnd, cloneDatabase } from '../../test/support.ts'
import { openDatabase } from './database.ts'

test('connections override the planner settings of the database', async () => {
  const { url, owner, drop } = await cloneDatabase(1)
  atEnd(drop)
  const name = new URL(url).pathname.slice(1)
  for (const setting of ['enable_seqscan = on', 'jit = on', `timezone = 'Asia/Tokyo'`])
    await owner.query(`alter database ${name} set ${setting}`)
  const fresh = openDatabase(url, { max: 1, onError: () => undefined })
  atEnd(() => fresh.end())
  const { rows } = await fresh.query(
    `select name, setting from pg_settings where name in ('enable_seqscan', 'jit', 'TimeZone') order by name`,
  )
  expect(rows).toEqual([
    { name: 'TimeZone', setting: 'UTC' },
    { name: 'enable_seqscan', setting: 'off' },
    { name: 'jit', setting: 'off' },
  ])
})
