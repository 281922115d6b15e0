import { createPublicKey, type KeyObject } from 'node:crypto'
import { access, constants, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Ajv } from 'ajv'
import { Type, type Static } from 'typebox'
import { tokensOf, type Token } from '../chains/evm/chain.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import {
  CRYPTO_NETWORKS,
  decimalsOf,
  findAsset,
  NETWORKS,
  type CryptoNetwork,
} from '../src/contract/assets/catalogue.ts'
import { Closed } from '../src/contract/fields.ts'
import { readApproverKey, type ApproverKey } from '../src/governance/approvals/approval-statement.ts'
import { mintsOf } from '../chains/solana/chain.ts'
import { naming } from '../src/networks/section.ts'
import { readSecret, Secret } from '../src/networks/secrets.ts'
import { bitcoin } from './bitcoin.ts'
import { evm } from './evm.ts'
import type { DepositKeys, SignerFamily, SignerNetwork, Wallet } from './family.ts'
import { solana } from './solana.ts'
import { stellarOn } from './stellar.ts'
import { openWallet, WalletSection } from './wallets.ts'

/** The signer's own configuration: it believes no database, and takes no word of whoever asks it. */

const Decimal = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$', maxLength: 40 })
const Address = Type.String({ minLength: 1 })
const Path = Type.String({ minLength: 1 })
const PublicKey = Type.Object(
  { kty: Type.String(), crv: Type.String(), x: Type.String() },
  { additionalProperties: true },
)

const NetworkSection = Closed({
  /** The chain id of a test network; by default the catalogue's. */
  chain_id: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The passphrase of a test network of STELLAR; by default the public network's. */
  network_passphrase: Type.Optional(Address),
  /** Contracts, mints or issuers by asset, for test networks; by default the catalogue's. */
  tokens: Type.Optional(Type.Record(Type.String(), Address)),
  /** Where the keys of the hot wallets are. */
  wallets: Type.Array(WalletSection, { minItems: 1, maxItems: 20 }),
  /** The most that one transaction may cost, in the network's own asset. */
  fee_max: Decimal,
  /** The most that leaves within a period of a year at most, by asset. An asset without an amount for all is not paid. */
  windows: Type.Array(
    Closed({
      asset: Type.String(),
      period_seconds: Type.Integer({ minimum: 1, maximum: 31_536_000 }),
      amount: Type.Optional(Decimal),
      /** The most payments. */
      count: Type.Optional(Type.Integer({ minimum: 1 })),
      /** Each customer or destination has a window of its own. */
      per: Type.Optional(Type.Union([Type.Literal('customer'), Type.Literal('destination')])),
    }),
    { minItems: 1 },
  ),
  /** From an amount on, an asset goes only to a destination that people named, so long ago. */
  destinations: Type.Optional(
    Type.Array(
      Closed({
        asset: Type.String(),
        from: Decimal,
        required: Type.Integer({ minimum: 1 }),
        cooling_seconds: Type.Integer({ minimum: 0, maximum: 31_536_000 }),
      }),
    ),
  ),
  /** The mnemonic or extended private key of the deposit addresses: what lies there goes to the wallets. */
  deposit_key: Type.Optional(Secret),
  /** Where the key is that pays gas to deposit addresses, and nothing else. */
  gas_wallet: Type.Optional(WalletSection),
  /** Where the platform's own transfers may go, beside the wallets: cold storage. */
  treasury_destinations: Type.Optional(Type.Array(Address)),
})

const Config = Closed({
  /** A path is a unix socket; otherwise mutually authenticated TLS. */
  listen: Type.Union([
    Path,
    Closed({
      host: Type.String(),
      port: Type.Integer({ minimum: 0, maximum: 65_535 }),
      certificate: Path,
      key: Path,
      client_ca: Path,
    }),
  ]),
  journal: Path,
  /** While this file is there, or its folder cannot be searched, nothing is signed. */
  stop_file: Path,
  /** The public keys (JWK, Ed25519) of the processes that accept withdrawals. */
  acceptance_keys: Type.Array(PublicKey, { minItems: 1 }),
  /** The public keys (JWK) of the people who approve payments, and what is done to the journal. */
  approvers: Type.Array(PublicKey),
  /** From this amount of an asset on, this many of them must have approved a withdrawal. */
  approvals: Type.Array(
    Closed({ asset: Type.String(), from: Decimal, required: Type.Integer({ minimum: 1 }) }),
  ),
  /** How many of them open a journal that was lost, or void what was signed. */
  journal_approvals: Type.Integer({ minimum: 1 }),
  networks: Type.Record(Type.String(), NetworkSection),
})
export type Listen = Static<typeof Config>['listen']

export interface SignerConfig {
  listen: Listen
  journal: string
  stopFile: string
  acceptanceKeys: KeyObject[]
  approvers: ApproverKey[]
  approvals: { asset: string; from: string; required: number }[]
  journalApprovals: number
  networks: ReadonlyMap<string, SignerNetwork>
}

/** The families that are signed for, on the network of a section, and networks whose family is not signed for as a whole. */
const FAMILIES: Readonly<Record<string, (section: Static<typeof NetworkSection>) => SignerFamily>> = {
  ...{ evm: () => evm, solana: () => solana },
  ...{ BITCOIN: () => bitcoin('BITCOIN'), LITECOIN: () => bitcoin('LITECOIN') },
  stellar: ({ network_passphrase }) => stellarOn(network_passphrase),
}

/** Decimals of an asset on the chain. */
export const decimalsOn = (network: CryptoNetwork, asset: string): number | undefined =>
  NETWORKS[network].family === 'evm' && asset === NETWORKS[network].gasAsset
    ? 18
    : findAsset(asset)?.networks[network]?.decimals

/** Reads the signer's file, with the keys that it names. Throws an Error that names the field and the rule. */
export async function readSignerConfig(
  path: string,
  environment: Record<string, string | undefined>,
): Promise<SignerConfig> {
  const value = JSON.parse(await readFile(path, 'utf8')) as Static<typeof Config>
  const ajv = new Ajv({ allErrors: false, strict: true, strictTypes: false })
  if (!ajv.validate(Config, value)) {
    const { instancePath, message, params } = ajv.errors![0]!
    const { additionalProperty } = params as { additionalProperty?: string }
    const field = [
      ...instancePath.split('/').slice(1),
      ...(additionalProperty ? [additionalProperty] : []),
    ].join('.')
    throw new Error(`${field || 'the file'} ${additionalProperty ? 'is not a known field' : message}`)
  }
  await access(dirname(value.stop_file), constants.X_OK).catch((error: Error) => {
    throw new Error(`stop_file: its folder must be one that the signer can search: ${error.message}`)
  })
  const approvers = value.approvers.map((jwk) => readApproverKey(jwk))
  const rules = [
    ...value.approvals,
    ...Object.values(value.networks).flatMap((one) => one.destinations ?? []),
  ]
  const most = Math.max(value.journal_approvals, ...rules.map(({ required }) => required))
  if (most > approvers.length)
    throw new Error(`approvers names ${approvers.length} keys, and ${most} approvals are required`)
  for (const [index, { asset, from }] of value.approvals.entries())
    if (findAsset(asset) === undefined || parseAmount(from, decimalsOf(asset)) === undefined)
      throw new Error(`approvals.${index} must name an asset, and an amount with its decimals`)
  const networks = new Map<string, SignerNetwork>()
  for (const [name, section] of Object.entries(value.networks))
    networks.set(name, await networkOf(name, section, environment))
  return {
    listen: value.listen,
    journal: value.journal,
    stopFile: value.stop_file,
    acceptanceKeys: value.acceptance_keys.map((key) => ed25519Of(key)),
    approvers,
    approvals: value.approvals,
    journalApprovals: value.journal_approvals,
    networks,
  }
}

function ed25519Of(jwk: Static<typeof PublicKey>): KeyObject {
  if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519')
    throw new Error('acceptance_keys must be JWKs of Ed25519 (kty OKP)')
  if ('d' in jwk) throw new Error('acceptance_keys has a private key: give the public one, without d')
  return createPublicKey({ key: jwk, format: 'jwk' })
}

async function networkOf(
  name: string,
  section: Static<typeof NetworkSection>,
  environment: Record<string, string | undefined>,
): Promise<SignerNetwork> {
  const network = CRYPTO_NETWORKS.find((known) => known === name)
  const family = network && (FAMILIES[network] ?? FAMILIES[NETWORKS[network].family])?.(section)
  if (network === undefined || family === undefined)
    throw new Error(
      `networks.${name} is no network that is signed for: of EVM, BITCOIN, LITECOIN, SOLANA and STELLAR`,
    )
  const isEvm = family === evm
  const tokens = isEvm ? tokensOf(network, section.tokens ?? {}) : new Map<string, Token>()
  const contracts = [...tokens].map(([asset, { address }]): [string, string] => [asset, address])
  const issuers = isEvm ? [] : Object.entries(section.tokens ?? {})
  const mints = family === solana ? [...mintsOf(section.tokens ?? {})] : issuers
  const units = (field: string, asset: string, amount: string) => {
    const decimals = decimalsOn(network, asset)
    if (decimals === undefined) throw new Error(`networks.${name}.${field}: ${asset} is no asset of ${name}`)
    const parsed = parseAmount(amount, decimals)
    if (parsed === undefined) throw new Error(`networks.${name}.${field} has more than ${decimals} decimals`)
    return parsed
  }
  const openAt = (field: string, where: Static<typeof WalletSection>) =>
    openWallet(family, `networks.${name}.${field}`, where, environment)
  const wallets = new Map<string, Wallet>()
  for (const [index, where] of section.wallets.entries()) {
    const wallet = await openAt(`wallets[${index}]`, where)
    wallets.set(wallet.address, wallet)
  }
  const gas = section.gas_wallet
  const gasWallet = gas && (await openAt('gas_wallet', gas))
  if (gasWallet !== undefined && wallets.has(gasWallet.address))
    throw new Error(`networks.${name}.gas_wallet is among its wallets: its nonces would collide`)
  return {
    ...{ network, family, gasWallet, tokens },
    depositKeys: section.deposit_key && (await depositKeysIn(family, name, section.deposit_key, environment)),
    chainId: section.chain_id ?? NETWORKS[network].chainId ?? 0,
    tokenAddresses: Object.fromEntries([...contracts, ...mints]),
    wallets,
    feeMax: units('fee_max', NETWORKS[network].gasAsset, section.fee_max),
    windows: section.windows.map(({ asset, period_seconds, amount, count, per }, index) => {
      const field = `windows[${index}]`
      if (amount === undefined && count === undefined)
        throw new Error(`networks.${name}.${field} must have an amount, a count or both`)
      const most = units(`${field}.amount`, asset, amount ?? '0')
      const limit = { asset, periodMs: period_seconds * 1000, payments: count, per }
      return { ...limit, units: amount === undefined ? undefined : most }
    }),
    destinations: (section.destinations ?? []).map((rule, index) => ({
      asset: rule.asset,
      from: units(`destinations[${index}].from`, rule.asset, rule.from),
      required: rule.required,
      coolingMs: rule.cooling_seconds * 1000,
    })),
    treasuryDestinations: new Set(
      (section.treasury_destinations ?? []).map((address) => family.addressOf(address)),
    ),
  }
}

async function depositKeysIn(
  family: SignerFamily,
  name: string,
  where: Secret,
  environment: Record<string, string | undefined>,
): Promise<DepositKeys> {
  const field = `networks.${name}.deposit_key`
  const text = await readSecret(field, where, environment)
  return naming(field, () => family.depositKeysOf(text))
}
