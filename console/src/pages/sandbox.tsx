import { useSignal } from '@preact/signals'
import { open } from '../address.ts'
import { send, type Call } from '../api.ts'
import { inWords } from '../format.ts'
import { OUTCOMES, PENDING_DEPOSITS, type Outcome } from '../outcomes.ts'
import { Curl, Failure, Link } from '../parts.tsx'
import type { Profile, Transfer } from '../records.ts'
import { may } from '../session.ts'

/** A sandbox's buttons: money that arrives, and a withdrawal with each outcome. Each is one call of the API. */

const depositTo = (profileId: string, body: object): Call => ({
  method: 'POST',
  path: `/v2/sandbox/profiles/${profileId}/deposit`,
  body,
})

/** A new `ref_id`. Pages without https have no `crypto.randomUUID`. */
const newRefId = () =>
  `console-${[...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('')}`

const withdrawalFrom = (profileId: string, { asset, network, destination }: Outcome): Call => ({
  method: 'POST',
  path: '/v2/transfer/crypto-withdrawals',
  body: {
    profile_id: profileId,
    asset,
    balance_asset: 'USD',
    crypto_network: network,
    amount: '10',
    destination_address: destination,
    ref_id: newRefId(),
  },
})

export function SandboxButtons({ profiles }: { profiles: readonly Profile[] }) {
  const profileId = useSignal('')
  const error = useSignal<unknown>(undefined)
  const made = useSignal<{ call: Call; id: string } | undefined>(undefined)
  const chosen = profileId.value || profiles[0]?.id
  if (chosen === undefined || !may('transfer:write_sandbox_fiat_deposit')) return null
  const run = (call: Call) => {
    error.value = undefined
    void send<{ activity_id: string } | Transfer>(call).then(
      (answer) => (made.value = { call, id: 'id' in answer ? answer.id : answer.activity_id }),
      (reason: unknown) => (error.value = reason),
    )
  }
  const button = (name: string, call: () => Call) => (
    <button key={name} type="button" onClick={() => run(call())}>
      {name}
    </button>
  )
  return (
    <section class="sandbox">
      <h2>Make something happen</h2>
      <label>
        Profile{' '}
        <select value={chosen} onChange={({ currentTarget }) => (profileId.value = currentTarget.value)}>
          {profiles.map(({ id, nickname }) => (
            <option key={id} value={id}>
              {nickname}
            </option>
          ))}
        </select>
      </label>
      <h3>Money arrives</h3>
      <div class="buttons">
        {button('A wire of 100 USD', () => depositTo(chosen, { asset: 'USD', amount: '100.00' }))}
        {button('A deposit of 25 USDP', () =>
          depositTo(chosen, { asset: 'USDP', amount: '25', crypto_network: 'ETHEREUM' }),
        )}
        {PENDING_DEPOSITS.map(({ name, amount }) =>
          button(name, () => depositTo(chosen, { asset: 'USD', amount })),
        )}
      </div>
      <h3>A withdrawal of 10, paid from USD, ends like this</h3>
      <div class="buttons">
        {OUTCOMES.map((outcome) => button(inWords(outcome.name), () => withdrawalFrom(chosen, outcome)))}
      </div>
      <p class="quiet">
        To begin anew, stop the sandbox and run <code>bursar sandbox reset</code>: the service itself cannot
        delete what the ledger has recorded.
      </p>
      <Failure of={error.value} />
      {made.value !== undefined && (
        <div role="status">
          <p>
            Made <Link to={`transfers/${made.value.id}`}>transfer {made.value.id}</Link>{' '}
            <button type="button" onClick={() => open(`transfers/${made.value!.id}`)}>
              Open its story
            </button>
          </p>
          <Curl of={made.value.call} />
        </div>
      )}
    </section>
  )
}
