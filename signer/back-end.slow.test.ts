/*
 * Keys in devices and services: the wallet is the address of the key, a signature is checked before it leaves, it is kept and
 * repeated, and a failure leaves nothing behind.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { TransactionSerialized } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import { getAddress, parseTransaction, serializeTransaction } from 'viem/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKey, startKms, type Kms } from '../test/kms.ts'
import { guideBlocks, HAS_SOFT_HSM, makeToken } from '../test/soft-hsm.ts'
import { parse, signerOf, type EvmTransaction } from '../chains/evm/transaction.ts'
import { BackEndFailure, walletOf } from './back-end.ts'
import { evm } from './evm.ts'
import type { Wallet } from './family.ts'
import { openKms } from './kms.ts'
import { openPkcs11 } from './pkcs11.ts'
import { openWallet as openWalletOf } from './wallets.ts'

type DropFirst<All extends unknown[]> = All extends [unknown, ...infer Rest] ? Rest : never
const FIELD = 'networks.ETHEREUM.wallets[0]'
const openWallet = (...given: DropFirst<Parameters<typeof openWalletOf>>) => openWalletOf(evm, ...given)
/** Long enough for an answer on a busy machine. */
const SHORT_MS = 1_000
/** Half of a curve's signatures have a high s, and each needs its own recovery bit. */
const OFTEN = 12

const paymentOf = (nonce: number): EvmTransaction => ({
  ...{ type: 'eip1559', chainId: 1, nonce, to: privateKeyToAccount(generatePrivateKey()).address, value: 1n },
  ...{ gas: 21_000n, maxFeePerGas: 10n, maxPriorityFeePerGas: 1n },
})

/** Signatures as the journal keeps them. */
function keeping() {
  const all = new Map<Hex, Hex>()
  const keep = async (digest: Hex, signature: Hex) => {
    if (!all.has(digest)) all.set(digest, signature)
    return all.get(digest)!
  }
  return { all, find: async (digest: Hex) => all.get(digest), keep }
}

async function requireSigns(wallet: Wallet): Promise<void> {
  for (let nonce = 0; nonce < OFTEN; nonce++) {
    const payment = paymentOf(nonce)
    const signed = (await wallet.sign(serializeTransaction(payment), keeping())) as TransactionSerialized
    expect(await signerOf(signed)).toBe(wallet.address)
    const { to, ...back } = parse(signed)
    expect({ ...back, to: getAddress(to) }).toEqual(payment)
    // Nodes take no signature with a high s.
    expect(BigInt(parseTransaction(signed as `0x02${string}`).s!)).toBeLessThan(2n ** 255n)
  }
}

/** The same question gets the same bytes, though the key would sign it with others. */
async function requireKeeps(wallet: Wallet): Promise<void> {
  const [payment, kept] = [paymentOf(0), keeping()]
  const [first, second] = await Promise.all([
    wallet.sign(serializeTransaction(payment), kept),
    wallet.sign(serializeTransaction(payment), kept),
  ])
  expect(second).toBe(first)
  expect(kept.all.size).toBe(1)
  expect(await wallet.sign(serializeTransaction(payment), keeping())).not.toBe(first)
  // Another signer of the same journal was first.
  const other = keeping()
  const won = await wallet.sign(serializeTransaction(payment), other)
  expect(await wallet.sign(serializeTransaction(payment), { ...other, find: async () => undefined })).toBe(
    won,
  )
}

/** No signature is kept, and the same question is signed afterwards. */
async function requireFails(wallet: Wallet, message: RegExp, mend: () => unknown): Promise<void> {
  const [payment, kept] = [paymentOf(0), keeping()]
  const failing = wallet.sign(serializeTransaction(payment), kept)
  await expect(failing).rejects.toThrow(BackEndFailure)
  await expect(failing).rejects.toThrow(message)
  expect(kept.all.size).toBe(0)
  await mend()
  expect(
    await signerOf((await wallet.sign(serializeTransaction(payment), kept)) as TransactionSerialized),
  ).toBe(wallet.address)
}

test('a wallet has its key in one place, and at the address that the file gives', async () => {
  const key = generatePrivateKey()
  const { address } = privateKeyToAccount(key)
  for (const section of [{}, { env: 'KEY', file: '/key' }])
    await expect(openWallet(FIELD, section, {})).rejects.toThrow(
      `${FIELD} must have one of env, file, pkcs11 and kms`,
    )
  expect((await openWallet(FIELD, { env: 'KEY', address }, { KEY: key })).address).toBe(address)
  const other = privateKeyToAccount(generatePrivateKey()).address
  await expect(openWallet(FIELD, { env: 'KEY', address: other }, { KEY: key })).rejects.toThrow(
    `${FIELD}.address is not the address of its key: ${address}`,
  )
})

describe('a key in AWS KMS', () => {
  let kms: Kms
  beforeAll(async () => {
    kms = await startKms()
  })
  afterAll(() => kms.stop())

  test('signs for the address of its public key', async () => {
    const wallet = await openWallet(FIELD, kms.section, {})
    expect((await openWallet(FIELD, { ...kms.section, address: wallet.address }, {})).address).toBe(
      wallet.address,
    )
    await requireSigns(wallet)
    await requireKeeps(wallet)
    const other = privateKeyToAccount(generatePrivateKey()).address
    await expect(openWallet(FIELD, { ...kms.section, address: other }, {})).rejects.toThrow(
      `${FIELD}.address is not the address of its key: ${wallet.address}`,
    )
  })

  test('as the guide names it', async () => {
    const [block] = guideBlocks('A key in AWS KMS', 'json')
    const section = JSON.parse(block!) as typeof kms.section
    const { endpoint } = kms.section.kms
    await requireSigns(await openWallet(FIELD, { kms: { ...section.kms, endpoint } }, {}))
  })

  test.each([
    ['throttled', /: ThrottlingException: Rate exceeded$/],
    ['another digest', /gave no signature by the key of 0x/],
    ['no signature', /gave no signature by the key of 0x/],
  ] as const)('%s: nothing is kept, and the same is signed afterwards', async (fault, message) => {
    const wallet = await openWallet(FIELD, kms.section, {})
    kms.fail(fault)
    await requireFails(wallet, message, () => kms.fail())
  })

  test('that is down', async () => {
    const wallet = await openWallet(FIELD, kms.section, {})
    await kms.down()
    await requireFails(wallet, /: Error: connect ECONNREFUSED/, () => kms.up())
  })

  test('that hangs holds up those behind it once', async () => {
    const wallet = await walletOf(await openKms(kms.section.kms, SHORT_MS))
    kms.fail('hangs')
    const asked = kms.requests.length
    const waiting = [0, 1, 2].map((nonce) => wallet.sign(serializeTransaction(paymentOf(nonce)), keeping()))
    const results = await Promise.allSettled(waiting)
    expect(results.map((one) => one.status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(kms.requests.slice(asked)).toEqual(['Sign'])
    await requireFails(wallet, /no answer within 1 s$/, () => kms.fail())
  })

  test('whose alias names another key later signs nothing', async () => {
    const wallet = await openWallet(FIELD, kms.section, {})
    const own = kms.point()
    await requireFails(wallet, /gave no signature by the key of 0x/, () => kms.point(own))
  })

  test('that cannot sign, or is of another curve, is seen at the start', async () => {
    kms.fail('throttled')
    await expect(openWallet(FIELD, kms.section, {})).rejects.toThrow(
      `${FIELD}.kms: AWS KMS, key alias/ethereum-hot: ThrottlingException: Rate exceeded`,
    )
    kms.fail()
    const section = { kms: { ...kms.section.kms, key_id: 'alias/none' } }
    await expect(openWallet(FIELD, section, {})).rejects.toThrow(/: NotFoundException: /)
    const own = kms.point(newKey('prime256v1'))
    await expect(openWallet(FIELD, kms.section, {})).rejects.toThrow(/ has no public key of secp256k1$/)
    kms.point(own)
  })

  test('is refused to other credentials', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'another'
    try {
      await expect(openWallet(FIELD, kms.section, {})).rejects.toThrow(/: InvalidSignatureException: /)
    } finally {
      Object.assign(process.env, kms.environment)
    }
  })
})

describe.skipIf(!HAS_SOFT_HSM)("a key in an HSM, which needs Debian's softhsm2 and opensc", () => {
  let folder: string
  let token: Awaited<ReturnType<typeof makeToken>>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bursar-token-'))
    token = await makeToken(folder)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** The environment in which this runs before the tool. */
  const toolAfter = async (name: string, command: string) => {
    const { stdout } = await promisify(execFile)('which', ['pkcs11-tool'])
    const own = join(folder, name)
    await mkdir(own)
    const script = `#!/bin/sh\n${command}\nexec ${stdout.trim()} "$@"\n`
    await writeFile(join(own, 'pkcs11-tool'), script, { mode: 0o755 })
    return { ...token.section.pkcs11.environment, PATH: `${own}${delimiter}${process.env.PATH}` }
  }
  /** A tool that records its command line and environment. */
  const recordingTool = async (name: string) => {
    const log = join(folder, `${name}.log`)
    const environment = await toolAfter(name, `echo "$* | $(env | tr '\\n' ' ')" >> ${log}`)
    return { environment, read: async () => (await readFile(log, 'utf8')).trim().split('\n') }
  }

  test('made with the commands of the guide, signs for the address of its public key', async () => {
    const wallet = await openWallet(FIELD, token.section, {})
    await requireSigns(wallet)
    await requireKeeps(wallet)
    const address = privateKeyToAccount(generatePrivateKey()).address
    await expect(openWallet(FIELD, { ...token.section, address }, {})).rejects.toThrow(
      `${FIELD}.address is not the address of its key: ${wallet.address}`,
    )
  })

  test('that is unplugged signs nothing, and the same afterwards', async () => {
    const wallet = await openWallet(FIELD, token.section, {})
    const [tokens, away] = [join(folder, 'tokens'), join(folder, 'away')]
    await rename(tokens, away)
    await requireFails(wallet, /^token bursar: .*CKR_GENERAL_ERROR/, () => rename(away, tokens))
  })

  test('that does not exist is named at the start', async () => {
    const of = (changes: object) => openWallet(FIELD, { pkcs11: { ...token.section.pkcs11, ...changes } }, {})
    await expect(of({ id: '02' })).rejects.toThrow(`${FIELD}.pkcs11: token bursar: `)
    await expect(of({ token: 'other' })).rejects.toThrow(/No slot with token named "other"/)
    await expect(of({ module: join(folder, 'none.so') })).rejects.toThrow(/cannot open shared object file/)
    await expect(of({ environment: { PATH: folder } })).rejects.toThrow(/pkcs11-tool is not installed/)
  })

  test('a wrong PIN is given to the token once, also by starts that follow', async () => {
    await writeFile(token.pinFile, '0000')
    await expect(openWallet(FIELD, token.section, {})).rejects.toThrow(/CKR_PIN_INCORRECT/)
    await writeFile(token.pinFile, '4711')
    await expect(openWallet(FIELD, token.section, {})).rejects.toThrow(
      /counts a wrong PIN \(user PIN count low\)/,
    )
    await token.logIn()
    await requireSigns(await openWallet(FIELD, token.section, {}))
  })

  test('after a wrong PIN, nothing more is asked of the token', async () => {
    const log = await recordingTool('wrong-pin')
    const opened = await openPkcs11({ ...token.section.pkcs11, environment: log.environment }, '0000')
    await expect(opened.publicKey()).rejects.toThrow(/CKR_PIN_INCORRECT/)
    const calls = (await log.read()).length
    await expect(opened.sign(new Uint8Array(32))).rejects.toThrow(/CKR_PIN_INCORRECT/)
    expect((await log.read()).length).toBe(calls)
    await token.logIn()
  })

  test('its PIN is on no command line, and the tool gets nothing else of the environment', async () => {
    const log = await recordingTool('environment')
    process.env.KEY_OF_ANOTHER_WALLET = 'secret'
    try {
      const pkcs11 = { ...token.section.pkcs11, environment: log.environment }
      await requireSigns(await openWallet(FIELD, { pkcs11 }, {}))
    } finally {
      delete process.env.KEY_OF_ANOTHER_WALLET
    }
    const lines = await log.read()
    expect(lines).toHaveLength(3 + OFTEN)
    for (const line of lines) {
      const [commandLine, environment] = line.split(' | ') as [string, string]
      expect(commandLine).toContain('--module')
      expect(commandLine).not.toContain('4711')
      expect(environment).toContain('BURSAR_TOKEN_PIN=4711')
      expect(environment).not.toContain('KEY_OF_ANOTHER_WALLET')
    }
  })

  test('that hangs is not waited for', async () => {
    const hangs = join(folder, 'hangs')
    const environment = await toolAfter('hanging', `[ ! -e ${hangs} ] || exec sleep 600`)
    const key = { ...token.section.pkcs11, environment }
    const wallet = await walletOf(await openPkcs11(key, '4711', SHORT_MS))
    await writeFile(hangs, '')
    await requireFails(wallet, /^token bursar does not answer within 1 s$/, () => rm(hangs))
  })
})
