import { Type } from 'typebox'
import { transaction, type Transaction } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import {
  Profile,
  PROFILE_COLUMNS,
  profileToWire,
  useOfProfile,
  type ProfileRow,
} from '../../money/records/profile.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const deactivateProfile = operation({
  method: 'PUT',
  url: '/v2/profiles/:id/deactivate',
  scope: 'funding:write_profile',
  tag: 'Profiles',
  summary: 'Deactivate Profile',
  description:
    'Deactivates a NORMAL profile whose balances are 0 and that nothing uses. It takes no withdrawals, new addresses, instructions, rules or transfers to it. Late deposits are still credited, and an internal transfer takes them out. A repeat changes nothing.',
  params: Type.Object({ id: Uuid('Profile id.') }),
  // The demo's profile is a default profile, so the example shows the refusal.
  example: { params: { id: EXAMPLE.profile_id } },
  reply: Profile,
  problems: ['not-found'],
  run: ({ params: { id }, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      // This lock makes other deactivations wait, and new addresses, instructions, rules and balances (`lockProfiles`).
      const { rows } = await tx.query<ProfileRow>(
        `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and id = $2 for no key update`,
        [customerId, id],
      )
      const [known] = rows
      if (known === undefined) throw problem.notFound('profile', id)
      if (known.deactivated_at !== null) return profileToWire(known)
      if (known.type === 'DEFAULT')
        throw problem.badRequest(`profile ${id} is the DEFAULT profile, which cannot be deactivated`)
      const use = (await holdingOf(tx, customerId, id)) ?? (await useOfProfile(tx, customerId, id))
      if (use !== undefined) throw problem.badRequest(`profile ${id} cannot be deactivated: ${use}`)
      const { rows: changed } = await tx.query<ProfileRow>(
        `
        update profiles set deactivated_at = (select clock_timestamp())
        where customer_id = $1 and id = $2
        returning ${PROFILE_COLUMNS}`,
        [customerId, id],
      )
      await recordNow(tx, customerId, audited(origin, 'profile.deactivate', id))
      return profileToWire(changed[0]!)
    }),
})

/**
 * Locks the profile's balances, so that movements wait and then find the profile deactivated. Returns a description
 * of a balance that is not 0.
 */
async function holdingOf(tx: Transaction, customerId: string, id: string): Promise<string | undefined> {
  const balances =
    'select asset, available from balances where customer_id = $1 and profile_id = $2 order by asset'
  await tx.query(`${balances} for update`, [customerId, id])
  // A movement that the lock waited for may have added a balance, which that statement does not see.
  const { rows } = await tx.query<{ asset: string; available: string }>(balances, [customerId, id])
  const held = rows.find(({ available }) => /[1-9]/.test(available))
  return held && `it holds ${held.asset}; move it to another profile first`
}
