/*
 * Payments that a person signs (PSBT), from a watch-only wallet: of one key on Litecoin, 2 of 3 on Bitcoin. Other wallets of the same
 * node are the hardware wallets. After each test, each ordered payment is on the chain once, and the ledger agrees with the wallet.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RawOldTx } from '@scure/btc-signer/script.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { HAS_LITECOIND, KNOTS } from '../../test/bitcoin-node.ts'
import { dieAtEachStep, FAILURES, type Failures } from '../../test/failures.ts'
import {
  bitcoinWorld,
  prepare,
  requireAgreement,
  startRealService,
  type RealService,
} from '../../test/real-networks.ts'
import {
  actionsOfCommands,
  MASTER_KEYS,
  outputOf,
  TEST_ORIGIN,
  type TestCustomer,
} from '../../test/support.ts'
import { hurry, hurryUnlocked } from '../../test/work-off.ts'
import { transaction, type Database } from '../../src/db/database.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { RowMacs } from '../../src/audit/sealed-rows.ts'
import { freeze } from '../../src/money/records/freezes.ts'
import { creditDeposits } from '../../test/credit-deposits.ts'
import { cancelForOperator } from '../../src/rails/payouts/cancel-withdrawal.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import {
  exportPsbt,
  importPsbts,
  listPsbts,
  replacePsbt,
  type ByHand,
} from '../../src/rails/payouts/sign-by-hand.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import { orderTreasurySend } from '../../src/rails/treasury/orders.ts'
import type { Networks } from '../../src/networks/network.ts'
import { keepTransactions } from '../../src/networks/network-transactions.ts'
import { bitcoinAdapter } from './adapter.ts'
import { asked, parse, splitOutpoint } from './decode.ts'
import type { BitcoinConfig } from './wallet.ts'
import { signOnlyAccepted } from '../../src/rails/payouts/sign-only-accepted.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const MACS = new RowMacs(MASTER_KEYS)
const FAMILY = [
  { network: 'LITECOIN', asset: 'LTC', signers: 1, program: undefined, isThere: HAS_LITECOIND },
  { network: 'BITCOIN', asset: 'BTC', signers: 3, program: KNOTS, isThere: KNOTS !== undefined },
] as const
for (const { network, isThere } of FAMILY)
  if (!isThere) console.warn(`skipped: chains/bitcoin/psbt.chain.test.ts needs the node of ${network}`)

describe.each(FAMILY)('PSBTs on $network', ({ network, asset, signers, program, isThere }) => {
  describe.skipIf(!isThere)('signed by hand', () => {
    let world: Awaited<ReturnType<typeof bitcoinWorld>>
    let service: RealService
    let folder: string

    // The node's own estimate depends on what the tests before have paid.
    const [cheap, dear] = [0.00002, 0.0002]
    let estimate = dear
    const request = globalThis.fetch
    const estimating: typeof fetch = async (...args) => {
      const reply = await request(...args)
      const calls = JSON.parse(args[1]!.body as string) as { method: string }[] | object
      const index = Array.isArray(calls) ? calls.findIndex(({ method }) => method === 'estimatesmartfee') : -1
      if (index < 0) return reply
      const replies = (await reply.json()) as { result: unknown }[]
      replies[index]!.result = { feerate: estimate, blocks: 6 }
      return new Response(JSON.stringify(replies))
    }

    beforeAll(async () => {
      globalThis.fetch = estimating
      folder = await mkdtemp(join(tmpdir(), 'bursar-psbt-'))
      world = await bitcoinWorld(network, program, signers)
      service = await startRealService(world)
    })
    afterAll(async () => {
      globalThis.fetch = request
      await service?.close()
      await world?.stop()
      await rm(folder, { recursive: true, force: true })
    })
    afterEach(async () => {
      await toTheEnd()
      await requireAgreement(service, world)
      await world.requireAtRest()
    })

    const networksOf = (changes: Partial<BitcoinConfig> = {}): Networks => {
      const config = {
        ...world.node.config,
        confirmations: 1,
        feeCeiling: '0.01',
        signing: 'psbt',
        withdrawals: withdrawalReader,
      } as const
      const adapter = bitcoinAdapter(network, { ...config, gatherMs: 0, ...changes }, service.db)
      return new Map([[network, signOnlyAccepted(adapter, MACS)]])
    }
    /** One round of the worker, with everything due. */
    async function work(networks = networksOf(), db: Database = service.db): Promise<void> {
      await hurryUnlocked(service.db, { endLeases: true })
      await settleWithdrawals(db, networks)
    }
    const at = (changes: Partial<BitcoinConfig> = {}): ByHand => {
      const adapter = networksOf(changes).get(network)!
      return { db: service.db, network, adapter, macs: MACS, origin: TEST_ORIGIN }
    }
    const byCommand = (...args: string[]) =>
      outputOf(['psbt', ...args, '--network', network], service.environment)

    /** As many as must sign. */
    const quorum = () => world.node.signers.slice(0, Math.max(1, signers - 1))
    const waiting = () => listPsbts(at())
    const signedBy = async (id: string, sighash?: string) =>
      world.node.sign(await exportPsbt(at(), id), quorum(), sighash)
    const signAndImport = async (id: string) => importPsbts(at(), await signedBy(id))
    const finalize = async (psbts: string[], extract: boolean) => {
      const combined = await world.node.bursar.call('combinepsbt', psbts)
      const made = await world.node.bursar.call<{ psbt: string; hex: string }>(
        'finalizepsbt',
        combined,
        extract,
      )
      return extract ? made.hex : made.psbt
    }
    const openOf = async (id: string) =>
      (await at().adapter.byHand!.open(service.db)).find(({ txid, isAsked }) => txid === id && isAsked)!
    /** Has a changed transaction signed. */
    async function signChanged(raw: Buffer, change: (tx: ReturnType<typeof parse>) => void) {
      const tx = parse(raw)
      change(tx)
      const blank = asked(RawOldTx.encode(tx)).raw_transaction.toString('base64')
      const { psbt } = await world.node.bursar.call<{ psbt: string }>('walletprocesspsbt', blank, false)
      return world.node.sign(psbt, quorum())
    }
    /** A coin of the wallet that no transaction spends, as an input. */
    async function freeCoin() {
      const [coin] = await world.node.bursar.call<{ txid: string; vout: string; amount: string }[]>(
        'listunspent',
        1,
      )
      return { txid: Buffer.from(coin!.txid, 'hex'), index: Number(coin!.vout), amount: coin!.amount }
    }
    /** Does something while the node estimates this rate. */
    async function atRate<T>(other: number, run: () => Promise<T>): Promise<T> {
      estimate = other
      return run().finally(() => (estimate = dear))
    }
    const broadcast = (hex: string) => world.node.bursar.call<string>('sendrawtransaction', hex)
    const mempool = () => world.node.bursar.call<string[]>('getrawmempool')

    const ROUNDS_MAX = 20
    /** Signs, works and mines until everything has ended. */
    async function toTheEnd(): Promise<void> {
      for (let round = 1; round <= ROUNDS_MAX; round++) {
        await work()
        for (const { id } of await waiting()) await signAndImport(id)
        await work()
        await world.node.mine(1)
        await work()
        const { rowCount } = await service.db.query(`select from transfers where status = 'PENDING'`)
        if (rowCount === 0) return
      }
      throw new Error(`the worker does not come to an end: ${JSON.stringify(await service.reports())}`)
    }

    /** A customer who has deposited these amounts: each is a coin of the wallet. */
    async function depositor(...amounts: string[]): Promise<TestCustomer> {
      const { customer } = await prepare(service, world, { asset, amount: amounts[0]! })
      for (const amount of amounts.slice(1)) await world.pay(await depositAddress(customer), asset, amount)
      await creditAll()
      return customer
    }
    const depositAddress = async ({ call, profile_id }: TestCustomer) =>
      (
        await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
          profile_id,
          crypto_network: network,
        })
      ).body.address
    async function creditAll() {
      await hurry(service.db)
      const { db, ledger, networks, settings } = service
      await creditDeposits({ db, ledger, networks, settings })
    }
    const available = async ({ call, profile_id }: TestCustomer) =>
      (await call<{ available: string }>('GET', `/v2/profiles/${profile_id}/balances/${asset}`)).body
        .available
    const ordered: { customer: TestCustomer; transfer: Transfer }[] = []
    async function withdraw(customer: TestCustomer, amount: string, address?: string): Promise<Transfer> {
      const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        asset,
        crypto_network: network,
        amount,
        destination_address: address ?? (await world.newAddress()),
      })
      expect({ status, body }).toMatchObject({ status: 200 })
      if (address === undefined) ordered.push({ customer, transfer: body })
      return body
    }
    const stateOf = async ({ id }: { id: string }) => {
      const { rows } = await service.db.query<{
        state: string
        waiting_code: string | null
        crypto_tx_hash: string
      }>('select state, waiting_code, crypto_tx_hash from outgoing_transfers where transfer_id = $1', [id])
      return rows[0]!
    }
    /** Signs and works to the end, and throws unless each order of the test is paid once. */
    async function requirePaidOnce(hash?: string): Promise<void> {
      await toTheEnd()
      for (const { customer, transfer } of ordered.splice(0)) {
        const path = `/v2/transfer/transfers/${transfer.id}`
        const { body } = await customer.call<Transfer>('GET', path)
        expect(body).toMatchObject({
          status: 'COMPLETED',
          ...(hash !== undefined && { crypto_tx_hash: hash }),
        })
        const { amount, crypto_tx_hash, crypto_tx_index } = body
        expect(await world.received(transfer.destination_address!, asset)).toEqual([
          { hash: crypto_tx_hash, index: crypto_tx_index, amount },
        ])
      }
    }
    /** Orders a payment, and has it asked. */
    async function ask(customer: TestCustomer, rate = estimate) {
      const transfer = await withdraw(customer, '0.3')
      await atRate(rate, work)
      expect(await stateOf(transfer)).toMatchObject({ state: 'ASKED', waiting_code: 'WAITING_SIGNATURE' })
      const { id } = (await waiting()).at(-1)!
      return { transfer, id }
    }

    test('deposits to a watch-only wallet are credited, and one PSBT pays several customers, by commands', async () => {
      const customers = [await depositor('1'), await depositor('1')]
      const orders = [await withdraw(customers[0]!, '0.3'), await withdraw(customers[1]!, '0.4')]
      await work()
      for (const order of orders)
        expect(await stateOf(order)).toMatchObject({ state: 'ASKED', waiting_code: 'WAITING_SIGNATURE' })
      await expect(cancelForOperator(service.db, orders[0]!.id, TEST_ORIGIN)).rejects.toThrow('is signed')
      const { psbts } = JSON.parse(await byCommand('list', '--json')) as { psbts: { id: string }[] }
      expect(psbts).toMatchObject([{ payments: 2, amount: '0.7', crypto_network: network }])
      const [{ id }] = psbts as [{ id: string }]

      const file = join(folder, `${id}.psbt`)
      await byCommand('export', id, '--out', file)
      const exported = (await readFile(file)).toString('base64')
      expect(await byCommand('export', id)).toBe(exported)
      // What a hardware wallet needs: the outputs that it spends, and which keys of its own sign for them and get the change.
      const { inputs, outputs } = await world.node.bursar.call<Record<'inputs' | 'outputs', object[]>>(
        'decodepsbt',
        exported,
      )
      const some = expect.anything() as object
      const path = expect.stringMatching(/^m\/84/) as string
      const bip32_derivs = expect.arrayContaining([expect.objectContaining({ path })]) as object[]
      for (const input of inputs)
        expect(input).toMatchObject({ witness_utxo: some, non_witness_utxo: some, bip32_derivs })
      expect(outputs.length).toBeGreaterThan(2)
      for (const change of outputs.slice(2)) expect(change).toMatchObject({ bip32_derivs })

      const signed = await world.node.sign(exported, quorum())
      const files = signed.map((_, index) => join(folder, `${index}.psbt`))
      for (const [index, psbt] of signed.entries())
        await writeFile(files[index]!, index === 0 ? Buffer.from(psbt, 'base64') : `${psbt}\n`)
      if (signers > 1)
        await expect(byCommand('import', files[0]!)).rejects.toThrow(
          /signatures are missing: input 0 has 1 of 2.*; import it together with those of the other signers/,
        )
      const imported = JSON.parse(await byCommand('import', ...files, '--json')) as object
      expect(imported).toEqual({ id, payments: 2, changed: true })
      for (const order of orders)
        expect(await stateOf(order)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: id })
      const again = `${id} was already signed.`
      expect(await byCommand('import', ...files)).toBe(again)
      await work()
      expect(await mempool()).toEqual([id])
      await world.node.mine(1)
      expect(await byCommand('import', ...files)).toBe(again)
      await requirePaidOnce(id)
      expect(await byCommand('list')).toBe('No PSBT waits to be signed.')
      expect(await actionsOfCommands(service.db)).toEqual(['transfer.export', 'transfer.sign'])
    })

    test('a PSBT is refused that is not exactly what was asked, or whose signatures cover less', async () => {
      const { transfer, id } = await ask(await depositor('1', '0.5'))
      const before = await stateOf(transfer)
      const { raw_transaction: raw } = await openOf(id)
      const [other, thief] = [await freeCoin(), Buffer.from(`0014${'ab'.repeat(20)}`, 'hex')]
      const cases: [rule: RegExp, change: (tx: ReturnType<typeof parse>) => void][] = [
        [/: output 0 pays something else$/, ({ outputs }) => void (outputs[0]!.script = thief)],
        [/: output 0 pays something else$/, ({ outputs }) => void (outputs[0]!.amount -= 1n)],
        [/: output \d+ pays something else$/, ({ outputs }) => void (outputs.at(-1)!.script = thief)],
        [
          /: it has \d+ outputs, and not \d+$/,
          ({ outputs }) => void outputs.push({ amount: 9_999n, script: thief }),
        ],
        [/: it spends other inputs$/, ({ inputs }) => void inputs.push({ ...inputs[0]!, ...other })],
        [
          / it spends none of their coins$/,
          ({ inputs }) => void inputs.splice(0, 9, { ...inputs[0]!, ...other }),
        ],
        [/: it has another version, lock time or sequence$/, (tx) => void (tx.lockTime = 1)],
      ]
      for (const [rule, change] of cases)
        await expect(importPsbts(at(), await signChanged(raw, change))).rejects.toThrow(rule)
      await expect(importPsbts(at(), ['cHNidP8='])).rejects.toThrow('the node reads no PSBT in it')
      for (const sighash of ['NONE', 'SINGLE', 'ALL|ANYONECANPAY']) {
        // Once it is finalized, a PSBT names no sighash: the signatures do.
        const psbt = await finalize(await signedBy(id, sighash), false)
        await expect(importPsbts(at(), [psbt])).rejects.toThrow('is signed with another sighash than ALL')
      }
      expect(await stateOf(transfer)).toEqual(before)
      await requirePaidOnce(id)
    })

    test.runIf(signers === 1)(
      'nothing is exported or imported under a freeze, or by records that were changed',
      async () => {
        const { transfer, id } = await ask(await depositor('1', '0.5'))
        const signed = await signedBy(id)
        const refuses = async (rule: string) => {
          await expect(exportPsbt(at(), id)).rejects.toThrow(rule)
          await expect(importPsbts(at(), signed)).rejects.toThrow(rule)
        }
        await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network }, 'OPERATOR', 'looking')
        await refuses(`nothing is signed on ${network}: looking`)
        await service.owner.query('delete from freezes')

        const payTo = (address: string) =>
          service.owner.query('update transfers set destination_address = $2 where id = $1', [
            transfer.id,
            address,
          ])
        await payTo(await world.newAddress())
        await refuses(`withdrawal ${transfer.id} is not what was accepted`)
        await payTo(transfer.destination_address!)

        // Whoever has the service's role asks for the same payment with another coin.
        const { raw_transaction, payments } = await openOf(id)
        const tx = parse(raw_transaction)
        const { txid, index } = await freeCoin()
        const forged = asked(RawOldTx.encode({ ...tx, inputs: [{ ...tx.inputs[0]!, txid, index }] }))
        const { customer_id } = ordered[0]!.customer
        const payee = { customer_id, transfer_id: transfer.id }
        await transaction(service.db, (at) =>
          keepTransactions(at, network, [{ ...forged, ...payee, payments }]),
        )
        await refuses('spends other coins, and may pay withdrawal')
        await work()
        expect(await stateOf(transfer)).toMatchObject({ state: 'ASKED', waiting_code: 'UNRESOLVED' })
        await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [
          forged.crypto_tx_hash,
        ])

        // Or that a part of the change is a thief's.
        const stolen = parse(raw_transaction)
        stolen.outputs.at(-1)!.script = Buffer.from(`0014${'ab'.repeat(20)}`, 'hex')
        const change = asked(RawOldTx.encode(stolen))
        await transaction(service.db, (at) =>
          keepTransactions(at, network, [{ ...change, ...payee, payments }]),
        )
        const [theirs] = await waiting()
        await expect(exportPsbt(at(), theirs!.id)).rejects.toThrow(
          'it pays something else than its withdrawals',
        )
        await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [
          change.crypto_tx_hash,
        ])
        await requirePaidOnce(id)
      },
    )

    test.each(FAILURES)(
      'a withdrawal is paid once when the worker or the import dies %s any one step',
      async (failure) => {
        const customer = await depositor('1', '0.5', '0.5')
        const dying = async (failures: Failures, run: (db: Database) => Promise<unknown>) => {
          const die = () => {
            throw new Error('it died here')
          }
          globalThis.fetch = (...args) => failures.around(() => estimating(...args), die)
          await run(failures.database(service.db))
            .catch(() => undefined)
            .finally(() => (globalThis.fetch = estimating))
        }
        await dieAtEachStep(failure, 50, async (failures) => {
          await withdraw(customer, '0.01')
          const round = (db: Database) => work(networksOf(), db)
          await dying(failures, round)
          await dying(failures, round)
          for (const { id } of await waiting()) {
            const signed = await signedBy(id)
            await dying(failures, (db) => importPsbts({ ...at(), db }, signed))
          }
          await dying(failures, round)
          await dying(failures, round)
          await requirePaidOnce()
        })
      },
      240_000,
    )

    test('a person broadcasts what was signed: the worker finds it, and what it pays to a customer is a deposit', async () => {
      const [payer, payee] = [await depositor('1'), await depositor('1')]
      await withdraw(payer, '0.2', await depositAddress(payee))
      const { transfer, id } = await ask(payer)
      const signed = await signedBy(id)
      await broadcast(await finalize(signed, true))
      await world.node.mine(1)
      await creditAll()
      expect(await available(payee)).toBe('1.2')
      await work()
      expect(await stateOf(transfer)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: id })
      expect(await importPsbts(at(), signed)).toEqual({ id, payments: 2, changed: false })
      await requirePaidOnce(id)
    })

    test('its coins were spent elsewhere: what was asked can never be mined, and others are asked', async () => {
      const { transfer, id } = await ask(await depositor('1', '0.5'))
      const signed = await signedBy(id)
      const [input] = (await openOf(id)).inputs
      const { txid, vout } = splitOutpoint(input!)
      const { value } = await world.node.bursar.call<{ value: string }>('gettxout', txid, vout)
      // The node lists payments to addresses that it gave out, and none to change.
      const isListed = network === 'LITECOIN'
      const own = isListed
        ? await world.node.bursar.call<string>('getnewaddress', '', 'bech32')
        : await world.node.bursar.call<string>('getrawchangeaddress', 'bech32')
      const moved = { [own]: (Number(value) - 0.001).toFixed(8) }
      const blank = await world.node.bursar.call<string>('createpsbt', [{ txid, vout }], [moved])
      const { psbt } = await world.node.bursar.call<{ psbt: string }>('walletprocesspsbt', blank, false)
      const hash = await broadcast(await finalize(await world.node.sign(psbt, quorum()), true))
      await world.node.mine(1)
      await expect(importPsbts(at(), signed)).rejects.toThrow(
        `: its coins are spent, and the worker finds by what`,
      )
      await work()
      expect(await stateOf(transfer)).toMatchObject({ state: 'HELD', crypto_tx_hash: null })
      await work()
      // A listed transaction that the database does not know stops signing.
      if (isListed)
        expect(await stateOf(transfer)).toMatchObject({ state: 'HELD', waiting_code: 'UNKNOWN_SPENDS' })
      await acknowledgeTransaction(service.db, at().adapter, network, hash, { origin: TEST_ORIGIN })
      await work()
      expect(await stateOf(transfer)).toMatchObject({ state: 'ASKED' })
      await expect(importPsbts(at(), signed)).rejects.toThrow(
        `${id} can never be mined: ${hash} has spent its coins`,
      )
      await expect(exportPsbt(at(), id)).rejects.toThrow(`there is no PSBT ${id}`)
      await requirePaidOnce()
    })

    test('a PSBT that waited too long is asked for again with a higher fee, and one of the two is mined', async () => {
      const { transfer, id } = await ask(await depositor('1'), cheap)
      const [before] = await waiting()
      const second = await byCommand('replace', id, '--json')
      const { id: dearer } = JSON.parse(second) as { id: string }
      expect(await actionsOfCommands(service.db)).toContain('transfer.replace')
      const listed = await waiting()
      expect(listed).toMatchObject([{ id: dearer, amount: before!.amount }])
      expect(Number(listed[0]!.fee)).toBeGreaterThan(Number(before!.fee))
      expect((await openOf(dearer)).inputs).toEqual((await openOf(id)).inputs)
      await expect(replacePsbt(at(), id)).rejects.toThrow(`${dearer} is not replaced`)
      const first = await signedBy(id)
      await signAndImport(dearer)
      expect(await stateOf(transfer)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: dearer })
      await work()
      await expect(importPsbts(at(), first)).rejects.toThrow(`the node does not accept ${id}`)
      await requirePaidOnce(dearer)
    })

    test.runIf(signers === 1)(
      'of two that are signed, the last import is broadcast, and one is mined',
      async () => {
        const { transfer, id } = await ask(await depositor('1'), cheap)
        const dearer = await replacePsbt(at(), id)
        const [first, second] = [await signedBy(id), await signedBy(dearer)]
        await importPsbts(at(), first)
        expect(await stateOf(transfer)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: id })
        // At the same fee, this may be the same transaction as before.
        const third = await replacePsbt(at(), id)
        expect((await openOf(third)).inputs).toEqual((await openOf(id)).inputs)
        expect(await importPsbts(at(), second)).toMatchObject({ id: dearer, changed: true })
        expect(await stateOf(transfer)).toMatchObject({ state: 'SIGNED', crypto_tx_hash: dearer })
        await work()
        expect(await mempool()).toEqual([dearer])
        await requirePaidOnce(dearer)
      },
    )

    test('a transaction that waits for a block is asked for again, and either of the two pays', async () => {
      const customer = await depositor('1', '0.5')
      for (const isSigned of [true, false]) {
        const { transfer, id } = await ask(customer, cheap)
        await signAndImport(id)
        await work()
        if (network === 'LITECOIN') {
          // Litecoin Core takes no replacement.
          await expect(replacePsbt(at(), id)).rejects.toThrow(`${id} is not replaced`)
          await requirePaidOnce(id)
          continue
        }
        const dearer = await replacePsbt(at(), id)
        expect(await stateOf(transfer)).toMatchObject({ state: 'BROADCAST', crypto_tx_hash: id })
        expect(await waiting()).toMatchObject([{ id: dearer }])
        if (isSigned) {
          await signAndImport(dearer)
          await work()
          expect(await mempool()).toEqual([dearer])
        } else {
          await world.node.mine(1)
          await work()
          expect(await waiting()).toEqual([])
        }
        await requirePaidOnce(isSigned ? dearer : id)
      }
    })

    test('a restored database asks for nothing while a PSBT is outside that it has forgotten', async () => {
      const { transfer, id } = await ask(await depositor('1', '0.5'))
      const signed = await signedBy(id)
      // As in a backup from before it was asked.
      await service.owner.query('delete from network_transactions where transfer_ids @> array[$1::uuid]', [
        transfer.id,
      ])
      await service.owner.query(
        `update outgoing_transfers set state = 'HELD', crypto_tx_hash = null, crypto_tx_index = null where transfer_id = $1`,
        [transfer.id],
      )
      for (const isMined of [false, true]) {
        await work()
        expect(await stateOf(transfer)).toMatchObject({ state: 'HELD', waiting_code: 'UNKNOWN_SPENDS' })
        await expect(importPsbts(at(), signed)).rejects.toThrow(
          `${id} is no transaction that waits to be signed`,
        )
        if (isMined) break
        await broadcast(await finalize(signed, true))
        await world.node.mine(1)
      }
      await markWithdrawalPaid(service.db, networksOf(), transfer.id, id, TEST_ORIGIN)
      await requirePaidOnce(id)
    })

    test.runIf(signers === 1)(
      'payments are gathered for the next PSBT, and the platform has its own',
      async () => {
        const customer = await depositor('1', '1', '1')
        const cold = await world.newAddress()
        const send = { network, asset, amount: '0.2', destination_address: cold, reference: 'cold' }
        await orderTreasurySend({ db: service.db, macs: MACS, origin: TEST_ORIGIN }, at().adapter, send)
        await ask(customer)
        const later = [await withdraw(customer, '0.1'), await withdraw(customer, '0.1')]
        const before = await waiting()
        await work(networksOf({ gatherMs: 600_000 }))
        for (const one of later)
          expect(await stateOf(one)).toMatchObject({ state: 'HELD', waiting_code: 'NEXT_TRANSACTION' })
        expect(await waiting()).toMatchObject(before.map(({ id }) => ({ id })))
        await requirePaidOnce()
        expect(await world.received(cold, asset)).toMatchObject([{ amount: '0.2' }])
      },
    )
  })
})
