import { useSignal } from '@preact/signals'
import { open } from '../address.ts'
import { send, type Call } from '../api.ts'
import { inWords } from '../format.ts'
import { Curl, Failure, Link } from '../parts.tsx'
import type { Profile, Transfer } from '../records.ts'
import { may } from '../session.ts'

/** A sandbox's buttons: money that arrives, and a withdrawal with each outcome. Each is one call of the API. */

/** Destinations on EVM networks and what the simulated network makes of them (docs/reference/magic-destinations.md). */
const OUTCOMES: Record<string, string> = {
  COMPLETED: '0x52908400098527886E0F7030069857D2E4169EE7',
  INVALID_DESTINATION_ADDRESS: '0x6275727361722073616E64626F78203031000000',
  STALE_FEE_QUOTE: '0x6275727361722073616e64626f78203032000000',
  TRAVEL_RULE_REJECTED: '0x6275727361722073616E64626F78203035000000',
  CUSTOMER_REJECTED: '0x6275727361722073616E64626F78203036000000',
  TRAVEL_RULE_INFO_REQUESTED: '0x6275727361722073616e64626f78203037000000',
  PENDING_CUSTOMER_APPROVAL: '0x6275727361722073616E64626F78203038000000',
  DROPPED_ONCE: '0x6275727361722073616E64626f78203039000000',
  NEVER_CONFIRMS: '0x6275727361722073616E64626F78203130000000',
}

export function SandboxButtons({ profiles }: { profiles: readonly Profile[] }) {
  const profileId = useSignal('')
  const outcome = useSignal('COMPLETED')
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
  const deposit = (body: object) =>
    run({ method: 'POST', path: `/v2/sandbox/profiles/${chosen}/deposit`, body })
  return (
    <section class="sandbox">
      <h2>Make something happen</h2>
      <div class="buttons">
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
        <button type="button" onClick={() => deposit({ asset: 'USD', amount: '100.00' })}>
          A wire of 100 USD
        </button>
        <button
          type="button"
          onClick={() => deposit({ asset: 'USDP', amount: '25', crypto_network: 'ETHEREUM' })}
        >
          A deposit of 25 USDP
        </button>
      </div>
      <div class="buttons">
        <label>
          Outcome{' '}
          <select
            value={outcome.value}
            onChange={({ currentTarget }) => (outcome.value = currentTarget.value)}
          >
            {Object.keys(OUTCOMES).map((name) => (
              <option key={name} value={name}>
                {inWords(name)}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          onClick={() =>
            run({
              method: 'POST',
              path: '/v2/transfer/crypto-withdrawals',
              body: {
                profile_id: chosen,
                asset: 'USDP',
                balance_asset: 'USD',
                crypto_network: 'ETHEREUM',
                amount: '10',
                destination_address: OUTCOMES[outcome.value],
                ref_id: crypto.randomUUID(),
              },
            })
          }
        >
          Withdraw 10 USDP, paid from USD
        </button>
      </div>
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
