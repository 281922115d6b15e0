/*
 * SOLANA with its keys in the signer: the worker pays, sweeps and makes nonce accounts without one, and whoever takes it gets
 * nothing signed but what was accepted, each transfer as one transaction.
 */
import { laneAccounts, sweepAccounts } from '../chains/solana/lanes.ts'
import type { SigningEvidence } from '../src/contract/approval.ts'
import { randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import type { Instruction } from '@solana/kit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { solanaAdapter, type SolanaConfig } from '../chains/solana/adapter.ts'
import { depositKeysOf } from '../chains/solana/deposit-keys.ts'
import {
  addressWithSeed,
  associatedOf,
  createAssociated,
  makeNonceAccount,
  memoOf,
  SYSTEM,
  TOKEN,
  transferChecked,
  transferSol,
  unitPrice,
} from '../chains/solana/instructions.ts'
import { remote, signerOfSeed } from '../chains/solana/keys.ts'
import { parse, signBriefly, signOnNonce, type Terms } from '../chains/solana/transaction.ts'
import type { AskedSigner, SignerClient } from '../chains/kit/remote-signer.ts'
import { evidenceOf } from '../src/governance/approvals/signing-evidence.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { verify } from '../src/money/verify/verify.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { NodeFailure } from '../src/networks/node-failure.ts'
import type { NetworkAdapter, Networks } from '../src/networks/network.ts'
import { guarded } from '../src/rails/payouts/signing-guards.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'
import { insertDepositAddress } from '../src/money/records/deposit-address.ts'
import { creditDepositsOn } from '../src/rails/deposits/credit-deposits.ts'
import { isFrozen, postSweep, sweepDepositAddresses } from '../src/rails/treasury/sweep-deposit-addresses.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { hurry } from '../test/work-off.ts'
import { atEnd } from '../test/at-end.ts'
import { dieAtEachStep, failing } from '../test/failures.ts'
import { accept, ownSigner } from '../test/signer-process.ts'
import { keptOf, readTransfer, settle, sumOn, work } from '../test/payouts-on.ts'
import { runtime, SolanaNode } from '../test/solana-node.ts'
import {
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../test/support.ts'

/** What the signer is told of a transaction that pays one withdrawal. */
const one = (evidence: SigningEvidence) => ({ payments: [evidence], journal_heads: [] })

const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
const SOL = 1_000_000_000n

let service: TestService
beforeEach(async () => {
  service = await startTestService()
})
afterEach(() => service.close())

const newAddress = (): Address => signerOfSeed(randomBytes(32)).address

/** A chain, and a signer whose wallet has 10 SOL and 1,000 USDC. */
async function start() {
  const node = await SolanaNode.start()
  atEnd(() => node.stop())
  const seed = randomBytes(32)
  const hot = signerOfSeed(seed)
  const mints = { USDC: node.makeMint(TOKEN, 6) }
  node.give(hot.address, 10n * SOL)
  node.mint(TOKEN, mints.USDC, hot.address, 1_000_000_000n)
  const section = {
    ...{ tokens: mints, wallets: [{ env: 'SEED' }], deposit_key: { env: 'WORDS' }, fee_max: '0.01' },
    windows: [
      { asset: 'SOL', period_seconds: 3_600, amount: '8' },
      { asset: 'USDC', period_seconds: 3_600, amount: '500' },
    ],
  }
  const environment = { SEED: base58.encode(seed), WORDS }
  const { client, change } = await ownSigner('SOLANA', hot.address, section, environment)
  const given: SolanaConfig = {
    ...{ rpcUrl: node.rpcUrl, verifyRpcUrl: node.rpcUrl, hotWallet: remote(hot.address), signer: client },
    ...{ depositKey: { publicKey: depositKeysOf(WORDS).publicKey }, feeCeiling: '0.001', lanes: 3, mints },
    sweepMinimum: { USDC: '1' },
    ...{ withdrawals: withdrawalReader, mode: 'sandbox', pollMs: 10 },
  }
  const running = { node, hot, mints, client, given, change }
  const adapter = adapterOf(running)
  for (let steps = 1; steps > 0;) {
    steps = await adapter.sweep!(round())
    node.mine()
  }
  return { ...running, adapter }
}
type Running = Awaited<ReturnType<typeof start>>

const tokens = ({ mints }: Pick<Running, 'mints'>) => ({ tokens: new Map([['SOLANA' as const, mints]]) })
const round = () => ({ post: postSweep, isFrozen, prices: new Map() as never })
const adapterOf = (
  { given }: { given: SolanaConfig },
  signer?: AskedSigner,
  db = service.db,
): NetworkAdapter => solanaAdapter({ ...given, ...(signer && { signer }) }, db)
const networksOf = (running: { given: SolanaConfig }, signer?: AskedSigner, db = service.db): Networks =>
  new Map([
    [
      'SOLANA',
      guarded(adapterOf(running, signer, db), { macs: new RowMacs(MASTER_KEYS), screening: undefined }),
    ],
  ])

const withdraw = (
  customer: TestCustomer,
  asset: string,
  amount: string,
  { to = newAddress(), ...more }: { to?: string; memo?: string } = {},
): Promise<Transfer> =>
  accept(service, customer, {
    ...{ crypto_network: 'SOLANA', asset, amount, destination_address: to },
    ...more,
  })

const evidenceFor = async (customer: TestCustomer, { id }: Transfer) =>
  (await evidenceOf(service.db, customer.customer_id, [id])).get(id)!
const hexOf = (raw: Buffer) => `0x${raw.toString('hex')}`
const lamportsOf = ({ node }: Pick<Running, 'node'>, address: string) =>
  node.svm.getBalance(address as Address) ?? 0n

test.skipIf(!runtime)(
  'the worker makes nonce accounts, pays, gives out addresses and sweeps them, and holds no key',
  async () => {
    const running = await start()
    const { node, adapter, mints } = running
    const customer = await newCustomer(service)
    for (const path of [[1], [1, -1], [1, 0.5], [1, 2 ** 31], [1, 2, 3], []])
      await expect(running.client.addresses('SOLANA', [{ id: 'x', path }])).rejects.toThrow(
        'path of two numbers',
      )
    const made = [
      await withdraw(customer, 'SOL', '1'),
      await withdraw(customer, 'USDC', '20', { to: node.open(TOKEN, mints.USDC, newAddress()) }),
      await withdraw(customer, 'SOL', '0.5', { memo: 'invoice 7' }),
      await withdraw(customer, 'SOL', '0.25'),
    ]
    await settle(service.db, networksOf(running), () => node.mine())
    for (const one of made) expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
    const kept = await Promise.all(made.map((one) => keptOf(service.db, one)))
    expect(new Set(kept.map(({ crypto_tx_hash }) => crypto_tx_hash)).size).toBe(4)
    expect(lamportsOf(running, made[0]!.destination_address!)).toBe(SOL)

    // Addresses are vouched for by the signer.
    const networks: Networks = new Map([['SOLANA', adapter]])
    const address = await depositAt(running, adapter, customer)
    for (let count = 0; count < 6; count++) {
      await sweepDepositAddresses({ db: service.db, networks, settings: service.settings })
      node.mine()
    }
    expect(lamportsOf(running, address)).toBe(0n)
    const { rows } = await service.db.query<{ state: string }>(
      `select state from sweeps where kind = 'SWEEP' and address = $1`,
      [address],
    )
    expect(rows).toEqual([{ state: 'DONE' }])
    const { held } = await adapter.status!()
    const custody = await sumOn(service.db, 'custody:SOLANA', 'SOL')
    expect(parseAmount(held.SOL!, 9)).toBe(10n * SOL - custody)
    expect((await verify(service.db, tokens(running))).disagreements).toEqual([])
  },
)

/** A new deposit address with 2 SOL that are credited. */
async function depositAt({ node }: Running, adapter: NetworkAdapter, customer: TestCustomer) {
  const asked = insertDepositAddress(
    service.db,
    { networks: new Map([['SOLANA', adapter]]), rowMacs: ROW_MACS },
    customer.customer_id,
    { profile_id: customer.profile_id, crypto_network: 'SOLANA' },
  )
  await expect
    .poll(async () => (await service.db.query('select 1 from asked_addresses')).rowCount)
    .toBeGreaterThan(0)
  const credit = async () => {
    await hurry(service.db)
    await creditDepositsOn(service, 'SOLANA', adapter)
  }
  await credit()
  const { address } = await asked
  node.run([transferSol(node.bank.address, address as Address, 2n * SOL)], node.bank)
  for (let count = 0; count < 5; count++) await credit()
  return address
}

test.skipIf(!runtime)(
  'a move that the signer refuses, or that it does not answer, holds up no other',
  async () => {
    const running = await start()
    const { node, client, given, hot } = running
    const lanes = [3, 4, 5].map((lane) => addressWithSeed(hot.address, `bursar-nonce-${lane}`))
    const more = { ...running, given: { ...given, lanes: 6 } }
    const address = await depositAt(running, adapterOf(more), await newCustomer(service))
    const refusing: SignerClient = {
      ...client,
      // Its own rules refuse a place that the deposit key does not give.
      move: (network, what, place) =>
        client.move(network, what, place.address === lanes[1] ? { ...place, address: hot.address } : place),
    }
    const down = { ...client, move: () => Promise.reject(new NodeFailure('the signer does not answer')) }
    const step = async (signer: SignerClient) => {
      await expect(adapterOf(more, signer).sweep!(round())).rejects.toThrow()
      node.mine()
    }
    await step(refusing)
    // What is signed goes on without the signer.
    for (let count = 0; count < 4; count++) await step(down)
    const isMade = (account: Address) => lamportsOf(running, account) > 0n
    expect(lanes.map(isMade)).toEqual([true, false, true])
    expect(lamportsOf(running, address)).toBe(0n)
    const { rows } = await service.db.query('select 1 from sweeps where state in ($1, $2)', [
      'SIGNED',
      'BROADCAST',
    ])
    expect(rows).toEqual([])
  },
)

/** Terms of a nonce account that is none: nothing here is broadcast. */
const termsOf = async ({ hot }: Running, changes: Partial<Terms> = {}): Promise<Terms> => ({
  nonceAccount: sweepAccounts({ hotWallet: hot })[0]!.account,
  ...{ nonce: newAddress(), unitLimit: 60_000, unitPrice: 1_000n },
  ...changes,
})

test.skipIf(!runtime)(
  'a thief of the worker gets nothing signed but what was accepted, and each transfer as one transaction',
  async () => {
    const running = await start()
    const { hot, client } = running
    const customer = await newCustomer(service)
    const made = await withdraw(customer, 'SOL', '1')
    const to = made.destination_address as Address
    const evidence = await evidenceFor(customer, made)
    const ask = async (
      instructions: Instruction[],
      { terms = {}, others = [] as Address[], of = evidence, change = (raw: Buffer) => raw } = {},
    ) => {
      const asked = signOnNonce(
        remote(hot.address),
        instructions,
        await termsOf(running, terms),
        ...others.map(remote),
      )
      const unsigned = hexOf(change(asked.raw_transaction))
      const answer = await client.ask('SOLANA', { wallet: hot.address, unsigned }, one(of))
      return 'reason' in answer ? answer.reason.detail : 'signed'
    }
    const pays = transferSol(hot.address, to, SOL)
    expect(await ask([transferSol(hot.address, to, SOL + 1n)])).toMatch(/does not pay what was accepted/)
    expect(await ask([transferSol(hot.address, newAddress(), SOL)])).toMatch(/does not pay what was accepted/)
    expect(await ask([pays, transferSol(hot.address, newAddress(), 1n)])).toMatch(/more than one payment/)
    const noted = await withdraw(customer, 'SOL', '1', { to, memo: 'invoice 7' })
    const ofNoted = await evidenceFor(customer, noted)
    for (const instructions of [[memoOf('invoice 8'), pays], [pays]])
      expect(await ask(instructions, { of: ofNoted })).toMatch(/does not pay what was accepted.*memo/)
    const nonceOfThief = makeNonceAccount(hot.address, addressWithSeed(hot.address, 'x'), 'x', SOL)
    expect(await ask([...nonceOfThief, pays])).toMatch(/no part of a payment/)
    expect(await ask([pays], { terms: { unitPrice: 10n ** 12n } })).toMatch(/above fee_max/)
    expect(await ask([pays], { change: (raw) => Buffer.concat([raw, Buffer.of(0)]) })).toMatch(
      /not written as Bursar writes it/,
    )
    expect(await ask([pays], { of: { ...evidence, signature: null } })).toMatch(
      /no process with an acceptance key/,
    )
    const terms = await termsOf(running)
    expect(await ask([pays], { terms })).toBe('signed')
    expect(await ask([pays], { terms })).toBe('signed')
    // Where a block's hash stands for the nonce, both would be made: so no other bytes are signed, whatever they differ in.
    for (const other of [{ unitPrice: 2_000n }, { nonce: newAddress() }, { nonceAccount: newAddress() }])
      expect(await ask([pays], { terms: { ...terms, ...other } })).toMatch(
        /was signed with nonce [0-9a-f]{32} of/,
      )
    // Its approvers know that the first can never be made.
    const other = { unitPrice: 3_000n }
    const [, name] = /with nonce ([0-9a-f]{32}) of/.exec(
      await ask([pays], { terms: { ...terms, ...other } }),
    )!
    await running.change({ kind: 'VOID', nonces: [name!], transfer_ids: [made.id] })
    expect(await ask([pays], { terms: { ...terms, ...other } })).toBe('signed')
    expect(await ask([pays], { terms })).toMatch(/was signed with nonce/)
    const briefly = signBriefly(remote(hot.address), [pays], newAddress())
    const what = { wallet: hot.address, unsigned: hexOf(briefly.raw_transaction) }
    expect(await client.ask('SOLANA', what, one(evidence))).toHaveProperty('reason')
    const nobody = { wallet: newAddress(), unsigned: what.unsigned }
    expect(await client.ask('SOLANA', nobody, one(evidence))).toHaveProperty('reason')
  },
)

test.skipIf(!runtime)(
  'a thief of the worker moves nothing away from deposit addresses or the hot wallet',
  async () => {
    const running = await start()
    const { hot, client } = running
    const keys = depositKeysOf(WORDS)
    const { address, derivation } = keys.newAddress('00000000-0000-4000-8000-000000000001') as {
      address: Address
      derivation: string
    }
    const move = async (
      instructions: Instruction[],
      place = { address, derivation },
      others = [address],
      terms: Partial<Terms> = {},
    ) => {
      const asked = signOnNonce(
        remote(hot.address),
        instructions,
        await termsOf(running, terms),
        ...others.map(remote),
      )
      const what = { wallet: hot.address, unsigned: hexOf(asked.raw_transaction) }
      return client.move('SOLANA', what, place).then(
        () => 'signed',
        (error: Error) => error.message,
      )
    }
    const sweeps = transferSol(address, hot.address, SOL)
    expect(await move([sweeps])).toBe('signed')
    // It would use up the value that a payment is signed on.
    const [ofPayments] = laneAccounts({ hotWallet: hot, formerWallets: [], lanes: 1 })
    expect(await move([sweeps], undefined, undefined, { nonceAccount: ofPayments!.account })).toMatch(
      /of sweeps/,
    )
    expect(await move([transferSol(address, newAddress(), SOL)])).toMatch(/goes there/)
    expect(await move([sweeps, transferSol(hot.address, newAddress(), SOL)])).toMatch(/goes there/)
    expect(await move([transferSol(hot.address, address, SOL)])).toMatch(/goes there|do not sign it/)
    const other = newAddress()
    expect(await move([sweeps], { address: other, derivation })).toMatch(/does not give/)
    expect(await move([transferSol(other, hot.address, 1n)], undefined, [other])).toMatch(/do not sign it/)
    const make = async (instructions: Instruction[], account: Address) => {
      const asked = signBriefly(remote(hot.address), instructions, newAddress())
      const what = { wallet: hot.address, unsigned: hexOf(asked.raw_transaction) }
      return client.move('SOLANA', what, { address: account, derivation: '' }).then(
        () => 'signed',
        (error: Error) => error.message,
      )
    }
    const account = addressWithSeed(hot.address, 'bursar-nonce-9')
    const made = makeNonceAccount(hot.address, account, 'bursar-nonce-9', 1_500_000n)
    expect(await make(made, account)).toBe('signed')
    expect(await make(made, newAddress())).toMatch(/does not make the account/)
    expect(await make(makeNonceAccount(hot.address, account, 'bursar-nonce-9', 5n * SOL), account)).toMatch(
      /above fee_max/,
    )
    expect(await make([...made, transferSol(hot.address, newAddress(), 1n)], account)).toMatch(
      /does not make/,
    )
    const forThief = makeNonceAccount(newAddress(), account, 'bursar-nonce-9', 1_500_000n)
    expect(await make([made[0]!, forThief[1]!], account)).toMatch(/does not make/)
  },
)

test.skipIf(!runtime)(
  'a thief of the worker can add no account, no program and no price to what is signed',
  async () => {
    const running = await start()
    const { hot, client, mints } = running
    const customer = await newCustomer(service)
    const made = await withdraw(customer, 'USDC', '1')
    const [to, mint] = [made.destination_address as Address, mints.USDC]
    const evidence = await evidenceFor(customer, made)
    const place = depositKeysOf(WORDS).newAddress('00000000-0000-4000-8000-000000000001') as {
      address: Address
      derivation: string
    }
    const why = 'it is not written as a payment of Bursar'
    const askEach = async (raw: Buffer) => {
      const what = { wallet: hot.address, unsigned: hexOf(raw) }
      const isMove = parse(raw).signers.length > 1
      return isMove
        ? client.move('SOLANA', what, place).then(
            () => 'signed',
            (error: Error) => error.message,
          )
        : client
            .ask('SOLANA', what, one(evidence))
            .then((answer) => ('reason' in answer ? answer.reason.detail : 'signed'))
    }
    for (const [from, owner] of [
      [hot.address, to],
      [place.address, hot.address],
    ] as const) {
      const others = from === hot.address ? [] : [remote(from)]
      const written = async (...instructions: Instruction[]) =>
        askEach(
          signOnNonce(remote(hot.address), instructions, await termsOf(running), ...others).raw_transaction,
        )
      const of = (own: Address) => associatedOf(own, mint, TOKEN)
      const accounts = { source: of(from), mint, target: of(owner), owner: from }
      const pays = transferChecked(TOKEN, accounts, 1_000_000n, 6)
      const makes = { payer: hot.address, account: of(owner), owner, mint }
      // A mint's program is called with the accounts that follow: a signer among them would sign what it does.
      const hooked = { ...pays, accounts: [...pays.accounts!, { address: hot.address, role: 3 }] }
      expect(await written(hooked as Instruction)).toContain(why)
      expect(
        await written({
          ...pays,
          accounts: [{ address: newAddress(), role: 1 }, ...pays.accounts!.slice(1)],
        }),
      ).toContain(why)
      // The program that is named owns the account that is made, and says how large it is: its rent is the thief's.
      expect(await written(createAssociated(newAddress(), makes), pays)).toContain(why)
      for (const other of [{ mint: newAddress() }, { account: newAddress() }])
        expect(await written(createAssociated(TOKEN, { ...makes, ...other }), pays)).toContain(why)
      // Without a limit of units, the network takes the price for 200,000 of each instruction.
      const advance: Instruction = {
        programAddress: SYSTEM,
        accounts: [
          { address: newAddress(), role: 1 },
          { address: 'SysvarRecentB1ockHashes11111111111111111111' as Address, role: 0 },
          { address: hot.address, role: 2 },
        ],
        data: Buffer.of(4, 0, 0, 0),
      }
      const unlimited = [advance, unitPrice(10n ** 12n), { ...pays, accounts: pays.accounts! }]
      if (others.length === 0)
        expect(
          await askEach(signBriefly(remote(hot.address), unlimited, newAddress()).raw_transaction),
        ).toContain(why)
      expect(await written(createAssociated(TOKEN, makes), pays)).toBe('signed')
    }
    const sweepOf = async (mint: Address) => {
      const [source, target] = [place.address, hot.address].map((own) => associatedOf(own, mint, TOKEN))
      const accounts = { source: source!, mint, target: target!, owner: place.address }
      const sweep = transferChecked(TOKEN, accounts, 1n, 6)
      return askEach(
        signOnNonce(remote(hot.address), [sweep], await termsOf(running), remote(place.address))
          .raw_transaction,
      )
    }
    expect(await sweepOf(newAddress())).toMatch(/no mint that is configured/)
  },
)

test.skipIf(!runtime)(
  'its answer is lost, and a thief broadcasts the bytes: the worker follows them, and pays nothing twice',
  async () => {
    const running = await start()
    const { node, client } = running
    const customer = await newCustomer(service)
    const made = await withdraw(customer, 'SOL', '1')
    let lost = ''
    const losing: SignerClient = {
      ...client,
      async ask(...asked) {
        const answer = await client.ask(...asked)
        if ('signed' in answer) lost = answer.signed
        throw new NodeFailure('the signer does not answer: killed')
      },
    }
    await work(service.db, networksOf(running, losing))
    await work(service.db, networksOf(running, losing))
    expect(await keptOf(service.db, made)).toMatchObject({ state: 'ASKED', waiting_code: 'SIGNER_DOWN' })
    const raw = Buffer.from(lost.slice(2), 'hex')
    node.pool.set(parse(raw).hash, raw)
    node.mine()
    await work(service.db, networksOf(running, losing))
    expect(await keptOf(service.db, made)).toMatchObject({ state: 'ASKED' })
    const more = await withdraw(customer, 'SOL', '0.5')
    await settle(service.db, networksOf(running), () => node.mine())
    for (const one of [made, more])
      expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
    expect(lamportsOf(running, made.destination_address!)).toBe(SOL)
    expect((await verify(service.db, tokens(running))).disagreements).toEqual([])
  },
)

test.skipIf(!runtime)(
  'a payment that fails on the network is refunded: what was asked for it is the same transaction',
  async () => {
    const running = await start()
    const { node, mints } = running
    const customer = await newCustomer(service)
    const to = newAddress()
    node.open(TOKEN, mints.USDC, to)
    const made = await withdraw(customer, 'USDC', '20', { to })
    await work(service.db, networksOf(running))
    await work(service.db, networksOf(running))
    node.freeze(TOKEN, mints.USDC, to)
    await settle(service.db, networksOf(running), () => node.mine())
    expect(await readTransfer(customer, made)).toMatchObject({ status: 'FAILED' })
    expect((await verify(service.db, tokens(running))).disagreements).toEqual([])
  },
)

test.skipIf(!runtime)(
  'a worker that dies at any step while the signer is asked pays each withdrawal once',
  async () => {
    const running = await start()
    const { node } = running
    const customer = await newCustomer(service)
    await dieAtEachStep('AFTER', 10, async (failures) => {
      const made = [await withdraw(customer, 'SOL', '0.01'), await withdraw(customer, 'SOL', '0.02')]
      const dying = networksOf(running, undefined, failures.database(service.db))
      for (let count = 0; count < 6 && !failures.died; count++) {
        await failing(failures, () =>
          work(service.db, dying, failures.database(service.db)).then(
            () => undefined,
            () => undefined,
          ),
        )
        node.mine()
      }
      await settle(service.db, networksOf(running), () => node.mine())
      for (const [index, one] of made.entries())
        expect(lamportsOf(running, one.destination_address!)).toBe(BigInt(index + 1) * 10_000_000n)
    })
    expect((await verify(service.db, tokens(running))).disagreements).toEqual([])
  },
)
