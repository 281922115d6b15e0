/*
 * STELLAR with its key in the signer, against a MODEL of the network (test/stellar-model.ts): whoever takes the worker gets nothing
 * signed but what was accepted, and each transfer with one number of one account, of which the network makes one transaction.
 */
import { writeFile } from 'node:fs/promises'
import {
  Account,
  Asset,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  TransactionBuilder,
} from '@stellar/stellar-base'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AskedSigner } from '../chains/kit/remote-signer.ts'
import { stellarAdapter } from '../chains/stellar/adapter.ts'
import { askedBytes } from '../chains/stellar/asked-bytes.ts'
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
import { accept, acceptance, ownSigner } from '../test/signer-process.ts'
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
async function start({ isAnothers = false, window = { period_seconds: 3_600, amount: '2000' } } = {}) {
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
    windows: ['XLM', 'PYUSD'].map((asset) => ({ asset, ...window })),
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

const withdraw = (
  running: Running,
  customer: TestCustomer,
  asset: string,
  amount: string,
  { to = newDestination(running), ...more }: { to?: string; memo?: string } = {},
) =>
  accept(service, customer, {
    ...{ crypto_network: 'STELLAR', asset, amount, destination_address: to },
    ...more,
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
async function requireAgreement(running: Running): Promise<void> {
  const { held } = await stellarAdapter(running.given, service.db).status!()
  for (const [asset, amount] of Object.entries({ XLM: '5000', PYUSD: '3000' })) {
    const paid = await sumOn(service.db, 'custody:STELLAR', asset)
    expect([asset, parseAmount(held[asset]!, 7)]).toEqual([asset, parseAmount(amount, 7)! - paid])
    expect(await sumOn(service.db, 'in_flight:STELLAR', asset)).toBe(0n)
  }
  const tokens = new Map([['STELLAR' as const, { PYUSD: ISSUER }]])
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
}

const KINDS = ['its own account', "another's account"]
test.each(KINDS)('payments of every kind leave, with a key of %s', async (kind) => {
  const running = await start({ isAnothers: kind === KINDS[1] })
  const customer = await newCustomer(service)
  const made = [
    await withdraw(running, customer, 'XLM', '1.2345678'),
    await withdraw(running, customer, 'XLM', '2', { to: Keypair.random().publicKey() }),
    await withdraw(running, customer, 'PYUSD', '3.0000001', { to: muxed(newDestination(running), '1') }),
    await withdraw(running, customer, 'PYUSD', '4', { memo: 'id:42' }),
    await withdraw(running, customer, 'XLM', '5', { memo: '42' }),
    await withdraw(running, customer, 'XLM', '6', { memo: `hash:${'0f'.repeat(32)}` }),
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
  await requireAgreement(running)
})

/** What a thief of the worker asks for: payments of the wallet, with something changed. */
async function thiefOf(running: Running) {
  const { model, client, address, lanes } = running
  const customer = await newCustomer(service)
  const made = await withdraw(running, customer, 'XLM', '1')
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
  return { customer, made, evidence, pays, written, ask }
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
  const more = { ...pays, destination: stranger }
  expect(await ask(written({ payments: [pays, more] }))).toMatch(/makes 2 payments/)

  // One payment for two transfers, two transfers in another order, and a token of another issuer.
  const to = pays.destination
  const ofNew = async (asset: string, memo?: string) => {
    const noted = memo === undefined ? { to } : { to, memo }
    return evidenceFor(customer, await withdraw(running, customer, asset, '1', noted))
  }
  const [ofTwin, ofToken, noted] = [await ofNew('XLM'), await ofNew('PYUSD'), await ofNew('XLM', '42')]
  expect(await ask(written(), [evidence, ofTwin])).toMatch(/makes 1 payments, and 2 are asked for/)
  const twice = written({ payments: [pays, pays] })
  expect(await ask(twice, [evidence, evidence])).toMatch(/makes 2 payments, and 1 are/)
  const paysToken = { ...pays, asset: TOKEN }
  expect(await ask(written({ payments: [paysToken, pays] }), [evidence, ofToken])).toMatch(notPaid)
  const forged = { ...pays, asset: `PYUSD:${stranger}` }
  expect(await ask(written({ payments: [forged] }), [ofToken])).toMatch(notPaid)

  // A memo of another kind than was accepted, and two payments with one memo of one of them.
  for (const memo of ['id:42', '43', undefined]) expect(await ask(written({ memo }), [noted])).toMatch(/memo/)
  expect(await ask(written({ memo: '42', payments: [pays, pays] }), [noted, evidence])).toMatch(/memo/)
  expect(await ask(written({ memo: '42' }), [noted])).toBe('signed')
  expect(await ask(written({ payments: [pays, paysToken] }), [ofTwin, ofToken])).toBe('signed')
  expect(await ask(written(), [{ ...evidence, signature: null }])).toMatch(/no process with an acceptance/)
  expect(await ask(written())).toBe('signed')
})

test('a thief of the worker adds nothing to a payment: no operation, account, fee or number of its own', async () => {
  const running = await start()
  const { pays, written, ask } = await thiefOf(running)
  const { address, model, lanes } = running
  const { passphrase: networkPassphrase } = model
  const thief = Keypair.random().publicKey()
  const at = (lane: string) => new Account(lane, '6')
  type Adding = (to: TransactionBuilder) => TransactionBuilder
  const paying = (changes: object = {}): Adding => {
    const operation = { source: address, destination: pays.destination, asset: Asset.native(), amount: '1' }
    return (to) => to.addOperation(Operation.payment({ ...operation, ...changes }))
  }
  const plain = paying()
  const built = (add: Adding, { source = at(lanes[0]!), from = address, ...more } = {}) => {
    const timebounds = { minTime: 0, maxTime: 2_000_000_000 }
    const inner = add(new TransactionBuilder(source, { fee: '100', networkPassphrase, timebounds, ...more }))
    const bump = TransactionBuilder.buildFeeBumpTransaction(from, '100000', inner.build(), networkPassphrase)
    return bump.toEnvelope().toXDR()
  }
  expect(await ask(built(plain))).toBe('signed')
  const takesAll = Operation.setOptions({ source: address, masterWeight: 0 })
  const attacks = {
    'another operation': built((to) => plain(to).addOperation(takesAll)),
    'another who pays': built(paying({ source: lanes[0] })),
    'nobody named who pays': built(paying({ source: undefined })),
    'a muxed payer': built(paying({ source: muxed(address, '1') })),
    'a muxed lane': built(plain, { source: new MuxedAccount(at(lanes[0]!), '1') }),
    'a lane of others': built(plain, { source: at(thief) }),
    'another fee source': built(plain, { from: thief }),
    'a minimum time': built(plain, { timebounds: { minTime: 1, maxTime: 2_000_000_000 } } as object),
    'a precondition': built((to) => plain(to).setMinAccountSequence('1')),
    'a higher inner fee': built(plain, { fee: '101' } as object),
  }
  const notOurs = expect.stringMatching(
    /is not written as|it is no payment but|no account of the key/,
  ) as string
  for (const [what, raw] of Object.entries(attacks)) expect([what, await ask(raw)]).toEqual([what, notOurs])
  // Memos of other kinds, and text that reads as one, are none that Bursar writes.
  for (const memo of [Memo.return('0f'.repeat(32)), Memo.text('id:42'), new Memo('text', Buffer.of(0xff))])
    expect(await ask(built((to) => plain(to).addMemo(memo)))).not.toBe('signed')
  expect(await ask(written({ maxTime: 0n }))).toMatch(/no time bound/)
  // Nothing could void a transfer that has one.
  for (const sequence of [0n, -7n]) expect(await ask(written({ sequence }))).toMatch(/no number/)
  expect(await ask(written({}, { fee: 2_500_001n }))).toMatch(/above fee_max/)
  expect(await ask(Buffer.concat([written(), Buffer.alloc(4)]))).not.toBe('signed')
  const bare = innerOf(written().toString('base64'), networkPassphrase)
  expect(await ask(bare.toEnvelope().toXDR())).toMatch(/it is no fee bump/)
  bare.sign(Keypair.random())
  const bump = TransactionBuilder.buildFeeBumpTransaction(address, '100000', bare, networkPassphrase)
  expect(await ask(bump.toEnvelope().toXDR())).toEqual(notOurs)
  expect(await ask(written(), undefined, thief)).toMatch(/is no wallet of/)
})

test('a transfer is signed with one number of one account until people void it, which others may share', async () => {
  const running = await start()
  const { customer, made, evidence, pays, written, ask } = await thiefOf(running)
  const { lanes } = running
  expect(await ask(written())).toBe('signed')
  // Again, later and for another fee: of all these the network makes one.
  for (const again of [written(), written({ maxTime: 4_000_000_000n }), written({}, { fee: 200_000n })])
    expect(await ask(again)).toBe('signed')
  const elsewhere = [{ lane: lanes[1]! }, { sequence: 8n }, { lane: lanes[2]!, sequence: 8n }]
  for (const changes of elsewhere)
    expect(await ask(written(changes))).toContain(`was signed with nonce ${lanes[0]}:7 of ${running.address}`)
  const other = await withdraw(running, customer, 'XLM', '1', { to: pays.destination })
  expect(await ask(written({ maxTime: 3_000_000_000n }), [await evidenceFor(customer, other)])).toBe('signed')
  await running.change({ kind: 'VOID', nonces: [`${lanes[0]}:7`], transfer_ids: [made.id] })
  expect(await ask(written({ sequence: 8n }))).toBe('signed')
  expect(await ask(written())).toMatch(/was signed with nonce/)
  expect(await ask(written({ sequence: 8n }), [evidence])).toBe('signed')
  // A multiplexed account is the longest address that people can name.
  const named = { kind: 'DESTINATION', asset: 'XLM', destinations: [muxed(pays.destination, '1')] }
  await running.change(named)
})

test('what a transfer was signed to cost before lets no more of another out', async () => {
  const running = await start({ window: { period_seconds: 1, amount: '10' } })
  const { customer, evidence, pays, written, ask } = await thiefOf(running)
  // Half an XLM, which counts in its window no more.
  expect(await ask(written({}, { fee: 2_500_000n }))).toBe('signed')
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  const other = await withdraw(running, customer, 'XLM', '10.2', { to: pays.destination })
  const both = written({ payments: [pays, { ...pays, amount: '10.2' }] })
  expect(await ask(both, [evidence, await evidenceFor(customer, other)])).toMatch(/more XLM would leave/)
})

test('what would take seconds to read is refused for its length', async () => {
  const running = await start()
  const { made, evidence, written, ask } = await thiefOf(running)
  expect(await ask(Buffer.alloc(70_000))).toMatch(/not in hex of 131072 digits/)
  const members = JSON.parse(evidence.accepted) as string[]
  const accepted = JSON.stringify(members.with(4, '9'.repeat(10_000)))
  expect(await ask(written(), [{ ...evidence, accepted }])).toMatch(/what was accepted cannot be read/)
  const large = [{ ...evidence, signature: 'x'.repeat(4 * 1024 * 1024) }]
  expect(await ask(written(), large)).toMatch(/has 4194304 bytes at most beside/)
  const allow = { kind: 'ALLOW', network: 'STELLAR', transfer_ids: [made.id] }
  const change = { ...allow, expires_at: new Date(Date.now() + 60_000).toISOString() }
  const approvals = Array.from({ length: 101 }, () => ({ jws: 'x' }))
  await expect(running.client.change(change, approvals)).rejects.toThrow('at most 100 approvals are read')
})

/** Works on withdrawals, and lets the time of their bytes pass, with nothing in a ledger. */
async function letPass(running: Running, asked?: AskedSigner): Promise<void> {
  for (let round = 1; round <= 2; round++) await work(service.db, networksOf(running, asked))
  running.model.drop()
  running.model.close(400)
}
/** A signer whose answers are lost; `taken` has them. */
function losing({ client }: Running, taken: string[] = []): AskedSigner {
  return {
    ...client,
    async ask(...asked) {
      const answer = await client.ask(...asked)
      if ('signed' in answer) taken.push(answer.signed)
      throw new NodeFailure('the signer does not answer: killed')
    },
  }
}
/** One that does not take a withdrawal now. */
const deferring = ({ client }: Running, { id }: Transfer): AskedSigner => ({
  ...client,
  check: async (_, payments) => payments.map(({ accepted }) => (accepted.includes(id) ? 'not now' : null)),
})

test('what passed its time is signed anew with its number, without people, and nothing else takes that meanwhile', async () => {
  const running = await start()
  const customer = await newCustomer(service)
  const made = await withdraw(running, customer, 'XLM', '1')
  await letPass(running)
  const [first] = await placesOf(made)
  const later = networksOf(running, deferring(running, made))
  const others = []
  for (let count = 0; count < 5; count++) others.push(await withdraw(running, customer, 'XLM', '1'))
  await settle(service.db, later, () => running.model.close(), others)
  expect(await keptOf(service.db, made)).toMatchObject({ state: 'HELD', waiting_code: 'SIGNER_REFUSES' })
  expect((await Promise.all(others.map((one) => placesOf(one)))).flat()).not.toContain(first)
  await finish(running, [made])
  expect(await placesOf(made)).toEqual([first, first])
  for (const one of [made, ...others]) expect(paidTo(running, one)).toHaveLength(1)
  await requireAgreement(running)
})

test('what passed its time and is refused then leaves its number to others', async () => {
  const running = await start()
  const { model, given, lanes } = running
  const alone = { ...running, given: { ...given, signer: { ...given.signer!, lanes: lanes.slice(0, 1) } } }
  const customer = await newCustomer(service)
  const to = newDestination(running)
  const made = await withdraw(running, customer, 'PYUSD', '1', { to })
  const next = await withdraw(running, customer, 'XLM', '1')
  // Its time passes while it waits for the signer.
  await letPass(alone, losing(running))
  expect(await keptOf(service.db, made)).toMatchObject({ state: 'ASKED' })
  const later = networksOf(alone, deferring(running, made))
  for (let round = 1; round <= 3; round++) await work(service.db, later)
  expect(await keptOf(service.db, next)).toMatchObject({ waiting_code: 'IN_FLIGHT_LIMIT' })
  model.find(to)!.lines.clear()
  await finish(alone, [made, next])
  expect(await readTransfer(customer, made)).toMatchObject({ status: 'FAILED' })
  expect(await placesOf(next)).toEqual(await placesOf(made))
  expect([paidTo(running, made).length, paidTo(running, next).length]).toEqual([0, 1])
  await requireAgreement(running)
})

test('a payment that fails is refunded; one that failed for want of money waits until people void its number', async () => {
  const running = await start()
  const { model, address, change } = running
  const customer = await newCustomer(service)
  const to = newDestination(running)
  const [failing, short, good] = [
    await withdraw(running, customer, 'PYUSD', '1', { to }),
    await withdraw(running, customer, 'XLM', '2'),
    await withdraw(running, customer, 'PYUSD', '3'),
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
  await requireAgreement(running)
})

test('its answer is lost, and a thief broadcasts the bytes: the worker follows them, and nothing else stops', async () => {
  const running = await start()
  const { model } = running
  const customer = await newCustomer(service)
  const made = await withdraw(running, customer, 'XLM', '1')
  const taken: string[] = []
  const networks = networksOf(running, losing(running, taken))
  for (let round = 1; round <= 2; round++) await work(service.db, networks)
  expect(await keptOf(service.db, made)).toMatchObject({ state: 'ASKED', waiting_code: 'SIGNER_DOWN' })
  const bytes = Buffer.from(taken[0]!.slice(2), 'hex').toString('base64')
  model.submit(TransactionBuilder.fromXDR(bytes, model.passphrase))
  const more = await withdraw(running, customer, 'XLM', '1')
  await work(service.db, networks)
  expect(await readTransfer(customer, made)).toMatchObject({ status: 'COMPLETED' })
  await finish(running, [more])
  await requireAgreement(running)
})

test('an answer that is another transaction, or not signed, is not taken', async () => {
  const signer = Keypair.random()
  const [laneKey, other] = laneKeys(signer, 2) as [Keypair, Keypair]
  const wallet = signer.publicKey()
  const pays = { destination: other.publicKey(), asset: 'native', amount: '1', creates: false }
  const asked = { lane: laneKey.publicKey(), sequence: 7n, maxTime: 9n, memo: undefined, payments: [pays] }
  const terms = { source: wallet, fee: 100n, passphrase: 'x' }
  const hexOf = (...written: Parameters<typeof writePayments>) =>
    `0x${writePayments(...written).raw_transaction.toString('hex')}`
  const unsigned = hexOf(asked, terms)
  const take = (signed: string) => askedBytes(terms).signedAs({ wallet, unsigned }, signed)
  const keys = { signer, laneKey }
  expect(await take(hexOf(asked, terms, keys))).not.toHaveProperty('isAsked')
  const isChanged = 'the signer changed the transaction'
  await expect(take(hexOf({ ...asked, maxTime: 8n }, terms, keys))).rejects.toThrow(isChanged)
  await expect(take(hexOf(asked, { ...terms, fee: 101n }, keys))).rejects.toThrow(isChanged)
  await expect(take(unsigned)).rejects.toThrow('it is not signed by')
  await expect(take(hexOf(asked, terms, { signer, laneKey: other }))).rejects.toThrow('it is not signed by')
  await expect(take(hexOf(asked, terms, { signer: laneKey, laneKey: undefined }))).rejects.toThrow('lacks')
})

test('a worker that dies at any step while the signer is asked pays each withdrawal once', async () => {
  const running = await start()
  const customer = await newCustomer(service)
  await dieAtEachStep('AFTER', 10, async (failures) => {
    const made = [
      await withdraw(running, customer, 'XLM', '1'),
      await withdraw(running, customer, 'PYUSD', '2'),
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
  await requireAgreement(running)
})

test('the whole service: a deposit arrives, a withdrawal leaves, and the worker holds no key', async () => {
  const { model, key, address, lanes, path } = await start()
  await writeFile(path('acceptance'), JSON.stringify(acceptance))
  const STELLAR = {
    ...{ adapter: 'stellar', rpc_url: model.url, verify_rpc_url: model.url, issuers: { PYUSD: ISSUER } },
    ...{ hot_wallet_address: address, lane_accounts: lanes, signer: { socket: path('s') } },
    fee_ceiling: '0.01',
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
  const until = async (isThere: () => Promise<unknown>, wanted: unknown) => {
    const after = () => (model.close(), isThere())
    await expect.poll(after, { timeout: 30_000, interval: 300 }).toBe(wanted)
  }
  const order = { ...asked, asset: 'PYUSD', amount: '20', destination_address: to }
  let id = ''
  await until(async () => {
    const { status, body: made } = await call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', order)
    id = made.id
    return status
  }, 200)
  const statusOf = async () => (await call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body.status
  await until(statusOf, 'COMPLETED')
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
