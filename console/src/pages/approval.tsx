import { effect, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get } from '../api.ts'
import { inWords } from '../format.ts'
import { isReading, useCall, useEventsOf, useProfiles } from '../load.ts'
import { Actor, Amount, Answered, Curl, Facts, Failure, Id, Link } from '../parts.tsx'
import { Loading, Members, Status, Time, Title } from '../parts.tsx'
import type { Approval, Approver, DestinationAddress, Page, ReadApproval } from '../records.ts'
import { RuleInForce } from '../policy.tsx'
import { isPayment, readStatement, type SignedPayment, type Statement } from '../statement.ts'
import { may } from '../session.ts'
import { ChangeOf, MakeChange } from './approved-change.tsx'
import { TimeLeft } from './approvals.tsx'
import { Decide, useApprovers } from './decide.tsx'

/** One approval: what is decided, as the text to sign says it; who has signed; and the person's own decision. */

const callOf = (id: string) => get(`/v2/approvals/${id}`)

export function ApprovalPage({ id }: { id: string }) {
  const reading = useCall<ReadApproval>(callOf(id))
  const { again } = reading
  useEventsOf(id, again)
  const approvers = useApprovers()
  const known = approvers.data.value?.items
  return (
    <>
      <Failure of={approvers.error.value} />
      <Answered of={reading}>
        {(read) => (
          <>
            <header class="of-record">
              <Title of={`Approval ${id}`}>Approval</Title>
              <Status of={read.approval.status} /> <Id of={id} whole />
            </header>
            {/* Another answer has another text: it is read anew. */}
            <ToDecide key={JSON.stringify(read)} approvers={known} {...{ id, read, again }} />
            <Signed of={read.approval} approvers={known} />
            <MakeChange of={read.approval} again={again} />
          </>
        )}
      </Answered>
      <Curl of={callOf(id)} />
    </>
  )
}

/** What is decided, read from the text to sign. Nothing can be signed where the text is not what the answer shows. */
function ToDecide({
  id,
  read,
  again,
  approvers,
}: {
  id: string
  read: ReadApproval
  again: () => void
  approvers: readonly Approver[] | undefined
}) {
  const { approval, to_sign } = read
  const found = useSignal<{ statement?: Statement; refused?: unknown }>({})
  // Nobody decides before all is shown, nor on buttons that what is read later would move.
  const isShown = useSignal(false)
  useEffect(() => {
    void readStatement(id, approval, to_sign).then(
      (statement) => (found.value = { statement }),
      (refused: unknown) => (found.value = { refused }),
    )
  }, [])
  const { statement, refused } = found.value
  useEffect(() => statement && effect(() => void (isShown.value ||= !isReading.value)), [statement])
  if (statement === undefined) return refused === undefined ? <Loading /> : <Failure of={refused} />
  const { subject } = statement
  return (
    <>
      {isPayment(subject) ? (
        <Payment of={subject} />
      ) : (
        <>
          <ChangeOf approval={approval} />
          <p class="quiet whole">
            The digest that is signed matches what is shown: <code>{subject.digest}</code>
          </p>
        </>
      )}
      <Terms of={statement} approval={approval} />
      <details>
        <summary>The text that is signed</summary>
        <pre class="diff" tabIndex={0}>
          {JSON.stringify(statement, null, 2)}
        </pre>
      </details>
      {isShown.value && approvers !== undefined && (
        <Decide {...{ approval, statement, again, approvers }} toSign={to_sign} />
      )}
    </>
  )
}

function Payment({
  of: { id, asset, amount, network, destination, memo, profile_id },
}: {
  of: SignedPayment
}) {
  const profile = useProfiles([profile_id]).get(profile_id)
  return (
    <>
      <div class="of-record">
        <p class="figure">
          <Amount amount={amount} asset={asset} />
        </p>
      </div>
      <Facts
        of={[
          ['Network', inWords(network)],
          [
            'To',
            typeof destination === 'string' ? (
              <>
                <Id of={destination} whole /> <Known network={network} address={destination} />
              </>
            ) : (
              <Members of={destination} whole />
            ),
          ],
          ['Memo', memo],
          [
            'From',
            <>
              {profile?.nickname} <Id of={profile_id} to={`profiles/${profile_id}`} />
            </>,
          ],
          ['Payment', <Id of={id} to={`transfers/${id}`} />],
        ]}
      />
    </>
  )
}

/** Whether the address book knows an address, and since when. */
function Known({ network, address }: { network: string; address: string }) {
  const { data } = useCall<Page<DestinationAddress>>(
    may('transfer:read_crypto_destination_address')
      ? get('/v2/transfer/crypto-destination-addresses', {
          addresses: [address],
          crypto_networks: [network],
          order: 'ASC',
        })
      : undefined,
  )
  const [known] = data.value?.items ?? []
  if (data.value === undefined) return null
  if (known === undefined)
    return <p class="quiet">New: the address book does not have it, as it is spelled.</p>
  return (
    <p>
      In the address book since <Time at={known.created_at} />: {known.nickname} <Status of={known.status} />
    </p>
  )
}

/** Under which rule it is decided, and until when. */
const Terms = ({ of, approval }: { of: Statement; approval: Approval }) => (
  <Facts
    of={[
      [
        'Asked by',
        <>
          {inWords(of.initiator.type)}{' '}
          <Actor of={approval.initiator.id === of.initiator.id ? approval.initiator : of.initiator} />
        </>,
      ],
      ['Needs', `${of.required} of the role ${of.role}`],
      [
        'Rule',
        <>
          {of.rule_id !== null && <code>{of.rule_id}</code>}{' '}
          <Link to="policy">version {of.policy_version} of the policy</Link>{' '}
          <RuleInForce version={of.policy_version} id={of.rule_id} of={of.subject.id} />
        </>,
      ],
      [
        'Until',
        <>
          <Time at={of.deadline} /> (<TimeLeft until={of.deadline} />)
        </>,
      ],
    ]}
  />
)

const Signed = ({
  of: { decisions, approvals, required },
  approvers = [],
}: {
  of: Approval
  approvers: readonly Approver[] | undefined
}) => (
  <section>
    <h2>
      Signed{' '}
      <span class="count">
        {approvals} of {required}
      </span>
    </h2>
    <ul class="plain" aria-label="Decisions">
      {decisions.map(({ approver_id: id, decision, created_at }) => (
        <li key={id + decision}>
          <Status of={decision === 'APPROVE' ? 'APPROVED' : 'REJECTED'} /> by{' '}
          <Actor of={{ id, name: approvers.find((approver) => approver.id === id)?.name }} />,{' '}
          <Time at={created_at} />
        </li>
      ))}
    </ul>
  </section>
)
