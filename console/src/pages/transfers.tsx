import { textCell } from '../csv.ts'
import { Export } from '../export.tsx'
import { inWords, signed } from '../format.ts'
import { Choice, createdAt, filterOf, Filters, Paged, Period, Table, useList, type Column } from '../list.tsx'
import { Amount, Link, Status, Time, Title } from '../parts.tsx'
import type { Transfer } from '../records.ts'

/** All transfers, with filters that the address keeps, a page at a time. */

const STATUSES = ['PENDING', 'COMPLETED', 'FAILED']
const TYPES = [
  'CRYPTO_WITHDRAWAL',
  'CRYPTO_DEPOSIT',
  'WIRE_WITHDRAWAL',
  'WIRE_DEPOSIT',
  'INTERNAL_TRANSFER_DEBIT',
  'INTERNAL_TRANSFER_CREDIT',
  'PAXOS_TRANSFER_DEBIT',
  'PAXOS_TRANSFER_CREDIT',
]

const PATH = '/v2/transfer/transfers'
/** The filters in the address, as the API names them. */
const filters = () => ({
  statuses: filterOf('status'),
  type: filterOf('type'),
  profile_ids: filterOf('profile'),
  ...createdAt(),
  order: filterOf('order'),
})

export function TransfersPage() {
  const list = useList<Transfer>(PATH, filters())
  return (
    <>
      <Title>Transfers</Title>
      <Filters>
        <Choice name="Status" filter="status" of={STATUSES} />
        <Choice name="Type" filter="type" of={TYPES} />
        <Period />
        <Choice name="Order" filter="order" of={['ASC']} any="Newest first" say={() => 'Oldest first'} />
        <Export<Transfer>
          name="transfers"
          path={PATH}
          query={filters()}
          columns={COLUMNS}
          cellsOf={cellsOf}
          note="amount, fee, total and notional_value are numbers, of which a spreadsheet keeps 15 digits."
        />
      </Filters>
      <Paged list={list}>
        <Transfers items={list.items ?? []} none="No transfer has these properties." />
      </Paged>
    </>
  )
}

type Changing = Pick<Transfer, 'direction' | 'status' | 'total' | 'asset' | 'balance_asset'>

/** What a transfer changes its balance by, with a sign. One that failed changed nothing. */
const changeOf = ({ direction, status, total }: Changing): string =>
  status === 'FAILED' ? '0' : direction === 'DEBIT' ? `-${total}` : total

/** The change of a balance. Of a transfer that failed, what it would have changed is struck through. */
export function BalanceChange({ of }: { of: Changing }) {
  const asset = of.balance_asset ?? of.asset
  if (of.status !== 'FAILED') return <Amount amount={changeOf(of)} asset={asset} sign />
  return (
    <>
      <s>{signed(changeOf({ ...of, status: 'COMPLETED' }))}</s> <Amount amount="0" asset={asset} />
    </>
  )
}

const TABLE_COLUMNS: Column<Transfer>[] = [
  { name: 'Created', onCard: 3, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Type',
    onCard: 1,
    cell: ({ id, type }) => <Link to={`transfers/${id}`}>{inWords(type)}</Link>,
  },
  {
    name: 'Status',
    onCard: 4,
    cell: ({ status, secondary_status }) => (
      <>
        <Status of={status} />
        {secondary_status !== undefined && <small> {inWords(secondary_status.name)}</small>}
      </>
    ),
  },
  {
    name: 'Balance change',
    number: true,
    onCard: 2,
    cell: (transfer) => <BalanceChange of={transfer} />,
  },
  { name: 'ref_id', onCard: 5, cell: ({ ref_id }) => <div class="ref">{ref_id}</div> },
]

/** Transfers, a line each. */
export const Transfers = ({ items, none }: { items: readonly Transfer[]; none: string }) =>
  items.length === 0 ? (
    <p class="quiet">{none}</p>
  ) : (
    <Table name="Transfers" items={items} columns={TABLE_COLUMNS} keyOf={({ id }) => id} />
  )

/** The columns of an export. Amounts are numbers; all others are text. */
const AMOUNTS = ['amount', 'fee', 'total', 'notional_value'] as const
const COLUMNS = [
  'id',
  'created_at',
  'updated_at',
  'type',
  'direction',
  'status',
  'asset',
  ...AMOUNTS,
  'balance_asset',
  'profile_id',
  'ref_id',
  'crypto_network',
  'crypto_tx_hash',
  'destination_address',
  'memo',
  'metadata',
] as const

const cellsOf = (transfer: Transfer): string[] =>
  COLUMNS.map((name) => {
    if (name === 'metadata') return textCell(transfer.metadata && JSON.stringify(transfer.metadata))
    const isAmount = AMOUNTS.some((amount) => amount === name)
    return isAmount ? (transfer[name] ?? '') : textCell(transfer[name])
  })
