import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { inWords } from '../format.ts'
import { Table, type Column } from '../list.tsx'
import { onEvents } from '../live.ts'
import { useCall, useRecords } from '../load.ts'
import { Actor, Amount, Curl, Failure, Id, Link, Loading, Status, Time, Title } from '../parts.tsx'
import type { Approval, DestinationAddress, Page, Profile } from '../records.ts'
import { isPayment, readStatement, type SignedPayment, type Statement, type ToSign } from '../statement.ts'
import { may } from '../session.ts'
import { ChangeOf, MakeChange } from './approved-change.tsx'
import { TimeLeft } from './approvals.tsx'
import { Decide, useApprovers, type Approver } from './decide.tsx'
import { Fact } from './transfer.tsx'

/** One approval: what is decided, as the text to sign says it; who has signed; and the person's own decision. */

interface ReadApproval {
  approval: Approval
  to_sign: ToSign
}
const callOf = (id: string) => ({ method: 'GET', path: `/v2/approvals/${id}` }) as const

export function ApprovalPage({ id }: { id: string }) {
  const { data, error, again } = useCall<ReadApproval>(callOf(id))
  useEffect(
    () =>
      onEvents((event) => {
        if (event === undefined || event.object.id === id) again(true)
      }),
    [id],
  )
  return (
    <>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value !== undefined && <Body id={id} read={data.value} again={again} />}
      <Curl of={callOf(id)} />
    </>
  )
}

/** Reads the text to sign. Nothing is shown as decided, and nothing can be signed, where the text is not what is shown. */
function useStatement(id: string, { approval, to_sign }: ReadApproval) {
  const statement = useSignal<Statement | undefined>(undefined)
  const refused = useSignal<unknown>(undefined)
  useEffect(() => {
    let isCurrent = true
    void readStatement(id, approval, to_sign).then(
      (read) => {
        if (isCurrent) statement.value = read
      },
      (reason: unknown) => {
        if (isCurrent) refused.value = reason
      },
    )
    return () => void (isCurrent = false)
  }, [])
  return { statement: statement.value, refused: refused.value }
}

function Body({ id, read, again }: { id: string; read: ReadApproval; again: () => void }) {
  const { approval } = read
  const { approvers, error } = useApprovers()
  const what = approval.subject.type === 'transfer' ? 'Approval of a payment' : 'Approval of a change'
  return (
    <>
      <header class="of-record">
        <Title of={`${what} ${id}`}>{what}</Title>
        <Status of={approval.status} /> <Id of={id} whole />
      </header>
      {/* Another answer is another text: it is read anew. */}
      <ToDecide key={JSON.stringify(read)} {...{ id, read, again }} approvers={approvers} />
      <Failure of={error} />
      <Signed of={approval} approvers={approvers} />
      <MakeChange of={approval} again={again} />
    </>
  )
}

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
  const { statement, refused } = useStatement(id, read)
  if (statement === undefined) return refused === undefined ? <Loading /> : <Failure of={refused} />
  const { approval, to_sign } = read
  const { subject } = statement
  return (
    <>
      {isPayment(subject) ? (
        <Payment of={subject} />
      ) : (
        <>
          <ChangeOf approval={approval} />
          <p class="quiet">
            The digest that is signed matches what is shown: <code class="whole">{subject.digest}</code>
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
      {approvers !== undefined && <Decide {...{ approval, statement, again, approvers }} toSign={to_sign} />}
    </>
  )
}

/** The payment that is signed. */
function Payment({
  of: { id, asset, amount, network, destination, memo, profile_id },
}: {
  of: SignedPayment
}) {
  const profile = useRecords<Profile>('/v2/profiles', 'funding:read_profile', [profile_id]).get(profile_id)
  return (
    <>
      <div class="of-record">
        <p class="figure">
          <Amount amount={amount} asset={asset} />
        </p>
      </div>
      <dl class="facts">
        <Fact name="Network">{inWords(network)}</Fact>
        <Fact name="To">
          {typeof destination === 'string' ? (
            <>
              <Id of={destination} whole /> <Known network={network} address={destination} />
            </>
          ) : (
            <pre>{JSON.stringify(destination, null, 2)}</pre>
          )}
        </Fact>
        {memo !== null && <Fact name="Memo">{memo}</Fact>}
        <Fact name="From">
          {profile?.nickname} <Id of={profile_id} to={`profiles/${profile_id}`} />
        </Fact>
        <Fact name="Payment">
          <Id of={id} to={`transfers/${id}`} />
        </Fact>
      </dl>
    </>
  )
}

/** Whether the address book knows an address, and since when. */
function Known({ network, address }: { network: string; address: string }) {
  const { data } = useCall<Page<DestinationAddress>>(
    may('transfer:read_crypto_destination_address')
      ? {
          method: 'GET',
          path: '/v2/transfer/crypto-destination-addresses',
          query: { addresses: [address], crypto_networks: [network], order: 'ASC' },
        }
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
  <dl class="facts">
    <Fact name="Asked by">
      {inWords(of.initiator.type)}{' '}
      <Actor of={approval.initiator.id === of.initiator.id ? approval.initiator : of.initiator} />
    </Fact>
    <Fact name="Needs">
      {of.required} of the role {of.role}
    </Fact>
    <Fact name="Rule">
      {of.rule_id !== null && <code>{of.rule_id}</code>}{' '}
      <Link to="policy">version {of.policy_version} of the policy</Link>
    </Fact>
    <Fact name="Until">
      <Time at={of.deadline} /> (<TimeLeft until={of.deadline} />)
    </Fact>
  </dl>
)

type Decision = Approval['decisions'][number]

const columnsOf = (approvers: readonly Approver[] | undefined): Column<Decision>[] => [
  {
    name: 'Decision',
    cell: ({ decision }) => <Status of={decision === 'APPROVE' ? 'APPROVED' : 'REJECTED'} />,
  },
  {
    name: 'By',
    cell: ({ approver_id: id }) => {
      const name = approvers?.find((one) => one.id === id)?.name
      return <Actor of={{ id, name }} />
    },
  },
  { name: 'At', cell: ({ created_at }) => <Time at={created_at} /> },
]

const Signed = ({
  of: { decisions, approvals, required },
  approvers,
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
    {decisions.length === 0 ? (
      <p class="quiet">Nobody has signed yet.</p>
    ) : (
      <Table
        name="Decisions"
        items={decisions}
        columns={columnsOf(approvers)}
        keyOf={({ approver_id, decision }) => approver_id + decision}
      />
    )}
  </section>
)
