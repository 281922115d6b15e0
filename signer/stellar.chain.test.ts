/*
 * STELLAR with its key in the signer, against a MODEL of the network (test/stellar-model.ts): whoever takes the worker gets nothing
 * signed but what was accepted, and each transfer with one number of one account, of which the network makes one transaction.
 */
import { writeFile } from 'node:fs/promises'
import {
  Account,
  Asset,
  FeeBumpTransaction,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  TransactionBuilder,
} from '@stellar/stellar-base'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AskedSigner } from '../chains/kit/remote-signer.ts'
import { stellarAdapter } from '../chains/stellar/adapter.ts'
import type { StellarConfig } from '../chains/stellar/chain.ts'
import { innerOf, laneKeys, muxed, paymentsIn, writePayments } from '../chains/stellar/envelope.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { evidenceOf } from '../src/governance/approvals/signing-evidence.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { verify } from '../src/money/verify/verify.ts'
import type { Networks } from '../src/networks/network.ts'
import { NodeFailure } from '../src/networks/node-failure.ts'
import { guarded } from '../src/rails/payouts/signing-guards.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'
import { atEnd } from '../test/at-end.ts'
import { dieAtEachStep, failing } from '../test/failures.ts'
import { formsOf, foundIn } from '../test/memory-of.ts'
import { accept, acceptance, ownSigner } from '../test/own-signer.ts'
import { keptOf, readTransfer, settle, sumOn, work } from '../test/payouts-on.ts'
import { startStellarModel } from '../test/stellar-model.ts'
import {
  MASTER_KEYS,
  newCustomer,
  ownBursar,
  ownDatabase,
  remoteCaller,
  ROW_MACS,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../test/support.ts'

const ISSUER = Keypair.random().publicKey()
const TOKEN = `PYUSD:${ISSUER}`
const LANES = 2

let service: TestService
beforeEach(async () => {
  service = await startTestService()
})
afterEach(() => service.close())

/** A network, and a signer whose key signs for a wallet of 5,000 XLM and 3,000 PYUSD: its own account, or another's. */
async function start({ isAnothers = false } = {}) {
  const model = await startStellarModel()
  atEnd(() => model.stop())
  const [key, other] = [Keypair.random(), Keypair.random()]
  const address = (isAnothers ? other : key).publicKey()
  const wallet = model.open(address, '5000', { [TOKEN]: '3000' })
  if (isAnothers) wallet.signers = new Map([[key.publicKey(), 1]])
  const channels = laneKeys(key, LANES).map((lane) => lane.publicKey())
  for (const lane of channels) model.open(lane, '0').sponsored = 2
  const section = {
    ...{ network_passphrase: model.passphrase, tokens: { PYUSD: ISSUER }, fee_max: '0.5' },
    wallets: [{ env: 'SEED', ...(isAnothers && { address }) }],
    windows: ['XLM', 'PYUSD'].map((asset) => ({ asset, period_seconds: 3_600, amount: '2000' })),
  }
  const { client, change, path } = await ownSigner('STELLAR', address, section, { SEED: key.secret() })
  const lanes = isAnothers ? channels : [...channels, address]
  const given: StellarConfig = {
    ...{ horizonUrl: model.url, verifyHorizonUrl: model.url, passphrase: model.passphrase },
    ...{ hotWallet: { address }, signer: { asked: client, lanes }, issuers: { PYUSD: ISSUER } },
    ...{ feeCeiling: '0.01', withdrawals: withdrawalReader, pollMs: 10 },
  }
  return { model, key, address, lanes, client, given, change, path }
}
type Running = Awaited<ReturnType<typeof start>>

function networksOf({ given }: Running, asked: AskedSigner = given.signer!.asked, db = service.db): Networks {
  const adapter = stellarAdapter({ ...given, signer: { ...given.signer!, asked } }, db)
  return new Map([['STELLAR', guarded(adapter, { macs: new RowMacs(MASTER_KEYS), screening: undefined })]])
}
const finish = (running: Running, made: readonly Transfer[]) =>
  settle(service.db, networksOf(running), () => running.model.close(), made)

function newDestination({ model }: Running): string {
  const account = Keypair.random().publicKey()
  model.open(account, '1', { [TOKEN]: '0' })
  return account
}

const withdraw = (customer: TestCustomer, asset: string, amount: string, to: string, memo?: string) =>
  accept(service, customer, {
    ...{ crypto_network: 'STELLAR', asset, amount, destination_address: to },
    ...(memo !== undefined && { memo }),
  })
const evidenceFor = async (customer: TestCustomer, { id }: Transfer) =>
  (await evidenceOf(service.db, customer.customer_id, [id])).get(id)!

/** The numbers that were signed for a withdrawal, the oldest first. */
async function placesOf({ id }: Transfer): Promise<string[]> {
  const { rows } = await service.db.query<{ raw_transaction: Buffer; paid: number }>(
    `select raw_transaction, cardinality(transfer_ids) as paid from network_transactions
     where transfer_ids @> array[$1::uuid] order by signed_at`,
    [id],
  )
  expect(rows.every(({ paid }) => paid === 1)).toBe(true)
  return rows.map(({ raw_transaction: raw }) => `${paymentsIn(raw).lane}:${paymentsIn(raw).sequence}`)
}
const paidTo = ({ model }: Running, { destination_address: to }: Transfer) =>
  model
    .made()
    .flatMap(({ operations }) => operations.filter(({ record }) => (record.to ?? record.account) === to))

/** What left the wallet is what the ledger says, to the stroop, and everything signed pays what was accepted. */
async function requireAgreement(running: Running, customers: TestCustomer[]): Promise<void> {
  const { held } = await stellarAdapter(running.given, service.db).status!()
  for (const [asset, amount] of [
    ['XLM', 5000],
    ['PYUSD', 3000],
  ] as const) {
    const paid = await sumOn(service.db, 'custody:STELLAR', asset, customers)
    expect([asset, parseAmount(held[asset]!, 7)]).toEqual([asset, BigInt(amount) * 10_000_000n - paid])
    expect(await sumOn(service.db, 'in_flight:STELLAR', asset, customers)).toBe(0n)
  }
  const tokens = new Map([['STELLAR' as const, { PYUSD: ISSUER }]])
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
}

test.each([false, true])(
  'payments of every kind leave; with the key of another signer: %s',
  async (isAnothers) => {
    const running = await start({ isAnothers })
    const customer = await newCustomer(service)
    const fresh = Keypair.random().publicKey()
    const made = [
      await withdraw(customer, 'XLM', '1.2345678', newDestination(running)),
      await withdraw(customer, 'XLM', '2', fresh),
      await withdraw(customer, 'PYUSD', '3.0000001', muxed(newDestination(running), '18446744073709551615')),
      await withdraw(customer, 'PYUSD', '4', newDestination(running), 'id:42'),
      await withdraw(customer, 'XLM', '5', newDestination(running), '42'),
      await withdraw(customer, 'XLM', '6', newDestination(running), `hash:${'0f'.repeat(32)}`),
    ]
    await work(service.db, networksOf(running))
    const asked = await keptOf(service.db, made[0]!)
    await finish(running, made)
    for (const one of made) {
      const ended = await readTransfer(customer, one)
      expect(ended).toMatchObject({ status: 'COMPLETED', crypto_tx_index: '0' })
      const found = running.model.made().filter(({ inner }) => inner === ended.crypto_tx_hash)
      expect(found).toMatchObject([{ record: { successful: true, fee_account: running.address } }])
      expect(running.lanes).toContain((await placesOf(one))[0]!.split(':')[0])
    }
    // What was asked for has the hash of what was made.
    expect(asked).toMatchObject({ crypto_tx_hash: (await keptOf(service.db, made[0]!)).crypto_tx_hash })
    await requireAgreement(running, [customer])
  },
)

/** What a thief of the worker asks for: payments of the wallet, with something changed. */
async function thiefOf(running: Running) {
  const { model, client, address, lanes } = running
  const customer = await newCustomer(service)
  const made = await withdraw(customer, 'XLM', '1', newDestination(running))
  const evidence = await evidenceFor(customer, made)
  const pays = { destination: made.destination_address!, asset: 'native', amount: '1', creates: false }
  const maxTime = BigInt(model.clock.closedAt + 300)
  const terms = { source: address, fee: 100_000n, passphrase: model.passphrase }
  const written = (changes: object = {}, otherTerms: object = {}) =>
    writePayments(
      { lane: lanes[0]!, sequence: 7n, maxTime, memo: undefined, payments: [pays], ...changes },
      { ...terms, ...otherTerms },
    ).raw_transaction
  const ask = async (raw: Buffer, of = [evidence], wallet = address) => {
    const what = { wallet, unsigned: `0x${raw.toString('hex')}` }
    const answer = await client.ask('STELLAR', what, { payments: of, journal_heads: [] })
    return 'reason' in answer ? answer.reason.detail : 'signed'
  }
  /** Bytes that only hands write. */
  const built = (
    add: (to: TransactionBuilder) => TransactionBuilder,
    { source = new Account(lanes[0]!, '6') as Account | MuxedAccount, feeSource = address, ...more } = {},
  ) => {
    const { passphrase: networkPassphrase } = model
    const timebounds = { minTime: 0, maxTime: String(maxTime) }
    const inner = add(
      new TransactionBuilder(source, { fee: '100', networkPassphrase, timebounds, ...more }),
    ).build()
    const bump = TransactionBuilder.buildFeeBumpTransaction(feeSource, '100000', inner, networkPassphrase)
    return bump.toEnvelope().toXDR()
  }
  const operation = { source: address, destination: pays.destination, asset: Asset.native(), amount: '1' }
  return { ...{ customer, made, evidence, pays, written, ask, built }, operation }
}

test('a thief of the worker gets nothing signed that pays other than what was accepted', async () => {
  const running = await start()
  const { customer, evidence, pays, written, ask } = await thiefOf(running)
  const notPaid = /does not pay what was accepted/
  const stranger = Keypair.random().publicKey()
  for (const payment of [
    { ...pays, destination: stranger },
    { ...pays, destination: muxed(pays.destination, '1') },
    { ...pays, amount: '1.0000001' },
    { ...pays, asset: `XLM:${ISSUER}` },
    { ...pays, asset: TOKEN },
    { ...pays, destination: stranger, creates: true },
  ])
    expect(await ask(written({ payments: [payment] }))).toMatch(notPaid)
  expect(await ask(written({ memo: 'mine' }))).toMatch(/does not pay what was accepted.*memo/)
  expect(await ask(written({ payments: [pays, { ...pays, destination: stranger }] }))).toMatch(
    /makes 2 payments/,
  )

  // One payment for two transfers, two transfers in another order, and a token of another issuer.
  const twin = await withdraw(customer, 'XLM', '1', pays.destination)
  const token = await withdraw(customer, 'PYUSD', '1', pays.destination)
  const [ofTwin, ofToken] = [await evidenceFor(customer, twin), await evidenceFor(customer, token)]
  expect(await ask(written(), [evidence, ofTwin])).toMatch(/makes 1 payments, and 2 are asked for/)
  expect(await ask(written({ payments: [pays, pays] }), [evidence, evidence])).toMatch(
    /makes 2 payments, and 1/,
  )
  const paysToken = { ...pays, asset: TOKEN }
  expect(await ask(written({ payments: [paysToken, pays] }), [evidence, ofToken])).toMatch(notPaid)
  const forged = { ...pays, asset: `PYUSD:${stranger}` }
  expect(await ask(written({ payments: [forged] }), [ofToken])).toMatch(notPaid)

  // A memo of another kind than was accepted, and two payments with one memo of one of them.
  const noted = await evidenceFor(customer, await withdraw(customer, 'XLM', '1', pays.destination, '42'))
  for (const memo of ['id:42', '43', undefined]) expect(await ask(written({ memo }), [noted])).toMatch(/memo/)
  expect(await ask(written({ memo: '42', payments: [pays, pays] }), [noted, evidence])).toMatch(/memo/)
  expect(await ask(written({ memo: '42' }), [noted])).toBe('signed')
  expect(await ask(written({ payments: [pays, paysToken] }), [ofTwin, ofToken])).toBe('signed')
  expect(await ask(written(), [{ ...evidence, signature: null }])).toMatch(
    /no process with an acceptance key/,
  )
  expect(await ask(written())).toBe('signed')
})

test('a thief of the worker adds nothing to a payment: no operation, account, fee, number or network of its own', async () => {
  const running = await start()
  const { written, ask, built, operation } = await thiefOf(running)
  const { address, model, lanes } = running
  const thief = Keypair.random().publicKey()
  const plain = (to: TransactionBuilder) => to.addOperation(Operation.payment(operation))
  const notOurs = /is not written as payments of|it is no payment but|no account of the key/
  const attacks: [string, Buffer][] = [
    [
      'options',
      built((to) => plain(to).addOperation(Operation.setOptions({ source: address, masterWeight: 0 }))),
    ],
    [
      'another who pays',
      built((to) => to.addOperation(Operation.payment({ ...operation, source: lanes[0]! }))),
    ],
    ['nobody named', built((to) => to.addOperation(Operation.payment({ ...operation, source: undefined! })))],
    [
      'a muxed payer',
      built((to) => to.addOperation(Operation.payment({ ...operation, source: muxed(address, '1') }))),
    ],
    ['a muxed lane', built(plain, { source: new MuxedAccount(new Account(lanes[0]!, '6'), '1') })],
    ['a lane of others', built(plain, { source: new Account(thief, '6') })],
    ['another fee source', built(plain, { feeSource: thief })],
    ['a minimum time', built(plain, { timebounds: { minTime: 1, maxTime: 2_000_000_000 } } as object)],
    ['a precondition', built((to) => plain(to).setMinAccountSequence('1'))],
    ['a return memo', built((to) => plain(to).addMemo(Memo.return('0f'.repeat(32))))],
    ['text that reads as another kind', built((to) => plain(to).addMemo(Memo.text('id:42')))],
    ['a higher inner fee', built(plain, { fee: '200' } as object)],
  ]
  for (const [what, raw] of attacks) expect([what, await ask(raw)]).not.toEqual([what, 'signed'])
  for (const [what, raw] of attacks.slice(1, 9))
    expect([what, await ask(raw)]).toEqual([what, expect.stringMatching(notOurs)])
  expect(await ask(written({ maxTime: 0n }))).toMatch(/no time bound/)
  expect(await ask(written({}, { fee: 2_500_001n }))).toMatch(/above fee_max/)
  expect(await ask(written({}, { source: thief }), undefined)).toMatch(/is not written as payments of/)
  expect(await ask(Buffer.concat([written(), Buffer.alloc(4)]))).not.toBe('signed')
  const bare = innerOf(written().toString('base64'), model.passphrase)
  expect(await ask(bare.toEnvelope().toXDR())).toMatch(/it is no fee bump/)
  bare.sign(Keypair.random())
  const bump = TransactionBuilder.buildFeeBumpTransaction(address, '100000', bare, model.passphrase)
  expect(await ask(bump.toEnvelope().toXDR())).toMatch(notOurs)
  expect(await ask(written(), undefined, thief)).toMatch(/is no wallet of/)
})

test('a transfer is signed with one number of one account until people void it, which others may share', async () => {
  const running = await start()
  const { customer, made, evidence, pays, written, ask } = await thiefOf(running)
  const { lanes } = running
  expect(await ask(written())).toBe('signed')
  // Again, later and for another fee: of all these the network makes one.
  for (const [changes, terms] of [
    [{}, {}],
    [{ maxTime: 4_000_000_000n }, {}],
    [{}, { fee: 200_000n }],
  ] as const)
    expect(await ask(written(changes, terms))).toBe('signed')
  const elsewhere = [{ lane: lanes[1]! }, { sequence: 8n }, { lane: lanes[2]!, sequence: 8n }]
  for (const changes of elsewhere)
    expect(await ask(written(changes))).toContain(`was signed with nonce ${lanes[0]}:7 of ${running.address}`)
  const other = await withdraw(customer, 'XLM', '1', pays.destination)
  expect(await ask(written({ maxTime: 3_000_000_000n }), [await evidenceFor(customer, other)])).toBe('signed')
  await running.change({ kind: 'VOID', nonces: [`${lanes[0]}:7`], transfer_ids: [made.id] })
  expect(await ask(written({ sequence: 8n }))).toBe('signed')
  expect(await ask(written())).toMatch(/was signed with nonce/)
  expect(await ask(written({ sequence: 8n }), [evidence])).toBe('signed')
})

/** Broadcasts withdrawals of a customer, and lets their time pass, with nothing in a ledger. */
async function letPass(running: Running): Promise<void> {
  const { model } = running
  for (let round = 1; round <= 2; round++) await work(service.db, networksOf(running))
  model.drop()
  model.close(400)
}
const deferring = ({ client }: Running, { id }: Transfer): AskedSigner => ({
  ...client,
  check: async (_, payments) => payments.map(({ accepted }) => (accepted.includes(id) ? 'not now' : null)),
})

test('what passed its time is signed anew with its number, without people, and nothing else takes that meanwhile', async () => {
  const running = await start()
  const customer = await newCustomer(service)
  const to = () => newDestination(running)
  const made = await withdraw(customer, 'XLM', '1', to())
  await letPass(running)
  const [first] = await placesOf(made)
  const later = networksOf(running, deferring(running, made))
  const others = []
  for (let count = 0; count < 5; count++) others.push(await withdraw(customer, 'XLM', '1', to()))
  await settle(service.db, later, () => running.model.close(), others)
  expect(await keptOf(service.db, made)).toMatchObject({ state: 'HELD', waiting_code: 'SIGNER_REFUSES' })
  expect((await Promise.all(others.map((one) => placesOf(one)))).flat()).not.toContain(first)
  await finish(running, [made])
  expect(await placesOf(made)).toEqual([first, first])
  for (const one of [made, ...others]) expect(paidTo(running, one)).toHaveLength(1)
  await requireAgreement(running, [customer])
})

test('what passed its time and is refused then leaves its number to others', async () => {
  const running = await start()
  const { model, given, lanes } = running
  const alone = { ...running, given: { ...given, signer: { ...given.signer!, lanes: lanes.slice(0, 1) } } }
  const customer = await newCustomer(service)
  const to = newDestination(running)
  const made = await withdraw(customer, 'PYUSD', '1', to)
  const next = await withdraw(customer, 'XLM', '1', newDestination(running))
  await letPass(alone)
  const later = networksOf(alone, deferring(running, made))
  for (let round = 1; round <= 3; round++) await work(service.db, later)
  expect(await keptOf(service.db, next)).toMatchObject({ waiting_code: 'IN_FLIGHT_LIMIT' })
  model.find(to)!.lines.clear()
  await finish(alone, [made, next])
  expect(await readTransfer(customer, made)).toMatchObject({ status: 'FAILED' })
  expect(await placesOf(next)).toEqual(await placesOf(made))
  expect([paidTo(running, made).length, paidTo(running, next).length]).toEqual([0, 1])
  await requireAgreement(running, [customer])
})

test('a payment that fails is refunded; one that failed for want of money waits until people void its number', async () => {
  const running = await start()
  const { model, address, change } = running
  const customer = await newCustomer(service)
  const to = newDestination(running)
  const [failing, short, good] = [
    await withdraw(customer, 'PYUSD', '1', to),
    await withdraw(customer, 'XLM', '2', newDestination(running)),
    await withdraw(customer, 'PYUSD', '3', newDestination(running)),
  ]
  const networks = networksOf(running)
  for (let round = 1; round <= 2; round++) await work(service.db, networks)
  model.find(to)!.lines.clear()
  const wallet = model.find(address)!
  const { native } = wallet
  wallet.native = 20_001_000n
  model.close()
  // A failed transaction has put back a copy.
  model.find(address)!.native += native - 20_001_000n
  await settle(service.db, networks, () => model.close(), [failing, good])
  expect(await readTransfer(customer, failing)).toMatchObject({ status: 'FAILED' })
  expect(await readTransfer(customer, good)).toMatchObject({ status: 'COMPLETED' })
  for (let round = 1; round <= 3; round++) await work(service.db, networks)
  const [place] = await placesOf(short)
  expect(await keptOf(service.db, short)).toMatchObject({
    ...{ state: 'ASKED', waiting_code: 'SIGNER_REFUSES' },
    waiting_detail: expect.stringContaining(`was signed with nonce ${place} of ${address}`) as string,
  })
  await change({ kind: 'VOID', nonces: [place], transfer_ids: [short.id] })
  await finish(running, [short])
  expect(paidTo(running, short)).toHaveLength(1)
  await requireAgreement(running, [customer])
})

test('its answer is lost, and a thief broadcasts the bytes: the worker follows them, and nothing else stops', async () => {
  const running = await start()
  const { model, client } = running
  const customer = await newCustomer(service)
  const made = await withdraw(customer, 'XLM', '1', newDestination(running))
  let lost = ''
  const losing: AskedSigner = {
    ...client,
    async ask(...asked) {
      const answer = await client.ask(...asked)
      if ('signed' in answer) lost = answer.signed
      throw new NodeFailure('the signer does not answer: killed')
    },
  }
  for (let round = 1; round <= 2; round++) await work(service.db, networksOf(running, losing))
  expect(await keptOf(service.db, made)).toMatchObject({ state: 'ASKED', waiting_code: 'SIGNER_DOWN' })
  const bytes = Buffer.from(lost.slice(2), 'hex').toString('base64')
  model.submit(TransactionBuilder.fromXDR(bytes, model.passphrase) as FeeBumpTransaction)
  const more = await withdraw(customer, 'XLM', '1', newDestination(running))
  await work(service.db, networksOf(running, losing))
  expect(await readTransfer(customer, made)).toMatchObject({ status: 'COMPLETED' })
  await finish(running, [more])
  await requireAgreement(running, [customer])
})

test('an answer that is another transaction, or not signed, is not taken', async () => {
  const running = await start()
  const { model, client, key, address, lanes } = running
  const customer = await newCustomer(service)
  const made = await withdraw(customer, 'XLM', '1', newDestination(running))
  const head = '0'.repeat(32)
  let terms = { source: address, fee: 200_000n, passphrase: model.passphrase }
  let [signer, laneKey] = [key, laneKeys(key, 1)[0]!]
  const lying: AskedSigner = {
    ...client,
    async ask(_, { unsigned }) {
      const asked = paymentsIn(Buffer.from(unsigned.slice(2), 'hex'))
      const signed = writePayments(asked, terms, { signer, laneKey }).raw_transaction
      return { signed: `0x${signed.toString('hex')}`, head }
    },
  }
  const says = async () => {
    await work(service.db, networksOf(running, lying))
    return (await keptOf(service.db, made)).waiting_detail
  }
  await work(service.db, networksOf(running, lying))
  expect(await says()).toContain('the signer changed the transaction')
  terms = { ...terms, fee: 100_000n }
  laneKey = Keypair.random()
  expect(await says()).toContain(`it is not signed by ${lanes[0]}`)
  await finish(running, [made])
  await requireAgreement(running, [customer])
})

test('a worker that dies at any step while the signer is asked pays each withdrawal once', async () => {
  const running = await start()
  const customer = await newCustomer(service)
  await dieAtEachStep('AFTER', 10, async (failures) => {
    const made = [
      await withdraw(customer, 'XLM', '1', newDestination(running)),
      await withdraw(customer, 'PYUSD', '2', newDestination(running)),
    ]
    const dying = networksOf(running, undefined, failures.database(service.db))
    for (let round = 1; round <= 6 && !failures.died; round++) {
      await failing(failures, () =>
        work(service.db, dying, failures.database(service.db)).catch(() => undefined),
      )
      running.model.close()
    }
    await finish(running, made)
    for (const one of made) expect(paidTo(running, one)).toHaveLength(1)
  })
  await requireAgreement(running, [customer])
})

test('the whole service: a deposit arrives, a withdrawal leaves, and the worker holds no key', async () => {
  const { model, key, address, lanes, path } = await start()
  await writeFile(path('acceptance'), JSON.stringify(acceptance))
  const STELLAR = {
    ...{ adapter: 'stellar', rpc_url: model.url, verify_rpc_url: model.url, issuers: { PYUSD: ISSUER } },
    ...{
      hot_wallet_address: address,
      lane_accounts: lanes,
      signer: { socket: path('s') },
      fee_ceiling: '0.01',
    },
  }
  await writeFile(path('networks.json'), JSON.stringify({ STELLAR }))
  const database = await ownDatabase()
  const { customer_id, profile_id } = await createCustomer(database.db, 'Test')
  const api = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  const bursar = await ownBursar({
    ...{ DATABASE_URL: database.url, BURSAR_NETWORKS_FILE: path('networks.json') },
    ...{ BURSAR_ACCEPTANCE_KEY_FILE: path('acceptance'), BURSAR_WORKER_INTERVAL_MS: '100' },
  })
  const call = await remoteCaller(bursar.address, api)
  const asked = { profile_id, crypto_network: 'STELLAR' }
  const { body } = await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', asked)
  const payer = Keypair.random()
  model.open(payer.publicKey(), '100', { [TOKEN]: '50' })
  const source = new Account(payer.publicKey(), String(model.find(payer.publicKey())!.sequence))
  const asset = new Asset('PYUSD', ISSUER)
  const deposit = new TransactionBuilder(source, { fee: '1000', networkPassphrase: model.passphrase })
    .addOperation(Operation.payment({ destination: body.address, asset, amount: '50' }))
    .setTimeout(0)
    .build()
  deposit.sign(payer)
  model.submit(deposit)
  const to = Keypair.random().publicKey()
  model.open(to, '1', { [TOKEN]: '0' })
  const order = { ...asked, asset: 'PYUSD', amount: '20', destination_address: to }
  let made: Transfer | undefined
  await expect
    .poll(
      async () => {
        model.close()
        const reply = await call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', order)
        if (reply.status === 200) made = reply.body
        return reply.status
      },
      { timeout: 30_000, interval: 300 },
    )
    .toBe(200)
  await expect
    .poll(
      async () => {
        model.close()
        return (await call<Transfer>('GET', `/v2/transfer/transfers/${made!.id}`)).body.status
      },
      { timeout: 30_000, interval: 300 },
    )
    .toBe('COMPLETED')
  const lane = laneKeys(key, 1)[0]!
  const keyForms = (one: Keypair) => [Buffer.from(one.rawSecretKey()), ...formsOf(one.secret())]
  const kept = new Map([
    ['seed', keyForms(key)],
    ['lane', keyForms(lane)],
    ['lane account', formsOf(lane.publicKey())],
    ['client', formsOf(api.client_id)],
  ])
  // What a worker has to know is found by the same search.
  expect(await foundIn(bursar.pid, kept)).toEqual(['client', 'lane account'])
  expect(await foundIn(process.pid, kept)).toEqual(expect.arrayContaining(['seed', 'lane']))
})
