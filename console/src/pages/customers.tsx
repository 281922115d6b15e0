import { Action } from '../action.tsx'
import { get, post, put } from '../api.ts'
import { groupDigits, inWords } from '../format.ts'
import { Freezes } from '../freezes.tsx'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Id, Status, Time, Title } from '../parts.tsx'
import type { Customer, Limit } from '../records.ts'
import { chooseCustomer, customer, nameOfCustomer, readSession, session } from '../session.ts'
import { TableOf } from '../tables.tsx'

/** The customers of the deployment; of the chosen one, its freezes and its limits. */

const customers = get('/v2/operators/customers')
const limits = get('/v2/operators/limits')

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
      <Limits />
    </>
  )
}

function Limits() {
  const read = useCall<{ items: Limit[] }>(limits)
  const columns: Column<Limit>[] = [
    { name: 'Limit', onCard: 1, cell: ({ limit }) => inWords(limit) },
    {
      name: 'Value',
      number: true,
      onCard: 2,
      cell: ({ value, is_default }) => (
        <>
          {value === 0 ? 'none' : groupDigits(String(value))} {is_default && <small>default</small>}
        </>
      ),
    },
    {
      name: 'Used',
      number: true,
      cell: ({ records }) => records !== undefined && groupDigits(String(records)),
    },
    {
      name: 'Change',
      onCard: 4,
      cell: ({ limit, value, is_default }) => (
        <Action
          scope="operators:write_customer"
          summary="Change"
          fields={[
            {
              name: 'value',
              label: 'Most; 0 for no limit, empty for the default',
              value: is_default ? '' : String(value),
              optional: true,
              size: 10,
            },
          ]}
          call={({ value: given = '' }) =>
            put(
              `${limits.path}/${limit}`,
              given === '' ? {} : { value: /^\d{1,10}$/.test(given) ? Number(given) : given },
            )
          }
          done={() => read.again()}
        >
          Set
        </Action>
      ),
    },
  ]
  return (
    <section>
      <h3>Limits</h3>
      <TableOf of={read} call={limits} name="Limits" columns={columns} keyOf={({ limit }) => limit} isPart />
    </section>
  )
}
