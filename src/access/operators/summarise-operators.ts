import type { Queryable } from '../../db/database.ts'

/** The operators that are not disabled, and how they can sign in. */
export interface OperatorSummary {
  operators: number
  admins: number
  /** Passkeys of these operators. */
  passkeys: number
  /** Those with an account at another OpenID provider than the one of the settings. */
  elsewhere: number
}

/** Counts the operators for `bursar doctor`. `openidIssuer` is that of the settings; undefined where there is none. */
export async function summariseOperators(
  db: Queryable,
  openidIssuer: string | undefined,
): Promise<OperatorSummary> {
  const { rows } = await db.query<OperatorSummary>(
    `
    select count(*)::int as operators,
           (count(*) filter (where role = 'ADMIN'))::int as admins,
           (count(*) filter (where openid_issuer is not null and openid_issuer is distinct from $1))::int as elsewhere,
           (select count(*)::int from operator_passkeys p
            join operators o on o.id = p.operator_id and o.disabled_at is null
            where p.removed_at is null) as passkeys
    from operators where disabled_at is null`,
    [openidIssuer ?? null],
  )
  return rows[0]!
}
