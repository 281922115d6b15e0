import { readFile } from 'node:fs/promises'
import { Ajv } from 'ajv'
import { Type, type Static } from 'typebox'
import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import {
  CRYPTO_NETWORKS,
  decimalsOf,
  findAsset,
  NETWORKS,
  type CryptoNetwork,
} from '../contract/assets/catalogue.ts'
import { CENT_DECIMALS } from '../contract/assets/usd-value.ts'
import { Closed } from '../contract/fields.ts'
import type { Mode } from './chain-of-mode.ts'
import { treasuryOf } from './marks.ts'
import { FEE_MARGIN_DECIMALS, FEES_FACTOR_DECIMALS, type DepthFrom, type NetworkAdapter } from './network.ts'
import { Secret } from './secrets.ts'
import type { TokenAddresses } from './signed-payments.ts'

/**
 * The JSON file of the real networks, with a section for each: its fields, its rules and what its limits mean. A section names
 * where a secret is, in the environment or in a file of its own. A secret is never in a section, in the database or in a log.
 */

const Decimal = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$', maxLength: 40 })
const Amounts = Type.Union([Decimal, Type.Record(Type.String(), Decimal)])
const CONFIRMATIONS_MAX = 10_000
const Confirmations = Type.Integer({ minimum: 1, maximum: CONFIRMATIONS_MAX })
/** By the value of a deposit: the first are those of small deposits and of withdrawals. */
const ByAmount = Type.Array(Closed({ confirmations: Confirmations, from_usd: Type.Optional(Decimal) }), {
  minItems: 1,
  maxItems: 20,
})
const NodeUrl = Type.Union([Type.String({ minLength: 1 }), Secret])
const shared = {
  /** A URL may hold a key: then it is a secret. */
  rpc_url: NodeUrl,
  /** The confirmations that the transactions of withdrawals and of deposits need; by default the catalogue's. */
  confirmations: Type.Optional(Type.Union([Confirmations, ByAmount])),
  /** The least that the hot wallet should hold: of the network's own asset, or by asset. Below it, a refill is asked for. */
  low_mark: Type.Optional(Amounts),
  /** How much it should hold after a refill, or after a send to cold storage; by default the low mark. */
  target: Type.Optional(Amounts),
  /** Above it, a send to cold storage is proposed. */
  high_mark: Type.Optional(Amounts),
  /** The addresses of cold storage: only its owner can send from them. The first gets what is sent there. */
  cold_addresses: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 20 })),
  /** The percentage that a quoted fee adds to the node's estimate. */
  fee_margin: Type.Optional(Decimal),
  /** Payouts stop when a day's transactions cost more than this many times the fees that withdrawals paid. */
  fees_loss_factor: Type.Optional(Decimal),
  /** The least loss, beyond those fees, that stops payouts. In the network's own asset. */
  fees_loss_minimum: Type.Optional(Decimal),
  /** By asset: smaller deposits wait until those at their address reach it together. By default the catalogue's. */
  minimum_deposit: Type.Optional(Type.Record(Type.String(), Decimal)),
  /** Keys that the records name and that are not in use any more, as the refusal to start names them. */
  former_keys: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 })),
}
const secondNode = {
  /** A second, independent node: without its word nothing is given back in live mode, and no large deposit is credited. */
  verify_rpc_url: Type.Optional(NodeUrl),
  /** Without one, in live mode: the value in USD up to which one node's word credits a deposit. */
  single_node_max: Type.Optional(Decimal),
}
const BitcoinSection = Closed({
  adapter: Type.Literal('bitcoin-core'),
  ...shared,
  rpc_user: Type.String({ minLength: 1 }),
  rpc_password: Secret,
  /** The node's wallet: the hot wallet. */
  wallet: Type.Optional(Type.String({ minLength: 1 })),
  /** The node's wallet has no private keys, and a person signs PSBTs; by default the wallet signs. */
  signing: Type.Optional(Type.Literal('psbt')),
  /** The highest fee rate, in coins per 1,000 virtual bytes. */
  fee_ceiling: Decimal,
  /** The node at a public address is the operator's own: it checks the chain's work itself. */
  own_node: Type.Optional(Type.Literal(true)),
  /** An operator has reviewed what the wallet sent in blocks below this height. */
  first_height: Type.Optional(Type.Integer({ minimum: 0 })),
})
const WALLET = { address: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }), key: Type.Optional(Secret) }
const Wallets = Type.Array(Closed(WALLET), { maxItems: 20 })
/** `closed`: an operator has looked at all that the wallet has sent. */
const FormerWallets = Type.Array(Closed({ ...WALLET, closed: Type.Optional(Type.Boolean()) }), {
  maxItems: 20,
})
const EvmSection = Closed({
  adapter: Type.Literal('evm'),
  ...shared,
  /** A number, or a tag of the network's own finality, where its node has it. */
  confirmations: Type.Optional(
    Type.Union([Confirmations, ByAmount, Type.Literal('safe'), Type.Literal('finalized')]),
  ),
  /** The chain id of a sandbox's test network; by default the catalogue's. */
  chain_id: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The hot wallet's private key, in hex. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's address. With it, a process without the worker does not read the key. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })),
  /** The process that has the keys of the hot wallets: their addresses are given instead. */
  signer: Type.Optional(
    Type.Union([
      Closed({ socket: Type.String({ minLength: 1 }) }),
      /** It has no network: requests and answers are carried as files. */
      Closed({ folder: Type.String({ minLength: 1 }) }),
      Closed({
        url: Type.String({ pattern: '^https://' }),
        ca: Type.String({ minLength: 1 }),
        certificate: Type.String({ minLength: 1 }),
        key: Type.String({ minLength: 1 }),
      }),
    ]),
  ),
  /** With a signer: the private key that pays gas for sweeping, in hex. It pays no withdrawal. */
  gas_wallet_key: Type.Optional(Secret),
  /** Wallets that pay beside it, each with its own nonces. A process with the worker needs their keys. */
  further_hot_wallets: Type.Optional(Wallets),
  /** Wallets that paid before these: what they hold is in custody. With a key, their stuck transactions are replaced. */
  former_hot_wallets: Type.Optional(FormerWallets),
  /**
   * The mnemonic or extended key that deposit addresses are derived from; without it the network has none. A public
   * extended key suffices for a process without the worker.
   */
  deposit_key: Type.Optional(Secret),
  /** In gwei. */
  fee_ceiling: Decimal,
  /** Most transactions of each hot wallet that are signed and not mined at a time. */
  max_in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
  /** Contract addresses by asset, for test networks; by default the catalogue's. */
  tokens: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }))),
  /** An operator has reviewed the hot wallet's transactions before this nonce: none paid an open withdrawal. */
  first_nonce: Type.Optional(Type.Integer({ minimum: 0 })),
  /** The highest cost of sweeping a deposit address, in percent of the swept amount. */
  sweep_cost_max: Type.Optional(Decimal),
  /** The most that a sweep offers for a unit of gas, in gwei; by default the fee_ceiling. */
  sweep_fee_ceiling: Type.Optional(Decimal),
  /** Amounts by asset: from this amount on, a sweep may cost any part of it. */
  sweep_minimum: Type.Optional(Type.Record(Type.String(), Decimal)),
  ...secondNode,
  /** The amount of an asset from which the second node is asked; every amount, where an asset is not named. */
  verify_above: Type.Optional(Type.Record(Type.String(), Decimal)),
})
const SolanaSection = Closed({
  adapter: Type.Literal('solana'),
  ...shared,
  /** Nothing less is ever confirmed: finalized slots are never dropped. */
  confirmations: Type.Literal('finalized'),
  /** The hot wallet's private key: 32 or 64 bytes in base58, or the JSON array that solana-keygen writes. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's address. With it, a process without the worker does not read the key. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$' })),
  /** The most that a payment costs, in SOL. The rent of a recipient's account for a token comes on top. */
  fee_ceiling: Decimal,
  /** Nonce accounts of the hot wallet: as many payments are under way at a time. */
  lanes: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
  ...secondNode,
  /**
   * The mnemonic that deposit addresses are derived from; without it the network has none. The public key that
   * `bursar networks deposit-key` prints suffices for a process without the worker.
   */
  deposit_key: Type.Optional(Secret),
  /** The highest cost of sweeping a deposit address, in percent of the swept amount. */
  sweep_cost_max: Type.Optional(Decimal),
  /** Amounts by asset: from this amount on, a sweep may cost any part of it. */
  sweep_minimum: Type.Optional(Type.Record(Type.String(), Decimal)),
  /** Mints by asset, for test networks; by default the catalogue's. */
  mints: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$' }))),
})
const StellarSection = Closed({
  adapter: Type.Literal('stellar'),
  ...shared,
  /** A ledger is final when it is closed. */
  confirmations: Type.Optional(Type.Literal(1)),
  ...secondNode,
  /** The passphrase of a sandbox's network; by default the test network's. */
  network_passphrase: Type.Optional(Type.String({ minLength: 1 })),
  /** The hot wallet's seed (S...). */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's account. With it, a process without the worker does not read the seed. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: '^G[A-Z2-7]{55}$' })),
  /** The most that one operation costs, in XLM. */
  fee_ceiling: Decimal,
  /** How many channel accounts number transactions, beside the hot wallet. */
  lanes: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  /** By asset, the issuer on a test network; by default the catalogue's. */
  issuers: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: '^G[A-Z2-7]{55}$' }))),
  /** An operator has reviewed what the wallet sent in ledgers below this one. */
  first_ledger: Type.Optional(Type.Integer({ minimum: 0 })),
})
const SECTIONS = { bitcoin: BitcoinSection, evm: EvmSection, solana: SolanaSection, stellar: StellarSection }
export type BitcoinSection = Static<typeof BitcoinSection>
export type EvmSection = Static<typeof EvmSection>
export type SolanaSection = Static<typeof SolanaSection>
export type StellarSection = Static<typeof StellarSection>
export type Section = BitcoinSection | EvmSection | SolanaSection | StellarSection

const ajv = new Ajv({ allErrors: false, strict: true, strictTypes: false })

/** When a transaction is confirmed: after a number of blocks, or by a tag of the network's own finality (EVM). */
export type Depth = number | 'safe' | 'finalized'

export const FEE_MARGIN = '20'
const FEES_LOSS_FACTOR = '3'
/** The least loss that stops payouts by default: this many withdrawal fees of the network's own asset, by the fee schedule. */
const FEES_LOSS_MINIMUM_FEES = 1_000n

/** The sections of the networks file, by network, before they are examined. */
async function readSections(path: string): Promise<[CryptoNetwork, unknown][]> {
  const sections = sectionsOf(await readFile(path, 'utf8'))
  return Object.entries(sections).map(([name, section]) => [networkOf(name), section])
}

/** Reads and examines the networks file, by network. Throws an Error that names the section and the field that is wrong. */
export async function* eachSection(path: string, mode: Mode): AsyncGenerator<[CryptoNetwork, Section]> {
  for (const [network, section] of await readSections(path)) {
    requireSection(network, section)
    const { fee_margin = FEE_MARGIN, fee_ceiling, minimum_deposit = {} } = section
    const gasDecimals = decimalsOf(NETWORKS[network].gasAsset)
    treasuryOf(network, section, mode)
    requireAmount(`${network}.fee_margin`, fee_margin, FEE_MARGIN_DECIMALS)
    const ceilingDecimals = section.adapter === 'evm' ? GWEI_DECIMALS : gasDecimals
    if (requireAmount(`${network}.fee_ceiling`, fee_ceiling, ceilingDecimals) === 0n)
      throw new Error(`${network}.fee_ceiling must be above 0: nothing could be paid`)
    requireAmounts(`${network}.minimum_deposit`, network, minimum_deposit)
    depthOf(network, section, mode)
    requireAmount(`${network}.single_node_max`, oneNodeMaxOf(section), CENT_DECIMALS)
    yield [network, section]
  }
}

/** The token contracts and issuers in the file, by network, to check signed payments. Reads no secret. */
export async function configuredTokens(path: string): Promise<TokenAddresses> {
  const sections = (await readSections(path)) as [
    CryptoNetwork,
    {
      tokens?: Record<string, string>
      mints?: Record<string, string>
      issuers?: Record<string, string>
    } | null,
  ][]
  return new Map(
    sections.flatMap(([network, section]) => {
      const tokens = section?.tokens ?? section?.mints ?? section?.issuers
      return tokens === undefined ? [] : [[network, tokens] as const]
    }),
  )
}

function requireSection(network: CryptoNetwork, section: unknown): asserts section is Section {
  const { family } = NETWORKS[network]
  const schema = SECTIONS[family]
  const { adapter: named } = Object(section) as { adapter?: unknown }
  const expected = schema.properties.adapter.const
  if (named !== expected) throw new Error(`${network}.adapter must be '${expected}'`)
  if (!ajv.validate(schema, section)) throw new Error(complaint(network))
}

function sectionsOf(content: string): Record<string, unknown> {
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

/** The first error of validation: the field, by its path from the network's name, and the rule. */
function complaint(network: CryptoNetwork): string {
  // Of a field with several forms, the fault that lies deepest is of the form that was meant.
  const depth = ({ instancePath }: { instancePath: string }) => instancePath.split('/').length
  const [fault] = [...ajv.errors!].sort((a, b) => depth(b) - depth(a))
  const { instancePath, keyword, params, message } = fault!
  const path = [network, ...instancePath.split('/').slice(1)].join('.')
  const isOneOf = ajv.errors!.some((error) => error.keyword === 'anyOf')
  if (isOneOf && instancePath === '/confirmations')
    return `${path} must be a number from 1 to ${CONFIRMATIONS_MAX}, a list of them by from_usd${NETWORKS[network].family === 'evm' ? ", 'safe' or 'finalized'" : ''}`
  if (network === 'SOLANA' && instancePath === '/confirmations')
    return `${path} must be 'finalized': the network drops no finalized slot, and may drop any other`
  if (keyword === 'additionalProperties')
    return `${path}.${(params as { additionalProperty: string }).additionalProperty} is not a known field`
  if (keyword === 'required')
    return `${path}.${(params as { missingProperty: string }).missingProperty} is required`
  return `${path} ${message ?? 'is invalid'}`
}

/** Decimals of `sweep_cost_max`. */
export const PERCENT_DECIMALS = 4
/** Decimals of wei in gwei. */
export const GWEI_DECIMALS = 9

export function requireAmount(field: string, text: string, decimals: number): bigint {
  const amount = parseAmount(text, decimals)
  if (amount === undefined) throw new Error(`${field} has more than ${decimals} decimals`)
  return amount
}

/** Throws an Error that names the field unless these are amounts of assets of the network. */
export function requireAmounts(field: string, network: CryptoNetwork, amounts: Record<string, string>): void {
  for (const [asset, amount] of Object.entries(amounts)) {
    if (findAsset(asset)?.networks[network] === undefined)
      throw new Error(`${field}.${asset} is no asset of ${network}`)
    requireAmount(`${field}.${asset}`, amount, decimalsOf(asset))
  }
}

/**
 * When the transactions of withdrawals and of small deposits are confirmed, and from which values on deposits need more. Live mode
 * needs at least the catalogue's first number: a deeper reorganisation costs the deposits that were credited. A safe or finalized
 * block always suffices. Throws an Error that names the field.
 */
export function depthOf(
  network: CryptoNetwork,
  { confirmations }: Section,
  mode: Mode,
): { depth: Depth; depths: DepthFrom[] } {
  const [least = 1, ...more] = NETWORKS[network].confirmations ?? []
  if (typeof confirmations === 'string') return { depth: confirmations, depths: [] }
  const byDefault = [
    { from_usd: '0', confirmations: least },
    ...more.map(([from_usd, deeper]) => ({ from_usd, confirmations: deeper })),
  ]
  const depths =
    typeof confirmations === 'number'
      ? [{ from_usd: '0', confirmations }]
      : (confirmations?.map(({ from_usd = '0', confirmations: deeper }) => ({
          from_usd,
          confirmations: deeper,
        })) ?? byDefault)
  const field = `${network}.confirmations`
  const values = depths.map(({ from_usd }) => requireAmount(field, from_usd, CENT_DECIMALS))
  const rises = depths.every(
    (one, index) =>
      index === 0 ||
      (values[index]! > values[index - 1]! && one.confirmations > depths[index - 1]!.confirmations),
  )
  if (values[0] !== 0n || !rises)
    throw new Error(`${field} must begin without from_usd, and rise in from_usd and confirmations`)
  const [{ confirmations: depth }] = depths as [DepthFrom]
  if (mode === 'live' && depth < least) throw new Error(`${field} must be at least ${least} in live mode`)
  return { depth, depths }
}

/** The confirmations of deposits, for people. */
export const depthsText = (depths: readonly DepthFrom[]): string =>
  depths
    .map(({ from_usd, confirmations }, index) =>
      index === 0 ? `${confirmations}` : `${confirmations} from ${from_usd} USD`,
    )
    .join(', ')

/** That the largest deposits need fewer confirmations than by default; undefined where they do not. */
export function shallowOf(network: CryptoNetwork, depths: readonly DepthFrom[]): string | undefined {
  const byDefault = depthOf(network, {} as Section, 'live').depths
  const [deepest, usual] = [depths.at(-1), byDefault.at(-1)!]
  if (deepest === undefined || deepest.confirmations >= usual.confirmations) return undefined
  return `the largest deposits need ${deepest.confirmations} confirmations, and ${usual.confirmations} by default`
}

/** By one node's word, a deposit of this value is credited in live mode: small beside what a customer may withdraw unseen. */
const SINGLE_NODE_MAX = '100'
export const oneNodeMaxOf = (section: Section): string =>
  'single_node_max' in section ? (section.single_node_max ?? SINGLE_NODE_MAX) : SINGLE_NODE_MAX

/** The loss by a day's network fees that stops payouts. Throws an Error that names the field. */
export function feesLossOf(
  network: CryptoNetwork,
  { fees_loss_factor = FEES_LOSS_FACTOR, fees_loss_minimum }: Section,
): NonNullable<NetworkAdapter['feesLoss']> {
  const decimals = decimalsOf(NETWORKS[network].gasAsset)
  const factor = requireAmount(`${network}.fees_loss_factor`, fees_loss_factor, FEES_FACTOR_DECIMALS)
  if (factor < 10n ** BigInt(FEES_FACTOR_DECIMALS))
    throw new Error(`${network}.fees_loss_factor must be at least 1`)
  const minimum = fees_loss_minimum ?? formatAmount(feesLossMinimumOf(network), decimals)
  requireAmount(`${network}.fees_loss_minimum`, minimum, decimals)
  return { factor: fees_loss_factor, minimum }
}

/** The default of `fees_loss_minimum`, in minor units of the network's own asset. */
function feesLossMinimumOf(network: CryptoNetwork): bigint {
  const { gasAsset } = NETWORKS[network]
  const { fee } = findAsset(gasAsset)!.networks[network]!
  return parseAmount(fee, decimalsOf(gasAsset))! * FEES_LOSS_MINIMUM_FEES
}

/** A higher factor is no limit: when withdrawals cost 20 times their fees, a person should look at the loss. */
const FEES_LOSS_FACTOR_HIGH = 20n
/** A minimum loss above this many times the default is no limit. */
const FEES_LOSS_MINIMUM_HIGH = 10n
/** In percent: such a sweep costs as much as it moves. */
const SWEEP_COST_HIGH = 100n

/**
 * The limits of a section that are too high to stop anything. `verify_above` is too high above the largest withdrawal of the
 * asset: a forged deposit of that amount can leave at once.
 */
export function limitsOutOfReach(network: CryptoNetwork, section: Section): string[] {
  const { fees_loss_factor, fees_loss_minimum } = section
  const { verify_above = {} }: Partial<EvmSection> = section.adapter === 'evm' ? section : {}
  const { sweep_cost_max }: Partial<EvmSection | SolanaSection> =
    section.adapter === 'evm' || section.adapter === 'solana' ? section : {}
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
