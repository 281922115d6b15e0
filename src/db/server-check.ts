import { isIP, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { LISTEN } from './changes.ts'
import { beginSession, CHECKER, CONNECTION_MS_MAX, TCP_LIMITS } from './database.ts'

const EVERY_MS = 1_000
/** How long it may take to answer on an open connection. */
const SILENT_MS = 5_000
/** The wait has parts: after a pause of the whole process, a timer fires before the answer that has arrived is read. */
const PARTS = 10
/** How long the end of the check waits until the server has ended the session. */
const GOODBYE_MS = 1_000

/** No packet comes back from the machine. */
const UNREACHABLE = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])
/** Errors that say nothing about a server, nor about open connections to it: no name service, no file handles. */
const OF_THIS_MACHINE = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EMFILE', 'ENFILE'])

type Answer = 'ANSWER' | 'SILENCE' | 'UNKNOWN'

export interface ServerCheckOptions {
  /** Called when the server falls silent, and when it answers again. */
  onChange: (isSilent: boolean) => void
  /** Called when another process tells of a change (`Changes`). */
  onTold?: (() => void) | undefined
  everyMs?: number
  silentMs?: number
}

interface CheckConnection {
  client: pg.Client
  socket: Socket
  ready: Promise<unknown>
  phase: 'LOOKING_UP' | 'CONNECTING' | 'OPEN'
}

/**
 * Asks a database server each second, over a connection of its own. When no answer comes for five seconds, its machine or the
 * network is gone, or the server hangs. Then all connections of this process to it are ended, and new ones fail at once until it
 * answers again. Otherwise they would wait until TCP gives up, a quarter of an hour later: payments, requests and the worker
 * would stand still, even when a standby has taken over at the same address. An error that comes from the server is an answer.
 */
export class ServerCheck {
  readonly #url: string
  readonly #options: ServerCheckOptions & { everyMs: number; silentMs: number }
  readonly #sockets = new Set<Socket>()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #isSilent = false
  #cause: Error | undefined
  #session: CheckConnection | undefined

  /** Begins to ask the server of this address. `stop` ends that. */
  constructor(url: string, options: ServerCheckOptions) {
    this.#url = url
    this.#options = { everyMs: EVERY_MS, silentMs: SILENT_MS, ...options }
    this.#running = this.#follow()
  }

  readonly socket = (): Socket => {
    const socket = new Socket()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#isSilent) {
      // The socket's own `connect` would look the name up, which cannot be cancelled.
      socket.connect = () => socket
      // The driver listens for errors by then.
      process.nextTick(() => socket.destroy(this.#doesNotAnswer()))
    }
    return socket
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    const session = this.#session
    // A look at the server's sessions right afterwards must not find this one.
    if (session !== undefined && !this.#isSilent)
      await Promise.race([session.client.end(), pause(GOODBYE_MS, undefined, { ref: false })])
    this.#end(session)
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const answer = await this.#ask()
      if (answer !== 'UNKNOWN') this.#set(answer === 'SILENCE')
      await pause(this.#options.everyMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  #set(isSilent: boolean): void {
    if (isSilent === this.#isSilent) return
    this.#isSilent = isSilent
    this.#options.onChange(isSilent)
    if (isSilent) for (const socket of this.#sockets) socket.destroy(this.#doesNotAnswer())
  }

  async #ask(): Promise<Answer> {
    const { signal } = this.#stopping
    const session = (this.#session ??= this.#open())
    const asking = this.#query(session)
    // Opening a connection may take as long as in the pools.
    const ms = session.phase === 'OPEN' ? this.#options.silentMs : CONNECTION_MS_MAX
    for (let part = 0; part < PARTS; part++) {
      const answer = await Promise.race([asking, pause(ms / PARTS, undefined, { ref: false })])
      if (answer !== undefined) return answer
      if (signal.aborted) return 'UNKNOWN'
    }
    this.#end(session)
    return session.phase === 'LOOKING_UP' ? 'UNKNOWN' : 'SILENCE'
  }

  async #query(session: CheckConnection): Promise<Answer> {
    try {
      await session.ready
      session.phase = 'OPEN'
      await session.client.query('select')
      this.#cause = undefined
      return 'ANSWER'
    } catch (error) {
      this.#end(session)
      const { code = '' } = error as { code?: string }
      const isUnknown = OF_THIS_MACHINE.has(code)
      if (!isUnknown && !UNREACHABLE.has(code)) return 'ANSWER'
      this.#cause = error as Error
      return isUnknown ? 'UNKNOWN' : 'SILENCE'
    }
  }

  #open(): CheckConnection {
    const socket = new Socket()
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: CHECKER,
      stream: () => socket,
    })
    // The session's statements fail, which is how the check learns of the loss.
    client.on('error', () => undefined)
    const phase = isIP(client.host) > 0 ? 'CONNECTING' : 'LOOKING_UP'
    const { onTold } = this.#options
    client.on('notification', () => onTold?.())
    // A standby refuses to listen. Then the worker's loops find changes at the end of their rests.
    const listen = () => (onTold === undefined ? undefined : client.query(LISTEN).catch(() => undefined))
    const connect = async () => {
      await client.connect()
      await beginSession(client, TCP_LIMITS)
    }
    const session: CheckConnection = { client, socket, phase, ready: connect().then(listen) }
    socket.once('lookup', () => (session.phase = 'CONNECTING'))
    socket.once('connect', () => (session.phase = 'CONNECTING'))
    return session
  }

  #end(session: CheckConnection | undefined): void {
    session?.socket.destroy()
    if (session === this.#session) this.#session = undefined
  }

  #doesNotAnswer(): Error {
    const why = this.#cause === undefined ? '' : `: ${this.#cause.message}`
    return Object.assign(new Error(`the database server does not answer${why}`), { code: 'ETIMEDOUT' })
  }
}
