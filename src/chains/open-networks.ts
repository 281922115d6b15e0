import { readFile } from 'node:fs/promises'
import { Ajv } from 'ajv'
import { Type, type Static } from 'typebox'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { getAddress } from 'viem/utils'
import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import {
  CRYPTO_NETWORKS,
  decimalsOf,
  findAsset,
  minimumDepositOf,
  NETWORKS,
  type CryptoNetwork,
} from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { bitcoinAdapter } from './bitcoin/adapter.ts'
import { bitcoinRpc } from './bitcoin/rpc.ts'
import { onChainOf, requireChainId, type Mode } from './chain-of-mode.ts'
import { evmAdapter } from './evm/adapter.ts'
import { depositKeysOf, type DepositKey } from './evm/deposit-keys.ts'
import { PERCENT_DECIMALS, sweepTermsOf, type SweepConfig } from './evm/sweeps/worth.ts'
import { tokensOf } from './evm/chain.ts'
import type { EvmSigner } from './evm/transaction.ts'
import { NoSigningKey } from './node-failure.ts'
import { FEE_MARGIN_DECIMALS, FEES_FACTOR_DECIMALS, type AreGiven, type NetworkAdapter } from './network.ts'
import type { TokenAddresses } from './signed-payments.ts'
import { Closed } from '../contract/fields.ts'

/**
 * The real networks, from a JSON file with a section for each. A section names where a secret is, in the environment or in a
 * file of its own. A secret is never in a section, in the database or in a log.
 */

const Secret = Type.Union([
  Closed({ env: Type.String({ minLength: 1 }) }),
  Closed({ file: Type.String({ minLength: 1 }) }),
])
type Secret = Static<typeof Secret>

const Decimal = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$', maxLength: 40 })
const CONFIRMATIONS_MAX = 10_000
const Confirmations = Type.Integer({ minimum: 1, maximum: CONFIRMATIONS_MAX })
const shared = {
  /** A URL may hold a key: then it is a secret. */
  rpc_url: Type.Union([Type.String({ minLength: 1 }), Secret]),
  /** Confirmations that a transaction needs, of a withdrawal and of a deposit. */
  confirmations: Confirmations,
  /** The least that the hot wallet should hold of the network's own asset; `bursar networks status` warns below it. */
  low_mark: Type.Optional(Decimal),
  /** The percentage that a quoted fee adds to the node's estimate. */
  fee_margin: Type.Optional(Decimal),
  /** Payouts stop when a day's transactions cost more than this many times the fees that withdrawals paid. */
  fees_loss_factor: Type.Optional(Decimal),
  /** And exceed those fees by at least this amount of the network's own asset. */
  fees_loss_minimum: Type.Optional(Decimal),
  /** By asset: smaller deposits wait until those at their address reach it together. By default the catalogue's. */
  minimum_deposit: Type.Optional(Type.Record(Type.String(), Decimal)),
}
const FEE_MARGIN = '20'
const FEES_LOSS_FACTOR = '3'
/** The least loss that stops payouts by default: this many withdrawal fees of the network's own asset, by the schedule. */
const FEES_LOSS_MINIMUM_FEES = 1_000n

const BitcoinSection = Closed({
  adapter: Type.Literal('bitcoin-core'),
  ...shared,
  rpc_user: Type.String({ minLength: 1 }),
  rpc_password: Secret,
  /** The node's wallet: the hot wallet. */
  wallet: Type.Optional(Type.String({ minLength: 1 })),
  /** In coins per 1,000 virtual bytes. */
  fee_ceiling: Decimal,
  /** An operator has reviewed what the wallet sent in blocks below this height. */
  first_height: Type.Optional(Type.Integer({ minimum: 0 })),
})
const EvmSection = Closed({
  adapter: Type.Literal('evm'),
  ...shared,
  /** A number, or a tag of the network's own finality, where its node has it. */
  confirmations: Type.Union([Confirmations, Type.Literal('safe'), Type.Literal('finalized')]),
  /** Of a sandbox's test network; by default the catalogue's. */
  chain_id: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The hot wallet's private key, in hex. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's address. With it, a process without the worker does not read the key. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })),
  /** Wallets that paid before this one: what they hold is in custody. With a key, their stuck transactions are replaced. */
  former_hot_wallets: Type.Optional(
    Type.Array(
      Closed({
        address: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
        key: Type.Optional(Secret),
      }),
      { maxItems: 20 },
    ),
  ),
  /**
   * The mnemonic or extended key that deposit addresses are derived from; without it the network has none. A public
   * extended key suffices for a process without the worker.
   */
  deposit_key: Type.Optional(Secret),
  /** In gwei. */
  fee_ceiling: Decimal,
  /** Most transactions of the hot wallet that are signed and not mined at a time. */
  max_in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
  /** Contract addresses by asset, for test networks; by default the catalogue's. */
  tokens: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }))),
  /** An operator has reviewed the hot wallet's transactions before this nonce: none paid an open withdrawal. */
  first_nonce: Type.Optional(Type.Integer({ minimum: 0 })),
  /** The highest cost of sweeping a deposit address, in percent of the swept amount. */
  sweep_cost_max: Type.Optional(Decimal),
  /** In gwei; by default the fee_ceiling. */
  sweep_fee_ceiling: Type.Optional(Decimal),
  /** Amounts by asset: from this amount on, a sweep may cost any part of it. */
  sweep_minimum: Type.Optional(Type.Record(Type.String(), Decimal)),
  /** A second, independent node, which must agree before a deposit is credited. */
  verify_rpc_url: Type.Optional(Type.Union([Type.String({ minLength: 1 }), Secret])),
  /** The amount of an asset from which the second node is asked; every amount, where an asset is not named. */
  verify_above: Type.Optional(Type.Record(Type.String(), Decimal)),
})
const SECTIONS = { bitcoin: BitcoinSection, evm: EvmSection }
type Family = keyof typeof SECTIONS

const ajv = new Ajv({ allErrors: false, strict: true, strictTypes: false })

/** When a transaction is confirmed: after a number of blocks, or by a tag of the network's own finality (EVM). */
export type Depth = number | 'safe' | 'finalized'

/** How a process uses the networks. */
export interface Use {
  /** The process runs the worker: it signs for the hot wallet, and for deposit addresses. */
  signs: boolean
  /** Tells which deposit addresses Bursar gave out; without it all that the database has count. */
  areGiven?: AreGiven
}

/** A section that was read, with its adapter. */
export interface ConfiguredNetwork {
  adapter: NetworkAdapter
  confirmations: Depth
  lowMark: string | undefined
  /** Throws WrongChain when the node is on a chain that the mode does not take, NodeFailure when it does not answer. */
  requireChain?: () => Promise<void>
  /** Which fields gave this process a private key. The keys of the Bitcoin family are in its node's wallet. */
  privateKeys: string[]
  /** The public extended key that deposit addresses are derived from, where there is one. */
  depositPublicKey: string | undefined
  /** Whether a second node verifies deposits; undefined for a family without this setting. */
  hasSecondNode?: boolean | undefined
  /** The nodes by the field that names them, without the parts of a URL that may be secret. */
  nodes: { field: string; protocol: string; host: string; hostname: string }[]
  /** The files that secrets were read from, by their fields. */
  secretFiles: { field: string; path: string }[]
  /** Assets of which every deposit is credited, however small: `minimum_deposit` is 0. */
  withoutMinimum: string[]
  /** Limits that are too high to stop anything: each setting with its value, and the rule. */
  outOfReach: string[]
}

/**
 * Reads the file and connects its networks: test networks in a sandbox, main networks in live mode. Throws with the section
 * and field that is wrong.
 */
export async function configuredNetworks(
  path: string,
  environment: Record<string, string | undefined>,
  db: Database,
  mode: Mode,
  use: Use = { signs: true },
): Promise<ReadonlyMap<CryptoNetwork, ConfiguredNetwork>> {
  const sections = readSections(await readFile(path, 'utf8'))
  const networks = new Map<CryptoNetwork, ConfiguredNetwork>()
  for (const [name, section] of Object.entries(sections)) {
    const network = networkOf(name)
    const secretFiles = new Map<string, string>()
    const secret = (field: string, where: Secret) => {
      if ('file' in where) secretFiles.set(field, where.file)
      return readSecret(`${name}.${field}`, where, environment)
    }
    const connected = await connect(network, section, secret, db, { mode, ...use })
    const {
      confirmations,
      low_mark,
      fee_margin = FEE_MARGIN,
      minimum_deposit = {},
    } = section as Static<typeof EvmSection>
    requireAmounts(`${network}.minimum_deposit`, network, minimum_deposit)
    if (mode === 'live') requireLiveConfirmations(network, confirmations)
    networks.set(network, {
      ...connected,
      adapter: {
        ...connected.adapter,
        confirmations,
        ...(low_mark !== undefined && { lowMark: low_mark }),
        feeMargin: fee_margin,
        carriesNoMemo: true,
        feesLoss: feesLossOf(network, section as Static<typeof EvmSection>),
        minimumDeposit: (asset) => minimum_deposit[asset] ?? minimumDepositOf(asset, network),
        ...(mode === 'sandbox' && { paysDepositsOnly: true }),
      },
      confirmations,
      lowMark: low_mark,
      privateKeys: connected.privateKeys ?? [],
      depositPublicKey: connected.depositPublicKey,
      hasSecondNode:
        NETWORKS[network].family === 'evm'
          ? (section as Static<typeof EvmSection>).verify_rpc_url !== undefined
          : undefined,
      nodes: await nodesOf(network, section as Static<typeof EvmSection>, secret),
      secretFiles: [...secretFiles].map(([field, path]) => ({ field, path })),
      withoutMinimum: Object.entries(minimum_deposit).flatMap(([asset, amount]) =>
        requireAmount(`${network}.minimum_deposit`, amount, decimalsOf(asset)) === 0n ? [asset] : [],
      ),
      outOfReach: limitsOutOfReach(network, section as Static<typeof EvmSection>),
    })
  }
  return networks
}

/** The token contracts in the file, by network, to check signed payments. Reads no secret. */
export async function configuredTokens(path: string): Promise<TokenAddresses> {
  const sections = readSections(await readFile(path, 'utf8')) as Record<
    string,
    { tokens?: Record<string, string> } | null
  >
  return new Map(
    Object.entries(sections).flatMap(([name, section]) =>
      section?.tokens === undefined ? [] : [[networkOf(name), section.tokens] as const],
    ),
  )
}

/**
 * Live mode needs at least the catalogue's confirmations: a deeper reorganisation costs the deposits that were credited. A
 * safe or finalized block always suffices. Throws with the field.
 */
function requireLiveConfirmations(network: CryptoNetwork, confirmations: Depth): void {
  const { liveConfirmations = 1 } = NETWORKS[network]
  if (typeof confirmations === 'number' && confirmations < liveConfirmations)
    throw new Error(`${network}.confirmations must be at least ${liveConfirmations} in live mode`)
}

/** Throws with the field unless these are amounts of assets of the network. */
function requireAmounts(field: string, network: CryptoNetwork, amounts: Record<string, string>): void {
  for (const [asset, amount] of Object.entries(amounts)) {
    if (findAsset(asset)?.networks[network] === undefined)
      throw new Error(`${field}.${asset} is no asset of ${network}`)
    requireAmount(`${field}.${asset}`, amount, decimalsOf(asset))
  }
}

/** When a day's network fees stop payouts. Throws with the field. */
function feesLossOf(
  network: CryptoNetwork,
  { fees_loss_factor = FEES_LOSS_FACTOR, fees_loss_minimum }: Static<typeof EvmSection>,
): NonNullable<NetworkAdapter['feesLoss']> {
  const decimals = decimalsOf(NETWORKS[network].gasAsset)
  const factor = requireAmount(`${network}.fees_loss_factor`, fees_loss_factor, FEES_FACTOR_DECIMALS)
  if (factor < 10n ** BigInt(FEES_FACTOR_DECIMALS))
    throw new Error(`${network}.fees_loss_factor must be at least 1`)
  const minimum = fees_loss_minimum ?? formatAmount(feesLossMinimumOf(network), decimals)
  requireAmount(`${network}.fees_loss_minimum`, minimum, decimals)
  return { factor: fees_loss_factor, minimum }
}

/** Minor units of the network's own asset, where the section names none. */
function feesLossMinimumOf(network: CryptoNetwork): bigint {
  const { gasAsset } = NETWORKS[network]
  const { fee } = findAsset(gasAsset)!.networks[network]!
  return parseAmount(fee, decimalsOf(gasAsset))! * FEES_LOSS_MINIMUM_FEES
}

/** A higher factor is no limit: when withdrawals cost 20 times their fees, a person should look at the loss. */
const FEES_LOSS_FACTOR_HIGH = 20n
/** A minimum loss above this many times the default is no limit. */
const FEES_LOSS_MINIMUM_HIGH = 10n
/** Percent: such a sweep costs as much as it moves. */
const SWEEP_COST_HIGH = 100n

/**
 * The limits of a section that are too high to stop anything. `verify_above` is too high above the largest withdrawal of the
 * asset: a forged deposit of that amount can leave at once.
 */
function limitsOutOfReach(
  network: CryptoNetwork,
  { fees_loss_factor, fees_loss_minimum, sweep_cost_max, verify_above = {} }: Static<typeof EvmSection>,
): string[] {
  const { gasAsset } = NETWORKS[network]
  const largest = (asset: string) => findAsset(asset)!.networks[network]!.maximum
  const leastLoss = feesLossMinimumOf(network) * FEES_LOSS_MINIMUM_HIGH
  const found: string[] = []
  const look = (field: string, value: string | undefined, decimals: number, most: bigint, rule: string) => {
    if (value !== undefined && parseAmount(value, decimals)! > most)
      found.push(`${field} is ${value}, above ${rule}`)
  }
  const whole = (count: bigint, decimals: number) => count * 10n ** BigInt(decimals)
  const factorMost = whole(FEES_LOSS_FACTOR_HIGH, FEES_FACTOR_DECIMALS)
  look('fees_loss_factor', fees_loss_factor, FEES_FACTOR_DECIMALS, factorMost, `${FEES_LOSS_FACTOR_HIGH}`)
  const gasDecimals = decimalsOf(gasAsset)
  const leastLossText = `${formatAmount(leastLoss, gasDecimals)} ${gasAsset}`
  look('fees_loss_minimum', fees_loss_minimum, gasDecimals, leastLoss, leastLossText)
  const costMost = whole(SWEEP_COST_HIGH, PERCENT_DECIMALS) - 1n
  look('sweep_cost_max', sweep_cost_max, PERCENT_DECIMALS, costMost, '99.9999 %')
  for (const [asset, amount] of Object.entries(verify_above)) {
    const decimals = decimalsOf(asset)
    const most = parseAmount(largest(asset), decimals)!
    look(`verify_above.${asset}`, amount, decimals, most, `the largest withdrawal, ${largest(asset)}`)
  }
  return found
}

function readSections(content: string): Record<string, unknown> {
  let sections: unknown
  try {
    sections = JSON.parse(content)
  } catch (error) {
    // The text itself is left out: it may be a secret that somebody wrote in place of its name.
    const { message } = error as Error
    throw new Error(`is not JSON: ${message.replace(/, .* is not valid JSON$/s, '')}`)
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

type Connected = Pick<ConfiguredNetwork, 'adapter' | 'requireChain'> &
  Partial<Pick<ConfiguredNetwork, 'privateKeys' | 'depositPublicKey'>>

type SecretOf = (field: string, where: Secret) => Promise<string>

async function connect(
  network: CryptoNetwork,
  section: unknown,
  secret: SecretOf,
  db: Database,
  { mode, signs, areGiven }: Use & { mode: Mode },
): Promise<Connected> {
  const { family, gasAsset } = NETWORKS[network]
  if (!(family in SECTIONS)) throw new Error(`${network} has no adapter for a real network yet`)
  const schema = SECTIONS[family as Family]
  const { adapter: named } = Object(section) as { adapter?: unknown }
  const expected = schema.properties.adapter.const
  if (named !== expected) throw new Error(`${network}.adapter must be '${expected}'`)
  if (!ajv.validate(schema, section)) throw new Error(complaint(network))
  const { low_mark = '0', fee_margin = FEE_MARGIN } = section as Static<typeof BitcoinSection>
  requireAmount(`${network}.low_mark`, low_mark, decimalsOf(gasAsset))
  requireAmount(`${network}.fee_margin`, fee_margin, FEE_MARGIN_DECIMALS)
  if (family === 'bitcoin') {
    const { rpc_url, rpc_user, rpc_password, wallet, confirmations, fee_ceiling, first_height } =
      section as Static<typeof BitcoinSection>
    requireCeiling(network, fee_ceiling, decimalsOf(gasAsset))
    const node = {
      rpcUrl: await urlOf(network, rpc_url, secret),
      rpcUser: rpc_user,
      rpcPassword: await secret('rpc_password', rpc_password),
      wallet,
    }
    const ofNode = bitcoinAdapter(
      network as Parameters<typeof bitcoinAdapter>[0],
      { ...node, confirmations, feeCeiling: fee_ceiling, firstHeight: first_height },
      db,
    )
    return onChainOf(mode, network, bitcoinRpc(node), ofNode)
  }
  const { rpc_url, chain_id, deposit_key, confirmations, fee_ceiling, tokens, first_nonce } =
    section as Static<typeof EvmSection>
  const { verify_rpc_url, verify_above } = section as Static<typeof EvmSection>
  if (verify_rpc_url === undefined && verify_above !== undefined)
    throw new Error(`${network}.verify_above needs verify_rpc_url`)
  requireAmounts(`${network}.verify_above`, network, verify_above ?? {})
  requireCeiling(network, fee_ceiling, GWEI_DECIMALS)
  at(`${network}.tokens`, () => tokensOf(network, tokens ?? {}))
  const sweepConfig = sweepConfigOf(network, section as Static<typeof EvmSection>)
  at(`${network}.chain_id`, () => requireChainId(network, chain_id ?? NETWORKS[network].chainId!, mode))
  const rpcUrl = await urlOf(network, rpc_url, secret)
  const wallets = await walletsOf(network, section as Static<typeof EvmSection>, secret, signs)
  const depositKey =
    deposit_key && depositKeyOf(`${network}.deposit_key`, await secret('deposit_key', deposit_key), signs)
  const keys = depositKey && depositKeysOf(depositKey)
  const adapter = evmAdapter(
    network,
    {
      rpcUrl,
      chainId: chain_id,
      hotWallet: wallets.hotWallet,
      formerWallets: wallets.former,
      depositKey,
      confirmations,
      maxFeePerGasCeiling: fee_ceiling,
      tokens,
      firstNonce: first_nonce,
      ...(areGiven && { areGiven }),
      maxInFlight: (section as Static<typeof EvmSection>).max_in_flight,
      ...sweepConfig,
      ...(verify_rpc_url !== undefined && {
        verify: {
          rpcUrl: await urlOf(network, verify_rpc_url, secret, 'verify_rpc_url'),
          above: verify_above ?? {},
        },
      }),
    },
    db,
  )
  const privateKeys = [...wallets.privateKeys, ...(keys?.canSign ? ['deposit_key'] : [])]
  return { adapter, privateKeys, depositPublicKey: keys?.publicKey }
}

function sweepConfigOf(
  network: CryptoNetwork,
  { sweep_cost_max, sweep_fee_ceiling, sweep_minimum, tokens = {} }: Static<typeof EvmSection>,
): SweepConfig {
  if (sweep_fee_ceiling !== undefined)
    requireAmount(`${network}.sweep_fee_ceiling`, sweep_fee_ceiling, GWEI_DECIMALS)
  const config = {
    sweepCostMax: sweep_cost_max,
    sweepFeeCeiling: sweep_fee_ceiling,
    sweepMinimum: sweep_minimum,
  }
  at(network, () => sweepTermsOf(network, tokensOf(network, tokens), 0n, config))
  return config
}

/** The hot wallet. A process that does not sign and has the address does not read the key. */
async function hotWalletOf(
  network: CryptoNetwork,
  { hot_wallet_key, hot_wallet_address }: Static<typeof EvmSection>,
  secret: SecretOf,
  signs: boolean,
): Promise<{ signer: EvmSigner; isPrivate: boolean }> {
  if (hot_wallet_address !== undefined && !signs)
    return { signer: withoutKey(getAddress(hot_wallet_address)), isPrivate: false }
  if (hot_wallet_key === undefined) {
    const why =
      hot_wallet_address === undefined ? '' : ': without it only a process with BURSAR_WORKER=false can be'
    throw new Error(`${network}.hot_wallet_key is required${why}`)
  }
  const account = accountOf(`${network}.hot_wallet_key`, await secret('hot_wallet_key', hot_wallet_key))
  if (hot_wallet_address !== undefined && getAddress(hot_wallet_address) !== account.address)
    throw new Error(`${network}.hot_wallet_address is not the address of hot_wallet_key: ${account.address}`)
  return { signer: account, isPrivate: true }
}

/** The hot wallet and the former ones. Throws with the field where one is named twice, or has the key of another. */
async function walletsOf(
  network: CryptoNetwork,
  section: Static<typeof EvmSection>,
  secret: SecretOf,
  signs: boolean,
): Promise<{ hotWallet: EvmSigner; former: EvmSigner[]; privateKeys: string[] }> {
  const { signer: hotWallet, isPrivate } = await hotWalletOf(network, section, secret, signs)
  const privateKeys = isPrivate ? ['hot_wallet_key'] : []
  const former: EvmSigner[] = []
  for (const [index, { address: named, key }] of (section.former_hot_wallets ?? []).entries()) {
    const field = `former_hot_wallets[${index}]`
    const address = getAddress(named)
    if ([hotWallet, ...former].some((one) => one.address === address))
      throw new Error(`${network}.${field}.address is named twice, or is the hot wallet's`)
    if (key === undefined || !signs) {
      former.push(withoutKey(address))
      continue
    }
    const account = accountOf(`${network}.${field}.key`, await secret(`${field}.key`, key))
    if (account.address !== address)
      throw new Error(`${network}.${field}.key is the key of another address: ${account.address}`)
    former.push(account)
    privateKeys.push(`${field}.key`)
  }
  return { hotWallet, former, privateKeys }
}

/** A wallet that can be watched and quoted for, and not signed for: withdrawals wait. */
const withoutKey = (address: Hex): EvmSigner => ({
  address,
  isWatched: true,
  signTransaction: () =>
    Promise.reject(new NoSigningKey('this process has no key of the hot wallet: it signs nothing')),
})

/** Decimals of wei in gwei. */
const GWEI_DECIMALS = 9

function requireAmount(field: string, text: string, decimals: number): bigint {
  const amount = parseAmount(text, decimals)
  if (amount === undefined) throw new Error(`${field} has more than ${decimals} decimals`)
  return amount
}

function requireCeiling(network: CryptoNetwork, text: string, decimals: number): void {
  if (requireAmount(`${network}.fee_ceiling`, text, decimals) === 0n)
    throw new Error(`${network}.fee_ceiling must be above 0: nothing could be paid`)
}

/** The URL of a node. It may hold a key or a password, so that errors do not show it. */
async function urlOf(
  network: CryptoNetwork,
  where: string | Secret,
  secret: SecretOf,
  field = 'rpc_url',
): Promise<string> {
  const text = typeof where === 'string' ? where : await secret(field, where)
  const { protocol, username, password } = URL.canParse(text) ? new URL(text) : ({} as Partial<URL>)
  if (!/^https?:$/.test(protocol ?? '') || username || password)
    throw new Error(`${network}.${field} must be an http or https URL without a user and password in it`)
  return text
}

async function nodesOf(
  network: CryptoNetwork,
  section: Pick<Static<typeof EvmSection>, 'rpc_url' | 'verify_rpc_url'>,
  secret: SecretOf,
): Promise<ConfiguredNetwork['nodes']> {
  const nodes: ConfiguredNetwork['nodes'] = []
  for (const field of ['rpc_url', 'verify_rpc_url'] as const) {
    const where = section[field]
    if (where === undefined) continue
    const { protocol, host, hostname } = new URL(await urlOf(network, where, secret, field))
    nodes.push({ field, protocol, host, hostname })
  }
  return nodes
}

/** The error about a wrong key does not show the key. */
function accountOf(field: string, key: string) {
  try {
    return privateKeyToAccount(`0x${key.replace(/^0x/, '')}`)
  } catch {
    throw new Error(`${field} is no private key of 32 bytes in hex`)
  }
}

function depositKeyOf(field: string, text: string, signs: boolean): DepositKey {
  const key = text.includes(' ') ? { mnemonic: text } : { extendedKey: text }
  at(field, () => {
    if (!depositKeysOf(key).canSign && signs)
      throw new Error(
        'the deposit key is a public one, with which nothing can be swept: enough only with BURSAR_WORKER=false',
      )
  })
  return key
}

/** Puts the field's name before the message of an error. */
function at(field: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    throw new Error(`${field}: ${(error as Error).message}`)
  }
}

/** The first error of validation: the field, by its path from the network's name, and the rule. */
function complaint(network: CryptoNetwork): string {
  const { instancePath, keyword, params, message } = ajv.errors![0]!
  const path = [network, ...instancePath.split('/').slice(1)].join('.')
  const isOneOf = ajv.errors!.some((error) => error.keyword === 'anyOf')
  if (isOneOf && instancePath === '/confirmations')
    return `${path} must be a number from 1 to ${CONFIRMATIONS_MAX}, 'safe' or 'finalized'`
  if (keyword === 'additionalProperties')
    return `${path}.${(params as { additionalProperty: string }).additionalProperty} is not a known field`
  if (keyword === 'required')
    return `${path}.${(params as { missingProperty: string }).missingProperty} is required`
  return `${path} ${message ?? 'is invalid'}`
}

async function readSecret(
  field: string,
  where: Secret,
  environment: Record<string, string | undefined>,
): Promise<string> {
  const { name, value } =
    'env' in where
      ? { name: where.env, value: environment[where.env] }
      : { name: where.file, value: await readSecretFile(field, where.file) }
  if (value === undefined) throw new Error(`${field}: ${name} is not in the environment`)
  if (value.trim() === '') throw new Error(`${field}: ${name} is empty`)
  return value.trim()
}

const readSecretFile = (field: string, path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${field}: ${path} cannot be read (${error.code})`)
  })
