import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { open, ROOT } from '../address.ts'
import { Action, useWork } from '../action.tsx'
import { type Call, get, post, put, send } from '../api.ts'
import { inWords } from '../format.ts'
import { useCall } from '../load.ts'
import { OUTCOMES, PENDING_DEPOSITS, type Outcome } from '../outcomes.ts'
import { Curl, Failure, Link, Title } from '../parts.tsx'
import type { Page, Policy, Profile, Transfer } from '../records.ts'
import { askService, may, service } from '../session.ts'
import { NoSuchPage } from './no-such-page.tsx'

/** A sandbox's page. Each of its buttons is one call of the API. */

const SMALL = '10'
/** Above the amount from which the rule of this page requires an approver. */
const LARGE = '60'
const PAID = OUTCOMES[0]!

const depositTo = (profileId: string, body: object): Call =>
  post(`/v2/sandbox/profiles/${profileId}/deposit`, body)

/** A new `ref_id`. Pages without https have no `crypto.randomUUID`. */
const newRefId = () =>
  `console-${[...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('')}`

const withdrawalFrom = (profileId: string, { asset, network, destination }: Outcome, amount: string): Call =>
  post('/v2/transfer/crypto-withdrawals', {
    profile_id: profileId,
    asset,
    balance_asset: 'USD',
    crypto_network: network,
    amount,
    destination_address: destination,
    ref_id: newRefId(),
  })

/** The simulation's hold is named for what it is: it is no approval, and nobody can decide it. */
const nameOf = ({ name }: Outcome) =>
  name === 'PENDING_CUSTOMER_APPROVAL' ? 'Simulated hold' : inWords(name)

const profilesCall = get('/v2/profiles', { order: 'ASC', limit: 100 })

/** The page of a sandbox: money that arrives, a withdrawal with each outcome, an approval to try, and the start over. */
export function SandboxPage() {
  const isSandbox = service.value?.mode === 'sandbox'
  const { data, error } = useCall<Page<Profile>>(isSandbox ? profilesCall : undefined)
  const profileId = useSignal('')
  if (!isSandbox) return <NoSuchPage />
  const profiles = data.value?.items ?? []
  const chosen = profileId.value || profiles[0]?.id
  return (
    <>
      <Title>Sandbox</Title>
      <Failure of={error.value} />
      {chosen !== undefined && may('transfer:write_sandbox_fiat_deposit') && (
        <>
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
          <Buttons profileId={chosen} />
        </>
      )}
      <h2>Start over</h2>
      <BeginAnew />
    </>
  )
}

function Buttons({ profileId }: { profileId: string }) {
  const { error, run } = useWork()
  const made = useSignal<{ call: Call; id: string } | undefined>(undefined)
  const make = async (call: Call) => {
    made.value = undefined
    const answer = await send<{ activity_id: string } | Transfer>(call)
    made.value = { call, id: 'id' in answer ? answer.id : answer.activity_id }
  }
  const button = (name: string, call: () => Call) => (
    <button key={name} type="button" onClick={() => run(() => make(call()))}>
      {name}
    </button>
  )
  return (
    <section class="sandbox">
      <h2>Money arrives</h2>
      <div class="buttons">
        {button('A wire of 100 USD', () => depositTo(profileId, { asset: 'USD', amount: '100.00' }))}
        {button('A deposit of 25 USDP', () =>
          depositTo(profileId, { asset: 'USDP', amount: '25', crypto_network: 'ETHEREUM' }),
        )}
        {PENDING_DEPOSITS.map(({ name, amount }) =>
          button(name, () => depositTo(profileId, { asset: 'USD', amount })),
        )}
      </div>
      <h2>A withdrawal of {SMALL} from the USD balance, by outcome</h2>
      <div class="buttons">
        {OUTCOMES.map((outcome) => button(nameOf(outcome), () => withdrawalFrom(profileId, outcome, SMALL)))}
      </div>
      <h2>An approval</h2>
      <ApprovalRule>
        <div class="buttons">
          {button(`A withdrawal of ${LARGE} that waits for an approver`, () =>
            withdrawalFrom(profileId, PAID, LARGE),
          )}
        </div>
      </ApprovalRule>
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

/** The rule that this page adds to the policy: in front of all others, which stay as they are. */
const RULE = {
  id: 'sandbox-approval',
  description: 'Set by the sandbox page of the console',
  match: { transfer_types: ['CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL'] },
  limit: { amount: '50', asset: 'USD', period_seconds: 0 },
  action: 'APPROVE',
  approvals: 1,
  role: 'APPROVER',
}
const policyCall = get('/v2/policy')

/** The rule with its button, how a person becomes its approver, and what is possible once it is set. */
function ApprovalRule({ children }: { children: ComponentChildren }) {
  const { data, error, again } = useCall<Policy>(may('policy:read_policy') ? policyCall : undefined)
  const policy = data.value
  if (policy === undefined) return <Failure of={error.value} />
  const { version, created_at: _, rules, ...rest } = policy
  const isSet = rules.some(({ id }) => id === RULE.id)
  const others = rules.filter(({ id }) => id !== RULE.id)
  const call: Call = put('/v2/policy', {
    ...rest,
    rules: isSet ? others : [RULE, ...others],
    replaces: version,
  })
  return (
    <>
      <p>
        {isSet
          ? `The policy requires one approver for payments above ${RULE.limit.amount} USD.`
          : `Nothing waits for a person yet: first, a rule requires one approver for payments above ${RULE.limit.amount} USD.`}{' '}
        Another operator adds a passkey on <Link to="sign-in/own">Your sign-in</Link>, and becomes an approver
        by <code>bursar approvers add --passkey</code>. Nobody approves a payment that they have asked for.
      </p>
      {may('policy:write_policy') && (
        <Action
          key={String(isSet)}
          call={call}
          done={again}
          ask={isSet ? 'Take the rule out of the policy?' : 'Add this rule to the policy?'}
        >
          {isSet ? 'Remove the rule' : 'Require an approver'}
        </Action>
      )}
      {isSet && children}
    </>
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
  if (!service.value?.begins_anew || !may('operators:write_operator'))
    return (
      <p class="quiet">
        Stop the sandbox and run <code>bursar sandbox reset</code>.
      </p>
    )
  const reset = async () => {
    const answer = await fetch(`${ROOT}sandbox/reset`, {
      method: 'POST',
      headers: { 'x-bursar-console': 'page' },
    })
    if (answer.status !== 202) throw new Error(((await answer.json()) as { detail: string }).detail)
    await restarted()
    location.assign(ROOT)
    // The button stays as it is until the browser has left the page.
    await new Promise(() => undefined)
  }
  return (
    <Action work={reset} done={() => undefined} ask="Delete everything in this sandbox?" kind="danger">
      Reset the sandbox
    </Action>
  )
}
