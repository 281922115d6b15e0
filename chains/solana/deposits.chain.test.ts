/*
 * Invariants of deposits and sweeps on SOLANA, wherever it fails and whatever a node answers:
 * 1. each deposit is credited once, with what arrived, and nothing else is;
 * 2. a deposit that cannot be credited waits with the reason, and delays no other;
 * 3. what the ledger has in custody and what waits equals the hot wallet, its nonce accounts and the deposit addresses, to the
 *    last unit, after each test.
 */
import { randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import type { Instruction } from '@solana/kit'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { dieAtEachStep, failing, FAILURES } from '../../test/failures.ts'
import { runtime, SolanaNode } from '../../test/solana-node.ts'
import { credit, newCustomer, ROW_MACS, startTestService, TEST_ORIGIN } from '../../test/support.ts'
import type { TestCustomer, TestService } from '../../test/support.ts'
import { hurry } from '../../test/work-off.ts'
import { parseAmount, parseStoredAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import { selectFreezes } from '../../src/money/records/freezes.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { creditDepositsOn } from '../../src/rails/deposits/credit-deposits.ts'
import { rescanDeposits } from '../../src/rails/deposits/recover-deposits.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import { sweepDepositAddresses } from '../../src/rails/treasury/sweep-deposit-addresses.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import { plainRpc } from '../kit/json-rpc.ts'
import { behindOf } from '../kit/nodes.ts'
import { solanaAdapter, type SolanaConfig } from './adapter.ts'
import { lookAt } from './network-status.ts'
import { depositKeysOf } from './deposit-keys.ts'
import {
  associatedOf,
  createAssociated,
  TOKEN,
  TOKEN_2022,
  transferChecked,
  transferSol,
} from './instructions.ts'
import { signerOfSeed } from './keys.ts'
import { sweepAccounts } from './lanes.ts'
import { parse, parsePayment, signBriefly, signOnNonce } from './transaction.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
const PROGRAMS = { USDC: TOKEN, PYUSD: TOKEN_2022, USDG: TOKEN_2022 } as const
type Token = keyof typeof PROGRAMS
const ASSETS = ['SOL', 'USDC', 'PYUSD', 'USDG'] as const

const u16 = (value: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
/** A quarter of each transfer stays behind: the rule of an earlier epoch, and that of later ones. */
const quarter = Buffer.concat([Buffer.alloc(8), Buffer.alloc(8, 0x7f), u16(2_500)])
const TRANSFER_FEE = Buffer.concat([u16(1), u16(108), Buffer.alloc(72), quarter, quarter])

let service: TestService
let node: SolanaNode
let config: SolanaConfig
let mints: Record<Token, Address>
let adapter: NetworkAdapter
/** A wallet that pays deposits. */
const payer = signerOfSeed(randomBytes(32))
const FUNDED = parseAmount('100', 9)!

const newAddress = (): Address => signerOfSeed(randomBytes(32)).address
const newAdapter = (changes: Partial<SolanaConfig> = {}) =>
  solanaAdapter({ ...config, ...changes }, service.db)

beforeAll(async () => {
  if (runtime === undefined) return
  ;[service, node] = await Promise.all([startTestService(), SolanaNode.start()])
  mints = {
    USDC: node.makeMint(TOKEN, 6),
    PYUSD: node.makeMint(TOKEN_2022, 6),
    USDG: node.makeMint(TOKEN_2022, 6, TRANSFER_FEE),
  }
  const hotWallet = signerOfSeed(randomBytes(32))
  node.give(hotWallet.address, FUNDED)
  node.give(payer.address, 100n * FUNDED)
  for (const token of Object.keys(PROGRAMS) as Token[])
    node.mint(PROGRAMS[token], mints[token], payer.address, 10n ** 12n)
  config = {
    rpcUrl: node.rpcUrl,
    hotWallet,
    depositKey: { mnemonic: MNEMONIC },
    feeCeiling: '0.001',
    withdrawals: withdrawalReader,
    lanes: 2,
    mints,
    // A token that takes a fee is never swept, and says so in each round.
    sweepMinimum: { USDG: '1000' },
    mode: 'sandbox',
    pollMs: 10,
  }
  adapter = newAdapter()
  await sweepAll()
}, 60_000)
afterAll(async () => {
  await node?.stop()
  await service?.close()
})
afterEach(async () => {
  if (runtime === undefined) return
  node.intercept = undefined
  await requireAgreement()
  await service.owner.query('delete from freezes; delete from customer_freezes')
})

/** Custody and what waits equal what is held. */
async function requireAgreement(): Promise<void> {
  const { held } = await adapter.status!()
  const { rows } = await service.db.query<{ asset: string; sum: string }>(
    `select asset, sum(amount) from (
       select asset, -amount as amount from entries where account = 'custody:SOLANA'
       union all
       select asset, amount from incoming_transfers where network = 'SOLANA' and state = 'WAITING') all_of_it
     group by asset`,
  )
  const sums = new Map(
    rows.map(({ asset, sum }) => [
      asset,
      parseStoredAmount(sum.replace('-', ''), decimalsOf(asset)) * (sum.startsWith('-') ? -1n : 1n),
    ]),
  )
  for (const asset of ASSETS) {
    const funded = asset === 'SOL' ? FUNDED : 0n
    expect([asset, parseAmount(held[asset]!, decimalsOf(asset))]).toEqual([
      asset,
      funded + (sums.get(asset) ?? 0n),
    ])
  }
  expect((await verify(service.db, { tokens: new Map([['SOLANA', mints]]) })).disagreements).toEqual([])
}

/** A customer with a new address. */
async function newPlace(of = adapter, customer?: TestCustomer) {
  customer ??= await newCustomer(service)
  const { address } = await insertDepositAddress(
    service.db,
    { networks: new Map([['SOLANA', of]]), rowMacs: ROW_MACS },
    customer.customer_id,
    { profile_id: customer.profile_id, crypto_network: 'SOLANA' },
  )
  return { customer, address: address as Address }
}

const units = (asset: string, amount: string) => parseAmount(amount, asset === 'SOL' ? 9 : 6)!

/** The instructions that pay an amount from the payer's wallet. */
function paying(to: Address, asset: string, amount: string): Instruction[] {
  if (asset === 'SOL') return [transferSol(payer.address, to, units(asset, amount))]
  const [program, mint] = [PROGRAMS[asset as Token], mints[asset as Token]]
  const [source, account] = [associatedOf(payer.address, mint, program), associatedOf(to, mint, program)]
  return [
    createAssociated(program, { payer: payer.address, account, owner: to, mint }),
    transferChecked(
      program,
      { source, mint, target: account, owner: payer.address },
      units(asset, amount),
      6,
    ),
  ]
}
const give = (to: Address, asset: string, amount: string) => node.run(paying(to, asset, amount), payer)

/** One round of the worker, with everything due. */
async function round(of = adapter, db = service.db) {
  await hurry(service.db)
  return creditDepositsOn({ ...service, db }, 'SOLANA', of)
}

/** Runs rounds until nothing is left to read: the first one may end at the last account. */
async function rounds(of = adapter): Promise<number> {
  let { credited } = await round(of)
  for (let count = 1; count <= 50; count++) {
    const { credited: some, isBehind } = await round(of)
    credited += some
    if (!isBehind) return credited
  }
  throw new Error('reading does not come to an end')
}

const sweepOnce = (of = adapter, db = service.db): Promise<number> =>
  sweepDepositAddresses({ db, networks: new Map([['SOLANA', of]]), settings: service.settings })

/** Sweeps until nothing is left to do. */
async function sweepAll(of = adapter): Promise<void> {
  for (let count = 0; count < 40; count++) {
    const steps = await sweepOnce(of)
    node.mine()
    if (steps > 0) continue
    await round(of)
    return
  }
  throw new Error('sweeping does not come to an end')
}

const depositsOf = async (customer: TestCustomer) =>
  (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items
    .filter(({ type }) => type === 'CRYPTO_DEPOSIT')
    .map(({ asset, amount }) => `${amount} ${asset}`)
    .sort()

const recorded = async (address: Address) =>
  (
    await service.db.query<{ state: string; reason: string | null; detail: string | null; amount: string }>(
      'select state, reason, detail, trim_scale(amount)::text as amount from incoming_transfers where address = $1 order by amount',
      [address],
    )
  ).rows

const sweepsOf = async (address: Address) =>
  (
    await service.db.query<{ state: string; asset: string; crypto_tx_hash: string; raw_transaction: Buffer }>(
      `select state, asset, crypto_tx_hash, raw_transaction from sweeps where address = $1 and kind = 'SWEEP' order by id`,
      [address],
    )
  ).rows

const unitsAt = (address: Address, asset: string) =>
  asset === 'SOL'
    ? node.lamportsOf(address)
    : node.unitsOf(PROGRAMS[asset as Token], mints[asset as Token], address)

/** The value of a nonce account. */
const nonceAt = (account: Address): string => {
  const found = node.svm.getAccount(account)
  if (!found.exists) throw new Error(`${account} is not there`)
  return base58.encode(found.data.slice(40, 72))
}

const callsOf = (method: string) => node.calls.filter((one) => one === method).length

describe.skipIf(runtime === undefined)('on the real runtime', () => {
  describe('deposits', () => {
    test('of SOL and tokens are credited once with what arrived; failed transactions and foreign mints are not', async () => {
      const [one, two] = [await newPlace(), await newPlace()]
      // One transaction with several payments: to two addresses, in two assets, and twice to one of them.
      node.run(
        [
          ...paying(one.address, 'SOL', '1.000000007'),
          ...paying(one.address, 'USDC', '12.345678'),
          ...paying(two.address, 'USDC', '3'),
          ...paying(two.address, 'USDC', '4'),
        ],
        payer,
      )
      give(one.address, 'PYUSD', '7.000001')
      // The fee of a token stays behind: the deposit is what arrived.
      give(one.address, 'USDG', '8')
      const foreign = node.makeMint(TOKEN, 6)
      node.mint(TOKEN, foreign, one.address, 5_000_000n)
      expect(() =>
        node.run([...paying(two.address, 'SOL', '1'), ...paying(two.address, 'SOL', '1000000')], payer),
      ).toThrow('not made')
      expect(await rounds()).toBe(5)
      expect((await depositsOf(one.customer)).sort()).toEqual([
        '1.000000007 SOL',
        '12.345678 USDC',
        '6 USDG',
        '7.000001 PYUSD',
      ])
      expect(await depositsOf(two.customer)).toEqual(['7 USDC'])
      expect(await rounds()).toBe(0)
    })

    test.each(FAILURES)(
      'a worker that dies %s any step credits each once',
      async (failure) => {
        const { customer, address } = await newPlace()
        let lives = 0
        await dieAtEachStep(failure, 10, async (failures) => {
          lives += 1
          node.run([...paying(address, 'SOL', '1'), ...paying(address, 'USDC', '2')], payer)
          const db = failures.database(service.db)
          const dying = solanaAdapter(config, db)
          for (let count = 0; count < 3 && !failures.died; count++)
            await failing(failures, () =>
              round(dying, db).then(
                () => undefined,
                () => undefined,
              ),
            )
          await rounds()
          const { rows } = await service.db.query(
            `select trim_scale(amount) || ' ' || asset as what, count(*)::int from transfers
             where customer_id = $1 and status = 'COMPLETED' group by 1 order by 1`,
            [customer.customer_id],
          )
          expect(rows).toEqual([
            { what: '1 SOL', count: lives },
            { what: '2 USDC', count: lives },
          ])
        })
      },
      900_000,
    )

    test('below the minimum wait until they reach it together, and many to one address delay no other', async () => {
      const [spammed, other] = [await newPlace(), await newPlace()]
      const limited = { ...adapter, minimumDeposit: () => '1' }
      const dust = Array.from({ length: 55 }, (_, index) => 1_000_000n + BigInt(index))
      for (const lamports of dust) {
        const transfer = transferSol(payer.address, spammed.address, lamports)
        const sent = signBriefly(payer, [transfer], node.svm.latestBlockhash())
        node.pool.set(sent.crypto_tx_hash, sent.raw_transaction)
      }
      node.mine()
      give(other.address, 'SOL', '1')
      node.calls = []
      await round(limited)
      expect(await depositsOf(other.customer)).toEqual(['1 SOL'])
      expect(callsOf('getTransaction')).toBeLessThan(dust.length)
      await rounds(limited)
      expect(await depositsOf(spammed.customer)).toEqual([])
      expect(new Set((await recorded(spammed.address)).map(({ reason }) => reason))).toEqual(
        new Set(['BELOW_MINIMUM']),
      )
      give(spammed.address, 'SOL', '0.95')
      for (let count = 0; count < 3; count++) await rounds(limited)
      const credited = await depositsOf(spammed.customer)
      expect(credited).toHaveLength(dust.length + 1)
      const sum = credited.reduce((total, text) => total + units('SOL', text.split(' ')[0]!), 0n)
      expect(sum).toBe(dust.reduce((total, lamports) => total + lamports, units('SOL', '0.95')))
    })

    test('nothing counts before it is finalized: what a fork takes back is never credited', async () => {
      const { customer, address } = await newPlace()
      node.depth = 2
      node.mine(2)
      const fork = node.snapshot()
      give(address, 'SOL', '5')
      expect(await rounds()).toBe(0)
      fork()
      give(address, 'SOL', '6')
      node.mine()
      expect(await rounds()).toBe(0)
      node.mine(2)
      expect(await rounds()).toBe(1)
      node.depth = 0
      expect(await depositsOf(customer)).toEqual(['6 SOL'])
    })

    test('that one of our own withdrawals pays have its place', async () => {
      const [from, to] = [await newPlace(), await newPlace()]
      await credit(service.ledger, from.customer, 'SOL', '10')
      const { body } = await from.customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: from.customer.profile_id,
        ...{ asset: 'SOL', amount: '2', crypto_network: 'SOLANA', destination_address: to.address },
      })
      for (let count = 0; count < 5; count++) {
        await hurry(service.db)
        await settleWithdrawals(service.db, new Map([['SOLANA', adapter]]))
        node.mine()
      }
      await rounds()
      expect(await depositsOf(to.customer)).toEqual(['2 SOL'])
      const { rows } = await service.db.query<{ status: string; places: number }>(
        `select min(status) as status, count(distinct crypto_tx_index)::int as places from transfers
         where crypto_tx_hash = (select crypto_tx_hash from transfers where id = $1)`,
        [body.id],
      )
      // By the same place, the money of an orchestration that pays itself is known again.
      expect(rows).toEqual([{ status: 'COMPLETED', places: 1 }])
    })

    test('cost the same calls however many addresses there are', async () => {
      const { customer, address } = await newPlace()
      await rounds()
      const callsFor = async (amount: string) => {
        node.calls = []
        give(address, 'USDC', amount)
        await rounds()
        return node.calls
      }
      const calls = await callsFor('4')
      await service.owner.query(
        `
        insert into deposit_addresses (customer_id, id, created_at, profile_id, crypto_network, address,
                                       conversion_target_asset, derivation)
        select $1, gen_random_uuid(), clock_timestamp(), $2, 'SOLANA', address, 'NO_CONVERSION', 'none/0'
        from unnest($3::text[]) as s (address)`,
        [...Object.values(await ids()), Array.from({ length: 10_000 }, () => base58.encode(randomBytes(32)))],
      )
      expect(await callsFor('5')).toEqual(calls)
      await service.owner.query(`delete from deposit_addresses where derivation = 'none/0'`)
      expect(await depositsOf(customer)).toEqual(['4 USDC', '5 USDC'])
    })
  })

  describe('a node', () => {
    test.each(['leaves out', 'does not have', 'shows a part of'] as const)(
      'that %s a block is found out, and its deposits are credited later',
      async (how) => {
        const { customer, address } = await newPlace()
        const slotOf = (hash: string) => node.made.find(({ signature }) => signature === hash)!.slot
        give(address, 'SOL', '1')
        const slot = slotOf(give(address, 'SOL', '2'))
        give(address, 'SOL', '4')
        node.intercept = (method, params, next) => {
          if (method === 'getBlocksWithLimit' && how === 'leaves out')
            return (next() as bigint[]).filter((one) => one !== slot)
          if (method !== 'getBlock' || BigInt(params[0] as number) !== slot || how === 'leaves out')
            return next()
          const block = next() as { transactions: object[] }
          const transactions = block.transactions.map((one) => ({ ...one, meta: null }))
          return how === 'does not have' ? null : { ...block, transactions }
        }
        await round()
        for (let count = 0; count < 3; count++)
          await expect(round()).rejects.toThrow(
            how === 'leaves out'
              ? 'the node of SOLANA leaves out blocks'
              : `does not have all of slot ${slot}`,
          )
        expect(await depositsOf(customer)).toEqual(['1 SOL'])
        node.intercept = undefined
        await rounds()
        expect(await depositsOf(customer)).toEqual(['1 SOL', '2 SOL', '4 SOL'])
      },
    )

    test('whose blocks lacked a deposit is read again by an operator', async () => {
      const { customer, address } = await newPlace()
      const hash = give(address, 'SOL', '3')
      const { slot } = node.made.find(({ signature }) => signature === hash)!
      node.intercept = (method, _params, next) =>
        method === 'getBlock' ? { ...(next() as object), transactions: [] } : next()
      expect(await rounds()).toBe(0)
      node.intercept = undefined
      const rescan = (to: bigint) =>
        rescanDeposits(service, 'SOLANA', adapter, { from: slot - 1n, to }, TEST_ORIGIN)
      expect(await rescan(slot)).toMatchObject({ found: 1, credited: 1 })
      expect(await depositsOf(customer)).toEqual(['3 SOL'])
      await expect(rescan(slot + 99n)).rejects.toThrow('is not finalized yet')
      await service.db.query(
        `insert into address_holdings (customer_id, network, address, asset, balance, stale_at)
         values ($1, 'SOLANA', $2, 'SOL', 0, clock_timestamp())`,
        [customer.customer_id, address],
      )
      await rounds()
    })

    test.each(['does not answer', 'refuses'] as const)(
      'that %s in the middle of a round loses no deposit, and delays no other for long',
      async (how) => {
        const [many, ...places] = [await newPlace(), await newPlace(), await newPlace()]
        const amounts = ['1', '2', '3', '4', '5', '6', '7']
        for (const amount of amounts) give(many.address, 'SOL', amount)
        for (const { address } of places) give(address, 'SOL', '1')
        // Each number of answers before the failure: some deposits of one address are read then, and others are not.
        for (let answers = 1; answers < amounts.length; answers++) {
          let left = answers
          const real = globalThis.fetch
          const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, request) => {
            const body = typeof request?.body === 'string' ? request.body : ''
            if (!body.includes('"getBlock"') || left-- > 0) return real(url, request)
            if (how === 'does not answer') throw new TypeError('fetch failed')
            return new Response('{"jsonrpc":"2.0","id":0,"error":{"code":-32005,"message":"too many"}}')
          })
          await round().catch(() => undefined)
          spy.mockRestore()
        }
        await rounds()
        expect(await depositsOf(many.customer)).toEqual(amounts.map((amount) => `${amount} SOL`))
        for (const { customer } of places) expect(await depositsOf(customer)).toEqual(['1 SOL'])
      },
    )

    test('that is behind is named by its field: by its own word, or in live mode by its newest block', async () => {
      const second = await SolanaNode.start()
      const both = newAdapter({ verifyRpcUrl: [node.rpcUrl, second.rpcUrl] })
      expect((await both.status!()).behind).toBeUndefined()
      const unhealthy = { code: -32_005, message: 'Node is behind by 42 slots' }
      second.intercept = (method, _params, next) => {
        if (method === 'getHealth') throw Object.assign(new Error(unhealthy.message), unhealthy)
        return next()
      }
      expect((await both.status!()).behind).toMatch(
        /^verify_rpc_url\[1\] is at height \d+: Node is behind by 42/,
      )
      second.intercept = (method, _params, next) => (method === 'getBlockTime' ? 1_000_000_000 : next())
      const live = await behindOf('live', [{ field: 'rpc_url', node: plainRpc(second.rpcUrl) }], lookAt)
      expect(live.behind).toMatch(/^rpc_url is at height \d+: its newest block is \d{9} seconds old$/)
      await second.stop()
      expect((await both.status!()).behind).toMatch(
        /^verify_rpc_url\[1\]: the node at 127.0.0.1:\d+ does not answer/,
      )
    })

    test('that lies about amounts is contradicted by the second one, which is waited for', async () => {
      const second = await SolanaNode.start()
      const both = newAdapter({ verifyRpcUrl: second.rpcUrl })
      const { customer, address } = await newPlace(both)
      give(address, 'USDC', '5')
      // The second node is behind.
      second.intercept = (method, _params, next) =>
        method === 'getTransaction' ? null : method === 'getGenesisHash' ? node.genesis : next()
      await rounds(both)
      expect(await recorded(address)).toMatchObject([{ state: 'WAITING', reason: 'SECOND_NODE' }])
      second.intercept = (method, params) => {
        const made = node.made.find(({ signature }) => signature === params[0])
        return method === 'getTransaction' && made !== undefined
          ? {
              slot: made.slot,
              transaction: [made.raw.toString('base64'), 'base64'],
              meta: {
                ...{ err: made.err, fee: made.fee, preBalances: made.before, postBalances: made.after },
                ...{ preTokenBalances: made.tokensBefore, postTokenBalances: told(made.tokensAfter) },
              },
            }
          : null
      }
      let told = (balances: object[]): object[] =>
        balances.map((one) => ({ ...one, uiTokenAmount: { amount: '1' } }))
      await rounds(both)
      expect(await recorded(address)).toMatchObject([
        { reason: 'NODES_DISAGREE', detail: expect.stringMatching(/and not 5$/) as string },
      ])
      expect((await selectFreezes(service.db)).map(({ reason }) => reason)).toEqual(['NODES_DISAGREE'])
      expect(await depositsOf(customer)).toEqual([])
      told = (balances) => balances
      await rounds(both)
      expect(await depositsOf(customer)).toEqual(['5 USDC'])
      await second.stop()
    })

    test('whose rows in the database were changed to what is no asset and no address delays no other', async () => {
      const [{ customer, address }, changed] = [await newPlace(), await newPlace()]
      const { customer_id } = changed.customer
      await service.owner.query(
        `update address_holdings set asset = 'NONE', balance = 7, stale_at = (select clock_timestamp())
         where customer_id = $1 and asset = 'SOL'`,
        [customer_id],
      )
      await service.owner.query(`update deposit_addresses set address = 'nowhere' where customer_id = $1`, [
        customer_id,
      ])
      give(address, 'SOL', '1')
      await rounds(newAdapter())
      expect(await depositsOf(customer)).toEqual(['1 SOL'])
      await requireAgreement()
      await service.owner.query(`delete from address_holdings where customer_id = $1`, [customer_id])
      await service.owner.query(`update deposit_addresses set address = $2 where customer_id = $1`, [
        customer_id,
        changed.address,
      ])
    })
  })

  describe('addresses', () => {
    test('are asked for by a process without the words, and none is given out that the key has not signed', async () => {
      const { publicKey } = depositKeysOf(MNEMONIC)
      const { address: hot } = config.hotWallet
      const api = newAdapter({
        depositKey: { publicKey },
        hotWallet: { address: hot, isWatched: true, sign: () => new Uint8Array() },
      })
      const asked = newPlace(api)
      await expect
        .poll(async () => (await service.db.query('select 1 from asked_addresses')).rowCount)
        .toBeGreaterThan(0)
      await round()
      const { customer, address } = await asked
      give(address, 'USDC', '2')
      await rounds()
      expect(await depositsOf(customer)).toEqual(['2 USDC'])
      // The next ones are in memory, and no two are the same.
      const others = await Promise.all([1, 2, 3].map(() => newPlace(api, customer)))
      expect(new Set([address, ...others.map((one) => one.address)])).toHaveProperty('size', 4)
      const forged = newPlace(newAdapter({ depositKey: { publicKey: newAddress() } }), customer)
      const refused = expect(forged).rejects.toThrow('is not signed by the deposit_key')
      await expect
        .poll(async () => (await service.db.query('select 1 from asked_addresses')).rowCount)
        .toBeGreaterThan(0)
      await round()
      await refused
      await sweepAll()
      expect(unitsAt(address, 'USDC')).toBe(0n)
    })

    test('of a sandbox on a test network pay out what came in over it, and no more', async () => {
      const { customer, address } = await newPlace()
      give(address, 'SOL', '2')
      await rounds()
      await sweepAll()
      const other = await newCustomer(service)
      const sandbox = { ...adapter, paysDepositsOnly: true as const }
      const order = async (by: TestCustomer) => {
        await credit(service.ledger, by, 'SOL', '10')
        const { status, body } = await by.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
          profile_id: by.profile_id,
          ...{ asset: 'SOL', amount: '1', crypto_network: 'SOLANA', destination_address: newAddress() },
        })
        expect(status).toBe(200)
        return body
      }
      const [paid, unpaid] = [await order(customer), await order(other)]
      for (let count = 0; count < 6; count++) {
        await hurry(service.db)
        await settleWithdrawals(service.db, new Map([['SOLANA', sandbox]]))
        node.mine()
      }
      const statusOf = async (by: TestCustomer, { id }: Transfer) =>
        (await by.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body.status
      expect(await statusOf(customer, paid)).toBe('COMPLETED')
      expect(await statusOf(other, unpaid)).not.toBe('COMPLETED')
    })
  })

  describe('sweeps', () => {
    test('are broadcast again where the network drops them, and one that is behind a used nonce is made anew', async () => {
      const { address } = await newPlace()
      give(address, 'SOL', '1')
      await rounds()
      await sweepOnce()
      const [dropped] = [...node.pool.values()]
      node.pool.clear()
      await sweepOnce()
      expect([...node.pool.values()]).toEqual([dropped])
      node.pool.clear()
      // Something else has used its nonce: another sweep of a database that is lost.
      const { nonceAccount, nonce, unitLimit, unitPrice } = parsePayment(dropped!)
      const foreign = signOnNonce(
        config.hotWallet,
        [transferSol(config.hotWallet.address, config.hotWallet.address, 1n)],
        { nonceAccount, nonce, unitLimit, unitPrice },
      )
      node.pool.set(foreign.crypto_tx_hash, foreign.raw_transaction)
      node.mine()
      const shows = node.intercept
      node.intercept = (method, params, next) =>
        method === 'getSignaturesForAddress' && params[0] === nonceAccount ? [] : next()
      await expect(sweepOnce()).rejects.toThrow()
      expect((await sweepsOf(address)).map(({ state }) => state)).toEqual(['BROADCAST'])
      node.intercept = shows
      await sweepAll()
      expect((await sweepsOf(address)).map(({ state }) => state)).toEqual(['VOID', 'DONE'])
      expect(unitsAt(address, 'SOL')).toBe(0n)
      await acknowledgeTransaction(service.db, adapter, 'SOLANA', foreign.crypto_tx_hash, {
        origin: TEST_ORIGIN,
      })
    })

    test('that a restored database has lost stop no payment, and are acknowledged with their cost alone', async () => {
      const { customer, address } = await newPlace()
      give(address, 'SOL', '1')
      await rounds()
      const [lane] = sweepAccounts(config)
      const value = nonceAt(lane!.account)
      const { derivation } = (
        await service.db.query<{ derivation: string }>(
          'select derivation from deposit_addresses where address = $1',
          [address],
        )
      ).rows[0]!
      const lost = signOnNonce(
        config.hotWallet,
        [transferSol(address, config.hotWallet.address, units('SOL', '1'))],
        { nonceAccount: lane!.account, nonce: value, unitLimit: 1_000, unitPrice: 0n },
        depositKeysOf(MNEMONIC).signerOf(address, derivation)!,
      )
      node.pool.set(lost.crypto_tx_hash, lost.raw_transaction)
      node.mine()
      expect(await rounds()).toBe(0)
      await credit(service.ledger, customer, 'SOL', '10')
      const { body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        ...{ asset: 'SOL', amount: '1', crypto_network: 'SOLANA', destination_address: newAddress() },
      })
      for (let count = 0; count < 5; count++) {
        await hurry(service.db)
        await settleWithdrawals(service.db, new Map([['SOLANA', adapter]]))
        node.mine()
      }
      const paid = await customer.call<Transfer>('GET', `/v2/transfer/transfers/${body.id}`)
      expect(paid.body.status).toBe('COMPLETED')
      const acknowledged = await acknowledgeTransaction(service.db, adapter, 'SOLANA', lost.crypto_tx_hash, {
        origin: TEST_ORIGIN,
      })
      expect(acknowledged).toMatchObject({ moved: [], networkFee: { asset: 'SOL', amount: '0.00001' } })
    })

    test('use their own nonce accounts, and believe no cost that their bytes cannot have', async () => {
      const { address } = await newPlace()
      give(address, 'USDC', '30')
      await rounds()
      await sweepOnce()
      node.mine()
      const [kept] = await sweepsOf(address)
      const own = sweepAccounts(config).map(({ account }) => account)
      expect(own).toContain(parse(kept!.raw_transaction).nonceAccount)
      node.intercept = (method, params, next) => {
        const answer = next() as { meta: { postBalances: bigint[] } }
        if (method !== 'getTransaction' || params[0] !== kept!.crypto_tx_hash) return answer
        const [first, ...others] = answer.meta.postBalances
        return { ...answer, meta: { ...answer.meta, postBalances: [first! - 10n ** 9n, ...others] } }
      }
      await expect(sweepOnce()).rejects.toThrow()
      expect((await sweepsOf(address)).map(({ state }) => state)).toEqual(['BROADCAST'])
      node.intercept = undefined
      await sweepAll()
      expect((await sweepsOf(address)).map(({ state }) => state)).toEqual(['DONE'])
      const nonces = new Set(
        (await sweepsOf(address)).map(({ raw_transaction }) => parse(raw_transaction).lifetime),
      )
      expect(nonces.size).toBe(1)
    })

    test('leave what is not worth it, what takes a fee and what is frozen, and delay no other', async () => {
      const [small, taxed, frozen, good] = [
        await newPlace(),
        await newPlace(),
        await newPlace(),
        await newPlace(),
      ]
      give(small.address, 'SOL', '0.0009')
      give(taxed.address, 'USDG', '4000')
      give(frozen.address, 'PYUSD', '40')
      give(good.address, 'PYUSD', '40')
      await rounds()
      node.freeze(TOKEN_2022, mints.PYUSD, frozen.address)
      for (let count = 0; count < 12 && unitsAt(good.address, 'PYUSD') > 0n; count++) {
        await sweepOnce().catch(() => undefined)
        node.mine()
      }
      await sweepOnce().catch(() => undefined)
      await rounds()
      expect(unitsAt(good.address, 'PYUSD')).toBe(0n)
      expect(unitsAt(frozen.address, 'PYUSD')).toBe(40_000_000n)
      expect(unitsAt(taxed.address, 'USDG')).toBe(3_000_000_000n)
      expect(node.lamportsOf(small.address)).toBe(900_000n)
    })
  })
})

/** The ids of a customer whose addresses nobody pays. */
let nobody: { customer_id: string; profile_id: string } | undefined
async function ids(): Promise<{ customer_id: string; profile_id: string }> {
  if (nobody === undefined) {
    const { customer_id, profile_id } = await newCustomer(service)
    nobody = { customer_id, profile_id }
  }
  return nobody
}
