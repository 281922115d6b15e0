import { Action } from '../action.tsx'
import { get, post } from '../api.ts'
import { inWords } from '../format.ts'
import { Choice, filterOf, TextFilter, useList, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Curl, Id, Members, Name, Status, Time, Title } from '../parts.tsx'
import { nameOfParty, type Account, type Identity } from '../records.ts'
import { may } from '../session.ts'
import { ListPage, TableOf } from '../tables.tsx'

/** The persons and institutions whose money it is: what is known of each, and what the platform decides about it. */

const PATH = '/v2/identity/identities'
const WRITE = 'operators:write_verification'
const STATUSES = ['PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED']

const nameOf = (identity: Identity) => nameOfParty(identity) || identity.ref_id

const COLUMNS: Column<Identity>[] = [
  { name: 'Name', onCard: 1, cell: (shown) => <Name of={nameOf(shown)} to={`identities/${shown.id}`} /> },
  { name: 'Status', onCard: 2, cell: ({ summary_status }) => <Status of={summary_status} /> },
  { name: 'Type', onCard: 3, cell: ({ type }) => inWords(type) },
  { name: 'ref_id', onCard: 5, cell: ({ ref_id }) => <Name of={ref_id} /> },
  { name: 'Changed', onCard: 4, cell: ({ updated_at }) => <Time at={updated_at} /> },
]

export function IdentitiesPage() {
  const list = useList<Identity>(PATH, {
    summary_statuses: filterOf('status'),
    ref_ids: filterOf('ref'),
    include_details: 'true',
  })
  return (
    <ListPage list={list} name="Identities" none="No identity has these properties." columns={COLUMNS}>
      <Choice name="Status" filter="status" of={STATUSES} />
      <TextFilter name="ref_id" filter="ref" size={20} />
    </ListPage>
  )
}

export function IdentityPage({ id }: { id: string }) {
  const call = get(`${PATH}/${id}`, { include_details: true, include_institution_members: true })
  const read = useCall<Identity>(call)
  return (
    <>
      <Answered of={read}>
        {(identity) => (
          <>
            <header class="of-record">
              <Title of={nameOf(identity)}>
                {nameOf(identity)} <Status of={identity.summary_status} />
              </Title>
              <Id of={id} whole />
              {may(WRITE) && <Decisions about={identity} again={() => read.again()} />}
            </header>
            <h2>What is known</h2>
            {/* `details` has the same as the details of the person or institution. */}
            <Members of={{ ...identity, details: undefined }} />
          </>
        )}
      </Answered>
      <Curl of={call} />
      {may('identity:read_account') && <Accounts identityId={id} />}
    </>
  )
}

type Decision = [decision: string, name: string, ask: string, kind?: 'main' | 'danger']
const APPROVE: Decision = ['APPROVE', 'Approve', 'Is it verified? It may withdraw.', 'main']
const DENY: Decision = ['DENY', 'Deny', 'Did the verification fail? It may not withdraw.', 'danger']
const REOPEN: Decision = ['REOPEN', 'Verify again', 'Stop its withdrawals until it is verified again?']
const DISABLE: Decision = ['DISABLE', 'Disable', 'Stop its withdrawals?', 'danger']
const ENABLE: Decision = ['ENABLE', 'Enable', 'Let its withdrawals go on?']

/** What can be decided now. A decision names the version that the person looks at. */
function Decisions({
  about: { id, status, admin_disabled, updated_at },
  again,
}: {
  about: Identity
  again: () => void
}) {
  const decisions = [
    ...(status === 'APPROVED' ? [REOPEN] : [APPROVE]),
    ...(status === 'DENIED' ? [] : [DENY]),
    admin_disabled ? ENABLE : DISABLE,
  ]
  return (
    <div class="buttons">
      {decisions.map(([decision, name, ask, kind]) => (
        <Action
          key={decision}
          call={post(`/v2/operators/identities/${id}/decisions`, {
            decision,
            ...(decision === 'APPROVE' && { seen: updated_at }),
          })}
          ask={ask}
          {...(kind !== undefined && { kind })}
          done={again}
        >
          {name}
        </Action>
      ))}
    </div>
  )
}

function Accounts({ identityId }: { identityId: string }) {
  const call = get('/v2/identity/accounts', { identity_ids: identityId, limit: 100 })
  const read = useCall<{ items: Account[] }>(call)
  const columns: Column<Account>[] = [
    { name: 'Account', onCard: 1, cell: ({ description, type }) => description ?? inWords(type) },
    { name: 'Status', onCard: 2, cell: ({ summary_status }) => <Status of={summary_status} /> },
    {
      name: 'Profile',
      onCard: 3,
      cell: ({ profile_id }) =>
        profile_id !== undefined && <Id of={profile_id} to={`profiles/${profile_id}`} />,
    },
    { name: 'Id', onCard: 4, cell: ({ id }) => <Id of={id} /> },
    {
      name: 'Actions',
      onCard: 5,
      cell: ({ id, admin_disabled }) => {
        const [decision, name, ask] = admin_disabled ? ENABLE : DISABLE
        return (
          <Action
            scope={WRITE}
            call={post(`/v2/operators/accounts/${id}/decisions`, { decision })}
            ask={ask}
            done={() => read.again()}
          >
            {name}
          </Action>
        )
      },
    },
  ]
  return (
    <section>
      <h2>Accounts</h2>
      <TableOf of={read} call={call} name="Accounts" none="It has no account." columns={columns} isPart />
    </section>
  )
}
