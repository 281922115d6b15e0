import { csvOf, textCell } from '../csv.ts'
import { save } from '../export.tsx'
import { createdAt, Filters, Period, Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Curl, Time, Title } from '../parts.tsx'
import { amountColumn } from '../tables.tsx'

/** The balances of the ledger's accounts for a time: what the bank's statement and the wallets are compared with. */

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const
type Balance = Record<'account' | 'asset' | (typeof FIGURES)[number], string>
type Balances = Record<'from' | 'to', string> & Record<'items' | 'sums', Balance[]>

const COLUMNS: Column<Balance>[] = [
  { name: 'Account', onCard: 0, cell: ({ account }) => account },
  ...FIGURES.map((name) => ({ ...amountColumn<Balance>(name, (of) => of[name]), named: true })),
]

const rowsOf = ({ from, to, items, sums }: Balances) => [
  ['from', 'to', 'account', 'asset', ...FIGURES],
  ...[...items, ...sums].map((one) => [
    ...[from, to, one.account, one.asset].map(textCell),
    ...FIGURES.map((name) => one[name]),
  ]),
]

export function LedgerPage() {
  const call = { method: 'GET', path: '/v2/operators/ledger/balances', query: createdAt() } as const
  const read = useCall<Balances>(call)
  const { value } = read.data
  return (
    <>
      <Title>Ledger</Title>
      <Filters>
        <Period />
        <button
          type="button"
          disabled={value === undefined}
          onClick={() => save('ledger.csv', csvOf(rowsOf(value!)), 'text/csv')}
        >
          Save as CSV
        </button>
      </Filters>
      <p class="quiet">
        All customers. Negative: what the platform has, such as money at its bank. `profile` is what all
        profiles have together. All accounts sum to zero.
      </p>
      <Answered of={read}>
        {({ to, items, sums }) => (
          <>
            <p>
              Until before <Time at={to} precise />
            </p>
            <Table
              name="Balances of the ledger"
              items={[...items, ...sums]}
              columns={COLUMNS}
              keyOf={({ account, asset }) => account + asset}
            />
          </>
        )}
      </Answered>
      <Curl of={call} />
    </>
  )
}
