import { strict as assert } from 'node:assert'
import { arrayLiteral } from '../../db/array-literal.ts'
import type { Queryable } from '../../db/database.ts'
import { readOfCustomer } from '../../db/shared-transaction.ts'
import { problem } from '../../contract/problems.ts'
import { lockProfiles, selectProfiles } from './profile.ts'
import type { Standing } from './standing.ts'

/** The statuses of an identity's verification, and of an account's `summary_status` (API behaviour, Accounts). */
export const STATUSES = ['PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED'] as const
export type HolderStatus = (typeof STATUSES)[number]

export interface Flags {
  user_disabled: boolean
  admin_disabled: boolean
}

/** Returns an identity's summary_status: DISABLED by either flag, else its verification status. */
export const identitySummary = (identity: Flags & { status: HolderStatus }): HolderStatus =>
  identity.user_disabled || identity.admin_disabled ? 'DISABLED' : identity.status

/**
 * Returns an account's summary_status (API behaviour, Accounts): DISABLED by either of its own flags, else the
 * summary_status of its primary identity.
 */
export const accountSummary = (account: Flags, identity: Flags & { status: HolderStatus }): HolderStatus =>
  account.user_disabled || account.admin_disabled ? 'DISABLED' : identitySummary(identity)

/** The profile whose money a movement takes, with the account and identity that the request names. */
export interface Holder {
  profile_id: string
  account_id?: string | undefined
  identity_id?: string | undefined
  /** The prefix of account_id and identity_id in the request. */
  prefix?: 'from_' | undefined
  /**
   * The money stays with the customer. It may leave a deactivated profile, because late deposits would otherwise be
   * stuck there.
   */
  staysWithCustomer?: true
}

type NamedHolder = Pick<Holder, 'account_id' | 'identity_id'>

/** What was read with the locked balances of these profiles. */
type Locked = Pick<Standing, 'frozen' | 'deactivated' | 'accounts'> & { profileIds: ReadonlySet<string> }

/** The holders of some movements: their profiles, accounts and identities, read in the movements' own transaction. */
export class Holders {
  /** Each profile that exists, with its account's id. */
  #profiles: ReadonlyMap<string, string | null>
  #standing: Statuses
  #customerId: string
  #frozen: ReadonlySet<string>
  #deactivated: ReadonlySet<string>

  private constructor(
    customerId: string,
    { frozen, deactivated }: Pick<Standing, 'frozen' | 'deactivated'>,
    profiles: ReadonlyMap<string, string | null>,
    standing: Statuses,
  ) {
    this.#customerId = customerId
    this.#frozen = frozen
    this.#deactivated = deactivated
    this.#profiles = profiles
    this.#standing = standing
  }

  /**
   * Reads which profiles exist, and the status of the accounts and identities of holders and receivers. A locked balance
   * proves that its profile exists, and a deactivation waits for it. Beside `locked` ones, each other profile is locked.
   * Without them, each is merely looked up.
   */
  static async read(
    db: Queryable,
    customerId: string,
    {
      profileIds,
      holders,
      receivers = [],
      locked,
    }: { profileIds: string[]; holders: Holder[]; receivers?: NamedHolder[]; locked?: Locked },
  ): Promise<Holders> {
    const unproven = [...new Set(profileIds.filter((id) => locked?.profileIds.has(id) !== true))]
    const others = await (locked === undefined ? selectProfiles : lockProfiles)(db, customerId, unproven)
    const profiles = new Map<string, string | null>()
    for (const id of locked?.profileIds ?? []) profiles.set(id, locked!.accounts.get(id) ?? null)
    const ended = new Set(locked?.deactivated)
    for (const { id, account_id, deactivated_at } of others.values()) {
      profiles.set(id, account_id)
      if (deactivated_at !== null) ended.add(id)
    }
    const accountIds = holders.flatMap(({ profile_id }) => profiles.get(profile_id) ?? [])
    const named = receivers.length === 0 ? holders : [...holders, ...receivers]
    const standing = await readStanding(db, customerId, accountIds, named)
    const frozen = locked?.frozen ?? new Set()
    return new Holders(customerId, { frozen, deactivated: ended }, profiles, standing)
  }

  /** Throws not-found for a missing profile, disabled for a deactivated profile, which receives no movement. */
  requireOpen(profileId: string): void {
    if (!this.#profiles.has(profileId)) throw problem.notFound('profile', profileId)
    if (this.#deactivated.has(profileId)) throw problem.deactivated(profileId)
  }

  /**
   * Throws, in this order: not-found for a missing profile, account or identity; bad-request for an account and an identity
   * that do not belong together; disabled where the customer or profile is frozen, the profile is deactivated, or the
   * account, the profile's account or the identity is DISABLED; identity-verification-required where an identity is not
   * APPROVED.
   */
  requireMayWithdraw({ profile_id, account_id, identity_id, prefix, staysWithCustomer }: Holder): void {
    const profileAccount = this.#profiles.get(profile_id)
    if (profileAccount === undefined) throw problem.notFound('profile', profile_id)
    requireNamed(this.#standing, { account_id, identity_id }, prefix)
    this.#requireNotFrozen(profile_id)
    if (staysWithCustomer === undefined && this.#deactivated.has(profile_id))
      throw problem.deactivated(profile_id)
    requireStanding(this.#standing, profileAccount, { account_id, identity_id }, prefix)
  }

  /** Throws the same refusals for incoming money, except for freezes and for a deactivated profile. */
  requireMayDeposit({ profile_id, account_id, identity_id }: Holder): void {
    const profileAccount = this.#profiles.get(profile_id)
    if (profileAccount === undefined) throw problem.notFound('profile', profile_id)
    requireNamed(this.#standing, { account_id, identity_id })
    requireStanding(this.#standing, profileAccount, { account_id, identity_id })
  }

  /** Returns the identities that a movement pays for: the named one, and those of its account and its profile's account. */
  identitiesOf({ profile_id, account_id, identity_id }: Holder): string[] {
    const accounts = [account_id, this.#profiles.get(profile_id) ?? undefined]
    const owners = accounts.map((id) =>
      id === undefined ? undefined : accountIn(this.#standing, id)?.identity_id,
    )
    return [...new Set([identity_id, ...owners].filter((id) => id !== undefined))]
  }

  /**
   * Throws not-found for a missing account or identity of a receiver, and bad-request if they do not belong together.
   * As with deposits, their status does not matter: the money does not leave the platform.
   */
  requireReceiver(named: NamedHolder): void {
    requireNamed(this.#standing, named, 'to_')
  }

  /** Whether the profile or its customer is frozen, so that no money may leave the profile. */
  isFrozen(profileId: string): boolean {
    return this.#frozen.has(this.#customerId) || this.#frozen.has(profileId)
  }

  #requireNotFrozen(profileId: string): void {
    if (!this.isFrozen(profileId)) return
    if (this.#frozen.has(this.#customerId)) throw problem.disabled('customer', this.#customerId, 'FROZEN')
    throw problem.disabled('profile', profileId, 'FROZEN')
  }
}

/** Throws disabled or identity-verification-required for the named holders and the profile's account. */
function requireStanding(
  standing: Statuses,
  profileAccount: string | null,
  { account_id, identity_id }: NamedHolder,
  prefix: '' | 'from_' = '',
): void {
  for (const [ref_path, id] of [
    [`${prefix}account_id`, account_id],
    ['profile_id', profileAccount],
  ] as const) {
    if (id == null) continue
    const account = accountIn(standing, id)
    assert(account !== undefined, 'a movement must name its holder: only the status of named holders is read')
    const { summary } = standing.get(id)!
    if (summary === 'DISABLED') throw problem.disabled('account', id, 'DISABLED')
    requireApproved(ref_path, account.identity_id, summary)
  }
  if (identity_id === undefined) return
  const status = standing.get(identity_id)!.summary
  if (status === 'DISABLED') throw problem.disabled('identity', identity_id, status)
  requireApproved(`${prefix}identity_id`, identity_id, status)
}

function requireApproved(
  ref_path: 'profile_id' | `${'' | 'from_'}${'identity_id' | 'account_id'}`,
  identity_id: string,
  current_status: HolderStatus,
): void {
  if (current_status !== 'APPROVED')
    throw problem.identityVerificationRequired({ ref_path, identity_id, current_status })
}

/** Requires that the named account and identity exist (not-found) and belong together (bad-request). */
export async function requireHolders(db: Queryable, customerId: string, named: NamedHolder): Promise<void> {
  requireNamed(await readStanding(db, customerId, [], [named]), named)
}

/** Requires that the named account and identity exist, belong together and are APPROVED, as a withdrawal does. */
export async function requireApprovedHolders(
  db: Queryable,
  customerId: string,
  named: NamedHolder,
): Promise<void> {
  const standing = await readStanding(db, customerId, [], [named])
  requireNamed(standing, named)
  requireStanding(standing, null, named)
}

/** Throws as `Holders.requireMayDeposit` and `requireOpen` do, for a record that is created outside the ledger. */
export async function requireMayDeposit(db: Queryable, customerId: string, holder: Holder): Promise<void> {
  const holders = await Holders.read(db, customerId, { profileIds: [holder.profile_id], holders: [holder] })
  holders.requireMayDeposit(holder)
  holders.requireOpen(holder.profile_id)
}

function requireNamed(
  standing: Statuses,
  { account_id, identity_id }: NamedHolder,
  prefix: '' | 'from_' | 'to_' = '',
): void {
  const account = account_id === undefined ? undefined : accountIn(standing, account_id)
  if (account_id !== undefined && account === undefined) throw problem.notFound('account', account_id)
  if (identity_id === undefined) return
  if (standing.get(identity_id)?.account !== null) throw problem.notFound('identity', identity_id)
  if (account !== undefined && account.identity_id !== identity_id && !account.members.includes(identity_id))
    throw problem.badRequest(
      `${prefix}account_id ${account_id} does not belong to ${prefix}identity_id ${identity_id}: the identity must own the account or be a member of it`,
      `${prefix}account_id`,
      `${prefix}identity_id`,
    )
}

interface StandingRow {
  id: string
  /** The account's own flags, its identity and its members among the requested identities; null for an identity. */
  account: (Flags & { identity_id: string; members: string[] }) | null
  identity: Flags & { status: HolderStatus }
}

/** The status of accounts and identities, by id. */
type Statuses = ReadonlyMap<string, Pick<StandingRow, 'account'> & { summary: HolderStatus }>

const accountIn = (standing: Statuses, id: string) => standing.get(id)?.account ?? undefined

async function readStanding(
  db: Queryable,
  customerId: string,
  accountIds: string[],
  named: NamedHolder[],
): Promise<Statuses> {
  const accounts = [...new Set([...accountIds, ...named.flatMap(({ account_id }) => account_id ?? [])])]
  const identities = [...new Set(named.flatMap(({ identity_id }) => identity_id ?? []))]
  if (accounts.length === 0 && identities.length === 0) return new Map()
  const rows = await readOfCustomer<StandingRow>(db, {
    name: 'standing of holders',
    isUnnamed: true,
    text: `
    select a.id,
           json_build_object(
             'user_disabled', a.user_disabled, 'admin_disabled', a.admin_disabled, 'identity_id', a.identity_id,
             'members', array(
               select m.identity_id from account_members m
               where m.customer_id = $1 and m.account_id = a.id and m.identity_id = any ($3::uuid[])
                 and m.removed_at is null
             )
           ) as account,
           json_build_object('user_disabled', i.user_disabled, 'admin_disabled', i.admin_disabled,
                             'status', i.status) as identity
    from accounts a
    join identities i on i.customer_id = $1 and i.id = a.identity_id
    where a.customer_id = $1 and a.id = any ($2::uuid[])
    union all
    select i.id, null,
           json_build_object('user_disabled', i.user_disabled, 'admin_disabled', i.admin_disabled,
                             'status', i.status)
    from identities i
    where i.customer_id = $1 and i.id = any ($3::uuid[])`,
    values: [customerId, arrayLiteral(accounts), arrayLiteral(identities)],
  })
  return new Map(
    rows.map(({ id, account, identity }) => {
      const summary = account === null ? identitySummary(identity) : accountSummary(account, identity)
      return [id, { account, summary }]
    }),
  )
}
