import { readFile } from 'node:fs/promises'
import { Ajv } from 'ajv'
import { Type, type Static } from 'typebox'
import { privateKeyToAccount } from 'viem/accounts'
import { CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { bitcoinAdapter } from './bitcoin.ts'
import { evmAdapter } from './evm.ts'
import type { DepositKey } from './evm-deposit-keys.ts'
import type { NetworkAdapter } from './networks.ts'

/**
 * The real networks, from a JSON file with a section for each. A secret is named by where it is, in the environment
 * or in a file of its own; it is never in the section, in the database or in a log.
 */

const Secret = Type.Union([
  Type.Object({ env: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
  Type.Object({ file: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
])
type Secret = Static<typeof Secret>

const Decimal = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$', maxLength: 40 })
const Confirmations = Type.Integer({ minimum: 1, maximum: 10_000 })
const shared = {
  /** An address may hold a key: then it is a secret. */
  rpc_url: Type.Union([Type.String({ minLength: 1 }), Secret]),
  /** How deep a transaction must be to count: a withdrawal's as a deposit's. */
  confirmations: Confirmations,
  /** What the hot wallet should hold of the network's own asset at least; `bursar networks status` warns below it. */
  low_mark: Type.Optional(Decimal),
}

const BitcoinSection = Type.Object(
  {
    adapter: Type.Literal('bitcoin-core'),
    ...shared,
    rpc_user: Type.String({ minLength: 1 }),
    rpc_password: Secret,
    /** The node's wallet: the hot wallet. */
    wallet: Type.Optional(Type.String({ minLength: 1 })),
    /** In coins per 1,000 virtual bytes. */
    fee_ceiling: Decimal,
  },
  { additionalProperties: false },
)
const EvmSection = Type.Object(
  {
    adapter: Type.Literal('evm'),
    ...shared,
    /** For test networks; else the catalogue's. */
    chain_id: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The hot wallet's private key, in hex. */
    hot_wallet_key: Secret,
    /** The mnemonic or private extended key that deposit addresses are derived from; without it there are none. */
    deposit_key: Type.Optional(Secret),
    /** In gwei. */
    fee_ceiling: Decimal,
    /** Contract addresses by asset, for test networks; else the catalogue's. */
    tokens: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }))),
  },
  { additionalProperties: false },
)
const SECTIONS = { bitcoin: BitcoinSection, evm: EvmSection }
type Family = keyof typeof SECTIONS

const ajv = new Ajv({ allErrors: false, strict: true, strictTypes: false })

/** What was read of a section, beside its adapter. */
export interface ConfiguredNetwork {
  adapter: NetworkAdapter
  confirmations: number
  lowMark: string | undefined
}

/** Reads the file and connects its networks. Throws with the section and field that is wrong. */
export async function configuredNetworks(
  path: string,
  environment: Record<string, string | undefined>,
  db: Database,
): Promise<ReadonlyMap<CryptoNetwork, ConfiguredNetwork>> {
  const sections = readSections(await readFile(path, 'utf8'))
  const networks = new Map<CryptoNetwork, ConfiguredNetwork>()
  for (const [name, section] of Object.entries(sections)) {
    const network = networkOf(name)
    const secret = (field: string, where: Secret) => readSecret(`${name}.${field}`, where, environment)
    const adapter = await connect(network, section, secret, db)
    const { confirmations, low_mark } = section as Static<typeof BitcoinSection>
    networks.set(network, { adapter, confirmations, lowMark: low_mark })
  }
  return networks
}

function readSections(content: string): Record<string, unknown> {
  let sections: unknown
  try {
    sections = JSON.parse(content)
  } catch (error) {
    throw new Error(`is not JSON: ${(error as Error).message}`, { cause: error })
  }
  if (typeof sections !== 'object' || sections === null || Array.isArray(sections))
    throw new Error('must be a JSON object with a section for each network')
  return sections as Record<string, unknown>
}

function networkOf(name: string): CryptoNetwork {
  const network = CRYPTO_NETWORKS.find((known) => known === name)
  if (network === undefined) throw new Error(`${name} is no network; there are ${CRYPTO_NETWORKS.join(', ')}`)
  return network
}

type SecretOf = (field: string, where: Secret) => Promise<string>

async function connect(
  network: CryptoNetwork,
  section: unknown,
  secret: SecretOf,
  db: Database,
): Promise<NetworkAdapter> {
  const { family } = NETWORKS[network]
  if (!(family in SECTIONS)) throw new Error(`${network} has no adapter for a real network yet`)
  const schema = SECTIONS[family as Family]
  if (!ajv.validate(schema, section)) throw new Error(complaint(network))
  if (family === 'bitcoin') {
    const { rpc_url, rpc_user, rpc_password, wallet, confirmations, fee_ceiling } = section as Static<
      typeof BitcoinSection
    >
    return bitcoinAdapter(
      network as Parameters<typeof bitcoinAdapter>[0],
      {
        rpcUrl: typeof rpc_url === 'string' ? rpc_url : await secret('rpc_url', rpc_url),
        rpcUser: rpc_user,
        rpcPassword: await secret('rpc_password', rpc_password),
        wallet,
        confirmations,
        feeCeiling: fee_ceiling,
      },
      db,
    )
  }
  const { rpc_url, chain_id, hot_wallet_key, deposit_key, confirmations, fee_ceiling, tokens } =
    section as Static<typeof EvmSection>
  return evmAdapter(
    network,
    {
      rpcUrl: typeof rpc_url === 'string' ? rpc_url : await secret('rpc_url', rpc_url),
      chainId: chain_id,
      hotWallet: accountOf(`${network}.hot_wallet_key`, await secret('hot_wallet_key', hot_wallet_key)),
      depositKey: deposit_key && depositKeyOf(await secret('deposit_key', deposit_key)),
      confirmations,
      maxFeePerGasCeiling: fee_ceiling,
      tokens,
    },
    db,
  )
}

/** What is wrong with a key is said without it. */
function accountOf(field: string, key: string) {
  if (!/^(0x)?[0-9a-fA-F]{64}$/.test(key)) throw new Error(`${field} is no private key of 32 bytes in hex`)
  return privateKeyToAccount(`0x${key.replace(/^0x/, '')}`)
}

const depositKeyOf = (text: string): DepositKey =>
  text.includes(' ') ? { mnemonic: text } : { extendedKey: text }

/** What is wrong with which field, by its path from the network's name. */
function complaint(network: CryptoNetwork): string {
  const { instancePath, keyword, params, message } = ajv.errors![0]!
  const at = [network, ...instancePath.split('/').slice(1)].join('.')
  if (keyword === 'additionalProperties')
    return `${at}.${(params as { additionalProperty: string }).additionalProperty} is not a known field`
  if (keyword === 'required')
    return `${at}.${(params as { missingProperty: string }).missingProperty} is required`
  return `${at} ${message ?? 'is invalid'}`
}

async function readSecret(
  field: string,
  where: Secret,
  environment: Record<string, string | undefined>,
): Promise<string> {
  if ('env' in where) {
    const value = environment[where.env]
    if (value === undefined || value === '')
      throw new Error(`${field}: ${where.env} is not in the environment`)
    return value.trim()
  }
  return (await readFile(where.file, 'utf8')).trim()
}
