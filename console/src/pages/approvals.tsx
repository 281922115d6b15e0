import { useSignal } from '@preact/signals'
import { ago, inWords } from '../format.ts'
import { Choice, filterOf, useList, type Column } from '../list.tsx'
import { useEvery, useFresh, useTransfers } from '../load.ts'
import { Actor, Id, Link, Status, Time } from '../parts.tsx'
import type { Approval, Transfer } from '../records.ts'
import { changeOf } from '../statement.ts'
import { amountColumn, ListPage } from '../tables.tsx'
import { usePayees } from './transfers.tsx'

/** The payments and changes that wait for approvers, or have waited. */

const STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'USED']

/** Whether an approval can still be decided or used. */
export const isOpen = ({ status }: Pick<Approval, 'status'>): boolean =>
  status === 'PENDING' || status === 'APPROVED'

export function ApprovalsPage() {
  const list = useList<Approval>('/v2/approvals', { statuses: filterOf('status') })
  useFresh(list.again, /^approval\./)
  const transfers = useTransfers(
    list.items?.map(({ subject }) => (subject.type === 'transfer' ? subject.id : undefined)),
  )
  const payeeOf = usePayees([...transfers.values()])
  return (
    <ListPage
      list={list}
      name="Approvals"
      none={
        filterOf('status') === '' ? 'Nothing has needed an approval yet.' : 'No approval has this status.'
      }
      columns={columnsOf(transfers, payeeOf)}
    >
      <Choice name="Status" filter="status" of={STATUSES} />
    </ListPage>
  )
}

const columnsOf = (
  transfers: ReadonlyMap<string | undefined, Transfer>,
  payeeOf: ReturnType<typeof usePayees>,
): Column<Approval>[] => [
  {
    name: 'What',
    cell: ({ id, subject }) => (
      <Link to={`approvals/${id}`}>{inWords(transfers.get(subject.id)?.type ?? subject.type)}</Link>
    ),
  },
  amountColumn('Amount', ({ subject }) => transfers.get(subject.id)),
  {
    name: 'To, or the change',
    cell: (approval) => {
      const { type, id } = approval.subject
      const transfer = transfers.get(id)
      if (type === 'transfer') return transfer === undefined ? <Id of={id} /> : payeeOf(transfer)
      return <code>{changeOf(approval)?.operation}</code>
    },
  },
  {
    name: 'Rule',
    cell: ({ rule_id, role }) => (
      <>
        {rule_id !== undefined && <code>{rule_id}</code>} <small>{role}</small>
      </>
    ),
  },
  { name: 'Asked by', cell: ({ initiator }) => <Actor of={initiator} /> },
  { name: 'Signed', cell: ({ approvals, required }) => `${approvals} of ${required}` },
  {
    name: 'Time left',
    cell: (approval) =>
      isOpen(approval) ? <TimeLeft until={approval.deadline} /> : <Time at={approval.ended_at!} />,
  },
  { name: 'Status', cell: ({ status }) => <Status of={status} /> },
]

const TICK_MS = 10_000

/** How long until a moment, which goes on by itself. */
export function TimeLeft({ until }: { until: string }) {
  const now = useSignal(Date.now())
  useEvery(TICK_MS, () => (now.value = Date.now()))
  return <span title={until}>{Date.parse(until) <= now.value ? 'over' : ago(until, now.value)}</span>
}
