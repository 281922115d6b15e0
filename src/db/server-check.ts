import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

/** How often a server is asked, and how long it may take to answer at all. */
const EVERY_MS = 1_000
const SILENT_MS = 5_000
/** The wait has parts, because a process that stood still finds the answer only after its timer. */
const PARTS = 10

/** The machine answers: it has no server at this port, or does not know the connection. */
const ANSWERS_OF_THE_HOST = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE'])

export interface ServerCheckOptions {
  /** Called when the server falls silent, and when it answers again. */
  onChange: (isSilent: boolean) => void
  everyMs?: number
  silentMs?: number
}

/** The check's own connection. */
interface Session {
  client: pg.Client
  socket: Socket
  ready: Promise<unknown>
}

/**
 * Asks a database server each second, over a connection of its own. When it gives no answer for five seconds, its machine or the
 * network is gone, or the server hangs. Then all connections of this process to it are ended, and new ones fail at once until it
 * answers again. Otherwise they would wait until TCP gives up, which takes a quarter of an hour: payments, requests and the worker
 * would stand still, also when a standby has taken over at the same address. An error is an answer.
 */
export class ServerCheck {
  readonly #url: string
  readonly #options: Required<ServerCheckOptions>
  readonly #sockets = new Set<Socket>()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #isSilent = false
  #session: Session | undefined

  /** Begins to ask the server of this address. `stop` ends that. */
  constructor(url: string, { everyMs = EVERY_MS, silentMs = SILENT_MS, onChange }: ServerCheckOptions) {
    this.#url = url
    this.#options = { onChange, everyMs, silentMs }
    this.#running = this.#follow()
  }

  /** Makes the socket of a connection to the server. */
  readonly socket = (): Socket => {
    const socket = new Socket()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // The driver listens for errors by then.
    if (this.#isSilent) process.nextTick(() => socket.destroy(doesNotAnswer()))
    return socket
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    this.#end(this.#session)
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping
    for (;;) {
      const answer = await this.#ask()
      if (signal.aborted) return
      if (answer !== 'UNKNOWN') this.#set(answer === 'SILENCE')
      await pause(this.#options.everyMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
  }

  #set(isSilent: boolean): void {
    if (isSilent === this.#isSilent) return
    this.#isSilent = isSilent
    this.#options.onChange(isSilent)
    if (isSilent) for (const socket of this.#sockets) socket.destroy(doesNotAnswer())
  }

  async #ask(): Promise<'ANSWER' | 'SILENCE' | 'UNKNOWN'> {
    const { signal } = this.#stopping
    const asking = this.#query().then(
      () => 'ANSWER' as const,
      (error: unknown) => (isAnswer(error) ? ('ANSWER' as const) : ('UNKNOWN' as const)),
    )
    for (let part = 0; part < PARTS; part++) {
      const waiting = pause(this.#options.silentMs / PARTS, undefined, { signal, ref: false })
      const answer = await Promise.race([asking, waiting.catch(() => undefined)])
      if (answer !== undefined) return answer
      if (signal.aborted) return 'UNKNOWN'
    }
    this.#end(this.#session)
    return 'SILENCE'
  }

  async #query(): Promise<void> {
    const session = (this.#session ??= this.#open())
    try {
      await session.ready
      await session.client.query('select')
    } catch (error) {
      this.#end(session)
      throw error
    }
  }

  #open(): Session {
    const socket = new Socket()
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'bursar health check',
      stream: () => socket,
    })
    // Its statements fail, which is how the check learns of the loss.
    client.on('error', () => undefined)
    return { client, socket, ready: client.connect() }
  }

  #end(session: Session | undefined): void {
    session?.socket.destroy()
    if (session === this.#session) this.#session = undefined
  }
}

/**
 * Whether an error is one of the server or its machine. Others say nothing about open connections: a name that cannot be looked
 * up, an address that is unreachable.
 */
function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError || ANSWERS_OF_THE_HOST.has((error as { code?: string }).code ?? '')
}

const doesNotAnswer = () =>
  Object.assign(new Error('the database server does not answer'), { code: 'ETIMEDOUT' })
