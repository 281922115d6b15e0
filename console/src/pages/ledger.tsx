import { Fragment, type ComponentChildren } from 'preact'
import { get, type Call } from '../api.ts'
import { FileButton } from '../export.tsx'
import { inWords } from '../format.ts'
import { Choice, filterOf, Filters, ListOf, Period, Table, useList, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Curl, Id, Link, Time, Title } from '../parts.tsx'
import type { ActivityRow, ClosedDay, LedgerLine, Liability, TrialBalance, Wire } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** The books of all customers and the platform for a time: what finance closes a month with. */

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const
type Line = TrialBalance['items'][number]
type Balance = Pick<Line, 'asset' | (typeof FIGURES)[number]> & Partial<Line>

const figure = <Row extends object>(name: keyof Row & string): Column<Row> => ({
  ...amountColumn<Row>(inWords(name), (row) => ({
    amount: row[name] as string,
    asset: (row as { asset: string }).asset,
  })),
  named: true,
})

const BALANCES: Column<Balance>[] = [
  {
    name: 'Account',
    onCard: 0,
    cell: ({ account, name, asset }) =>
      account === undefined ? (
        <strong>All</strong>
      ) : (
        <>
          <Link to={`ledger/accounts?account=${account}&asset=${asset}`}>{name}</Link>{' '}
          <small class="quiet">{account}</small>
        </>
      ),
  },
  ...FIGURES.map((name) => figure<Balance>(name)),
]

/** The time that the address names, as reports name it. */
const timeOf = (to = 'to') => ({ from: filterOf('from'), [to]: filterOf('before') })

/** The accounts of each asset, and behind them their sum. */
const withSums = ({ items, sums }: TrialBalance): Balance[] =>
  sums.flatMap((sum) => [...items.filter(({ asset }) => asset === sum.asset), sum])

export function LedgerPage() {
  const call = get('/v2/reports/trial-balance', timeOf('at'))
  const read = useCall<TrialBalance>(call)
  return (
    <>
      <Title>Ledger</Title>
      <Filters>
        <Period />
        <FileButton name="trial-balance" call={call} />
      </Filters>
      <p class="quiet">
        All customers and the platform. Negative: what the platform has, such as money at its bank. The
        accounts of an asset sum to zero.
      </p>
      <Answered of={read}>
        {(balances) => (
          <>
            <p>
              Entries before <Time at={balances.to} precise />.{' '}
              {balances.balanced ? 'The ledger balances.' : <strong>The ledger does not balance.</strong>}
            </p>
            <Table
              name="Trial balance"
              items={withSums(balances)}
              columns={BALANCES}
              keyOf={({ account = '', asset }) => account + asset}
            />
          </>
        )}
      </Answered>
      <Curl of={call} />
      <Activity />
      {may('operators:read_wire') && <Wires />}
      <ClosedDays />
      <Liabilities />
    </>
  )
}

const SUMS = ['in', 'out', 'fees', 'network_fees'] as const
const ACTIVITY: Column<ActivityRow>[] = [
  { name: 'What', onCard: 0, cell: ({ key }) => (key.length === 36 ? <Id of={key} /> : inWords(key)) },
  { name: 'Transfers', number: true, named: true, cell: ({ count }) => count },
  ...SUMS.map((name) => figure<ActivityRow>(name)),
  { ...amountColumn('Value', ({ value_usd }) => ({ amount: value_usd, asset: 'USD' })), named: true },
]

function Activity() {
  const call = get('/v2/reports/activity', { ...timeOf(), by: filterOf('by') })
  return (
    <Part name="Activity" call={call}>
      <Choice name="By" filter="by" of={['type', 'asset', 'profile']} any="day" />
      <TableOf
        of={useCall<{ items: ActivityRow[] }>(call)}
        call={call}
        name="Activity"
        none="Nothing was posted in this time."
        columns={ACTIVITY}
        keyOf={({ key, asset }) => key + asset}
      />
    </Part>
  )
}

const WIRES: Column<Wire>[] = [
  { name: 'Recorded', onCard: 3, cell: ({ recorded_at }) => <Time at={recorded_at} /> },
  { name: 'Kind', onCard: 2, cell: ({ kind }) => inWords(kind) },
  { name: "Bank's reference", onCard: 0, cell: ({ bank_reference }) => <Id of={bank_reference} whole /> },
  { ...amountColumn<Wire>('Amount', (wire) => wire), onCard: 1 },
  { name: 'Memo', named: true, cell: ({ memo_id }) => memo_id },
  { name: 'Transfer', cell: ({ transfer_id }) => <Id of={transfer_id} to={`transfers/${transfer_id}`} /> },
  { name: 'By', named: true, cell: ({ recorded_by }) => recorded_by },
]

function Wires() {
  const call = get('/v2/reports/wires', timeOf())
  return (
    <Part name="Wires of this time" call={call}>
      <TableOf
        of={useCall<{ items: Wire[] }>(call)}
        call={call}
        name="Wires of this time"
        none="No wire was recorded in this time."
        columns={WIRES}
        keyOf={({ kind, bank_reference }) => kind + bank_reference}
      />
    </Part>
  )
}

const DAYS: Column<ClosedDay>[] = [
  { name: 'Day', onCard: 0, cell: ({ day }) => day },
  { name: 'Closed', onCard: 1, cell: ({ closed_at }) => <Time at={closed_at} /> },
  { name: 'Digest', onCard: 2, cell: ({ digest }) => <Id of={digest} /> },
]

function ClosedDays() {
  const call = get('/v2/reports/closed-days', timeOf())
  return (
    <Part name="Closed days">
      <p class="quiet">Nothing is dated in a closed day any more: its reports never change.</p>
      <TableOf
        of={useCall<{ items: ClosedDay[] }>(call)}
        call={call}
        name="Closed days"
        none="No day of this time is closed yet."
        columns={DAYS}
        keyOf={({ day }) => day}
      />
    </Part>
  )
}

const OWED: Column<Liability>[] = [
  { name: 'Asset', onCard: 0, cell: ({ asset }) => asset },
  { name: 'Balances', number: true, named: true, cell: ({ leaves }) => leaves },
  figure('total'),
  { name: 'Root', onCard: 1, cell: ({ root }) => <Id of={root} /> },
]

function Liabilities() {
  const call = get('/v2/reports/liabilities', { at: filterOf('before') })
  const read = useCall<{ at: string; items: Liability[] }>(call)
  const at = read.data.value?.at
  return (
    <Part name="Owed to profiles">
      {at !== undefined && (
        <p>
          <FileButton
            name={`liabilities-${at}`}
            call={{ ...call, query: { at } }}
            of="Save the roots"
            as="json"
          />
        </p>
      )}
      <p class="quiet">
        Published, the roots let the holder of each profile check that its balances are in the totals: its
        page has the proof. Both are of one moment only: choose a period that has ended.
      </p>
      <TableOf
        of={read}
        call={call}
        name="Owed to profiles"
        none="No profile had a balance."
        columns={OWED}
        keyOf={({ asset }) => asset}
      />
    </Part>
  )
}

const Part = ({ name, call, children }: { name: string; call?: Call; children: ComponentChildren }) => (
  <section>
    <h2>{name}</h2>
    {call !== undefined && <FileButton name={name.toLowerCase().replaceAll(' ', '-')} call={call} />}
    {children}
  </section>
)

const LINES: Column<LedgerLine>[] = [
  { name: 'Posted', onCard: 2, cell: ({ created_at }) => <Time at={created_at} precise /> },
  {
    name: 'Transfer',
    onCard: 0,
    cell: ({ type, event, ref_id, transfer_id }) => (
      <>
        <Link to={`transfers/${transfer_id}`}>{inWords(type ?? event)}</Link>{' '}
        <small class="quiet">{ref_id}</small>
      </>
    ),
  },
  {
    name: 'Other side',
    named: true,
    cell: ({ counter_accounts }) =>
      counter_accounts.map((account, index) => (
        <Fragment key={account}>
          {index > 0 && ', '}
          {account}
        </Fragment>
      )),
  },
  figure('amount'),
  figure('balance'),
]

/** The entries of an account, with its balance after each. */
export function AccountPage() {
  const [account, asset] = [filterOf('account'), filterOf('asset')]
  const list = useList<LedgerLine>('/v2/reports/general-ledger', { ...timeOf(), account, asset })
  return (
    <>
      <Title of="Ledger">{`${account} ${asset}`}</Title>
      <Filters>
        <Period />
        <FileButton name="general-ledger" call={list.call} />
      </Filters>
      <ListOf
        list={list}
        name="Entries"
        none="Nothing was posted in this time."
        columns={LINES}
        keyOf={({ transfer_id, event, position }) => transfer_id + event + position}
      />
    </>
  )
}
