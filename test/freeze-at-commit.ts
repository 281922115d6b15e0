/*
 * The program as test/ascending-walks.program.test.ts runs it. After SIGUSR2, the process stops itself (SIGSTOP) in its next
 * transaction that inserts into the table FREEZE_TABLE, after the insert and before the statements that end the transaction.
 * The process first writes the file FREEZE_FILE, and goes on at SIGCONT.
 */
import { writeFileSync } from 'node:fs'
import pg from 'pg'

const { FREEZE_TABLE, FREEZE_FILE } = process.env
const inserts = new RegExp(`insert into ${FREEZE_TABLE!}\\b`)
let armed = false
process.on('SIGUSR2', () => (armed = true))

/** The end of a transaction: its link of the audit log, whose lock others wait for, and the commit. */
const isEnd = (text: string) => text === 'commit' || text.includes('update audit_heads')

/** For each frozen connection: what its next statements wait for. */
const held = new WeakMap<pg.Client, Promise<void>>()
/** The insert of each connection's current transaction. */
const inserted = new WeakMap<pg.Client, Promise<unknown>>()
type Query = (...args: unknown[]) => unknown
// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const query = pg.Client.prototype.query as Query
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const waiting = held.get(this)
  if (waiting !== undefined) return waiting.then(() => query.apply(this, args))
  const [statement] = args as [string | { text: string }]
  const text = typeof statement === 'string' ? statement : statement.text
  if (text.startsWith('begin')) inserted.delete(this)
  if (isEnd(text) && armed && inserted.has(this)) {
    armed = false
    const frozen = inserted.get(this)!.then(() => {
      writeFileSync(FREEZE_FILE!, 'frozen')
      process.kill(process.pid, 'SIGSTOP')
    })
    const reply = frozen.then(() => query.apply(this, args))
    held.set(this, frozen)
    void frozen.then(() => held.delete(this))
    return reply
  }
  const reply = query.apply(this, args)
  if (inserts.test(text)) inserted.set(this, reply as Promise<unknown>)
  return reply
} as typeof pg.Client.prototype.query

await import('../src/main.ts')
