import { readFile } from 'node:fs/promises'
import { Ajv } from 'ajv'
import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import {
  CRYPTO_NETWORKS,
  decimalsOf,
  findAsset,
  NETWORKS,
  type CryptoNetwork,
} from '../contract/assets/catalogue.ts'
import { CENT_DECIMALS } from '../contract/assets/usd-value.ts'
import type { Mode } from './chain-of-mode.ts'
import { familyOf } from './families.ts'
import type { Family } from './family.ts'
import { treasuryOf } from './marks.ts'
import { FEE_MARGIN_DECIMALS, FEES_FACTOR_DECIMALS, type NetworkAdapter } from './network.ts'
import { type DepthFrom } from './found-deposits.ts'
import { oneNodeMaxOf } from './one-node.ts'
import { PERCENT_DECIMALS, requireAmount, requireAmounts, type Depth, type Section } from './section.ts'
import type { TokenAddresses } from './signed-payments.ts'

/**
 * The JSON file of the real networks, with a section for each: its fields, its rules and what its limits mean. A section names
 * where a secret is, in the environment or in a file of its own. A secret is never in a section, in the database or in a log.
 */

const ajv = new Ajv({ allErrors: false, strict: true, strictTypes: false })

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
    const family = await familyOf(NETWORKS[network].family)
    requireSection(network, family, section)
    const { fee_margin = FEE_MARGIN, fee_ceiling, minimum_deposit = {} } = section
    const seconds = [section.verify_rpc_url ?? []].flat().length
    if ((section.verify_quorum ?? 0) > seconds)
      throw new Error(`${network}.verify_quorum is above ${seconds}, the number of nodes in verify_rpc_url`)
    const gasDecimals = decimalsOf(NETWORKS[network].gasAsset)
    treasuryOf(network, section, mode)
    requireAmount(`${network}.fee_margin`, fee_margin, FEE_MARGIN_DECIMALS)
    const { feeCeilingDecimals = gasDecimals } = family
    if (requireAmount(`${network}.fee_ceiling`, fee_ceiling, feeCeilingDecimals) === 0n)
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

function requireSection(
  network: CryptoNetwork,
  family: Family,
  section: unknown,
): asserts section is Section {
  const { adapter: named } = Object(section) as { adapter?: unknown }
  if (named !== family.adapter) throw new Error(`${network}.adapter must be '${family.adapter}'`)
  if (!ajv.validate(family.section, section)) throw new Error(complaint(network, family))
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
function complaint(network: CryptoNetwork, { confirmationsAre }: Family): string {
  // Of a field with several forms, the fault that lies deepest is of the form that was meant.
  const depth = ({ instancePath }: { instancePath: string }) => instancePath.split('/').length
  const [fault] = [...ajv.errors!].sort((a, b) => depth(b) - depth(a))
  const { instancePath, keyword, params, message } = fault!
  const path = [network, ...instancePath.split('/').slice(1)].join('.')
  if (instancePath === '/confirmations' && confirmationsAre !== undefined)
    return `${path} must be ${confirmationsAre}`
  if (keyword === 'additionalProperties')
    return `${path}.${(params as { additionalProperty: string }).additionalProperty} is not a known field`
  if (keyword === 'required')
    return `${path}.${(params as { missingProperty: string }).missingProperty} is required`
  return `${path} ${message ?? 'is invalid'}`
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
    (depth, index) =>
      index === 0 ||
      (values[index]! > values[index - 1]! && depth.confirmations > depths[index - 1]!.confirmations),
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
  const { fees_loss_factor, fees_loss_minimum, verify_above = {}, sweep_cost_max } = section
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
