/*
 * The signer has the keys, and believes nobody: neither the database, nor the worker, nor an API process gets more out of it than
 * its own windows. Killed, with a lost journal or twice, it pays nothing twice.
 */
import { createPrivateKey, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { createWalletClient, http, keccak256, serializeTransaction, type Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { TOKEN_ABI, deployToken, ownAnvil } from '../test/anvil.ts'
import { FAILURES, dieAtEachStep } from '../test/failures.ts'
import { startKms, type Kms } from '../test/kms.ts'
import { formsOf, foundIn } from '../test/memory-of.ts'
import { guideBlocks, HAS_SOFT_HSM, makeToken } from '../test/soft-hsm.ts'
import {
  credit,
  MASTER_KEYS,
  newCustomer,
  remoteCaller,
  ROW_MACS,
  runBursar,
  ownTestService,
  type TestCustomer,
  ownDatabase,
  ownBursar,
} from '../test/support.ts'
import { hurryUnlocked } from '../test/work-off.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { evmAdapter } from '../chains/evm/adapter.ts'
import { depositKeysOf } from '../chains/evm/deposit-keys.ts'
import { parse } from '../chains/evm/transaction.ts'
import { signerClient, type AskedSigner, type SignerClient } from '../chains/kit/remote-signer.ts'
import { signerByFiles } from '../chains/evm/signer-files.ts'
import { NodeFailure } from '../src/networks/node-failure.ts'
import type { Networks } from '../src/networks/network.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { transaction, type Database } from '../src/db/database.ts'
import { newPrivateKey, publicPartOf, signStatement } from '../src/governance/approvals/approval-statement.ts'
import { evidenceOf } from '../src/governance/approvals/signing-evidence.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { verify } from '../src/money/verify/verify.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { guarded } from '../src/rails/payouts/signing-guards.ts'
import { readSignerConfig } from './config.ts'
import { changeText, type JournalChange } from './journal-changes.ts'
import { Journal } from './journal.ts'
import { Refused } from './refused.ts'
import { serveSigner } from './serve.ts'
import { Signer } from './service.ts'
import { sealWithdrawal } from '../src/money/movements/accepted-withdrawals.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'
import { atEnd, ownFolder } from '../test/at-end.ts'

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const CONFIRMATIONS = 2
const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
const ONE = 10n ** 18n

const approvers = [newPrivateKey(), newPrivateKey(), newPrivateKey()]
const service = await ownTestService()
const anvil = await ownAnvil(1)
const USDG = await deployToken(anvil, 6)
/** The private key of the processes that accept withdrawals. */
const acceptanceKey = generateKeyPairSync('ed25519').privateKey
const folder = await ownFolder()

const publicJwk = (key: KeyObject) => {
  const { d: _, ...jwk } = key.export({ format: 'jwk' })
  return jwk
}

interface Changes {
  windows?: { asset: string; period_seconds: number; amount: string }[]
  approvals?: { asset: string; from: string; required: number }[]
  journal?: string
  key?: Hex
  wallets?: object[]
  treasury_destinations?: Hex[]
  clock?: () => Date
}

/** Starts a signer whose wallets have 100 ETH and 1,000 USDG, if they are new. `close` ends it, as a crash does. */
async function startSigner(changes: Changes = {}) {
  const name = randomUUID()
  const key = changes.key ?? generatePrivateKey()
  const path = join(folder, `${name}.json`)
  const journal = changes.journal ?? join(folder, `${name}.journal`)
  const socket = join(folder, `${name.slice(0, 8)}.s`)
  const stopFile = join(folder, `${name}.stop`)
  await writeFile(
    path,
    JSON.stringify({
      listen: socket,
      journal,
      stop_file: stopFile,
      acceptance_keys: [publicJwk(acceptanceKey)],
      approvers: approvers.map((one) => publicPartOf(one)),
      approvals: changes.approvals ?? [],
      journal_approvals: 2,
      networks: {
        ETHEREUM: {
          tokens: { USDG },
          wallets: changes.wallets ?? [{ env: 'KEY' }],
          fee_max: '0.1',
          windows: changes.windows ?? [
            { asset: 'ETH', period_seconds: 3_600, amount: '90' },
            { asset: 'USDG', period_seconds: 3_600, amount: '900' },
          ],
          treasury_destinations: changes.treasury_destinations ?? [],
        },
      },
    }),
  )
  const config = await readSignerConfig(path, { KEY: key })
  const [address, ...further] = [...config.networks.get('ETHEREUM')!.wallets.keys()] as [Hex, ...Hex[]]
  if (changes.key === undefined && changes.journal === undefined) {
    await fund([address, ...further])
    // The worker of another signer knows another journal.
    await knowHead(null)
  }
  const opened = await Journal.open(config.journal, config.networks)
  const server = await serveSigner(new Signer(config, opened, changes.clock), config.listen)
  const client = await signerClient({ socket })
  if (changes.key === undefined && changes.journal === undefined)
    for (const wallet of [address, ...further]) await approved({ client }, openAt(wallet, 0))
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await opened.close().catch(() => undefined)
  }
  atEnd(close)
  return { key, address, further, client, journal, socket, stopFile, path, close }
}

async function fund(wallets: Hex[]): Promise<void> {
  for (const address of wallets) {
    await anvil.chain.setBalance({ address, value: 100n * ONE })
    const minted = { chain: null, address: USDG, abi: TOKEN_ABI, functionName: 'mint' } as const
    await anvil.chain.writeContract({ ...minted, args: [address, 1_000_000_000n] })
  }
}
type Running = Awaited<ReturnType<typeof startSigner>>

/** The worker's networks: it has the address, and no key. */
function networksOn(
  { address, further = [] }: Pick<Running, 'address'> & Partial<Running>,
  client: AskedSigner,
  db: Database = service.db,
): Networks {
  const remote = (wallet: Hex) => ({
    address: wallet,
    isRemote: true as const,
    signTransaction: () => Promise.reject(new Error('it has no key')),
  })
  const adapter = evmAdapter(
    'ETHEREUM',
    {
      mode: 'sandbox',
      rpcUrl: anvil.rpcUrl,
      hotWallet: remote(address),
      furtherWallets: further.map(remote),
      signer: client,
      confirmations: CONFIRMATIONS,
      maxFeePerGasCeiling: '100',
      withdrawals: withdrawalReader,
      tokens: { USDG },
      pollMs: 10,
    },
    db,
  )
  return new Map([['ETHEREUM', guarded(adapter, { macs: new RowMacs(MASTER_KEYS), screening: undefined })]])
}

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address
const balance = (address: Hex) => anvil.chain.getBalance({ address })

/** Orders a withdrawal, and accepts it as an API process with the acceptance key does. */
async function withdraw(
  customer: TestCustomer,
  amount: string,
  { asset = 'ETH', key = acceptanceKey }: { asset?: string; key?: KeyObject | null } = {},
): Promise<Transfer> {
  await credit(service.ledger, customer, asset, '1000')
  const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
    profile_id: customer.profile_id,
    asset,
    amount,
    crypto_network: 'ETHEREUM',
    destination_address: newAddress(),
  })
  expect({ status, body }).toMatchObject({ status: 200 })
  if (key !== null)
    await transaction(service.db, (tx) =>
      sealWithdrawal(tx, new RowMacs(MASTER_KEYS, undefined, key), body.id),
    )
  return body
}

async function step(networks: Networks, db: Database = service.db): Promise<void> {
  await hurryUnlocked(service.db, { endLeases: true })
  await settleWithdrawals(db, networks).catch((error: unknown) => {
    // What the node or the signer did not answer is asked again.
    if (!(error instanceof AggregateError) || !error.errors.every((one) => one instanceof NodeFailure))
      throw error
  })
}

async function settle(networks: Networks, transfers: readonly Transfer[]): Promise<void> {
  for (let round = 1; round <= 40; round++) {
    await step(networks)
    await anvil.chain.mine({ blocks: 1 })
    const { rowCount } = await service.db.query(
      `select from transfers where id = any ($1::uuid[]) and status = 'PENDING'`,
      [transfers.map(({ id }) => id)],
    )
    if (rowCount === 0) return
  }
  throw new Error(`the worker does not come to an end: ${JSON.stringify(await standing(transfers))}`)
}

const standing = async (transfers: readonly Transfer[]) => {
  const { rows } = await service.db.query<{ state: string; code: string | null; detail: string | null }>(
    `select state, waiting_code as code, waiting_detail as detail from outgoing_transfers
     where transfer_id = any ($1::uuid[]) order by transfer_id`,
    [transfers.map(({ id }) => id)],
  )
  return rows
}

/** What a test leaves unpaid would be paid by the next test's signer. */
async function cancelAll(customer: TestCustomer, transfers: readonly Transfer[]): Promise<void> {
  for (const { id } of transfers) {
    const { status, body } = await customer.call('POST', `/v2/transfer/transfers/${id}/cancel`)
    expect(status, JSON.stringify(body)).toBe(200)
  }
}

async function requirePaidOnce(
  signer: Pick<Running, 'address'>,
  transfers: readonly Transfer[],
): Promise<void> {
  for (const { destination_address, amount, asset } of transfers)
    if (asset === 'ETH') expect(await balance(destination_address as Hex)).toBe(parseAmount(amount, 18))
  const { rows } = await service.db.query<{ next_nonce: string }>(
    'select next_nonce from evm_nonces where address = $1',
    [signer.address],
  )
  expect(await anvil.chain.getTransactionCount({ address: signer.address })).toBe(Number(rows[0]!.next_nonce))
  expect((await verify(service.db, { tokens: new Map([['ETHEREUM', { USDG }]]) })).disagreements).toEqual([])
}

const approvalsOf = (change: JournalChange, count: number) =>
  approvers.slice(0, count).map((key) => signStatement(changeText(change), key))

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

/** The change that begins a wallet in the journal. */
const openAt = (
  wallet: Hex,
  next_nonce: number,
  transfers_from = new Date(0).toISOString(),
  after: string[] = [],
) => ({
  ...{ kind: 'OPEN' as const, network: 'ETHEREUM', wallet, next_nonce, transfers_from },
  ...(after.length > 0 && { after }),
  expires_at: inMs(3_600_000),
})

/** What the worker knows of the journal that has answered. */
const knownHeads = async () => {
  const { rows } = await service.db.query<{ head: string }>(
    `select journal_head as head from wallet_checks where network = 'ETHEREUM' and journal_head is not null`,
  )
  return rows.map(({ head }) => head)
}
const knowHead = (head: string | null) =>
  service.db.query(`update wallet_checks set journal_head = $1 where network = 'ETHEREUM'`, [head])

/** Changes the journal by the word of two people. */
const approved = ({ client }: Pick<Running, 'client'>, change: JournalChange) =>
  client.change(change, approvalsOf(change, 2))

test('what is to be signed is stored before the signer is asked, and paid once it has signed', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const made = [
    await withdraw(customer, '1'),
    await withdraw(customer, '2'),
    await withdraw(customer, '5', { asset: 'USDG' }),
  ]
  // The signer judges, and does not answer the question to sign.
  const silent = {
    ...signer.client,
    ask: () => Promise.reject(new NodeFailure('the signer does not answer')),
  }
  await step(networksOn(signer, silent))
  expect((await standing(made)).map(({ state, code }) => [state, code])).toEqual(
    made.map(() => ['ASKED', 'SIGNER_DOWN']),
  )
  const cancel = await customer.call('POST', `/v2/transfer/transfers/${made[0]!.id}/cancel`)
  expect(cancel.status).toBe(409)
  await settle(networks, made)
  await requirePaidOnce(signer, made)
  expect(await signer.client.status()).toEqual([
    { network: 'ETHEREUM', wallet: signer.address, next_nonce: 3 },
  ])
})

test('a withdrawal that no process with an acceptance key accepted gets no nonce, and delays nobody', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  // An API process without the key, or the database, made these.
  const forged = [
    await withdraw(customer, '1', { key: null }),
    await withdraw(customer, '1', { key: generateKeyPairSync('ed25519').privateKey }),
  ]
  const good = await withdraw(customer, '2')
  await settle(networks, [good])
  expect(await standing(forged)).toEqual(
    forged.map(() => ({
      state: 'HELD',
      code: 'SIGNER_REFUSES',
      detail: 'the signer refuses it: no process with an acceptance key accepted it',
    })),
  )
  await requirePaidOnce(signer, [good])
  for (const { destination_address } of forged) expect(await balance(destination_address as Hex)).toBe(0n)
  await cancelAll(customer, forged)
})

test('no more leaves than the windows allow, whoever accepts it; what is above waits', async () => {
  const windows = [
    { asset: 'ETH', period_seconds: 3_600, amount: '3.5' },
    { asset: 'USDG', period_seconds: 3_600, amount: '900' },
  ]
  const clock = () => new Date()
  const [customer, signer] = [await newCustomer(service), await startSigner({ windows, clock })]
  const networks = networksOn(signer, signer.client)
  const made: Transfer[] = []
  for (const amount of ['1', '1', '1', '1']) made.push(await withdraw(customer, amount))
  const ids = made.map(({ id }) => id)
  const evidence = await evidenceOf(service.db, customer.customer_id, ids)
  // What it would take counts before it is signed, and once.
  /** What the signer foresaw so many seconds ago. */
  const check = async (asked: string[], ago: number) => {
    const answers: (string | null)[] = []
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - ago * 1_000 })
    try {
      for (const id of asked) answers.push(...(await signer.client.check('ETHEREUM', [evidence.get(id)!])))
    } finally {
      vi.useRealTimers()
    }
    return answers
  }
  const [first, second, third, fourth] = ids as [string, string, string, string]
  const refused = expect.stringContaining('more ETH would leave') as string
  expect(await check([...ids, first], 900)).toEqual([null, null, null, refused, null])
  // What could not be signed for a minute leaves room, however often it is foreseen.
  expect(await check([first, second, third, fourth], 830)).toEqual([null, null, null, null])
  await settle(networks, made.slice(0, 3))
  await step(networks)
  expect((await standing(made))[3]).toEqual({
    state: 'HELD',
    code: 'SIGNER_REFUSES',
    detail: 'the signer refuses it: more ETH would leave than its window of 3600 s allows',
  })
  await requirePaidOnce(signer, made.slice(0, 3))
  await cancelAll(customer, made.slice(3))
})

test('while its clock is doubted it says that it signs nothing, and why', async () => {
  let isDoubted = false
  const clock = () => {
    if (isDoubted) throw new Refused('the clock is 3600 s off')
    return new Date()
  }
  const { client } = await startSigner({ clock })
  expect(await client.status()).toHaveLength(1)
  isDoubted = true
  await expect(client.status()).rejects.toThrow('the signer signs nothing: the clock is 3600 s off')
})

test('started while its clock is behind its journal it runs, and says why it signs nothing', async () => {
  const signer = await startSigner()
  await signer.close()
  const at = inMs(3_600_000)
  await appendFile(
    signer.journal,
    `${JSON.stringify({ kind: 'ALLOW', at, network: 'BASE', transfer_ids: [] })}\n`,
  )
  const { refuses } = (await startProcess(signer)).ready as { refuses?: string }
  expect(refuses).toContain(`from the journal's newest line, of ${at}`)
  await expect((await signerClient({ socket: signer.socket })).status()).rejects.toThrow(
    "the journal's newest line",
  )
})

test('from its own thresholds on, its own approvers must have signed the payment', async () => {
  const approvals = [{ asset: 'ETH', from: '2', required: 2 }]
  const [customer, signer] = [await newCustomer(service), await startSigner({ approvals })]
  const networks = networksOn(signer, signer.client)
  const [small, large] = [await withdraw(customer, '1'), await withdraw(customer, '2')]
  await settle(networks, [small])
  await step(networks)
  expect((await standing([large]))[0]!.detail).toMatch(
    /: 2 approvals are required from this amount on, and 0 of/,
  )
  const evidence = (await evidenceOf(service.db, customer.customer_id, [large.id])).get(large.id)!
  const [, , profile_id, asset, amount, network, destination, memo] = JSON.parse(
    evidence.accepted,
  ) as string[]
  const statement = (changes: object = {}, decision = 'APPROVE') => {
    const subject = {
      type: 'transfer',
      id: large.id,
      profile_id,
      network,
      asset,
      amount,
      destination,
      memo,
      ...changes,
    }
    return JSON.stringify({
      statement: 'bursar-approval/v1',
      decision,
      customer_id: customer.customer_id,
      subject,
    })
  }
  const check = async (decisions: [string, (typeof approvers)[number]][]) =>
    (
      await signer.client.check('ETHEREUM', [
        {
          ...evidence,
          decisions: decisions.map(([text, key]) => ({ text, signed: signStatement(text, key) })),
        },
      ])
    )[0]
  const [one, two, three] = approvers as [
    (typeof approvers)[number],
    (typeof approvers)[number],
    (typeof approvers)[number],
  ]
  expect(
    await check([
      [statement(), one],
      [statement(), two],
    ]),
  ).toBeNull()
  // One person twice, a key that is not the signer's, another payment, and a rejection.
  expect(
    await check([
      [statement(), one],
      [statement(), one],
    ]),
  ).toMatch(/and 1 of the signer's/)
  expect(
    await check([
      [statement(), one],
      [statement(), newPrivateKey()],
    ]),
  ).toMatch(/and 1 of the signer's/)
  expect(
    await check([
      [statement(), one],
      [statement({ amount: '20' }), two],
    ]),
  ).toMatch(/and 1 of the signer's/)
  expect(
    await check([
      [statement(), one],
      [statement(), two],
      [statement({}, 'REJECT'), three],
    ]),
  ).toBe('an approver has rejected it')
  await cancelAll(customer, [large])
})

describe('the worker in the hands of a thief', () => {
  test('gets nothing signed but what was accepted, each once, within the fee and to the destinations of the file', async () => {
    const cold = newAddress()
    const [customer, signer] = [
      await newCustomer(service),
      await startSigner({ treasury_destinations: [cold] }),
    ]
    const made = await withdraw(customer, '1')
    const evidence = (await evidenceOf(service.db, customer.customer_id, [made.id])).get(made.id)!
    const base = {
      type: 'eip1559' as const,
      chainId: 1,
      nonce: 0,
      to: made.destination_address as Hex,
      value: ONE,
      gas: 21_000n,
      maxFeePerGas: 10n ** 9n,
      maxPriorityFeePerGas: 1n,
    }
    const ask = async (
      changes: object,
      given: Partial<typeof evidence> = {},
      wallet: Hex = signer.address,
    ) => {
      const unsigned = serializeTransaction({ ...base, ...changes })
      const body = JSON.stringify({
        network: 'ETHEREUM',
        wallet,
        unsigned,
        payments: [{ ...evidence, ...given }],
      })
      return post(signer, '/v1/sign', body)
    }
    const platform = (destination: Hex) =>
      JSON.stringify([
        '00000000-0000-0000-0000-000000000000',
        randomUUID(),
        'x',
        'ETH',
        '1',
        'ETHEREUM',
        destination,
        null,
      ])
    const mallory = newAddress()
    for (const [refused, changes, given, wallet] of [
      [/it does not pay what was accepted: signed to 0x/, { to: mallory }],
      [/it does not pay what was accepted: signed value 2/, { value: 2n * ONE }],
      [/it does not pay what was accepted: signed data/, { data: '0x1234' }],
      [/the chain id is 5, not 1/, { chainId: 5 }],
      [/it may cost \d+ wei, above fee_max/, { maxFeePerGas: 10n ** 13n }],
      [/it takes 2000000 gas/, { gas: 2_000_000n }],
      [
        /no process with an acceptance key accepted it/,
        {},
        { accepted: evidence.accepted.replace('"1"', '"1.0"') },
      ],
      [/no process with an acceptance key accepted it/, {}, { signature: null }],
      [
        /is not among treasury_destinations/,
        { to: mallory },
        { accepted: platform(mallory), signature: null },
      ],
      [/is no wallet of ETHEREUM/, {}, {}, mallory],
      [/the journal ends at nonce 0, and nonce 7 is asked for/, { nonce: 7 }],
      [/cannot be read|JSON/, {}, { accepted: '{}' }],
    ] as [RegExp, object, Partial<typeof evidence>?, Hex?][]) {
      const { status, body } = await ask(changes, given, wallet)
      expect([status, body.refused], String(refused)).toEqual([409, expect.stringMatching(refused)])
    }
    expect(await signer.client.status()).toMatchObject([{ next_nonce: 0 }])
    expect((await ask({})).status).toBe(200)
    // The same again is the same signature; another nonce would be another payment.
    expect((await ask({})).status).toBe(200)
    expect(await ask({ nonce: 1 })).toMatchObject({
      status: 409,
      body: { refused: expect.stringMatching(/was signed with nonce 0/) as string },
    })
    // The nonce is used for nothing else, though it is to cold storage.
    const text = platform(cold)
    const toCold = {
      accepted: text,
      signature: sign(null, Buffer.from(text), acceptanceKey).toString('base64url'),
    }
    expect((await ask({ to: cold, nonce: 1 }, { accepted: text, signature: null })).body.refused).toMatch(
      /^no process with an acceptance key/,
    )
    expect(await ask({ to: cold }, toCold)).toMatchObject({
      status: 409,
      body: { refused: expect.stringMatching(/^nonce 0 was used for transfer/) as string },
    })
    expect((await ask({ to: cold, nonce: 1 }, toCold)).status).toBe(200)
    await writeFile(signer.stopFile, '')
    expect((await ask({})).body.refused).toMatch(/^everything is stopped by/)
    await cancelAll(customer, [made])
  })
})

test('what people approved is applied once: a transfer has no second signature while the first may be mined', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const made = await withdraw(customer, '1')
  const evidence = (await evidenceOf(service.db, customer.customer_id, [made.id])).get(made.id)!
  const signs = async (nonce: number, maxFeePerGas = 10n ** 9n) => {
    const unsigned = serializeTransaction({
      ...{ type: 'eip1559', chainId: 1, nonce, to: made.destination_address as Hex, value: ONE },
      ...{ gas: 21_000n, maxFeePerGas, maxPriorityFeePerGas: 1n },
    })
    const body = JSON.stringify({
      network: 'ETHEREUM',
      wallet: signer.address,
      unsigned,
      payments: [evidence],
    })
    return (await post(signer, '/v1/sign', body)).status
  }
  const expires_at = inMs(1_000_000)
  const allow: JournalChange = { kind: 'ALLOW', network: 'ETHEREUM', transfer_ids: [made.id], expires_at }
  const isVoid: JournalChange = {
    ...{ kind: 'VOID', network: 'ETHEREUM', wallet: signer.address, nonces: [0], transfer_ids: [made.id] },
    expires_at,
  }
  // What was not signed is not void: its approvals would count once it is.
  await expect(approved(signer, isVoid)).rejects.toThrow('was not signed on this journal')
  await approved(signer, allow)
  expect(await signs(0)).toBe(200)
  await approved(signer, allow)
  expect(await signs(1)).toBe(409)
  // Something else has used the nonce, and people have said so once.
  await approved(signer, isVoid)
  expect(await signs(0, 2n * 10n ** 9n)).toBe(200)
  await approved(signer, isVoid)
  expect(await signs(1)).toBe(409)
  expect((await journalOf(signer)).map(({ kind }) => kind)).toEqual(['OPEN', 'ALLOW', 'SIGN', 'VOID', 'SIGN'])
  await approved(signer, { ...isVoid, expires_at: inMs(2_000_000) })
  expect(await signs(1)).toBe(200)
  await signer.close()
  // The journal says the same when it is read again.
  const again = await startSigner({ key: signer.key, journal: signer.journal })
  await approved(again, isVoid)
  await expect(approved(again, { ...allow, expires_at: inMs(2_000_000) })).rejects.toThrow('with nonce 1')
  await cancelAll(customer, [made])
})

test('one set of approvals voids a list of what was signed, and a repeat of it voids nothing', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const made = [await withdraw(customer, '1'), await withdraw(customer, '1')]
  const evidence = await evidenceOf(
    service.db,
    customer.customer_id,
    made.map(({ id }) => id),
  )
  const signs = async ({ id, destination_address }: Transfer, nonce: number) => {
    const unsigned = serializeTransaction({
      ...{ type: 'eip1559', chainId: 1, nonce, to: destination_address as Hex, value: ONE },
      ...{ gas: 21_000n, maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n },
    })
    const body = JSON.stringify({
      network: 'ETHEREUM',
      wallet: signer.address,
      unsigned,
      payments: [evidence.get(id)!],
    })
    return (await post(signer, '/v1/sign', body)).status
  }
  const [one, two] = made as [Transfer, Transfer]
  const areVoid: JournalChange = {
    ...{ kind: 'VOID', network: 'ETHEREUM', wallet: signer.address },
    ...{ nonces: [0, 1], transfer_ids: [one.id, two.id], expires_at: inMs(1_000_000) },
  }
  expect(await signs(one, 0)).toBe(200)
  // One that was not signed lets none of them be voided.
  await expect(approved(signer, areVoid)).rejects.toThrow('was not signed on this journal')
  expect(await signs(one, 2)).toBe(409)
  expect(await signs(two, 1)).toBe(200)
  const swapped = { ...areVoid, nonces: [1, 0] }
  await expect(approved(signer, swapped)).rejects.toThrow(/was signed with nonce 0 of/)
  for (const nonces of [[0], [0, 1, 2], 0, undefined])
    await expect(approved(signer, { ...areVoid, nonces } as JournalChange)).rejects.toThrow('a change has')
  await approved(signer, areVoid)
  expect([await signs(one, 2), await signs(two, 3)]).toEqual([200, 200])
  await approved(signer, areVoid)
  expect([await signs(one, 4), await signs(two, 4)]).toEqual([409, 409])
  await cancelAll(customer, made)
})

async function post({ socket }: Pick<Running, 'socket'>, path: string, body: string) {
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ connect: { socketPath: socket } })
  const reply = await request(`http://signer${path}`, { dispatcher, method: 'POST', body })
  return { status: reply.statusCode, body: (await reply.body.json()) as Record<string, string> }
}

test('a lost journal signs nothing until two people open it; two signers with journals of their own pay nothing twice', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const before = [await withdraw(customer, '1'), await withdraw(customer, '1')]
  await settle(networks, before)
  const restored = join(folder, 'restored.journal')
  await copyFile(signer.journal, restored)
  const after = await withdraw(customer, '1')
  await settle(networks, [after])
  await signer.close()

  // Restored from a backup: one transaction is missing.
  const older = await startSigner({ key: signer.key, journal: restored })
  // Empty: a second signer by mistake, or a lost one.
  const empty = await startSigner({ key: signer.key })
  // Between what was lost and what comes now.
  const transfersFrom = inMs(0)
  const waiting = await withdraw(customer, '1')
  const [head] = await knownHeads()
  for (const { client } of [older, empty]) {
    await step(networksOn(signer, client))
    expect((await standing([waiting]))[0]).toEqual({
      state: 'HELD',
      code: 'SIGNER_REFUSES',
      detail: expect.stringMatching(
        `^the signer refuses it: its journal lacks .*'bursar signer open --after ${head}'`,
      ) as string,
    })
  }
  // The opening names what the worker knows: one without it, or with something else, begins nothing.
  for (const after of [[], ['0'.repeat(32)]]) {
    await approved(older, openAt(signer.address, 3, transfersFrom, after))
    await step(networksOn(signer, older.client))
    expect((await standing([waiting]))[0]!.detail).toContain('its journal lacks')
  }
  const change = openAt(signer.address, 3, transfersFrom, [head!])
  await expect(empty.client.change(change, approvalsOf(change, 1))).rejects.toThrow(
    '2 approvers must sign this, and 1 have',
  )
  await expect(empty.client.change({ ...change, next_nonce: 2 }, approvalsOf(change, 2))).rejects.toThrow(
    '2 approvers must sign this, and 0 have',
  )
  for (const expires_at of [inMs(-1), inMs(90_000_000)])
    await expect(approved(empty, { ...change, expires_at })).rejects.toThrow('within the next 24 hours')
  await expect(approved(empty, { ...change, transfers_from: inMs(1_000_000) })).rejects.toThrow(
    'transfers_from is in the future',
  )
  await approved(empty, change)
  // A nonce from before can be used up, where the database has given it to something.
  const fill = { kind: 'FILL' as const, network: 'ETHEREUM', wallet: signer.address, nonce: 1, gas: 21_000 }
  expect(
    await approved(empty, { ...fill, max_fee_per_gas: '1', expires_at: inMs(1_000_000) }),
  ).toHaveProperty('signed')
  await settle(networksOn(signer, empty.client), [waiting])
  // A thief of the worker asks for what was paid before the journal was lost, which it does not know.
  const evidence = (await evidenceOf(service.db, customer.customer_id, [after.id])).get(after.id)!
  const [refused] = await empty.client.check('ETHEREUM', [evidence])
  expect(refused).toMatch(
    /^transfer .* is from before .*, and may have been signed on a journal that was lost/,
  )
  // The other one has not followed, and signs nothing any more.
  const next = await withdraw(customer, '1')
  await step(networksOn(signer, older.client))
  expect((await standing([next]))[0]!.detail).toContain('its journal lacks')
  await settle(networksOn(signer, empty.client), [next])
  await requirePaidOnce(signer, [...before, after, waiting, next])
  // People may say that it was not paid.
  const areUnpaid = (...made: Transfer[]): JournalChange => ({
    ...{ kind: 'ALLOW', network: 'ETHEREUM', transfer_ids: made.map(({ id }) => id) },
    expires_at: inMs(1_000_000),
  })
  await expect(approved(empty, areUnpaid(after, next))).rejects.toThrow(/was signed with nonce 4 of/)
  await approved(empty, areUnpaid(after, before[0]!))
  expect(await empty.client.check('ETHEREUM', [evidence])).toEqual([null])
})

test('two signers with copies of one journal do not both let out what the windows allow', async () => {
  const windows = [{ asset: 'ETH', period_seconds: 3_600, amount: '1.5' }]
  const [customer, keys] = [await newCustomer(service), [generatePrivateKey(), generatePrivateKey()]]
  const wallets = await Promise.all(
    keys.map(async (key, index) => {
      const file = join(folder, `${randomUUID()}.${index}`)
      await writeFile(file, key, { mode: 0o600 })
      return { file }
    }),
  )
  const first = await startSigner({ windows, wallets })
  const copied = join(folder, `${randomUUID()}.journal`)
  await copyFile(first.journal, copied)
  const second = await startSigner({ windows, wallets, journal: copied })
  const paid = await withdraw(customer, '1')
  await settle(networksOn({ address: first.address }, first.client), [paid])
  // This wallet has paid, and would not be taken: the other one is as it was in the copy.
  const waiting = await withdraw(customer, '1')
  await anvil.chain.setBalance({ address: first.address, value: 0n })
  await step(networksOn(first, second.client))
  expect(await standing([waiting])).toMatchObject([
    { state: 'HELD', code: 'SIGNER_REFUSES', detail: expect.stringContaining('its journal lacks') as string },
  ])
  const evidence = (await evidenceOf(service.db, customer.customer_id, [waiting.id])).get(waiting.id)!
  for (const journal_heads of [['x'], 'x', [1], {}]) {
    const question = { network: 'ETHEREUM', journal_heads, ...evidence }
    const { body } = await post(second, '/v1/check', JSON.stringify({ payments: [question] }))
    expect(body.refused).not.toEqual([null])
  }
  await cancelAll(customer, [waiting])
})

test('a database that was restored knows an older end of the journal, and pays on', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const made: Transfer[] = []
  const heads: string[] = []
  for (let n = 0; n < 2; n++) {
    made.push(await withdraw(customer, '1'))
    await settle(networks, made.slice(n))
    heads.push(...(await knownHeads()))
  }
  expect(new Set(heads).size).toBe(2)
  await knowHead(heads[0]!)
  made.push(await withdraw(customer, '1'))
  await settle(networks, made.slice(2))
  await requirePaidOnce(signer, made)
})

test('a nonce that the signer will not sign is used up by its approvers, and holds up no more than what has it', async () => {
  const windows = [{ asset: 'ETH', period_seconds: 3_600, amount: '1' }]
  const [customer, signer] = [await newCustomer(service), await startSigner({ windows })]
  // The rules were others when these were checked.
  const lenient: SignerClient = {
    ...signer.client,
    check: (_, evidence) => Promise.resolve(evidence.map(() => null)),
  }
  const refused = await withdraw(customer, '2')
  const behind = await withdraw(customer, '0.2')
  await step(networksOn(signer, lenient))
  await step(networksOn(signer, lenient))
  expect(await standing([refused, behind])).toMatchObject([
    { state: 'ASKED', code: 'SIGNER_REFUSES', detail: expect.stringContaining('more ETH') as string },
    { state: 'ASKED', code: 'SIGNER_REFUSES', detail: expect.stringContaining('ends at nonce 0') as string },
  ])
  for (const { id } of [refused, behind])
    await service.owner.query(
      `update network_transactions set signed_at = (select clock_timestamp() - interval '2 minutes')
       where $1 = any (transfer_ids)`,
      [id],
    )
  const later = await withdraw(customer, '0.1')
  const networks = networksOn(signer, signer.client)
  await step(networks)
  expect(await standing([later])).toMatchObject([
    {
      state: 'HELD',
      detail: expect.stringMatching(/^the signer has not signed nonce 0 for \d+ s/) as string,
    },
  ])
  const fill = {
    ...{ kind: 'FILL' as const, network: 'ETHEREUM', wallet: signer.address, nonce: 0 },
    ...{ gas: 21_000, max_fee_per_gas: String(10n ** 11n), expires_at: inMs(1_000_000) },
  }
  await expect(approved(signer, { ...fill, max_fee_per_gas: String(10n ** 14n) })).rejects.toThrow('fee_max')
  await expect(approved(signer, { ...fill, nonce: 7 })).rejects.toThrow('the journal ends at nonce 0')
  await expect(approved(signer, { ...fill, wallet: newAddress() })).rejects.toThrow('is no wallet of')
  const { signed } = await approved(signer, fill)
  // A lost answer is asked for again: no further line.
  expect(await approved(signer, fill)).toMatchObject({ signed })
  expect((await journalOf(signer)).map(({ kind }) => kind)).toEqual(['OPEN', 'FILL'])
  await anvil.chain.sendRawTransaction({ serializedTransaction: signed as Hex })
  await settle(networks, [behind, later])
  for (let round = 1; round <= 3; round++) await step(networks)
  expect(await standing([refused])).toMatchObject([{ state: 'HELD', code: 'SIGNER_REFUSES' }])
  // Allowed after all, it is paid with another nonce.
  await signer.close()
  const allowing = await startSigner({ key: signer.key, journal: signer.journal })
  await settle(networksOn(signer, allowing.client), [refused])
  await requirePaidOnce(signer, [refused, behind, later])
})

test('while the signer is asked for a higher fee, what it has signed before is followed to its end', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const silent = {
    ...signer.client,
    ask: () => Promise.reject(new NodeFailure('the signer does not answer')),
  }
  const made = await withdraw(customer, '1')
  await anvil.chain.setAutomine(false)
  try {
    for (let round = 1; round <= 2; round++) await step(networks)
    await anvil.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 20n * 10n ** 9n })
    await anvil.chain.mine({ blocks: 1 })
    for (let round = 1; round <= 2; round++) await step(networksOn(signer, silent))
    expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_DOWN' }])
    // A node that had kept it mines it after all.
    const { rows } = await service.db.query<{ raw_transaction: Buffer }>(
      'select raw_transaction from replaced_transactions where transfer_id = $1',
      [made.id],
    )
    await anvil.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n })
    await anvil.chain.mine({ blocks: 1 })
    await anvil.chain.sendRawTransaction({
      serializedTransaction: `0x${rows[0]!.raw_transaction.toString('hex')}`,
    })
    await settle(networksOn(signer, silent), [made])
  } finally {
    await anvil.chain.setAutomine(true)
  }
  await requirePaidOnce(signer, [made])
})

test('operators see each wallet of a signer, and why it signs nothing', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const statusOf = (address: Hex, client: SignerClient) =>
    networksOn({ address }, client).get('ETHEREUM')!.status!()
  const lanes = async (address: Hex, client: SignerClient) => (await statusOf(address, client)).lanes
  const free = {
    lane: signer.address,
    in_flight: 0,
    held: { ETH: '100', USDG: '1000' },
    journal: { next_nonce: 0, ahead: 0 },
  }
  const [lane] = (await lanes(signer.address, signer.client))!
  expect(lane).toMatchObject(free)
  expect(lane).not.toHaveProperty('blocked')
  const other = newAddress()
  expect(await lanes(other, signer.client)).toMatchObject([
    { lane: other, blocked: { code: 'SIGNER_REFUSES' } },
  ])
  const made = await withdraw(customer, '1')
  await settle(networksOn(signer, signer.client), [made])
  await service.db.query('update evm_nonces set next_nonce = 0 where address = $1', [signer.address])
  // A database that was restored from an older backup.
  expect(await lanes(signer.address, signer.client)).toMatchObject([
    { journal: { next_nonce: 1, ahead: 1 }, blocked: { code: 'UNKNOWN_SPENDS' } },
  ])
  await service.db.query('update evm_nonces set next_nonce = 1 where address = $1', [signer.address])
  // The journal was lost.
  const empty = await startSigner({ key: signer.key })
  expect(await lanes(signer.address, empty.client)).toMatchObject([
    { blocked: { code: 'SIGNER_REFUSES', detail: "its journal is not opened: 'bursar signer open'" } },
  ])
  await approved(empty, openAt(signer.address, 0))
  expect(await statusOf(signer.address, empty.client)).toMatchObject({
    signer: { reachable: true },
    lanes: [
      {
        journal: { next_nonce: 0, ahead: -1 },
        blocked: {
          code: 'SIGNER_REFUSES',
          detail: expect.stringMatching(
            /^the signer's journal ends at nonce 0, and the chain has 1 /,
          ) as string,
        },
      },
    ],
  })
  await empty.close()
  await signer.close()
  expect(await statusOf(signer.address, signer.client)).toMatchObject({
    signer: { reachable: false, error: expect.stringMatching(/^the signer does not answer/) as string },
  })
  expect(await lanes(signer.address, signer.client)).toMatchObject([
    {
      blocked: {
        code: 'SIGNER_DOWN',
        detail: expect.stringMatching(/^the signer does not answer/) as string,
      },
    },
  ])
})

test('a row that the database role makes ASKED is not signed once its withdrawal has ended', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const made = await withdraw(customer, '1')
  const silent = {
    ...signer.client,
    ask: () => Promise.reject(new NodeFailure('the signer does not answer')),
  }
  const probe = await withdraw(customer, '1')
  await cancelAll(customer, [made])
  await step(networksOn(signer, silent))
  const { rows } = await service.db.query<{ raw_transaction: Buffer }>(
    'select raw_transaction from outgoing_transfers where transfer_id = $1',
    [probe.id],
  )
  const unsigned = parse(rows[0]!.raw_transaction)
  const raw = Buffer.concat([
    rows[0]!.raw_transaction.subarray(0, 21),
    Buffer.from(
      serializeTransaction({ ...unsigned, nonce: 1, to: made.destination_address as Hex }).slice(2),
      'hex',
    ),
  ])
  await service.db.query(
    `update outgoing_transfers set state = 'ASKED', raw_transaction = $2, crypto_tx_hash = 'forged', due_at = now()
     where transfer_id = $1`,
    [made.id, raw],
  )
  for (let round = 1; round <= 4; round++) await step(networks)
  expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'NOT_ACCEPTED' }])
  expect(await balance(made.destination_address as Hex)).toBe(0n)
  // Put right by the schema's owner.
  await service.owner.query(
    `update outgoing_transfers set state = 'DONE', due_at = null where transfer_id = $1`,
    [made.id],
  )
  await settle(networks, [probe])
  await requirePaidOnce(signer, [probe])
})

test('a journal is open in one process; where it is in two, each nonce is signed for one payment', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  await expect(Journal.open(signer.journal, new Map())).rejects.toThrow(
    `another process listens at ${signer.journal}.lock`,
  )
  // As on another machine that shares the folder.
  await rm(`${signer.journal}.lock`)
  const second = await startSigner({ key: signer.key, journal: signer.journal })
  const made: Transfer[] = []
  for (let n = 0; n < 6; n++) made.push(await withdraw(customer, '1'))
  let turn = 0
  const both = {
    ...signer.client,
    ask: (...asked: Parameters<SignerClient['ask']>) => [signer, second][turn++ % 2]!.client.ask(...asked),
  }
  await settle(networksOn(signer, both), made)
  await requirePaidOnce(signer, made)
  expect(await second.client.status()).toEqual(await signer.client.status())
})

describe('killed', () => {
  test.each(FAILURES)('%s each step of the worker, each payment is made once', async (failure) => {
    const [customer, signer] = [await newCustomer(service), await startSigner()]
    await dieAtEachStep(failure, 15, async (failures) => {
      const made = [await withdraw(customer, '0.5'), await withdraw(customer, '0.5')]
      const own = networksOn(signer, signer.client, failures.database(service.db))
      for (let round = 1; round <= 12 && !failures.died; round++) {
        await step(own, failures.database(service.db)).catch(() => undefined)
        await anvil.chain.mine({ blocks: 1 })
      }
      await settle(networksOn(signer, signer.client), made)
      await requirePaidOnce(signer, made)
    })
  })

  test.each(['before its journal is written', 'before its answer leaves'])('the signer, %s', async (when) => {
    const [customer, signer] = [await newCustomer(service), await startSigner()]
    const made = [await withdraw(customer, '1'), await withdraw(customer, '1')]
    let deaths = 0
    const dying: SignerClient = {
      ...signer.client,
      async ask(...asked) {
        if (deaths++ % 2 === 1) return signer.client.ask(...asked)
        if (when === 'before its answer leaves') await signer.client.ask(...asked)
        throw new NodeFailure('the signer does not answer: killed')
      },
    }
    await settle(networksOn(signer, dying), made)
    expect(deaths).toBeGreaterThan(2)
    await requirePaidOnce(signer, made)
  })
})

/** Starts a process of the program in a signer's place. It is killed when the test ends. */
async function startProcess(signer: Running, environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, [PROGRAM, 'signer', 'start', '--config', signer.path, '--json'], {
    env: { PATH: process.env.PATH, KEY: signer.key, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(async () => void child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const ready = JSON.parse(line) as object
  expect(ready).toMatchObject({ ready: true, wallets: [{ wallet: signer.address }] })
  return Object.assign(child, { ready })
}

test('kill -9 of its process, again and again, pays nothing twice', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  await signer.close()
  let child = await startProcess(signer)
  const networks = networksOn(signer, await signerClient({ socket: signer.socket }))
  const made: Transfer[] = []
  for (let n = 0; n < 5; n++) made.push(await withdraw(customer, '1'))
  for (let kills = 0; kills < 3; kills++) {
    const working = step(networks)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await working
    child = await startProcess(signer)
    await step(networks)
  }
  await settle(networks, made)
  await requirePaidOnce(signer, made)
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

/** The lines of a signer's journal. */
const journalOf = async ({ journal }: Running) =>
  (await readFile(journal, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { kind: string; nonce?: number })

/** What holds for each key that signs the same question with other bytes each time. Each test has a key of its own. */
function describeBackEnd(newKey: () => Promise<object>): void {
  test('pays each withdrawal once, and has each signature in its journal', async () => {
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets: [await newKey()] })]
    const made = [await withdraw(customer, '1'), await withdraw(customer, '5', { asset: 'USDG' })]
    await settle(networksOn(signer, signer.client), made)
    await requirePaidOnce(signer, made)
    expect((await journalOf(signer)).map(({ kind }) => kind)).toEqual([
      'OPEN',
      'SIGN',
      'SIGNATURE',
      'SIGN',
      'SIGNATURE',
    ])
  })

  test('its answer is lost, its signer is killed, and a thief broadcasts the bytes: the worker follows them', async () => {
    const wallets = [await newKey()]
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets })]
    const made = await withdraw(customer, '1')
    let lost: Hex = '0x'
    const losing: SignerClient = {
      ...signer.client,
      async ask(...asked) {
        const answer = await signer.client.ask(...asked)
        if ('signed' in answer) lost = answer.signed as Hex
        throw new NodeFailure('the signer does not answer: killed')
      },
    }
    await step(networksOn(signer, losing))
    expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_DOWN' }])
    await signer.close()
    await anvil.chain.sendRawTransaction({ serializedTransaction: lost })
    const again = await startSigner({ wallets, journal: signer.journal })
    await settle(networksOn(again, again.client), [made])
    await requirePaidOnce(again, [made])
    const { rows } = await service.db.query('select crypto_tx_hash as hash from transfers where id = $1', [
      made.id,
    ])
    expect(rows).toEqual([{ hash: keccak256(lost) }])
    expect((await journalOf(again)).map(({ kind }) => kind)).toEqual(['OPEN', 'SIGN', 'SIGNATURE'])
  })

  test('two signers that share a journal answer with the same bytes', async () => {
    const wallets = [await newKey()]
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets })]
    await rm(`${signer.journal}.lock`)
    const second = await startSigner({ wallets, journal: signer.journal })
    const made = await withdraw(customer, '1')
    const answers: unknown[] = []
    const both: SignerClient = {
      ...signer.client,
      async ask(...asked) {
        const same = await Promise.all([signer, second].map(({ client }) => client.ask(...asked)))
        answers.push(...same)
        return same[0]!
      },
    }
    await settle(networksOn(signer, both), [made])
    expect(answers).toHaveLength(2)
    expect(answers[1]).toEqual(answers[0])
    await requirePaidOnce(signer, [made])
  })
}

describe('a key in AWS KMS', () => {
  let kms: Kms
  beforeAll(async () => {
    kms = await startKms()
  })
  afterAll(() => kms.stop())
  const newKey = async () => {
    kms.point()
    return kms.section
  }
  describeBackEnd(newKey)

  test('kill -9 between the line of the journal and the signature: the same question is signed, once', async () => {
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets: [await newKey()] })]
    await signer.close()
    const child = await startProcess(signer, kms.environment)
    const networks = networksOn(signer, signer.client)
    const made = await withdraw(customer, '1')
    kms.fail('hangs')
    const working = step(networks)
    await expect.poll(() => readFile(signer.journal, 'utf8')).toContain('"SIGN"')
    child.kill('SIGKILL')
    await working
    expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_DOWN' }])
    kms.fail()
    await startProcess(signer, kms.environment)
    await settle(networks, [made])
    await requirePaidOnce(signer, [made])
    expect((await journalOf(signer)).map(({ kind }) => kind)).toEqual(['OPEN', 'SIGN', 'SIGNATURE'])
  })

  test('what was stopped while it was asked does not leave', async () => {
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets: [await newKey()] })]
    const networks = networksOn(signer, signer.client)
    const made = await withdraw(customer, '1')
    kms.fail('hangs')
    const asked = kms.requests.length
    const working = step(networks)
    await expect.poll(() => kms.requests.length).toBeGreaterThan(asked)
    await writeFile(signer.stopFile, '')
    kms.fail()
    await working
    const detail = `the signer refuses it: everything is stopped by ${signer.stopFile}: it is there`
    expect(await standing([made])).toEqual([{ state: 'ASKED', code: 'SIGNER_REFUSES', detail }])
    expect((await journalOf(signer)).map(({ kind }) => kind)).toEqual(['OPEN', 'SIGN'])
    await rm(signer.stopFile)
    await settle(networks, [made])
    await requirePaidOnce(signer, [made])
  })

  test('while it is down, its wallet takes no new withdrawals, and others of the network pay', async () => {
    const wallets = [await newKey(), { env: 'KEY' }]
    const [customer, signer] = [await newCustomer(service), await startSigner({ wallets })]
    const networks = networksOn(signer, signer.client)
    await kms.down()
    const waiting = await withdraw(customer, '1')
    await step(networks)
    const detail = new RegExp(
      `^the signer cannot use the key of ${signer.address}: AWS KMS, key .*ECONNREFUSED`,
    )
    expect(await standing([waiting])).toEqual([
      { state: 'ASKED', code: 'SIGNER_DOWN', detail: expect.stringMatching(detail) as string },
    ])
    const others = [await withdraw(customer, '1'), await withdraw(customer, '1')]
    await settle(networks, others)
    expect(await standing([waiting])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_DOWN' }])
    await kms.up()
    await settle(networks, [waiting])
    for (const address of [signer.address, ...signer.further])
      await requirePaidOnce({ address }, [waiting, ...others])
  })
})

describe.skipIf(!HAS_SOFT_HSM)("a key in an HSM, which needs Debian's softhsm2 and opensc", () => {
  describeBackEnd(async () => (await makeToken(join(folder, randomUUID()))).section)
})

test('by hand: requests and answers are files, and the signer has no socket', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  await signer.close()
  const carried = join(folder, 'by-hand')
  const networks = networksOn(signer, signerByFiles(carried))
  const made = [await withdraw(customer, '1'), await withdraw(customer, '5', { asset: 'USDG' })]
  await step(networks)
  await step(networks)
  expect((await standing(made)).map(({ state, code }) => [state, code])).toEqual(
    made.map(() => ['ASKED', 'WAITING_SIGNATURE']),
  )
  const [requests, answers] = [join(carried, 'requests'), join(carried, 'answers')]
  const names = await readdir(requests)
  expect(names).toHaveLength(2)
  /** A command of the guide. */
  const run = async (command: string, files = names) => {
    const args = command
      .replace('/etc/bursar/signer.json', signer.path)
      .replace(' answers', ` ${answers}`)
      .replace('requests/*', files.map((name) => join(requests, name)).join(' '))
    const { code, stdout, stderr } = await runBursar([...args.split(' ').slice(1), '--json'], {
      KEY: signer.key,
    })
    const { requests: rows } = JSON.parse(stdout || '{}') as { requests?: Record<string, string>[] }
    return { code, stderr, rows: rows ?? [] }
  }
  const [show, signAll] = guideBlocks('Signing by hand', 'sh')[0]!.trim().split('\n') as [string, string]
  const shown = await run(show)
  expect(
    shown.rows.map(({ transfer_id, amount, asset, outcome }) => [transfer_id, amount, asset, outcome]),
  ).toEqual(made.map(({ id, asset }) => [id, asset === 'ETH' ? '1' : '5', asset, 'asked']))
  expect(await readdir(answers)).toEqual([])

  // Changed on the way: nothing is signed that was not accepted.
  const [first] = shown.rows as [Record<string, string>]
  const path = first.file!
  const request = JSON.parse(await readFile(path, 'utf8')) as { unsigned: Hex }
  const changed = serializeTransaction({ ...parse(request.unsigned), to: newAddress() })
  const forged = join(requests, 'forged')
  await writeFile(forged, JSON.stringify({ ...request, unsigned: changed }))
  expect(await run(signAll, ['forged'])).toMatchObject({
    code: 1,
    rows: [{ outcome: expect.stringMatching(/^refused: it does not pay what was accepted/) as string }],
  })
  await writeFile(forged, JSON.stringify({ ...request, wallet: '\u001b[2J' }))
  expect(await run(show, ['forged'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is no request') as string,
  })
  expect(await readdir(answers)).toEqual([])

  // The answer of another key stops its own payment alone.
  const answer = join(answers, basename(path))
  const other = privateKeyToAccount(generatePrivateKey())
  await writeFile(answer, await other.signTransaction(parse(request.unsigned)))
  await step(networks)
  expect(await standing(made)).toMatchObject([{ code: 'SIGNER_REFUSES' }, { code: 'WAITING_SIGNATURE' }])
  expect((await run(signAll)).rows.map(({ outcome }) => outcome)).toEqual(['signed', 'signed'])
  const bytes = async () => (await readFile(answer, 'utf8')).split('\n')[0]
  const signed = await bytes()
  expect(await run(signAll)).toMatchObject({ code: 0 })
  expect(await bytes()).toBe(signed)
  await settle(networks, made)
  await requirePaidOnce(signer, made)

  // Its journal is lost: people open it on its machine.
  await rm(signer.journal)
  const next = await withdraw(customer, '1')
  await step(networks)
  const waiting = (await readdir(requests)).filter((name) => ![...names, 'forged'].includes(name))
  expect((await run(signAll, waiting)).rows[0]!.outcome).toMatch(/^refused: its journal lacks/)
  const [head] = await knownHeads()
  const change = openAt(signer.address, 2, undefined, [head!])
  const opening = [
    ...['signer', 'open', '--network', 'ETHEREUM', '--wallet', signer.address, '--nonce', '2'],
    ...['--transfers-from', change.transfers_from, '--after', head!, '--expires', change.expires_at],
  ]
  for (const count of [1, 2]) {
    const approvals = join(folder, 'approvals')
    const printed = approvalsOf(change, count).map(({ jws }) => `--expires ${change.expires_at}\n${jws}\n`)
    await writeFile(approvals, printed.join(''))
    const making = [...opening, '--approvals', approvals, '--config', signer.path]
    const opened = await runBursar(making, { KEY: signer.key })
    expect(opened.code).toBe(count === 2 ? 0 : 1)
  }
  expect(await run(signAll, waiting)).toMatchObject({ code: 0, rows: [{ outcome: 'signed' }] })
  await settle(networks, [next])
  await requirePaidOnce(signer, [...made, next])
})

/** The hash of what was signed for a withdrawal last. */
async function hashOf({ id }: Transfer): Promise<Hex> {
  const { rows } = await service.db.query<{ hash: Hex }>(
    'select crypto_tx_hash as hash from outgoing_transfers where transfer_id = $1',
    [id],
  )
  return rows[0]!.hash
}

test('a higher fee is the same payment: one nonce, and its amount counts once', async () => {
  const windows = [
    { asset: 'ETH', period_seconds: 3_600, amount: '1.5' },
    { asset: 'USDG', period_seconds: 3_600, amount: '900' },
  ]
  const [customer, signer] = [await newCustomer(service), await startSigner({ windows })]
  const networks = networksOn(signer, signer.client)
  const made = await withdraw(customer, '1')
  await anvil.chain.setAutomine(false)
  try {
    for (let round = 1; round <= 2; round++) await step(networks)
    expect(await standing([made])).toMatchObject([{ state: 'BROADCAST' }])
    await anvil.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 20n * 10n ** 9n })
    await anvil.chain.mine({ blocks: 1 })
    await settle(networks, [made])
  } finally {
    await anvil.chain.setAutomine(true)
  }
  await requirePaidOnce(signer, [made])
  expect((await journalOf(signer)).map(({ kind, nonce }) => [kind, nonce])).toEqual([
    ['OPEN', undefined],
    ['SIGN', 0],
    ['SIGN', 0],
  ])
})

test('a payment whose replacement the signer refuses stays on the air as it was, and is mined when fees fall', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const made = await withdraw(customer, '1')
  await anvil.chain.setAutomine(false)
  try {
    for (let round = 1; round <= 2; round++) await step(networks)
    const hash = await hashOf(made)
    await anvil.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 20n * 10n ** 9n })
    await anvil.chain.mine({ blocks: 1 })
    const refusing = networksOn(signer, {
      ...signer.client,
      ask: () => Promise.resolve({ reason: { code: 'SIGNER_REFUSES', detail: 'its fee is too high' } }),
    })
    for (let round = 1; round <= 2; round++) await step(refusing)
    expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_REFUSES' }])
    await anvil.chain.dropTransaction({ hash })
    await anvil.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 8n })
    await anvil.chain.mine({ blocks: 1 })
    await step(refusing)
    expect(await anvil.chain.getTransaction({ hash })).toMatchObject({ hash, blockHash: null })
    await settle(refusing, [made])
    expect(await anvil.chain.getTransactionReceipt({ hash })).toMatchObject({ status: 'success' })
  } finally {
    await anvil.chain.setAutomine(true)
  }
  await requirePaidOnce(signer, [made])
})

test('after something else has used a nonce, its approvers void what was signed, and it is paid with another nonce', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const networks = networksOn(signer, signer.client)
  const made = await withdraw(customer, '1')
  const account = privateKeyToAccount(signer.key)
  await anvil.chain.setAutomine(false)
  try {
    for (let round = 1; round <= 2; round++) await step(networks)
    await anvil.chain.dropTransaction({ hash: await hashOf(made) })
    await createWalletClient({ account, transport: http(anvil.rpcUrl) }).sendTransaction({
      ...{ chain: null, to: newAddress(), value: 1n, nonce: 0, gas: 21_000n },
      ...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
    })
    await anvil.chain.mine({ blocks: 3 })
  } finally {
    await anvil.chain.setAutomine(true)
  }
  for (let round = 1; round <= 4; round++) await step(networks)
  expect(await standing([made])).toMatchObject([
    {
      state: 'HELD',
      code: 'SIGNER_REFUSES',
      detail: expect.stringMatching(/was signed with nonce 0 of/) as string,
    },
  ])
  const change = {
    kind: 'VOID',
    network: 'ETHEREUM',
    wallet: signer.address,
    nonces: [0],
    transfer_ids: [made.id],
    expires_at: inMs(1_000_000),
  } satisfies JournalChange
  await approved(signer, change)
  // While the new question waits, what was voided is not broadcast: a reorganisation could let it pay, too.
  const silent = networksOn(signer, {
    ...signer.client,
    ask: () => Promise.resolve({ reason: { code: 'SIGNER_DOWN', detail: 'nothing is heard' } }),
  })
  const adapter = silent.get('ETHEREUM')!
  const broadcast = vi.spyOn(adapter, 'broadcast')
  const rebroadcast = vi.spyOn(adapter, 'rebroadcast')
  for (let round = 1; round <= 3; round++) await step(silent)
  expect(await standing([made])).toMatchObject([{ state: 'ASKED', code: 'SIGNER_DOWN' }])
  for (const { mock } of [broadcast, rebroadcast])
    expect((mock.calls as unknown[][][]).flatMap(([sent]) => sent)).toEqual([])
  await settle(networks, [made])
  await requirePaidOnce(signer, [made])
})

test('over TLS, only a client with a certificate of the authority is answered', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const made = await withdraw(customer, '1')
  const path = (name: string) => join(folder, `tls-${name}`)
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder })
  for (const authority of ['ca', 'other'])
    await openssl(
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${authority}`],
      ...['-keyout', path(`${authority}-key`), '-out', path(authority)],
    )
  for (const [name, authority] of [
    ['signer', 'ca'],
    ['worker', 'ca'],
    ['stranger', 'other'],
  ] as const) {
    await openssl(
      ...[
        'req',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-subj',
        `/CN=${name}`,
        '-addext',
        'subjectAltName=IP:127.0.0.1',
      ],
      ...['-keyout', path(`${name}-key`), '-out', path(`${name}-request`)],
    )
    await openssl(
      ...['x509', '-req', '-days', '1', '-in', path(`${name}-request`), '-CA', path(authority)],
      ...[
        '-CAkey',
        path(`${authority}-key`),
        '-CAcreateserial',
        '-copy_extensions',
        'copy',
        '-out',
        path(name),
      ],
    )
  }
  const config = await readSignerConfig(signer.path, { KEY: signer.key })
  await signer.close()
  const journal = await Journal.open(signer.journal, config.networks)
  const server = await serveSigner(new Signer(config, journal), {
    ...{
      host: '127.0.0.1',
      port: 0,
      certificate: path('signer'),
      key: path('signer-key'),
      client_ca: path('ca'),
    },
  })
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
    await journal.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clientOf = (name: string) =>
    signerClient({ url, ca: path('ca'), certificate: path(name), key: path(`${name}-key`) })
  await expect((await clientOf('stranger')).status()).rejects.toThrow(/^the signer does not answer/)
  await settle(networksOn(signer, await clientOf('worker')), [made])
  await requirePaidOnce(signer, [made])
})

test('the whole service with a signer: deposits are swept, withdrawals leave, and the worker holds no key', async () => {
  const testNet = await ownAnvil(31_337)
  const { chain } = testNet
  const token = await deployToken(testNet, 6)
  const [hot, gas] = [generatePrivateKey(), generatePrivateKey()]
  const [hotWallet, gasWallet] = [hot, gas].map((key) => privateKeyToAccount(key).address) as [Hex, Hex]
  for (const address of [hotWallet, gasWallet]) await chain.setBalance({ address, value: ONE })
  const depositKeys = depositKeysOf({ mnemonic: WORDS })
  const file = (name: string) => join(folder, `whole-${name}`)
  const acceptance = newPrivateKey()
  await writeFile(file('acceptance'), JSON.stringify(acceptance))
  await writeFile(
    file('signer'),
    JSON.stringify({
      ...{ listen: file('socket'), journal: file('journal'), stop_file: file('stop'), journal_approvals: 1 },
      ...{
        acceptance_keys: [publicPartOf(acceptance)],
        approvers: [publicPartOf(approvers[0]!)],
        approvals: [],
      },
      networks: {
        ETHEREUM: {
          ...{ chain_id: 31_337, tokens: { USDG: token }, wallets: [{ env: 'KEY' }], fee_max: '0.1' },
          ...{ deposit_key: { env: 'WORDS' }, gas_wallet: { env: 'GAS' } },
          windows: ['ETH', 'USDG'].map((asset) => ({ asset, period_seconds: 60, amount: '1000' })),
        },
      },
    }),
  )
  await writeFile(
    file('networks'),
    JSON.stringify({
      ETHEREUM: {
        ...{ adapter: 'evm', rpc_url: testNet.rpcUrl, chain_id: 31_337, tokens: { USDG: token } },
        ...{
          hot_wallet_address: hotWallet,
          signer: { socket: file('socket') },
          gas_wallet_address: gasWallet,
        },
        ...{
          deposit_key: { env: 'DEPOSIT_KEY' },
          confirmations: 1,
          fee_ceiling: '100',
          sweep_minimum: { USDG: '1' },
        },
      },
    }),
  )
  const config = await readSignerConfig(file('signer'), { KEY: hot, WORDS, GAS: gas })
  const journal = await Journal.open(config.journal, config.networks)
  const server = await serveSigner(new Signer(config, journal), config.listen)
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
    await journal.close()
  })
  const opened = openAt(hotWallet, 0)
  await (await signerClient({ socket: file('socket') })).change(opened, approvalsOf(opened, 1))
  const database = await ownDatabase()
  const { customer_id, profile_id } = await createCustomer(database.db, 'Test')
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  const bursar = await ownBursar({
    ...{ DATABASE_URL: database.url, BURSAR_NETWORKS_FILE: file('networks') },
    ...{ BURSAR_ACCEPTANCE_KEY_FILE: file('acceptance'), BURSAR_WORKER_INTERVAL_MS: '100' },
    DEPOSIT_KEY: depositKeys.publicKey,
  })
  const call = await remoteCaller(bursar.address, client)
  const asked = { profile_id, crypto_network: 'ETHEREUM' }
  const { body } = await call<{ address: Hex }>('POST', '/v2/transfer/deposit-addresses', asked)
  const units = { chain: null, address: token, abi: TOKEN_ABI, functionName: 'mint' } as const
  await chain.writeContract({ ...units, args: [body.address, 50_000_000n] })
  const onChain = (address: Hex) =>
    chain.readContract({ address: token, abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] })
  await expect
    .poll(
      async () => {
        await chain.mine({ blocks: 1 })
        return onChain(hotWallet)
      },
      { timeout: 30_000, interval: 200 },
    )
    .toBe(50_000_000n)
  expect(await chain.getTransactionCount({ address: gasWallet })).toBe(1)
  expect(await chain.getTransactionCount({ address: hotWallet })).toBe(0)
  const destination_address = newAddress()
  const order = { ...asked, asset: 'USDG', amount: '20', destination_address }
  const made = await call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', order)
  expect(made.status).toBe(200)
  await expect
    .poll(
      async () => {
        await chain.mine({ blocks: 1 })
        return (await call<Transfer>('GET', `/v2/transfer/transfers/${made.body.id}`)).body.status
      },
      { timeout: 30_000, interval: 200 },
    )
    .toBe('COMPLETED')
  expect(await onChain(destination_address)).toBe(20_000_000n)
  const account = mnemonicToAccount(WORDS, { path: "m/44'/60'/0'" }).getHdKey()
  const keyForms = (key: Hex) => [Buffer.from(key.slice(2), 'hex'), ...formsOf(key.slice(2))]
  const kept = new Map([
    ['hot wallet', keyForms(hot)],
    ['gas wallet', keyForms(gas)],
    ['words', formsOf(WORDS)],
    ['deposit key', [Buffer.from(account.privateKey!), ...formsOf(account.privateExtendedKey)]],
    ['public key', formsOf(depositKeys.publicKey)],
    ['client', formsOf(client.client_id)],
  ])
  // What a worker has to know is found by the same search.
  expect(await foundIn(bursar.pid, kept)).toEqual(['client', 'public key'])
  expect(await foundIn(process.pid, kept)).toEqual(
    expect.arrayContaining(['hot wallet', 'gas wallet', 'words']),
  )
})

test('a signature by another key, and bytes of another transaction, are not taken', async () => {
  const [customer, signer] = [await newCustomer(service), await startSigner()]
  const made = await withdraw(customer, '1')
  let account = privateKeyToAccount(generatePrivateKey())
  const server = createServer((request, response) => {
    void json(request).then(async (asked) => {
      const { unsigned, payments } = asked as { unsigned?: Hex; payments?: unknown[] }
      const signed = unsigned && (await account.signTransaction(parse(unsigned)))
      response.end(JSON.stringify({ signed, refused: payments?.map(() => null) }))
    })
  })
  const socket = join(folder, 'liar')
  server.listen(socket)
  await once(server, 'listening')
  atEnd(async () => void server.close())
  for (const why of [`it is not signed by ${signer.address}`, 'it does not say where its journal ends']) {
    await step(networksOn(signer, await signerClient({ socket })))
    const detail = `the signer's answer cannot be used: ${why}`
    expect(await standing([made])).toEqual([{ state: 'ASKED', code: 'SIGNER_REFUSES', detail }])
    account = privateKeyToAccount(signer.key)
  }
  await settle(networksOn(signer, signer.client), [made])
  await requirePaidOnce(signer, [made])
})

test('its files are examined at the start: a wrong field is named, and a key is not shown', async () => {
  const { path } = await startSigner()
  const key = createPrivateKey({ key: newPrivateKey(), format: 'jwk' })
  await expect(readSignerConfig(path, {})).rejects.toThrow(
    'networks.ETHEREUM.wallets[0]: KEY is not in the environment',
  )
  await expect(readSignerConfig(path, { KEY: 'secret' })).rejects.toThrow(
    /^networks.ETHEREUM.wallets\[0\] is no private key of 32 bytes in hex$/,
  )
  expect(key.type).toBe('private')
  const text = await readFile(path, 'utf8')
  for (const [field, approvals] of [
    [
      'approvals.0 must name an asset, and an amount with its decimals',
      [{ asset: 'NONE', from: '1', required: 1 }],
    ],
    [
      'approvals.0 must name an asset, and an amount with its decimals',
      [{ asset: 'USDG', from: '0.0000000000000000001', required: 1 }],
    ],
    ['approvers names 3 keys, and 4 approvals are required', [{ asset: 'USDG', from: '1', required: 4 }]],
  ] as const) {
    await writeFile(path, JSON.stringify({ ...(JSON.parse(text) as object), approvals }))
    await expect(readSignerConfig(path, { KEY: generatePrivateKey() })).rejects.toThrow(field)
  }
  await writeFile(path, JSON.stringify({ ...(JSON.parse(text) as object), window: [] }))
  await expect(readSignerConfig(path, {})).rejects.toThrow('window is not a known field')
  const file = join(folder, 'no-journal')
  await writeFile(file, 'something else')
  await expect(Journal.open(file, new Map())).rejects.toThrow(`${file} is no journal of a signer`)
  expect(await readFile(file, 'utf8')).toBe('something else')
  await writeFile(file, '{"kind":"SIGN"}\nx\n')
  await expect(Journal.open(file, new Map())).rejects.toThrow('has a line that cannot be read')
})
