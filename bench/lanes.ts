import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import { deployToken, startAnvil, TOKEN_ABI } from '../test/anvil.ts'
import { evmAdapter } from '../src/chains/evm/adapter.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'

/** Withdrawals that wait when the worker starts. */
const QUEUED = 5_000
/** As on the rollups of the OP stack. */
const BLOCK_SECONDS = 2
const CONFIRMATIONS = 2
/** The worker is killed when this many are mined, and started again. */
const KILLED_AT = [1_000, 3_000]

interface Work {
  databaseUrl: string
  rpcUrl: string
  keys: Hex[]
  tokens: Record<string, Hex>
}

/** Orders this many withdrawals of 1.25 USDP over ETHEREUM, all to the same address. */
type Order = (count: number) => Promise<{ destination: Hex; customerIds: string[] }>

/**
 * Withdrawals that are queued, by the number of hot wallets that pay them over one EVM node, and once with a worker that is
 * killed twice. Throws where a payment is missing on the chain, or was made twice.
 */
export async function measureLanes(db: Database, databaseUrl: string, order: Order) {
  const rows: Record<string, number>[] = []
  for (const [lanes, killed] of [
    [1, []],
    [4, []],
    [4, KILLED_AT],
  ] as const) {
    const perSecond = await measure(db, databaseUrl, order, lanes, killed)
    const first = rows[0]?.['per second'] ?? perSecond
    rows.push({
      'hot wallets': lanes,
      'kill -9 of the worker': killed.length,
      'per second': perSecond,
      times: Number((perSecond / first).toFixed(2)),
    })
  }
  return rows
}

async function measure(
  db: Database,
  databaseUrl: string,
  order: Order,
  lanes: number,
  killed: readonly number[],
): Promise<number> {
  const anvil = await startAnvil(1)
  try {
    const { chain, rpcUrl } = anvil
    const token = await deployToken(anvil, 18)
    const accounts = Array.from({ length: lanes }, generatePrivateKey)
    for (const key of accounts) {
      const { address } = privateKeyToAccount(key)
      await chain.setBalance({ address, value: 10n ** 21n })
      const minted = { chain: null, address: token, abi: TOKEN_ABI, functionName: 'mint' } as const
      await chain.writeContract({ ...minted, args: [address, 10n ** 24n] })
    }
    const { destination, customerIds } = await order(QUEUED)
    await chain.setAutomine(false)
    await chain.setIntervalMining({ interval: BLOCK_SECONDS })
    const work = { databaseUrl, rpcUrl, keys: accounts, tokens: { USDP: token } }
    const begunAt = performance.now()
    let worker = startWorker(work)
    const left = [...killed]
    for (let done = 0; done < QUEUED; done = await countDone(db, customerIds)) {
      if (done >= (left[0] ?? Infinity)) {
        left.shift()
        worker.kill('SIGKILL')
        await once(worker, 'exit')
        worker = startWorker(work)
      }
      await pause(200)
    }
    const seconds = (performance.now() - begunAt) / 1000
    worker.kill('SIGTERM')
    await once(worker, 'exit')
    const balanceOf = { address: token, abi: TOKEN_ABI, functionName: 'balanceOf' } as const
    const paid = await chain.readContract({ ...balanceOf, args: [destination] })
    if (paid !== (BigInt(QUEUED) * 5n * 10n ** 18n) / 4n)
      throw new Error(`${paid} units were paid for ${QUEUED} withdrawals of 1.25`)
    return Number((QUEUED / seconds).toFixed(1))
  } finally {
    await anvil.stop()
  }
}

async function countDone(db: Database, customerIds: string[]): Promise<number> {
  const { rows } = await db.query<{ count: string }>(
    `select count(*) from transfers where customer_id = any ($1::uuid[]) and status = 'COMPLETED' and direction = 'DEBIT'`,
    [customerIds],
  )
  return Number(rows[0]!.count)
}

const startWorker = (work: Work) =>
  spawn(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), JSON.stringify(work)], {
    stdio: 'inherit',
  })

/** Pays until it is killed. */
async function pay({ databaseUrl, rpcUrl, keys, tokens }: Work): Promise<never> {
  const db = openDatabase(databaseUrl, { max: 4, onError: () => undefined })
  const [hotWallet, ...furtherWallets] = keys.map((key) => privateKeyToAccount(key))
  const adapter = evmAdapter(
    'ETHEREUM',
    {
      rpcUrl,
      hotWallet: hotWallet!,
      furtherWallets,
      confirmations: CONFIRMATIONS,
      maxFeePerGasCeiling: '1000',
      tokens,
    },
    db,
  )
  const networks = new Map([['ETHEREUM', adapter] as const])
  for (;;) if ((await settleWithdrawals(db, networks)) === 0) await pause(100)
}

const [, program, work] = process.argv
if (program === fileURLToPath(import.meta.url)) await pay(JSON.parse(work!) as Work)
