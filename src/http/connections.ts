import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { Logger } from 'pino'
import { addressGroup } from './address-group.ts'

/** Most connections of clients to this process, where it may have so many descriptors. */
const CONNECTIONS_MAX = 20_000
/** Fewer than these are too few for a service that many clients use, and a line of the log says so. */
export const CONNECTIONS_FEW = 2_000
/** Beyond them, for who asks after the health of this process: this machine and the trusted proxies. */
const CONNECTIONS_RESERVED = 32
/** Descriptors that are not for clients: files, the log, metrics, nodes, exchanges; the database's come on top. */
const DESCRIPTORS_RESERVED = 100
const CONNECTIONS_MIN = 16
/** How long a connection may be open without a request under way. It must be longer than Fastify's keep-alive of 72 s. */
const IDLE_MS_MAX = 100_000
const SWEEP_EVERY_MS = 5_000
/** How often the log says that connections were refused. */
const TELL_EVERY_MS = 60_000

export interface ConnectionsOptions {
  /** Most connections of one address; 0: no limit. */
  perAddress: number
  /** As BURSAR_TRUSTED_PROXIES has them: they may have any number. */
  trustedProxies: string | undefined
  databaseConnections: number
  log: Logger
}

const STATE = Symbol('state of a connection')

interface State {
  /** Requests under way. */
  requests: number
  /** When the last one ended, or the connection began, in milliseconds of the process. */
  since: number
}

type Watched = Socket & { [STATE]?: State }

/**
 * The connections of clients: bounded in number, for each address too, and ended when nothing comes of them. Node ends
 * those whose request takes too long to arrive. It does not end one that sends an empty line now and then.
 */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #max: number
  readonly #exempt: BlockList
  readonly #open = new Set<Watched>()
  readonly #ofAddress = new Map<string, number>()
  #refused = 0
  #toldAt = -Infinity

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.#max = connectionsMax(options.databaseConnections, descriptorsMax())
    this.#exempt = listOf(options.trustedProxies)
  }

  /** Watches over the connections of the server until it is closed. */
  watch(server: Server): void {
    server.maxConnections = this.#max + CONNECTIONS_RESERVED
    server.on('drop', () => this.#countRefused())
    server.on('connection', (socket: Watched) => this.#opened(socket))
    const sweep = setInterval(() => this.#endIdle(), SWEEP_EVERY_MS).unref()
    server.once('close', () => clearInterval(sweep))
    if (this.#max < CONNECTIONS_FEW)
      this.#options.log.warn(
        `at most ${this.#max} connections of clients: the limit of open files (ulimit -n) allows no more`,
      )
  }

  /** A request began on the connection. */
  began(socket: Watched): void {
    const state = socket[STATE]
    if (state !== undefined) state.requests += 1
  }

  /** A request ended on the connection. */
  ended(socket: Watched): void {
    const state = socket[STATE]
    if (state === undefined) return
    state.requests -= 1
    state.since = performance.now()
  }

  #opened(socket: Watched): void {
    const { perAddress } = this.#options
    const { remoteAddress = '' } = socket
    const trusted = this.#isTrusted(remoteAddress)
    const group = addressGroup(remoteAddress)
    const count = this.#ofAddress.get(group) ?? 0
    const tooMany = this.#open.size >= this.#max && !isLoopback(remoteAddress)
    if (!trusted && (tooMany || (perAddress > 0 && count >= perAddress))) {
      this.#countRefused()
      socket.destroy()
      return
    }
    socket[STATE] = { requests: 0, since: performance.now() }
    this.#open.add(socket)
    this.#ofAddress.set(group, count + 1)
    socket.once('close', () => {
      this.#open.delete(socket)
      const left = this.#ofAddress.get(group)! - 1
      if (left === 0) this.#ofAddress.delete(group)
      else this.#ofAddress.set(group, left)
    })
  }

  #isTrusted(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#exempt.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  #endIdle(): void {
    const before = performance.now() - IDLE_MS_MAX
    for (const socket of this.#open) {
      const { requests, since } = socket[STATE]!
      if (requests === 0 && since < before) socket.destroy()
    }
  }

  #countRefused(): void {
    this.#refused += 1
    const now = performance.now()
    if (now - this.#toldAt < TELL_EVERY_MS) return
    this.#toldAt = now
    this.#options.log.warn(
      {
        refused: this.#refused,
        open: this.#open.size,
        max: this.#max,
        per_address: this.#options.perAddress,
      },
      'connections of clients were refused: there are as many as may be, in all or from an address',
    )
  }
}

const isLoopback = (address: string) => /^(?:::ffff:)?127\.|^::1$/.test(address)

/** How many connections clients may have where the process may have so many descriptors. */
export const connectionsMax = (databaseConnections: number, descriptors: number) =>
  Math.max(
    CONNECTIONS_MIN,
    Math.min(
      CONNECTIONS_MAX,
      descriptors - databaseConnections - CONNECTIONS_RESERVED - DESCRIPTORS_RESERVED,
    ),
  )

/** How many files and sockets this process may have open, where the system says (Linux). */
export function descriptorsMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}

/** The addresses and networks of a setting like BURSAR_TRUSTED_PROXIES. */
function listOf(addresses: string | undefined): BlockList {
  const list = new BlockList()
  for (const one of addresses?.split(',') ?? []) {
    const [address, prefix] = one.trim().split('/') as [string, string | undefined]
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
