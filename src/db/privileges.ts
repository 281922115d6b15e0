import type { Queryable } from './database.ts'

/** The privileges of the service's role on one table, besides `select`. */
interface TablePrivileges {
  insert?: true
  /** The only columns that it may update. */
  update?: readonly string[]
  delete?: true
}

/**
 * All privileges of the service's role, by table. `migrate` grants these and revokes all others. Another role owns
 * the tables, so no statement of the service can extend its rights (ARCHITECTURE.md, "Two roles").
 *
 * A new table needs a line here, and a newly updated column its name: tests run as the service's role. Processes of
 * the older version still need a privilege until they have stopped. So remove a privilege one release after the last
 * statement that needs it.
 */
export const PRIVILEGES: Readonly<Record<string, TablePrivileges>> = {
  account_members: { insert: true, update: ['removed_at'] },
  acknowledged_transactions: { insert: true },
  accounts: {
    insert: true,
    update: ['description', 'metadata', 'user_disabled', 'admin_disabled', 'updated_at'],
  },
  api_clients: {
    insert: true,
    update: [
      'name',
      'last_used_at',
      'disabled_at',
      'updated_at',
      'secret_hash',
      'previous_secret_hash',
      'previous_secret_expires_at',
      'sealed_at',
      'mac',
    ],
  },
  address_series: { insert: true },
  // Rows are deleted once they are read.
  asked_addresses: { insert: true, update: ['address', 'derivation', 'signature'], delete: true },
  audit_heads: { insert: true, update: ['position', 'hash'] },
  audit_links: { insert: true },
  audit_log: { insert: true },
  approval_decisions: { insert: true },
  approvals: { insert: true, update: ['status', 'approved_at', 'ended_at'] },
  failed_transactions: { insert: true, update: ['counts'] },
  // Only the schema's owner makes and revokes approvers.
  approvers: {},
  balances: { insert: true, update: ['available', 'version', 'updated_at', 'mac'] },
  bank_wires: { insert: true },
  crypto_destination_addresses: {
    insert: true,
    update: [
      'nickname',
      'bookmarked',
      'travelrule_metadata',
      'status',
      'approved_at',
      'rejected_at',
      'updated_at',
      'sealed_at',
      'mac',
    ],
  },
  credited_deposits: { insert: true },
  decided_orchestrations: { insert: true },
  customer_fee_checks: { insert: true, update: ['counted_from'] },
  // A freeze that has ended stays, with the MAC of its end.
  customer_freezes: { insert: true, update: ['lifted_at', 'sealed_at', 'mac'] },
  // Deletes a limit that an operator removes.
  customer_limits: { insert: true, update: ['value', 'updated_at'], delete: true },
  customers: { insert: true },
  deployment: {
    insert: true,
    update: ['mode', 'issuer', 'stamped_at', 'sealed_at', 'mac', 'verified_at', 'verify_findings'],
  },
  // Only the schema's owner lets payments go on unscreened.
  screening_requirement: { insert: true },
  deposit_addresses: { insert: true, update: ['sealed_at', 'mac'] },
  entries: { insert: true },
  event_history: {},
  events: { insert: true },
  evm_holdings: { insert: true, update: ['balance', 'stale_at', 'account', 'signature'] },
  evm_nonces: { insert: true, update: ['next_nonce', 'acknowledged_nonces'] },
  evm_sweeps: {
    insert: true,
    update: [
      'amount',
      'state',
      'raw_transaction',
      'crypto_tx_hash',
      'replaced',
      'network_fee',
      'signed_at',
      'lost_since',
      'ended_at',
      'audit_block',
    ],
  },
  // Deletes quotes an hour after they expired unused, and 30 days after they were used.
  fee_quotes: { insert: true, update: ['transfer_id', 'sealed_at', 'mac'], delete: true },
  fiat_accounts: { insert: true, update: ['metadata', 'updated_at', 'deleted_at'] },
  fiat_deposit_instructions: { insert: true, update: ['sealed_at', 'mac'] },
  freezes: { insert: true, update: ['unrecorded', 'lifted_at', 'sealed_at', 'mac'] },
  identities: {
    insert: true,
    update: [
      'status',
      'user_disabled',
      'admin_disabled',
      'details',
      'tax_details',
      'tax_details_not_required',
      'customer_due_diligence',
      'is_merchant',
      'last_kyc_refresh_date',
      'sandbox_checks',
      'metadata',
      'updated_at',
    ],
  },
  incoming_transfers: {
    insert: true,
    update: [
      'state',
      'reason',
      'detail',
      'cleared',
      'block_number',
      'block_hash',
      'attempts',
      'due_at',
      'transfer_id',
      'sealed_at',
      'mac',
    ],
    delete: true,
  },
  institution_members: { insert: true, update: ['removed_at'] },
  markets: { update: ['source', 'newest_minute', 'newest_price', 'sealed_at', 'mac'] },
  network_cursors: { insert: true, update: ['cursor', 'updated_at', 'earlier', 'leased_until'] },
  network_fee_checks: { insert: true, update: ['counted_from'] },
  network_genesis: { insert: true },
  // Payees are only added, by add_payees. Nothing is signed again for a withdrawal among the payees, unless the chain itself says
  // that the transaction in `used_by` has used the nonce.
  network_transactions: { insert: true, update: ['ended_at', 'used_by'] },
  // Of an earlier version: the audit log has the challenges that were answered.
  operator_challenges: {},
  operator_links: { insert: true, update: ['used_at', 'sealed_at', 'mac'], delete: true },
  operator_passkeys: {
    insert: true,
    update: ['used_at', 'signatures', 'removed_at', 'sealed_at', 'mac'],
  },
  // Deletes sessions 30 days after their end.
  operator_sessions: { insert: true, update: ['used_at', 'ended_at', 'sealed_at', 'mac'], delete: true },
  operators: {
    insert: true,
    update: ['role', 'disabled_at', 'generation', 'updated_at', 'sealed_at', 'mac'],
  },
  orchestration_rules: { insert: true, update: ['status', 'updated_at', 'sealed_at', 'mac'] },
  orchestrations: {
    insert: true,
    update: ['destination_transfer_id', 'fail_reason', 'status', 'updated_at', 'mac'],
  },
  outgoing_transfers: {
    insert: true,
    update: [
      'state',
      'raw_transaction',
      'crypto_tx_hash',
      'due_at',
      'waiting_code',
      'waiting_detail',
      'waiting_since',
      'leased_until',
      'crypto_tx_index',
      'signed_at',
      'broadcast_at',
      'confirmations',
      'confirmations_needed',
    ],
  },
  policies: { insert: true },
  // Deletes windows a day after nothing in them counts any more.
  policy_windows: { insert: true, update: ['buckets', 'ends_at'], delete: true },
  price_imports: { insert: true, update: ['name', 'records', 'finished', 'updated_at'] },
  // The first real price removes a market's simulated prices.
  price_minutes: {
    insert: true,
    update: ['covers_minutes', 'second', 'price', 'exact_increment', 'open', 'high', 'low', 'close'],
    delete: true,
  },
  price_points: {
    insert: true,
    update: ['minutes', 'sum', 'counts', 'exact_increment', 'open', 'high', 'low', 'close'],
    delete: true,
  },
  profiles: { insert: true, update: ['nickname', 'description', 'deactivated_at'] },
  replaced_transactions: { insert: true },
  // A rate is set with its MAC, and never changed.
  reward_rates: { insert: true, update: ['sealed_at', 'mac'] },
  schema_version: {},
  screenings: {
    insert: true,
    update: ['id', 'state', 'attempts', 'due_at', 'detail', 'decided_at', 'mac'],
  },
  // Deletes seen deposits 30 days after they ended; their transfers stay.
  seen_deposits: { insert: true, update: ['block_number', 'state', 'ended_at'], delete: true },
  resolved_withdrawals: { insert: true },
  // Deletes what is posted.
  refills: { insert: true, update: ['detail'], delete: true },
  signing_keys: { insert: true, update: ['encrypted_jwk', 'retired_at'] },
  // Deletes transactions of a sandbox's simulated networks after 30 days.
  simulated_chain: { insert: true, update: ['broadcast_at', 'dropped_at', 'arrives'], delete: true },
  solana_lanes: {
    insert: true,
    update: ['checked_nonce', 'checked_signature', 'used_nonce', 'acknowledged'],
  },
  statements: {
    insert: true,
    update: [
      'status',
      'total_amount_owed',
      'amount_paid',
      'transfer_id',
      'generated_at',
      'paid_at',
      'reward_method',
    ],
  },
  traces: { insert: true, delete: true },
  transfer_metadata: { insert: true },
  transfers: {
    insert: true,
    update: [
      'status',
      'updated_at',
      'mac',
      'secondary_status',
      'status_details',
      'crypto_tx_hash',
      'crypto_tx_index',
      // Of a deposit, when it is credited.
      'group_id',
      'notional_value',
    ],
  },
  wallet_checks: { insert: true, update: ['checked_block', 'updated_at'] },
  webhook_attempts: { insert: true },
  webhook_deliveries: {
    insert: true,
    update: ['status', 'attempts', 'attempts_of_round', 'due_at', 'leased_until', 'ended_at'],
  },
  webhooks: {
    insert: true,
    update: [
      'updated_at',
      'name',
      'url',
      'event_types',
      'payload',
      'auth',
      'profile_ids',
      'rate_limit',
      'status',
      'encrypted_secrets',
      'previous_secret_until',
      'cursor_id',
      'failing_since',
      'disabled_reason',
      'slow_until',
      'next_at',
    ],
    delete: true,
  },
  withdrawal_names: { insert: true },
}

/** The functions that the service's role may execute: each does, within its own limits, what otherwise only the owner may. */
export const FUNCTIONS: readonly string[] = ['add_payees', 'keep_partitions']

/**
 * Returns the tables of the schema `public` that have no line in `PRIVILEGES`. The privileges of a partitioned table hold
 * for its partitions, which the service's role cannot name.
 */
export async function undeclaredTables(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname <> all ($1)
     order by 1`,
    [Object.keys(PRIVILEGES)],
  )
  return rows.map(({ name }) => name)
}

/** Formats a privilege for people: `insert on entries`, `update (status) on transfers`. */
const privilege = (table: string, what: string, column?: string) =>
  column === undefined ? `${what} on ${table}` : `${what} (${column}) on ${table}`

function declared(table: string, { insert, update = [], delete: deletes }: TablePrivileges): string[] {
  return [
    privilege(table, 'select'),
    ...(insert ? [privilege(table, 'insert')] : []),
    ...update.map((column) => privilege(table, 'update', column)),
    ...(deletes ? [privilege(table, 'delete')] : []),
  ]
}

interface Difference {
  kind: 'table' | 'function'
  name: string
  /** Declared, but not granted. */
  missing: string[]
  /** Granted to the role or to public, but not declared. */
  excess: string[]
}

/**
 * Compares the grants of a role with `PRIVILEGES` and `FUNCTIONS`, by table and function. An owner, a superuser or a member of
 * another role may do more than its grants: `faultsOfRole` reports that.
 */
export async function grantDifferences(db: Queryable, role: string): Promise<Difference[]> {
  const { rows } = await db.query<{ table: string; what: string; column: string | null }>(
    `
    select c.relname as table, lower(a.privilege_type collate "C") || case when is_grantable then ' with grant option' else '' end as what,
           null as column
    from pg_class c, aclexplode(c.relacl) a
    where c.relnamespace = 'public'::regnamespace and c.relname = any ($2)
      and a.grantee in (0, $1::text::regrole) and a.grantee <> c.relowner
    union
    select c.relname, lower(a.privilege_type collate "C") || case when is_grantable then ' with grant option' else '' end, t.attname
    from pg_class c
    join pg_attribute t on t.attrelid = c.oid, aclexplode(t.attacl) a
    where c.relnamespace = 'public'::regnamespace and c.relname = any ($2)
      and a.grantee in (0, $1::text::regrole) and a.grantee <> c.relowner`,
    [quoted(role), Object.keys(PRIVILEGES)],
  )
  const compare = (
    kind: Difference['kind'],
    name: string,
    wanted: string[],
    there: string[],
  ): Difference[] => {
    const missing = wanted.filter((one) => !there.includes(one))
    const excess = there.filter((one) => !wanted.includes(one))
    return missing.length + excess.length === 0 ? [] : [{ kind, name, missing, excess }]
  }
  const ofTables = Object.entries(PRIVILEGES).flatMap(([table, privileges]) => {
    const there = rows
      .filter((row) => row.table === table)
      .map(({ what, column }) => privilege(table, what, column ?? undefined))
    return compare('table', table, declared(table, privileges), there)
  })
  const executable = await executableFunctions(db, role)
  const ofFunctions = [...new Set([...FUNCTIONS, ...executable.map(({ name }) => name)])].flatMap((name) =>
    compare(
      'function',
      name,
      FUNCTIONS.includes(name) ? [privilege(name, 'execute')] : [],
      executable.filter((one) => one.name === name).map(({ what }) => privilege(name, what)),
    ),
  )
  return [...ofTables, ...ofFunctions]
}

/** Returns the functions of the schema `public` that the role, or everyone, may execute. */
async function executableFunctions(db: Queryable, role: string): Promise<{ name: string; what: string }[]> {
  const { rows } = await db.query<{ name: string; what: string }>(
    `
    select proname as name, case when grantee = 0 then 'execute by everyone'
                                 when is_grantable then 'execute with grant option' else 'execute' end as what
    from pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
    where pronamespace = 'public'::regnamespace and a.grantee in (0, $1::text::regrole) and a.grantee <> proowner`,
    [quoted(role)],
  )
  return rows
}

/** Quotes a name for SQL. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/**
 * Grants the service's role exactly the privileges in `PRIVILEGES`; run by the role that owns the tables, in its
 * transaction. Where one role is both, only the rights to change entries are revoked, as far as an owner's rights can
 * be. Correct grants are not written again, so that a start disturbs no running process.
 */
export async function applyPrivileges(owner: Queryable, role: string): Promise<void> {
  const { rows } = await owner.query<{
    is_owner: boolean
    database: string
    changes_entries: boolean
    owns_database: boolean
    owns_schema: boolean
    temporary: boolean
    creates: boolean
    uses: boolean
  }>(
    `
    select current_user = $1 as is_owner, d.datname as database,
           has_table_privilege('entries', 'update, delete, truncate') as changes_entries,
           pg_has_role(d.datdba, 'usage') as owns_database, pg_has_role(n.nspowner, 'usage') as owns_schema,
           has_database_privilege($1, d.oid, 'temporary, create') as temporary,
           has_schema_privilege($1, n.oid, 'create') as creates, has_schema_privilege($1, n.oid, 'usage') as uses
    from pg_database d, pg_namespace n
    where d.datname = current_database() and n.nspname = 'public'`,
    [role],
  )
  const { is_owner, database, changes_entries, owns_database, owns_schema, temporary, creates, uses } =
    rows[0]!
  if (changes_entries)
    await owner.query('revoke update, delete, truncate on entries from public, current_user')
  if (is_owner) return
  const to = quoted(role)
  // The role's own table, even a temporary one, could precede ours in the search path.
  if (temporary && owns_database)
    await owner.query(`revoke temporary, create on database ${quoted(database)} from public, ${to}`)
  if (creates && owns_schema) await owner.query(`revoke create on schema public from public, ${to}`)
  if (!uses) await owner.query(`grant usage on schema public to ${to}`)
  for (const { kind, name: table } of await grantDifferences(owner, role)) {
    if (kind === 'function') {
      await owner.query(`revoke all on function ${quoted(table)} from public, ${to} cascade`)
      if (FUNCTIONS.includes(table)) await owner.query(`grant execute on function ${quoted(table)} to ${to}`)
      continue
    }
    const { insert, update = [], delete: deletes } = PRIVILEGES[table]!
    const whole = ['select', ...(insert ? ['insert'] : []), ...(deletes ? ['delete'] : [])]
    await owner.query(`revoke all on ${quoted(table)} from public, ${to} cascade`)
    await owner.query(`grant ${whole.join(', ')} on ${quoted(table)} to ${to}`)
    if (update.length > 0)
      await owner.query(`grant update (${update.map(quoted).join(', ')}) on ${quoted(table)} to ${to}`)
  }
}

/** An operation that a role may do but should not, or should be able to do but may not. */
export interface RoleFault {
  kind: 'MISSING' | 'EXCESS'
  says: string
  advice: string
}

const TWO_ROLES = 'let another role own the schema (docs/guides/database-roles.md)'
const UNGUARDED = 'ledger entries are not protected from it'

/**
 * Finds the faults of this connection's role as the service's role. It should be no owner and no superuser, and have
 * exactly the privileges in `PRIVILEGES`. Empty when all is well.
 */
export async function faultsOfRole(db: Queryable): Promise<RoleFault[]> {
  const { rows } = await db.query<{
    role: string
    superuser: boolean
    owns_tables: boolean
    owns_database: boolean
    makes_roles: boolean
    makes_objects: boolean
    changes_entries: boolean | null
  }>(
    `
    select rolname as role, rolsuper as superuser, rolcreaterole as makes_roles,
           exists (select 1 from pg_class c
                   where relnamespace = 'public'::regnamespace and relname = any ($1)
                     and pg_has_role(c.relowner, 'member')) as owns_tables,
           pg_has_role(d.datdba, 'member') or pg_has_role(n.nspowner, 'member') as owns_database,
           has_schema_privilege(n.oid, 'create') or has_database_privilege(d.oid, 'temporary, create') as makes_objects,
           has_table_privilege(e.oid, 'update, delete, truncate')
             or has_any_column_privilege(e.oid, 'update') as changes_entries
    from pg_roles, pg_database d, pg_namespace n
    left join pg_class e on e.oid = to_regclass('public.entries')
    where rolname = current_user and d.datname = current_database() and n.nspname = 'public'`,
    [Object.keys(PRIVILEGES)],
  )
  const { role, ...may } = rows[0]!
  const excess = (says: string, advice: string): RoleFault => ({
    kind: 'EXCESS',
    says: `the database role ${role} ${says}`,
    advice,
  })
  if (may.superuser) return [excess(`is a superuser: ${UNGUARDED}`, 'use an ordinary role')]
  const creator = may.makes_roles ? [excess('may create roles', `alter role ${role} nocreaterole`)] : []
  if (may.owns_tables) return [excess(`owns the schema: ${UNGUARDED}`, TWO_ROLES), ...creator]
  if (may.owns_database) return [excess(`owns the database: it may drop the ledger`, TWO_ROLES), ...creator]
  const found = await grantDifferences(db, role)
  const missing = found.flatMap((one) => one.missing)
  const granted = found.flatMap((one) => one.excess)
  const migrate = 'bursar migrate as the role that owns the schema (docs/guides/database-roles.md)'
  return [
    ...creator,
    ...(may.makes_objects ? [excess('may create tables or schemas', migrate)] : []),
    ...(may.changes_entries ? [excess('may change ledger entries', migrate)] : []),
    ...(granted.length > 0 && !may.changes_entries ? [excess(`has ${someOf(granted)}`, migrate)] : []),
    ...(missing.length > 0
      ? [
          {
            kind: 'MISSING' as const,
            says: `the database role ${role} lacks ${someOf(missing)}`,
            advice: migrate,
          },
        ]
      : []),
  ]
}

const NAMED_MAX = 3

/** Names the first few privileges and counts the rest. */
function someOf(privileges: string[]): string {
  const named = privileges.slice(0, NAMED_MAX).join(', ')
  return privileges.length <= NAMED_MAX ? named : `${named} and ${privileges.length - NAMED_MAX} more`
}
