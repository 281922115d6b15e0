import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import { deployToken, startAnvil, TOKEN_ABI, type Anvil } from '../test/anvil.ts'
import { evmAdapter } from '../chains/evm/adapter.ts'
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
  // One chain for all: a database refuses another one of the same network.
  const anvil = await startAnvil(1)
  try {
    const token = await deployToken(anvil, 18)
    for (const [lanes, killed] of [
      [1, []],
      [4, []],
      [4, KILLED_AT],
    ] as const) {
      const keys = await newWallets(anvil, token, lanes)
      const { destination, customerIds } = await order(QUEUED)
      await anvil.chain.setAutomine(false)
      await anvil.chain.setIntervalMining({ interval: BLOCK_SECONDS })
      const work = { databaseUrl, rpcUrl: anvil.rpcUrl, keys, tokens: { USDP: token } }
      const perSecond = QUEUED / (await payAll(db, work, customerIds, killed))
      await anvil.chain.setIntervalMining({ interval: 0 })
      await anvil.chain.setAutomine(true)
      const balanceOf = { address: token, abi: TOKEN_ABI, functionName: 'balanceOf' } as const
      const paid = await anvil.chain.readContract({ ...balanceOf, args: [destination] })
      if (paid !== (BigInt(QUEUED) * 5n * 10n ** 18n) / 4n)
        throw new Error(`${paid} units were paid for ${QUEUED} withdrawals of 1.25`)
      const first = rows[0]?.['per second'] ?? perSecond
      rows.push({
        'hot wallets': lanes,
        'kill -9 of the worker': killed.length,
        'per second': Number(perSecond.toFixed(1)),
        times: Number((perSecond / first).toFixed(2)),
      })
    }
    return rows
  } finally {
    await anvil.stop()
  }
}

/** Makes funded wallets, and returns their keys. */
async function newWallets(anvil: Anvil, token: Hex, count: number): Promise<Hex[]> {
  const keys = Array.from({ length: count }, generatePrivateKey)
  for (const key of keys) {
    const { address } = privateKeyToAccount(key)
    await anvil.chain.setBalance({ address, value: 10n ** 21n })
    const minted = { chain: null, address: token, abi: TOKEN_ABI, functionName: 'mint' } as const
    await anvil.chain.writeContract({ ...minted, args: [address, 10n ** 24n] })
  }
  return keys
}

/** Returns after how many seconds all are mined and COMPLETED. */
async function payAll(
  db: Database,
  work: Work,
  customerIds: string[],
  killed: readonly number[],
): Promise<number> {
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
  worker.kill('SIGTERM')
  await once(worker, 'exit')
  return (performance.now() - begunAt) / 1000
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
      mode: 'sandbox',
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
