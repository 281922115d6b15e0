import { textCell } from '../../../src/contract/csv.ts'
import { Export } from '../export.tsx'
import { inWords } from '../format.ts'
import { Choice, createdAt, filterOf, Period, TextFilter, useList, type Column } from '../list.tsx'
import { Actor, Id, RecordLink, Status, Time } from '../parts.tsx'
import type { Change } from '../records.ts'
import { ListPage } from '../tables.tsx'
import { AuditChain } from './audit-chain.tsx'

/** Who changed what, and what was refused. */

const PATH = '/v2/audit-log'
const ACTORS = ['API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE']

const COLUMNS: Column<Change>[] = [
  { name: 'Time', cell: ({ at }) => <Time at={at} precise /> },
  { name: 'Action', cell: (change) => <Action of={change} /> },
  { name: 'Outcome', cell: ({ outcome }) => <Status of={outcome} /> },
  {
    name: 'Who',
    cell: ({ actor }) => (
      <>
        {inWords(actor.type)} <Actor of={actor} />
      </>
    ),
  },
  {
    name: 'Record',
    cell: ({ subject }) => (
      <>
        <RecordLink of={subject} /> {subject.id !== '' && <Id of={subject.id} />}
      </>
    ),
  },
  { name: 'Request', cell: ({ request_id }) => request_id !== undefined && <Id of={request_id} /> },
  { name: 'Address', cell: ({ ip }) => ip },
]

const CSV_COLUMNS = [
  ...['at', 'actor_type', 'actor_id', 'actor_name', 'action', 'outcome', 'subject_type', 'subject_id'],
  ...['request_id', 'ip', 'changes', 'id'],
]

const cellsOf = ({ id, at, actor, action, outcome, subject, request_id, ip, changes }: Change): string[] =>
  [
    ...[at, actor.type, actor.id, actor.name, action, outcome, subject.type, subject.id],
    ...[request_id, ip, changes && JSON.stringify(changes), id],
  ].map(textCell)

export function AuditLogPage() {
  const query = {
    actor_type: filterOf('actor'),
    outcomes: filterOf('outcome'),
    actor_ids: filterOf('person'),
    actions: filterOf('action'),
    subject_ids: filterOf('subject'),
    ...createdAt(),
  }
  const list = useList<Change>(PATH, query)
  return (
    <ListPage
      above={<AuditChain />}
      list={list}
      name="Audit log"
      none="The audit log has nothing with these properties."
      columns={COLUMNS}
    >
      <Choice name="Who" filter="actor" of={ACTORS} any="Anybody" />
      <Choice name="Outcome" filter="outcome" of={['DONE', 'REFUSED']} />
      <TextFilter name="Person, client or loop" filter="person" size={20} />
      <TextFilter name="Action, such as transfer.create" filter="action" size={20} />
      <TextFilter name="Record" filter="subject" size={20} />
      <Period />
      <Export<Change> name="audit-log" path={PATH} query={query} columns={CSV_COLUMNS} cellsOf={cellsOf} />
    </ListPage>
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
