import { useSignal } from '@preact/signals'
import { Action } from './action.tsx'
import { get, post } from './api.ts'
import { inWords, readable } from './format.ts'
import { useCall, type Loaded } from './load.ts'
import { Answered, Curl, Failure, Link, Status, Time } from './parts.tsx'
import type { Freeze, Profile } from './records.ts'
import { may } from './session.ts'

/** The freezes of the customer and its profiles. No new payment of a frozen one is signed. Only operators see freezes. */

const freezes = get('/v2/operators/freezes')

export const useFreezes = (): Loaded<{ items: Freeze[] }> =>
  useCall<{ items: Freeze[] }>(may('operators:read_freeze') ? freezes : undefined)

/** Says that a record is frozen, since when and why. */
export const Frozen = ({ reason, detail, since }: { reason: string; detail: string; since: string }) => (
  <>
    <Status of="FROZEN" /> since <Time at={since} /> (
    {reason === 'OPERATOR' ? 'by an operator' : inWords(reason)}): {readable(detail)}
  </>
)

/** A button that ends a freeze. A disabled customer is enabled on the page of customers. */
const EndOfFreeze = ({ of: { profile_id, reason }, again }: { of: Freeze; again: () => void }) =>
  reason === 'DISABLED' ? null : (
    <Action
      scope="operators:end_freeze"
      call={post('/v2/operators/freezes/end', {
        ...(profile_id !== undefined && { profile_id }),
        cause: reason,
      })}
      ask="Is the cause known and gone? Payments that wait are signed again."
      done={again}
    >
      Unfreeze
    </Action>
  )

/** The freezes of a profile with those of its whole customer, or of the customer alone; and a form that freezes it. */
export function Freezes({ profileId, changed }: { profileId?: string; changed?: () => void }) {
  const { data, error, again: readAgain } = useFreezes()
  const isStillSigning = useSignal(false)
  if (!may('operators:read_freeze')) return null
  const found = data.value?.items.filter(
    (freeze) => freeze.profile_id === undefined || freeze.profile_id === profileId,
  )
  const isFrozen = found?.some((freeze) => freeze.profile_id === profileId && freeze.reason === 'OPERATOR')
  const target = profileId === undefined ? 'this customer' : 'this profile'
  const again = () => {
    readAgain()
    changed?.()
  }
  return (
    <>
      <Failure of={error.value} />
      {found?.map((freeze) => (
        <div key={`${freeze.profile_id} ${freeze.reason}`} class="failure">
          {profileId !== undefined && freeze.profile_id === undefined && 'The whole customer: '}
          <Frozen reason={freeze.reason} detail={freeze.detail} since={freeze.created_at} />
          <EndOfFreeze of={freeze} again={again} />
        </div>
      ))}
      {isStillSigning.value && (
        <p class="failure" role="alert">
          A worker is still signing: a payment that it began may still be sent.
        </p>
      )}
      {isFrozen === false && (
        <Action<{ signing_ended: boolean }>
          scope="operators:write_freeze"
          summary={`Freeze ${target}`}
          fields={[{ name: 'reason', label: 'Reason, for other operators', size: 50 }]}
          call={({ reason }) =>
            post('/v2/operators/freezes', {
              ...(profileId !== undefined && { profile_id: profileId }),
              reason,
            })
          }
          ask={`Freeze ${target}? No new payment is signed; deposits are still credited.`}
          kind="danger"
          done={({ signing_ended }) => {
            isStillSigning.value = !signing_ended
            again()
          }}
        >
          Freeze
        </Action>
      )}
    </>
  )
}

export function FreezesOfCustomer() {
  const read = useFreezes()
  if (!may('operators:read_freeze')) return null
  return (
    <section class="part">
      <h2>
        Frozen <span class="count">{read.data.value?.items.length}</span>
      </h2>
      <Answered of={read}>
        {({ items }) => (
          <ul class="plain">
            {items.map(({ profile_id, reason, detail, created_at }) => (
              <li key={`${profile_id} ${reason}`}>
                {profile_id === undefined ? 'The whole customer' : <NameOfProfile id={profile_id} />}{' '}
                <Frozen reason={reason} detail={detail} since={created_at} />
              </li>
            ))}
          </ul>
        )}
      </Answered>
      <Curl of={freezes} />
    </section>
  )
}

function NameOfProfile({ id }: { id: string }) {
  const { data } = useCall<Profile>(may('funding:read_profile') ? get(`/v2/profiles/${id}`) : undefined)
  return (
    <>
      Profile <Link to={`profiles/${id}`}>{data.value?.nickname ?? id}</Link>
    </>
  )
}
