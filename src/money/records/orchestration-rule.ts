import { Type, type Static } from 'typebox'
import type { Queryable, Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { problem } from '../../contract/problems.ts'
import type { RecordKind } from './need.ts'
import {
  AssetSymbol,
  Closed,
  NamedObject,
  Network,
  OneOf,
  RefId,
  Text,
  Timestamp,
  Uuid,
  WIRE_MEMO_LENGTH_MAX,
} from '../../contract/fields.ts'
import { selectDepositAddress } from './deposit-address.ts'
import { addressAsked, namedBoth } from './destination-address.ts'
import { ownRowMacs, sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { CryptoEnd, type Orchestration } from './orchestration.ts'
import { newId, type Moment } from '../../db/ids.ts'
import { initiatorOf, type Origin } from '../../contract/actor.ts'

/** What clients call the account that money comes from: its kind, or that of its routing number. Nothing depends on it. */
const AccountType = OneOf(
  ['CHECKING', 'SAVINGS', 'ABA', 'SWIFT'],
  'Kind of bank account, or of its routing number.',
)
const FiatNetwork = OneOf(['WIRE'], 'Fiat network.')
const DestinationAddress = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'Destination address.',
  examples: ['0x52908400098527886E0F7030069857D2E4169EE7'],
})
const ProfileEnd = Closed({ profile_id: Uuid('Profile.') }, { description: 'A balance of a profile.' })

const Memo = Type.Optional(Text(WIRE_MEMO_LENGTH_MAX, 'Memo that goes with the money.'))

/** The destination of an orchestration, as clients request it. Exactly one member. */
export const DestinationBody = Closed(
  {
    crypto: Type.Optional(
      Closed(
        {
          address: Type.Optional(DestinationAddress),
          network: Type.Optional(Network),
          address_id: Type.Optional(
            Uuid('The id of an address of the address book, instead of address and network.'),
          ),
          crypto_address_id: Type.Optional(Uuid('Another name of address_id.')),
        },
        { description: 'A crypto address: address and network, or address_id.' },
      ),
    ),
    fiat: Type.Optional(
      Closed(
        {
          fiat_account_id: Type.Optional(Uuid('Fiat account to pay.')),
          bank_account_id: Type.Optional(Uuid('Another name of fiat_account_id.')),
          memo: Memo,
        },
        { description: 'A bank account. Needs fiat_account_id.' },
      ),
    ),
    profile: Type.Optional(ProfileEnd),
  },
  {
    minProperties: 1,
    maxProperties: 1,
    description:
      'Where the money goes: crypto, fiat or profile. Without it, it stays on the profile, converted.',
  },
)

/** A complete destination. Exactly one member. */
export interface Destination {
  crypto?: Static<typeof CryptoEnd>
  fiat?: Static<typeof FiatDestination>
  profile?: Static<typeof ProfileEnd>
}
const FiatDestination = Type.Object({ fiat_account_id: Uuid('Fiat account to pay.'), memo: Memo })

/**
 * Returns the destination of a request. Throws bad-request for a missing member and where two members contradict each
 * other, and not-found for an id that the address book does not have.
 */
export async function destinationAsked(
  db: Queryable,
  macs: RowMacs,
  customerId: string,
  { crypto, fiat, profile }: Static<typeof DestinationBody>,
): Promise<Destination> {
  if (crypto !== undefined) return { crypto: await addressAsked(db, macs, customerId, crypto) }
  if (fiat === undefined) return { ...(profile && { profile }) }
  const { fiat_account_id, bank_account_id, ...rest } = fiat
  if (fiat_account_id !== undefined && bank_account_id !== undefined && fiat_account_id !== bank_account_id)
    throw problem.badRequest(
      'destination.fiat.bank_account_id must equal destination.fiat.fiat_account_id: they are names of the same member',
      'destination.fiat.bank_account_id',
    )
  const id = required(fiat_account_id ?? bank_account_id, 'destination.fiat.fiat_account_id')
  return { fiat: { fiat_account_id: id, ...rest } }
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw problem.badRequest(`${field} is required`, field)
  return value
}

/** The stored destination: it also names the address's id when the address is one of the customer's own. */
const KnownDestination = Type.Object(
  {
    crypto: Type.Optional(CryptoEnd),
    fiat: Type.Optional(FiatDestination),
    profile: Type.Optional(ProfileEnd),
  },
  { minProperties: 1, maxProperties: 1, description: 'Where the money goes.' },
)
export type KnownDestination = Static<typeof KnownDestination>

/** The source of a rule, as clients request it. Exactly one member. */
export const RuleSource = Closed(
  {
    crypto: Type.Optional(Closed({ network: Network })),
    fiat: Type.Optional(
      Closed({ network: Type.Optional(FiatNetwork), account_type: Type.Optional(AccountType) }),
    ),
    profile: Type.Optional(ProfileEnd),
  },
  {
    minProperties: 1,
    maxProperties: 1,
    description:
      "What triggers the rule: a deposit to the rule's own address (crypto) or with its own memo (fiat), or any deposit to the profile.",
  },
)
export type RuleSource = Static<typeof RuleSource>

/** A rule that starts an orchestration for each deposit at its source (API behaviour, Orchestration rules). */
export const OrchestrationRule = NamedObject('OrchestrationRule', {
  id: Uuid('Rule id.'),
  customer_id: Uuid('Customer.'),
  ref_id: RefId,
  profile_id: Uuid('Profile that the deposits are credited to.'),
  status: OneOf(['ACTIVE', 'DELETED'], 'Status.'),
  nickname: Type.Optional(Text(100, 'Display name.')),
  source_asset: AssetSymbol,
  destination_asset: AssetSymbol,
  source: Type.Object(
    {
      crypto: Type.Optional(
        Type.Object({
          address_id: Uuid("The rule's own deposit address."),
          address: Type.String({ description: 'Address to deposit to.' }),
          network: Network,
        }),
      ),
      fiat: Type.Optional(
        Type.Object({
          deposit_instructions_id: Uuid("The rule's own deposit instructions."),
          memo_id: Type.String({ description: 'Memo that a deposit must carry.' }),
          network: FiatNetwork,
          account_type: Type.Optional(AccountType),
        }),
      ),
      profile: Type.Optional(ProfileEnd),
    },
    { minProperties: 1, maxProperties: 1, description: 'What triggers the rule.' },
  ),
  destination: KnownDestination,
  identity_id: Type.Optional(Uuid('Identity of its orchestrations.')),
  account_id: Type.Optional(Uuid('Account of its orchestrations.')),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
})
export type OrchestrationRule = Static<typeof OrchestrationRule>

type Absent = 'nickname' | 'identity_id' | 'account_id'
export type RuleRow = Omit<OrchestrationRule, Absent> & { [K in Absent]: OrchestrationRule[K] | null }

export const RULE_COLUMNS = `id, customer_id, ref_id, profile_id, status, nickname, source_asset, destination_asset,
  source, destination, identity_id, account_id, created_at, updated_at`

export const ruleToWire = (row: RuleRow): OrchestrationRule => presentOf(row)

interface NewRule extends Omit<OrchestrationRule, 'id' | 'customer_id' | 'status' | 'destination' | Stamp> {
  destination: Destination
  /** The address, instructions or profile that its money comes in by. */
  sourceId: string
}
type Stamp = 'created_at' | 'updated_at'

/** Inserts a rule. A repeated ref_id violates `orchestration_rules_ref_id`, a repeated source `orchestration_rules_source`. */
export async function storeRule(
  tx: Transaction,
  macs: RowMacs,
  customerId: string,
  now: Moment,
  rule: NewRule,
  origin: Origin,
): Promise<OrchestrationRule> {
  const { rows } = await tx.query<RuleRow>(
    `
    insert into orchestration_rules (customer_id, id, created_at, updated_at, ref_id, profile_id, status, nickname,
                                     source_asset, destination_asset, source, destination, source_id,
                                     identity_id, account_id, created_by)
    values ($1, $2, $3, $3, $4, $5, 'ACTIVE', $6, $7, $8, $9, $10, $11, $12, $13, $14)
    returning ${RULE_COLUMNS}`,
    [
      customerId,
      newId(now),
      now.text,
      rule.ref_id,
      rule.profile_id,
      rule.nickname,
      rule.source_asset,
      rule.destination_asset,
      rule.source,
      rule.destination,
      rule.sourceId,
      rule.identity_id,
      rule.account_id,
      initiatorOf(origin),
    ],
  )
  const made = ruleToWire(rows[0]!)
  await macs.seal(tx, 'orchestration_rules', customerId, made.id)
  return made
}

/** Returns what a rule does, for the audit log: where its money comes from and goes to, without the client's texts. */
export function termsOfRule(rule: OrchestrationRule): object {
  const { profile_id, source_asset, destination_asset, destination } = rule
  const { crypto, fiat, profile } = destination
  return {
    ...{ profile_id, source_asset, destination_asset },
    ...(crypto && { crypto_network: crypto.network, destination_address: crypto.address }),
    ...(fiat && { fiat_account_id: fiat.fiat_account_id }),
    ...(profile && { destination_profile_id: profile.profile_id }),
  }
}

/**
 * Adds the id of the destination's address, if that is one of the customer's own deposit addresses. Otherwise the id of the
 * address book stays.
 */
export async function withAddressId(
  db: Queryable,
  customerId: string,
  destination: Destination,
): Promise<KnownDestination> {
  if (destination.crypto === undefined) return destination
  const { address, network } = destination.crypto
  const own = await selectDepositAddress(db, customerId, network, address)
  return own === undefined ? destination : { crypto: { ...destination.crypto, ...namedBoth(own.id) } }
}

/** Returns the id of an ACTIVE rule that pays to this fiat account, if there is one. */
export async function ruleThatPays(
  db: Queryable,
  customerId: string,
  fiatAccountId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>(
    `select id from orchestration_rules
     where customer_id = $1 and status = 'ACTIVE' and destination -> 'fiat' ->> 'fiat_account_id' = $2
     order by id
     limit 1`,
    [customerId, fiatAccountId],
  )
  return rows[0]?.id
}

/** An incoming deposit: where it came in (its address or instructions before the profile) and its asset. */
interface DepositArrival {
  source_ids: readonly string[]
  asset: string
}

/**
 * The active rule for an incoming deposit, locked against its deletion. The first source that has a rule for the asset
 * decides. The service's role can insert rules and reset deleted ones to ACTIVE: neither counts.
 */
export const ACTIVE_RULES: RecordKind<DepositArrival, OrchestrationRule> = {
  async read(tx, customerId, arrivals) {
    const { rows: found } = await tx.query<RuleRow & Seal & { source_id: string }>(
      `
    select ${RULE_COLUMNS}, source_id, ${sealOf('orchestration_rules')}
    from orchestration_rules r
    where customer_id = $1 and source_id = any ($2::uuid[]) and status = 'ACTIVE' and not exists (
      select 1 from audit_log l
      where l.customer_id = $1 and l.subject_id = r.id::text and l.action = 'orchestration_rule.delete')
    order by r.id
    for share of r`,
      [customerId, [...new Set(arrivals.flatMap(({ source_ids }) => source_ids))]],
    )
    const macs = found.length === 0 ? undefined : await ownRowMacs()
    const rows = found.filter(
      ({ sealed, mac }) => macs!.objectionTo('orchestration_rules', { sealed, mac }) === undefined,
    )
    const keyOf = (sourceId: string, asset: string) => `${sourceId}/${asset}`
    const rules = new Map(
      rows.map(({ source_id, sealed: _, mac: __, ...row }) => [
        keyOf(source_id, row.source_asset),
        ruleToWire(row),
      ]),
    )
    return {
      get: ({ source_ids, asset }) =>
        source_ids.map((id) => rules.get(keyOf(id, asset))).find((rule) => rule !== undefined),
    }
  },
}

/** Builds the source of an orchestration that this rule starts (API behaviour, Orchestrations). */
export function sourceOf({ source: { crypto, fiat, profile } }: OrchestrationRule): Orchestration['source'] {
  if (fiat === undefined) return { ...(crypto && { crypto }), ...(profile && { profile }) }
  return { fiat: { deposit_instructions_id: fiat.deposit_instructions_id, memo: fiat.memo_id } }
}

/** Builds the destination as an orchestration's record shows it (API behaviour, Orchestrations). */
export function destinationOf({ crypto, fiat, profile }: KnownDestination): Orchestration['destination'] {
  if (fiat === undefined) return { ...(crypto && { crypto }), ...(profile && { profile }) }
  const { fiat_account_id, memo } = fiat
  return { fiat: { bank_account_id: fiat_account_id, ...(memo !== undefined && { memo }) } }
}
