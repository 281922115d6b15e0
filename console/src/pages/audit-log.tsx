import { inWords } from '../format.ts'
import {
  Choice,
  Day,
  filterOf,
  Filters,
  ListOf,
  startOfDay,
  TextFilter,
  useList,
  type Column,
} from '../list.tsx'
import { Id, Link, Status, Time, Title } from '../parts.tsx'
import { pageOf, type Change } from '../records.ts'

/** Who changed what, and what was refused. */

const ACTORS = ['API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE']

const COLUMNS: Column<Change>[] = [
  { name: 'Time', cell: ({ at }) => <Time at={at} precise /> },
  { name: 'Action', cell: (change) => <Action of={change} /> },
  { name: 'Outcome', cell: ({ outcome }) => <Status of={outcome} /> },
  {
    name: 'Who',
    cell: ({ actor }) => (
      <>
        {inWords(actor.type)} {actor.id.length === 36 ? <Id of={actor.id} /> : <code>{actor.id}</code>}
      </>
    ),
  },
  {
    name: 'Record',
    cell: ({ subject }) => {
      const page = pageOf(subject)
      const name = inWords(subject.type)
      return (
        <>
          {page === undefined ? name : <Link to={page}>{name}</Link>}{' '}
          {subject.id !== '' && <Id of={subject.id} />}
        </>
      )
    },
  },
  { name: 'Request', cell: ({ request_id }) => request_id !== undefined && <Id of={request_id} /> },
  { name: 'Address', cell: ({ ip }) => ip },
]

export function AuditLogPage() {
  const list = useList<Change>('/v2/audit-log', {
    actor_type: filterOf('actor'),
    outcomes: filterOf('outcome'),
    actor_ids: filterOf('person'),
    actions: filterOf('action'),
    subject_ids: filterOf('subject'),
    'created_at.gte': startOfDay('from'),
    'created_at.lt': startOfDay('before'),
  })
  return (
    <>
      <Title>Audit log</Title>
      <Filters>
        <Choice name="Who" filter="actor" of={ACTORS} any="Anybody" />
        <Choice name="Outcome" filter="outcome" of={['DONE', 'REFUSED']} />
        <TextFilter name="Person, client or loop" filter="person" size={20} />
        <TextFilter name="Action, such as transfer.create" filter="action" size={20} />
        <TextFilter name="Record" filter="subject" size={20} />
        <Day name="From (UTC)" filter="from" />
        <Day name="Before (UTC)" filter="before" />
      </Filters>
      <p class="quiet">
        On the service's machine, <code>bursar audit verify</code> computes the chain of these records again,
        and <code>bursar audit head --json</code> writes its head for an auditor to keep.
      </p>
      <ListOf
        list={list}
        name="Audit log"
        none="The audit log has nothing with these properties."
        columns={COLUMNS}
        keyOf={({ id }) => id}
      />
    </>
  )
}

const Action = ({ of: { action, changes } }: { of: Change }) => (
  <>
    <code>{action}</code>
    {changes !== undefined && (
      <details>
        <summary>changes</summary>
        <pre tabIndex={0}>{JSON.stringify(changes, null, 2)}</pre>
      </details>
    )}
  </>
)
