import { useSignal } from '@preact/signals'
import { Action, type Field, type Values } from '../action.tsx'
import { type Call, get, post, send } from '../api.ts'
import { inWords, readable } from '../format.ts'
import type { Column } from '../list.tsx'
import { useCall, useEvery } from '../load.ts'
import { Failure, Id, Link, Members, Status, Time, Title } from '../parts.tsx'
import type { OpenWire, RecordedWire, WirePayee } from '../records.ts'
import { may, nameOfCustomer, service, session } from '../session.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** The wires of a bank without an API, of all customers: those to send, and those that arrived. */

const PATH = '/v2/operators/wires'
/** How often the list is read again: a wire that may be sent now makes no event. */
const REFRESH_MS = 5_000
const wires = get(PATH)
const REFERENCE: Field = { name: 'bank_reference', label: "The bank's reference", size: 24 }
const AMOUNT: Field = { name: 'amount', label: 'Amount in USD', size: 12 }

export function WiresPage() {
  const read = useCall<{ items: OpenWire[] }>(wires)
  useEvery(REFRESH_MS, () => read.again(true))
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
    cell: ({ customer_id }) => nameOfCustomer(customer_id),
  },
  { ...amountColumn<OpenWire>('Amount', (wire) => wire), onCard: 2 },
  { name: 'Payee', cell: ({ payee, account_number }) => `${payee}, account ${account_number}` },
  {
    name: 'Status',
    onCard: 3,
    cell: ({ state, detail }) => (
      <>
        <Status of={state} /> {detail !== null && <small>{readable(detail)}</small>}
      </>
    ),
  },
  {
    name: 'Actions',
    onCard: 6,
    cell: (wire) =>
      wire.state === 'TAKEN' ? (
        <Taken of={wire} again={again} />
      ) : (
        may('operators:write_wire') &&
        wire.state === 'READY' && (
          <Action
            call={post(`${PATH}/${wire.transfer_id}/take`)}
            ask="Take it? Then you send it at the bank, and it cannot be cancelled."
            done={again}
          >
            Take
          </Action>
        )
      ),
  },
]

/** What is carried to the bank: an order without the ids and its taking, which the line of the wire shows. */
const toEnter = (order: object) =>
  Object.fromEntries(Object.entries(order).filter(([name]) => !/_id$|^taken_/.test(name)))

/** A taken wire: what to enter at the bank, and how it ended there. */
function Taken({
  of: { transfer_id: id, amount, asset, payee },
  again,
}: {
  of: OpenWire
  again: () => void
}) {
  const isOpen = useSignal(false)
  const { data, error } = useCall<object>(isOpen.value ? get(`${PATH}/${id}`) : undefined)
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>Enter it at the bank</summary>
      <Failure of={error.value} />
      {data.value !== undefined && <Members of={toEnter(data.value)} />}
      {may('operators:write_wire') && (
        <>
          <Action
            fields={[REFERENCE]}
            ask={({ bank_reference }) =>
              `Did the bank send ${amount} ${asset} to ${payee}, with the reference ${bank_reference}? It cannot be changed.`
            }
            call={(values) => post(`${PATH}/${id}/sent`, values)}
            kind="main"
            done={again}
          >
            It was sent
          </Action>
          <Action
            fields={[{ name: 'reason', label: 'Why, for the customer', size: 24 }]}
            call={(values) => post(`${PATH}/${id}/failed`, values)}
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

/** The question before a memo is credited, which names whom. */
async function questionOf({ memo = '', amount = '' }: Values): Promise<string> {
  const call = get(`${PATH}/payee`, { memo })
  const { profile, owner, customer } = await send<WirePayee>(call)
  return `Credit ${amount} USD to ${profile} (${owner && `${owner}, `}${customer}), memo ${memo}? It cannot be taken back.`
}

const FORMS: {
  name: string
  fields: Field[]
  ask: (values: Values) => string | Promise<string>
  call: (values: Values) => Call
}[] = [
  {
    name: 'A wire that arrived',
    fields: [{ name: 'memo', label: 'Memo' }, AMOUNT, REFERENCE],
    ask: questionOf,
    call: (body) => post(`${PATH}/deposits`, body),
  },
  {
    name: 'A wire of ours that came back',
    fields: [{ name: 'id', label: 'Transfer', size: 36 }, AMOUNT, REFERENCE],
    ask: ({ id, amount }) => `Credit ${amount} USD to the profile that paid ${id}? It cannot be taken back.`,
    call: ({ id, ...body }) => post(`${PATH}/${id}/return`, body),
  },
  {
    name: 'A held wire that was sent back to its sender',
    fields: [REFERENCE],
    ask: ({ bank_reference }) => `Did the bank send ${bank_reference} back? Then it is never credited.`,
    call: (body) => post(`${PATH}/send-back`, body),
  },
]

/** What the bank's statement shows: each reference is recorded once. */
function FromTheStatement() {
  const recorded = useSignal<RecordedWire | undefined>(undefined)
  const asked = useSignal('')
  const { transfer, changed } = recorded.value ?? {}
  return (
    <section>
      <h2>From the bank's statement</h2>
      {FORMS.map(({ name, ask, ...form }) => (
        <section key={name} aria-label={name}>
          <h3>{name}</h3>
          <Action<RecordedWire>
            {...form}
            ask={async (values) => (asked.value = await ask(values))}
            done={(answer) => (recorded.value = answer)}
          >
            Record
          </Action>
        </section>
      ))}
      <div role="status">
        {transfer !== undefined && (
          <p>
            {changed ? 'Recorded' : 'It was recorded before'}: {asked.value.split('?')[0]}.{' '}
            {inWords(transfer.status)}, transfer <Link to={`transfers/${transfer.id}`}>{transfer.id}</Link>
          </p>
        )}
      </div>
    </section>
  )
}
