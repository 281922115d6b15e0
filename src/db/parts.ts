import { inOrder, type Database, type Queryable } from './database.ts'

/*
 * A database may have parts, each a server with some of the customers. A plain database is its only part. Whoever has the
 * connections to the whole database finds a customer's part by these functions, and needs to know nothing of how many there are.
 */

/** A server that has customers. The name is empty for a plain database. */
export interface Part {
  readonly name: string
  readonly db: Database
}

/** The parts of a database, as far as this process knows. */
export interface Parts {
  readonly of: (customerId: string) => Part
  /** The parts that have customers now: another array once they have changed. */
  readonly list: () => readonly Part[]
  /** Reads at once which part has which customer. */
  readonly refresh: () => Promise<void>
}

const known = new WeakMap<Queryable, Parts>()

/** Records the parts that are reached by these connections to a whole database. */
export const setParts = (db: Database, parts: Parts): void => void known.set(db, parts)

const parts = (db: Database): Parts => known.get(db) ?? onlyItself(db)

function onlyItself(db: Database): Parts {
  const part = { name: '', db }
  const list = [part]
  const itself = { of: () => part, list: () => list, refresh: async () => undefined }
  known.set(db, itself)
  return itself
}

/** The part that has the customer. It takes no query: the customer's id determines it. */
export const partOf = (db: Database, customerId: string): Part => parts(db).of(customerId)

/** Connections for the records of this customer. */
export const forCustomer = (db: Database, customerId: string): Database => partOf(db, customerId).db

/** All parts: another array once they have changed. */
export const partsOf = (db: Database): readonly Part[] => parts(db).list()

const readers = new WeakMap<Queryable, Queryable>()

/** Records what reads the customers of this part and no others. */
export const setReader = (db: Database, reader: Queryable): void => void readers.set(db, reader)

/**
 * Reads the customers of this part and no others, for statements that look for work. Each joins within a customer, its
 * answer is merely a hint, and it may run once for each of several pieces of a table. So it must name each table behind
 * `from` or `join`, give it an alias where a column needs its name, and not need the whole answer in order.
 */
export const ownCustomers = (db: Queryable): Queryable => readers.get(db) ?? db

/**
 * Looks in all parts, at once, for the record of a customer that is not known, and returns the first record found. If no
 * part has it, throws the error of a part that failed.
 */
export async function findInParts<T>(
  db: Database,
  ask: (part: Queryable) => Promise<T | undefined>,
): Promise<T | undefined> {
  const asked = partsOf(db)
  const found = await firstOf(asked, ask)
  if (found !== undefined) return found
  // The customer may have moved to a part that this process does not know yet.
  await parts(db).refresh()
  const now = partsOf(db)
  return now === asked ? undefined : firstOf(now, ask)
}

async function firstOf<T>(
  among: readonly Part[],
  ask: (part: Queryable) => Promise<T | undefined>,
): Promise<T | undefined> {
  const asked = among.map(({ db }) => ask(ownCustomers(db)))
  const found = asked.map(async (asking) => (await asking) ?? Promise.reject(new Error('not here')))
  return Promise.any(found).catch(async () => (await inOrder(asked))[0])
}
