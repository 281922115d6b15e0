/*
 * Invariants of STELLAR, wherever it fails, against a MODEL of its rules (test/stellar-model.ts):
 * 1. each withdrawal is paid once, with the exact amount, or refunded and never paid;
 * 2. the ledger's custody equals what the hot wallet holds, to the stroop;
 * 3. nothing stays in flight;
 * 4. a deposit is credited once, to the owner of its number.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Account, Asset, Keypair, Memo, Operation, TransactionBuilder } from '@stellar/stellar-base'
import { afterEach, expect, test, vi } from 'vitest'
import { startStellarModel, type StellarModel } from '../../test/stellar-model.ts'
import { newCustomer, ROW_MACS, TEST_ORIGIN, type TestCustomer, ownTestService } from '../../test/support.ts'
import { keptOf, order, readTransfer, settle, sumOn, work } from '../../test/payouts-on.ts'
import { hurryUnlocked } from '../../test/work-off.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { transaction } from '../../src/db/database.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { creditDeposits } from '../../test/credit-deposits.ts'
import { cancelForOperator, NotCancellable } from '../../src/rails/payouts/cancel-withdrawal.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import type { Networks } from '../../src/networks/network.ts'
import { behindOf } from '../kit/nodes.ts'
import { lookAt, stellarAdapter } from './adapter.ts'
import { openChain, requireReady, type StellarConfig } from './chain.ts'
import { accountIn, innerOf, laneKeys, muxed, paymentsIn } from './envelope.ts'
import { horizon } from './horizon.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const ISSUER = newAccount()
const TOKEN = `PYUSD:${ISSUER}`
const FUNDS = { XLM: '5000', PYUSD: '3000' }

let model: StellarModel
const service = await ownTestService()
afterEach(async () => {
  await model.stop()
  await service.owner.query('delete from failed_transactions')
  await service.owner.query(`delete from freezes where subject = 'STELLAR'`)
})

function newAccount(): string {
  return Keypair.random().publicKey()
}

/** A new model, with a hot wallet in it. */
async function newWallet({ lanes = 3 } = {}) {
  model = await startStellarModel()
  const hotWallet = Keypair.random()
  const config: StellarConfig = {
    horizonUrl: model.url,
    verifyHorizonUrl: model.url,
    passphrase: model.passphrase,
    hotWallet: { seed: hotWallet.secret() },
    lanes,
    feeCeiling: '0.01',
    withdrawals: withdrawalReader,
    issuers: { PYUSD: ISSUER },
    pollMs: 10,
  }
  const address = hotWallet.publicKey()
  model.open(address, FUNDS.XLM, { [TOKEN]: FUNDS.PYUSD })
  for (const key of laneKeys(hotWallet, lanes)) model.open(key.publicKey(), '0').sponsored = 2
  // Everything before belongs to another model.
  await service.owner.query(`delete from wallet_checks where network = 'STELLAR'`)
  await service.owner.query(`delete from network_cursors where network = 'STELLAR'`)
  const adapter = stellarAdapter(config, service.db)
  return { hotWallet, address, config, adapter, networks: new Map([['STELLAR', adapter]]) as Networks }
}
type Wallet = Awaited<ReturnType<typeof newWallet>>

/** An account that exists, and can hold the token. */
function newDestination(): string {
  const account = newAccount()
  model.open(account, '1', { [TOKEN]: '0' })
  return account
}

const withdraw = (
  customer: TestCustomer,
  asset: string,
  amount: string,
  destination_address = newDestination(),
  memo?: string,
): Promise<Transfer> =>
  order(
    service,
    customer,
    { crypto_network: 'STELLAR', asset, amount, destination_address, ...(memo !== undefined && { memo }) },
    '100',
  )

/** One round of the worker, with everything due, and a ledger after it. */
const step = ({ networks }: Pick<Wallet, 'networks'>) =>
  work(service.db, networks).finally(() => model.close())
const settleAll = ({ networks }: Wallet) => settle(service.db, networks, () => model.close())
const onLedger = (customers: TestCustomer[], account: string, asset: string) =>
  sumOn(service.db, account, asset, customers)

/** Invariants 2 and 3, of a wallet that was alone in the ledgers of these customers. */
async function requireAgreement({ adapter }: Wallet, customers: TestCustomer[]): Promise<void> {
  const { held } = await adapter.status!()
  for (const [asset, amount] of Object.entries(FUNDS)) {
    const paid = await onLedger(customers, 'custody:STELLAR', asset)
    expect([asset, parseAmount(held[asset]!, 7)]).toEqual([asset, parseAmount(amount, 7)! - paid])
    expect(await onLedger(customers, 'in_flight:STELLAR', asset)).toBe(0n)
  }
  expect(
    (await verify(service.db, { tokens: new Map([['STELLAR', { PYUSD: ISSUER }]]) })).disagreements,
  ).toEqual([])
}

/** How often and how much an address was paid, as the model has it. */
const paymentsTo = (address: string, asset = 'native') => {
  const { account, id } = accountIn(address)
  return model.made().flatMap(({ operations }) =>
    operations.flatMap(({ record }) => {
      const to = (record.to ?? record.account) as string
      const isIt = to === account && record.to_muxed_id === id
      const key =
        record.asset_code === undefined
          ? 'native'
          : `${record.asset_code as string}:${record.asset_issuer as string}`
      return isIt && key === asset ? [String(record.amount ?? record.starting_balance)] : []
    }),
  )
}

const codeOf = (one: { id: string }) => keptOf(service.db, one)

/** A transaction by somebody with a key, outside of Bursar. */
function byHand(key: Keypair, operation: ReturnType<typeof Operation.payment>, memo: Memo = Memo.none()) {
  const source = new Account(key.publicKey(), String(model.find(key.publicKey())!.sequence))
  const built = new TransactionBuilder(source, { fee: '1000', networkPassphrase: model.passphrase, memo })
    .addOperation(operation)
    .setTimeout(0)
    .build()
  built.sign(key)
  return built
}

// ---------------------------------------------------------------------------------------------- withdrawals

test('XLM and a token are paid once: to accounts, new accounts and muxed ones, with memos of each kind', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const fresh = newAccount()
  const muxedTo = muxed(newDestination(), '18446744073709551615')
  const orders = [
    await withdraw(customer, 'XLM', '1.2345678'.slice(0, 9)),
    await withdraw(customer, 'XLM', '2', fresh),
    await withdraw(customer, 'PYUSD', '3.0000001', muxedTo),
    await withdraw(customer, 'PYUSD', '4', newDestination(), 'id:42'),
    await withdraw(customer, 'XLM', '5', newDestination(), '42'),
    await withdraw(customer, 'XLM', '6', newDestination(), `hash:${'0f'.repeat(32)}`),
  ]
  await settleAll(wallet)
  for (const [index, order] of orders.entries()) {
    const ended = await readTransfer(customer, order)
    // Those without a memo share a transaction.
    expect(ended).toMatchObject({ status: 'COMPLETED', crypto_tx_index: index < 3 ? String(index) : '0' })
    const made = model.made().find(({ inner }) => inner === ended.crypto_tx_hash)
    expect(made?.record).toMatchObject({ successful: true, fee_account: wallet.address })
    const asset = order.asset === 'XLM' ? 'native' : TOKEN
    const paid = paymentsTo(order.destination_address!, asset)
    expect(paid.map((amount) => parseAmount(amount, 7))).toEqual([parseAmount(order.amount, 7)])
  }
  const memos = await Promise.all(
    orders.slice(3).map(async (order) => {
      const { crypto_tx_hash } = await readTransfer(customer, order)
      const { memo, memo_type } = model.made().find(({ inner }) => inner === crypto_tx_hash)!.record
      return [memo_type, memo]
    }),
  )
  expect(memos).toEqual([
    ['id', '42'],
    ['text', '42'],
    ['hash', Buffer.alloc(32, 0x0f).toString('base64')],
  ])
  await requireAgreement(wallet, [customer])
})

test('a payment that would fail is refunded unsigned, and delays no other', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const needsMemo = newDestination()
  model.find(needsMemo)!.data['config.memo_required'] = 'MQ=='
  const [noLine, revoked, full] = [newDestination(), newDestination(), newDestination()]
  model.find(noLine)!.lines.clear()
  model.find(revoked)!.lines.get(TOKEN)!.isAuthorized = false
  model.find(full)!.lines.get(TOKEN)!.limit = 9_999_999n
  const refused = [
    await withdraw(customer, 'XLM', '1', needsMemo),
    await withdraw(customer, 'PYUSD', '1', noLine),
    await withdraw(customer, 'PYUSD', '1', revoked),
    await withdraw(customer, 'PYUSD', '1', full),
    await withdraw(customer, 'PYUSD', '1', newAccount()),
    await withdraw(customer, 'XLM', '5', muxed(newAccount(), '7')),
    await withdraw(customer, 'XLM', '5', muxed(wallet.address, '7')),
  ]
  const paid = [
    await withdraw(customer, 'XLM', '1', needsMemo, 'mine'),
    await withdraw(customer, 'PYUSD', '1'),
  ]
  await settleAll(wallet)
  for (const one of refused) expect(await readTransfer(customer, one)).toMatchObject({ status: 'FAILED' })
  for (const one of paid) expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
  expect(model.made()).toHaveLength(2)
  await requireAgreement(wallet, [customer])
})

test('a payment that fails on the network is refunded with its fee posted, and the one beside it is paid', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const to = newDestination()
  const [failing, good] = [await withdraw(customer, 'PYUSD', '1', to), await withdraw(customer, 'PYUSD', '2')]
  await work(service.db, wallet.networks)
  model.find(to)!.lines.clear()
  model.close()
  await settleAll(wallet)
  expect(await readTransfer(customer, failing)).toMatchObject({
    status: 'FAILED',
    status_details: {
      invalid_destination_address: { message: 'the network refused the payment: paymentNoTrust' },
    },
  })
  expect(await readTransfer(customer, good)).toMatchObject({ status: 'COMPLETED' })
  expect(
    model
      .made()
      .map(({ record }) => record.successful)
      .sort(),
  ).toEqual([false, true])
  await requireAgreement(wallet, [customer])
})

/** The envelopes that were signed for a withdrawal, the oldest first. */
async function signedFor({ id }: Transfer) {
  const { rows } = await service.db.query<{ raw_transaction: Buffer; used_by: string | null }>(
    `select raw_transaction, used_by from network_transactions
     where transfer_ids @> array[$1::uuid] order by signed_at`,
    [id],
  )
  return rows.map(({ raw_transaction, used_by }) => ({ ...paymentsIn(raw_transaction), used_by }))
}

test('one payment that fails ends a shared transaction: it is refunded with the whole fee, the others are signed anew', async () => {
  const [customer, other, wallet] = [
    await newCustomer(service),
    await newCustomer(service),
    await newWallet({ lanes: 1 }),
  ]
  const to = newDestination()
  const good = [await withdraw(customer, 'XLM', '1'), await withdraw(other, 'PYUSD', '2')]
  const failing = [await withdraw(customer, 'PYUSD', '1', to), await withdraw(other, 'PYUSD', '3', to)]
  good.push(await withdraw(other, 'XLM', '4', newAccount()))
  await work(service.db, wallet.networks)
  expect((await signedFor(good[0]!))[0]!.payments).toHaveLength(5)
  model.find(to)!.lines.clear()
  model.close()
  // One Horizon alone ends none of them.
  const alone = stellarAdapter({ ...wallet.config, verifyHorizonUrl: undefined }, service.db)
  await step({ networks: new Map([['STELLAR', alone]]) })
  for (const one of [...good, ...failing])
    expect(await codeOf(one)).toMatchObject({ state: 'BROADCAST', waiting_code: 'UNRESOLVED' })
  await settleAll(wallet)
  for (const one of failing)
    expect(
      await readTransfer(customer.customer_id === one.customer_id ? customer : other, one),
    ).toMatchObject({
      status: 'FAILED',
    })
  for (const one of good) {
    expect(paymentsTo(one.destination_address!, one.asset === 'XLM' ? 'native' : TOKEN)).toHaveLength(1)
    // The number is used, so that the new bytes have another one.
    const [first, second] = await signedFor(one)
    expect([first!.lane, first!.sequence]).not.toEqual([second!.lane, second!.sequence])
  }
  // The second that could not be paid was refused before it was signed again.
  expect(model.made().map(({ record }) => record.successful)).toEqual([false, true])
  await requireAgreement(wallet, [customer, other])
})

test('where the hot wallet itself is at fault, nobody is refunded, and the fee is shared to the stroop', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const orders = [
    await withdraw(customer, 'PYUSD', '1'),
    await withdraw(customer, 'XLM', '2'),
    await withdraw(customer, 'PYUSD', '3'),
  ]
  await work(service.db, wallet.networks)
  const line = () => model.find(wallet.address)!.lines.get(TOKEN)!
  const all = line().balance
  line().balance = 0n
  model.close()
  line().balance = all
  await settleAll(wallet)
  for (const order of orders)
    expect(await readTransfer(customer, order)).toMatchObject({ status: 'COMPLETED' })
  expect(model.made().map(({ record }) => record.successful)).toEqual([false, true])
  await requireAgreement(wallet, [customer])
})

test('payments to one destination share a transaction, or wait for the one that opens it', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const [fresh, other, full] = [newAccount(), newAccount(), newDestination()]
  model.find(full)!.lines.get(TOKEN)!.limit = 50_000_000n
  const together = [
    await withdraw(customer, 'XLM', '2', fresh),
    await withdraw(customer, 'XLM', '1.5', fresh),
    await withdraw(customer, 'XLM', '3', muxed(fresh, '9')),
    await withdraw(customer, 'XLM', '2', other),
    await withdraw(customer, 'PYUSD', '3', full),
  ]
  const later = [
    await withdraw(await newCustomer(service), 'PYUSD', '2.5', full),
    await withdraw(customer, 'XLM', '2', other),
  ]
  await work(service.db, wallet.networks)
  expect((await signedFor(together[0]!))[0]!.payments.map(({ creates }) => creates)).toEqual([
    ...[true, false, false, true, false],
  ])
  for (const one of later)
    expect(await codeOf(one)).toMatchObject({ state: 'HELD', waiting_code: 'IN_FLIGHT_LIMIT' })
  await settleAll(wallet)
  expect(paymentsTo(fresh)).toEqual(['2.0000000', '1.5000000'])
  expect(paymentsTo(muxed(fresh, '9'))).toEqual(['3.0000000'])
  expect(paymentsTo(other)).toEqual(['2.0000000', '2.0000000'])
  // It had no room for both.
  expect(paymentsTo(full, TOKEN)).toEqual(['3.0000000'])
  await requireAgreement(wallet, [customer])
})

test('no withdrawal of a transaction whose time passed is paid twice, by itself or by others with its number', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 3 })]
  const others = await Promise.all(Array.from({ length: 3 }, () => newCustomer(service)))
  const group = [
    await withdraw(customer, 'XLM', '1'),
    await withdraw(others[0]!, 'XLM', '2'),
    await withdraw(others[1]!, 'XLM', '3'),
  ]
  await step(wallet)
  const [first] = await signedFor(group[0]!)
  for (const one of group) expect(paymentsTo(one.destination_address!)).toHaveLength(1)
  // It is made, and both Horizons hide it, and its lane's number, beyond its time.
  const hide = (method: string, path: string) => {
    if (/^\/transactions\/|\/transactions\?/.test(path))
      return { status: path.includes('?') ? 200 : 404, body: { _embedded: { records: [] } } }
    if (path !== `/accounts/${first!.lane}`) return undefined
    const { status, body } = model.truth(method, path)
    return { status, body: { ...(body as object), sequence: String(first!.sequence - 1n) } }
  }
  model.close(400)
  model.lies(hide)
  // Others join what is signed anew, and take the other lanes.
  const joined: Transfer[] = []
  for (let round = 1; round <= 3; round++) {
    joined.push(await withdraw(others[2]!, 'XLM', '1'))
    await step(wallet)
    model.close(400)
  }
  for (const one of group)
    for (const { lane, sequence } of await signedFor(one))
      expect([lane, sequence]).toEqual([first!.lane, first!.sequence])
  expect((await signedFor(group[0]!)).length).toBeGreaterThan(1)
  model.lies(undefined)
  await step(wallet)
  const made = model.made()[0]!.inner
  for (const one of group)
    if ((await codeOf(one)).state === 'HELD')
      await markWithdrawalPaid(service.db, wallet.networks, one.id, made, TEST_ORIGIN)
  await settleAll(wallet)
  for (const one of [...group, ...joined]) expect(paymentsTo(one.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer, ...others])
})

test('a database from before a withdrawal was signed anew does not take what paid it for a stranger', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 1 })]
  const order = await withdraw(customer, 'XLM', '1')
  await work(service.db, wallet.networks)
  const tables = { outgoing_transfers: 'transfer_id = $1', network_transactions: '$1 = any (transfer_ids)' }
  const saved = new Map<string, unknown>()
  for (const [table, where] of Object.entries(tables)) {
    const { rows } = await service.owner.query<{ row: unknown }>(
      `select to_jsonb(t) as row from ${table} t where ${where}`,
      [order.id],
    )
    saved.set(table, rows[0]!.row)
  }
  model.drop()
  model.close(400)
  for (let round = 1; round <= 4 && model.made().length === 0; round++) await step(wallet)
  const [made] = model.made()
  // The backup has its first bytes alone.
  for (const [table, where] of Object.entries(tables)) {
    await service.owner.query(`delete from ${table} where ${where}`, [order.id])
    await service.owner.query(
      `insert into ${table} select * from jsonb_populate_record(null::${table}, $1::jsonb)`,
      [JSON.stringify(saved.get(table))],
    )
  }
  await service.owner.query('delete from replaced_transactions where transfer_id = $1', [order.id])
  // Also where an operator says that all unknown ones were looked at.
  const looked = stellarAdapter({ ...wallet.config, firstLedger: 1_000_000 }, service.db)
  for (let round = 1; round <= 4; round++) await step({ networks: new Map([['STELLAR', looked]]) })
  await expect(cancelForOperator(service.db, order.id, TEST_ORIGIN)).rejects.toThrow(NotCancellable)
  expect(await codeOf(order)).toMatchObject({
    waiting_code: 'NONCE_USED',
    waiting_detail: expect.stringContaining(`${made!.inner} pays it`) as string,
  })
  await markWithdrawalPaid(service.db, wallet.networks, order.id, made!.inner, TEST_ORIGIN)
  await settleAll(wallet)
  expect(await readTransfer(customer, order)).toMatchObject({ status: 'COMPLETED' })
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
})

test('an operator marks one payment of a lost transaction, and acknowledges the others', async () => {
  const [customer, other, wallet] = [
    await newCustomer(service),
    await newCustomer(service),
    await newWallet({ lanes: 1 }),
  ]
  const orders = [await withdraw(customer, 'XLM', '1'), await withdraw(other, 'PYUSD', '2')]
  await step(wallet)
  const hash = model.made()[0]!.inner
  // The database is restored from an earlier backup.
  const ids = [orders.map(({ id }) => id)]
  await service.owner.query('delete from outgoing_transfers where transfer_id = any ($1)', ids)
  await service.owner.query('delete from network_transactions where transfer_ids && $1::uuid[]', ids)
  await step(wallet)
  expect(await codeOf(orders[0]!)).toMatchObject({ state: 'HELD', waiting_code: 'UNKNOWN_SPENDS' })
  await markWithdrawalPaid(service.db, wallet.networks, orders[0]!.id, hash, TEST_ORIGIN)
  const moved = await transaction(service.db, (tx) => wallet.adapter.movedBy!(tx, hash))
  expect(moved).toEqual({
    moved: [{ asset: 'PYUSD', amount: '-2' }],
    payments: [{ asset: 'PYUSD', amount: '2', address: orders[1]!.destination_address }],
    networkFee: { asset: 'XLM', amount: '0.000015' },
  })
  await markWithdrawalPaid(service.db, wallet.networks, orders[1]!.id, hash, TEST_ORIGIN)
  await settleAll(wallet)
  for (const one of orders)
    expect(paymentsTo(one.destination_address!, one.asset === 'XLM' ? 'native' : TOKEN)).toHaveLength(1)
  expect(await readTransfer(other, orders[1]!)).toMatchObject({ status: 'COMPLETED', crypto_tx_index: '1' })
  await requireAgreement(wallet, [customer, other])
})

test('one Horizon that says a payment failed refunds nothing', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const to = newDestination()
  const failing = await withdraw(customer, 'PYUSD', '1', to)
  await work(service.db, wallet.networks)
  model.find(to)!.lines.clear()
  model.close()
  const by = (verifyHorizonUrl: string | undefined): Pick<Wallet, 'networks'> => {
    const adapter = stellarAdapter({ ...wallet.config, verifyHorizonUrl }, service.db)
    return { networks: new Map([['STELLAR', adapter]]) }
  }
  for (const [second, code] of [
    [undefined, 'UNRESOLVED'],
    ['http://127.0.0.1:1', 'SECOND_NODE'],
  ] as const) {
    for (let round = 1; round <= 2; round++) await step({ ...wallet, ...by(second) })
    expect(await codeOf(failing)).toMatchObject({ state: 'BROADCAST', waiting_code: code })
    expect(await readTransfer(customer, failing)).toMatchObject({ status: 'PENDING' })
  }
  await settleAll(wallet)
  expect(await readTransfer(customer, failing)).toMatchObject({ status: 'FAILED' })
  await requireAgreement(wallet, [customer])
})

test('bytes that the node drops are broadcast again until their time bound; then the payment is signed anew with their number', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  await work(service.db, wallet.networks)
  const first = (await codeOf(order)).raw_transaction!
  model.drop()
  model.close(20)
  await hurryUnlocked(service.db, { endLeases: true })
  for (let round = 1; round <= 3; round++) {
    await work(service.db, wallet.networks)
  }
  expect(model.waiting()).toBe(1)
  expect((await codeOf(order)).raw_transaction).toEqual(first)

  model.drop()
  model.close(301)
  for (let round = 1; round <= 4; round++) {
    await work(service.db, wallet.networks)
  }
  const second = (await codeOf(order)).raw_transaction!
  expect(second).not.toEqual(first)
  const [before, after] = [paymentsIn(first), paymentsIn(second)]
  expect([after.lane, after.sequence]).toEqual([before.lane, before.sequence])
  await settleAll(wallet)
  expect(paymentsTo(order.destination_address!)).toEqual(['1.0000000'])
  await requireAgreement(wallet, [customer])
})

test('a Horizon that hides a payment whose time passed has it signed anew, and not paid again', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  await step(wallet)
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  const { lane, sequence } = paymentsIn((await codeOf(order)).raw_transaction!)
  model.close(400)
  // Of the lane, and of the transaction, it says what was so before.
  model.lies((method, path) => {
    if (/^\/transactions\/|\/transactions\?/.test(path))
      return { status: path.includes('?') ? 200 : 404, body: { _embedded: { records: [] } } }
    if (path !== `/accounts/${lane}`) return undefined
    const { status, body } = model.truth(method, path)
    return { status, body: { ...(body as object), sequence: String(sequence - 1n) } }
  })
  for (let round = 1; round <= 4; round++) await step(wallet)
  const { rows } = await service.db.query(
    'select 1 from network_transactions where transfer_ids @> array[$1::uuid]',
    [order.id],
  )
  expect(rows).toHaveLength(2)
  model.lies(undefined)
  await settleAll(wallet)
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
})

test('one Horizon that hides a payment whose time passed has nothing refunded: it is neither refused nor cancelled', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'PYUSD', '1')
  await step(wallet)
  const { lane, sequence } = paymentsIn((await codeOf(order)).raw_transaction!)
  model.close(400)
  const liar = await secondHorizon((path, body) => {
    if (path.startsWith('/transactions/')) return undefined
    if (path.includes('/transactions?') || path === `/accounts/${order.destination_address}`)
      return body.replace(/(balances|records)":\[.*\]/, '$1":[]')
    return path === `/accounts/${lane}` ? body.replace(String(sequence), String(sequence - 1n)) : body
  })
  const adapter = stellarAdapter({ ...wallet.config, horizonUrl: liar.url }, service.db)
  for (let round = 1; round <= 3; round++) await step({ networks: new Map([['STELLAR', adapter]]) })
  expect(await codeOf(order)).toMatchObject({ state: 'BROADCAST', waiting_code: 'SECOND_NODE' })
  liar.close()
  await settleAll(wallet)
  expect(await readTransfer(customer, order)).toMatchObject({ status: 'COMPLETED' })
  await requireAgreement(wallet, [customer])
})

test('a payment whose record Horizon garbles waits alone', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  // One with a memo is alone in its transaction.
  const orders = [
    await withdraw(customer, 'XLM', '1'),
    await withdraw(customer, 'XLM', '2', newDestination(), 'mine'),
  ]
  await step(wallet)
  const { rows } = await service.db.query<{ crypto_tx_hash: string }>(
    'select crypto_tx_hash from outgoing_transfers where transfer_id = $1',
    [orders[0]!.id],
  )
  const hash = rows[0]!.crypto_tx_hash
  const other = model.made().find(({ inner }) => inner !== hash)!
  // The record of another payment, then bytes that are none, then a result that contradicts itself.
  const mine = model.made().find(({ inner }) => inner === hash)!
  for (const record of [
    other.record,
    { ...mine.record, envelope_xdr: 'AAAA' },
    { ...mine.record, successful: false },
  ]) {
    model.lies((_, path) => (path === `/transactions/${hash}` ? { status: 200, body: record } : undefined))
    await step(wallet).catch(() => undefined)
    await step(wallet).catch(() => undefined)
    expect(await readTransfer(customer, orders[0]!)).toMatchObject({ status: 'PENDING' })
    expect(await readTransfer(customer, orders[1]!)).toMatchObject({ status: 'COMPLETED' })
  }
  model.lies(undefined)
  await settleAll(wallet)
  expect(await readTransfer(customer, orders[0]!)).toMatchObject({ status: 'COMPLETED' })
  await requireAgreement(wallet, [customer])
})

test('a fee bump that somebody else makes of a payment pays it once, and costs the platform nothing', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  await work(service.db, wallet.networks)
  const raw = (await codeOf(order)).raw_transaction!
  const inner = innerOf(raw.toString('base64'), model.passphrase)
  const stranger = Keypair.random()
  model.open(stranger.publicKey(), '10')
  const bump = TransactionBuilder.buildFeeBumpTransaction(stranger, '100000', inner, model.passphrase)
  bump.sign(stranger)
  model.drop()
  model.submit(bump)
  await settleAll(wallet)
  expect(await readTransfer(customer, order)).toMatchObject({
    status: 'COMPLETED',
    crypto_tx_hash: inner.hash().toString('hex'),
  })
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
  // It is no unknown spend either.
  const next = await withdraw(customer, 'XLM', '1')
  await settleAll(wallet)
  expect(await readTransfer(customer, next)).toMatchObject({ status: 'COMPLETED' })
  await requireAgreement(wallet, [customer])
})

test('a foreign transaction with the number of a payment ends its bytes, and it is signed anew', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 1 })]
  const [lane] = laneKeys(wallet.hotWallet, 1)
  model.find(lane!.publicKey())!.native = 10_000_000n
  const order = await withdraw(customer, 'XLM', '1')
  await work(service.db, wallet.networks)
  model.drop()
  const foreign = byHand(
    lane!,
    Operation.payment({ destination: newDestination(), asset: Asset.native(), amount: '0.5' }),
  )
  model.submit(foreign)
  await settleAll(wallet)
  const { rows } = await service.db.query<{ used_by: string | null }>(
    'select used_by from network_transactions where transfer_ids @> array[$1::uuid] order by signed_at',
    [order.id],
  )
  expect(rows.map(({ used_by }) => used_by)).toEqual([foreign.hash().toString('hex'), null])
  expect(await readTransfer(customer, order)).toMatchObject({ status: 'COMPLETED' })
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
})

test('another signer takes over the hot wallet: its address stays, and what the former key signed is paid once', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 1 })]
  const orders = [
    await withdraw(customer, 'XLM', '1'),
    await withdraw(customer, 'XLM', '2', newDestination(), 'mine'),
    await withdraw(customer, 'PYUSD', '3'),
  ]
  await work(service.db, wallet.networks)
  model.drop()
  const next = Keypair.random()
  let told = (_path: string, body: string) => body
  const second = await secondHorizon((path, body) => told(path, body))
  const hotWallet = { seed: next.secret(), address: wallet.address }
  const config = { ...wallet.config, hotWallet, verifyHorizonUrl: second.url }
  const adapter = stellarAdapter(config, service.db)
  const rotated = { ...wallet, adapter, networks: new Map([['STELLAR', adapter]]) as Networks }
  // Not a signer yet: withdrawals wait, and no address of the account is given.
  orders.push(await withdraw(customer, 'XLM', '4'))
  await step(rotated)
  expect(await codeOf(orders[3]!)).toMatchObject({ state: 'HELD', waiting_code: 'NO_SIGNING_KEY' })
  await expect(requireReady(openChain(config))).rejects.toThrow('has a weight of 0')
  model.find(wallet.address)!.signers = new Map([
    [wallet.address, 0],
    [next.publicKey(), 1],
  ])
  for (const key of laneKeys(next, 1)) model.open(key.publicKey(), '0').sponsored = 2
  await step(wallet)
  expect(await codeOf(orders[3]!)).toMatchObject({ state: 'HELD', waiting_code: 'NO_SIGNING_KEY' })
  await step(rotated)
  expect((await signedFor(orders[3]!))[0]!.lane).toBe(laneKeys(next, 1)[0]!.publicKey())
  // By one Horizon alone, what the former key signed is not signed with a number of another account.
  model.close(400)
  told = (path, body) =>
    path.startsWith('/accounts/')
      ? body.replace(/"sequence":"\d+"/, '"sequence":"9000000000000000000"')
      : body
  for (let round = 1; round <= 3; round++) await step(rotated)
  for (const one of orders.slice(0, 3))
    expect(await codeOf(one)).toMatchObject({ state: 'BROADCAST', waiting_code: 'SECOND_NODE' })
  told = (_path, body) => body
  await settleAll(rotated)
  for (const one of orders)
    expect(paymentsTo(one.destination_address!, one.asset === 'XLM' ? 'native' : TOKEN)).toHaveLength(1)
  await requireAgreement(rotated, [customer])
  second.close()
})

test('a question on a connection that Horizon has just closed is asked again, a submission is not', async () => {
  await newWallet()
  let asked = 0
  const server = createServer((request, reply) => {
    if (asked++ % 2 === 0) return void request.socket.destroy()
    reply.end(JSON.stringify(model.truth('GET', request.url!).body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const flaky = horizon(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, model.passphrase)
  expect(await flaky.root()).toMatchObject({ history_latest_ledger: model.clock.ledger })
  await expect(flaky.submit('')).rejects.toThrow('does not answer')
  expect(asked).toBe(3)
  server.close()
})

test('the clock of the worker itself does not matter', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  // Nor does the database's.
  model.clock.closedAt -= 86_400
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 600_000)
  await step(wallet).finally(() => clock.mockRestore())
  expect((await codeOf(order)).raw_transaction).not.toBeNull()
  await settleAll(wallet)
})

test('a Horizon that is behind, or of another network, signs nothing', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  const root = (changes: object) =>
    model.lies((method, path) =>
      path === '/'
        ? { status: 200, body: { ...(model.truth(method, path).body as object), ...changes } }
        : undefined,
    )
  const later = new Date(model.clock.closedAt * 1000 + 600_000).toISOString()
  const second = await secondHorizon((path, body) =>
    path === '/' ? body.replace(/(closed_at":")[^"]*/, `$1${later}`) : body,
  )
  const by = (verifyHorizonUrl: string | undefined): Pick<Wallet, 'networks'> => {
    const adapter = stellarAdapter({ ...wallet.config, verifyHorizonUrl }, service.db)
    return { networks: new Map([['STELLAR', adapter]]) }
  }
  await step(by(second.url))
  second.close()
  expect(await codeOf(order)).toMatchObject({ state: 'HELD', waiting_code: 'NODE_BEHIND' })
  // Alone, one that stands still.
  const alone = by(undefined)
  await work(service.db, alone.networks)
  expect(await codeOf(order)).toMatchObject({ state: 'HELD', waiting_code: 'NODE_BEHIND' })
  root({ network_passphrase: 'Another Network' })
  await step(wallet)
  expect(await codeOf(order)).toMatchObject({ state: 'HELD', waiting_code: 'NODE_DOWN' })
  model.lies((_, path) =>
    path === '/transactions_async' ? { status: 504, body: { title: 'Timeout' } } : undefined,
  )
  await step(wallet)
  expect((await codeOf(order)).raw_transaction).not.toBeNull()
  expect(model.waiting()).toBe(0)
  model.lies(undefined)
  await settleAll(wallet)
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
})

test('withdrawals wait while the hot wallet is short of what it may spend beyond its reserve', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const who = model.find(wallet.address)!
  const all = who.native
  who.native = 25_000_000n
  const [large, token] = [await withdraw(customer, 'XLM', '2'), await withdraw(customer, 'PYUSD', '1')]
  await step(wallet)
  expect(await codeOf(large)).toMatchObject({ state: 'HELD', waiting_code: 'HOT_WALLET_SHORT' })
  expect((await codeOf(token)).state).not.toBe('HELD')
  who.native += all - 25_000_000n
  await settleAll(wallet)
  await requireAgreement(wallet, [customer])
})

test('45 queued withdrawals are paid once each, nine in each ledger with eight channel accounts', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 8 })]
  const orders: Transfer[] = []
  for (let index = 0; index < 45; index++)
    orders.push(await withdraw(customer, index % 2 === 0 ? 'XLM' : 'PYUSD', '1'))
  const from = performance.now()
  const rounds = await settleAll(wallet)
  process.stdout.write(
    `45 withdrawals: ${rounds} rounds, ${Math.round(performance.now() - from)} ms, ${model.requests.length} requests\n`,
  )
  expect(rounds).toBeLessThan(20)
  for (const order of orders)
    expect(paymentsTo(order.destination_address!, order.asset === 'XLM' ? 'native' : TOKEN)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
})

test('on a network of small ledgers, transactions have as few payments as fit', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 2 })]
  model.capacity.operations = 20
  const orders: Transfer[] = []
  for (let index = 0; index < 20; index++) orders.push(await withdraw(customer, 'XLM', '1'))
  await settleAll(wallet)
  for (const order of orders) expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  expect(model.made()).toHaveLength(3)
  await requireAgreement(wallet, [customer])
})

test('withdrawals that must wait leave the lanes to later ones', async () => {
  const [customer, other, wallet] = [
    await newCustomer(service),
    await newCustomer(service),
    await newWallet({ lanes: 1 }),
  ]
  const line = model.find(wallet.address)!.lines.get(TOKEN)!
  line.isAuthorized = false
  const revoked: Transfer[] = []
  for (let index = 0; index < 4; index++)
    revoked.push(await withdraw(await newCustomer(service), 'PYUSD', '1'))
  const refused = await withdraw(customer, 'XLM', '1', muxed(newAccount(), '1'))
  const good = [await withdraw(customer, 'XLM', '1'), await withdraw(other, 'XLM', '1')]
  await step(wallet)
  for (const one of revoked)
    expect(await codeOf(one)).toMatchObject({ state: 'HELD', waiting_code: 'TOKEN_REFUSES' })
  expect(await readTransfer(customer, refused)).toMatchObject({ status: 'FAILED' })
  for (const one of good) expect((await codeOf(one)).raw_transaction).not.toBeNull()
  line.isAuthorized = true
  await settleAll(wallet)
})

test('a time bound that passed is no proof once the lane has moved: the payment itself may have moved it', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const order = await withdraw(customer, 'XLM', '1')
  await step(wallet)
  const { lane, sequence } = paymentsIn((await codeOf(order)).raw_transaction!)
  model.close(400)
  const old = (path: string, method: string) => {
    const { status, body } = model.truth(method, path)
    return { status, body: { ...(body as object), sequence: String(sequence - 1n) } }
  }
  const isRecord = (path: string) => path.startsWith('/transactions/')
  // First it hides the payment and its number. Then one that is up to date tells the number, and still not the payment.
  model.lies((method, path) =>
    isRecord(path) ? { status: 404, body: {} } : path === `/accounts/${lane}` ? old(path, method) : undefined,
  )
  await hurryUnlocked(service.db, { endLeases: true })
  const { adapter } = wallet
  let isVoid = false
  const following = {
    ...adapter,
    sign: async (_: unknown, some: unknown[]) =>
      some.map(
        () => (
          (isVoid = true),
          { outcome: 'DEFERRED' as const, reason: { code: 'NODE_DOWN' as const, detail: 'later' } }
        ),
      ),
  }
  await settleWithdrawals(service.db, new Map([['STELLAR', following]]))
  await hurryUnlocked(service.db, { endLeases: true })
  await settleWithdrawals(service.db, new Map([['STELLAR', following]]))
  expect(isVoid).toBe(true)
  expect((await codeOf(order)).raw_transaction).toBeNull()
  const signed = await transaction(service.db, async (tx) => {
    model.lies((_, path) =>
      isRecord(path) || path.includes('/transactions?')
        ? { status: isRecord(path) ? 404 : 200, body: { _embedded: { records: [] } } }
        : undefined,
    )
    return adapter.sign(tx, [
      {
        ...order,
        transfer_id: order.id,
        customer_id: customer.customer_id,
        network: 'STELLAR',
        fiat_account_id: null,
        destination_address: order.destination_address!,
        memo: null,
      },
    ])
  })
  expect(signed).toMatchObject([{ outcome: 'DEFERRED', reason: { code: 'IN_FLIGHT_LIMIT' } }])
  model.lies(undefined)
  await step(wallet)
  expect(await codeOf(order)).toMatchObject({ state: 'HELD', waiting_code: 'NONCE_USED' })
  await markWithdrawalPaid(service.db, wallet.networks, order.id, model.made()[0]!.inner, TEST_ORIGIN)
  await settleAll(wallet)
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  await requireAgreement(wallet, [customer])
})

// ---------------------------------------------------------------------------------------------- deposits

/** A second Horizon, which answers as this function changes the model's answers. */
async function secondHorizon(told: (path: string, body: string) => string | undefined) {
  const server = createServer((request, reply) => {
    void fetch(model.url + request.url!).then(async (answer) => {
      const ledger = answer.headers.get('latest-ledger')!
      const said = told(request.url!, await answer.text())
      reply.writeHead(said === undefined ? 404 : answer.status, {
        'content-type': 'application/json',
        'latest-ledger': ledger,
      })
      reply.end(said ?? '{}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

test('a second Horizon must show a deposit, and what has used a number', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ lanes: 1 })]
  let told = (_path: string, body: string) => body
  const second = await secondHorizon((path, body) => told(path, body))
  const adapter = stellarAdapter({ ...wallet.config, verifyHorizonUrl: second.url }, service.db)
  const both = { ...wallet, networks: new Map([['STELLAR', adapter]]) as Networks }
  const { address } = await insertDepositAddress(
    service.db,
    { networks: both.networks, rowMacs: ROW_MACS },
    customer.customer_id,
    { profile_id: customer.profile_id, crypto_network: 'STELLAR' },
  )
  const payer = Keypair.random()
  model.open(payer.publicKey(), '1000')
  model.submit(
    byHand(payer, Operation.payment({ destination: address, asset: Asset.native(), amount: '10' })),
  )
  const { settings, ledger } = service
  const read = async () => {
    await service.db.query('update incoming_transfers set due_at = (select clock_timestamp())')
    return creditDeposits({ db: service.db, ledger, networks: both.networks, settings })
  }
  const reasonOf = async () =>
    (
      await service.db.query<{ reason: string | null }>(
        'select reason from incoming_transfers where address = $1',
        [address],
      )
    ).rows[0]
  told = (path, body) => (path.includes('/operations') ? '{"_embedded":{"records":[]}}' : body)
  expect(await read()).toBe(0)
  expect(await reasonOf()).toEqual({ reason: 'SECOND_NODE' })
  told = (path, body) => (path.includes('/operations') ? body.replaceAll('"10', '"9') : body)
  expect(await read()).toBe(0)
  expect(await reasonOf()).toEqual({ reason: 'NODES_DISAGREE' })
  told = (_path, body) => body
  await service.owner.query(`delete from freezes where subject = 'STELLAR'`)
  expect(await read()).toBe(1)

  const [lane] = laneKeys(wallet.hotWallet, 1)
  model.find(lane!.publicKey())!.native = 10_000_000n
  const order = await withdraw(customer, 'XLM', '1')
  await work(service.db, both.networks)
  model.drop()
  model.submit(
    byHand(lane!, Operation.payment({ destination: newDestination(), asset: Asset.native(), amount: '0.5' })),
  )
  told = (path, body) => (path.includes('/transactions?') ? '{"_embedded":{"records":[]}}' : body)
  for (let round = 1; round <= 3; round++) await step(both)
  expect(await codeOf(order)).toMatchObject({ waiting_code: 'NONCE_USED' })
  told = (_path, body) => body
  await settleAll(both)
  expect(paymentsTo(order.destination_address!)).toHaveLength(1)
  second.close()
})

test('deposits are credited once to the owner of their number: by muxed address, by memo, by merge; others to nobody', async () => {
  const [first, second, wallet] = [await newCustomer(service), await newCustomer(service), await newWallet()]
  const addressFor = async ({ customer_id, profile_id }: TestCustomer) =>
    (
      await insertDepositAddress(service.db, { networks: wallet.networks, rowMacs: ROW_MACS }, customer_id, {
        profile_id,
        crypto_network: 'STELLAR',
      })
    ).address
  const [theirs, others] = [await addressFor(first), await addressFor(second)]
  expect(theirs).toMatch(/^M[A-Z2-7]{68}$/)
  const payer = Keypair.random()
  model.open(payer.publicKey(), '1000', { [TOKEN]: '1000' })
  const pay = (
    destination: string,
    amount: string,
    { asset = Asset.native(), memo }: { asset?: Asset; memo?: Memo } = {},
  ) => model.submit(byHand(payer, Operation.payment({ destination, asset, amount }), memo))
  const token = new Asset('PYUSD', ISSUER)
  pay(theirs, '10.0000001')
  pay(wallet.address, '20', { memo: Memo.id(accountIn(theirs).id!), asset: token })
  pay(others, '30', { asset: token })
  // The number as text, as exchanges send it.
  pay(wallet.address, '5', { memo: Memo.text(accountIn(theirs).id!) })
  // A refill, other text than the number, a number of nobody, an asset of another issuer.
  pay(wallet.address, '40')
  pay(wallet.address, '50', { memo: Memo.text(`0${accountIn(theirs).id!}`) })
  pay(muxed(wallet.address, '12345'), '60')
  const stranger = newAccount()
  model
    .find(payer.publicKey())!
    .lines.set(`PYUSD:${stranger}`, { balance: 10n ** 9n, limit: 2n ** 62n, isAuthorized: true })
  model
    .find(wallet.address)!
    .lines.set(`PYUSD:${stranger}`, { balance: 0n, limit: 2n ** 62n, isAuthorized: true })
  pay(theirs, '70', { asset: new Asset('PYUSD', stranger) })
  const merged = Keypair.random()
  model.open(merged.publicKey(), '5')
  model.submit(byHand(merged, Operation.accountMerge({ destination: theirs })))

  const { settings, ledger } = service
  const read = () => creditDeposits({ db: service.db, ledger, networks: wallet.networks, settings })
  expect(await read()).toBe(5)
  expect(await read()).toBe(0)
  await service.owner.query(
    `update network_cursors set cursor = 'stellar:0', earlier = '{}' where network = 'STELLAR'`,
  )
  expect(await read()).toBe(0)
  expect(await onLedger([first], 'custody:STELLAR', 'XLM')).toBe(-parseAmount('19.9999901', 7)!)
  expect(await onLedger([first], 'custody:STELLAR', 'PYUSD')).toBe(-parseAmount('20', 7)!)
  expect(await onLedger([second], 'custody:STELLAR', 'PYUSD')).toBe(-parseAmount('30', 7)!)
  const again = await wallet.adapter.scanBlocks!(1000n, BigInt(model.clock.ledger))
  expect(again.filter(({ address }) => [theirs, others].includes(address))).toHaveLength(5)

  // A withdrawal to another customer's deposit address is a deposit; what is moved by hand is none.
  const between = await withdraw(first, 'XLM', '3', others)
  await settleAll(wallet)
  model.submit(
    byHand(wallet.hotWallet, Operation.payment({ destination: others, asset: Asset.native(), amount: '4' })),
  )
  expect(await read()).toBe(1)
  expect((await first.call<Transfer>('GET', `/v2/transfer/transfers/${between.id}`)).body.status).toBe(
    'COMPLETED',
  )
  expect(await onLedger([second], 'custody:STELLAR', 'XLM')).toBe(-parseAmount('3', 7)!)
})

test('a Horizon whose newest ledger is old is named by its field in live mode', async () => {
  const { config } = await newWallet()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
  const nodes = [{ field: 'verify_rpc_url', node: horizon(model.url, config.passphrase) }]
  expect(await behindOf('sandbox', nodes, lookAt)).toEqual({})
  expect((await behindOf('live', nodes, lookAt)).behind).toMatch(
    /^verify_rpc_url is at height \d+: its newest block is 36\d\d seconds old$/,
  )
  vi.useRealTimers()
})
