import { setTimeout as pause } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import type { Address } from '@solana/addresses'
import type { Queryable } from '../../src/db/database.ts'
import { arraysOf } from '../../src/db/rows.ts'
import type { NewAddress } from '../../src/networks/network.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { NETWORK } from './chain.ts'
import {
  depositKeysOf,
  vouchedAddress,
  type DepositKey,
  type SolanaDepositKeys,
  type VouchedAddress,
} from './deposit-keys.ts'

/**
 * Deposit addresses for processes without the deposit key. They ask in the database under ids that they have drawn, a worker
 * answers, and they keep the answers in memory until they give them out. No address is given out twice, whatever became of
 * the database meanwhile: no id is drawn again, and each worker derives a series of its own, named by the second in which it
 * began. The series and the place in it are so few that an address whose record is lost can be searched for.
 */

/** How many addresses a process asks for together, and how few it may have left before it asks again. */
const TOGETHER = 50
const FEW = 10
/** How often a process looks for the answer, and how many times. A worker answers once a second. */
const LOOK_MS = 100
const LOOKS_MAX = 100

/** Makes a function that takes an address, which no other call gets. It throws a NodeFailure where no worker answers in time. */
function addressesAsked(db: Queryable, publicKey: Address): () => Promise<NewAddress> {
  const ready: NewAddress[] = []
  let asking: Promise<void> | undefined
  const ask = () => {
    asking ??= askFor(db, publicKey)
      .then((answers) => void ready.push(...answers))
      .finally(() => (asking = undefined))
    return asking
  }
  return async () => {
    while (ready.length === 0) await ask()
    // A call that finds none left asks again, and reports the failure.
    if (ready.length <= FEW) ask().catch(() => undefined)
    return ready.pop()!
  }
}

/** Gives out addresses: derived here where the words are, asked for otherwise. */
export function addressGiver(db: Queryable, key: DepositKey): () => Promise<(id: string) => NewAddress> {
  if ('mnemonic' in key) {
    const keys = depositKeysOf(key.mnemonic)
    return async () => (id) => keys.newAddress(id)
  }
  const take = addressesAsked(db, key.publicKey)
  return async () => {
    const asked = await take()
    return () => asked
  }
}

async function askFor(db: Queryable, publicKey: Address): Promise<NewAddress[]> {
  const ids = Array.from({ length: TOGETHER }, () => randomUUID())
  await db.query(
    `insert into asked_addresses (network, id, asked_at)
     select $1, id, statement_timestamp() from unnest($2::uuid[]) as s (id)`,
    [NETWORK, ids],
  )
  try {
    for (let look = 0; look < LOOKS_MAX; look++) {
      const { rows } = await db.query<VouchedAddress>(
        `select id, address, derivation, signature from asked_addresses
         where network = $1 and id = any ($2) and address is not null`,
        [NETWORK, ids],
      )
      if (rows.length > 0) return rows.map((answer) => vouchedAddress(publicKey, answer))
      await pause(LOOK_MS)
    }
    throw new NodeFailure(
      `no worker with the deposit_key of ${NETWORK} has answered: no address is given out`,
    )
  } finally {
    await db.query('delete from asked_addresses where network = $1 and id = any ($2)', [NETWORK, ids])
  }
}

const ANSWERED_MAX = 500

/** Makes a function that answers what processes without the key have asked for, with the addresses of a series of its own. */
export function addressAnswerer(
  db: Queryable,
  keys: Pick<SolanaDepositKeys, 'answersTo'>,
): () => Promise<void> {
  let series: number | undefined
  let place = 0
  return async () => {
    const { rows } = await db.query<{ id: string }>(
      `select id from asked_addresses where network = $1 and address is null order by asked_at, id limit ${ANSWERED_MAX}`,
      [NETWORK],
    )
    if (rows.length === 0) return
    series ??= await beginSeries(db)
    const answers = await keys.answersTo(rows.map(({ id }) => ({ id, path: [series!, place++] })))
    await db.query(
      `
      update asked_addresses a set address = s.address, derivation = s.derivation, signature = s.signature
      from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) as s (id, address, derivation, signature)
      where a.network = $1 and a.id = s.id and a.address is null`,
      [NETWORK, ...arraysOf(answers, 'id', 'address', 'derivation', 'signature')],
    )
    // Of processes that have died.
    await db.query(
      `delete from asked_addresses where network = $1 and asked_at < clock_timestamp() - interval '1 hour'`,
      [NETWORK],
    )
  }
}

/** Series are numbered by seconds from here on: a number of a path has 31 bits, which last for 68 years. */
const FIRST_SERIES = '2026-01-01T00:00:00Z'
/** How many workers may begin in the same second. */
const ATTEMPTS_MAX = 100

/** Begins a series that no other worker has, before or after a restore: its number is the time. */
async function beginSeries(db: Queryable): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const { rows } = await db.query<{ series: string }>(
      `
      insert into address_series (network, series, began_at)
      select $1, extract(epoch from now.at - $2::timestamptz)::bigint + $3, now.at
      from (select clock_timestamp() as at) now
      on conflict (network, series) do nothing
      returning series`,
      [NETWORK, FIRST_SERIES, attempt],
    )
    if (rows[0] !== undefined) return Number(rows[0].series)
  }
  throw new Error(`${ATTEMPTS_MAX} workers have begun to derive addresses of ${NETWORK} in this second`)
}
