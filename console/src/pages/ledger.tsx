import { get } from '../api.ts'
import { csvOf, textCell } from '../../../src/contract/csv.ts'
import { fileOf, save } from '../export.tsx'
import { inWords } from '../format.ts'
import { createdAt, Filters, Period, Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Curl, Time, Title } from '../parts.tsx'
import type { LedgerBalances } from '../records.ts'
import { amountColumn } from '../tables.tsx'

/** The balances of the ledger's accounts for a time: what the bank's statement and the wallets are compared with. */

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const
type Balance = LedgerBalances['items'][number]

const COLUMNS: Column<Balance>[] = [
  { name: 'Account', onCard: 0, cell: ({ account }) => (account === 'all' ? <strong>all</strong> : account) },
  ...FIGURES.map((name) => ({
    ...amountColumn<Balance>(inWords(name), ({ asset, [name]: amount }) => ({ amount, asset })),
    named: true,
  })),
]

/** The accounts of each asset, and behind them their sum. */
const withSums = ({ items, sums }: LedgerBalances) =>
  sums.flatMap((sum) => [...items.filter(({ asset }) => asset === sum.asset), sum])

const rowsOf = (ledger: LedgerBalances) => [
  ['from', 'to', 'account', 'asset', ...FIGURES],
  ...withSums(ledger).map((balance) => [
    ...[ledger.from, ledger.to, balance.account, balance.asset].map(textCell),
    ...FIGURES.map((name) => balance[name]),
  ]),
]

export function LedgerPage() {
  const call = get('/v2/operators/ledger/balances', createdAt())
  const read = useCall<LedgerBalances>(call)
  const { value } = read.data
  return (
    <>
      <Title>Ledger</Title>
      <Filters>
        <Period />
        <button
          type="button"
          disabled={value === undefined}
          onClick={() => save(`${fileOf('ledger')}.csv`, csvOf(rowsOf(value!)), 'text/csv')}
        >
          Save as CSV
        </button>
      </Filters>
      <p class="quiet">
        All customers. Negative: what the platform has, such as money at its bank. <code>profile</code> is
        what all profiles have together. The accounts of an asset sum to zero.
      </p>
      <Answered of={read}>
        {(balances) => (
          <>
            <p>
              Entries before <Time at={balances.to} precise />
            </p>
            <Table
              name="Balances of the ledger"
              items={withSums(balances)}
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
