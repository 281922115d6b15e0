import type { Pool as Database, PoolClient as Transaction, QueryConfig, QueryResult } from 'pg'

type Queryable = Pick<Database, 'query'>

/** The party that waits for an answer, such as the response of a request. It is destroyed once nobody waits any more. */
export interface Asker {
  readonly destroyed: boolean
}

/** The asker of work that many requests wait for. */
const EVERYBODY: Asker = { destroyed: false }

/** Gives each customer its places among all connections (`Shares`). */
interface Places {
  take(customerId: string, asker: Asker): Promise<void>
  giveBack(customerId: string): void
}

/**
 * A pool as one request uses it: each statement outside a transaction, and each transaction, waits for a place of its
 * customer before it takes a connection. So the slow statements of one customer leave connections to the others. A request
 * that has a transaction open must not ask for a second connection: it would wait for itself.
 */
export class CustomerPool {
  readonly pool: Database
  readonly #places: Places
  readonly #customerId: string
  readonly #asker: Asker

  constructor(pool: Database, places: Places, customerId: string, asker: Asker) {
    this.pool = pool
    this.#places = places
    this.#customerId = customerId
    this.#asker = asker
  }

  // These are methods of the class: closures for each instance took half a microsecond of every request.
  async query(statement: string | QueryConfig, values?: unknown[]): Promise<QueryResult> {
    await this.#places.take(this.#customerId, this.#asker)
    try {
      return await this.pool.query(statement, values)
    } finally {
      this.#places.giveBack(this.#customerId)
    }
  }

  async connect(): Promise<Transaction> {
    await this.#places.take(this.#customerId, this.#asker)
    try {
      const session: Transaction = await this.pool.connect()
      // The pool gives each session a new `release` with each connect.
      const release = session.release.bind(session)
      session.release = (broken) => {
        release(broken)
        this.#places.giveBack(this.#customerId)
      }
      return session
    } catch (error) {
      this.#places.giveBack(this.#customerId)
      throw error
    }
  }

  /** The same part for work that is done once for all requests of the customer, and so does not end with one request. */
  forEverybody(): CustomerPool {
    return new CustomerPool(this.pool, this.#places, this.#customerId, EVERYBODY)
  }

  /** The customer's part of another pool. */
  partOf(pool: Database): Database {
    return asDatabase(new CustomerPool(pool, this.#places, this.#customerId, this.#asker))
  }
}

/** The customer's part of the pool, in the type that operations expect. Operations use no other members of a pool. */
export const asDatabase = (part: CustomerPool): Database => part as unknown as Database

/** The customer's part for work that is done once for all its requests. */
export const forEverybody = (db: Database): Database =>
  db instanceof CustomerPool ? asDatabase(db.forEverybody()) : db

/** The pool itself, for what is read once for all customers. */
export const poolOf = <Db extends Queryable>(db: Db): Db | Database =>
  db instanceof CustomerPool ? db.pool : db
