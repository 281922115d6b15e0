import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { Logger } from 'pino'
import { addressGroup } from './address-group.ts'

/** Maximum client connections of this process, if the limit of open files allows that many. */
const CONNECTIONS_MAX = 20_000
/** A limit below this is too low for a service with many clients; the log then has a warning. */
export const CONNECTIONS_FEW = 2_000
/** Additional connections, for health checks from this machine and the trusted proxies. */
const CONNECTIONS_RESERVED = 32
/** Descriptors reserved for files, the log, metrics, nodes and exchanges. Database connections are counted separately. */
const DESCRIPTORS_RESERVED = 100
const CONNECTIONS_MIN = 16
/** How long a connection may be open without a request under way. It must be longer than Fastify's keep-alive of 72 s. */
const IDLE_MS_MAX = 100_000
const SWEEP_EVERY_MS = 5_000
/** Least interval between log lines about refused connections. */
const TELL_EVERY_MS = 60_000

export interface ConnectionsOptions {
  /** Maximum connections from one address; 0: no limit. */
  perAddress: number
  /** The setting BURSAR_TRUSTED_PROXIES. Trusted proxies have no limit. */
  trustedProxies: string | undefined
  databaseConnections: number
  log: Logger
}

const STATE = Symbol('state of a connection')

interface ConnectionState {
  requests: number
  /** When the last request ended, or else the connection began, in milliseconds of the process. */
  since: number
}

type Watched = Socket & { [STATE]?: ConnectionState }

/**
 * Limits client connections in total and for each address, and closes idle connections. Node closes a connection whose
 * request arrives too slowly, but not a connection that only sends an empty line now and then.
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

  /** Starts to limit the connections of the server, until it is closed. */
  watch(server: Server): void {
    server.maxConnections = this.#max + CONNECTIONS_RESERVED
    server.on('drop', () => this.#countRefused())
    server.on('connection', (socket: Watched) => this.#opened(socket))
    const sweep = setInterval(() => this.#endIdle(), SWEEP_EVERY_MS).unref()
    server.once('close', () => clearInterval(sweep))
    if (this.#max < CONNECTIONS_FEW)
      this.#options.log.warn(
        `limited to ${this.#max} client connections by the limit of open files (ulimit -n)`,
      )
  }

  began(socket: Watched): void {
    const state = socket[STATE]
    if (state !== undefined) state.requests += 1
  }

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
      'client connections were refused: the limit in total or for an address is reached',
    )
  }
}

const isLoopback = (address: string) => /^(?:::ffff:)?127\.|^::1$/.test(address)

/** The limit of client connections for a process with this limit of descriptors. */
export const connectionsMax = (databaseConnections: number, descriptors: number) =>
  Math.max(
    CONNECTIONS_MIN,
    Math.min(
      CONNECTIONS_MAX,
      descriptors - databaseConnections - CONNECTIONS_RESERVED - DESCRIPTORS_RESERVED,
    ),
  )

/** The limit of open files and sockets of this process, from Linux; Infinity on other systems. */
export function descriptorsMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}

function listOf(addresses: string | undefined): BlockList {
  const list = new BlockList()
  for (const range of addresses?.split(',') ?? []) {
    const [address, prefix] = range.trim().split('/') as [string, string | undefined]
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
