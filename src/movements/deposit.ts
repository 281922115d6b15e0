import { formatAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { convertible, inUnitsOf, onProfileAs } from '../ledger/conversion.ts'
import { onPlatform, type PlatformAccount } from '../ledger/entries.ts'
import type { Decision, Movement, View } from './decision.ts'
import { change, need } from '../records/need.ts'
import { ORCHESTRATIONS, type NewOrchestration } from '../records/orchestration.ts'
import {
  ACTIVE_RULES,
  destinationOf,
  sourceOf,
  type OrchestrationRule,
} from '../records/orchestration-rule.ts'
import type { Transfer } from '../ledger/transfer.ts'

/** Money that has arrived for a profile, from outside. */
export interface Deposit {
  profile_id: string
  type: 'WIRE_DEPOSIT' | 'CRYPTO_DEPOSIT'
  asset: string
  /** In minor units of the asset. */
  minor: bigint
  /** The platform's account where it has arrived. */
  arrivedAt: PlatformAccount
  /** What owns the memo or the address that it was sent with: whose these are, the transfer's too. */
  place: DepositPlace | undefined
  /** How many orchestrations of this platform it has come through. */
  hops?: number
  /** Credit it as USD, if it is a platform stablecoin and whole cents. */
  convertToUsd?: boolean
  /** What else its record shows. */
  record: Partial<
    Pick<
      Transfer,
      | 'ref_id'
      | 'memo'
      | 'notional_value'
      | 'destination_address'
      | 'crypto_network'
      | 'crypto_tx_hash'
      | 'crypto_tx_index'
    >
  >
}

/** Deposit instructions or a deposit address: nulls for what they do not name. */
export interface DepositPlace {
  id: string
  identity_id?: string | null | undefined
  account_id?: string | null | undefined
  metadata?: Record<string, string> | null | undefined
}

/**
 * Most orchestrations in a chain, each paying the deposit address that starts the next. Two rules that pay each other's
 * address would go round for ever, and each round costs the platform network fees.
 */
const HOPS_MAX = 3

/**
 * Credits a deposit (API behaviour, Transfers): COMPLETED at once. Where an orchestration rule waits for it, at its own
 * place or on the profile, the orchestration starts in the same transaction, and the two know each other: by
 * source_transfer, and by the transfer's group_id.
 */
export function deposit(customerId: string, arrived: Deposit): Movement {
  const { profile_id, place } = arrived
  const asset = balanceAssetOf(arrived)
  const coming = { source_ids: [...(place === undefined ? [] : [place.id]), profile_id], asset }
  return {
    balances: [{ profile_id, asset }],
    needs: [need(ACTIVE_RULES, coming)],
    decide: (view) => credited(customerId, arrived, view, view.get(ACTIVE_RULES, coming)),
  }
}

/** The record and entries of a deposit, and what it sets off. */
export function credited(
  customerId: string,
  arrived: Deposit,
  { now, newId }: Pick<View, 'now' | 'newId'>,
  rule?: OrchestrationRule,
): Decision {
  const { profile_id, type, asset, minor, place } = arrived
  const balanceAsset = balanceAssetOf(arrived)
  const amount = formatAmount(minor, decimalsOf(asset))
  const transfer: Transfer = {
    id: newId(),
    customer_id: customerId,
    profile_id,
    identity_id: place?.identity_id ?? undefined,
    account_id: place?.account_id ?? undefined,
    type,
    direction: 'CREDIT',
    status: 'COMPLETED',
    asset,
    balance_asset: balanceAsset,
    amount,
    fee: '0',
    total: amount,
    ...arrived.record,
    auto_conversion: balanceAsset === asset ? undefined : {},
    group_id: rule === undefined ? undefined : newId(),
    metadata: place?.metadata ?? undefined,
    created_at: now.text,
    updated_at: now.text,
  }
  return {
    transfer,
    entries: [
      onPlatform(arrived.arrivedAt, asset, -minor),
      ...onProfileAs(profile_id, balanceAsset, minor, asset),
    ],
    changes: rule && [change(ORCHESTRATIONS, orchestrationOf(rule, transfer, arrived.hops ?? 0))],
  }
}

/** What it is credited as. */
function balanceAssetOf({ asset, minor, convertToUsd }: Deposit): string {
  const converts = convertToUsd && convertible(asset, 'USD') && inUnitsOf('USD', minor, asset) !== undefined
  return converts ? 'USD' : asset
}

/** The orchestration that a deposit sets off, FAILED after too many hops. Its id is the deposit's group_id. */
function orchestrationOf(rule: OrchestrationRule, transfer: Transfer, hops: number): NewOrchestration {
  const endless = hops >= HOPS_MAX
  return {
    id: transfer.group_id!,
    customer_id: rule.customer_id,
    profile_id: rule.profile_id,
    identity_id: transfer.identity_id,
    account_id: transfer.account_id,
    status: endless ? 'FAILED' : 'PROCESSING',
    ...(endless && { fail_reason: { detail: ENDLESS } }),
    hops,
    source_asset: rule.source_asset,
    destination_asset: rule.destination_asset,
    source_amount: transfer.total,
    source_transfer: { transfer_id: transfer.id },
    source: sourceOf(rule),
    destination: destinationOf(rule.destination),
    orchestration_rule_id: rule.id,
    metadata: transfer.metadata,
    created_at: transfer.created_at,
    updated_at: transfer.updated_at,
  }
}

const ENDLESS = `the deposit has come through ${HOPS_MAX} orchestrations already, and starts no other: it stays on the profile`
