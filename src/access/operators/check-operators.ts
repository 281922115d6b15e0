import { isIP } from 'node:net'
import type { Queryable } from '../../db/database.ts'
import { failed, orElse, warnings, type Finding } from '../../finding.ts'
import type { Settings } from '../../settings.ts'
import { openIdProvider } from './sign-in-with-openid.ts'

/** Finds operators who cannot sign in with these settings, and warns when no operator is an ADMIN. */
export async function checkOperators(db: Queryable, settings: Settings): Promise<Finding[]> {
  const { baseUrl, openidIssuer } = settings
  const { rows } = await db.query<{ count: number; admins: number; passkeys: number; elsewhere: number }>(
    `
    select count(*)::int as count,
           (count(*) filter (where role = 'ADMIN'))::int as admins,
           (count(*) filter (where openid_issuer is not null and openid_issuer is distinct from $1))::int as elsewhere,
           (select count(*)::int from operator_passkeys p
            join operators o on o.id = p.operator_id and o.disabled_at is null
            where p.removed_at is null) as passkeys
    from operators where disabled_at is null`,
    [openidIssuer ?? null],
  )
  const { count, admins, passkeys, elsewhere } = rows[0]!
  const isNamed = baseUrl !== undefined && isIP(new URL(baseUrl).hostname.replaceAll(/[[\]]/g, '')) === 0
  const found = [
    ...faultOfProvider(settings),
    ...warnings(
      [
        count > 0 && admins === 0,
        `none of ${count} operators is an ADMIN`,
        'bursar operator role <id> ADMIN',
      ],
      [
        passkeys > 0 && !isNamed,
        `${passkeys} passkeys cannot sign in: BURSAR_BASE_URL ${baseUrl === undefined ? 'is not set' : 'names an address'}`,
        'set BURSAR_BASE_URL to the host name that they were made for',
      ],
      [
        elsewhere > 0,
        `${elsewhere} operators have accounts at another OpenID provider than BURSAR_OPENID_ISSUER`,
        'set BURSAR_OPENID_ISSUER to their provider, or give them a link: bursar operator link',
      ],
    ),
  ]
  return orElse(found, count === 0 ? 'there are none' : `${count}, of whom ${admins} are ADMIN`)
}

/** The settings error with which the service would not start. */
function faultOfProvider(settings: Settings): Finding[] {
  try {
    openIdProvider(settings, settings.baseUrl ?? 'http://localhost')
    return []
  } catch (error) {
    return [failed((error as Error).message, 'set all of the BURSAR_OPENID_ settings, or none')]
  }
}
