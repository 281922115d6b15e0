import { useSignal } from '@preact/signals'
import { get, post } from '../api.ts'
import { Bars, type Bar } from '../bars.tsx'
import { Action } from '../action.tsx'
import { textCell } from '../../../src/contract/csv.ts'
import { Export } from '../export.tsx'
import { dayOf, groupDigits, inWords, percentOf, sumOf } from '../format.ts'
import { Choice, filterOf, Table, useList, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Answered, Curl, Facts, Id, Link, Status, Time, Title } from '../parts.tsx'
import type { Explanation, Statement } from '../records.ts'
import { customer } from '../session.ts'
import { amountColumn, ListPage } from '../tables.tsx'

/** Statements: the reward of each month, and what each day of the month adds to it. */

const PATH = '/v2/statements'
const BARS = 24
const STATUSES = ['STATEMENT_STATUS_INITIATED', 'STATEMENT_STATUS_GENERATED', 'STATEMENT_STATUS_PAID']
const nameOf = (status: string) => status.replace('STATEMENT_STATUS_', '')

const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
const SHORT_MONTH = new Intl.DateTimeFormat('en-GB', { month: 'short', year: '2-digit', timeZone: 'UTC' })
const monthOf = ({ period_start }: Statement) => MONTH.format(new Date(period_start))

/** The reward with its asset; undefined until it is computed. */
const rewardOf = ({ statement_balances: [reward] = [] }: Statement) => reward

const COLUMNS: Column<Statement>[] = [
  { name: 'Month', cell: (month) => <Link to={`statements/${month.id}`}>{monthOf(month)}</Link> },
  { name: 'Status', cell: ({ status }) => <Status of={nameOf(status)} /> },
  amountColumn('Reward', (month) => ({ ...rewardOf(month), amount: rewardOf(month)?.total_amount_owed })),
  amountColumn('Paid', (month) => ({ ...rewardOf(month), amount: rewardOf(month)?.amount_paid })),
  { name: 'Generated', cell: ({ generated_at: at }) => at !== undefined && <Time at={at} /> },
  { name: 'Paid at', cell: ({ paid_at: at }) => at !== undefined && <Time at={at} /> },
]

/** The heading, and the reward of each month as bars. */
function Months() {
  const latest = useCall<{ statements: Statement[] }>(get(PATH, { customer_id: customer.value, limit: BARS }))
  const months = latest.data.value?.statements.toReversed() ?? []
  return (
    <>
      <Title>Statements</Title>
      {months.length > 0 && (
        <>
          <Bars label="The reward of each month" bars={months.map(barOf)} />
          <p class="quiet">The reward of each month. A dashed bar is a month that is not paid yet.</p>
        </>
      )}
    </>
  )
}

function barOf(statement: Statement): Bar {
  const reward = rewardOf(statement)
  const amount = reward?.total_amount_owed ?? ''
  const said = reward === undefined ? 'not computed yet' : `${groupDigits(amount)} ${reward.asset}`
  return {
    key: statement.id,
    name: SHORT_MONTH.format(new Date(statement.period_start)),
    amount,
    label: `${monthOf(statement)}: ${said}, ${nameOf(statement.status)}`,
    to: `statements/${statement.id}`,
    kind: statement.status === 'STATEMENT_STATUS_PAID' ? undefined : 'wait',
  }
}

export function StatementsPage() {
  const query = { customer_id: customer.value, statuses: filterOf('status') }
  const list = useList<Statement>(PATH, query)
  return (
    <ListPage
      head={<Months />}
      list={list}
      name="Statements"
      none="There is no statement. One is made for each month in which the customer held the asset that earns."
      columns={COLUMNS}
      below={<Totals of={list.items ?? []} />}
    >
      <Choice name="Status" filter="status" of={STATUSES} say={(status) => inWords(nameOf(status))} />
      <Export<Statement>
        name="statements"
        path={PATH}
        query={query}
        columns={CSV_COLUMNS}
        cellsOf={cellsOf}
      />
    </ListPage>
  )
}

const CSV_COLUMNS = [
  ...['period_start', 'period_end', 'status', 'asset', 'total_amount_owed', 'amount_paid'],
  ...['generated_at', 'paid_at', 'ref_id', 'id'],
]

function cellsOf(statement: Statement): string[] {
  const reward = rewardOf(statement)
  return [
    ...[statement.period_start, statement.period_end, nameOf(statement.status), reward?.asset].map(textCell),
    ...[reward?.total_amount_owed ?? '', reward?.amount_paid ?? ''],
    ...[statement.generated_at, statement.paid_at, statement.ref_id, statement.id].map(textCell),
  ]
}

/** The totals owed and paid of the statements on the page, per asset. */
function Totals({ of }: { of: readonly Statement[] }) {
  const rewards = of.flatMap((statement) => rewardOf(statement) ?? [])
  if (rewards.length === 0) return null
  return (
    <Facts
      of={[...new Set(rewards.map(({ asset }) => asset))].map((asset) => {
        const own = rewards.filter((reward) => reward.asset === asset)
        return [
          `Total of ${own.length === 1 ? 'this month' : `these ${own.length} months`}`,
          <>
            <Amount amount={sumOf(own.map((reward) => reward.total_amount_owed))} asset={asset} />, of which{' '}
            <Amount amount={sumOf(own.map((reward) => reward.amount_paid))} asset={asset} /> are paid
          </>,
        ]
      })}
    />
  )
}

export function StatementPage({ id }: { id: string }) {
  const call = get(PATH, { customer_id: customer.value, statement_ids: id })
  const read = useCall<{ statements: Statement[] }>(call)
  const statement = read.data.value?.statements[0]
  if (statement === undefined)
    return (
      <>
        <Title>Statement</Title>
        <Answered of={read}>{() => <p class="quiet">There is no statement with this id.</p>}</Answered>
      </>
    )
  const reward = rewardOf(statement)
  return (
    <>
      <header class="of-record">
        <Title of={monthOf(statement)}>Reward of {monthOf(statement)}</Title>
        <p class="figure">
          <Amount amount={reward?.total_amount_owed} asset={reward?.asset} />{' '}
          <Status of={nameOf(statement.status)} />
        </p>
        <Id of={id} whole />
        {statement.status === 'STATEMENT_STATUS_GENERATED' && (
          <Action
            scope="operators:pay_statement"
            call={post('/v2/operators/statements/pay', { period: statement.period_start.slice(0, 7) })}
            ask={`Pay the reward of ${monthOf(statement)} to the customer's default profile?`}
            kind="main"
            done={() => read.again()}
          >
            Pay
          </Action>
        )}
      </header>
      <Facts
        of={[
          ['From', dayOf(statement.period_start)],
          ['Through', dayOf(statement.period_end)],
          ['Generated', statement.generated_at && <Time at={statement.generated_at} />],
          ['Paid', statement.paid_at && <Time at={statement.paid_at} />],
          ['ref_id', statement.ref_id],
        ]}
      />
      {statement.generated_at === undefined ? (
        <p class="quiet">It is not generated yet.</p>
      ) : (
        <DayByDay key={id} id={id} asset={reward?.asset ?? ''} />
      )}
      <Curl of={call} />
    </>
  )
}

const DAY_COLUMNS: Column<Explanation['days'][number]>[] = [
  { name: 'Day', cell: ({ day }) => dayOf(`${day}T00:00:00Z`) },
  { name: 'Balance', number: true, cell: ({ balance }) => groupDigits(balance) },
  { name: 'Yearly rate', number: true, cell: ({ rate }) => percentOf(rate) },
  { name: 'Reward', number: true, cell: ({ reward }) => reward },
]

/** Each day of the month, computed again from the ledger when the page opens and whenever the button asks for it. */
function DayByDay({ id, asset }: { id: string; asset: string }) {
  const call = get(`${PATH}/${id}/explanation`)
  const read = useCall<Explanation>(call)
  const again = useSignal('')
  return (
    <>
      <h2>Day by day</h2>
      <Answered of={read}>
        {(found) => (
          <>
            <Bars
              small
              label="The reward of each day"
              bars={found.days.map(({ day, reward, balance }) => ({
                key: day,
                name: String(Number(day.slice(8))),
                amount: reward,
                label: `${day}: ${reward} ${asset} on ${groupDigits(balance)} ${asset}`,
              }))}
            />
            <div class="derived" role="status">
              <Status of={found.holds ? 'HOLDS' : 'DIFFERS'} />{' '}
              {found.holds
                ? 'The ledger gives the same amount as the statement.'
                : `The ledger gives ${groupDigits(found.computed)} ${asset}, and the statement says ${groupDigits(found.stated)}.`}{' '}
              {again.value !== '' && (
                <>
                  Computed again at <Time at={again.value} />.
                </>
              )}
            </div>
            <Action<Explanation>
              call={call}
              done={(answer) => {
                read.data.value = answer
                again.value = new Date().toISOString()
              }}
              kind="main"
            >
              Explain it again from the ledger
            </Action>
            <Table name="Days" items={found.days} columns={DAY_COLUMNS} keyOf={({ day }) => day} />
            <Facts
              of={[
                ['Sum of balance × seconds × rate', groupDigits(found.products)],
                ['by 86 400 s and 365 days, rounded down', <Amount amount={found.computed} asset={asset} />],
                ['Balance that earns', 'the average of the day'],
              ]}
            />
          </>
        )}
      </Answered>
    </>
  )
}
