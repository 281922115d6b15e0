import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send } from '../api.ts'
import { csvOf, textCell } from '../csv.ts'
import { Choice, Day, filterOf, Filters, Paged, startOfDay, useList } from '../list.tsx'
import { Title } from '../parts.tsx'
import type { Page, Transfer } from '../records.ts'
import { Transfers } from './home.tsx'

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
/** Rows of an export: 100 pages of the API's largest size. The file says where it was cut. */
const EXPORT_MAX = 100_000
const EXPORT_PAGE = 1_000

const PATH = '/v2/transfer/transfers'
/** The filters in the address, as the API names them. */
const filters = () => ({
  statuses: filterOf('status'),
  type: filterOf('type'),
  profile_ids: filterOf('profile'),
  'created_at.gte': startOfDay('from'),
  'created_at.lt': startOfDay('before'),
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
        <Day name="From (UTC)" filter="from" />
        <Day name="Before (UTC)" filter="before" />
        <Choice name="Order" filter="order" of={['ASC']} any="Newest first" say={() => 'Oldest first'} />
        <Export />
      </Filters>
      <Paged list={list}>
        <Transfers items={list.items ?? []} none="No transfer has these properties." />
      </Paged>
    </>
  )
}

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

/** Saves the transfers with the filters of the address as a CSV file. Amounts are written as the API writes them. */
function Export() {
  const progress = useSignal('')
  useEffect(() => () => void (progress.value = ''), [])
  const run = async () => {
    const rows: string[][] = [[...COLUMNS]]
    let cursor = ''
    do {
      const { items, next_page_cursor = '' } = await send<Page<Transfer>>({
        method: 'GET',
        path: PATH,
        query: { ...filters(), limit: EXPORT_PAGE, page_cursor: cursor },
      })
      rows.push(...items.map(cellsOf))
      cursor = next_page_cursor
      progress.value = `${rows.length - 1} transfers`
    } while (cursor !== '' && rows.length <= EXPORT_MAX)
    if (cursor !== '') rows.push([`more than ${EXPORT_MAX} transfers: choose a shorter time`])
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv;charset=utf-8' }))
    link.download = 'transfers.csv'
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }
  return (
    <span class="export">
      <button
        type="button"
        title="amount, fee, total and notional_value are numbers, of which a spreadsheet keeps 15 digits. The other columns are text: an apostrophe marks what would become a number, a date or a formula."
        disabled={progress.value.endsWith('…')}
        onClick={() => {
          progress.value = 'reading…'
          void run().catch((reason: unknown) => (progress.value = String(reason)))
        }}
      >
        Save as CSV
      </button>{' '}
      <small role="status">{progress.value}</small>
    </span>
  )
}
