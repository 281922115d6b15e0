import { Action } from '../action.tsx'
import { get, post } from '../api.ts'
import { Freezes } from '../freezes.tsx'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Id, Status, Time, Title } from '../parts.tsx'
import type { Customer } from '../records.ts'
import { chooseCustomer, customer, nameOfCustomer, readSession, session } from '../session.ts'
import { TableOf } from '../tables.tsx'

/** The customers of the deployment; of the chosen one, its freezes. */

const customers = get('/v2/operators/customers')

const COLUMNS: Column<Customer>[] = [
  { name: 'Name', onCard: 1, cell: ({ name }) => name },
  {
    name: 'Status',
    onCard: 2,
    cell: ({ disabled_at }) => <Status of={disabled_at === null ? 'ACTIVE' : 'DISABLED'} />,
  },
  { name: 'Created', onCard: 3, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'API clients', number: true, cell: ({ clients }) => clients },
  { name: 'Profiles', number: true, cell: ({ profiles }) => profiles },
  { name: 'Id', onCard: 4, cell: ({ customer_id }) => <Id of={customer_id} /> },
  {
    name: 'Actions',
    onCard: 5,
    cell: ({ customer_id, name }) =>
      customer_id === customer.value ? (
        <small>chosen</small>
      ) : (
        session.value!.customers.some(({ id }) => id === customer_id) && (
          <button type="button" onClick={() => void chooseCustomer(customer_id)}>
            Work for {name}
          </button>
        )
      ),
  },
]

export function CustomersPage() {
  const read = useCall<{ items: Customer[] }>(customers)
  return (
    <>
      <Title>Customers</Title>
      <TableOf
        of={read}
        call={customers}
        name="Customers"
        columns={COLUMNS}
        keyOf={({ customer_id }) => customer_id}
      />
      <Action
        scope="operators:write_customer"
        fields={[{ name: 'name', label: 'Name of a new customer' }]}
        call={(values) => post(customers.path, values)}
        done={() => {
          read.again()
          void readSession()
        }}
      >
        Create
      </Action>
      <h2>{nameOfCustomer()}</h2>
      <Freezes />
    </>
  )
}
