import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { get, post, send } from '../api.ts'
import { inWords, readable } from '../format.ts'
import { Choice, filterOf, Filters, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Answered, Curl, Failure, Id, Status, Title } from '../parts.tsx'
import type { BankBreak, BankImport, BankLine, BankReconciliation } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** The bank's statements beside the ledger: what is imported, what differs, and what each line is. */

const LINES = '/v2/bank/lines'
const inUsd = (amount: string) => <Amount amount={amount} asset="USD" />

export function BankPage() {
  const compared = get('/v2/reports/bank-reconciliation')
  const listed = get(LINES, { state: filterOf('state') || 'OPEN' })
  const [reconciliation, lines] = [
    useCall<BankReconciliation>(compared),
    useCall<{ items: BankLine[] }>(listed),
  ]
  const again = () => {
    reconciliation.again()
    lines.again()
  }
  return (
    <>
      <Title>Bank</Title>
      {may('operators:write_wire') && <Import done={again} />}
      <h2>The bank and the ledger</h2>
      <Answered of={reconciliation}>
        {({ statement_date, bank, ledger, difference, opening, explained, remainder, items }) => (
          <>
            <p>
              The bank has {inUsd(bank)} ({statement_date}), the ledger {inUsd(ledger)}: a difference of{' '}
              {inUsd(difference)}, of it {inUsd(opening)} from before the first statement.{' '}
              {explained ? (
                'Each part of it is explained.'
              ) : (
                <strong>{inUsd(remainder)} of it is not explained.</strong>
              )}
            </p>
            <TableOf
              of={{ ...reconciliation, data: { ...reconciliation.data, value: { items } } as never }}
              name="Breaks"
              none="Nothing differs."
              columns={BREAKS}
              keyOf={({ line_id = '', transfer_id = '' }) => line_id + transfer_id}
            />
          </>
        )}
      </Answered>
      <Curl of={compared} />
      <h2>Lines of the statements</h2>
      <Filters>
        <Choice name="Lines" filter="state" of={['MATCHED']} any="Open" />
      </Filters>
      <TableOf
        of={lines}
        call={listed}
        name="Lines of the statements"
        none="There are no such lines."
        columns={columnsOf(again)}
      />
    </>
  )
}

const WHO = {
  ONLY_BANK: 'Only the bank has it',
  ONLY_LEDGER: 'Only the ledger has it',
  DIFFERS: 'It differs',
}
const BREAKS: Column<BankBreak>[] = [
  { name: 'What', onCard: 0, cell: ({ kind }) => WHO[kind] },
  { ...amountColumn<BankBreak>('Amount', ({ amount }) => ({ amount, asset: 'USD' })), onCard: 1 },
  { name: 'Date', onCard: 2, cell: ({ date }) => date },
  { name: 'Days', named: true, number: true, cell: ({ age_days }) => age_days },
  { name: 'Text', cell: ({ text }) => text !== undefined && readable(text) },
  {
    name: 'Transfer',
    cell: ({ transfer_id: id }) => id !== undefined && <Id of={id} to={`transfers/${id}`} />,
  },
]

const columnsOf = (again: () => void): Column<BankLine>[] => [
  { name: 'Date', onCard: 2, cell: ({ date }) => date },
  { ...amountColumn<BankLine>('Amount', ({ amount }) => ({ amount, asset: 'USD' })), onCard: 1 },
  { name: "Bank's reference", onCard: 0, cell: ({ bank_reference }) => <Id of={bank_reference} whole /> },
  // Strangers write it.
  { name: 'Text', named: true, cell: ({ text }) => readable(text) },
  { name: 'Status', onCard: 3, cell: ({ state }) => <Status of={state} /> },
  {
    name: 'Is',
    cell: ({ candidates, state }) =>
      candidates.map(({ kind, is }) => (
        <div key={is}>
          {inWords(kind)}{' '}
          {kind === 'DEPOSIT' && state !== 'MATCHED' ? (
            `with memo ${is}`
          ) : (
            <Id of={is} to={`transfers/${is}`} />
          )}
        </div>
      )),
  },
  {
    name: 'Actions',
    onCard: 4,
    cell: ({ id, state, amount }) =>
      state !== 'MATCHED' &&
      may('operators:write_wire') && (
        <Action
          fields={[{ name: 'is', label: 'Memo or transfer', size: 36, optional: true }]}
          call={({ is }) => post(`${LINES}/${id}/match`, is ? { is } : {})}
          ask={`Is this what the line of ${amount} USD is? A deposit is credited, and it cannot be taken back.`}
          summary="Match"
          done={again}
        >
          Match
        </Action>
      ),
  },
]

/** Sends a file of statements, as base64: it may have any characters. */
function Import({ done }: { done: () => void }) {
  const said = useSignal('')
  const error = useSignal<unknown>(undefined)
  const exact = useSignal(false)
  const read = async (file: File) => {
    const bytes = new Uint8Array(await file.arrayBuffer())
    let text = ''
    for (let at = 0; at < bytes.length; at += 8_192)
      text += String.fromCharCode(...bytes.subarray(at, at + 8_192))
    const { items, matched, changed } = await send<BankImport>(
      post('/v2/bank/statements', { file: btoa(text), exact: exact.value }),
    )
    const lines = items.reduce((sum, { lines }) => sum + lines, 0)
    said.value = changed
      ? `Imported: ${items.length} statements with ${lines} lines, of which ${matched.length} are matched now.`
      : 'It was imported before: nothing has changed.'
    done()
  }
  return (
    <section aria-label="Import">
      <label>
        A statement of the bank (camt.053, MT940, BAI2){' '}
        <input
          type="file"
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? []
            if (file === undefined) return
            said.value = 'reading…'
            error.value = undefined
            void read(file).catch((reason: unknown) => {
              said.value = ''
              error.value = reason
            })
            currentTarget.value = ''
          }}
        />
      </label>
      <label>
        <input type="checkbox" onChange={({ currentTarget }) => (exact.value = currentTarget.checked)} />{' '}
        Match exact lines of camt.053 without a person
      </label>
      <p role="status">{said.value}</p>
      <Failure of={error.value} />
    </section>
  )
}
