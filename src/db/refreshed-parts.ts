import type { Database, Queryable } from './database.ts'
import { ownCustomers, partOf, partsOf, type Part } from './parts.ts'
import { Refreshed, type OnFailure } from './refreshed.ts'

/** Whose records a reading is about: those of a part's customers, those that belong to no customer, or all of a plain database. */
export type Whose = 'CUSTOMERS' | 'NOBODY' | 'ALL'

/** A value for each part of a database, about its customers. A part that hangs delays no other. */
export class RefreshedParts<T> {
  readonly #db: Database
  readonly #refreshed: (part: Part) => Refreshed<T>
  /** What belongs to no customer, where the database has parts. */
  readonly #others: Refreshed<T> | undefined
  #listed: readonly Part[] = []
  #parts: ReadonlyMap<string, Refreshed<T>> = new Map<string, Refreshed<T>>()
  #timer: NodeJS.Timeout | undefined

  constructor(
    db: Database,
    first: T,
    read: (db: Queryable, whose: Whose) => Promise<T>,
    onFailure: OnFailure,
  ) {
    const isPlain = partsOf(db).every((part) => ownCustomers(part.db) === db)
    const refreshed = (from: Queryable, whose: Whose) =>
      new Refreshed(first, () => read(from, whose), onFailure)
    this.#db = db
    this.#refreshed = (part) => refreshed(ownCustomers(part.db), isPlain ? 'ALL' : 'CUSTOMERS')
    this.#others = isPlain ? undefined : refreshed(db, 'NOBODY')
  }

  #list(): ReadonlyMap<string, Refreshed<T>> {
    const parts = partsOf(this.#db)
    if (parts !== this.#listed) {
      const before = this.#parts
      this.#parts = new Map(
        parts.map((part) => [part.name, before.get(part.name) ?? this.#refreshed(part)] as const),
      )
      this.#listed = parts
    }
    return this.#parts
  }

  /** The values of all parts that have customers now, and of what belongs to nobody. */
  get all(): Refreshed<T>[] {
    return [...this.#list().values(), ...(this.#others ? [this.#others] : [])]
  }

  /** The values that a customer depends on. */
  of(customerId: string): Refreshed<T>[] {
    return [this.#list().get(partOf(this.#db, customerId).name)!, ...(this.#others ? [this.#others] : [])]
  }

  /**
   * Reads all values, and again at this interval until `stop`. Throws where a plain database, or what belongs to nobody,
   * cannot be read. Of several parts, one that cannot be read does not throw: its customers alone wait for it.
   */
  async start(everyMs: number): Promise<void> {
    await this.#others?.read()
    const [first, ...rest] = [...this.#list().values()].map((part) => part.read())
    if (rest.length === 0) await first
    else await Promise.allSettled([first, ...rest])
    this.#timer = setInterval(() => {
      for (const value of this.all) void value.again()
    }, everyMs).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    for (const value of this.all) await value.stop()
  }
}
