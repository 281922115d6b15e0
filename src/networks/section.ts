import { Type, type Static } from 'typebox'
import { parseAmount } from '../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { Closed } from '../contract/fields.ts'
import { Secret } from './secrets.ts'

/** The fields that sections of the networks file share; each family has its own beside them. */

export const Decimal = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$', maxLength: 40 })
const Amounts = Type.Union([Decimal, Type.Record(Type.String(), Decimal)])
const CONFIRMATIONS_MAX = 10_000
/** What `confirmations` are where blocks are counted, for people. */
export const COUNTED = `a number from 1 to ${CONFIRMATIONS_MAX}, a list of them by from_usd`
export const Confirmations = Type.Integer({ minimum: 1, maximum: CONFIRMATIONS_MAX })
/** By the value of a deposit: the first are those of small deposits and of withdrawals. */
export const ByAmount = Type.Array(
  Closed({ confirmations: Confirmations, from_usd: Type.Optional(Decimal) }),
  { minItems: 1, maxItems: 20 },
)
const NodeUrl = Type.Union([Type.String({ minLength: 1 }), Secret])
const NodeUrls = Type.Union([NodeUrl, Type.Array(NodeUrl)])
/** One node, or several: `GivenBySection.urls` says how many. */
export type NodeUrls = Static<typeof NodeUrls>
export const shared = {
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
  /** The highest fee that is paid: what it is the fee of, and its unit, are the family's. */
  fee_ceiling: Decimal,
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
/** Of families whose nodes are others': one node is no witness. */
export const secondNode = {
  /** A second, independent node: without its word nothing is given back in live mode, and no large deposit is credited. */
  verify_rpc_url: Type.Optional(NodeUrl),
  /** Without one, in live mode: the value in USD up to which one node's word credits a deposit. */
  single_node_max: Type.Optional(Decimal),
}
/** The same of families that take several. */
export const secondNodes = {
  ...secondNode,
  verify_rpc_url: Type.Optional(NodeUrls),
  /** How many of them must agree; by default all. One that contradicts is never outvoted. */
  verify_quorum: Type.Optional(Type.Integer({ minimum: 1 })),
}
/** Of families that also take several nodes to work with: the first that answers and is not behind the others is used. */
export const manyNodes = { rpc_url: NodeUrls, ...secondNodes }
/** Of families whose deposit addresses are swept. */
export const sweeping = {
  /** The highest cost of sweeping a deposit address, in percent of the swept amount. */
  sweep_cost_max: Type.Optional(Decimal),
  /** Amounts by asset: from this amount on, a sweep may cost any part of it. */
  sweep_minimum: Type.Optional(Type.Record(Type.String(), Decimal)),
}

/** When a transaction is confirmed: after a number of blocks, or by a tag of the network's own finality. */
export type Depth = number | 'safe' | 'finalized'

const Shared = Type.Object({ ...shared, ...secondNode, ...sweeping })
/** A section, as what is asked of all families sees it. */
export interface Section extends Omit<Static<typeof Shared>, 'confirmations' | 'rpc_url' | 'verify_rpc_url'> {
  adapter: string
  rpc_url: NodeUrls
  verify_rpc_url?: NodeUrls
  verify_quorum?: number
  confirmations?: Static<typeof Confirmations> | Static<typeof ByAmount> | 'safe' | 'finalized'
  verify_above?: Record<string, string>
}

/** Decimals of `sweep_cost_max`. */
export const PERCENT_DECIMALS = 4

/** An amount in minor units. Throws an Error that names the field. */
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

/** Does some work, and puts the field's name before the message of its error. */
export function naming<T>(field: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Error(`${field}: ${(error as Error).message}`)
  }
}
