import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import {
  createTestClient,
  encodeDeployData,
  http,
  parseAbi,
  publicActions,
  TransactionReceiptNotFoundError,
  walletActions,
  type Hex,
} from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { atEnd, endWithWorker } from './at-end.ts'

/** Anvil's default mnemonic: its accounts are funded and its keys are public. */
const MNEMONIC = 'test test test test test test test test test test test junk'
/** The account that pays for the set-up of the tests. */
const BANK = mnemonicToAccount(MNEMONIC, { addressIndex: 9 })

const NODE_PACKAGES: Partial<Record<string, string>> = {
  'linux x64': 'linux-amd64',
  'linux arm64': 'linux-arm64',
  'darwin x64': 'darwin-amd64',
  'darwin arm64': 'darwin-arm64',
  'win32 x64': 'win32-amd64',
}

/** Returns the path of the binary itself: the package's launcher would outlive a signal. */
function anvilBinary(): string {
  const require = createRequire(import.meta.url)
  const platform = NODE_PACKAGES[`${process.platform} ${process.arch}`]
  const manifest = require.resolve(`@foundry-rs/anvil-${platform}/package.json`)
  return join(dirname(manifest), 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil')
}

const START_MS_MAX = 300_000
const RECEIPT_EVERY_MS = 20

/** A chain of the test, or of the file that calls this outside of its tests: it is stopped at the end. */
export async function ownAnvil(chainId: number, options: readonly string[] = []): Promise<Anvil> {
  const anvil = await startAnvil(chainId, options)
  atEnd(() => anvil.stop())
  return anvil
}

/** Starts a separate chain on a free port. Every transaction makes a block, unless a test changes that. */
export async function startAnvil(chainId: number, options: readonly string[] = []) {
  const child = spawn(anvilBinary(), ['--port', '0', '--chain-id', String(chainId), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endWithWorker(child)
  const ended = once(child, 'exit')
  const tooLong = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
  const rpcUrl = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const [, address] = /^Listening on (\S+)/.exec(line) ?? []
      if (address !== undefined) resolve(`http://${address}`)
    })
    void ended.then(() => reject(new Error('anvil did not start')))
  })
  clearTimeout(tooLong)
  const chain = createTestClient({
    account: BANK,
    mode: 'anvil',
    transport: http(rpcUrl),
    pollingInterval: RECEIPT_EVERY_MS,
  })
    .extend(publicActions)
    .extend(walletActions)
    .extend(({ getTransactionReceipt }) => ({
      /** viem looks for a receipt once a block. Here each transaction makes the last block, so viem would look once only. */
      async waitForTransactionReceipt({ hash }: { hash: Hex }) {
        for (;;) {
          const receipt = await getTransactionReceipt({ hash }).catch((error: unknown) => {
            if (!(error instanceof TransactionReceiptNotFoundError)) throw error
          })
          if (receipt !== undefined) return receipt
          await pause(RECEIPT_EVERY_MS)
        }
      },
    }))
  return {
    rpcUrl,
    chainId,
    chain,
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
export type Anvil = Awaited<ReturnType<typeof startAnvil>>

export const TOKEN_ABI = parseAbi([
  'constructor(uint8 decimals)',
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function mint(address to, uint256 amount)',
  'function setBlocked(address who, bool value)',
  'function setPaused(bool value)',
  'function setSilent(bool value)',
  'function setFeePercent(uint256 value)',
  'event Transfer(address indexed from, address indexed to, uint256 amount)',
])
// test/contracts/TestToken.sol by solc 0.8.37, optimized, for the Paris EVM, without metadata.
const BYTECODE = readFileSync(new URL('contracts/TestToken.hex', import.meta.url), 'utf8').trim() as Hex

/** Deploys a new token with this number of decimals. */
export async function deployToken({ chain }: Anvil, decimals: number): Promise<Hex> {
  const data = encodeDeployData({ abi: TOKEN_ABI, bytecode: BYTECODE, args: [decimals] })
  const hash = await chain.sendTransaction({ chain: null, data })
  const { contractAddress } = await chain.waitForTransactionReceipt({ hash })
  return contractAddress!
}
