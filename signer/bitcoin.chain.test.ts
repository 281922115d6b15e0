/*
 * BITCOIN and LITECOIN with their keys in the signer: the node's wallet only watches, the worker pays many with one transaction,
 * and whoever takes it gets nothing signed but what was accepted, each transfer from coins that only one transaction can spend.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RawPSBTV0 } from '@scure/btc-signer/psbt.js'
import { RawOldTx } from '@scure/btc-signer/script.js'
import { HDKey } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bitcoinAdapter } from '../chains/bitcoin/adapter.ts'
import { asked as askedAs, decode, hashIn, parse, txidOf } from '../chains/bitcoin/decode.ts'
import { requireWatchOnly } from '../chains/bitcoin/asked-bytes.ts'
import { bitcoinWallet, type BitcoinConfig } from '../chains/bitcoin/wallet.ts'
import type { AskedSigner, SignerClient } from '../chains/kit/remote-signer.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import type { SigningEvidence } from '../src/contract/approval.ts'
import { transaction, type Database } from '../src/db/database.ts'
import { evidenceOf } from '../src/governance/approvals/signing-evidence.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { sealWithdrawal } from '../src/money/movements/accepted-withdrawals.ts'
import { NodeFailure } from '../src/networks/node-failure.ts'
import type { Networks } from '../src/networks/network.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { guarded } from '../src/rails/payouts/signing-guards.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'
import { acknowledgeTransaction } from '../src/rails/treasury/acknowledged.ts'
import { orderConsolidation } from '../src/rails/treasury/orders.ts'
import { HAS_LITECOIND, KNOTS } from '../test/bitcoin-node.ts'
import { creditDeposits } from '../test/credit-deposits.ts'
import { dieAtEachStep, failing, FAILURES } from '../test/failures.ts'
import { formsOf, foundIn } from '../test/memory-of.ts'
import { keptOf, readTransfer, settle, work as workOn } from '../test/payouts-on.ts'
import {
  bitcoinWorld,
  prepare,
  requireAgreement,
  startRealService,
  type RealService,
} from '../test/real-networks.ts'
import { MASTER_KEYS, ownBursar, TEST_ORIGIN, type TestCustomer } from '../test/support.ts'
import { acceptance, acceptanceKey, startSigner } from '../test/signer-process.ts'
import { hurry } from '../test/work-off.ts'

type Derived = { bip32Derivation?: [key: Uint8Array, { path: number[] }][] }
interface Psbt {
  global: { unsignedTx?: ReturnType<typeof parse> }
  inputs: (Derived & { nonWitnessUtxo?: ReturnType<typeof parse>; sighashType?: number })[]
  outputs: Derived[]
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

const MACS = new RowMacs(MASTER_KEYS, undefined, acceptanceKey)
const TEST_KEYS = { private: 0x04358394, public: 0x043587cf }
const FAMILY = [
  { network: 'LITECOIN', asset: 'LTC', program: undefined, isThere: HAS_LITECOIND },
  { network: 'BITCOIN', asset: 'BTC', program: KNOTS, isThere: KNOTS !== undefined },
] as const

describe.each(FAMILY)('$network behind the signer', ({ network, asset, program, isThere }) => {
  describe.skipIf(!isThere)('from a wallet that its node watches', () => {
    let world: Awaited<ReturnType<typeof bitcoinWorld>>
    let signer: Awaited<ReturnType<typeof startSigner>>
    let service: RealService
    let folder: string
    const second = HDKey.fromMasterSeed(randomBytes(32), TEST_KEYS)

    const [cheap, dear] = [0.00002, 0.0002]
    let estimate = cheap
    const request = globalThis.fetch
    /** The node's own estimate depends on what the tests before have paid. */
    const estimating: typeof fetch = async (...args) => {
      const reply = await request(...args)
      const body = args[1]?.body
      if (typeof body !== 'string' || !body.includes('estimatesmartfee')) return reply
      const rate = /"feerate": *[\d.e-]+|"errors": *\[[^\]]*\]/
      return new Response((await reply.text()).replace(rate, `"feerate":${estimate}`))
    }

    beforeAll(async () => {
      globalThis.fetch = estimating
      folder = await mkdtemp(join(tmpdir(), 'bursar-signer-'))
      world = await bitcoinWorld(network, program, 1)
      const section = {
        ...{ wallets: [{ env: 'FIRST' }, { env: 'SECOND' }], fee_max: '0.01' },
        windows: [{ asset, period_seconds: 3_600, amount: '1000' }],
      }
      const keys = { FIRST: world.node.accounts[0]!, SECOND: second.privateExtendedKey }
      signer = await startSigner(folder, { [network]: section }, keys)
      Object.assign(world.section, { signing: undefined, signer: { socket: signer.socket } })
      world.section.hot_wallet_address = signer.wallets[0]!.address
      service = await startRealService(world)
    })
    afterAll(async () => {
      globalThis.fetch = request
      await service?.close()
      await signer?.stop()
      await world?.stop()
      await rm(folder, { recursive: true, force: true })
    })
    afterEach(async () => {
      await requirePaidOnce()
      await requireAgreement(service, world)
      await world.requireAtRest()
    })

    const wallet = () => signer.wallets[0]!.address
    const configOf = (client: AskedSigner, changes: Partial<BitcoinConfig> = {}): BitcoinConfig => ({
      ...{ ...world.node.config, confirmations: 1, feeCeiling: '0.01', withdrawals: withdrawalReader },
      ...{ signer: { client, address: wallet() }, ...changes },
    })
    const adapterOf = (
      client: AskedSigner = signer.client,
      changes?: Partial<BitcoinConfig>,
      db = service.db,
    ) => bitcoinAdapter(network, configOf(client, changes), db)
    const networksOf = (...given: Parameters<typeof adapterOf>): Networks =>
      new Map([[network, guarded(adapterOf(...given), { macs: MACS, screening: undefined })]])
    const work = (networks = networksOf(), db: Database = service.db) => workOn(service.db, networks, db)
    const toTheEnd = () => settle(service.db, networksOf(), () => world.node.mine(1))

    const ordered: { customer: TestCustomer; made: Transfer }[] = []
    async function depositor(...amounts: string[]): Promise<TestCustomer> {
      const { customer } = await prepare(service, world, { asset, amount: amounts[0]! })
      for (const amount of amounts.slice(1)) await deposit(customer, amount)
      await hurry(service.db)
      await creditDeposits(service)
      return customer
    }
    async function deposit({ call, profile_id }: TestCustomer, amount: string): Promise<string> {
      const about = { profile_id, crypto_network: network }
      const { body } = await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', about)
      const { hash } = await world.pay(body.address, asset, amount)
      await hurry(service.db)
      await creditDeposits(service)
      return hash
    }
    async function withdraw(customer: TestCustomer, amount: string, to?: string): Promise<Transfer> {
      const body = { profile_id: customer.profile_id, asset, crypto_network: network, amount }
      const destination_address = to ?? (await world.newAddress())
      const path = '/v2/transfer/crypto-withdrawals'
      const { status, body: made } = await customer.call<Transfer>('POST', path, {
        ...body,
        destination_address,
      })
      expect({ status, made }).toMatchObject({ status: 200 })
      await transaction(service.db, (tx) => sealWithdrawal(tx, MACS, made.id))
      ordered.push({ customer, made })
      return made
    }
    /** Works to the end, and throws unless each order of the test is paid once. */
    async function requirePaidOnce(): Promise<void> {
      await toTheEnd()
      const all = ordered.splice(0)
      for (const { customer, made } of all) {
        const { status, amount, crypto_tx_hash: hash } = await readTransfer(customer, made)
        const alike = all.filter((one) => one.made.destination_address === made.destination_address)
        const paid = await world.received(made.destination_address!, asset)
        expect(status).toBe('COMPLETED')
        expect(paid).toMatchObject(alike.map(() => ({ hash, amount })))
      }
    }
    const kept = (made: Transfer) => keptOf(service.db, made)
    const mempool = () => world.node.bursar.call<string[]>('getrawmempool')
    const evidenceFor = async (made: Transfer) => {
      const { customer } = ordered.find((one) => one.made.id === made.id)!
      return (await evidenceOf(service.db, customer.customer_id, [made.id])).get(made.id)!
    }
    const down = (): AskedSigner => ({
      ...signer.client,
      ask: () => Promise.reject(new NodeFailure('the signer does not answer')),
    })
    /** A signer whose answers are lost. */
    function losing(): { client: SignerClient; lost: string[] } {
      const lost: string[] = []
      const client: SignerClient = {
        ...signer.client,
        async ask(...given) {
          const answer = await signer.client.ask(...given)
          if ('signed' in answer) lost.push(answer.signed.slice(2))
          throw new NodeFailure('the signer does not answer: killed')
        },
      }
      return { client, lost }
    }

    test('one transaction pays several customers, and the change can be spent at once', async () => {
      const customers = [await depositor('1'), await depositor('1', '0.5')]
      const made = [await withdraw(customers[0]!, '0.3'), await withdraw(customers[1]!, '1.2')]
      await work(networksOf(down()))
      // A worker follows one of the customers: it asks about both, and the other's is found signed.
      await service.owner.query(
        `update outgoing_transfers set due_at = now() + case transfer_id when $1 then interval '0' else interval '1 hour' end
         where due_at is not null`,
        [made[0]!.id],
      )
      await settleWithdrawals(service.db, networksOf())
      expect([(await kept(made[0]!)).state, (await kept(made[1]!)).state]).toEqual(['SIGNED', 'ASKED'])
      await work(networksOf(down()))
      await work()
      const [{ crypto_tx_hash: hash, state }, other] = [await kept(made[0]!), await kept(made[1]!)]
      expect([state, other.crypto_tx_hash]).toEqual(['BROADCAST', hash])
      expect(await mempool()).toEqual([hash])
      expect(await service.reports()).toMatchObject([{ reachable: true }])
    })

    test('a transaction that waits is replaced at a higher fee, from the same coins', async () => {
      if (network === 'LITECOIN') await world.node.restart(['-mempoolreplacement=1'])
      const made = await withdraw(await depositor('1'), '0.2')
      await work()
      await work()
      const before = await kept(made)
      estimate = dear
      await work(networksOf(undefined, { stuckAfterMs: 0 }))
      const waits = await kept(made)
      expect(waits).toMatchObject({ state: 'ASKED' })
      expect(decode(waits.raw_transaction!).inputs).toEqual(decode(before.raw_transaction!).inputs)
      // Without the signer, the first stays in the mempool, and may yet be mined.
      await world.node.restart(['-mempoolreplacement=1'])
      await work(networksOf(losing().client))
      expect(await kept(made)).toMatchObject({ state: 'ASKED', waiting_code: 'SIGNER_DOWN' })
      expect(await mempool()).toEqual([before.crypto_tx_hash])
      await work()
      await work()
      const after = await kept(made)
      expect(after).toMatchObject({ state: 'BROADCAST', crypto_tx_hash: decode(waits.raw_transaction!).txid })
      expect(await mempool()).toEqual([after.crypto_tx_hash])
      estimate = cheap
      await requirePaidOnce()

      const again = await withdraw(await depositor('1'), '0.2')
      await work()
      await work()
      estimate = dear
      const { crypto_tx_hash: first } = await kept(again)
      await work(networksOf(losing().client, { stuckAfterMs: 0 }))
      expect(await kept(again)).toMatchObject({ state: 'ASKED' })
      estimate = cheap
      await world.node.mine(1)
      await work(networksOf(losing().client))
      expect((await kept(again)).crypto_tx_hash).toBe(first)
    })

    test.each(FAILURES)(
      'a withdrawal is paid once when the worker dies %s any one step',
      async (failure) => {
        const customer = await depositor('1', '0.5', '0.5')
        await dieAtEachStep(failure, 40, async (failures) => {
          await withdraw(customer, '0.01')
          await withdraw(customer, '0.02')
          const db = failures.database(service.db)
          const dying = networksOf(undefined, {}, db)
          for (let count = 0; count < 3 && !failures.died; count++)
            await failing(failures, () => work(dying, db).catch(() => undefined))
          await requirePaidOnce()
        })
      },
      240_000,
    )

    test('small coins are merged at the address that the signer knows', async () => {
      await depositor('1', ...Array.from({ length: 14 }, () => '0.01'))
      const ordering = { db: service.db, macs: MACS, origin: TEST_ORIGIN }
      const { transfer } = await orderConsolidation(ordering, adapterOf(), network, undefined)
      await toTheEnd()
      const { rows } = await service.db.query('select status from transfers where id = $1', [transfer.id])
      expect(rows).toEqual([{ status: 'COMPLETED' }])
    })

    test('its answer is lost, and a thief broadcasts: the worker finds it, and pays nothing twice', async () => {
      const customer = await depositor('1', '0.5')
      const made = [await withdraw(customer, '0.1'), await withdraw(customer, '0.2')]
      const { client, lost } = losing()
      await work(networksOf(client))
      await work(networksOf(client))
      expect(new Set(lost).size).toBe(1)
      for (const one of made)
        expect(await kept(one)).toMatchObject({ state: 'ASKED', waiting_code: 'SIGNER_DOWN' })
      const hash = await world.node.bursar.call<string>('sendrawtransaction', lost[0])
      await work(networksOf(client))
      for (const one of made) expect(await kept(one)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: hash })
    })

    test('a database from before signs no transfer anew that was signed, and delays no other', async () => {
      const customer = await depositor('2')
      const made = await withdraw(customer, '0.1')
      const { client, lost } = losing()
      await work(networksOf(client))
      const { owner } = service
      await owner.query(`delete from network_transactions where transfer_ids @> array[$1::uuid]`, [made.id])
      const held = `state = 'HELD', crypto_tx_hash = null, crypto_tx_index = null`
      await owner.query(`update outgoing_transfers set ${held} where transfer_id = $1`, [made.id])
      const other = await withdraw(await depositor('0.3'), '0.2')
      await work()
      await work()
      expect(await kept(made)).toMatchObject({
        ...{ state: 'HELD', waiting_code: 'SIGNER_REFUSES' },
        waiting_detail: expect.stringMatching(/was signed with nonce [0-9a-f]{64}:\d+ of/) as string,
      })
      expect((await kept(other)).state).toBe('BROADCAST')
      // The other took its coin: people know that it can never be mined.
      const coins = decode(Buffer.from(lost[0]!, 'hex')).inputs
      expect(coins).toContain(decode((await kept(other)).raw_transaction!).inputs[0])
      await world.node.mine(1)
      const nonces = [/nonce (\S+) of/.exec((await kept(made)).waiting_detail!)![1]!]
      await signer.change({ kind: 'VOID', network, wallet: wallet(), nonces, transfer_ids: [made.id] })
    })

    test('a thief of the worker, its node and its database gets nothing signed but what was accepted', async () => {
      const customer = await depositor('1', '0.5', '0.4')
      const to = await world.newAddress()
      const made = [await withdraw(customer, '0.1', to), await withdraw(customer, '0.1', to)]
      const evidence = await Promise.all(made.map(evidenceFor))
      await work(networksOf(down()))
      const { raw_transaction } = await kept(made[0]!)
      const send = async (unsigned: string, payments: SigningEvidence[] = evidence) => {
        const what = { wallet: wallet(), unsigned }
        const answer = await signer.client.ask(network, what, { payments, journal_heads: [] })
        return 'reason' in answer ? answer.reason.detail : 'signed'
      }
      const ask = async (
        change: (psbt: Psbt, tx: ReturnType<typeof parse>) => unknown,
        payments?: SigningEvidence[],
        raw = raw_transaction!,
      ) => {
        const given = [raw.toString('base64'), false]
        const { psbt } = await world.node.bursar.call<{ psbt: string }>('walletprocesspsbt', ...given)
        const read = RawPSBTV0.decode(Buffer.from(psbt, 'base64')) as Psbt
        change(read, read.global.unsignedTx!)
        return send(`0x${hexOf(RawPSBTV0.encode(read as never))}`, payments)
      }
      const thief = Buffer.from(`0014${'ab'.repeat(20)}`, 'hex')
      const paid = /does not pay what was accepted/
      const lacks = /has not the transaction of/
      const pathOf = ({ bip32Derivation: [first] = [] }: Psbt['outputs'][number]) => first![1].path
      /** Has the first input spend another output of a transaction that is made up. */
      const spend = (psbt: Psbt, { inputs }: ReturnType<typeof parse>, script: Uint8Array) => {
        const previous = psbt.inputs[0]!.nonWitnessUtxo!
        inputs[0]!.index = previous.outputs.push({ amount: 10_000_000n, script }) - 1
        inputs[0]!.txid = Buffer.from(txidOf(previous), 'hex')
      }
      const [others, foreign, unlike] = [
        /makes \d+ payments, and 2/,
        /is of no wallet/,
        /not written as Bursar does/,
      ]
      const one = /makes 2 payments, and 1 are asked/
      const cases: [rule: RegExp, change: Parameters<typeof ask>[0], payments?: SigningEvidence[]][] = [
        [paid, (_, { outputs }) => (outputs[0]!.script = thief)],
        [paid, (_, { outputs }) => (outputs[1]!.amount -= 1n)],
        [one, () => undefined, [evidence[0]!]],
        [one, () => undefined, [evidence[0]!, evidence[0]!]],
        // One output for two transfers.
        [
          /makes 1 payments, and 2 are asked/,
          (psbt, { outputs }) =>
            void [psbt.outputs.splice(1, 1), (outputs.at(-1)!.amount += outputs.splice(1, 1)[0]!.amount)],
        ],
        // Change that is a thief's, or a customer's, or of a key that is not named.
        [others, (_, { outputs }) => (outputs.at(-1)!.script = thief)],
        [others, (psbt) => pathOf(psbt.outputs.at(-1)!).splice(-2, 1, 0)],
        [others, (psbt) => (psbt.outputs.at(-1)!.bip32Derivation = [])],
        [
          others,
          (psbt, { outputs }) =>
            void [
              psbt.outputs.push({}),
              outputs.push({ amount: 1n, script: thief }),
              (outputs[2]!.amount -= 1n),
            ],
        ],
        [/above fee_max/, (_, { outputs }) => (outputs.at(-2)!.amount -= 1_000_000n)],
        [/pays more than it spends/, (_, { outputs }) => (outputs.at(-1)!.amount = 2n ** 64n - 1n)],
        // Its fee would be larger than it looks.
        [lacks, (psbt) => (psbt.inputs[0]!.nonWitnessUtxo!.outputs[0]!.amount += 5n)],
        [lacks, (psbt) => delete psbt.inputs[0]!.nonWitnessUtxo],
        ...[0, 2, 3, 0x81, 0x82, 0x83].map((sighash): (typeof cases)[number] => [
          /another sighash than ALL/,
          (psbt) => (psbt.inputs[0]!.sighashType = sighash),
        ]),
        ...[`0014${'ab'.repeat(20)}`, `5120${'02'.repeat(32)}`, `a914${'02'.repeat(20)}87`].map(
          (script): (typeof cases)[number] => [
            foreign,
            (psbt, tx) => spend(psbt, tx, Buffer.from(script, 'hex')),
          ],
        ),
        [foreign, (_, { inputs }) => (inputs[0]!.index = 4_000)],
        [foreign, (psbt) => pathOf(psbt.inputs[0]!).splice(-1, 1, 0x8000_0000)],
        [foreign, (psbt) => pathOf(psbt.inputs[0]!).splice(0, 9)],
        [
          /spends an output twice/,
          (psbt, { inputs }) =>
            void [inputs.push({ ...inputs[0]! }), psbt.inputs.push({ ...psbt.inputs[0]! })],
        ],
        [unlike, (_, tx) => (tx.lockTime = 1)],
        [unlike, (_, tx) => (tx.version = 1)],
        [unlike, (_, { inputs }) => (inputs[0]!.sequence = 0xffff_ffff)],
        [
          /more than 1500 inputs or 300 outputs/,
          (psbt, { outputs }) => {
            for (let count = 0; count < 300; count++) void [outputs.push(outputs[0]!), psbt.outputs.push({})]
          },
        ],
      ]
      for (const [rule, change, payments] of cases) expect(await ask(change, payments)).toMatch(rule)
      const unread = ['0x00', `0x${raw_transaction!.toString('hex')}00`, '0x70736274ff', ['0x00'] as never]
      for (const unsigned of unread) expect(await send(unsigned)).not.toBe('signed')
      expect(await ask(() => undefined)).toBe('signed')
      expect(await ask(() => undefined)).toBe('signed')
      // With another coin, both would be mined.
      const [spent] = parse(raw_transaction!).inputs
      const free = await world.node.bursar.call<Record<'txid' | 'vout' | 'amount', string>[]>(
        'listunspent',
        1,
      )
      const coin = free.find(({ txid, amount }) => Number(amount) >= 0.4 && txid !== hexOf(spent!.txid))!
      const elsewhere = (_: Psbt, { inputs, outputs }: ReturnType<typeof parse>) => {
        inputs.splice(0, 9, { ...spent!, txid: Buffer.from(coin.txid, 'hex'), index: Number(coin.vout) })
        outputs.splice(3, 9)
        outputs[2]!.amount = BigInt(coin.amount.replace('.', '')) - 20_010_000n
      }
      const disjoint = parse(raw_transaction!)
      elsewhere({} as Psbt, disjoint)
      const other = askedAs(RawOldTx.encode(disjoint)).raw_transaction
      expect(await ask(() => undefined, evidence, other)).toMatch(/was signed with nonce \S+:\d+ of/)
      // A hundred thousand keys of a field that does not count (BIP 373) delay nobody.
      const filled = await world.node.bursar.call<{ psbt: string }>(
        'walletprocesspsbt',
        raw_transaction!.toString('base64'),
        false,
      )
      const psbt = Buffer.from(filled.psbt, 'base64')
      const { inputs, outputs } = parse(raw_transaction!)
      const begin = raw_transaction!.length - inputs.length - outputs.length
      const key = Buffer.from(HDKey.fromExtendedKey(world.node.accounts[0]!, TEST_KEYS).publicKey!)
      const length = Buffer.alloc(5, 0xfe)
      length.writeUInt32LE(100_000 * key.length, 1)
      const many = [Buffer.of(34, 0x1a), key, length, ...Array.from({ length: 100_000 }, () => key)]
      const long = Buffer.concat([psbt.subarray(0, begin), ...many, psbt.subarray(begin)])
      const began = performance.now()
      expect(await send(`0x${hexOf(long)}`)).toBe('signed')
      expect(performance.now() - began).toBeLessThan(10_000)
      // What is not read is not signed.
      expect(
        await ask((psbt) => Object.assign(psbt.inputs[0]!, { witnessUtxo: { amount: 1n, script: thief } })),
      ).toBe('signed')
    })

    test('another coin is spent: what a thief had signed with the first may pay it, and nothing is refunded', async () => {
      const { bursar } = world.node
      const made = await withdraw(await depositor('20', '20', '20'), '30')
      await work(networksOf(down()))
      const { raw_transaction } = await kept(made)
      const own = parse(raw_transaction!)
      const free = await bursar.call<Record<'txid' | 'vout' | 'amount', string>[]>('listunspent', 1)
      const third = free.find(({ amount }) => Number(amount) === 20)!
      const fill = async (psbt: string) =>
        (await bursar.call<{ psbt: string }>('walletprocesspsbt', psbt, false)).psbt
      const inputs = [
        own.inputs[0]!,
        { ...own.inputs[1]!, txid: Buffer.from(third.txid, 'hex'), index: Number(third.vout) },
      ]
      const stolen = askedAs(RawOldTx.encode({ ...own, inputs })).raw_transaction.toString('base64')
      const unsigned = `0x${Buffer.from(await fill(stolen), 'base64').toString('hex')}`
      const evidence = { payments: [await evidenceFor(made)], journal_heads: [] }
      const answer = await signer.client.ask(network, { wallet: wallet(), unsigned }, evidence)
      await work()
      expect((await kept(made)).state).toBe('SIGNED')
      const [txid, vout] = decode(raw_transaction!).inputs[1]!.split(':')
      const moved = { [await bursar.call<string>('getrawchangeaddress', 'bech32')]: 19.999 }
      const psbt = await bursar.call<string>('createpsbt', [{ txid, vout: Number(vout) }], [moved])
      const [byHand] = await world.node.sign(await fill(psbt), world.node.signers)
      const { hex } = await bursar.call<{ hex: string }>('finalizepsbt', byHand)
      const hash = await bursar.call<string>('sendrawtransaction', hex)
      await world.node.mine(1)
      await work()
      await work()
      expect(await kept(made)).toMatchObject({ waiting_code: 'UNRESOLVED' })
      await acknowledgeTransaction(service.db, adapterOf(), network, hash, { origin: TEST_ORIGIN })
      expect(answer).toHaveProperty('signed')
      if ('signed' in answer) await bursar.call('sendrawtransaction', answer.signed.slice(2))
      await toTheEnd()
      // Nothing else is signed until an operator has looked at it: the withdrawal is not posted once more.
      const { rows: paid } = await service.db.query<{ crypto_tx_hash: string }>(
        'select crypto_tx_hash from transfers where id = $1',
        [made.id],
      )
      const { crypto_tx_hash } = paid[0]!
      await acknowledgeTransaction(service.db, adapterOf(), network, crypto_tx_hash, { origin: TEST_ORIGIN })
      const { rows: posted } = await service.db.query(
        `select e.account, e.amount from acknowledged_transactions a join entries e on e.transfer_id = a.id
         where a.crypto_tx_hash = $1`,
        [crypto_tx_hash],
      )
      expect(posted).toEqual([])
    })

    test('a wallet with keys, or that watches another key, is not the signer’s', async () => {
      const requireWallet = (changes: Partial<BitcoinConfig>) =>
        requireWatchOnly(bitcoinWallet(network, configOf(signer.client, changes), service.db))
      await requireWallet(world.node.apiConfig)
      await expect(requireWallet({ wallet: 'miner' })).rejects.toThrow(
        'has private keys, and a signer has them',
      )
      const other = { client: signer.client, address: signer.wallets[1]!.address }
      await expect(requireWallet({ signer: other })).rejects.toThrow(
        /does not watch \S+: import the descriptors/,
      )
      for (const [changes, why] of [
        [{ signing: 'psbt' }, 'signing and signer exclude each other'],
        [{ hot_wallet_address: undefined }, 'hot_wallet_address must be the address that'],
        [{ hot_wallet_address: 'x' }, 'hot_wallet_address must be the address that'],
      ] as const)
        await expect(
          startRealService({ ...world, section: { ...world.section, ...changes } }),
        ).rejects.toThrow(why)
    })

    test('the whole program pays with the signer, and its worker holds no key', async () => {
      const customer = await depositor('1')
      const file = join(folder, 'acceptance')
      await writeFile(file, JSON.stringify(acceptance))
      const bursar = await ownBursar({ ...service.environment, BURSAR_ACCEPTANCE_KEY_FILE: file })
      const made = await withdraw(customer, '0.4')
      await expect
        .poll(async () => (await kept(made))?.state, { timeout: 30_000, interval: 200 })
        .toBe('BROADCAST')
      const key = HDKey.fromExtendedKey(world.node.accounts[0]!, TEST_KEYS)
      const sought = new Map([
        ['account', [...formsOf(world.node.accounts[0]!), Buffer.from(key.privateKey!)]],
        ['address', formsOf(wallet())],
      ])
      expect(await foundIn(bursar.pid, sought)).toEqual(['address'])
      expect(await foundIn(process.pid, sought)).toEqual(['account', 'address'])
    })

    test.runIf(network === 'BITCOIN')(
      'another key takes over: coins of both pay, and it gets the change',
      async () => {
        const customer = await depositor('1', '0.5')
        const { descriptors, address } = signer.wallets[1]!
        for (const [chain, bare] of descriptors!.entries()) {
          const { checksum } = await world.node.miner.call<{ checksum: string }>('getdescriptorinfo', bare)
          const watched = { desc: `${bare}#${checksum}`, range: [0, 50], active: true, timestamp: 'now' }
          await world.node.bursar.call('importdescriptors', [{ ...watched, internal: chain === 1 }])
        }
        const received = await deposit(customer, '60')
        const networks = networksOf(undefined, { signer: { client: signer.client, address } })
        const made = await withdraw(customer, '60.5')
        await work(networks)
        await work(networks)
        const { raw_transaction, state } = await kept(made)
        const spent = new Set(decode(raw_transaction!).inputs.map(hashIn))
        expect(state).toBe('BROADCAST')
        expect(spent).toContain(received)
        expect(spent.size).toBeGreaterThan(1)
      },
    )
  })
})
