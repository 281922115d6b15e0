import { Type, type Static } from 'typebox'
import { transaction, violatedConstraint, type Database, type Transaction } from '../../db/database.ts'
import { insertOnce } from '../../money/records/insert-once.ts'
import { readClock } from '../../db/ids.ts'
import type { Origin } from '../../contract/actor.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { AssetSymbol, Closed, RefId, Text, Uuid } from '../../contract/fields.ts'
import type { Context } from '../context.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { listedOn } from '../../money/movements/crypto-withdrawal.ts'
import { requireBankAccount, requireWires } from '../../money/movements/fiat-withdrawal.ts'
import { requireConvertible, requireDestination } from '../../money/movements/payout.ts'
import { insertDepositAddress, selectDepositAddress } from '../../money/records/deposit-address.ts'
import { lockPayable } from '../../money/records/fiat-account.ts'
import { insertInstructions } from '../../money/records/fiat-deposit-instructions.ts'
import {
  type Destination,
  destinationAsked,
  DestinationBody,
  destinationOf,
  OrchestrationRule,
  RULE_COLUMNS,
  type RuleRow,
  RuleSource,
  ruleToWire,
  termsOfRule,
  storeRule,
} from '../../money/records/orchestration-rule.ts'
import { requireApprovedHolders } from '../../money/records/holders.ts'
import { lockOpenProfile } from '../../money/records/profile.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

const CreateOrchestrationRuleBody = Closed({
  ref_id: RefId,
  profile_id: Uuid('Profile that the deposits are credited to.'),
  source_asset: AssetSymbol,
  destination_asset: AssetSymbol,
  source: RuleSource,
  destination: Type.Optional(DestinationBody),
  nickname: Type.Optional(Text(100, 'Display name.')),
  identity_id: Type.Optional(Uuid('Identity of its orchestrations and their transfers.')),
  account_id: Type.Optional(Uuid('Account of its orchestrations and their transfers.')),
})
type CreateOrchestrationRuleBody = Static<typeof CreateOrchestrationRuleBody>

export const createOrchestrationRule = operation({
  method: 'POST',
  url: '/v2/orchestration/rules',
  scope: 'orchestration:write_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'Create Orchestration Rule',
  description:
    'A fiat or crypto source gets its own deposit instructions or deposit address. USD and platform-issued stablecoins are converted one to one.',
  body: CreateOrchestrationRuleBody,
  example: {
    bodies: {
      'Wires become USDP on Ethereum': {
        ref_id: 'rule-2026-0001',
        profile_id: EXAMPLE.profile_id,
        source_asset: 'USD',
        destination_asset: 'USDP',
        source: { fiat: { network: 'WIRE' } },
        destination: {
          crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' },
        },
        nickname: 'Wires to USDP',
      },
      'USDG on Solana becomes USD in a bank account': {
        ref_id: 'rule-2026-0002',
        profile_id: EXAMPLE.profile_id,
        source_asset: 'USDG',
        destination_asset: 'USD',
        source: { crypto: { network: 'SOLANA' } },
        destination: { fiat: { fiat_account_id: EXAMPLE.fiat_account_id, memo: 'Payout' } },
      },
    },
  },
  reply: Type.Object({ rule: OrchestrationRule }),
  problems: [
    'unsupported-network',
    'unsupported-address',
    'not-found',
    'identity-verification-required',
    'disabled',
    'already-exists',
    'unavailable',
  ],
  async run({ body, customerId, origin, db, networks, settings, rowMacs }) {
    const destination = await destinationAsked(
      db,
      rowMacs,
      customerId,
      body.destination ?? { profile: { profile_id: body.profile_id } },
    )
    requireConvertible(body, settings)
    requireSource(body, { networks })
    requireDestination({ ...body, destination: destinationOf(destination) }, { networks, settings })
    const rule = await insertOnce({
      constraint: 'orchestration_rules_ref_id',
      find: () => findRule(db, rowMacs, 'ref_id = $2', [customerId, body.ref_id]),
      insert: () =>
        transaction(db, async (tx) => {
          await requireRecords(tx, customerId, body, destination)
          await requireElsewhere(tx, customerId, destination)
          await requireRoom(tx, customerId, 'orchestration_rules')
          // A second connection of the same pool, taken inside a transaction, could wait for ever.
          return insertRule(tx, { networks, rowMacs }, customerId, { ...body, destination }, origin)
        }),
    }).catch(async (error: unknown) => {
      if (violatedConstraint(error) !== 'orchestration_rules_source') throw error
      const waiting = "source_id = $2 and source_asset = $3 and status = 'ACTIVE'"
      const existing = await findRule(db, rowMacs, waiting, [customerId, body.profile_id, body.source_asset])
      throw problem.alreadyExists('source', existing)
    })
    return { rule }
  },
})

/** Refuses to pay a deposit address of the customer: the rule could trigger itself, and each round costs a network fee. */
async function requireElsewhere(tx: Transaction, customerId: string, { crypto }: Destination): Promise<void> {
  if (crypto === undefined) return
  if ((await selectDepositAddress(tx, customerId, crypto.network, crypto.address)) !== undefined)
    throw problem.badRequest(
      'destination.crypto.address is a deposit address of this customer: use destination.profile, which costs no network fee',
      'destination.crypto.address',
    )
}

/** Requires a source that can receive deposits of its asset. */
function requireSource(
  { source, source_asset, profile_id }: CreateOrchestrationRuleBody,
  { networks }: Pick<Context, 'networks'>,
): void {
  if (source.fiat !== undefined) requireWires({ asset: source_asset }, networks, 'source_asset')
  if (source.crypto !== undefined) listedOn(source_asset, source.crypto.network, 'source.crypto.network')
  if (source.profile !== undefined && source.profile.profile_id !== profile_id)
    throw problem.badRequest(
      'source.profile.profile_id must equal profile_id, the profile whose deposits trigger the rule',
      'source.profile.profile_id',
    )
}

async function findRule(
  db: Database,
  macs: Context['rowMacs'],
  condition: string,
  values: [customerId: string, ...string[]],
): Promise<OrchestrationRule | undefined> {
  const { rows } = await db.query<RuleRow>(
    `select ${RULE_COLUMNS} from orchestration_rules where customer_id = $1 and ${condition}`,
    values,
  )
  const [rule] = await macs.genuine(db, 'orchestration_rules', values[0], rows)
  return rule && ruleToWire(rule)
}

async function requireRecords(
  tx: Transaction,
  customerId: string,
  { profile_id, identity_id, account_id }: CreateOrchestrationRuleBody,
  { fiat, profile }: Destination,
): Promise<void> {
  await lockOpenProfile(tx, customerId, profile_id)
  await requireApprovedHolders(tx, customerId, { identity_id, account_id })
  if (profile !== undefined) await lockOpenProfile(tx, customerId, profile.profile_id)
  if (fiat !== undefined) await lockPayable(tx, customerId, fiat.fiat_account_id)
}

type RuleContext = Pick<Context, 'networks' | 'rowMacs'>

/** Creates the rule's own deposit instructions or address; a profile source needs neither. */
async function makeSource(
  tx: Transaction,
  { networks, rowMacs }: RuleContext,
  customerId: string,
  {
    source: { crypto, fiat },
    profile_id,
    identity_id,
    account_id,
  }: Omit<CreateOrchestrationRuleBody, 'destination'>,
): Promise<{ source: OrchestrationRule['source']; sourceId: string }> {
  const holders = { ...(identity_id && { identity_id }), ...(account_id && { account_id }) }
  if (fiat !== undefined) {
    const account = requireBankAccount(networks)
    const asked = { profile_id, ...holders, fiat_network: 'WIRE' } as const
    const { id, memo_id } = await insertInstructions(tx, { account, rowMacs }, customerId, asked)
    const made = { deposit_instructions_id: id, memo_id, network: 'WIRE' as const }
    return { source: { fiat: { ...fiat, ...made } }, sourceId: id }
  }
  if (crypto !== undefined) {
    const crypto_network = crypto.network
    const asked = { profile_id, ...holders, crypto_network }
    const made = await insertDepositAddress(tx, { networks, rowMacs }, customerId, asked)
    const { id, address } = made
    return { source: { crypto: { address_id: id, address, network: crypto_network } }, sourceId: id }
  }
  return { source: { profile: { profile_id } }, sourceId: profile_id }
}

/**
 * Inserts a rule with its own deposit instructions or address. A repeated ref_id violates
 * `orchestration_rules_ref_id`, a repeated source `orchestration_rules_source`.
 */
export async function insertRule(
  tx: Transaction,
  context: RuleContext,
  customerId: string,
  rule: Omit<CreateOrchestrationRuleBody, 'destination'> & { destination: Destination },
  origin: Origin,
): Promise<OrchestrationRule> {
  const { source, sourceId } = await makeSource(tx, context, customerId, rule)
  const now = await readClock(tx)
  const made = await storeRule(tx, context.rowMacs, customerId, now, { ...rule, source, sourceId }, origin)
  const { crypto, fiat } = made.source
  recordChanges(tx, customerId, now, [
    ...(crypto === undefined ? [] : [audited(origin, 'deposit_address.create', sourceId)]),
    ...(fiat === undefined ? [] : [audited(origin, 'fiat_deposit_instructions.create', sourceId)]),
    audited(origin, 'orchestration_rule.create', made.id, { after: termsOfRule(made) }),
  ])
  return made
}
