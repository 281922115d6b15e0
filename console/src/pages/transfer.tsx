import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { get, post } from '../api.ts'
import { after, inWords } from '../format.ts'
import { useCall, useEventsOf, useEvery } from '../load.ts'
import { OnNetwork } from '../on-network.tsx'
import { Amount, Answered, Curl, Facts, Id, Link, Status, Time, Title } from '../parts.tsx'
import type { Network, Page, Profile, Transfer, TransferHistory, Verification } from '../records.ts'
import { Usd } from '../prices.tsx'
import { may } from '../session.ts'
import { sumOfUsd } from '../usd.ts'
import { FeeComparison } from './fees.tsx'
import { linesOf, type Line } from './story-lines.tsx'
import { stateOf, textForCustomer, usualOf } from './transfer-state.ts'
import { BalanceChange } from './transfers.tsx'

/** One transfer as a story on a time line. Each line says which record proves it. */

const callOf = (id: string) => get(`/v2/transfer/transfers/${id}/history`)
const verificationOf = (id: string) => get(`/v2/transfer/transfers/${id}/verification`)

/** How often a pending transfer is read again: a new hash or a new reason to wait makes no event. */
const REFRESH_MS = 2_000

export function TransferPage({ id }: { id: string }) {
  const read = useCall<TransferHistory>(callOf(id))
  const { data, again } = read
  useEventsOf(id, again)
  const isPending = data.value?.transfer.status === 'PENDING'
  useEvery(isPending ? REFRESH_MS : undefined, () => again(true))
  return (
    <>
      <Answered of={read}>{(history) => <Story history={history} again={again} />}</Answered>
      <Curl of={callOf(id)} />
    </>
  )
}

function Story({ history, again }: { history: TransferHistory; again: () => void }) {
  const { transfer } = history
  return (
    <>
      <Head history={history} again={again} />
      <Members history={history} />
      {history.fees !== undefined && <FeeComparison history={history} fees={history.fees} />}
      <h2>What happened</h2>
      <ol class="story" aria-live="polite">
        {linesOf(history).map((line) => (
          <StoryLine key={line.key} line={line} start={transfer.created_at} />
        ))}
      </ol>
      <Verify id={transfer.id} />
    </>
  )
}

function Head({ history, again }: { history: TransferHistory; again: () => void }) {
  const { transfer, transactions, waiting } = history
  const { id, type, status } = transfer
  const writes =
    type === 'CRYPTO_WITHDRAWAL'
      ? may('transfer:write_crypto_withdrawal')
      : type === 'WIRE_WITHDRAWAL' && may('transfer:write_fiat_withdrawal')
  // A signed payment may be paid already. A wire has no transaction: it may be paid once a person has taken it.
  const isSigned = transactions.length > 0 || waiting?.code === 'WIRE_TAKEN'
  const cancel = post(`/v2/transfer/transfers/${id}/cancel`)
  return (
    <header class="of-record">
      <Title of={`${inWords(type)} ${id}`}>{inWords(type)}</Title>
      <p class="figure">
        <BalanceChange of={transfer} /> <Status of={status} />
      </p>
      <Id of={id} whole />
      <State history={history} />
      {status === 'PENDING' && isSigned && (
        <p class="quiet">It is signed and may be paid already, so it cannot be cancelled.</p>
      )}
      {status === 'PENDING' && !isSigned && writes && (
        <Action call={cancel} done={again} ask="Cancel it, and give the money back?">
          Cancel and refund
        </Action>
      )}
    </header>
  )
}

const networksCall = get('/v2/networks')
/** The latest completed transfers of a kind: what is usual comes from those on the same network. */
const completedOf = (type: string) =>
  get('/v2/transfer/transfers', { type, statuses: ['COMPLETED'], limit: 100 })

/** Where the transfer is, in words, and the same as a text for the customer. */
function State({ history }: { history: TransferHistory }) {
  const { type, status, crypto_network } = history.transfer
  const isPending = status === 'PENDING'
  const networks = useCall<{ items: Network[] }>(
    isPending && may('funding:read_profile') ? networksCall : undefined,
  ).data.value?.items
  const completed = useCall<Page<Transfer>>(isPending ? completedOf(type) : undefined).data.value?.items
  const copied = useSignal('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(textForCustomer(history))
      copied.value = 'Copied.'
    } catch {
      copied.value = 'The browser did not let the page copy it.'
    }
  }
  return (
    <>
      <p class={status === 'FAILED' ? 'state failure' : 'state'}>
        {stateOf(history, {
          now: Date.now(),
          network: networks?.find((network) => network.crypto_network === crypto_network),
          usual: usualOf(completed ?? [], history.transfer),
        })}
      </p>
      <p>
        <button type="button" onClick={() => void copy()}>
          Copy for the customer
        </button>{' '}
        {history.waiting?.code.startsWith('WIRE_') && <Link to="wires">Wires</Link>}{' '}
        <small role="status">{copied.value}</small>
      </p>
    </>
  )
}

function Members({ history: { transfer, fees } }: { history: TransferHistory }) {
  const { asset, amount, fee, crypto_network, destination_address, crypto_tx_hash, ref_id, memo } = transfer
  const { notional_value, profile_id, bank_reference } = transfer
  const profile = useCall<Profile>(
    may('funding:read_profile') ? get(`/v2/profiles/${profile_id}`) : undefined,
  ).data.value
  return (
    <Facts
      of={[
        ['Amount', <Amount amount={amount} asset={asset} />],
        ['Value when made', notional_value && <Usd value={sumOfUsd([notional_value])} />],
        ['Fee', fees === undefined && <Amount amount={fee} asset={asset} />],
        ['Network', crypto_network && inWords(crypto_network)],
        [
          'To',
          destination_address && (
            <OnNetwork of={destination_address} kind="address" network={crypto_network} />
          ),
        ],
        [
          'Transaction',
          crypto_tx_hash && <OnNetwork of={crypto_tx_hash} kind="hash" network={crypto_network} />,
        ],
        ["Bank's reference", bank_reference && <Id of={bank_reference} whole />],
        ['ref_id', ref_id && <code>{ref_id}</code>],
        ['Memo', memo],
        [
          'Profile',
          <>
            {profile !== undefined && <Link to={`profiles/${profile_id}`}>{profile.nickname}</Link>}{' '}
            <Id of={profile_id} to={profile === undefined ? `profiles/${profile_id}` : undefined} />
          </>,
        ],
      ]}
    />
  )
}

function StoryLine({ line: { at, title, kind, proof, body }, start }: { line: Line; start: string }) {
  return (
    <li class={kind}>
      <div class="when">{at === undefined ? 'now' : <Time at={at} precise />}</div>
      <div class="what">
        <p class="title">
          {title}
          {at !== undefined && at !== start && <span class="since">{after(start, at)}</span>}
        </p>
        {body}
        <p class="proof">{proof}</p>
      </div>
    </li>
  )
}

const CHECKS: Record<string, string> = {
  SUMS_TO_ZERO: 'The entries sum to zero',
  BALANCES_FOLLOW: 'Each balance follows from the one before it',
  POSTINGS_OF_STATUS: 'The postings are those of the status',
  AUDIT_CHAIN: 'The audit log has them as they were written',
}

/** A button that verifies the entries again, and the result. */
function Verify({ id }: { id: string }) {
  const found = useSignal<Verification | undefined>(undefined)
  return (
    <section class="verify">
      <h2>Proof</h2>
      <Action<Verification> call={verificationOf(id)} done={(answer) => (found.value = answer)} kind="main">
        Verify these entries again
      </Action>
      <div role="status">
        {found.value !== undefined && (
          <ul class="checks">
            {found.value.checks.map(({ check, holds, detail }) => (
              <li key={check} class={holds ? 'good' : 'bad'}>
                <strong>{CHECKS[check] ?? check}</strong> <Status of={holds ? 'HOLDS' : 'FAILED'} />
                <p>{detail}</p>
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  )
}
