import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Action, type Field } from '../action.tsx'
import { inWords } from '../format.ts'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Failure, Id, Link, Members, Status, Time, Title } from '../parts.tsx'
import type { OpenWire, Transfer } from '../records.ts'
import { may, service, session } from '../session.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** The wires of a bank without an API, of all customers: those to send, and those that arrived. */

const PATH = '/v2/operators/wires'
/** How often the list is read again: a wire that may be sent now makes no event. */
const REFRESH_MS = 5_000
const wires = { method: 'GET', path: PATH } as const
const REFERENCE: Field = { name: 'bank_reference', label: "The bank's reference", size: 24 }
const AMOUNT: Field = { name: 'amount', label: 'Amount in USD', size: 12 }

export function WiresPage() {
  const read = useCall<{ items: OpenWire[] }>(wires)
  useEffect(() => {
    const timer = setInterval(() => document.hidden || read.again(true), REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <>
      <Title>Wires</Title>
      {service.value?.mode === 'sandbox' && (
        <p class="quiet">The simulated bank of a sandbox sends and receives its wires itself.</p>
      )}
      <h2>To send, oldest first</h2>
      <TableOf
        of={read}
        call={wires}
        name="Wires to send"
        none="No wire is to be sent."
        columns={columnsOf(() => read.again())}
        keyOf={({ transfer_id }) => transfer_id}
      />
      {may('operators:write_wire') && service.value?.mode === 'live' && <FromTheStatement />}
    </>
  )
}

const columnsOf = (again: () => void): Column<OpenWire>[] => [
  { name: 'Asked for', onCard: 4, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Wire',
    onCard: 1,
    cell: ({ transfer_id: id, customer_id }) => (
      <Id of={id} to={customer_id === session.value!.customer_id ? `transfers/${id}` : undefined} />
    ),
  },
  {
    name: 'Customer',
    onCard: 5,
    cell: ({ customer_id }) => session.value!.customers.find(({ id }) => id === customer_id)?.name,
  },
  { ...amountColumn<OpenWire>('Amount', ({ amount }) => amount), onCard: 2 },
  { name: 'Payee', cell: ({ payee, account_number }) => `${payee}, account ${account_number}` },
  {
    name: 'Status',
    onCard: 3,
    cell: ({ state, detail }) => (
      <>
        <Status of={state} /> {detail !== null && <small>{detail}</small>}
      </>
    ),
  },
  {
    name: 'Actions',
    onCard: 6,
    cell: ({ transfer_id, state }) =>
      state === 'TAKEN' ? (
        <Taken id={transfer_id} again={again} />
      ) : (
        may('operators:write_wire') &&
        state === 'READY' && (
          <Action
            call={{ method: 'POST', path: `${PATH}/${transfer_id}/take` }}
            ask="Take it? Then you send it at the bank, and it cannot be cancelled."
            done={again}
          >
            Take
          </Action>
        )
      ),
  },
]

/** A taken wire: what to enter at the bank, and how it ended there. */
function Taken({ id, again }: { id: string; again: () => void }) {
  const isOpen = useSignal(false)
  const { data, error } = useCall<object>(isOpen.value ? { method: 'GET', path: `${PATH}/${id}` } : undefined)
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>Enter it at the bank</summary>
      <Failure of={error.value} />
      {data.value !== undefined && <Members of={data.value} />}
      {may('operators:write_wire') && (
        <>
          <Action
            fields={[REFERENCE]}
            call={(values) => ({ method: 'POST', path: `${PATH}/${id}/sent`, body: values })}
            kind="main"
            done={again}
          >
            It was sent
          </Action>
          <Action
            fields={[{ name: 'reason', label: 'Why, for the customer', size: 24 }]}
            call={(values) => ({ method: 'POST', path: `${PATH}/${id}/failed`, body: values })}
            ask="Was it not paid, and never will be? The customer gets the money back."
            kind="danger"
            done={again}
          >
            It was not paid
          </Action>
        </>
      )}
    </details>
  )
}

/** What the bank's statement shows: each reference is recorded once. */
function FromTheStatement() {
  const recorded = useSignal<{ transfer: Transfer; changed: boolean } | undefined>(undefined)
  const done = (answer: { transfer: Transfer; changed: boolean }) => (recorded.value = answer)
  const forms = [
    {
      name: 'A wire that arrived',
      fields: [{ name: 'memo', label: 'Memo' }, AMOUNT, REFERENCE],
      call: (values: object) => ({ method: 'POST', path: `${PATH}/deposits`, body: values }) as const,
    },
    {
      name: 'A wire of ours that came back',
      fields: [{ name: 'id', label: 'Transfer', size: 36 }, AMOUNT, REFERENCE],
      call: ({ id, ...values }: Readonly<Record<string, string>>) =>
        ({ method: 'POST', path: `${PATH}/${id}/return`, body: values }) as const,
    },
    {
      name: 'A held wire that was sent back to its sender',
      fields: [REFERENCE],
      call: (values: object) => ({ method: 'POST', path: `${PATH}/send-back`, body: values }) as const,
    },
  ]
  return (
    <section>
      <h2>From the bank's statement</h2>
      {forms.map(({ name, fields, call }) => (
        <section key={name} aria-label={name}>
          <h3>{name}</h3>
          <Action<{ transfer: Transfer; changed: boolean }> fields={fields} call={call} done={done}>
            Record
          </Action>
        </section>
      ))}
      <div role="status">
        {recorded.value !== undefined && (
          <p>
            {recorded.value.changed ? 'Recorded' : 'It was recorded before'}:{' '}
            <Amount amount={recorded.value.transfer.amount} asset={recorded.value.transfer.asset} />,{' '}
            {inWords(recorded.value.transfer.status).toLowerCase()}, transfer{' '}
            <Link to={`transfers/${recorded.value.transfer.id}`}>{recorded.value.transfer.id}</Link>
          </p>
        )}
      </div>
    </section>
  )
}
