import { useSignal } from '@preact/signals'
import { open, ROOT } from '../address.ts'
import { AskedButton } from '../action.tsx'
import { send, type Call } from '../api.ts'
import { inWords } from '../format.ts'
import { OUTCOMES, PENDING_DEPOSITS, type Outcome } from '../outcomes.ts'
import { Curl, Failure, Link } from '../parts.tsx'
import type { Profile, Transfer } from '../records.ts'
import { askService, may, service } from '../session.ts'

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
    made.value = undefined
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
      <h3>A withdrawal of 10 from the USD balance, by outcome</h3>
      <div class="buttons">
        {OUTCOMES.map((outcome) => button(inWords(outcome.name), () => withdrawalFrom(chosen, outcome)))}
      </div>
      <BeginAnew />
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

const RESTART_MS_MAX = 60_000
const LOOK_MS = 500

/** Waits until the service runs again with its demo. The emptied sandbox no longer knows this session. */
async function restarted(): Promise<void> {
  const deadline = Date.now() + RESTART_MS_MAX
  while (Date.now() < deadline) {
    await new Promise((later) => setTimeout(later, LOOK_MS))
    const shown = await askService().catch(() => undefined)
    // The demo's customer is made a moment after the start.
    if (shown?.demo === true && shown.session === undefined) return
  }
  throw new Error('The sandbox was not emptied. Its log says why.')
}

/** The button that empties the sandbox. The service stops for it, drops its tables and starts with a new demo. */
function BeginAnew() {
  const busy = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const run = async () => {
    busy.value = true
    error.value = undefined
    try {
      const answer = await fetch(`${ROOT}sandbox/reset`, {
        method: 'POST',
        headers: { 'x-bursar-console': 'page' },
      })
      if (answer.status !== 202) throw new Error(((await answer.json()) as { detail: string }).detail)
      await restarted()
      location.assign(ROOT)
    } catch (reason) {
      error.value = reason
      busy.value = false
    }
  }
  return (
    <>
      <h3>Start over</h3>
      {service.value?.begins_anew && may('operators:write_operator') ? (
        <div class="action">
          <AskedButton
            ask="Delete everything in this sandbox?"
            kind="danger"
            disabled={busy.value}
            run={() => void run()}
          >
            {busy.value ? 'Resetting the sandbox…' : 'Reset the sandbox'}
          </AskedButton>
          <Failure of={error.value} />
        </div>
      ) : (
        <p class="quiet">
          Stop the sandbox and run <code>bursar sandbox reset</code>.
        </p>
      )}
    </>
  )
}
