import { strict as assert } from 'node:assert'
import type pg from 'pg'
import { arrayLiteral } from './array-literal.ts'
import { beginPlanned, commit, inOrder, onCitus, type Queryable, type Transaction } from './database.ts'

/**
 * One transaction for the work of several customers, each of which works as in a transaction of its own and sees the rows of
 * nobody else. What they ask before the event loop turns is sent together, and what several ask alike is one statement.
 */

/** A statement that reads or locks rows of the customer `$1`. It casts its other parameters, which are texts, itself. */
export interface CustomerRead {
  name: string
  text: string
  values: readonly string[]
  /** Planned each time for the size of the tables, unless several customers ask. */
  isUnnamed?: boolean
}

/** Reads rows of a customer. Where others share the transaction, a statement `for update` skips what another transaction has locked. */
export async function readOfCustomer<Row extends pg.QueryResultRow>(
  tx: Queryable,
  read: CustomerRead,
): Promise<Row[]> {
  if (!isShared(tx)) return rowsOf<Row>(tx, read)
  return tx.shared.ask(tx, read.name, read, (all, reads) =>
    reads.length === 1 ? rowsOf<Row>(all, reads[0]!).then((rows) => [rows]) : rowsOfEach<Row>(all, reads),
  )
}

const rowsOf = async <Row extends pg.QueryResultRow>(
  tx: Queryable,
  { name, text, values, isUnnamed }: CustomerRead,
): Promise<Row[]> =>
  (await tx.query<Row>({ ...(isUnnamed !== true && { name }), text, values: [...values] })).rows

/** Reads for several customers at once: a set with their parameters, in their order, and the statement for each of its rows. */
async function rowsOfEach<Row extends pg.QueryResultRow>(
  tx: Queryable,
  reads: readonly CustomerRead[],
): Promise<Row[][]> {
  const [{ name, text, values }] = reads as [CustomerRead]
  const { rows } = await tx.query<Row & { reader: number }>({
    name: `*${name}`,
    text: ofEach(text, values.length),
    values: values.map((_, index) => arrayLiteral(reads.map((read) => read.values[index]))),
  })
  const each: Row[][] = reads.map(() => [])
  for (const row of rows) each[row.reader - 1]!.push(row)
  return each
}

/** The statement for each row of a set. What it casts is cast once for each: a cast of its own would run for each row it compares. */
function ofEach(text: string, count: number): string {
  const names = Array.from({ length: count }, (_, index) => `p${index + 1}`)
  const arrays = names.map((_, index) => `$${index + 1}::${index === 0 ? 'uuid' : 'text'}[]`)
  const cast = names.map((name, index) => {
    const [, type] = new RegExp(`\\$${index + 1}::(\\w+(\\[\\])?)`).exec(text) ?? []
    return type === undefined ? name : `${name}::${type}`
  })
  const own = text.replaceAll(/\$(\d+)/g, 's.p$1').replace('for update', 'for update skip locked')
  return `select q.*, s.n::int as reader
    from (select ${cast.join(', ')}, n from unnest(${arrays.join(', ')}) with ordinality as u (${names.join(', ')}, n) offset 0) s
    cross join lateral (${own}) q`
}

/**
 * Asks together with the others that share the transaction and ask with the same key: `send` gets what each of them asks, in the
 * order of the customers. Undefined where nobody shares the transaction.
 */
export function askTogether<Asked>(
  tx: Transaction,
  key: string,
  asked: Asked,
  send: (tx: Transaction, each: readonly Asked[]) => Promise<void>,
): Promise<void> | undefined {
  if (!isShared(tx)) return undefined
  tx.hasWritten = true
  return tx.shared.ask(tx, key, asked, async (all, each) => {
    await send(all, each)
    return each.map(() => undefined)
  })
}

/** Whether other customers' work shares the transaction. */
export const isShared = (tx: unknown): tx is Member => tx instanceof Member

/** The shared transaction as the work of one customer uses it. */
class Member {
  atCommit: Transaction['atCommit'] = []
  asked: Asked[] = []
  hasWritten = false
  end: End | undefined
  readonly shared: SharedTransaction

  constructor(shared: SharedTransaction) {
    this.shared = shared
  }

  /** Sends a statement for this customer alone, in its place among those of the others. */
  query(statement: string | pg.QueryConfig, values?: unknown[]): Promise<unknown> {
    if (statement === 'commit' || statement === 'rollback') return this.shared.end(this, statement)
    const text = typeof statement === 'string' ? statement : statement.text
    this.hasWritten ||= !/^\s*select/i.test(text)
    return this.shared.ask(this, undefined, undefined, async (all) => [
      await all.query(statement as string, values),
    ])
  }

  release(): never {
    throw new Error('a shared transaction is released by whoever began it')
  }
}

/** A statement of a member. Those with one key are sent by one call, which resolves with the answer of each. */
interface Asked {
  key: string | undefined
  asked: unknown
  send: (tx: Transaction, each: readonly unknown[]) => Promise<unknown[]>
  resolve: (answer: never) => void
  reject: (error: unknown) => void
}

interface End {
  statement: 'commit' | 'rollback'
  resolve: () => void
  reject: (error: unknown) => void
}

class SharedTransaction {
  readonly #tx: Transaction
  readonly members: Member[]
  #isSending = false
  #failure: Error | undefined
  hasEnded = false
  #settle!: { resolve: () => void; reject: (error: unknown) => void }
  /** Resolves once the transaction has ended, and rejects with what failed it. */
  readonly ended = new Promise<void>((resolve, reject) => (this.#settle = { resolve, reject }))

  constructor(tx: Transaction, count: number) {
    this.#tx = tx
    this.members = Array.from({ length: count }, () => new Member(this))
    // It is awaited only once all members have stopped.
    this.ended.catch(() => undefined)
  }

  ask<What, Answer>(
    member: Member,
    key: string | undefined,
    asked: What,
    send: (tx: Transaction, each: readonly What[]) => Promise<Answer[]>,
  ): Promise<Answer> {
    assert(member.end === undefined, 'no statement may follow the commit')
    const answer = new Promise<Answer>((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      member.asked.push({ key, asked, send: send as Asked['send'], resolve, reject })
      this.#sendSoon()
    })
    // Whoever asked may have thrown since, and wait for nothing any more.
    answer.catch(() => undefined)
    return answer
  }

  /** Ends the work of a member. What it has asked is sent with the commit, once everybody has ended. */
  end(member: Member, statement: 'commit' | 'rollback'): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      member.end = { statement, resolve, reject }
      this.#sendSoon()
    })
  }

  /** Goes on without a member. */
  leave(member: Member): void {
    this.members.splice(this.members.indexOf(member), 1)
    this.#sendSoon()
  }

  /** Fails everybody: what is asked, and what will be. */
  fail(error: unknown): void {
    if (this.#failure !== undefined) return
    this.#failure = error as Error
    this.#settle.reject(error)
    for (const { asked, end } of this.members)
      for (const { reject } of [...asked, end ?? []].flat()) reject(error)
  }

  #sendSoon(): void {
    if (this.#isSending) return
    this.#isSending = true
    afterPromises(() => this.#send())
  }

  #send(): void {
    this.#isSending = false
    if (this.#failure !== undefined) return
    const haveEnded = this.members.every(({ end }) => end !== undefined)
    const asked = this.members.map((member) => {
      // Audit heads are locked last, and not while others still wait for locks: so the last statements wait for everybody.
      if (member.end !== undefined && !haveEnded) return []
      const each = member.asked
      if (each.length > 0) member.asked = []
      return each
    })
    const sent = alignedByKey(asked).map((alike) => this.#sendAlike(alike))
    // A statement that could not even be sent fails before that.
    if (haveEnded) process.nextTick(() => afterPromises(() => void this.#end(sent)))
  }

  async #sendAlike(alike: readonly Asked[]): Promise<void> {
    try {
      const answers = await alike[0]!.send(
        this.#tx,
        alike.map(({ asked }) => asked),
      )
      alike.forEach(({ resolve }, index) => resolve(answers[index] as never))
    } catch (error) {
      this.fail(error)
      for (const { reject } of alike) reject(error)
    }
  }

  /** Sends the end behind the last statements. If one of them fails, PostgreSQL takes the commit for a rollback. */
  async #end(sent: readonly Promise<void>[]): Promise<void> {
    if (this.#failure !== undefined) return
    const ends = this.members.map(({ end }) => end!)
    const isCommit = ends.some(({ statement }) => statement === 'commit')
    try {
      await inOrder([...sent, isCommit ? commit(this.#tx) : this.#tx.query('rollback')])
    } catch (error) {
      this.fail(error)
    }
    if (this.#failure !== undefined) return
    this.hasEnded = true
    this.#settle.resolve()
    for (const { resolve } of ends) resolve()
    if (isCommit) this.#tx.onChange?.()
  }
}

/**
 * Calls back once every promise that can be settled without an event is settled, with what then follows: all members have asked.
 * A turn of the event loop would handle the requests that have come in, too (measured: 1 to 8 ms each).
 */
const afterPromises = (then: () => void): void => queueMicrotask(() => process.nextTick(then))

/** Puts the statements of all members into one order that keeps the order of each, with those of one key together. */
function alignedByKey(members: readonly (readonly Asked[])[]): Asked[][] {
  const aligned: Asked[][] = []
  for (const asked of members) {
    let place = 0
    for (const statement of asked) {
      const { key } = statement
      const found =
        key === undefined ? -1 : aligned.findIndex(([first], index) => index >= place && first!.key === key)
      // Behind those of the customers before, so that locks are taken in the order of the customers.
      if (key === undefined) while (aligned[place]?.[0]!.key === undefined && place < aligned.length) place++
      if (found === -1) aligned.splice(place, 0, [statement])
      else aligned[found]!.push(statement)
      place = (found === -1 ? place : found) + 1
    }
  }
  return aligned
}

/** Any other join reads whole tables, also when a table has grown since the statement was planned. */
const LOOKING_UP_BY_KEYS = '; set local enable_hashjoin = off; set local enable_mergejoin = off'

/**
 * Does the work of several customers in one transaction, which waits for no lock longer than `lockMsMax`. Each work ends with
 * `commit` or a rollback, of what it did itself; the transaction commits once, when all have ended. A work that throws before it
 * has written leaves, and the others go on without it: its result is undefined. Throws what failed the transaction, for the
 * caller to roll it back, or what a work threw after the commit.
 */
export async function shareTransaction<T>(
  tx: Transaction,
  works: readonly ((tx: Transaction) => Promise<T>)[],
  lockMsMax: number,
): Promise<(T | undefined)[]> {
  // The planner of Citus takes no statement of several customers.
  if (onCitus(tx)) return works.map(() => undefined)
  const begun = beginPlanned(tx, `${LOOKING_UP_BY_KEYS}; set local lock_timeout = ${lockMsMax}`)
  const shared = new SharedTransaction(tx, works.length)
  const members = [...shared.members]
  const worked = Promise.all(
    works.map(async (work, index) => {
      const member = members[index]!
      try {
        return await work(member as unknown as Transaction)
      } catch (error) {
        if (shared.hasEnded) throw error
        if (member.hasWritten || member.end !== undefined) shared.fail(error)
        else shared.leave(member)
        return undefined
      }
    }),
  )
  const [, results] = await inOrder([begun, worked, shared.ended])
  return results
}
