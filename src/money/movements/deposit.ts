import type { Origin } from '../../contract/actor.ts'
import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { convertible, inUnitsOf, onProfileAs } from '../ledger/conversion.ts'
import { onPlatform, type PlatformAccount } from '../ledger/entries.ts'
import { CREDITED_DEPOSITS } from './credited-deposits.ts'
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
import { SEEN_DEPOSITS, SeenOtherwise, type Arrival, type SeenTransfer } from './seen-deposits.ts'

/** Money from outside that has arrived for a profile. */
export interface Deposit {
  profile_id: string
  type: 'WIRE_DEPOSIT' | 'CRYPTO_DEPOSIT'
  asset: string
  /** In minor units of the asset. */
  minor: bigint
  /** The platform account that has received the money. */
  arrivedAt: PlatformAccount
  /** The deposit address or instructions that the money was sent to. The transfer takes their identity and account. */
  place: DepositPlace | undefined
  /** How many orchestrations of this platform the money has passed through. */
  hops?: number
  /**
   * For a deposit that a scan found: the output that identifies its PENDING transfer, if the deposit was shown before.
   */
  seenAs?: Arrival
  /** Credits a platform stablecoin as USD, if the amount is whole cents. */
  convertToUsd?: boolean
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

/** Deposit instructions or a deposit address, with nulls for absent fields. */
export interface DepositPlace {
  id: string
  identity_id?: string | null | undefined
  account_id?: string | null | undefined
  metadata?: Record<string, string> | null | undefined
}

/**
 * Most orchestrations in a chain, each paying the deposit address that starts the next. Two rules that pay each
 * other's address would otherwise loop for ever, and each round costs the platform network fees.
 */
export const HOPS_MAX = 3

/**
 * Credits a deposit (API behaviour, Transfers): its transfer is COMPLETED. If an orchestration rule is active for its
 * address, instructions or profile, the orchestration starts in the same transaction. The orchestration links to the
 * transfer by source_transfer, the transfer to the orchestration by group_id.
 */
export function deposit(customerId: string, arrived: Deposit, origin: Origin): Movement {
  const { profile_id, place } = arrived
  const asset = balanceAssetOf(arrived)
  const coming = { source_ids: [...(place === undefined ? [] : [place.id]), profile_id], asset }
  const { seenAs } = arrived
  return {
    origin,
    ref_id: arrived.record.ref_id,
    balances: [{ profile_id, asset }],
    needs: [need(ACTIVE_RULES, coming), ...(seenAs === undefined ? [] : [need(SEEN_DEPOSITS, seenAs)])],
    decide(view) {
      const rule = view.get(ACTIVE_RULES, coming)
      return decideCredit(customerId, arrived, view, {
        starts: rule && { rule, origin },
        seen: seenAs && view.get(SEEN_DEPOSITS, seenAs),
      })
    },
  }
}

/**
 * Builds the record and entries of a deposit, and the orchestration that it starts. A deposit that was seen before
 * completes its PENDING transfer. Throws SeenOtherwise if the deposit differs from that transfer.
 */
export function decideCredit(
  customerId: string,
  arrived: Deposit,
  { now, newId }: Pick<View, 'now' | 'newId'>,
  { starts, seen }: { starts?: Starts | undefined; seen?: SeenTransfer | undefined } = {},
): Decision {
  const { asset, minor, profile_id } = arrived
  const transfer: Transfer = {
    ...depositRecord(customerId, arrived, { id: seen?.id ?? newId(), now }),
    status: 'COMPLETED',
    group_id: starts === undefined ? undefined : newId(),
  }
  if (seen !== undefined) {
    if (!isSameDeposit(seen, transfer)) throw new SeenOtherwise(seen.id)
    transfer.created_at = seen.created_at
  }
  const started =
    starts && change(ORCHESTRATIONS, orchestrationOf(starts, transfer, { hops: arrived.hops ?? 0, now }))
  const completed = seen && change(SEEN_DEPOSITS, transfer)
  const credited = transfer.crypto_tx_hash && change(CREDITED_DEPOSITS, transfer)
  return {
    transfer,
    entries: [
      onPlatform(arrived.arrivedAt, asset, -minor),
      ...onProfileAs(profile_id, transfer.balance_asset!, minor, asset),
    ],
    isOnRecord: seen === undefined ? undefined : true,
    changes: [credited || [], started ?? [], completed ?? []].flat(),
  }
}

/** The rule whose orchestration a deposit starts, and who records the deposit. */
interface Starts {
  rule: OrchestrationRule
  origin: Origin
}

const isSameDeposit = (seen: SeenTransfer, transfer: Transfer) =>
  seen.profile_id === transfer.profile_id &&
  seen.asset === transfer.asset &&
  seen.balance_asset === transfer.balance_asset &&
  seen.amount === transfer.amount

/** Builds the record of a deposit that is not credited yet. It has no entries. */
export function depositRecord(
  customerId: string,
  arrived: Omit<Deposit, 'arrivedAt'>,
  { id, now }: { id: string; now: View['now'] },
): Transfer {
  const { profile_id, type, asset, minor, place } = arrived
  const balanceAsset = balanceAssetOf(arrived)
  const amount = formatAmount(minor, decimalsOf(asset))
  return {
    id,
    customer_id: customerId,
    profile_id,
    identity_id: place?.identity_id ?? undefined,
    account_id: place?.account_id ?? undefined,
    type,
    direction: 'CREDIT',
    status: 'PENDING',
    asset,
    balance_asset: balanceAsset,
    amount,
    fee: '0',
    total: amount,
    ...arrived.record,
    auto_conversion: balanceAsset === asset ? undefined : {},
    group_id: undefined,
    metadata: place?.metadata ?? undefined,
    created_at: now.text,
    updated_at: now.text,
  }
}

function balanceAssetOf({
  asset,
  minor,
  convertToUsd,
}: Pick<Deposit, 'asset' | 'minor' | 'convertToUsd'>): string {
  const converts = convertToUsd && convertible(asset, 'USD') && inUnitsOf('USD', minor, asset) !== undefined
  return converts ? 'USD' : asset
}

/** Builds the orchestration that a deposit starts; FAILED after too many hops. Its id is the deposit's group_id. */
function orchestrationOf(
  { rule, origin }: Starts,
  transfer: Transfer,
  { hops, now }: { hops: number; now: View['now'] },
): NewOrchestration {
  const endless = hops >= HOPS_MAX
  // An identity and its account belong together, so both come from the same record.
  const named = rule.identity_id ?? rule.account_id
  const { identity_id, account_id } = named === undefined ? transfer : rule
  return {
    id: transfer.group_id!,
    customer_id: rule.customer_id,
    profile_id: rule.profile_id,
    identity_id,
    account_id,
    status: endless ? 'FAILED' : 'PROCESSING',
    ...(endless && { fail_reason: { detail: ENDLESS } }),
    hops,
    origin,
    source_asset: rule.source_asset,
    destination_asset: rule.destination_asset,
    source_amount: transfer.total,
    source_transfer: { transfer_id: transfer.id, status: transfer.status },
    source: sourceOf(rule),
    destination: destinationOf(rule.destination),
    orchestration_rule_id: rule.id,
    metadata: transfer.metadata,
    created_at: now.text,
    updated_at: now.text,
  }
}

const ENDLESS = `the deposit has passed through ${HOPS_MAX} orchestrations, the most allowed: it stays on the profile`
