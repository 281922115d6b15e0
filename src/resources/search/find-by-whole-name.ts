import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { UUID } from '../../db/ids.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import type { Scope } from '../../contract/scopes.ts'
import { bankReference } from '../../money/records/bank-wires.ts'

/** Finds records by a whole name, each by an index: id, `ref_id`, hash, address, memo or the bank's reference. */

export const FOUND_TYPES = {
  transfer: 'transfer:read_transfer',
  orchestration: 'orchestration:read_orchestration',
  orchestration_rule: 'orchestration:read_orchestration_rule',
  profile: 'funding:read_profile',
  account: 'identity:read_account',
  identity: 'identity:read_identity',
  statement: 'statements:read_statement',
  deposit_address: 'transfer:read_deposit_address',
  destination_address: 'transfer:read_crypto_destination_address',
  fiat_account: 'transfer:read_fiat_account',
  fiat_deposit_instructions: 'transfer:read_fiat_deposit_instructions',
  approval: 'approvals:read_approval',
  event: 'events:read_event',
  webhook: 'webhooks:read_webhook',
  api_client: 'api_creds:read_credentials',
} as const satisfies Record<string, Scope>
type FoundType = keyof typeof FOUND_TYPES

/** By which of its names a record was found. */
export const FOUND_BY = [
  'ID',
  'REF_ID',
  'GROUP_ID',
  'HASH',
  'ADDRESS',
  'MEMO',
  'BANK_REFERENCE',
  'PREFIX',
  'NAME',
  'AMOUNT',
] as const

export interface FoundRow {
  type: FoundType
  id: string
  found_by: (typeof FOUND_BY)[number]
  status: string | null
  created_at: string
}

export const FOUND_MAX = 50

/** SQL: the records of the customer `$1` with what every type has, but for events. */
export const RECORDS = `
      select 'transfer' as type, id, ref_id, status, created_at from transfers where customer_id = $1
      union all select 'fiat_deposit_instructions', id, ref_id, status, created_at from fiat_deposit_instructions where customer_id = $1
      union all select 'orchestration', id, ref_id, status, created_at from orchestrations where customer_id = $1
      union all select 'orchestration_rule', id, ref_id, status, created_at from orchestration_rules where customer_id = $1
      union all select 'profile', id, null, null, created_at from profiles where customer_id = $1
      union all select 'account', id, ref_id, null, created_at from accounts where customer_id = $1
      union all select 'identity', id, ref_id, status, created_at from identities where customer_id = $1
      union all select 'statement', id, ref_id, status, created_at from statements where customer_id = $1
      union all select 'deposit_address', id, ref_id, null, created_at from deposit_addresses where customer_id = $1
      union all select 'destination_address', id, null, status, created_at from crypto_destination_addresses where customer_id = $1
      union all select 'fiat_account', id, ref_id, status, created_at from fiat_accounts where customer_id = $1 and deleted_at is null
      union all select 'approval', id, null, status, created_at from approvals where customer_id = $1
      union all select 'webhook', id, null, status, created_at from webhooks where customer_id = $1
      union all select 'api_client', id, null, null, created_at from api_clients where customer_id = $1 and disabled_at is null`

/**
 * `$2`: the text as an id; `$3`: as it was given; `$4`: as a hash; `$5`: as addresses; `$6`: all networks; `$7`: the limit;
 * `$8`: the types; `$9`: the text as a bank's reference.
 */
const FIND = `
  select found.type, found.id, found.found_by, found.status, found.created_at
  from (
    -- The names that are a column with an index of its own.
    select n.type, n.id, case when n.id = $2 then 'ID' else 'REF_ID' end as found_by, n.status, n.created_at
    from (
      ${RECORDS}
      union all select 'event', id, null, null, created_at from events where customer_id = $1
    ) n
    where n.id = $2 or n.ref_id = $3
    union all select 'transfer', id, 'GROUP_ID', status, created_at
      from transfers where customer_id = $1 and group_id = $2
    union all select 'fiat_deposit_instructions', id, 'MEMO', status, created_at
      from fiat_deposit_instructions where customer_id = $1 and memo_id = $3
    union all select 'transfer', id, 'HASH', status, created_at
    from (select * from transfers where customer_id = $1 and crypto_tx_hash = any ($4) order by id limit $7) t
    -- A withdrawal that is under way has no hash of its own yet.
    union all select 'transfer', t.id, 'HASH', t.status, t.created_at
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.customer_id = $1 and b.network = any ($6) and b.crypto_tx_hash = any ($4) and t.crypto_tx_hash is null
    union all select 'transfer', t.id, 'HASH', t.status, t.created_at
    from replaced_transactions r
    join transfers t on t.customer_id = r.customer_id and t.id = r.transfer_id
    where r.customer_id = $1 and r.crypto_tx_hash = any ($4) and t.crypto_tx_hash is distinct from r.crypto_tx_hash
    -- One address may have got any number of withdrawals: the newest are read.
    union all select 'transfer', t.id, n.found_by, t.status, t.created_at
    from unnest($5::text[]) as names (name)
    cross join lateral (
      select transfer_id, found_by from withdrawal_names
      where customer_id = $1 and name = names.name
      order by transfer_id desc
      limit $7
    ) n
    join transfers t on t.customer_id = $1 and t.id = n.transfer_id
    union all select 'transfer', t.id, 'BANK_REFERENCE', t.status, t.created_at
    from bank_wires w
    join transfers t on t.customer_id = $1 and t.id = w.transfer_id
    where w.asset = 'USD' and w.direction = any ('{IN,OUT}') and w.bank_reference = $9
    -- A wire that waits for screening is not recorded yet.
    union all select 'transfer', t.id, 'BANK_REFERENCE', t.status, t.created_at
    from seen_deposits s
    join transfers t on t.customer_id = $1 and t.id = s.transfer_id
    where s.customer_id = $1 and s.network = 'WIRE' and s.state = 'PENDING' and s.crypto_tx_hash = $9
    union all select 'deposit_address', id, 'ADDRESS', null, created_at
    from deposit_addresses where customer_id = $1 and address = any ($5)
    union all select 'destination_address', id, 'ADDRESS', status, created_at
    from crypto_destination_addresses
    where customer_id = $1 and crypto_network = any ($6) and canonical_address = any ($5)
  ) found
  where found.type = any ($8)
  order by found.created_at desc, found.id desc
  limit $7`

/**
 * Finds the customer's records with this whole name, newest first, of these types. Hashes are also found in lower case,
 * addresses also in lower case and in their canonical form.
 */
export async function findByWholeName(
  db: Queryable,
  customerId: string,
  text: string,
  { types, sandbox }: { types: readonly string[]; sandbox: boolean },
): Promise<FoundRow[]> {
  const canonical = CRYPTO_NETWORKS.map((network) =>
    canonicalAddress(network, text, { testNetworks: sandbox }),
  )
  const { rows } = await db.query<FoundRow>({
    name: 'find records',
    text: FIND,
    values: [
      customerId,
      UUID.test(text) ? text : null,
      text,
      [...new Set([text, text.toLowerCase()])],
      [...new Set([text, text.toLowerCase(), ...canonical.filter((address) => address !== undefined)])],
      CRYPTO_NETWORKS,
      FOUND_MAX,
      types,
      bankReference(text),
    ],
  })
  return rows
}
