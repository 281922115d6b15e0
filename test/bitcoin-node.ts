import { spawn, type ChildProcess } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { HDKey } from 'viem/accounts'
import { bitcoinRpc, type BitcoinRpc, type BitcoinRpcConfig } from '../chains/kit/json-rpc.ts'
import { freePort } from './free-port.ts'

/** Whether the node's program is on the PATH (Debian: litecoind). */
export const HAS_LITECOIND = (process.env.PATH ?? '')
  .split(delimiter)
  .some((folder) => folder !== '' && existsSync(join(folder, 'litecoind')))

/** The program of a Bitcoin-family node, and the options that only this program needs. */
export interface NodeProgram {
  path: string
  options: string[]
}

const LITECOIND: NodeProgram = {
  path: 'litecoind',
  // From block 432 on, a regtest block would need a transaction into the extension block (MWEB).
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

/** What the guide has in the node's configuration, for the users of Bursar's worker and of its other processes. */
export const DOCUMENTED_OPTIONS = readFileSync(
  new URL('../docs/guides/networks-bitcoin.md', import.meta.url),
  'utf8',
).match(/^rpcwhitelist\w*=\S+$/gm)!

/** The versions of extended keys on test networks. */
const TEST_KEYS = { private: 0x04358394, public: 0x043587cf }
/** How many addresses of each kind a watch-only wallet has. */
const ADDRESSES_MAX = 300

const START_MS_MAX = 300_000
const STOP_MS_MAX = 120_000

/** A Bitcoin-family node on a separate regtest chain, with a wallet that mines and Bursar's wallet. */
export class BitcoinNode {
  /** The connection settings that Bursar's worker gets: the node lets it call what the guide names, and no more. */
  readonly config: Required<BitcoinRpcConfig>
  /** Those of the processes that clients reach. */
  readonly apiConfig: Required<BitcoinRpcConfig>
  /** Those of the tests, which may call anything. */
  readonly owner: Required<BitcoinRpcConfig>
  readonly bursar: BitcoinRpc
  readonly miner: BitcoinRpc
  readonly #program: NodeProgram
  readonly #folder: string
  readonly #port: number
  readonly #door: Door
  /** Wallets with a key each, in place of hardware wallets. Bursar's wallet has none then. */
  readonly signers: BitcoinRpc[] = []
  /** The extended private keys of their accounts. */
  readonly accounts: string[] = []
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
    this.apiConfig = { ...this.config, rpcUser: 'bursar-api' }
    this.owner = { ...this.config, rpcUser: 'owner' }
    this.bursar = bitcoinRpc(this.owner)
    this.miner = bitcoinRpc({ ...this.owner, wallet: 'miner' })
  }

  /**
   * Starts a node whose miner has coins to spend. Stop it in `afterAll`. With `signers`, Bursar's wallet is watch-only, and each of
   * them has a key; of several, all but one must sign.
   */
  static async start(program = LITECOIND, signers = 0): Promise<BitcoinNode> {
    const folder = await mkdtemp(join(tmpdir(), 'bursar-bitcoin-'))
    const port = await freePort()
    const node = new BitcoinNode(program, folder, port, await openDoor(port))
    await node.#run([])
    await node.miner.call('createwallet', 'miner')
    if (signers > 0) await node.#watch(signers)
    else await node.miner.call('createwallet', 'bursar')
    // Mined coins can be spent 100 blocks later.
    await node.mine(110)
    return node
  }

  /** Makes Bursar's wallet watch-only, and a wallet for each signer. */
  async #watch(count: number): Promise<void> {
    const keys = Array.from({ length: count }, () => {
      const root = HDKey.fromMasterSeed(randomBytes(32), TEST_KEYS)
      const account = root.derive("m/84'/1'/0'")
      this.accounts.push(account.privateExtendedKey)
      const origin = `[${root.fingerprint.toString(16).padStart(8, '0')}/84'/1'/0']`
      return { own: origin + account.privateExtendedKey, public: origin + account.publicExtendedKey }
    })
    const isOld = await this.miner.call('getwalletinfo').then((info) => {
      return (info as { format?: string }).format !== 'sqlite'
    })
    for (const signer of [undefined, ...keys.keys()]) {
      const wallet = signer === undefined ? 'bursar' : `signer${signer}`
      const isWatching = signer === undefined
      const options = isOld ? [] : [false, true]
      await this.miner.call('createwallet', wallet, isWatching, true, '', ...options)
      const rpc = bitcoinRpc({ ...this.owner, wallet })
      if (!isWatching) this.signers.push(rpc)
      const requests = await Promise.all(
        [0, 1].map(async (chain) => {
          const written = keys.map((key, index) => `${index === signer ? key.own : key.public}/${chain}/*`)
          const bare =
            count === 1 ? `wpkh(${written[0]})` : `wsh(sortedmulti(${count - 1},${written.join()}))`
          const { checksum } = await this.miner.call<{ checksum: string }>('getdescriptorinfo', bare)
          const desc = `${bare}#${checksum}`
          const keypool = isOld ? isWatching && { keypool: true, watchonly: true } : { active: true }
          return { desc, range: [0, ADDRESSES_MAX], internal: chain === 1, timestamp: 'now', ...keypool }
        }),
      )
      await rpc.call(isOld ? 'importmulti' : 'importdescriptors', requests)
    }
  }

  /** A PSBT as signers sign it, each for itself. */
  sign(psbt: string, signers: readonly BitcoinRpc[], sighash = 'ALL'): Promise<string[]> {
    return Promise.all(
      signers.map(async (signer) => {
        const signed = await signer.call<{ psbt: string }>('walletprocesspsbt', psbt, true, sighash)
        return signed.psbt
      }),
    )
  }

  async #run(options: string[]): Promise<void> {
    const authOf = ({ rpcUser, rpcPassword }: BitcoinRpcConfig) =>
      `-rpcauth=${rpcUser}:salt$${createHmac('sha256', 'salt').update(rpcPassword).digest('hex')}`
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
        ...[this.config, this.apiConfig, this.owner].map(authOf),
        ...DOCUMENTED_OPTIONS.map((option) => `-${option}`),
        '-fallbackfee=0.0001',
        // Keep the mempool only in memory, and never rebroadcast from a wallet: a restart empties it.
        '-persistmempool=0',
        '-walletbroadcast=0',
        // Fewer keys than the default, because every start reads both wallets.
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

  /** Restarts the node, which clears its mempool and the wallets' locks. */
  async restart(options: string[] = []): Promise<void> {
    await this.#end()
    const signers = this.signers.map((_, index) => `-wallet=signer${index}`)
    await this.#run(['-wallet=bursar', '-wallet=miner', ...signers, ...options])
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

  /** Mines blocks and returns their hashes. `address` receives the new coins. */
  async mine(blocks: number, address?: string): Promise<string[]> {
    return this.miner.call('generatetoaddress', blocks, address ?? (await this.newAddress()))
  }

  /** Mines a block that has only its coinbase transaction. */
  async mineEmpty(): Promise<string> {
    const block = await this.miner.call<{ hash: string }>('generateblock', await this.newAddress(), [])
    return block.hash
  }

  /** Makes a transaction with the wallet's coins and broadcasts it. Returns its hash. */
  async pay(wallet: BitcoinRpc, outputs: Record<string, string>, feeFrom: string[] = []): Promise<string> {
    const hash = await wallet.call<string>('sendmany', '', outputs, 1, '', feeFrom)
    const { hex } = await wallet.call<{ hex: string }>('gettransaction', hash)
    await wallet.call('sendrawtransaction', hex)
    return hash
  }

  /** Returns an address of the miner, outside of Bursar. */
  newAddress(type: 'bech32' | 'bech32m' | 'legacy' | 'p2sh-segwit' = 'bech32'): Promise<string> {
    return this.miner.call('getnewaddress', '', type)
  }
}

/** A proxy in front of the node. A stopping node waits seconds for its connections, and those of the proxy can be cut. */
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
