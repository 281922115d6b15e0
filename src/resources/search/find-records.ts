import type { Queryable } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import type { RowMacs, SealedName } from '../../audit/sealed-rows.ts'
import { findByPart } from './find-by-part.ts'
import { findByWholeName, FOUND_MAX, FOUND_TYPES, type FoundRow } from './find-by-whole-name.ts'

export interface FoundRecord extends Omit<FoundRow, 'status'>, Partial<Details> {
  status?: string
}

interface Details {
  amount: string
  asset: string
  profile_id: string
  name: string
}

type DetailsRow = { id: string } & { [member in keyof Details]: Details[member] | null }

/** `$2`: the ids of records; `$3`: whether the names of profiles may be read. */
const DETAILS = `
  select its.id, its.amount, its.asset, its.profile_id, coalesce(its.name, p.nickname) as name
  from (
    select id, amount, asset, profile_id, null as name from transfers where customer_id = $1 and id = any ($2)
    union all select id, source_amount, source_asset, profile_id, null
      from orchestrations where customer_id = $1 and id = any ($2)
    union all select id, null, null, profile_id, nickname from orchestration_rules where customer_id = $1 and id = any ($2)
    union all select id, null, null, id, nickname from profiles where customer_id = $1 and id = any ($2)
    union all select id, null, null, null,
        coalesce(details ->> 'name', concat_ws(' ', details ->> 'first_name', details ->> 'last_name'))
      from identities where customer_id = $1 and id = any ($2)
    union all select id, total_amount_owed, asset, null, null from statements where customer_id = $1 and id = any ($2)
    union all select id, null, null, profile_id, null from deposit_addresses where customer_id = $1 and id = any ($2)
    union all select id, null, null, null, nickname
      from crypto_destination_addresses where customer_id = $1 and id = any ($2)
    union all select id, null, null, profile_id, null
      from fiat_deposit_instructions where customer_id = $1 and id = any ($2)
    union all select a.id, t.amount, t.asset, t.profile_id, null
      from approvals a join transfers t on t.customer_id = $1 and t.id = a.transfer_id
      where a.customer_id = $1 and a.id = any ($2)
    union all select id, null, null, null, name from webhooks where customer_id = $1 and id = any ($2)
    union all select id, null, null, null, name from api_clients where customer_id = $1 and id = any ($2)
  ) its
  left join profiles p on p.customer_id = $1 and p.id = its.profile_id and $3`

/** Of the records that tell where to pay, only those are found whose MAC is right. */
const SEALED: Partial<Record<FoundRow['type'], SealedName>> = {
  deposit_address: 'deposit_addresses',
  fiat_deposit_instructions: 'fiat_deposit_instructions',
  orchestration_rule: 'orchestration_rules',
}

/**
 * Finds the customer's records by a whole name, then by a part of one or by an amount; each newest first, of the types that
 * the scopes read.
 */
export async function findRecords(
  db: Queryable,
  customerId: string,
  text: string,
  { scopes, sandbox, macs }: { scopes: readonly string[]; sandbox: boolean; macs: RowMacs },
): Promise<FoundRecord[]> {
  const types = Object.entries(FOUND_TYPES)
    .filter(([, scope]) => scopes.includes(scope))
    .map(([type]) => type)
  const found = [
    ...(await findByWholeName(db, customerId, text, { types, sandbox })),
    ...(await findByPart(db, customerId, text, types)),
  ]
  const distinct = found.filter(
    ({ type, id }, index) => found.findIndex((record) => record.type === type && record.id === id) === index,
  )
  const genuine = new Set(distinct.filter(({ type }) => SEALED[type] === undefined))
  for (const [type, table] of Object.entries(SEALED)) {
    const its = distinct.filter((row) => row.type === type)
    for (const row of await macs.genuine(db, table, customerId, its)) genuine.add(row)
  }
  const shown = distinct.filter((row) => genuine.has(row)).slice(0, FOUND_MAX)
  if (shown.length === 0) return []
  const { rows } = await db.query<DetailsRow>({
    name: 'describe found records',
    text: DETAILS,
    values: [customerId, shown.map(({ id }) => id), scopes.includes('funding:read_profile')],
  })
  const details = new Map(rows.map(({ id, ...row }) => [id, row]))
  return shown.map((row) => presentOf({ ...row, ...details.get(row.id) }))
}
