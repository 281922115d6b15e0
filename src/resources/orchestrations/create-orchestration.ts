import { Type } from 'typebox'
import { canonicalAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, DryRunQuery, Metadata, RefId, Uuid } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { payoutCost } from '../../money/movements/withdrawal-fee.ts'
import { payoutOf } from '../../money/movements/payout.ts'
import { changeOf } from '../../money/movements/decision.ts'
import { PAYMENT_PROBLEMS, problem } from '../../contract/problems.ts'
import {
  DestinationBody,
  destinationAsked,
  destinationOf,
  withAddressId,
} from '../../money/records/orchestration-rule.ts'
import { idOfRefId, Orchestration, ORCHESTRATIONS, recordOf } from '../../money/records/orchestration.ts'
import { change, need } from '../../money/records/need.ts'
import { pricesIn } from '../../rails/context.ts'

const CreateOrchestrationBody = Closed({
  ref_id: RefId,
  source_asset: AssetSymbol,
  destination_asset: AssetSymbol,
  source_amount: Amount('Amount of the source asset to take.'),
  source: Closed(
    { profile: Closed({ profile_id: Uuid('Profile to debit.') }) },
    { description: 'Where the money comes from.' },
  ),
  destination: Type.Optional(DestinationBody),
  profile_id: Type.Optional(Uuid('The same as source.profile.profile_id.')),
  identity_id: Type.Optional(Uuid('Identity.')),
  account_id: Type.Optional(Uuid('Account.')),
  metadata: Type.Optional(Metadata),
})

/**
 * Starts an orchestration from a profile (API behaviour, Orchestrations). Its destination transfer is created in the
 * same transaction, so that an impossible payment is refused here and not later.
 */
export const createOrchestration = operation({
  method: 'POST',
  url: '/v2/orchestration/orchestrations',
  scope: 'orchestration:write_orchestration',
  tag: 'Orchestrations',
  takesMoney: true,
  summary: 'Create Orchestration',
  description:
    'Takes money from a profile, converts it and sends it to its destination. An impossible payment is refused immediately.',
  query: DryRunQuery,
  body: CreateOrchestrationBody,
  example: {
    bodies: {
      'USD becomes USDG on the same profile': {
        ref_id: 'orchestration-2026-0001',
        source_asset: 'USD',
        destination_asset: 'USDG',
        source_amount: '20',
        source: { profile: { profile_id: EXAMPLE.profile_id } },
        metadata: { order: '1041' },
      },
      'USDG becomes USD in a bank account': {
        ref_id: 'orchestration-2026-0002',
        source_asset: 'USDG',
        destination_asset: 'USD',
        source_amount: '15',
        source: { profile: { profile_id: EXAMPLE.profile_id } },
        destination: { fiat: { fiat_account_id: EXAMPLE.fiat_account_id } },
      },
    },
  },
  reply: Orchestration,
  problems: [
    ...PAYMENT_PROBLEMS,
    'below-min-withdraw-limit',
    'exceed-max-withdraw-limit',
    'unsupported-network',
    'unsupported-address',
    'unavailable',
  ],
  async run({
    query: { dry_run },
    body,
    customerId,
    origin,
    requireCaller,
    db,
    ledger,
    networks,
    askNodes,
    settings,
    rowMacs,
  }) {
    const { profile_id } = body.source.profile
    if (body.profile_id !== undefined && body.profile_id !== profile_id)
      throw problem.badRequest(
        'profile_id must equal source.profile.profile_id, or be left out',
        'profile_id',
      )
    if (idOfRefId(body.ref_id) !== undefined)
      throw problem.badRequest(
        `ref_id ${body.ref_id} is reserved: orchestrations of rules have such ref_ids`,
        'ref_id',
      )
    const asked = await destinationAsked(
      db,
      rowMacs,
      customerId,
      body.destination ?? { profile: { profile_id } },
    )
    const destination = destinationOf(await withAddressId(db, customerId, asked))
    const order = { ...body, customer_id: customerId, profile_id, destination }
    const prices = await pricesIn({ db, settings })
    const cost = await askNodes(() => payoutCost(forAll(db), order, { networks, settings }))
    const payout = payoutOf(order, { networks, settings }, 'REJECT', prices, cost)
    const decided = await ledger.submit(customerId, {
      ...payout,
      origin,
      dryRun: dry_run,
      existing: body.ref_id === undefined ? undefined : need(ORCHESTRATIONS, body.ref_id),
      requireCaller,
      decide(view) {
        const id = view.newId()
        const decision = payout.decide(view, id)
        const { transfer, otherLeg = { transfer } } = decision
        const started: Orchestration = {
          id,
          customer_id: customerId,
          profile_id,
          identity_id: body.identity_id,
          account_id: body.account_id,
          ref_id: body.ref_id,
          status: transfer.status === 'COMPLETED' ? 'COMPLETED' : 'PROCESSING',
          source_asset: body.source_asset,
          destination_asset: body.destination_asset,
          source_amount: canonicalAmount(body.source_amount, decimalsOf(body.source_asset)),
          source_transfer: { transfer_id: transfer.id, status: transfer.status },
          destination_transfer: { transfer_id: otherLeg.transfer.id, status: otherLeg.transfer.status },
          source: { profile: { profile_id } },
          destination,
          metadata: body.metadata,
          created_at: view.now.text,
          updated_at: view.now.text,
        }
        return {
          ...decision,
          changes: [...(decision.changes ?? []), change(ORCHESTRATIONS, { ...started, origin })],
        }
      },
    })
    return recordOf(changeOf(decided, ORCHESTRATIONS)!)
  },
})
