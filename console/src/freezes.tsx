import { inWords } from './format.ts'
import { useCall, type Loaded } from './load.ts'
import { Curl, Failure, Link, Loading, Status, Time } from './parts.tsx'
import type { Profile } from './records.ts'
import { may } from './session.ts'

/** The freezes of the customer and its profiles. No new payment of a frozen one is signed. Only operators see freezes. */

const freezes = { method: 'GET', path: '/v2/operators/freezes' } as const

export interface Freeze {
  /** Undefined: the whole customer is frozen. */
  profile_id?: string
  reason: string
  detail: string
  created_at: string
}

/** Reads the freezes of the customer and its profiles. */
export const useFreezes = (): Loaded<{ items: Freeze[] }> =>
  useCall<{ items: Freeze[] }>(may('operators:read_freeze') ? freezes : undefined)

/** Says that a record is frozen, since when, why and by whom. */
export const Frozen = ({ reason, detail, since }: { reason: string; detail: string; since: string }) => (
  <>
    <Status of="FROZEN" /> since <Time at={since} /> (
    {reason === 'OPERATOR' ? 'by an operator' : inWords(reason)}): {detail}
  </>
)

/** The freezes of a profile, including those of its whole customer. */
export const FreezesOfProfile = ({ id }: { id: string }) =>
  useFreezes()
    .data.value?.items.filter(({ profile_id }) => profile_id === undefined || profile_id === id)
    .map(({ profile_id, reason, detail, created_at }) => (
      <p key={`${profile_id} ${reason}`} class="failure">
        {profile_id === undefined && 'The whole customer: '}
        <Frozen reason={reason} detail={detail} since={created_at} />
      </p>
    ))

/** All freezes of the customer, for the home page. */
export function FreezesOfCustomer() {
  const { data, error } = useFreezes()
  if (!may('operators:read_freeze')) return null
  return (
    <section class="part">
      <h2>
        Frozen <span class="count">{data.value?.items.length}</span>
      </h2>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value?.items.length === 0 && <p class="quiet">Neither this customer nor a profile is frozen.</p>}
      <ul class="plain">
        {data.value?.items.map(({ profile_id, reason, detail, created_at }) => (
          <li key={`${profile_id} ${reason}`}>
            {profile_id === undefined ? 'The whole customer' : <NameOfProfile id={profile_id} />}{' '}
            <Frozen reason={reason} detail={detail} since={created_at} />
          </li>
        ))}
      </ul>
      <Curl of={freezes} />
    </section>
  )
}

function NameOfProfile({ id }: { id: string }) {
  const { data } = useCall<Profile>(
    may('funding:read_profile') ? { method: 'GET', path: `/v2/profiles/${id}` } : undefined,
  )
  return (
    <>
      Profile <Link to={`profiles/${id}`}>{data.value?.nickname ?? id}</Link>
    </>
  )
}
