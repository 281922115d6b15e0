import { signerOfSeed } from './solana/keys.ts'
import { laneAccounts } from './solana/lanes.ts'
import { Keypair } from '@stellar/stellar-base'
import { base58 } from '@scure/base'
import { randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import {
  english,
  generateMnemonic,
  generatePrivateKey,
  mnemonicToAccount,
  privateKeyToAccount,
} from 'viem/accounts'
import { beforeEach, expect, test } from 'vitest'
import { CLUSTER } from '../test/cluster.ts'
import { newCustomer, testSettings, ownTestService } from '../test/support.ts'
import { depositKeysOf as evmKeysOf } from './evm/deposit-keys.ts'
import type { NewAddress } from '../src/networks/network.ts'
import { depositKeysOf as solanaKeysOf } from './solana/deposit-keys.ts'
import type { StellarChain } from './stellar/chain.ts'
import { newAddress as newStellarAddress } from './stellar/deposits.ts'
import type { CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import type { Queryable } from '../src/db/database.ts'
import { checkNetworks, openNetworks, requireChains } from '../src/rails/wallets/configured-networks.ts'
import { foreignKeys } from '../src/rails/wallets/keys-on-record.ts'
import { ownFolder } from '../test/at-end.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const folder = await ownFolder()
beforeEach(async () => {
  await service.owner.query('delete from deposit_addresses')
  await service.owner.query('delete from evm_nonces')
  await service.owner.query('delete from solana_lanes')
})

/** No node answers: what is on record needs none. */
const NODE = 'http://127.0.0.1:9'
const MNEMONICS = [generateMnemonic(english), generateMnemonic(english)]
const ENVIRONMENT = {
  WORDS: MNEMONICS[0]!,
  OTHER_WORDS: MNEMONICS[1]!,
  PUBLIC: mnemonicToAccount(MNEMONICS[0]!, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey,
  KEY: generatePrivateKey(),
  OTHER_KEY: generatePrivateKey(),
  SEED: base58.encode(randomBytes(32)),
  OTHER_SEED: base58.encode(randomBytes(32)),
  STELLAR: Keypair.random().secret(),
  OTHER_STELLAR: Keypair.random().secret(),
}
const secret = (env: keyof typeof ENVIRONMENT) => ({ env })
const evm = (changes = {}) => ({
  adapter: 'evm',
  chain_id: 31_337,
  rpc_url: NODE,
  hot_wallet_key: secret('KEY'),
  deposit_key: secret('WORDS'),
  fee_ceiling: '100',
  ...changes,
})
const solana = (changes = {}) => ({
  adapter: 'solana',
  confirmations: 'finalized',
  rpc_url: NODE,
  hot_wallet_key: secret('SEED'),
  deposit_key: secret('WORDS'),
  fee_ceiling: '0.001',
  ...changes,
})
const stellar = (changes = {}) => ({
  adapter: 'stellar',
  rpc_url: NODE,
  hot_wallet_key: secret('STELLAR'),
  fee_ceiling: '0.1',
  ...changes,
})

type Sections = Partial<Record<CryptoNetwork, object>>

async function settingsOf(sections: Sections, worker = true) {
  const path = join(folder, 'networks.json')
  await writeFile(path, JSON.stringify(sections))
  return testSettings({ ...ENVIRONMENT, BURSAR_NETWORKS_FILE: path, BURSAR_WORKER: String(worker) })
}

/** Why the service does not start with these sections; undefined where it does. `doctor` must say the same. */
async function refusal(sections: Sections, worker = true): Promise<string | undefined> {
  const settings = await settingsOf(sections, worker)
  const networks = await openNetworks(settings, service.db)
  const refused = await requireChains(networks, service.db, pino({ level: 'silent' })).then(
    () => undefined,
    (error: Error) => error.message,
  )
  const told = (await checkNetworks(service.db, settings)).filter(({ says }) => says.includes('former_'))
  expect(told.map(({ result, says }) => `${result} BURSAR_NETWORKS_FILE: ${says}`)).toEqual(
    refused === undefined ? [] : [`FAIL ${refused}`],
  )
  return refused
}

/** Records an address as the network gives it out. */
async function giveOut(network: CryptoNetwork, give: (id: string) => NewAddress) {
  const id = randomUUID()
  const given = give(id)
  await service.owner.query(
    `insert into deposit_addresses (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at, derivation)
     values ($1, $2, $3, $4, $5, 'NO_CONVERSION', clock_timestamp(), $6)`,
    [customer.customer_id, id, customer.profile_id, network, given.address, given.derivation],
  )
  return { ...given, name: given.derivation!.split('/')[0]! }
}

const ofEvm = (mnemonic: string) => (id: string) => evmKeysOf({ mnemonic }).newAddress(id)
const ofSolana = (mnemonic: string) => (id: string) => solanaKeysOf(mnemonic).newAddress(id)

test.for([
  ['ETHEREUM', evm, ofEvm],
  ['SOLANA', solana, ofSolana],
] as const)(
  'the deposit_key of %s must have given out the newest address',
  async ([network, section, of]) => {
    const other = section({ deposit_key: secret('OTHER_WORDS') })
    expect(await refusal({ [network]: other })).toBeUndefined()
    const { name, address } = await giveOut(network, of(ENVIRONMENT.WORDS))
    expect(await refusal({ [network]: section() })).toBeUndefined()
    const foreign = await refusal({ [network]: other })
    expect(foreign).toContain(`another key than the configured one gave out deposit address ${address}`)
    expect(foreign).toContain(`name "${name}" in former_keys`)
    expect(await refusal({ [network]: { ...other, former_keys: [name] } })).toBeUndefined()
    await service.owner.query(
      `update deposit_addresses set derivation = regexp_replace(derivation, '[0-9]+$', '7')`,
    )
    expect(await refusal({ [network]: section() })).toContain(address)
    await service.owner.query(`update deposit_addresses set derivation = $1 || '/nonsense'`, [name])
    expect(await refusal({ [network]: section() })).toContain(address)
  },
)

test('one key serves all EVM networks, a public one too, and each key that is not in use must be named', async () => {
  const { name } = await giveOut('BASE', ofEvm(ENVIRONMENT.WORDS))
  await giveOut('ETHEREUM', ofEvm(ENVIRONMENT.OTHER_WORDS))
  const watching = evm({ deposit_key: secret('PUBLIC') })
  expect(await refusal({ ETHEREUM: watching }, false)).toMatch(/^BURSAR_NETWORKS_FILE: ETHEREUM: another key/)
  const other = evm({ deposit_key: secret('OTHER_WORDS') })
  expect(await refusal({ ETHEREUM: other, BASE: other })).toContain(`"${name}"`)
  expect(await refusal({ ETHEREUM: other, BASE: watching }, false)).toBeUndefined()
  // What BASE gave out is judged where BASE is opened.
  expect(await refusal({ ETHEREUM: other })).toBeUndefined()
})

test('the account of STELLAR must be that of the newest address, and simulated addresses need no key', async () => {
  await service.owner.query(
    `insert into deposit_addresses (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at)
     select $1, gen_random_uuid(), $2, n, n, 'NO_CONVERSION', clock_timestamp() from unnest(array['STELLAR', 'ETHEREUM', 'LITECOIN']) n`,
    [customer.customer_id, customer.profile_id],
  )
  expect(await refusal({ STELLAR: stellar(), ETHEREUM: evm() })).toBeUndefined()
  const { address } = await giveOut('STELLAR', (id) =>
    newStellarAddress({ address: Keypair.fromSecret(ENVIRONMENT.STELLAR).publicKey() } as StellarChain, id),
  )
  expect(await refusal({ STELLAR: stellar() })).toBeUndefined()
  const other = stellar({ hot_wallet_key: secret('OTHER_STELLAR') })
  expect(await refusal({ STELLAR: other })).toContain(address)
  expect(await refusal({ STELLAR: { ...other, former_keys: [address] } })).toBeUndefined()
})

test('of each key among many, the newest address is found by an index', async () => {
  await service.owner.query(
    `insert into deposit_addresses (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at, derivation)
     select $1, gen_random_uuid(), $2, 'ETHEREUM', 'many' || n, 'NO_CONVERSION', clock_timestamp(), 'many/' || n from generate_series(1, 5000) n`,
    [customer.customer_id, customer.profile_id],
  )
  const { name } = await giveOut('ETHEREUM', ofEvm(ENVIRONMENT.WORDS))
  const { rows } = await service.owner.query<{ address: string }>(
    `select address from deposit_addresses where derivation like 'many/%' order by id desc limit 1`,
  )
  expect(await refusal({ ETHEREUM: evm() })).toContain(`address ${rows[0]!.address}:`)
  expect(await refusal({ ETHEREUM: evm({ former_keys: ['many'] }) })).toBeUndefined()
  const other = evm({ deposit_key: secret('OTHER_WORDS'), former_keys: ['many'] })
  expect(await refusal({ ETHEREUM: other })).toContain(`"${name}"`)

  // The plan of a cluster merges those of its shards.
  if (CLUSTER.length > 0) return
  await service.owner.query('analyze deposit_addresses')
  const plans: string[] = []
  const explained: Queryable = {
    query: async (text: string, values: unknown[]) => {
      const { rows: plan } = await service.owner.query(`explain ${text}`, values)
      plans.push(JSON.stringify(plan))
      return service.owner.query(text, values)
    },
  } as Queryable
  const networks = await openNetworks(await settingsOf({ ETHEREUM: other }), service.db)
  expect((await foreignKeys(explained, networks)).foreign).toHaveLength(1)
  const lookUps = plans.filter((plan) => plan.includes('deposit_addresses'))
  expect(lookUps).toHaveLength(3)
  for (const plan of lookUps) {
    expect(plan).toContain('deposit_addresses_key')
    expect(plan).not.toMatch(/Seq Scan|Sort/)
  }
})

test('a node that is down leaves its network alone uncompared, and the network is named', async () => {
  await giveOut('BITCOIN', () => ({
    address: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    derivation: 'wallet',
  }))
  const { address } = await giveOut('ETHEREUM', ofEvm(ENVIRONMENT.OTHER_WORDS))
  const bitcoin = {
    ...{ adapter: 'bitcoin-core', rpc_url: NODE, rpc_user: 'u', rpc_password: secret('KEY') },
    ...{ wallet: 'w', fee_ceiling: '0.001', confirmations: 3 },
  }
  const ethereum = evm({ chain_id: 1, confirmations: 64 })
  const settings = { ...(await settingsOf({ BITCOIN: bitcoin, ETHEREUM: ethereum })), mode: 'live' as const }
  const logged: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(line) })
  const networks = await openNetworks(settings, service.db)
  await expect(requireChains(networks, service.db, log)).rejects.toThrow(address)
  expect(logged.filter((line) => line.includes('keys of BITCOIN'))).toHaveLength(1)
  const found = await checkNetworks(service.db, settings)
  expect(found).toContainEqual(
    expect.objectContaining({ result: 'FAIL', says: expect.stringContaining(address) as string }),
  )
  expect(found.filter(({ says }) => says.includes('not compared'))).toEqual([
    expect.objectContaining({ result: 'WARN', says: expect.stringMatching(/^BITCOIN: /) as string }),
  ])
})

test('wallets that were used must be configured or former, where the process signs', async () => {
  const wallet = mnemonicToAccount(MNEMONICS[1]!).address
  await service.owner.query(
    `insert into evm_nonces (network, address, next_nonce) values ('ETHEREUM', $1, 1), ('BASE', 'never', 0)`,
    [wallet],
  )
  const foreign = await refusal({ ETHEREUM: evm(), BASE: evm() })
  expect(foreign).toContain(`ETHEREUM: ${wallet} was used, and is of no configured wallet`)
  expect(foreign).toContain('hot wallet, further hot wallet or gas wallet')
  expect(await refusal({ ETHEREUM: evm({ former_hot_wallets: [{ address: wallet }] }) })).toBeUndefined()

  // An API process knows neither the gas wallet nor the further wallets.
  const watched = {
    hot_wallet_address: privateKeyToAccount(ENVIRONMENT.KEY).address,
    hot_wallet_key: undefined,
  }
  const api = evm({ ...watched, deposit_key: secret('PUBLIC') })
  expect(await refusal({ ETHEREUM: api }, false)).toBeUndefined()

  await service.owner.query(`insert into solana_lanes (network, nonce_account) values ('SOLANA', 'another')`)
  expect(await refusal({ SOLANA: solana() })).toContain('SOLANA: another was used')
  expect(await refusal({ SOLANA: solana({ former_keys: ['another'] }) })).toBeUndefined()
  const before = signerOfSeed(randomBytes(32))
  const [lane] = laneAccounts({ hotWallet: before, formerWallets: [], lanes: 1 })
  await service.owner.query(`update solana_lanes set nonce_account = $1`, [lane!.account])
  expect(await refusal({ SOLANA: solana() })).toContain(`SOLANA: ${lane!.account} was used`)
  expect(await refusal({ SOLANA: solana({ former_hot_wallets: [before.address] }) })).toBeUndefined()
  for (const former_hot_wallets of [['another'], ['z'.repeat(33)]])
    await expect(refusal({ SOLANA: solana({ former_hot_wallets }) })).rejects.toThrow(
      'former_hot_wallets.0 must',
    )
  // What it holds would count twice.
  const twice = solana({ former_hot_wallets: [before.address, before.address] })
  await expect(refusal({ SOLANA: twice })).rejects.toThrow('former_hot_wallets.1 must')
})
