import type { Queryable } from '../src/db/database.ts'
import { PRIVILEGES } from '../src/db/tables.ts'

/**
 * Returns the tables of the schema `public` that have no line in `PRIVILEGES`. The privileges of a partitioned table hold
 * for its partitions, which the service's role cannot name.
 */
export async function undeclaredTables(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname <> all ($1)
     order by 1`,
    [Object.keys(PRIVILEGES)],
  )
  return rows.map(({ name }) => name)
}
