import type { Queryable } from './database.ts'

/** Every advisory lock of the product, with what it protects. Each is held to the end of its transaction. */
const LOCKS = {
  /** Processes that start together migrate one after the other. */
  migrate: 7_311_001,
  /** Keys that sign access tokens are made, rotated and retired one at a time. */
  signingKeys: 7_311_002,
  /** Of processes that start together, one makes the demo customer. */
  demo: 7_311_003,
  /** Nobody sets a reward rate while statements are generated. */
  rewardRates: 7_311_004,
  /** Per network: one process signs its transactions. */
  signing: 7_311_006,
  /** Per network: one worker compares sums of small deposits with the minimum. Two that add a deposit each would miss the sum. */
  minimum: 7_311_009,
  /** A database is stamped once, with its mode and issuer. */
  stamp: 7_311_015,
  /** Signing shares this lock. So a freeze can wait for the transactions that read the freezes before it was added. */
  signingUnderFreezes: 7_311_016,
  /** Per customer: its webhooks become ACTIVE one after the other, so that the limit on their number holds. */
  activeEndpoints: 7_311_020,
  /** One process at a time invents a holding of an earlier month and makes its statement: two would miss each other's holding. */
  earlierStatement: 7_311_021,
  /** One operator is made for the demo's console. */
  demoConsole: 7_311_058,
} as const
type Lock = keyof typeof LOCKS

/** Waits for a lock, or for the lock `of` one network or customer, and holds it to the end of the transaction. */
export const takeLock = (tx: Queryable, lock: Lock, of?: string): Promise<unknown> =>
  of === undefined
    ? tx.query('select pg_advisory_xact_lock($1)', [LOCKS[lock]])
    : tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [LOCKS[lock], of])

/** Waits for a lock that several transactions share, and that none can take exclusively meanwhile. */
export const shareLock = (tx: Queryable, lock: Lock): Promise<unknown> =>
  tx.query('select pg_advisory_xact_lock_shared($1)', [LOCKS[lock]])

export async function holdersOf(db: Queryable, lock: Lock): Promise<string[]> {
  const { rows } = await db.query<{ holder: string }>(
    `select virtualtransaction as holder from pg_locks
     where locktype = 'advisory' and granted and objsubid = 1 and classid = 0 and objid = $1
       and database = (select oid from pg_database where datname = current_database())`,
    [LOCKS[lock]],
  )
  return rows.map(({ holder }) => holder)
}
