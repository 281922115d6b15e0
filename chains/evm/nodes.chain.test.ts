/* Several nodes of an EVM network: failover for what is read and sent, a quorum for what pays or refunds. */
import { setTimeout as pause } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import { afterEach, describe, expect, test } from 'vitest'
import { ownAnvil, type Anvil } from '../../test/anvil.ts'
import { atEnd } from '../../test/at-end.ts'
import { startLyingNode } from '../../test/lying-node.ts'
import { keptOf, order, readTransfer, settle, work } from '../../test/payouts-on.ts'
import { newCustomer, ownTestService } from '../../test/support.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'
import { judgeNetwork } from '../../src/rails/wallets/configured-networks.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'

const CONFIRMATIONS = 3
const NOWHERE = 'http://127.0.0.1:9'
const service = await ownTestService()
/** Its blocks are of yesterday, so that later ones can be minutes apart. */
const YESTERDAY = ['--timestamp', String(Math.floor(Date.now() / 1000) - 86_400)]
const anvil = await ownAnvil(1, YESTERDAY)
const door = async ({ rpcUrl }: Pick<Anvil, 'rpcUrl'> = anvil) => {
  const node = await startLyingNode(rpcUrl)
  atEnd(() => node.stop())
  return node
}
const [first, second, third] = [await door(), await door(), await door()]
afterEach(async () => {
  for (const node of [first, second, third]) node.tellTheTruth()
  await service.owner.query('delete from freezes')
  await service.owner.query('delete from failed_transactions')
})

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address

async function walletOn([rpcUrl, ...otherRpcUrls]: readonly string[], changes: Partial<EvmConfig> = {}) {
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  await anvil.chain.setBalance({ address: hotWallet.address, value: parseAmount('100', 18)! })
  const config: EvmConfig = {
    ...{ rpcUrl: rpcUrl!, otherRpcUrls, hotWallet, confirmations: CONFIRMATIONS, maxFeePerGasCeiling: '100' },
    ...{ withdrawals: withdrawalReader, pollMs: 10, mode: 'sandbox', ...changes },
  }
  const adapter = evmAdapter('ETHEREUM', config, service.db)
  return { hotWallet, adapter, networks: new Map([['ETHEREUM', adapter]] as const) }
}

const customer = await newCustomer(service)
const withdraw = (amount: string) =>
  order(service, customer, {
    ...{ crypto_network: 'ETHEREUM', asset: 'ETH', amount, destination_address: newAddress() },
  })
const mine = (blocks = 1) => anvil.chain.mine({ blocks })
const heightSaid = async ({ adapter }: Awaited<ReturnType<typeof walletOn>>) =>
  (await adapter.status!()).height

describe('several nodes to work with', () => {
  test('the first dies in the midst of 30 withdrawals: each is paid once, without a restart', async () => {
    const dying = await startLyingNode(anvil.rpcUrl)
    const { networks, hotWallet } = await walletOn([dying.rpcUrl, second.rpcUrl], { maxInFlight: 4 })
    const ordered: Transfer[] = []
    for (let one = 0; one < 30; one++) ordered.push(await withdraw('0.1'))
    const failures: Error[] = []
    let rounds = 0
    const left = async () => {
      const read = await Promise.all(ordered.map((one) => readTransfer(customer, one)))
      return read.filter(({ status }) => status === 'PENDING').length
    }
    for (; rounds < 100 && (await left()) > 0; rounds++) {
      if (rounds === 4) await dying.stop()
      // The worker goes on with its next round.
      await work(service.db, networks).catch((error: Error) => failures.push(error))
      await mine()
    }
    expect(failures.length).toBeLessThanOrEqual(1)
    const ended = await Promise.all(ordered.map((one) => readTransfer(customer, one)))
    expect(ended.map(({ status }) => status)).toEqual(Array(30).fill('COMPLETED'))
    for (const { destination_address: address } of ended)
      expect(await anvil.chain.getBalance({ address: address as Hex })).toBe(parseAmount('0.1', 18))
    expect(await anvil.chain.getTransactionCount({ address: hotWallet.address })).toBe(30)
    expect(rounds).toBeGreaterThan(4)
  })

  test('one that lags is not used, also once the one ahead is gone', async () => {
    // A chain of its own from this block on, of which it makes none.
    const lagging = await ownAnvil(1, [
      '--fork-url',
      anvil.rpcUrl,
      '--fork-block-number',
      String(await mineOne()),
    ])
    const ahead = await startLyingNode(anvil.rpcUrl)
    const wallet = await walletOn([lagging.rpcUrl, ahead.rpcUrl])
    await anvil.chain.mine({ blocks: 2, interval: 60 })
    const height = Number(await anvil.chain.getBlockNumber())
    expect(await heightSaid(wallet)).toBe(height)
    await ahead.stop()
    await expect(wallet.adapter.status!()).rejects.toThrow()
    await expect(wallet.adapter.status!()).rejects.toThrow(/no node can be used: rpc_url\[0\]: it is behind/)
  })

  test('one on another chain is refused, silent ones are left, and the healthy one is asked no more than alone', async () => {
    const other = await ownAnvil(5)
    const wallet = await walletOn([NOWHERE, other.rpcUrl, second.rpcUrl])
    const created = await withdraw('0.1')
    await settle(service.db, wallet.networks, () => mine(), [created])
    expect((await readTransfer(customer, created)).status).toBe('COMPLETED')
    expect(await other.chain.getBlockNumber()).toBe(0n)
    const lost = await walletOn([NOWHERE, other.rpcUrl])
    await expect(lost.adapter.ready!()).rejects.toThrow(
      /no node can be used: rpc_url\[0\]: .*; rpc_url\[1\]: the node of ETHEREUM is on chain 5, not 1/,
    )
    const requestsOf = async ({ adapter }: typeof wallet, node: typeof first) => {
      await adapter.ready!()
      const before = node.requests
      for (let call = 0; call < 20; call++) await adapter.newestBlock!()
      return node.requests - before
    }
    expect(await requestsOf(await walletOn([first.rpcUrl, second.rpcUrl]), first)).toBe(20)
  })

  test('a broadcast reaches the pool of the second where the first drops or refuses it', async () => {
    const away = await ownAnvil(1, ['--fork-url', anvil.rpcUrl, '--no-mining'])
    const other = await door(away)
    const { networks } = await walletOn([first.rpcUrl, other.rpcUrl])
    const sends = 'eth_sendRawTransaction'
    for (const lie of [
      { result: `0x${'1'.repeat(64)}` },
      { error: { code: -32_000, message: 'intrinsic gas too low' } },
    ] as const) {
      first.lie = ({ method }) => (method === sends ? lie : undefined)
      const created = await withdraw('0.1')
      await work(service.db, networks)
      const { crypto_tx_hash, state, waiting_code } = await keptOf(service.db, created)
      expect({ state, waiting_code }).toEqual({ state: 'BROADCAST', waiting_code: null })
      for (let tries = 0; tries < 50 && !(await inPool(away, crypto_tx_hash)); tries++) await pause(20)
      expect(await inPool(away, crypto_tx_hash)).toBe(true)
      first.tellTheTruth()
      await settle(service.db, networks, () => mine(), [created])
    }
  })
})

const mineOne = async () => {
  await mine()
  return anvil.chain.getBlockNumber()
}
const inPool = async ({ chain }: Anvil, hash: string) =>
  (await chain.getTransaction({ hash: hash as Hex }).catch(() => undefined)) !== undefined

describe('a quorum of second nodes', () => {
  const refusing = ({ method }: { method: string }, { result }: { result?: unknown }) =>
    method === 'eth_getTransactionReceipt' && result !== null
      ? { result: { ...(result as object), status: '0x0' } }
      : undefined
  /** A withdrawal that the first node and these second ones say was reverted. */
  const saidReverted = async (quorum: number | undefined, urls: string[], liars: (typeof first)[]) => {
    const { networks } = await walletOn([first.rpcUrl], {
      mode: 'live',
      verify: { rpcUrl: urls, quorum, above: {} },
    })
    for (const liar of [first, ...liars]) liar.lie = refusing
    const created = await withdraw('0.1')
    for (let round = 0; round < CONFIRMATIONS + 2; round++) {
      await work(service.db, networks)
      await mine()
    }
    const { rows } = await service.db.query<{ reason: string }>('select reason from freezes')
    const { waiting_code: code, waiting_detail: detail } = await keptOf(service.db, created)
    return { status: (await readTransfer(customer, created)).status, code, detail, freezes: rows }
  }

  test('2 of 3, one of which is dead: two that say the same suffice', async () => {
    const urls = [NOWHERE, second.rpcUrl, third.rpcUrl]
    expect(await saidReverted(2, urls, [second, third])).toMatchObject({ status: 'FAILED', freezes: [] })
  })

  test('2 of 3, one of which says something else: it is not outvoted, and nothing is refunded', async () => {
    const honest = await door()
    expect(await saidReverted(2, [second.rpcUrl, third.rpcUrl, honest.rpcUrl], [second, third])).toEqual({
      ...{ status: 'PENDING', code: 'NODES_DISAGREE', freezes: [{ reason: 'NODES_DISAGREE' }] },
      detail: expect.stringMatching(
        /, and the node of verify_rpc_url\[2\] has status 1 in block 0x/,
      ) as string,
    })
  })

  test.each([
    ['without a quorum all must answer', undefined],
    ['2 of 3 are not reached by one', 2],
  ])('%s: nothing is refunded meanwhile', async (_, quorum) => {
    const urls = [NOWHERE, second.rpcUrl, ...(quorum === undefined ? [] : ['http://127.0.0.1:19'])]
    expect(await saidReverted(quorum, urls, [second])).toMatchObject({
      ...{ status: 'PENDING', code: 'SECOND_NODE', freezes: [] },
      detail: expect.stringMatching(/, and the node of verify_rpc_url\[0\] cannot tell: /) as string,
    })
  })
})

test('a node that is not at the head of its chain is a FAIL of doctor, by its field', async () => {
  const doctor = async (mode: 'live' | 'sandbox') => {
    const urls = [second.rpcUrl, NOWHERE]
    const { adapter } = await walletOn([first.rpcUrl], { mode, verify: { rpcUrl: urls, above: {} } })
    const reports = await networkReports(
      service.db,
      new Map([['ETHEREUM', { adapter, confirmations: CONFIRMATIONS }]] as const),
    )
    return judgeNetwork(reports[0]!)
  }
  second.lie = ({ method }) => (method === 'eth_syncing' ? { result: { highestBlock: '0x99' } } : undefined)
  const height = Number(await mineOne())
  const faults =
    `verify_rpc_url[0] is at height ${height}: it is catching up with its chain; ` +
    'verify_rpc_url[1]: the node does not answer: '
  expect(await doctor('sandbox')).toMatchObject({
    result: 'FAIL',
    says: expect.stringContaining(`ETHEREUM: ${faults}`) as string,
  })
  expect((await doctor('live')).says).toMatch(
    /ETHEREUM: rpc_url is at height \d+: its newest block is \d+ seconds old; verify/,
  )
})
