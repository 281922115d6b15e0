/*
 * Invariants of every withdrawal over a real node, wherever the worker or the node fails:
 * 1. the chain shows it once, with its exact amount, or never if it was refused;
 * 2. at rest, the ledger's custody equals the wallet's balance to the last unit, and nothing is in flight;
 * 3. at rest, no coin in the wallet is locked;
 * 4. a repeated broadcast sends the same bytes. And of every deposit: each output is credited once, however often it
 * is read, after the configured confirmations.
 */
import { originOfLoop } from '../../src/contract/actor.ts'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { judgeNetwork } from '../../src/rails/wallets/configured-networks.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { HAS_LITECOIND, BitcoinNode } from '../../test/bitcoin-node.ts'
import {
  credit,
  MASTER_KEYS,
  newCustomer,
  ownedAsDepositAddress,
  startTestService,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'
import {
  codesOf,
  order,
  readTransfer,
  reasonsOf,
  settle as settleOn,
  work as workOn,
} from '../../test/payouts-on.ts'
import { partOf } from '../../test/seed.ts'
import { hurry } from '../../test/work-off.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../src/contract/assets/amount.ts'
import { transaction, violatedConstraint } from '../../src/db/database.ts'
import { deposit } from '../../src/money/movements/deposit.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { freeze, selectFreezes, unfreeze } from '../../src/money/records/freezes.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { RowMacs } from '../../src/audit/sealed-rows.ts'
import { cancelForOperator } from '../../src/rails/payouts/cancel-withdrawal.ts'
import { creditDepositsOn } from '../../src/rails/deposits/credit-deposits.ts'
import { seeDepositsOn } from '../../src/rails/deposits/see-deposits.ts'
import { resumeAfterReorganisation } from '../../src/rails/deposits/deposit-reorganisations.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { resendWithdrawal } from '../../src/rails/payouts/resend-withdrawal.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import {
  cancelTreasuryTransfer,
  orderConsolidation,
  orderTreasurySend,
  type TreasurySend,
} from '../../src/rails/treasury/orders.ts'
import { bitcoinAdapter } from './adapter.ts'
import type { BitcoinConfig } from './wallet.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import type { PayoutNetwork, NetworkAdapter, Networks, Withdrawal } from '../../src/networks/network.ts'
import type { FoundDeposit } from '../../src/networks/found-deposits.ts'
import { signOnlyAccepted } from '../../src/rails/payouts/sign-only-accepted.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'
import { availableOf } from '../../test/payouts.ts'

const DEPTH = 2
const DECIMALS = 8
const minorOf = (text: string) => parseStoredAmount(text, DECIMALS)
const inCoin = (minor: bigint) => formatAmount(minor, DECIMALS)

let service: TestService
let node: BitcoinNode
let proxy: Proxy

if (!HAS_LITECOIND) console.warn('skipped: chains/bitcoin/adapter.chain.test.ts needs litecoind on the PATH')

describe.skipIf(!HAS_LITECOIND)('over a Litecoin node', () => {
  beforeAll(async () => {
    ;[service, node] = await Promise.all([startTestService(), BitcoinNode.start()])
    proxy = await startProxy(node.config.rpcUrl)
  })
  afterAll(async () => {
    proxy?.server.close()
    await Promise.all([service?.close(), node?.stop()])
  })
  // Two tests whose payments fail would stop the network.
  afterEach(() => service.owner.query('delete from failed_transactions'))

  // -------------------------------------------------------------------------------------------- withdrawals

  test('a payment that was invented in the database is in no transaction that pays the others', async () => {
    const customer = await newDepositor(['5', '5'])
    const [good, changed, thief] = [await node.newAddress(), await node.newAddress(), await node.newAddress()]
    const created = [await withdraw(customer, '1', good), await withdraw(customer, '2', changed)]
    const payTo = (address: string) =>
      service.owner.query('update transfers set destination_address = $2 where id = $1', [
        created[1]!.id,
        address,
      ])
    await payTo(thief)
    const signing = networksOf(signOnlyAccepted(adapter(), MACS))
    await work(signing)
    const { crypto_tx_hash: hash } = await kept(created[0]!)
    const { vout } = await node.bursar.call<{ vout: object[] }>('getrawtransaction', hash, true)
    expect(JSON.stringify(vout)).toContain(good)
    expect(JSON.stringify(vout)).not.toContain(thief)
    expect(await kept(created[1]!)).toMatchObject({ state: 'HELD', crypto_tx_hash: null })
    expect(await waitingCodes([created[1]!])).toEqual(['NOT_ACCEPTED'])
    await payTo(changed)
    await settle(created)
    await requirePaid(await readTransfer(customer, created[0]!), '1', good)
    await requirePaid(await readTransfer(customer, created[1]!), '2', changed)
    await requireAtRest()
  })

  test('one transaction pays withdrawals of several customers, and each bears its part of the fee', async () => {
    const customers = [await newDepositor(['5']), await newDepositor(['5']), await newDepositor(['5'])]
    const [twice, once] = [await node.newAddress(), await node.newAddress()]
    const created: { customer: TestCustomer; transfer: Transfer; address: string }[] = []
    for (const customer of customers) {
      for (const address of [twice, once])
        created.push({ customer, address, transfer: await withdraw(customer, '0.7', address) })
    }
    await work()
    const bytes = await Promise.all(created.map(({ transfer }) => kept(transfer)))
    expect(new Set(bytes.map(({ crypto_tx_hash }) => crypto_tx_hash)).size).toBe(1)
    expect(bytes.map(({ raw_transaction }) => raw_transaction)).toEqual(Array(6).fill(null))
    expect(await mempool()).toEqual([bytes[0]!.crypto_tx_hash])
    const { rows } = await service.db.query(
      'select payments, kind from network_transactions where crypto_tx_hash = $1',
      [bytes[0]!.crypto_tx_hash],
    )
    expect(rows).toEqual([{ payments: 6, kind: 'WITHDRAWALS' }])
    await settle(created.map(({ transfer }) => transfer))
    // Each has its own output, even if two pay the same amount to the same address.
    for (const address of [twice, once]) {
      const its = created.filter((one) => one.address === address)
      const ended = await Promise.all(its.map(({ customer, transfer }) => readTransfer(customer, transfer)))
      const outputs = ended.map(({ status, crypto_tx_hash: txid, crypto_tx_index: vout }) => {
        expect(status).toBe('COMPLETED')
        return { txid, vout, amount: '0.7' }
      })
      const byOutput = (one: { vout?: string | undefined }, other: { vout?: string | undefined }) =>
        Number(one.vout) - Number(other.vout)
      expect((await received(address)).sort(byOutput)).toEqual(outputs.sort(byOutput))
    }
    // The whole fee is posted: custody equals the wallet's balance.
    await requireAtRest()
    // Bytes with several payments are checked against each request.
    const [{ transfer }] = created as [(typeof created)[0]]
    const redirect = (address: string) =>
      service.owner.query('update transfers set destination_address = $2 where id = $1', [
        transfer.id,
        address,
      ])
    await redirect(await node.newAddress())
    expect((await verify(service.db)).disagreements).toMatchObject([
      {
        rule: 'every signed transaction pays its withdrawal',
        detail: expect.stringContaining(`transfer ${transfer.id}`) as string,
      },
    ])
    await redirect(transfer.destination_address!)
  })

  test('a payment that the node will never make is refused, and locks nothing', async () => {
    const address = await node.newAddress()
    const signings = await transaction(service.db, (tx) =>
      adapter().sign(tx, [
        wanted('0.00000001', address),
        wanted('0.5', 'rltc1qnonsense'),
        wanted('0.5', address),
      ]),
    )
    const refused = (message: string, destination_address: string) => ({
      outcome: 'REFUSED',
      refusal: {
        status_details: {
          invalid_destination_address: {
            message: expect.stringContaining(message) as string,
            destination_address,
          },
        },
      },
    })
    expect(signings).toEqual([
      refused('the amount', address),
      refused('the destination address', 'rltc1qnonsense'),
      expect.objectContaining({ outcome: 'SIGNED' }),
    ])
    // The third was signed, but its transaction was never recorded.
    expect(await locks()).toHaveLength(1)
    await transaction(service.db, (tx) => adapter().sign(tx, [wanted('1000000', address)]))
    await requireAtRest()
  })

  test('a completed withdrawal that a deep reorganisation removed is sent again from its recorded bytes', async () => {
    const customer = await newDepositor(['5'])
    const address = await node.newAddress()
    const created = await withdraw(customer, '1', address)
    await settle([created])
    const { crypto_tx_hash: hash } = await readTransfer(customer, created)
    const resend = () => resendWithdrawal(service.db, networksOf(adapter()), created.id, TEST_ORIGIN)
    await expect(resend()).rejects.toThrow(new RegExp(`^the chain has ${hash!}, with \\d+ confirmations$`))
    const { blockhash } = await node.bursar.call<{ blockhash: string }>('gettransaction', hash)
    await node.miner.call('invalidateblock', blockhash)
    await node.restart()
    expect(await mempool()).toEqual([])
    expect(await resend()).toMatchObject({ transfer_id: created.id, crypto_tx_hash: hash })
    expect(await mempool()).toEqual([hash])
    await expect(resend()).rejects.toThrow(`the node has ${hash!}, and it waits for a block`)
    await node.mine(DEPTH)
    await requirePaid(await readTransfer(customer, created), '1', address)
    await requireAtRest()
  })

  test('locks that a restart of the node cleared are restored before the next signature', async () => {
    const customer = await newDepositor(['5'])
    const one = await withdraw(customer, '1', await node.newAddress())
    // The node fails between the signature and the broadcast.
    const failing = { ...adapter(), broadcast: () => Promise.reject(new Error('the node does not answer')) }
    await work(networksOf(failing)).catch(() => undefined)
    expect(await kept(one)).toMatchObject({ state: 'SIGNED' })
    const held = await locks()
    expect(held).toHaveLength(1)
    await node.restart()
    expect(await locks()).toEqual([])
    const two = await withdraw(customer, '1', await node.newAddress())
    await work(networksOf(failing)).catch(() => undefined)
    expect(await kept(two)).toMatchObject({ state: 'SIGNED' })
    expect(await locks()).toEqual(expect.arrayContaining(held))
    await settle([one, two])
    await requireAtRest()
  })

  test('a transaction that is mined during the look-up is not treated as one that can never be mined', async () => {
    const customer = await newDepositor(['5'])
    const address = await node.newAddress()
    const created = await withdraw(customer, '1', address)
    await work()
    await node.mine(DEPTH)
    // The wallet is asked first, and does not know the transaction yet.
    proxy.answer = (calls) => {
      if (!calls.includes('"gettransaction"')) return undefined
      proxy.answer = undefined
      return JSON.stringify([{ id: 0, result: null, error: { code: -5, message: 'Invalid transaction id' } }])
    }
    await work()
    await requirePaid(await readTransfer(customer, created), '1', address)
    await requireAtRest()
  })

  // -------------------------------------------------------------------------------------------- own addresses

  describe('a withdrawal to an address of the hot wallet itself', () => {
    const refusal = {
      invalid_destination_address: {
        message:
          'the network refused the destination address: it is an address of the wallet that withdrawals are paid from',
      },
    }

    test('is refused when it is ordered; to the deposit address of a customer it is paid', async () => {
      const customer = await newDepositor(['5'])
      const networks = networksOf(adapter())
      const { profile_id, customer_id } = customer
      const refused = async (destination_address: string) => {
        const body = {
          profile_id,
          asset: 'LTC',
          crypto_network: 'LITECOIN',
          amount: '0.5',
          destination_address,
        }
        const { status, body: answer } = await customer.call<{ type: string; detail: string }>(
          'POST',
          '/v2/transfer/crypto-withdrawals',
          body,
        )
        expect({ status, answer }).toMatchObject({
          status: 400,
          answer: { detail: expect.stringContaining('the wallet that withdrawals are paid from') as string },
        })
      }
      const all = service.networks as Map<PayoutNetwork, NetworkAdapter>
      const simulated = all.get('LITECOIN')!
      all.set('LITECOIN', adapter())
      try {
        await refused(await node.bursar.call<string>('getrawchangeaddress'))
        await refused(await node.bursar.call<string>('getnewaddress'))
        const place = { profile_id, crypto_network: 'LITECOIN' } as const
        const { address } = await insertDepositAddress(
          service.db,
          { networks, rowMacs: ROW_MACS },
          customer_id,
          place,
        )
        const paid = await withdraw(customer, '0.5', address)
        await settle([paid])
        expect(await readTransfer(customer, paid)).toMatchObject({ status: 'COMPLETED' })
        await creditDepositsOn(service, 'LITECOIN', adapter())
      } finally {
        all.set('LITECOIN', simulated)
      }
      await requireAtRest()
    })

    test('that was ordered while the node did not answer fails when it would be signed, and is refunded', async () => {
      const customer = await newDepositor(['5'])
      const own = await node.bursar.call<string>('getrawchangeaddress')
      const address = await node.newAddress()
      const created = [await withdraw(customer, '0.5', own), await withdraw(customer, '0.25', address)]
      await settle(created)
      expect(await readTransfer(customer, created[0]!)).toMatchObject({
        status: 'FAILED',
        status_details: refusal,
      })
      await requirePaid(await readTransfer(customer, created[1]!), '0.25', address)
      expect(await available(customer)).toBe(
        inCoin(minorOf('5') - minorOf('0.25') - minorOf(created[1]!.fee)),
      )
      await requireAtRest()
    })

    test('that an older version signed is completed, and so are the others of its transaction', async () => {
      const customers = [await newDepositor(['5']), await newDepositor(['5']), await newDepositor(['5'])]
      const own = await node.bursar.call<string>('getrawchangeaddress')
      const addresses = [await node.newAddress(), own, await node.newAddress()]
      const created: Transfer[] = []
      await ownedAsDepositAddress(service, customers[1]!, 'LITECOIN', own, async () => {
        for (const [index, address] of addresses.entries())
          created.push(await withdraw(customers[index]!, '0.5', address))
        await work()
      })
      expect(new Set((await Promise.all(created.map(kept))).map((one) => one.crypto_tx_hash)).size).toBe(1)
      await settle(created)
      for (const index of [0, 2])
        await requirePaid(await readTransfer(customers[index]!, created[index]!), '0.5', addresses[index]!)
      expect(await readTransfer(customers[1]!, created[1]!)).toMatchObject({ status: 'COMPLETED' })
      // The coins of this one have not left the wallet.
      await creditBack('0.5')
      await requireAtRest()
    })
  })

  // -------------------------------------------------------------------------------------------- fees have risen

  describe('a withdrawal whose fee is too low', () => {
    const feeOf = async (hash: string) =>
      minorOf((await node.bursar.call<{ fees: { base: string } }>('getmempoolentry', hash)).fees.base)

    test('is replaced by a transaction with the same inputs and less change', async () => {
      await node.restart(['-mempoolreplacement=1'])
      const customer = await newDepositor(['5'])
      const address = await node.newAddress()
      setFees(cheap)
      const created = await withdraw(customer, '1', address)
      await work()
      await work(hasty())
      const before = await kept(created)
      expect(before.state).toBe('BROADCAST')
      const paid = await feeOf(before.crypto_tx_hash)
      setFees(dear)
      // Recorded first, and broadcast in the next step.
      await work(hasty())
      const after = await kept(created)
      expect(after).not.toMatchObject({ crypto_tx_hash: before.crypto_tx_hash })
      expect(after.state).toBe('SIGNED')
      expect(await mempool()).toEqual([before.crypto_tx_hash])
      await work(hasty())
      expect(await mempool()).toEqual([after.crypto_tx_hash])
      expect(await feeOf(after.crypto_tx_hash)).toBeGreaterThan(20n * paid)
      // The fee now equals the current rate: there is no reason to replace the transaction again.
      await work(hasty())
      await work(hasty())
      expect((await kept(created)).crypto_tx_hash).toBe(after.crypto_tx_hash)
      proxy.answer = undefined
      await settle([created])
      await requirePaid(await readTransfer(customer, created), '1', address)
      // The next signature unlocks the change of the first transaction.
      await settle([await withdraw(customer, '1', await node.newAddress())])
      await requireAtRest()
    })

    test('is not replaced while it is in the mempool of a node that accepts no replacements', async () => {
      await node.restart()
      const customer = await newDepositor(['5'])
      const address = await node.newAddress()
      setFees(cheap)
      const created = await withdraw(customer, '1', address)
      await work()
      const before = await kept(created)
      setFees(dear)
      await work(hasty())
      await work(hasty())
      expect(await kept(created)).toEqual({ ...before, state: 'BROADCAST' })
      await node.restart()
      await work(hasty())
      await work(hasty())
      expect((await kept(created)).crypto_tx_hash).not.toBe(before.crypto_tx_hash)
      proxy.answer = undefined
      await settle([created])
      await requirePaid(await readTransfer(customer, created), '1', address)
      await requireAtRest()
    })

    test('is found when the replaced transaction is mined after all', async () => {
      await node.restart(['-mempoolreplacement=1'])
      const customer = await newDepositor(['5'])
      const address = await node.newAddress()
      setFees(cheap)
      const created = await withdraw(customer, '1', address)
      await work()
      await work()
      const before = await kept(created)
      setFees(dear)
      await work(hasty())
      const after = await kept(created)
      expect(after.crypto_tx_hash).not.toBe(before.crypto_tx_hash)
      await node.mine(1)
      await work(hasty())
      expect(await waitingReasons([created])).toEqual([
        expect.stringContaining('the node does not accept it yet'),
      ])
      proxy.answer = undefined
      await settle([created])
      const ended = await readTransfer(customer, created)
      expect(ended.crypto_tx_hash).toBe(before.crypto_tx_hash)
      await requirePaid(ended, '1', address)
      await settle([await withdraw(customer, '1', await node.newAddress())])
      await requireAtRest()
    })

    test('is replaced with all payments of its transaction, and all are found whichever transaction is mined', async () => {
      await node.restart(['-mempoolreplacement=1'])
      for (const madeAfterAll of [false, true]) {
        const customers = [await newDepositor(['5']), await newDepositor(['5'])]
        const addresses = [await node.newAddress(), await node.newAddress()]
        setFees(cheap)
        const created = [
          await withdraw(customers[0]!, '1', addresses[0]!),
          await withdraw(customers[1]!, '2', addresses[1]!),
        ]
        await work()
        await work()
        const before = (await kept(created[0]!)).crypto_tx_hash
        setFees(dear)
        await work(hasty())
        const after = await Promise.all(created.map(kept))
        expect(after[0]!.crypto_tx_hash).not.toBe(before)
        expect(after[1]!.crypto_tx_hash).toBe(after[0]!.crypto_tx_hash)
        if (madeAfterAll) await node.mine(1)
        proxy.answer = undefined
        await settle(created)
        for (const [index, amount] of ['1', '2'].entries()) {
          const ended = await readTransfer(customers[index]!, created[index]!)
          expect(ended.crypto_tx_hash).toBe(madeAfterAll ? before : after[0]!.crypto_tx_hash)
          await requirePaid(ended, amount, addresses[index]!)
        }
        await settle([await withdraw(customers[0]!, '1', await node.newAddress())])
        await requireAtRest()
      }
    })

    test('is replaced when the mempool has dropped it', async () => {
      const customer = await newDepositor(['5'])
      const address = await node.newAddress()
      setFees(cheap)
      const fees = proxy.answer!
      const full = JSON.stringify([{ id: 0, result: null, error: { code: -26, message: 'min fee not met' } }])
      proxy.answer = (calls) => (calls.includes('"sendrawtransaction"') ? full : fees(calls))
      const created = await withdraw(customer, '1', address)
      await work()
      const before = await kept(created)
      expect(await waitingReasons([created])).toEqual([
        'the node does not accept it yet: sendrawtransaction: min fee not met (-26)',
      ])
      await work(hasty())
      expect(await kept(created)).toEqual(before)
      setFees(dear)
      const high = proxy.answer
      proxy.answer = (calls) => (calls.includes('"sendrawtransaction"') ? full : high(calls))
      await work(hasty())
      expect((await kept(created)).crypto_tx_hash).not.toBe(before.crypto_tx_hash)
      proxy.answer = undefined
      await settle([created])
      await requirePaid(await readTransfer(customer, created), '1', address)
      await requireAtRest()
    })
  })

  // -------------------------------------------------------------------------------------------- deposits

  test('each output is credited once, however often it is read', async () => {
    const customer = await newCustomer(service)
    const [one, two] = [await newAddress(customer), await newAddress(customer)]
    const hash = await node.pay(node.miner, { [one]: '0.5', [two]: '0.75' })
    await node.mine(1)
    expect(await foundAt([one, two])).toEqual([])
    await node.mine(DEPTH - 1)
    const arrived = await foundAt([one, two])
    expect(arrived.map(({ address, amount }) => [address, amount]).sort()).toEqual(
      [
        [one, '0.5'],
        [two, '0.75'],
      ].sort(),
    )
    expect(new Set(arrived.map(({ crypto_tx_hash }) => crypto_tx_hash))).toEqual(new Set([hash]))
    expect(new Set(arrived.map(({ crypto_tx_index }) => crypto_tx_index)).size).toBe(2)
    await creditArrivals()
    await creditArrivals()
    await creditArrivals(null)
    expect(await available(customer)).toBe('1.25')

    // A scan from a cursor finds only later outputs. A scan from an unknown block finds all outputs.
    const { cursor } = await adapter().scanDeposits(null)
    expect((await adapter().scanDeposits(cursor)).found).toEqual([])
    const everything = (await adapter().scanDeposits(null)).found
    // A larger one may need more confirmations: the wallet knows how many it has.
    const unknown = { ...everything[0]!, crypto_tx_hash: 'ab'.repeat(32) }
    const [seen, none] = await adapter().confirmationsOf!([everything.at(-1)!, unknown])
    await node.mine(1)
    expect(await adapter().confirmationsOf!([everything.at(-1)!, unknown])).toEqual([seen! + 1, 0])
    expect(none).toBe(0)
    expect((await adapter().scanDeposits('ab'.repeat(32))).found).toEqual(everything)
    await requireAtRest()
  })

  test('a deposit whose block a reorganisation removed is credited once, after new confirmations', async () => {
    const customer = await newCustomer(service)
    const address = await newAddress(customer)
    await creditArrivals()
    await node.pay(node.miner, { [address]: '0.5' })
    const [block] = await node.mine(DEPTH - 1)
    await creditArrivals()
    await node.miner.call('invalidateblock', block)
    for (let blocks = 0; blocks <= DEPTH; blocks++) await node.mineEmpty()
    await creditArrivals()
    expect(await available(customer)).toBe('0')
    await node.mine(DEPTH)
    await creditArrivals()
    expect(await available(customer)).toBe('0.5')
    await requireAtRest()
  })

  test('a deposit is PENDING from its first confirmation, FAILED when its block is removed, and credited once', async () => {
    const networks = networksOf(adapter())
    const customer = await newCustomer(service)
    const { customer_id, profile_id } = customer
    const place = { profile_id, crypto_network: 'LITECOIN' } as const
    const { address } = await insertDepositAddress(
      service.db,
      { networks, rowMacs: ROW_MACS },
      customer_id,
      place,
    )
    const round = async () => {
      await hurry(service.db)
      const { credited } = await creditDepositsOn(service, 'LITECOIN', adapter())
      return { credited, ...(await seeDepositsOn(service, 'LITECOIN', adapter())) }
    }
    const shown = async () =>
      (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items.map(
        ({ amount, status }) => `${amount} ${status}`,
      )
    await round()
    await node.pay(node.miner, { [address]: '0.5' })
    // A deposit in the mempool is not shown, because the sender can replace it.
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    const [block] = await node.mine(1)
    expect(await round()).toEqual({ credited: 0, seen: 1, failed: 0 })
    expect(await shown()).toEqual(['0.5 PENDING'])
    expect(await available(customer)).toBe('0')

    await node.miner.call('invalidateblock', block)
    for (let blocks = 0; blocks <= DEPTH; blocks++) await node.mineEmpty()
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 1 })
    expect(await shown()).toEqual(['0.5 FAILED'])
    expect(await available(customer)).toBe('0')

    // The transaction is in the mempool again, and is mined again.
    await node.mine(1)
    expect(await round()).toEqual({ credited: 0, seen: 1, failed: 0 })
    await node.mine(DEPTH - 1)
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    expect(await shown()).toEqual(['0.5 FAILED', '0.5 COMPLETED'])
    expect(await available(customer)).toBe('0.5')
    await requireAtRest()
  })

  test('a credited deposit that a deep reorganisation removed is listed, and is credited once when mined again', async () => {
    const networks = networksOf(adapter())
    const customer = await newCustomer(service)
    const { customer_id, profile_id } = customer
    const place = { profile_id, crypto_network: 'LITECOIN' } as const
    const { address } = await insertDepositAddress(
      service.db,
      { networks, rowMacs: ROW_MACS },
      customer_id,
      place,
    )
    const read = () => creditDepositsOn(service, 'LITECOIN', adapter())
    const states = async () =>
      (
        await service.db.query<{ state: string }>('select state from incoming_transfers where address = $1', [
          address,
        ])
      ).rows.map(({ state }) => state)
    const frozen = async () =>
      (await selectFreezes(service.db)).map(({ kind, reason }) => `${kind} ${reason}`).sort()
    await read()
    await node.pay(node.miner, { [address]: '0.5' })
    const [block] = await node.mine(DEPTH)
    await read()
    expect(await available(customer)).toBe('0.5')
    expect(await states()).toEqual(['CREDITED'])
    await node.miner.call('invalidateblock', block)
    for (let blocks = 0; blocks <= DEPTH; blocks++) await node.mineEmpty()
    await read()
    expect(await states()).toEqual(['REORGANISED'])
    expect(await frozen()).toEqual(['NETWORK REORGANISATION', 'PROFILE REORGANISATION'])
    // The credit stays. An operator decides, and no block is scanned until then.
    expect(await available(customer)).toBe('0.5')
    await node.mine(DEPTH)
    await read()
    expect(await states()).toEqual(['REORGANISED'])
    await resumeAfterReorganisation(service.db, 'LITECOIN', adapter(), {
      macs: ROW_MACS,
      origin: TEST_ORIGIN,
    })
    await read()
    expect(await states()).toEqual(['CREDITED'])
    expect(await available(customer)).toBe('0.5')
    expect(await frozen()).toEqual(['PROFILE REORGANISATION'])
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'PROFILE', customer_id, profile_id })
    await requireAtRest()
  })

  test('the cursor survives a reorganisation that removes its block', async () => {
    const customer = await newCustomer(service)
    const address = await newAddress(customer)
    await node.pay(node.miner, { [address]: '0.5' })
    await node.mine(DEPTH)
    const { cursor } = await creditArrivals()
    expect(await available(customer)).toBe('0.5')
    await node.miner.call('invalidateblock', cursor)
    await node.mine(DEPTH + 3)
    const again = await adapter().scanDeposits(cursor)
    expect(again.found.map((arrival) => arrival.address)).toEqual([address])
    await node.pay(node.miner, { [address]: '0.25' })
    await node.mine(DEPTH)
    await creditArrivals()
    expect(await available(customer)).toBe('0.75')
    await requireAtRest()
  })

  test('mined coins and change are no deposits; a withdrawal to a deposit address is one', async () => {
    const [customer, payer] = [await newCustomer(service), await newDepositor(['5'])]
    const address = await newAddress(customer)
    await ownedAsDepositAddress(service, customer, 'LITECOIN', address, async () =>
      settle([await withdraw(payer, '1', address)]),
    )
    const { cursor } = await creditArrivals()
    expect(await available(customer)).toBe('1')

    const [block] = await node.mine(1, address)
    await node.mine(DEPTH)
    expect((await adapter().scanDeposits(cursor)).found).toEqual([])
    await requireAtRest()
    // The mined coins would become the wallet's balance, without a deposit in the ledger.
    await node.miner.call('invalidateblock', block)
    await node.mine(DEPTH + 2)
    await creditArrivals()
    await requireAtRest()
  })

  // -------------------------------------------------------------------------------------------- fees and secrets

  test('the fee of a typical withdrawal is estimated within the ceiling', async () => {
    // 209 vB at the node's estimate; without an estimate, at ten times the minimum relay fee.
    proxy.answer = (calls) =>
      calls.includes('"estimatesmartfee"')
        ? JSON.stringify([
            { id: 0, result: { errors: ['Insufficient data or no feerate found'], blocks: 6 }, error: null },
            { id: 1, result: { mempoolminfee: 0.00001 }, error: null },
          ])
        : undefined
    expect((await adapter().estimateFee('LTC')).amount).toMatch(/^0\.0000209\d*$/)
    expect(await adapter({ feeCeiling: '0.00005' }).estimateFee('LTC')).toEqual({
      asset: 'LTC',
      amount: '0.00001045',
    })
    proxy.answer = undefined
  })

  test('a quote follows the estimate, and the withdrawal pays the quoted fee', async () => {
    const customer = await newDepositor(['5'])
    const networks = service.networks as Map<PayoutNetwork, NetworkAdapter>
    const simulated = networks.get('LITECOIN')!
    networks.set('LITECOIN', { ...adapter(), feeMargin: '20' })
    const destination_address = await node.newAddress()
    const request = { asset: 'LTC', crypto_network: 'LITECOIN', amount: '1', destination_address }
    const quote = async () =>
      (
        await customer.call<{ id: string; fee: string }>(
          'POST',
          '/v2/transfer/fees/crypto-withdrawal',
          request,
        )
      ).body
    try {
      setFees('0.0001')
      // 209 vB, plus the margin of a fifth.
      expect((await quote()).fee).toBe('0.00002508')
      setFees('0.001')
      const { id: fee_id, fee } = await quote()
      expect(fee).toBe('0.0002508')
      const { body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        ...request,
        profile_id: customer.profile_id,
        fee_id,
      })
      expect(body).toMatchObject({ status: 'PENDING', fee })
      const fees = async () =>
        (
          await networkReports(
            service.db,
            new Map([['LITECOIN', { adapter: adapter(), confirmations: DEPTH }]]),
          )
        )[0]!.fees[0]!
      const before = await fees()
      await settle([body])
      await requirePaid(await readTransfer(customer, body), '1', destination_address)
      const after = await fees()
      expect(minorOf(after.collected) - minorOf(before.collected)).toBe(minorOf(fee))
      const paid = minorOf(after.paid) - minorOf(before.paid)
      expect(paid).toBeGreaterThan(minorOf('0.0001'))
      expect(paid).toBeLessThan(minorOf(fee))
    } finally {
      networks.set('LITECOIN', simulated)
      proxy.answer = undefined
    }
    await requireAtRest()
  })

  test('no error contains the password', async () => {
    const { rpcPassword } = node.config
    const errors: unknown[] = []
    const fail = (config: Partial<BitcoinConfig>) =>
      Promise.resolve()
        .then(() => adapter(config).status())
        .catch((error: unknown) => errors.push(error))
    await fail({ rpcUser: 'nobody' })
    await fail({ rpcUrl: 'http://127.0.0.1:1' })
    await fail({ wallet: 'none' })
    await fail({ rpcUrl: node.config.rpcUrl.replace('//', `//bursar:${encodeURIComponent(rpcPassword)}@`) })
    expect(errors.map((error) => (error as Error).message)).toEqual([
      expect.stringContaining('refuses this user and password'),
      expect.stringContaining('does not answer'),
      expect.stringContaining('wallet'),
      expect.stringContaining('without a user and password'),
    ])
    const shown = inspect(errors, { depth: 10, showHidden: true })
    for (const secret of [rpcPassword, encodeURIComponent(rpcPassword), btoa(`bursar:${rpcPassword}`)])
      expect(shown).not.toContain(secret)
  })

  describe('an unknown spend of the wallet', () => {
    afterAll(lookAtAll)

    /** Deletes the records, as restoring a backup from before the signature and broadcast would. */
    async function forget(transfers: Transfer[]): Promise<void> {
      const ids = [transfers.map(({ id }) => id)]
      await service.owner.query('delete from outgoing_transfers where transfer_id = any ($1)', ids)
      await service.owner.query('delete from network_transactions where transfer_ids && $1::uuid[]', ids)
    }

    test('may have paid a withdrawal: nothing is signed until an operator says which', async () => {
      const customer = await newDepositor(['5', '5', '5'])
      const addresses = [await node.newAddress(), await node.newAddress(), await node.newAddress()]
      const paid = [await withdraw(customer, '1', addresses[0]!)]
      await work()
      paid.push(await withdraw(customer, '1', addresses[1]!))
      await work()
      const hashes = (await Promise.all(paid.map(kept))).map(({ crypto_tx_hash }) => crypto_tx_hash)
      await node.mine(1)
      await forget(paid)
      const other = await withdraw(customer, '1', addresses[2]!)
      const all = [...paid, other]
      const height = await node.bursar.call<string>('getblockcount')
      await work()
      // A worker that starts long after the spends were confirmed finds them too.
      await node.mine(DEPTH + 3)
      await work()
      for (const reason of await waitingReasons(all)) {
        expect(reason).toMatch(/ and 1 more, which this database has no record of: /)
        expect(reason).toContain(`first_height ${Number(height) + 1} that all up to there were looked at`)
      }
      expect(await mempool()).toEqual([])

      const mark = (transfer: Transfer, hash: string) =>
        markWithdrawalPaid(service.db, networksOf(adapter()), transfer.id, hash, TEST_ORIGIN)
      await expect(mark(other, hashes[0]!)).rejects.toThrow(`does not pay 1 LTC to ${addresses[2]!}`)
      await expect(mark(paid[0]!, 'ab'.repeat(32))).rejects.toThrow('has no transaction abab')
      const marked = await mark(paid[0]!, hashes[0]!)
      expect(marked).toEqual({
        customer_id: customer.customer_id,
        transfer_id: paid[0]!.id,
        crypto_network: 'LITECOIN',
        crypto_tx_hash: hashes[0],
      })
      expect(await mark(paid[0]!, hashes[0]!)).toEqual(marked)
      await expect(mark(paid[0]!, hashes[1]!)).rejects.toThrow('has a transaction of its own')
      await work()
      expect(await waitingReasons(all)).toEqual([
        null,
        expect.stringContaining(`the wallet has sent ${hashes[1]!}, which`),
        expect.stringContaining(`the wallet has sent ${hashes[1]!}, which`),
      ])
      await mark(paid[1]!, hashes[1]!)
      await settle(all)
      for (const [index, one] of all.entries()) {
        const ended = await readTransfer(customer, one)
        await requirePaid(ended, '1', addresses[index]!)
        if (index < 2) expect(ended.crypto_tx_hash).toBe(hashes[index])
      }
      await expect(mark(other, hashes[0]!)).rejects.toThrow('is COMPLETED')
      // A transaction that has paid one withdrawal pays no other.
      const again = await withdraw(customer, '1', addresses[0]!)
      await expect(mark(again, hashes[0]!)).rejects.toThrow(`the transaction of withdrawal ${paid[0]!.id}`)
      await settle([again])
      expect(await received(addresses[0]!)).toHaveLength(2)
      await requireAtRest()
    })

    test('with several payments counts as unknown until an operator has assigned each payment', async () => {
      const customer = await newDepositor(['5', '5'])
      const address = await node.newAddress()
      const paid = [
        await withdraw(customer, '1', address),
        await withdraw(customer, '1', address),
        await withdraw(customer, '0.5', await node.newAddress()),
      ]
      await work()
      const [{ crypto_tx_hash: hash }] = [await kept(paid[0]!)]
      await forget(paid)
      await node.mine(1)
      for (const one of paid) {
        await work()
        expect((await waitingReasons([one]))[0]).toContain(`the wallet has sent ${hash}, which this database`)
        expect(await waitingCodes([one])).toEqual(['UNKNOWN_SPENDS'])
        await markWithdrawalPaid(service.db, networksOf(adapter()), one.id, hash, TEST_ORIGIN)
      }
      const again = await withdraw(customer, '1', address)
      const marking = markWithdrawalPaid(service.db, networksOf(adapter()), again.id, hash, TEST_ORIGIN)
      await expect(marking).rejects.toThrow('is the transaction of withdrawal')
      await settle([...paid, again])
      const ended = await Promise.all(paid.map((one) => readTransfer(customer, one)))
      expect(new Set(ended.map(({ crypto_tx_index }) => crypto_tx_index)).size).toBe(3)
      expect(await received(address)).toHaveLength(3)
      await requireAtRest()
    })

    test.each([true, false])(
      'of a withdrawal whose own record is lost is not made again (broadcast before: %s)',
      async (before) => {
        const customer = await newDepositor(['5'])
        const created = await withdraw(customer, '1', await node.newAddress())
        const failing = {
          ...adapter(),
          broadcast: () => Promise.reject(new Error('the node does not answer')),
        }
        await work(networksOf(before ? adapter() : failing)).catch(() => undefined)
        const { crypto_tx_hash: hash } = await kept(created)
        // The node of the customer is restored from an older state, as a standby that lagged behind.
        await service.owner.query('delete from outgoing_transfers where transfer_id = $1', [created.id])
        if (before) await node.mine(1)
        await work()
        expect((await waitingReasons([created]))[0]).toContain(
          `${hash} was signed for it, and its own record`,
        )
        expect(await waitingCodes([created])).toEqual(['UNKNOWN_SPENDS'])
        await markWithdrawalPaid(service.db, networksOf(adapter()), created.id, hash, TEST_ORIGIN)
        await settle([created])
        await requirePaid(await readTransfer(customer, created), '1', created.destination_address!)
        await requireAtRest()
      },
    )

    test('may be missing in its initial download: a FAIL of doctor', async () => {
      // The newest block is older than this, by the node's clock.
      const tomorrow = Math.floor(Date.now() / 1000) + 86_400
      await node.restart(['-maxtipage=1', `-mocktime=${tomorrow}`])
      const configured = { adapter: adapter(), confirmations: 1 }
      const [report] = await networkReports(service.db, new Map([['LITECOIN', configured]]))
      expect(judgeNetwork(report!)).toMatchObject({
        result: 'FAIL',
        says: expect.stringMatching(
          /^LITECOIN: the node is catching up with its chain: \d+ blocks of/,
        ) as string,
      })
      await node.restart()
    })

    test('may be missing from a node that is behind: nothing is signed meanwhile', async () => {
      const customer = await newDepositor(['5'])
      const created = await withdraw(customer, '1', await node.newAddress())
      const info = { blocks: 7, headers: 9, initialblockdownload: false }
      proxy.answer = (calls) =>
        calls.includes('"getblockchaininfo"')
          ? JSON.stringify({ id: 0, result: info, error: null })
          : undefined
      await work()
      expect(await waitingReasons([created])).toEqual([
        'the node is catching up with its chain: 7 blocks of 9',
      ])
      expect(await adapter().status()).toMatchObject({
        behind: 'the node is catching up with its chain: 7 blocks of 9',
      })
      proxy.answer = undefined
      await service.db.query(`update wallet_checks set checked_block = $1`, ['ab'.repeat(32)])
      await work()
      expect(await waitingReasons([created])).toEqual([
        expect.stringMatching(/^the node does not know block abab.*, which it had/),
      ])
      await service.owner.query('delete from wallet_checks')
      await settle([created])
      await requireAtRest()
    })

    test('may have paid no withdrawal: first_height records that an operator has reviewed it', async () => {
      const customer = await newDepositor(['5', '5'])
      const hash = await node.pay(node.bursar, { [await node.newAddress()]: '0.5' })
      const address = await node.newAddress()
      const created = await withdraw(customer, '1', address)
      await work()
      expect(await waitingReasons([created])).toEqual([
        expect.stringMatching(`has sent ${hash}, which .* first_height \\(once all are mined\\) that`),
      ])
      await node.mine(1)
      await lookAtAll()
      await settle([created])
      await requirePaid(await readTransfer(customer, created), '1', address)
    })

    test('an unknown transfer, or one that is not a withdrawal, is not marked', async () => {
      const customer = await newDepositor(['1'])
      const { rows } = await service.db.query<{ id: string }>(
        'select id from transfers where customer_id = $1',
        [customer.customer_id],
      )
      for (const id of [crypto.randomUUID(), rows[0]!.id]) {
        const marking = markWithdrawalPaid(
          service.db,
          networksOf(adapter()),
          id,
          'ab'.repeat(32),
          TEST_ORIGIN,
        )
        await expect(marking).rejects.toThrow(`there is no withdrawal ${id}`)
      }
    })
  })

  // -------------------------------------------------------------------------------------------- the wallet used by hand

  describe('when an operator uses the wallet by hand', () => {
    /** Creates a withdrawal with the wallet's only coin, which the wallet then treats as unspent. */
    async function forgotten(broadcastOnce: boolean, to?: string) {
      await emptyWallet()
      const customer = await newDepositor(['5'])
      const address = to ?? (await node.newAddress())
      const created = await withdraw(customer, '1', address)
      const failing = { ...adapter(), broadcast: () => Promise.reject(new Error('the node does not answer')) }
      await work(networksOf(broadcastOnce ? adapter() : failing)).catch(() => undefined)
      if (broadcastOnce) {
        await node.restart()
        await node.bursar.call('abandontransaction', (await kept(created)).crypto_tx_hash)
      } else await node.bursar.call('lockunspent', true)
      return { customer, address, created }
    }

    test.each([false, true])(
      'a payment that can never be mined is refunded (broadcast before: %s)',
      async (before) => {
        const { customer, created, address } = await forgotten(before)
        const hash = await node.pay(node.bursar, { [await node.newAddress()]: '2' })
        await node.mine(DEPTH - 1)
        await work()
        await work()
        expect(await readTransfer(customer, created)).toMatchObject({ status: 'PENDING' })
        await settle([created])
        const message = `transaction ${hash} has spent its coins, and does not pay it`
        expect(await readTransfer(customer, created)).toMatchObject({
          status: 'FAILED',
          status_details: { conflicting_transaction: { message } },
        })
        expect(await received(address)).toEqual([])
        expect(await available(customer)).toBe('5')
        expect(await locks()).toEqual([])
      },
    )

    test.each([false, true])(
      'a withdrawal that was paid by hand is never refunded (broadcast before: %s)',
      async (before) => {
        const { customer, created, address } = await forgotten(before)
        const hash = await node.pay(node.bursar, { [address]: '1' })
        await settle([created])
        expect(await readTransfer(customer, created)).toMatchObject({ crypto_tx_hash: hash })
        await requirePaid(await readTransfer(customer, created), '1', address)
        expect(await locks()).toEqual([])
      },
    )

    test('a payment to a deposit address is a deposit only if it pays a withdrawal', async () => {
      const customer = await newCustomer(service)
      const address = await newAddress(customer)
      // An operator pays a withdrawal with another transaction, and pays the same address once more without an order.
      let made: Awaited<ReturnType<typeof forgotten>>
      await ownedAsDepositAddress(service, customer, 'LITECOIN', address, async () => {
        made = await forgotten(true, address)
      })
      const { customer: payer, created } = made!
      const from = Number(await node.bursar.call<string>('getblockcount'))
      const hash = await node.pay(node.bursar, { [address]: '1' })
      await settle([created])
      expect(await readTransfer(payer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
      await node.pay(node.bursar, { [address]: '2' })
      await node.mine(DEPTH)
      await lookAtAll()
      await ownedAsDepositAddress(service, customer, 'LITECOIN', address, async () =>
        settle([await withdraw(payer, '0.5', address)]),
      )

      const amounts = (found: FoundDeposit[]) =>
        found.flatMap((one) => (one.address === address ? one.amount : [])).sort()
      // The node lists outputs in no particular order.
      expect(amounts(await adapter().scanBlocks!(BigInt(from), BigInt(from)))).toEqual(['0.5', '1'])
      await creditArrivals()
      expect(await available(customer)).toBe('1.5')
    })
  })

  describe('with one coin in the wallet', () => {
    beforeAll(() => node.restart(['-mempoolreplacement=1']))

    test('a deposit is not spent before its confirmations, and the waiting reason says so', async () => {
      await emptyWallet()
      const customer = await newCustomer(service)
      const into = await newAddress(customer)
      await node.pay(node.miner, { [into]: '5' })
      await node.mine(DEPTH - 1)
      await credit(service.ledger, customer, 'LTC', '5')
      const address = await node.newAddress()
      const created = await withdraw(customer, '1', address)
      await work()
      expect(await waitingReasons([created])).toEqual([
        `the hot wallet has 0 LTC to spend, and needs 1 LTC and the fee; 5 LTC more have fewer than ${DEPTH} confirmations`,
      ])
      await node.mine(1)
      await settle([created])
      await requirePaid(await readTransfer(customer, created), '1', address)
    })

    test('the only coin is split into several, so that the next withdrawals wait for no block', async () => {
      await emptyWallet()
      const customer = await newDepositor(['5'])
      const created: Transfer[] = []
      for (let round = 1; round <= 4; round++) {
        created.push(await withdraw(customer, '0.3', await node.newAddress()))
        await work()
      }
      const states = (await Promise.all(created.map(kept))).map(({ state }) => state)
      expect(states).toEqual(Array(4).fill('BROADCAST'))
      expect(await waitingReasons(created)).toEqual(Array(4).fill(null))
      expect((await node.bursar.call<unknown[]>('listunspent', 0)).length).toBeGreaterThan(5)
      await settle(created)
    })

    test('a withdrawal is not replaced while another is signed on its change, nor above the ceiling', async () => {
      await emptyWallet()
      const customer = await newDepositor(['5'])
      setFees(cheap)
      const created = await withdraw(customer, '1', await node.newAddress())
      await work()
      await work()
      const behind = await withdraw(customer, '1', await node.newAddress())
      await work()
      await work()
      const before = [await kept(created), await kept(behind)]
      setFees('0.02')
      await work(hasty())
      expect([await kept(created), await kept(behind)]).toEqual(before)
      setFees(dear)
      await work(hasty())
      expect((await kept(created)).crypto_tx_hash).toBe(before[0]!.crypto_tx_hash)
      const last = (await kept(behind)).crypto_tx_hash
      expect(last).not.toBe(before[1]!.crypto_tx_hash)
      // The replacement pays for both transactions, because miners take neither without the other.
      await work(hasty())
      const { ancestorcount, ancestorsize, fees } = await pooled(last)
      expect(ancestorcount).toBe('2')
      const wanted = minorOf(dear) * BigInt(ancestorsize)
      expect(minorOf(fees.ancestor) * 1_000n).toBeGreaterThanOrEqual(wanted)
      expect(minorOf(fees.ancestor) * 1_000n).toBeLessThan((wanted * 11n) / 10n)
      // No further round replaces it.
      await work(hasty())
      expect((await kept(behind)).crypto_tx_hash).toBe(last)
      proxy.answer = undefined
      await settle([created, behind])
      await settle([await withdraw(customer, '1', await node.newAddress())])
      expect(await locks()).toEqual([])
    })

    test('a child on the change of an underpaying parent pays for the parent, and only the first child does', async () => {
      await node.restart()
      await emptyWallet()
      const customer = await newDepositor(['5'])
      setFees(cheap)
      const created = [await withdraw(customer, '1', await node.newAddress())]
      await work()
      await work()
      setFees(dear)
      const atRate = (vbytes: string) => (minorOf(dear) * BigInt(vbytes)) / 1_000n
      const next = async () => {
        created.push(await withdraw(customer, '0.5', await node.newAddress()))
        await work()
        await work()
        return pooled((await kept(created.at(-1)!)).crypto_tx_hash)
      }
      const { ancestorcount, ancestorsize, fees } = await next()
      expect(ancestorcount).toBe('2')
      expect(minorOf(fees.ancestor)).toBeGreaterThanOrEqual(atRate(ancestorsize))
      expect(minorOf(fees.ancestor)).toBeLessThan((atRate(ancestorsize) * 11n) / 10n)
      // The next one, on another output of the same parent, has nothing more to pay for it.
      const second = await next()
      expect(second.ancestorcount).toBe('2')
      expect(minorOf(second.fees.base)).toBeLessThan((atRate(second.vsize) * 11n) / 10n)
      proxy.answer = undefined
      await settle(created)
      expect(await locks()).toEqual([])
      await node.restart(['-mempoolreplacement=1'])
    })

    test.each(partOf([false, true]))(
      "children pay for an underpaying parent once, despite a stranger's child (stranger: %s)",
      async (isPinned) => {
        await node.restart()
        await emptyWallet()
        const [customer, stranger] = [await newDepositor(['5']), await newCustomer(service)]
        await credit(service.ledger, stranger, 'LTC', '10')
        setFees(cheap)
        const trap = await node.newAddress()
        const created = [await withdraw(stranger, '0.01', trap)]
        for (let n = 0; n < 60; n++) created.push(await withdraw(customer, '0.002', await node.newAddress()))
        await work()
        await work()
        const parent = (await kept(created[0]!)).crypto_tx_hash
        expect((await kept(created.at(-1)!)).crypto_tx_hash).toBe(parent)
        if (isPinned) {
          const [theirs] = await received(trap)
          const outputs: Record<string, string> = {}
          for (let n = 0; n < 150; n++) outputs[await node.newAddress()] = '0.00006'
          const spent = [{ txid: parent, vout: Number(theirs!.vout) }]
          const raw = await node.miner.call<string>('createrawtransaction', spent, outputs)
          const { hex } = await node.miner.call<{ hex: string }>('signrawtransactionwithwallet', raw)
          await node.miner.call('sendrawtransaction', hex, 0)
        }
        const large = await pooled(parent)
        const lifts: bigint[] = []
        const base = minorOf('0.0005')
        for (let n = 0n; n < 6n; n++) {
          // Each rate is 1 % above the one before.
          const rate = base + n * (base / 100n)
          setFees(formatAmount(rate, 8))
          created.push(await withdraw(customer, '0.002', await node.newAddress()))
          await work()
          await work()
          const { vsize, fees } = await pooled((await kept(created.at(-1)!)).crypto_tx_hash)
          // The amount above its own fee.
          lifts.push(minorOf(fees.base) - (rate * BigInt(vsize)) / 1_000n)
        }
        const whole = (base * BigInt(large.vsize)) / 1_000n - minorOf(large.fees.base)
        expect(lifts[0]).toBeGreaterThanOrEqual(whole)
        // A rise of 1 %, and change that is too small for a coin, are paid for each time; the parent's whole
        // shortfall is not.
        const again = lifts.slice(1)
        expect(Math.max(...again.map(Number))).toBeLessThan(Number(whole) / 5)
        expect(Number(again.reduce((sum, one) => sum + one))).toBeLessThan(Number(whole) / 2)
        proxy.answer = undefined
        await settle(created)
        expect(await locks()).toEqual([])
        await node.restart(['-mempoolreplacement=1'])
      },
    )

    test('a child that cannot also pay for its parent pays for itself', async () => {
      await node.restart()
      await emptyWallet()
      const customer = await newDepositor(['0.132'])
      await credit(service.ledger, customer, 'LTC', '10')
      setFees(cheap)
      const created: Transfer[] = []
      for (let n = 0; n < 60; n++) created.push(await withdraw(customer, '0.00203', await node.newAddress()))
      await work()
      await work()
      setFees('0.003')
      created.push(await withdraw(customer, '0.006', await node.newAddress()))
      await work()
      await work()
      expect(await waitingReasons([created.at(-1)!])).toEqual([null])
      const { ancestorcount, vsize, fees } = await pooled((await kept(created.at(-1)!)).crypto_tx_hash)
      expect(ancestorcount).toBe('2')
      expect(minorOf(fees.base)).toBeGreaterThanOrEqual((minorOf('0.003') * BigInt(vsize)) / 1_000n)
      proxy.answer = undefined
      await settle(created)
      expect(await locks()).toEqual([])
      await node.restart(['-mempoolreplacement=1'])
    })

    test('a withdrawal of more coins than one transaction can spend waits, and the reason names the consolidation', async () => {
      await emptyWallet()
      const customer = await newCustomer(service)
      await credit(service.ledger, customer, 'LTC', '15')
      // This reply replaces the list of coins, because making 1,400 coins on the node would take long.
      const listed = Array.from({ length: 1_400 }, (_, index) => ({
        txid: index.toString(16).padStart(64, '0'),
        ...{ vout: 0, amount: 0.01, confirmations: DEPTH, spendable: true, safe: true },
        scriptPubKey: `0014${'00'.repeat(20)}`,
      }))
      proxy.answer = (calls) =>
        calls.includes('"listunspent"') ? JSON.stringify({ id: 0, result: listed, error: null }) : undefined
      const created = await withdraw(customer, '13.5', await node.newAddress())
      await work()
      proxy.answer = undefined
      expect(await waitingReasons([created])).toEqual([
        "the hot wallet has 14 LTC to spend, and needs 13.5 LTC and the fee; it is in 1400 coins, of which one transaction can spend 1323, and these hold 13.23 LTC: 'bursar wallet consolidate' merges them",
      ])
      expect(await locks()).toEqual([])
      await newDepositor(['14'])
      await settle([created])
    })

    test('nothing is signed on the change of a replaced transaction', async () => {
      await emptyWallet()
      const customer = await newDepositor(['5'])
      setFees(cheap)
      const created = await withdraw(customer, '1', await node.newAddress())
      await work()
      await work()
      const before = await kept(created)
      setFees(dear)
      await work(hasty())
      expect((await kept(created)).crypto_tx_hash).not.toBe(before.crypto_tx_hash)
      const other = await newCustomer(service)
      await credit(service.ledger, other, 'LTC', '10')
      const failing = { ...adapter(), broadcast: () => Promise.reject(new Error('the node does not answer')) }
      const behind = await withdraw(other, '1', await node.newAddress())
      await work(networksOf(failing)).catch(() => undefined)
      expect(await waitingReasons([behind])).toEqual([
        expect.stringMatching(
          /^the hot wallet has 0 LTC to spend, .*; 3\.99\d+ LTC more are change of transactions that are not broadcast yet$/,
        ),
      ])
      proxy.answer = undefined
      await settle([created, behind])
      await settle([await withdraw(customer, '1', await node.newAddress())])
      expect(await locks()).toEqual([])
    })
  })

  // -------------------------------------------------------------------------------------------- treasury

  describe('a treasury transfer', () => {
    beforeAll(async () => {
      coldAddress = await node.newAddress()
      await emptyWallet()
      gap = await custodyGap()
    })
    /** The wallet's balance above custody, which earlier tests have left. */
    let gap: bigint
    async function custodyGap(): Promise<bigint> {
      const { rows } = await service.db.query<{ sum: string }>(
        `select coalesce(sum(amount), 0) as sum from entries where account = 'custody:LITECOIN'`,
      )
      return minorOf(await node.bursar.call<string>('getbalance')) + minorOf(rows[0]!.sum)
    }
    /** Nothing is locked, and the ledger moved by the same amount as the wallet. */
    async function requireSameGap(): Promise<void> {
      expect(inCoin(await custodyGap())).toBe(inCoin(gap))
      expect(await locks()).toEqual([])
      expect((await verify(service.db)).disagreements).toEqual([])
    }
    const signing = () => networksOf(signOnlyAccepted(adapter(), MACS))

    test('goes to cold storage once, after the withdrawals of customers, and its entries show that', async () => {
      const customer = await newDepositor(['3', '3'])
      const { transfer } = await orderSend({ reference: 'cold 1' })
      expect(transfer).toMatchObject({ status: 'PENDING', amount: '1.2', reference: 'cold 1', state: null })
      const created = await withdraw(customer, '0.5', await node.newAddress())
      await work(signing())
      const [ours, theirs] = [await kept(transfer), await kept(created)]
      expect(ours.crypto_tx_hash).not.toBe(theirs.crypto_tx_hash)
      // A repeated order with the same reference returns the same transfer.
      for (const amount of ['1.2', '1.20'])
        expect(await orderSend({ reference: 'cold 1', amount })).toMatchObject({
          is_new: false,
          transfer: { id: transfer.id },
        })
      await settle([created])
      await settle([transfer])
      expect(await received(coldAddress)).toMatchObject([{ txid: ours.crypto_tx_hash, amount: '1.2' }])
      expect([await sumOf('cold'), (await orderSend({ reference: 'cold 1' })).transfer.status]).toEqual([
        '-1.2',
        'COMPLETED',
      ])
      const [report] = await networkReports(
        service.db,
        new Map([['LITECOIN', { adapter: adapter(), confirmations: DEPTH }]]),
      )
      expect(report!.custody).toMatchObject([{ asset: 'LTC', in_cold: '1.2', difference: inCoin(gap) }])
      await requireSameGap()
    })

    test('is refused to an own address, above the funds, or as a different order with the same reference', async () => {
      const own = (await adapter().newDepositAddress('LITECOIN'))(randomUUID())
      const owner = await newCustomer(service)
      const given = await owner.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
        profile_id: owner.profile_id,
        crypto_network: 'LITECOIN',
      })
      for (const [changes, reason] of [
        [{ destination_address: own.address }, /^to: .* is of the hot wallet of LITECOIN itself$/],
        [{ destination_address: given.body.address }, /^to: .* is a deposit address$/],
        [{ destination_address: 'rltc1qnonsense' }, /^to: rltc1qnonsense is no address of LITECOIN$/],
        [{ amount: '1000000' }, /^amount: the hot wallet of LITECOIN has [0-9.]+ LTC$/],
        [{ amount: '0' }, /^amount must be above 0, with at most 8 decimals$/],
        [{ amount: '0.000000001' }, /^amount must be above 0/],
        [{ asset: 'ETH' }, /^asset ETH is not on LITECOIN$/],
        [{ reference: ' ' }, /^reference must have 1 to 100 characters$/],
        [
          { reference: 'cold 1', amount: '1.3' },
          /^reference cold 1 is of another transfer: its amount is 1.2, not 1.3$/,
        ],
      ] as const)
        await expect(orderSend(changes), JSON.stringify(changes)).rejects.toThrow(reason)
      const { rowCount } = await service.db.query('select from transfers where customer_id = $1', [
        PLATFORM_ID,
      ])
      expect(rowCount).toBe(1)
    })

    test('is not signed on a frozen network, nor while a withdrawal waits for the hot wallet, and can be cancelled', async () => {
      const { transfer } = await orderSend({ amount: '0.4' })
      await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'LITECOIN' }, 'OPERATOR', 'looking')
      await work(signing())
      expect(await waitingReasons([transfer])).toEqual([expect.stringContaining('looking')])
      await service.owner.query('delete from freezes; delete from customer_freezes')

      const customer = await newCustomer(service)
      await credit(service.ledger, customer, 'LTC', '1000')
      const large = await withdraw(customer, '900', await node.newAddress())
      await work(signing())
      await work(signing())
      expect(await waitingReasons([transfer])).toEqual([
        expect.stringMatching(
          /^customers' withdrawals come first: .* LTC left, and the unsigned ones need 900 LTC$/,
        ),
      ])
      expect(await locks()).toEqual([])

      expect(await cancelTreasuryTransfer(service.db, transfer.id, TEST_ORIGIN)).toMatchObject({
        changed: true,
      })
      expect(await cancelTreasuryTransfer(service.db, transfer.id, TEST_ORIGIN)).toMatchObject({
        changed: false,
      })
      await expect(cancelTreasuryTransfer(service.db, large.id, TEST_ORIGIN)).rejects.toThrow(
        'there is no treasury transfer',
      )
      await cancelForOperator(service.db, large.id, TEST_ORIGIN)
      const { rowCount } = await service.db.query('select from entries where transfer_id = $1', [transfer.id])
      expect(rowCount).toBe(0)
      expect(await received(coldAddress)).toHaveLength(1)
    })

    test('is not signed once its amount or destination was changed in the database', async () => {
      const { transfer } = await orderSend({ amount: '0.2' })
      await service.owner.query('update transfers set destination_address = $2 where id = $1', [
        transfer.id,
        await node.newAddress(),
      ])
      await work(signing())
      expect(await waitingReasons([transfer])).toEqual([expect.stringContaining('its MAC does not match')])
      await cancelTreasuryTransfer(service.db, transfer.id, TEST_ORIGIN)
    })

    test('merges the smallest coins into one, within its maximum cost', async () => {
      await newDepositor([...Array<string>(10).fill('1'), ...Array<string>(30).fill('0.05')])
      const before = await coins()
      const { held } = await adapter().status()
      await expect(consolidate('x')).rejects.toThrow('the fee rate must be an amount of LTC')
      const { transfer } = await consolidate('0.00005')
      expect(await consolidate()).toMatchObject({ is_new: false, transfer: { id: transfer.id } })
      setFees('0.00006')
      await work(signing())
      expect(await waitingReasons([transfer])).toEqual([
        "the network's fee is 0.00006 LTC per kvB, and the consolidation pays 0.00005 LTC at most",
      ])
      setFees('0.00004')
      await work(signing())
      await work(signing())
      // A replacement respects the maximum cost as well.
      setFees('0.00006')
      await node.restart(['-mempoolreplacement=1'])
      await work(hasty())
      const { crypto_tx_hash } = await kept(transfer)
      proxy.answer = undefined
      await settle([transfer])
      expect((await kept(transfer)).crypto_tx_hash).toBe(crypto_tx_hash)
      const after = await coins()
      expect(after.length).toBeLessThanOrEqual(10 + 2)
      expect(before.length).toBeGreaterThanOrEqual(40)
      const cost = minorOf(held.LTC!) - minorOf((await adapter().status()).held.LTC!)
      expect(cost).toBeGreaterThan(0n)
      expect(after.map(({ amount }) => inCoin(minorOf(amount)))).toContain(transfer.amount)
      await requireSameGap()
      await expect(consolidate()).rejects.toThrow('there is nothing to merge')
    })

    test('cannot be acknowledged if it may pay a pending withdrawal, unless an operator denies that', async () => {
      const customer = await newDepositor(['2', '2', '2'])
      const [address, other] = [await node.newAddress(), await node.newAddress()]
      const created = [await withdraw(customer, '0.3', address), await withdraw(customer, '0.4', other)]
      // An earlier Bursar, before the backup, paid both withdrawals, and a payment by hand repeated the first.
      const hash = await node.pay(node.bursar, { [address]: '0.3', [other]: '0.4' })
      const again = await node.pay(node.bursar, { [address]: '0.3' })
      await node.mine(DEPTH)
      const [first, second] = created.map(({ id }) => id)
      await expect(acknowledge(hash)).rejects.toThrow(
        `${hash} pays 0.3 LTC to ${address}, as withdrawal ${first!} asks, which is PENDING (and 1 more like it): ` +
          `'bursar withdrawal mark-paid ${first!} --tx-hash ${hash}' says`,
      )
      await markWithdrawalPaid(service.db, networksOf(adapter()), first!, hash, TEST_ORIGIN)
      // The first output now belongs to the first withdrawal; the second is still to be assigned.
      await expect(acknowledge(hash)).rejects.toThrow(`as withdrawal ${second!} asks, which is PENDING: `)
      await markWithdrawalPaid(service.db, networksOf(adapter()), second!, hash, TEST_ORIGIN)
      // The same holds while the withdrawal is signed.
      await expect(acknowledge(again)).rejects.toThrow(`as withdrawal ${first!} asks, which is PENDING: `)
      expect(await acknowledge(again, { paysNoWithdrawal: true })).toMatchObject({
        moved: [{ asset: 'LTC', amount: '-0.3' }],
        not_paid: [first],
      })
      await settle(created)
      for (const one of created)
        expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
      expect(await received(address)).toHaveLength(2)
      expect(await received(other)).toHaveLength(1)
      await requireSameGap()
    })
  })

  // The last test: the wallet keeps its passphrase.
  test('a withdrawal waits with a code of its own while the wallet is locked with a passphrase', async () => {
    const customer = await newDepositor(['5'])
    const address = await node.newAddress()
    await node.bursar.call('encryptwallet', 'a passphrase')
    const created = await withdraw(customer, '1', address)
    await work()
    expect(await waitingCodes([created])).toEqual(['WALLET_LOCKED'])
    expect(await waitingReasons([created])).toEqual([
      expect.stringContaining('a person must unlock the wallet of LITECOIN'),
    ])
    await node.bursar.call('walletpassphrase', 'a passphrase', 600)
    await settle([created])
    await requirePaid(await readTransfer(customer, created), '1', address)
  })
})

// ---------------------------------------------------------------------------------------------- treasury

const MACS = new RowMacs(MASTER_KEYS)

const orderSend = (changes: Partial<TreasurySend> = {}) => {
  const send = {
    network: 'LITECOIN',
    asset: 'LTC',
    amount: '1.2',
    reference: randomUUID(),
    ...changes,
  } as const
  return orderTreasurySend({ db: service.db, macs: MACS, origin: TEST_ORIGIN }, adapter(), {
    destination_address: coldAddress,
    ...send,
  })
}
let coldAddress: string

const consolidate = (maxFeeRate?: string) =>
  orderConsolidation({ db: service.db, macs: MACS, origin: TEST_ORIGIN }, adapter(), 'LITECOIN', maxFeeRate)
const acknowledge = (hash: string, said?: { paysNoWithdrawal: boolean }) =>
  acknowledgeTransaction(service.db, adapter(), 'LITECOIN', hash, { ...said, origin: originOfLoop('test') })

/** Returns the balance of an account of the network in the platform's ledger. */
async function sumOf(account: string): Promise<string> {
  const { rows } = await service.db.query<{ sum: string }>(
    'select coalesce(sum(amount), 0) as sum from entries where customer_id = $1 and account = $2',
    [PLATFORM_ID, `${account}:LITECOIN`],
  )
  return inCoin(minorOf(rows[0]!.sum))
}

const coins = () => node.bursar.call<{ amount: string }[]>('listunspent', 0)

// ---------------------------------------------------------------------------------------------- Bursar

const adapter = (changes: Partial<BitcoinConfig> = {}) =>
  bitcoinAdapter(
    'LITECOIN',
    {
      ...node.config,
      rpcUrl: proxy.url,
      confirmations: DEPTH,
      feeCeiling: '0.01',
      withdrawals: withdrawalReader,
      pollMs: 1,
      firstHeight: lookedAt,
      ...changes,
    },
    service.db,
  )
const networksOf = (litecoin: NetworkAdapter): Networks => new Map([['LITECOIN', litecoin]])

const [cheap, dear] = ['0.00002', '0.0005']
/** Sets the node's fee estimate, in coins per kvB. */
const setFees = (rate: string) => {
  proxy.answer = (calls) =>
    calls.includes('"estimatesmartfee"')
      ? JSON.stringify([
          { id: 0, result: { feerate: Number(rate), blocks: 6 }, error: null },
          { id: 1, result: { mempoolminfee: 0.00001 }, error: null },
          { id: 2, result: { ismine: false }, error: null },
        ])
      : undefined
}
const hasty = () => networksOf(adapter({ stuckAfterMs: 0 }))

/** One round of the worker, with everything due. */
const work = (networks = networksOf(adapter())) => workOn(service.db, networks)

/** Runs the worker and mines until the withdrawals have ended. */
const settle = async (transfers: { id: string }[]): Promise<void> =>
  void (await settleOn(service.db, networksOf(adapter()), () => node.mine(1), transfers))

const withdraw = (customer: TestCustomer, amount: string, destination_address: string) =>
  order(service, customer, { crypto_network: 'LITECOIN', asset: 'LTC', amount, destination_address }, null)

const available = (customer: TestCustomer) => availableOf(customer, 'LTC')

async function kept({ id }: { id: string }) {
  const { rows } = await service.db.query<{
    state: string
    raw_transaction: Buffer | null
    crypto_tx_hash: string
  }>('select state, raw_transaction, crypto_tx_hash from outgoing_transfers where transfer_id = $1', [id])
  return rows[0]!
}

const waitingCodes = (transfers: { id: string }[]) => codesOf(service.db, transfers)
const waitingReasons = (transfers: { id: string }[]) => reasonsOf(service.db, transfers)

/** A withdrawal without an order of a customer. */
const wanted = (amount: string, destination_address: string): Withdrawal => ({
  customer_id: crypto.randomUUID(),
  transfer_id: crypto.randomUUID(),
  profile_id: crypto.randomUUID(),
  network: 'LITECOIN',
  asset: 'LTC',
  amount,
  destination_address,
  fee: '0',
  fiat_account_id: null,
  memo: null,
})

// ---------------------------------------------------------------------------------------------- deposits

/** The customer of each deposit address. */
const owners = new Map<string, TestCustomer>()
let cursor: string | null = null

async function newAddress(customer: TestCustomer): Promise<string> {
  const { address } = (await adapter().newDepositAddress('LITECOIN'))(randomUUID())
  owners.set(address, customer)
  return address
}

/** Credits incoming transfers, as the worker does. */
async function creditArrivals(from: string | null = cursor) {
  const read = await adapter().scanDeposits(from)
  for (const arrival of read.found) await creditArrival(arrival)
  cursor = read.cursor
  return read
}

async function creditArrival({ address, asset, amount, ...output }: FoundDeposit): Promise<void> {
  const owner = owners.get(address)
  if (owner === undefined) return
  const arrived = deposit(
    owner.customer_id,
    {
      profile_id: owner.profile_id,
      type: 'CRYPTO_DEPOSIT',
      asset,
      minor: parseAmount(amount, DECIMALS)!,
      arrivedAt: 'custody:LITECOIN',
      place: undefined,
      record: { destination_address: address, crypto_network: 'LITECOIN', ...output },
    },
    originOfLoop('test'),
  )
  await service.ledger.submit(owner.customer_id, arrived).catch((error: unknown) => {
    if (violatedConstraint(error) !== 'transfers_arrival') throw error
  })
}

/** Enters coins that the hot wallet has, and that the ledger has paid out. */
async function creditBack(amount: string): Promise<void> {
  const address = await newAddress(await newCustomer(service))
  await creditArrival({ address, asset: 'LTC', amount, crypto_tx_hash: randomUUID(), crypto_tx_index: '0' })
}

const foundAt = async (addresses: string[]) =>
  (await adapter().scanDeposits(null)).found.filter(({ address }) => addresses.includes(address))

/** Sends the amounts to new addresses of the customer, and credits them. */
async function depositFor(customer: TestCustomer, amounts: string[]): Promise<void> {
  const outputs: Record<string, string> = {}
  for (const amount of amounts) outputs[await newAddress(customer)] = amount
  await node.pay(node.miner, outputs)
  await node.mine(DEPTH)
  await creditArrivals()
}

async function newDepositor(amounts: string[]): Promise<TestCustomer> {
  const customer = await newCustomer(service)
  await depositFor(customer, amounts)
  return customer
}

// ---------------------------------------------------------------------------------------------- the node

const locks = () => node.bursar.call<unknown[]>('listlockunspent')
const mempool = () => node.bursar.call<string[]>('getrawmempool')
const pooled = (hash: string) =>
  node.bursar.call<{
    vsize: string
    ancestorcount: string
    ancestorsize: string
    fees: { base: string; ancestor: string }
  }>('getmempoolentry', hash)

interface Received {
  txid: string
  vout: string
  amount: string
}

/** Returns every output to an address outside of Bursar. */
async function received(address: string): Promise<Received[]> {
  const found = await node.miner.call<{ txids: string[] }[]>(
    'listreceivedbyaddress',
    0,
    false,
    false,
    address,
  )
  const outputs: Received[] = []
  for (const txid of new Set(found.flatMap(({ txids }) => txids))) {
    const { details } = await node.miner.call<{
      details: { category: string; address: string; vout: string; amount: string }[]
    }>('gettransaction', txid)
    for (const { category, vout, amount, ...output } of details) {
      if (category === 'receive' && output.address === address)
        outputs.push({ txid, vout, amount: inCoin(minorOf(amount)) })
    }
  }
  return outputs
}

/** Invariant 1. */
async function requirePaid(transfer: Transfer, amount: string, address: string): Promise<void> {
  const { status, crypto_tx_hash: txid, crypto_tx_index: vout } = transfer
  expect(status).toBe('COMPLETED')
  expect(await received(address)).toEqual([{ txid, vout, amount }])
}

/** Invariants 2 and 3. */
async function requireAtRest(): Promise<void> {
  const { rows } = await service.db.query<{ account: string; sum: string }>(
    `select account, sum(amount) from entries where account like '%:LITECOIN' group by account`,
  )
  const sums = new Map(rows.map(({ account, sum }) => [account, minorOf(sum)]))
  const balance = await node.bursar.call<string>('getbalance')
  expect(sums.get('in_flight:LITECOIN') ?? 0n).toBe(0n)
  expect(inCoin(-sums.get('custody:LITECOIN')!)).toBe(inCoin(minorOf(balance)))
  expect((await adapter().status()).held).toEqual({ LTC: inCoin(minorOf(balance)) })
  // What is held can be spent: whoever is credited with another coin withdraws this one.
  const spendable = (
    await node.bursar.call<{ amount: string; spendable: boolean }[]>('listunspent', 0)
  ).filter((one) => one.spendable)
  expect(inCoin(spendable.reduce((sum, { amount }) => sum + minorOf(amount), 0n))).toBe(
    inCoin(minorOf(balance)),
  )
  expect(await locks()).toEqual([])
  expect((await verify(service.db)).disagreements).toEqual([])
}

/** The height up to which an operator who uses the wallet by hand has reviewed its transactions. */
let lookedAt = 0

async function lookAtAll(): Promise<void> {
  lookedAt = Number(await node.bursar.call<string>('getblockcount')) + 1
}

/** Takes all coins out of Bursar's wallet. */
async function emptyWallet(): Promise<void> {
  const balance = await node.bursar.call<string>('getbalance')
  if (minorOf(balance) === 0n) return
  const address = await node.newAddress()
  await node.pay(node.bursar, { [address]: balance }, [address])
  await node.mine(DEPTH)
  await lookAtAll()
}

interface Proxy {
  server: Server
  url: string
  /** Returns a reply that replaces the node's, or undefined. */
  answer: ((calls: string) => string | undefined) | undefined
}

/** Starts a proxy between the worker and the node. */
async function startProxy(target: string): Promise<Proxy> {
  const server = createServer((request, reply) => {
    const forward = async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      const instead = proxy.answer?.(body.toString())
      if (instead !== undefined) return { status: 200, text: instead }
      const { authorization } = request.headers
      const answer = await fetch(new URL(request.url!, target), {
        method: 'POST',
        headers: { authorization: authorization!, 'content-type': 'application/json' },
        body,
      })
      return { status: answer.status, text: await answer.text() }
    }
    const answered = forward()
    answered.then(
      ({ status, text }) => reply.writeHead(status, { 'content-type': 'application/json' }).end(text),
      () => request.socket.destroy(),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { server, url: `http://127.0.0.1:${port}`, answer: undefined }
}
