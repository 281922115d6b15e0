import { Action } from '../action.tsx'
import { get, put } from '../api.ts'
import { inWords } from '../format.ts'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Id, Status, Time, Title } from '../parts.tsx'
import type { Operator } from '../records.ts'
import { may, session } from '../session.ts'
import { TableOf } from '../tables.tsx'

/** The people who work for the customer: their roles, and whether they have access. */

const ROLES: Operator['role'][] = ['VIEWER', 'OPERATOR', 'APPROVER', 'ADMIN']
const operators = get('/v2/operators')

const changeOf = (id: string, body: object) => put(`/v2/operators/${id}`, body)

export function OperatorsPage() {
  const read = useCall<{ items: Operator[] }>(operators)
  return (
    <>
      <Title>Operators</Title>
      <p class="quiet">
        The command <code>bursar operator create</code> creates an operator, and{' '}
        <code>bursar console link</code> prints a link with which it signs in. Those who work for all
        customers are changed by command alone.
      </p>
      <TableOf
        of={read}
        call={operators}
        name="Operators"
        none="No operator belongs to this customer alone."
        columns={columnsOf(() => read.again())}
      />
    </>
  )
}

const columnsOf = (again: () => void): Column<Operator>[] => [
  { name: 'Name', cell: ({ name }) => name },
  { name: 'Role', cell: ({ role }) => inWords(role) },
  {
    name: 'Works for',
    cell: ({ customer_id }) => (customer_id === undefined ? 'all customers' : 'this customer'),
  },
  { name: 'Status', cell: ({ status }) => <Status of={status} /> },
  { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Id', cell: ({ id }) => <Id of={id} /> },
  {
    name: 'Actions',
    cell: (operator) =>
      operator.id === session.value!.operator.id ? (
        <small>you</small>
      ) : (
        operator.customer_id !== undefined &&
        may('operators:write_operator') && <Changes of={operator} again={again} />
      ),
  },
]

function Changes({ of: { id, name, role, status }, again }: { of: Operator; again: () => void }) {
  if (status === 'DISABLED')
    return (
      <Action call={changeOf(id, { status: 'ACTIVE' })} done={again} ask={`Give ${name} access again?`}>
        Enable
      </Action>
    )
  return (
    <>
      <details>
        <summary>Another role</summary>
        {ROLES.filter((next) => next !== role).map((next) => (
          <Action key={next} call={changeOf(id, { role: next })} done={again} ask={`Make ${name} ${next}?`}>
            {inWords(next)}
          </Action>
        ))}
      </details>
      <Action
        call={changeOf(id, { status: 'DISABLED' })}
        done={again}
        ask={`End the access of ${name}? Its sessions end within a second.`}
        kind="danger"
      >
        Disable
      </Action>
    </>
  )
}
