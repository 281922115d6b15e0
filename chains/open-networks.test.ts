import { Keypair } from '@stellar/stellar-base'
import { randomBytes, randomUUID } from 'node:crypto'
import { base58 } from '@scure/base'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import {
  english,
  generateMnemonic,
  generatePrivateKey,
  mnemonicToAccount,
  privateKeyToAccount,
} from 'viem/accounts'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Database, Transaction } from '../src/db/database.ts'
import { WrongChain } from '../src/networks/chain-of-mode.ts'
import { depositKeysOf as solanaKeysOf } from './solana/deposit-keys.ts'
import { signerOfSeed } from './solana/keys.ts'
import { configuredNetworks, type ConfiguredNetwork } from '../src/networks/open-networks.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'
import { ownFolder } from '../test/at-end.ts'

// No test of a file reaches the database or a node: faults of the file are reported first.
const USE = { signs: true, withdrawals: withdrawalReader }
const NO_DATABASE = {} as Database
const NO_FILE = '/nowhere/key'

const KEY = generatePrivateKey()
const MNEMONIC = generateMnemonic(english)
/** The key of Ethereum's account. Unlike the mnemonic, it is read without 2,048 rounds of a hash. */
const EXTENDED = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" }).getHdKey()
const PASSWORD = 'a-password-nobody-guesses'
/** A key of SOLANA, as solana-keygen writes it. */
const SEED = randomBytes(32)
const SOLANA_WALLET = signerOfSeed(SEED).address
const ENVIRONMENT = {
  SEED: base58.encode(SEED),
  KEYPAIR: JSON.stringify([...SEED, ...base58.decode(SOLANA_WALLET)]),
  KEY,
  MNEMONIC,
  PUBLIC: EXTENDED.publicExtendedKey,
  EXTENDED_KEY: EXTENDED.privateExtendedKey,
  PASSWORD,
  URL_WITH_KEY: 'https://node.example/v3/provider-key',
  NO_URL: 'provider-key',
  EMPTY: ' ',
  SHORT_KEY: KEY.slice(0, -2),
  ZERO_KEY: `0x${'0'.repeat(64)}`,
  PUBLIC_KEY: EXTENDED.publicExtendedKey,
  STELLAR_SEED: Keypair.random().secret(),
}
const SECRETS = [
  base58.encode(SEED),
  KEY.slice(2, -2),
  MNEMONIC,
  PASSWORD,
  'provider-key',
  ENVIRONMENT.EXTENDED_KEY,
  EXTENDED.publicExtendedKey,
]

const ADDRESS = privateKeyToAccount(KEY).address
const ETHEREUM = {
  adapter: 'evm',
  rpc_url: { env: 'URL_WITH_KEY' },
  hot_wallet_key: { env: 'KEY' },
  deposit_key: { env: 'EXTENDED_KEY' },
  confirmations: 12,
  fee_ceiling: '200',
  low_mark: '2',
}
const LITECOIN = {
  adapter: 'bitcoin-core',
  rpc_url: 'http://127.0.0.1:9332',
  rpc_user: 'bursar',
  rpc_password: { env: 'PASSWORD' },
  wallet: 'bursar',
  confirmations: 6,
  fee_ceiling: '0.001',
  low_mark: '10',
}

const folder = await ownFolder()

let files = 0
async function fileOf(content: unknown): Promise<string> {
  const path = join(folder, `networks-${files++}.json`)
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const read = async (content: unknown) =>
  configuredNetworks(await fileOf(content), ENVIRONMENT, NO_DATABASE, 'live', USE)
const STELLAR = {
  adapter: 'stellar',
  rpc_url: 'http://127.0.0.1:8000',
  hot_wallet_key: { env: 'STELLAR_SEED' },
  fee_ceiling: '0.01',
}
const OTHER_ACCOUNT = Keypair.random().publicKey()
const stellar = (changes: object) => ({ STELLAR: { ...STELLAR, ...changes } })
const ethereum = (changes: object) => ({ ETHEREUM: { ...ETHEREUM, ...changes } })
const litecoin = (changes: object) => ({ LITECOIN: { ...LITECOIN, ...changes } })

test('a section of STELLAR is read, takes memos and no confirmations, and is experimental', async () => {
  const opened = (await read(stellar({}))).get('STELLAR')!
  expect(opened).toMatchObject({ confirmations: 1, isExperimental: true, privateKeys: ['hot_wallet_key'] })
  expect(opened.adapter).not.toHaveProperty('carriesNoMemo')
})

test('confirmations follow the value of a deposit: by default as the catalogue says, or by a list', async () => {
  const depthsOf = async (changes: object) => {
    const { adapter } = (await read(litecoin(changes))).get('LITECOIN')!
    return [adapter.confirmations, ...adapter.depths!.map((one) => `${one.from_usd}: ${one.confirmations}`)]
  }
  expect(await depthsOf({ confirmations: undefined })).toEqual([6, '0: 6', '10000: 12', '100000: 24'])
  expect(await depthsOf({ confirmations: 7 })).toEqual([7, '0: 7'])
  const list = [{ confirmations: 6 }, { confirmations: 30, from_usd: '500.5' }]
  expect(await depthsOf({ confirmations: list })).toEqual([6, '0: 6', '500.5: 30'])
  expect((await read(litecoin({ confirmations: list }))).get('LITECOIN')!.shallow).toBeUndefined()
  expect((await read(litecoin({ confirmations: 7 }))).get('LITECOIN')!.shallow).toBe(
    'the largest deposits need 7 confirmations, and 24 by default',
  )
})

test("in live mode, one node's word credits small deposits, on every family but on a wallet's own full node", async () => {
  const second = { verify_rpc_url: 'https://second.example' }
  const opened = async (section: Record<string, object>) => {
    const [{ hasSecondNode, adapter }] = [...(await read(section)).values()] as [ConfiguredNetwork]
    return [hasSecondNode, adapter.oneNodeMax, adapter.secondNodeAbove]
  }
  for (const section of [ethereum, solana, stellar]) {
    expect(await opened(section({}))).toEqual([false, '100', undefined])
    expect(await opened(section({ single_node_max: '0' }))).toEqual([false, '0', undefined])
    expect(await opened(section(second))).toEqual([true, undefined, '100'])
  }
  for (const own of [
    { rpc_url: 'http://10.1.2.3:9332' },
    { rpc_url: 'http://[fd00::1]:9332' },
    { rpc_url: 'http://litecoind:9332' },
    { rpc_url: 'http://litecoind.wallets.svc.cluster.local' },
    { rpc_url: 'https://node.example', own_node: true },
  ])
    expect(await opened(litecoin(own))).toEqual([true, undefined, '100'])
})

test('several nodes are read, each by its own form, and named by their places', async () => {
  const section = ethereum({
    rpc_url: ['https://one.example', { env: 'URL_WITH_KEY' }],
    verify_rpc_url: ['https://two.example', 'https://three.example'],
    verify_quorum: 1,
  })
  const { nodes, hasSecondNode } = (await read(section)).get('ETHEREUM')!
  expect(nodes.map(({ field }) => field)).toEqual([
    'rpc_url[0]',
    'rpc_url[1]',
    'verify_rpc_url[0]',
    'verify_rpc_url[1]',
  ])
  expect(hasSecondNode).toBe(true)
})

test('a file is read, with its secrets from the environment and from files', async () => {
  const key = join(folder, 'key')
  await writeFile(key, `${KEY.slice(2)}\n`)
  const networks = await read({ ...ethereum({ hot_wallet_key: { file: key } }), LITECOIN })
  expect(
    [...networks].map(([network, { confirmations, adapter }]) => [network, confirmations, adapter.treasury]),
  ).toEqual([
    ['ETHEREUM', 12, { marks: { ETH: { low: '2' } }, cold: [] }],
    ['LITECOIN', 6, { marks: { LTC: { low: '10' } }, cold: [] }],
  ])
  const { adapter } = networks.get('ETHEREUM')!
  expect(adapter).toHaveProperty('sweep')
  expect(adapter).toHaveProperty('feeMargin', '20')
  const feesLoss = async (changes = {}) => (await read(litecoin(changes))).get('LITECOIN')!.adapter.feesLoss
  expect(await feesLoss()).toEqual({ factor: '3', minimum: '1' })
  expect(await feesLoss({ fees_loss_factor: '1.5', fees_loss_minimum: '20' })).toEqual({
    factor: '1.5',
    minimum: '20',
  })
  expect((await read(litecoin({ fee_margin: '7.5' }))).get('LITECOIN')!.adapter.feeMargin).toBe('7.5')
  const minimum = async (changes = {}) =>
    (await read(litecoin(changes))).get('LITECOIN')!.adapter.minimumDeposit!('LTC')
  expect([await minimum(), await minimum({ minimum_deposit: { LTC: '0.5' } })]).toEqual(['0.002', '0.5'])
  expect([...networks.values()].map((network) => network.adapter.carriesNoMemo)).toEqual([true, true])
  expect((await adapter.newDepositAddress!('ETHEREUM'))(randomUUID()).address).toMatch(/^0x/)
  // Without a deposit key there are no deposit addresses.
  const without = await read(ethereum({ deposit_key: undefined, low_mark: undefined }))
  expect(without.get('ETHEREUM')).toMatchObject({
    confirmations: 12,
    adapter: { treasury: { marks: {}, cold: [] } },
  })
  expect(without.get('ETHEREUM')!.adapter).not.toHaveProperty('newDepositAddress')
  // A mnemonic works like its extended key.
  const mnemonic = join(folder, 'mnemonic')
  await writeFile(mnemonic, MNEMONIC)
  const id = randomUUID()
  const other = (await read(ethereum({ deposit_key: { file: mnemonic } }))).get('ETHEREUM')!.adapter
  const [given, same] = await Promise.all([adapter, other].map((one) => one.newDepositAddress!('ETHEREUM')))
  expect(same!(id)).toEqual(given!(id))
})

test('where a person signs, nothing is replaced without the command', async () => {
  const adapterOf = async (changes: object) => (await read(litecoin(changes))).get('LITECOIN')!.adapter
  expect(await adapterOf({})).toHaveProperty('stuckAfterMs')
  const byHand = await adapterOf({ signing: 'psbt' })
  expect(byHand).not.toHaveProperty('stuckAfterMs')
  expect(byHand).toHaveProperty('replace')
})

test('further hot wallets pay, and need their keys where the worker runs', async () => {
  const [key, other] = [generatePrivateKey(), generatePrivateKey()]
  const { address } = privateKeyToAccount(other)
  const open = async (wallet: object, signs: boolean) => {
    const section = ethereum({ hot_wallet_key: { env: 'KEY' }, further_hot_wallets: [wallet] })
    const environment = { ...ENVIRONMENT, KEY: key, OTHER_KEY: other }
    return (
      await configuredNetworks(await fileOf(section), environment, NO_DATABASE, 'live', { ...USE, signs })
    ).get('ETHEREUM')!
  }
  const { adapter, privateKeys } = await open({ address, key: { env: 'OTHER_KEY' } }, true)
  expect(privateKeys).toEqual(['hot_wallet_key', 'further_hot_wallets[0].key', 'deposit_key'])
  expect(adapter.refusesDestination!(address)).toBe('it is the wallet that withdrawals are paid from')
  await expect(open({ address }, true)).rejects.toThrow(
    /^ETHEREUM.further_hot_wallets\[0\].key is required: the wallet pays withdrawals$/,
  )
  expect((await open({ address }, false)).privateKeys).not.toContain('further_hot_wallets[0].key')
})

test('with a signer, no key of a hot wallet is read, and sweeping has a gas wallet of its own', async () => {
  const other = privateKeyToAccount(generatePrivateKey()).address
  const { hot_wallet_key: _, ...keyless } = ethereum({}).ETHEREUM as Record<string, unknown>
  const signer = { socket: '/run/signer' }
  const open = (changes: object, signs = true) =>
    fileOf({ ETHEREUM: { ...keyless, signer, ...changes } }).then((path) =>
      configuredNetworks(path, { ...ENVIRONMENT, GAS_KEY: generatePrivateKey() }, NO_DATABASE, 'live', {
        ...USE,
        signs,
      }),
    )
  const [gas, former] = [1, 2].map(() => privateKeyToAccount(generatePrivateKey()).address)
  const wallets = { hot_wallet_address: ADDRESS, further_hot_wallets: [{ address: other }] }
  const keyOfWords = { deposit_key: { env: 'PUBLIC' } }
  const all = {
    ...wallets,
    ...keyOfWords,
    gas_wallet_address: gas,
    former_hot_wallets: [{ address: former }],
  }
  const { adapter, privateKeys } = (await open(all)).get('ETHEREUM')!
  expect(privateKeys).toEqual([])
  expect(adapter).toHaveProperty('askSigner')
  expect(adapter).toHaveProperty('sweep')
  await expect(open({ ...all, deposit_key: { env: 'MNEMONIC' } })).rejects.toThrow(
    /^ETHEREUM.deposit_key: the private deposit key is the signer's: give the public one/,
  )
  await expect(open({ ...all, gas_wallet_key: { env: 'GAS_KEY' } })).rejects.toThrow(
    /^ETHEREUM.gas_wallet_key is the signer's: give gas_wallet_address$/,
  )
  await expect(
    open({ ...all, former_hot_wallets: [{ address: former, key: { env: 'GAS_KEY' } }] }),
  ).rejects.toThrow(/^ETHEREUM.former_hot_wallets\[0\].key is the signer's: give the address alone$/)
  const byHand = { ...wallets, gas_wallet_key: { env: 'GAS_KEY' }, signer: { folder: '/by-hand' } }
  const hand = (await open(byHand)).get('ETHEREUM')!
  expect(hand.adapter).toHaveProperty('askSigner')
  expect(hand.privateKeys).toEqual(['gas_wallet_key', 'deposit_key'])
  await expect(open({ ...byHand, gas_wallet_address: gas })).rejects.toThrow(
    /^ETHEREUM.gas_wallet_address is for a network with a signer that answers the worker$/,
  )
  await expect(open({})).rejects.toThrow(/^ETHEREUM.hot_wallet_address is given instead of hot_wallet_key/)
  await expect(open({ ...wallets, hot_wallet_key: { env: 'KEY' } })).rejects.toThrow(
    /is given instead of hot_wallet_key/,
  )
  await expect(open({ ...wallets, ...keyOfWords })).rejects.toThrow(
    /^ETHEREUM.gas_wallet_address is required: with a signer/,
  )
  for (const own of [
    { ...all, gas_wallet_address: ADDRESS },
    { ...byHand, gas_wallet_key: { env: 'KEY' } },
  ])
    await expect(open(own)).rejects.toThrow(/^ETHEREUM has a gas wallet that pays withdrawals, too/)
  await expect(
    open({ ...wallets, further_hot_wallets: [{ address: other, key: { env: 'KEY' } }] }),
  ).rejects.toThrow(/^ETHEREUM.further_hot_wallets\[0\].key is the signer's: give the address alone$/)
  await expect(
    open({ signer: undefined, hot_wallet_key: { env: 'KEY' }, gas_wallet_key: { env: 'KEY' } }),
  ).rejects.toThrow(/^ETHEREUM.gas_wallet_key is for a network with a signer/)
})

test('with a signer, no key of SOLANA is read', async () => {
  const { publicKey } = solanaKeysOf(MNEMONIC)
  const section = {
    ...{ hot_wallet_key: undefined, hot_wallet_address: SOLANA_WALLET, signer: { socket: '/run/signer' } },
    deposit_key: { env: 'SOLANA_PUBLIC' },
  }
  const open = async (changes: object) =>
    configuredNetworks(
      await fileOf(solana({ ...section, ...changes })),
      { ...ENVIRONMENT, SOLANA_PUBLIC: publicKey },
      NO_DATABASE,
      'live',
      { ...USE, signs: true },
    )
  const { adapter, privateKeys, depositPublicKey } = (await open({})).get('SOLANA')!
  expect({ privateKeys, depositPublicKey }).toEqual({ privateKeys: [], depositPublicKey: publicKey })
  for (const member of ['askSigner', 'sweep', 'newDepositAddress']) expect(adapter).toHaveProperty(member)
  await expect(open({ deposit_key: { env: 'MNEMONIC' } })).rejects.toThrow(
    /^SOLANA.deposit_key: is the signer's: give the public one, which 'bursar signer start' prints$/,
  )
  for (const changes of [{ hot_wallet_key: { env: 'SEED' } }, { hot_wallet_address: undefined }])
    await expect(open(changes)).rejects.toThrow(
      /^SOLANA.hot_wallet_address is given instead of hot_wallet_key/,
    )
})

test('with a signer, no seed of STELLAR is read, and the accounts that number its transactions are given', async () => {
  const lane_accounts = [Keypair.random().publicKey()]
  const open = async (changes: object) =>
    configuredNetworks(
      await fileOf(
        stellar({
          ...{
            hot_wallet_key: undefined,
            hot_wallet_address: OTHER_ACCOUNT,
            signer: { socket: '/run/signer' },
          },
          ...{ lane_accounts, ...changes },
        }),
      ),
      ENVIRONMENT,
      NO_DATABASE,
      'live',
      { ...USE, signs: true },
    )
  const { adapter, privateKeys } = (await open({})).get('STELLAR')!
  expect(privateKeys).toEqual([])
  for (const member of ['askSigner', 'checkWithSigner']) expect(adapter).toHaveProperty(member)
  expect(adapter.refusesDestination!(lane_accounts[0]!)).toMatch('it is an account of the wallet')
  const notBoth = /^STELLAR.lane_accounts is given instead of lanes where a signer has the key$/
  for (const changes of [{ lane_accounts: undefined }, { lanes: 2 }])
    await expect(open(changes)).rejects.toThrow(notBoth)
  const mistyped = `G${'A'.repeat(55)}`
  await expect(open({ lane_accounts: [mistyped] })).rejects.toThrow(
    /^STELLAR.lane_accounts: GA+ is no account/,
  )
  await expect(open({ signer: undefined, hot_wallet_key: { env: 'STELLAR_SEED' } })).rejects.toThrow(notBoth)
  for (const changes of [{ hot_wallet_key: { env: 'STELLAR_SEED' } }, { hot_wallet_address: undefined }])
    await expect(open(changes)).rejects.toThrow(
      /^STELLAR.hot_wallet_address is given instead of hot_wallet_key/,
    )
})

test('a section of SOLANA is read, with a key in either form, or with the address alone where nothing is signed', async () => {
  for (const env of ['SEED', 'KEYPAIR']) {
    const networks = await read(solana({ hot_wallet_key: { env }, hot_wallet_address: SOLANA_WALLET }))
    const { adapter, privateKeys } = networks.get('SOLANA')!
    expect(privateKeys).toEqual(['hot_wallet_key'])
    expect(adapter.refusesDestination!(SOLANA_WALLET)).toMatch('it is the wallet')
    expect(adapter).not.toHaveProperty('carriesNoMemo')
    expect(adapter).not.toHaveProperty('newDepositAddress')
  }
  const content = await fileOf(solana({ hot_wallet_key: undefined, hot_wallet_address: SOLANA_WALLET }))
  const watching = await configuredNetworks(content, ENVIRONMENT, NO_DATABASE, 'live', {
    ...USE,
    signs: false,
  })
  expect(watching.get('SOLANA')!.privateKeys).toEqual([])
})

test('SOLANA has deposit addresses with a mnemonic, or by a public key in a process without the worker', async () => {
  const worker = (await read(solana({ deposit_key: { env: 'MNEMONIC' } }))).get('SOLANA')!
  expect(worker).toMatchObject({ privateKeys: ['hot_wallet_key', 'deposit_key'], hasSecondNode: false })
  expect(worker.adapter).toHaveProperty('newDepositAddress')
  const environment = { ...ENVIRONMENT, PUBLIC: worker.depositPublicKey! }
  const section = solana({ deposit_key: { env: 'PUBLIC' } })
  const api = (
    await configuredNetworks(await fileOf(section), environment, NO_DATABASE, 'live', {
      ...USE,
      signs: false,
    })
  ).get('SOLANA')!
  expect(api).toMatchObject({
    privateKeys: ['hot_wallet_key'],
    depositPublicKey: worker.depositPublicKey,
  })
  expect(api.adapter).toHaveProperty('newDepositAddress')
  await expect(
    configuredNetworks(await fileOf(section), environment, NO_DATABASE, 'live', USE),
  ).rejects.toThrow(/^SOLANA.deposit_key: is a public one, .* BURSAR_WORKER=false$/)
})

test('former hot wallets are watched, and sign where they have a key', async () => {
  const other = privateKeyToAccount(generatePrivateKey()).address
  const section = ethereum({
    hot_wallet_key: { env: 'OTHER_KEY' },
    former_hot_wallets: [{ address: ADDRESS, key: { env: 'KEY' } }, { address: other }],
  })
  const environment = { ...ENVIRONMENT, OTHER_KEY: generatePrivateKey() }
  const open = async (signs: boolean) => {
    const networks = await configuredNetworks(await fileOf(section), environment, NO_DATABASE, 'live', {
      ...USE,
      signs,
    })
    return networks.get('ETHEREUM')!
  }
  const { adapter, privateKeys } = await open(true)
  expect(privateKeys).toEqual(['hot_wallet_key', 'former_hot_wallets[0].key', 'deposit_key'])
  for (const address of [ADDRESS, other])
    expect(adapter.refusesDestination!(address)).toBe('it is the wallet that withdrawals are paid from')
  expect((await open(false)).privateKeys).not.toContain('former_hot_wallets[0].key')
})

const SOLANA = {
  adapter: 'solana',
  rpc_url: 'http://127.0.0.1:1',
  hot_wallet_key: { env: 'SEED' },
  confirmations: 'finalized',
  fee_ceiling: '0.001',
}
const solana = (changes: object) => ({ SOLANA: { ...SOLANA, ...changes } })
const SOLANA_FAULTS: [string, unknown, RegExp][] = [
  [
    'SOLANA with a number of confirmations',
    solana({ confirmations: 32 }),
    /^SOLANA.confirmations must be 'finalized': the network drops no finalized slot/,
  ],
  [
    'SOLANA with a ceiling that no payment is below',
    solana({ fee_ceiling: '0.000005' }),
    /^SOLANA.fee_ceiling must be above 0.000005/,
  ],
  ['SOLANA with too many lanes', solana({ lanes: 65 }), /^SOLANA.lanes must be <= 64$/],
  [
    'SOLANA with a mint of no token',
    solana({ mints: { SOL: '1'.repeat(32) } }),
    /^SOLANA.mints: SOL is no token of SOLANA$/,
  ],
  [
    'SOLANA with no private key',
    solana({ hot_wallet_key: { env: 'PASSWORD' } }),
    /^SOLANA.hot_wallet_key: is no private key: 32 or 64 bytes in base58/,
  ],
  [
    'SOLANA with the address of another key',
    solana({ hot_wallet_address: 'So11111111111111111111111111111111111111112' }),
    /^SOLANA.hot_wallet_address is not the address of hot_wallet_key: /,
  ],
  ['SOLANA without a key', solana({ hot_wallet_key: undefined }), /^SOLANA.hot_wallet_key is required$/],
  [
    'SOLANA with a deposit key that is none',
    solana({ deposit_key: { env: 'PASSWORD' } }),
    /^SOLANA.deposit_key: is no mnemonic \(BIP-39\)/,
  ],
  [
    'SOLANA with a cost of sweeps of 0',
    solana({ sweep_cost_max: '0' }),
    /^SOLANA: sweep_cost_max must be above 0/,
  ],
  [
    'SOLANA with a least sweep of an asset of another network',
    solana({ sweep_minimum: { ETH: '1' } }),
    /^SOLANA: sweep_minimum.ETH: SOLANA has no such asset$/,
  ],
]

describe('a process without the worker', () => {
  const ID = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
  const watching = async (content: unknown, environment: Record<string, string> = ENVIRONMENT) => {
    const networks = await configuredNetworks(await fileOf(content), environment, NO_DATABASE, 'live', {
      ...USE,
      signs: false,
    })
    return networks.get('ETHEREUM')!
  }

  test('needs no private key: it creates the same addresses and can neither sign nor sweep', async () => {
    const worker = (await read(ethereum({ hot_wallet_address: ADDRESS }))).get('ETHEREUM')!
    expect(worker.privateKeys).toEqual(['hot_wallet_key', 'deposit_key'])
    const environment = { URL_WITH_KEY: ENVIRONMENT.URL_WITH_KEY, XPUB: worker.depositPublicKey! }
    const section = { hot_wallet_key: undefined, hot_wallet_address: ADDRESS, deposit_key: { env: 'XPUB' } }
    const api = await watching(ethereum(section), environment)
    expect(api.privateKeys).toEqual([])
    expect(api.adapter).not.toHaveProperty('sweep')
    expect(worker.depositPublicKey).toMatch(/^xpub/)
    for (const id of [ID, randomUUID(), '00000000-0000-7000-8000-000000000000']) {
      const address = (await api.adapter.newDepositAddress!('ETHEREUM'))(id)
      expect(address).toEqual((await worker.adapter.newDepositAddress!('ETHEREUM'))(id))
    }
  })

  test('does not read the hot wallet key when the address is configured', async () => {
    const { privateKeys } = await watching(
      ethereum({ hot_wallet_key: { file: NO_FILE }, hot_wallet_address: ADDRESS, deposit_key: undefined }),
    )
    expect(privateKeys).toEqual([])
    await expect(watching(ethereum({ hot_wallet_key: undefined }))).rejects.toThrow(
      /^ETHEREUM.hot_wallet_key is required$/,
    )
  })

  test('reports private keys that it does not need', async () => {
    expect((await watching(ethereum({}))).privateKeys).toEqual(['hot_wallet_key', 'deposit_key'])
  })
})

describe('a fault is reported with its section and field:', () => {
  test.each<[string, unknown, RegExp]>([
    [
      'a former hot wallet that is the hot wallet',
      ethereum({ former_hot_wallets: [{ address: ADDRESS.toLowerCase() }] }),
      /^ETHEREUM.former_hot_wallets\[0\].address is named twice, or is the hot wallet's$/,
    ],
    [
      'a former hot wallet with the key of another',
      ethereum({ former_hot_wallets: [{ address: `0x${'1'.repeat(40)}`, key: { env: 'KEY' } }] }),
      /^ETHEREUM.former_hot_wallets\[0\].key is the key of another address: 0x/,
    ],
    [
      'a fees_loss_factor below 1',
      litecoin({ fees_loss_factor: '0.5' }),
      /^LITECOIN.fees_loss_factor must be at least 1$/,
    ],
    [
      'a fees_loss_minimum with too many decimals',
      litecoin({ fees_loss_minimum: '0.123456789' }),
      /^LITECOIN.fees_loss_minimum has more than 8 decimals$/,
    ],
    ['a fee margin below 0', ethereum({ fee_margin: '-1' }), /^ETHEREUM.fee_margin must match pattern/],
    [
      'a fee margin with too many decimals',
      litecoin({ fee_margin: '1.00001' }),
      /^LITECOIN.fee_margin has more than 4 decimals$/,
    ],
    ['not JSON', PASSWORD, /^is not JSON: Unexpected token 'a'$/],
    ['not JSON, cut off', `{"ETHEREUM": {"hot_wallet_key": "${KEY}`, /^is not JSON: .*at position \d+$/],
    ['no object', [], /^must be a JSON object with a section for each network$/],
    ['null', 'null', /^must be a JSON object with a section for each network$/],
    ['an unknown network', { DOGECOIN: LITECOIN }, /^DOGECOIN is no network; there are BITCOIN, /],
    ['the adapter of another family, SOLANA', { SOLANA: ETHEREUM }, /^SOLANA.adapter must be 'solana'$/],
    ...SOLANA_FAULTS,
    [
      'a section of STELLAR with another adapter',
      { STELLAR: ETHEREUM },
      /^STELLAR.adapter must be 'stellar'$/,
    ],
    ['no seed of Stellar', stellar({ hot_wallet_key: { env: 'KEY' } }), /^STELLAR.hot_wallet_key is no seed/],
    [
      'a fee below the least of Stellar',
      stellar({ fee_ceiling: '0.000001' }),
      /^STELLAR.fee_ceiling must be at least 0.00001/,
    ],
    [
      // Whether its key may sign for the account, Horizon says.
      'another signer of an account without channel accounts',
      stellar({ hot_wallet_address: OTHER_ACCOUNT, lanes: 0 }),
      /^STELLAR.lanes must be 1 at least where hot_wallet_key is another signer's$/,
    ],
    [
      'the test network in live mode',
      stellar({ network_passphrase: 'Test SDF Network ; September 2015' }),
      /^STELLAR.network_passphrase must be that of the public network in live mode$/,
    ],
    [
      'issuers in live mode',
      stellar({ issuers: { PYUSD: OTHER_ACCOUNT } }),
      /^STELLAR.issuers are for test networks/,
    ],
    ['no section', { ETHEREUM: null }, /^ETHEREUM.adapter must be 'evm'$/],
    ['no adapter', ethereum({ adapter: undefined }), /^ETHEREUM.adapter must be 'evm'$/],
    ['the adapter of another family', { LITECOIN: ETHEREUM }, /^LITECOIN.adapter must be 'bitcoin-core'$/],
    [
      'another way of signing',
      litecoin({ signing: 'paper' }),
      /^LITECOIN.signing must be equal to constant$/,
    ],
    [
      'signing by hand without segregated witness',
      { BITCOIN_CASH: { ...LITECOIN, confirmations: 10, signing: 'psbt' } },
      /^BITCOIN_CASH.signing cannot be 'psbt': without segregated witness/,
    ],
    ['the adapter of another family, reversed', { BASE: LITECOIN }, /^BASE.adapter must be 'evm'$/],
    ['an unknown field', ethereum({ fee_cieling: '1' }), /^ETHEREUM.fee_cieling is not a known field$/],
    ['a field of the other family', litecoin({ chain_id: 1 }), /^LITECOIN.chain_id is not a known field$/],
    ...Object.keys(ETHEREUM).flatMap((field): [string, unknown, RegExp][] =>
      ['adapter', 'deposit_key', 'low_mark', 'confirmations'].includes(field)
        ? []
        : [[`no ${field}`, ethereum({ [field]: undefined }), new RegExp(`^ETHEREUM.${field} is required$`)]],
    ),
    ...['rpc_user', 'rpc_password'].map((field): [string, unknown, RegExp] => [
      `no ${field}`,
      litecoin({ [field]: undefined }),
      new RegExp(`^LITECOIN.${field} is required$`),
    ]),
    ['a number as ceiling', ethereum({ fee_ceiling: 200 }), /^ETHEREUM.fee_ceiling must be string$/],
    [
      'a ceiling with an exponent',
      ethereum({ fee_ceiling: '2e2' }),
      /^ETHEREUM.fee_ceiling must match pattern/,
    ],
    ['a negative ceiling', litecoin({ fee_ceiling: '-1' }), /^LITECOIN.fee_ceiling must match pattern/],
    ['a ceiling of zero', litecoin({ fee_ceiling: '0.0' }), /^LITECOIN.fee_ceiling must be above 0/],
    [
      'a ceiling finer than a wei',
      ethereum({ fee_ceiling: '1.0123456789' }),
      /^ETHEREUM.fee_ceiling has more than 9 decimals$/,
    ],
    [
      'a low mark below a unit',
      litecoin({ low_mark: '0.123456789' }),
      /^LITECOIN.low_mark has more than 8 decimals$/,
    ],
    [
      'a cold address that is the hot wallet',
      ethereum({ cold_addresses: [ADDRESS] }),
      new RegExp(`^ETHEREUM.cold_addresses: ${ADDRESS}: it is the wallet that withdrawals are paid from$`),
    ],
    [
      'a low mark that is no amount',
      ethereum({ low_mark: { ETH: '-1' } }),
      /^ETHEREUM.low_mark.ETH must match pattern/,
    ],
    [
      'zero confirmations',
      ethereum({ confirmations: 0 }),
      /^ETHEREUM.confirmations must be a number from 1 to 10000, a list of them by from_usd, .safe. or .finalized.$/,
    ],
    [
      'a fraction as confirmations',
      litecoin({ confirmations: 1.5 }),
      /^LITECOIN.confirmations must be a number from 1 to 10000, a list of them by from_usd$/,
    ],
    ...[
      [{ confirmations: 6 }, { confirmations: 6, from_usd: '10' }],
      [{ confirmations: 6 }, { confirmations: 12, from_usd: '0' }],
      [{ confirmations: 6, from_usd: '1' }],
    ].map((confirmations): [string, unknown, RegExp] => [
      `a list of confirmations that does not rise: ${JSON.stringify(confirmations)}`,
      litecoin({ confirmations }),
      /^LITECOIN.confirmations must begin without from_usd, and rise in from_usd and confirmations$/,
    ]),
    [
      "somebody else's node for a wallet",
      litecoin({ rpc_url: 'https://10.example.com' }),
      /^LITECOIN.rpc_url: 10.example.com is not in a private network, .* own_node says so$/,
    ],
    ['no URL', ethereum({ rpc_url: { env: 'NO_URL' } }), /^ETHEREUM.rpc_url must be an http or https URL/],
    [
      'a URL of another kind',
      litecoin({ rpc_url: 'ftp://provider-key' }),
      /^LITECOIN.rpc_url must be an http or https URL/,
    ],
    [
      'a password in a URL',
      litecoin({ rpc_url: `http://u:${PASSWORD}@node` }),
      /^LITECOIN.rpc_url must be .* without a user/,
    ],
    [
      "a minimum deposit of another network's asset",
      litecoin({ minimum_deposit: { ETH: '1' } }),
      /^LITECOIN.minimum_deposit.ETH is no asset of LITECOIN$/,
    ],
    [
      'a minimum deposit of too many decimals',
      litecoin({ minimum_deposit: { LTC: '0.000000001' } }),
      /^LITECOIN.minimum_deposit.LTC has more than 8 decimals$/,
    ],
    [
      'an amount to verify without a second node',
      ethereum({ verify_above: { ETH: '1' } }),
      /^ETHEREUM.verify_above needs verify_rpc_url$/,
    ],
    [
      'a second node of another kind',
      ethereum({ verify_rpc_url: 'ftp://provider-key' }),
      /^ETHEREUM.verify_rpc_url must be an http or https URL/,
    ],
    [
      'too many nodes',
      ethereum({ rpc_url: [1, 2, 3, 4, 5, 6].map((node) => `https://n${node}.example`) }),
      /^ETHEREUM.rpc_url must be one node, or a list of 1 to 5$/,
    ],
    [
      'a node twice',
      ethereum({ verify_rpc_url: ['https://a.example', 'https://a.example'] }),
      /^ETHEREUM.verify_rpc_url names a node twice$/,
    ],
    [
      'a quorum of more nodes than there are',
      solana({ verify_rpc_url: ['https://a.example', 'https://b.example'], verify_quorum: 3 }),
      /^SOLANA.verify_quorum is above 2, the number of nodes in verify_rpc_url$/,
    ],
    [
      'several nodes of a family that takes one',
      litecoin({ rpc_url: ['http://127.0.0.1:1', 'http://127.0.0.1:2'] }),
      /^LITECOIN.rpc_url must be string$/,
    ],
    [
      'a secret that is no object',
      litecoin({ rpc_password: PASSWORD }),
      /^LITECOIN.rpc_password must be object$/,
    ],
    ['a key in the file', ethereum({ hot_wallet_key: KEY }), /^ETHEREUM.hot_wallet_key must be object$/],
    [
      'a missing secret',
      litecoin({ rpc_password: { env: 'NO' } }),
      /^LITECOIN.rpc_password: NO is not in the environment$/,
    ],
    [
      'an empty secret',
      litecoin({ rpc_password: { env: 'EMPTY' } }),
      /^LITECOIN.rpc_password: EMPTY is empty$/,
    ],
    [
      'a missing key file',
      ethereum({ hot_wallet_key: { file: NO_FILE } }),
      /^ETHEREUM.hot_wallet_key: \/nowhere\/key cannot be read \(ENOENT\)$/,
    ],
    [
      'a short key',
      ethereum({ hot_wallet_key: { env: 'SHORT_KEY' } }),
      /^ETHEREUM.hot_wallet_key is no private key of 32 bytes in hex$/,
    ],
    [
      'an invalid key',
      ethereum({ hot_wallet_key: { env: 'ZERO_KEY' } }),
      /^ETHEREUM.hot_wallet_key is no private key/,
    ],
    [
      'a mnemonic as the hot wallet key',
      ethereum({ hot_wallet_key: { env: 'MNEMONIC' } }),
      /^ETHEREUM.hot_wallet_key is no private key/,
    ],
    [
      'a private key as the deposit key',
      ethereum({ deposit_key: { env: 'KEY' } }),
      /^ETHEREUM.deposit_key: is no mnemonic \(BIP-39\) or extended key \(BIP-32\)$/,
    ],
    [
      'a public deposit key',
      ethereum({ deposit_key: { env: 'PUBLIC_KEY' } }),
      /^ETHEREUM.deposit_key: the deposit key is a public one, .* BURSAR_WORKER=false$/,
    ],
    [
      'only the address of the hot wallet, in a process that signs',
      ethereum({ hot_wallet_key: undefined, hot_wallet_address: ADDRESS }),
      /^ETHEREUM.hot_wallet_key is required: without it only a process with BURSAR_WORKER=false can be$/,
    ],
    [
      'the address of another wallet',
      ethereum({ hot_wallet_address: `0x${'1'.repeat(40)}` }),
      /^ETHEREUM.hot_wallet_address is not the address of hot_wallet_key: 0x/,
    ],
    [
      'an invalid hot wallet address',
      ethereum({ hot_wallet_address: '0x12' }),
      /^ETHEREUM.hot_wallet_address must match/,
    ],
    [
      'an unknown token',
      ethereum({ tokens: { DOGE: `0x${'1'.repeat(40)}` } }),
      /^ETHEREUM.tokens: DOGE is no token of ETHEREUM in the catalogue$/,
    ],
    [
      'a sweep_cost_max of zero',
      ethereum({ sweep_cost_max: '0' }),
      /^ETHEREUM: sweep_cost_max must be above 0 and have at most 4 decimals$/,
    ],
    [
      'a sweep_minimum finer than the decimals of USDG',
      ethereum({ sweep_minimum: { USDG: '0.0000001' } }),
      /^ETHEREUM: sweep_minimum.USDG must be above 0 and within the asset's decimals$/,
    ],
    [
      'a sweep_minimum for an asset that the network lacks',
      ethereum({ sweep_minimum: { LTC: '1' } }),
      /^ETHEREUM: sweep_minimum.LTC: ETHEREUM has no such asset$/,
    ],
    [
      'an invalid token address',
      ethereum({ tokens: { USDG: '0x12' } }),
      /^ETHEREUM.tokens.USDG must match pattern/,
    ],
  ])('%s', async (_name, content, message) => {
    const { message: told } = await read(content).then(
      () => new Error('it is taken'),
      (error: Error) => error,
    )
    expect(told).toMatch(message)
    expect(told.split('\n')).toHaveLength(1)
    for (const secret of SECRETS) expect(told).not.toContain(secret)
  })

  test('a missing file', async () => {
    const path = join(folder, 'no-such-file.json')
    await expect(configuredNetworks(path, ENVIRONMENT, NO_DATABASE, 'live', USE)).rejects.toThrow(
      /ENOENT.*no-such-file\.json/,
    )
  })
})

describe('each mode accepts only its own networks:', () => {
  const inMode = async (content: unknown, mode: 'sandbox' | 'live') =>
    configuredNetworks(await fileOf(content), ENVIRONMENT, NO_DATABASE, mode, USE)

  test.each<[string, unknown]>([
    ['the main network by default', ethereum({})],
    ['the main network, named', ethereum({ chain_id: 1 })],
    ["another network's main network", ethereum({ chain_id: 8453 })],
    ['a main network in the section of another', { BASE: { ...ETHEREUM, chain_id: 1 } }],
  ])('a sandbox refuses %s', async (_, content) => {
    await expect(inMode(content, 'sandbox')).rejects.toThrow(
      /^(ETHEREUM|BASE)\.chain_id: \d+ is the main network of (ETHEREUM|BASE), and a sandbox's money is invented: /,
    )
  })

  test('a sandbox accepts a test network, and pays on it only money that was deposited on it', async () => {
    for (const chain_id of [11155111, 31337]) {
      const networks = await inMode(ethereum({ chain_id }), 'sandbox')
      expect(networks.get('ETHEREUM')!.adapter).toMatchObject({ paysDepositsOnly: true })
    }
  })

  test('live mode refuses a test network, and accepts the main network', async () => {
    for (const chain_id of [11155111, 31337, 8453])
      await expect(inMode(ethereum({ chain_id }), 'live')).rejects.toThrow(
        `ETHEREUM.chain_id: ${chain_id} is not the main network of ETHEREUM (1), which live mode needs`,
      )
    const networks = await inMode(ethereum({ chain_id: 1 }), 'live')
    expect(networks.get('ETHEREUM')!.adapter).not.toHaveProperty('paysDepositsOnly')
  })

  /** Starts a node of the Bitcoin family that answers its chain and records the requested methods. */
  async function nodeOn(chain: string) {
    const asked: string[] = []
    const node = createServer((request, reply) => {
      void text(request).then((body) => {
        const one = JSON.parse(body) as { id: unknown; method: string } | { id: unknown; method: string }[]
        const answers = [one].flat().map(({ id, method }) => {
          asked.push(method)
          return { id, error: null, result: method === 'getblockchaininfo' ? { chain } : 'ltc1q' }
        })
        reply.end(JSON.stringify(Array.isArray(one) ? answers : answers[0]))
      })
    }).listen(0, '127.0.0.1')
    await once(node, 'listening')
    onTestFinished(async () => void node.close())
    return { asked, rpc_url: `http://127.0.0.1:${(node.address() as AddressInfo).port}` }
  }

  test.each<['sandbox' | 'live', string, RegExp]>([
    ['sandbox', 'main', /^the node of LITECOIN is on the main network, and a sandbox's money is invented/],
    ['live', 'regtest', /^the node of LITECOIN is on the test network 'regtest', and live mode needs/],
    ['live', 'test', /^the node of LITECOIN is on the test network 'test', and live mode needs/],
  ])('in %s mode a node on %s is used for no signature, deposit or address', async (mode, chain, message) => {
    const { asked, rpc_url } = await nodeOn(chain)
    const { adapter, requireChain } = (await inMode(litecoin({ rpc_url }), mode)).get('LITECOIN')!
    await expect(requireChain!()).rejects.toThrow(message)
    for (const use of [
      () => adapter.sign({} as Transaction, []),
      () => adapter.replace!({} as Transaction, []),
      () => adapter.newDepositAddress!('LITECOIN'),
      () => adapter.scanDeposits!(null),
      () => adapter.status!(),
    ])
      await expect(use()).rejects.toThrow(WrongChain)
    expect(new Set(asked)).toEqual(new Set(['getblockchaininfo']))
  })

  test.each([
    ['sandbox', 'regtest'],
    ['live', 'main'],
  ] as const)('in %s mode a node on %s is asked for its chain once', async (mode, chain) => {
    const { asked, rpc_url } = await nodeOn(chain)
    const { requireChain } = (await inMode(litecoin({ rpc_url }), mode)).get('LITECOIN')!
    for (let time = 1; time <= 3; time++) await requireChain!()
    expect(asked).toEqual(['getblockchaininfo'])
  })
})
