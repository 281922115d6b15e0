import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { bitcoinRpc, type BitcoinRpc, type BitcoinRpcConfig } from '../src/networks/bitcoin/rpc.ts'
import { freePort } from './support.ts'

/** Whether the node's program is on the PATH (Debian: litecoind). */
export const HAS_LITECOIND = (process.env.PATH ?? '')
  .split(delimiter)
  .some((folder) => folder !== '' && existsSync(join(folder, 'litecoind')))

/** The program of a node of Bitcoin's family, and the options that it needs beside those of all. */
export interface NodeProgram {
  path: string
  options: string[]
}

/** Litecoin Core. */
const LITECOIND: NodeProgram = {
  path: 'litecoind',
  // From block 432 on, a block on regtest would need somebody who moves coins into the extension block.
  options: ['-vbparams=mweb:9999999999:9999999999'],
}

const knots = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'bursar',
  'bitcoin-knots',
  'bitcoind',
)

/** Bitcoin Knots, where test/bitcoin-knots.sh has unpacked it. */
export const KNOTS: NodeProgram | undefined = existsSync(knots) ? { path: knots, options: [] } : undefined

const START_MS_MAX = 30_000
const STOP_MS_MAX = 20_000

/** A node of Bitcoin's family on a chain of its own (regtest), with a wallet that mines and Bursar's wallet. */
export class BitcoinNode {
  /** As Bursar is given it. */
  readonly config: Required<BitcoinRpcConfig>
  readonly bursar: BitcoinRpc
  readonly miner: BitcoinRpc
  readonly #program: NodeProgram
  readonly #folder: string
  readonly #port: number
  readonly #door: Door
  #process: ChildProcess | undefined

  private constructor(program: NodeProgram, folder: string, port: number, door: Door) {
    this.#program = program
    this.#folder = folder
    this.#port = port
    this.#door = door
    this.config = {
      rpcUrl: `http://127.0.0.1:${portOf(door.server)}`,
      rpcUser: 'bursar',
      rpcPassword: 'correct horse battery staple',
      wallet: 'bursar',
    }
    this.bursar = bitcoinRpc(this.config)
    this.miner = bitcoinRpc({ ...this.config, wallet: 'miner' })
  }

  /** Starts a node whose miner has coins to spend. Stop it in `afterAll`. */
  static async start(program = LITECOIND): Promise<BitcoinNode> {
    const folder = await mkdtemp(join(tmpdir(), 'bursar-bitcoin-'))
    const port = await freePort()
    const node = new BitcoinNode(program, folder, port, await openDoor(port))
    await node.#run([])
    for (const wallet of ['bursar', 'miner']) await node.miner.call('createwallet', wallet)
    // Mined coins can be spent 100 blocks later.
    await node.mine(110)
    return node
  }

  async #run(options: string[]): Promise<void> {
    const { rpcUser, rpcPassword } = this.config
    const child = spawn(
      this.#program.path,
      [
        '-regtest',
        `-datadir=${this.#folder}`,
        '-server',
        '-listen=0',
        '-rpcbind=127.0.0.1',
        '-rpcallowip=127.0.0.1',
        `-rpcport=${this.#port}`,
        `-rpcuser=${rpcUser}`,
        `-rpcpassword=${rpcPassword}`,
        '-fallbackfee=0.0001',
        // The mempool lives as long as the process, and no wallet fills it again: a restart drops what is in it.
        '-persistmempool=0',
        '-walletbroadcast=0',
        // Fewer keys than usual: both wallets are read at every start.
        '-keypool=20',
        '-printtoconsole=0',
        ...this.#program.options,
        ...options,
      ],
      { stdio: 'ignore' },
    )
    this.#process = child
    const kill = () => void child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    const deadline = Date.now() + START_MS_MAX
    while (Date.now() < deadline && child.exitCode === null) {
      if (await this.miner.call('getblockcount').then(Boolean, () => false)) return
      await pause(50)
    }
    throw new Error(`${this.#program.path} does not start (exit code ${child.exitCode})`)
  }

  /** Stops the node and starts it again: it has forgotten the wallets' locks, and what was in its mempool. */
  async restart(options: string[] = []): Promise<void> {
    await this.#end()
    await this.#run(['-wallet=bursar', '-wallet=miner', ...options])
  }

  async #end(): Promise<void> {
    const child = this.#process!
    if (child.exitCode !== null) return
    const ended = once(child, 'exit')
    await this.miner.call('stop').catch(() => child.kill())
    for (const socket of this.#door.open) socket.destroy()
    await Promise.race([ended, pause(STOP_MS_MAX).then(() => child.kill('SIGKILL'))])
    await ended
  }

  async stop(): Promise<void> {
    await this.#end()
    this.#door.server.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Mines blocks and gives their hashes. An address: who gets the new coins. */
  async mine(blocks: number, address?: string): Promise<string[]> {
    return this.miner.call('generatetoaddress', blocks, address ?? (await this.newAddress()))
  }

  /** A block with no transaction but its own. */
  async mineEmpty(): Promise<string> {
    const block = await this.miner.call<{ hash: string }>('generateblock', await this.newAddress(), [])
    return block.hash
  }

  /** Has the wallet make a transaction, and sends it: the wallet itself does not. Gives its hash. */
  async pay(wallet: BitcoinRpc, outputs: Record<string, string>, feeFrom: string[] = []): Promise<string> {
    const hash = await wallet.call<string>('sendmany', '', outputs, 1, '', feeFrom)
    const { hex } = await wallet.call<{ hex: string }>('gettransaction', hash)
    await wallet.call('sendrawtransaction', hex)
    return hash
  }

  /** An address of the miner: outside of Bursar. */
  newAddress(type: 'bech32' | 'bech32m' | 'legacy' | 'p2sh-segwit' = 'bech32'): Promise<string> {
    return this.miner.call('getnewaddress', '', type)
  }
}

/** A node that is told to stop waits for its connections to be closed, for seconds. Here they can be cut. */
interface Door {
  server: Server
  open: Set<Socket>
}

async function openDoor(port: number): Promise<Door> {
  const open = new Set<Socket>()
  const server = createServer((outer) => {
    const inner = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      open.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await listening(server)
  return { server, open }
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port
