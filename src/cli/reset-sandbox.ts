import { sessionsOfProcess, transaction, WRITER, type Database, type Transaction } from '../db/database.ts'
import { isDistributed } from '../db/distribution.ts'
import { FUNCTIONS } from '../db/privileges.ts'
import { DROP_CLOCK } from '../db/sandbox-clock.ts'
import { PRIVILEGES } from '../db/tables.ts'
import { readStamp, requireGenuineStamp } from '../program/deployment.ts'
import type { Settings } from '../settings.ts'

/**
 * Empties a sandbox (docs/command-line.md, `bursar sandbox reset`): drops all tables of Bursar, as the role that owns them.
 * The caller migrates again, and the next start makes the demo. Entries and the audit log are append-only for the service's
 * role, so a running service cannot reset.
 */

/** Why a database is not reset. The message says what to do. */
export class NotReset extends Error {}

/** Another process uses the database. */
export class InUse extends NotReset {}

export interface ToReset {
  database: string
  customers: number
  transfers: number
}

/**
 * Throws an Error unless the database is a sandbox that has used no test network, is not distributed, and is used by no
 * other process. Returns what would be deleted.
 */
export async function requireResettable(
  service: Database,
  settings: Pick<Settings, 'mode' | 'networksFile'>,
): Promise<ToReset> {
  return transaction(service, async (tx) => {
    await requireEmptiable(tx, settings)
    await requireNobodyElse(tx)
    const { rows } = await tx.query<ToReset>(
      `select current_database() as database, (select count(*)::integer from customers) as customers,
              (select count(*)::integer from transfers) as transfers`,
    )
    return rows[0]!
  })
}

/** Throws an Error unless the database is a sandbox that has used no test network and is not distributed. */
async function requireEmptiable(
  tx: Transaction,
  settings: Pick<Settings, 'mode' | 'networksFile'>,
): Promise<void> {
  if (settings.mode !== 'sandbox') throw new NotReset('BURSAR_MODE: only a sandbox is reset')
  await requireSandbox(tx)
  if (settings.networksFile !== undefined || (await has(tx, 'select 1 from network_genesis limit 1')))
    throw new NotReset(
      'this sandbox has used a test network: its wallets hold coins that the new records would not know; use another database',
    )
  if (await isDistributed(tx))
    throw new NotReset('a distributed database is not reset: make another one (docs/guides/scale-out.md)')
  await requireGenuineStamp(tx)
}

/** Requires the database's own stamp of a sandbox. The setting alone may be a mistake. */
async function requireSandbox(tx: Transaction): Promise<void> {
  const stamp = await readStamp(tx)
  if (stamp?.mode !== 'sandbox')
    throw new NotReset(
      stamp === undefined
        ? 'this database has no stamp of a sandbox: bursar serve writes it'
        : 'this database is live: it is never reset',
    )
}

async function requireNobodyElse(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where datname = current_database() and pid <> all ($2) and application_name like $1 || '%'`,
    [WRITER, sessionsOfProcess()],
  )
  const { count } = rows[0]!
  if (count > 0)
    throw new InUse(`${count} sessions of other processes of Bursar use the database: stop them first`)
}

const has = async (tx: Transaction, text: string): Promise<boolean> => (await tx.query(text)).rowCount !== 0

/** Drops all of Bursar's tables and functions, in one transaction, and nothing of another program. */
export async function dropAll(owner: Database): Promise<void> {
  await transaction(owner, async (tx) => {
    await requireSandbox(tx)
    await requireGenuineStamp(tx)
    const { rows } = await tx.query<{ statement: string }>(
      `
      select format('drop table %I.%I cascade', 'public', relname) as statement
      from pg_class
      where relnamespace = 'public'::regnamespace and relname = any ($1)
      union all
      select format('drop function %s', oid::regprocedure)
      from pg_proc
      where pronamespace = 'public'::regnamespace and proname = any ($2)`,
      [Object.keys(PRIVILEGES), FUNCTIONS],
    )
    for (const { statement } of rows) await tx.query(statement)
    await tx.query(DROP_CLOCK)
  })
}
