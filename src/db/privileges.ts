import type { Queryable } from './database.ts'
import { PRIVILEGES, type TablePrivileges } from './tables.ts'

/** The functions that the service's role may execute: each does, within its own limits, what otherwise only the owner may. */
export const FUNCTIONS: readonly string[] = ['add_payees', 'keep_partitions']

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
 * Compares the grants of a role with `PRIVILEGES` and `FUNCTIONS`, by table and function. An owner, a superuser or a member
 * of another role may do more than its grants: `faultsOfRole` reports that.
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
    const missing = wanted.filter((privilege) => !there.includes(privilege))
    const excess = there.filter((privilege) => !wanted.includes(privilege))
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
      executable.filter((grant) => grant.name === name).map(({ what }) => privilege(name, what)),
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
  const missing = found.flatMap((difference) => difference.missing)
  const granted = found.flatMap((difference) => difference.excess)
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
