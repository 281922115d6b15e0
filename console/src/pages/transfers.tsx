import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send } from '../api.ts'
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

const COLUMNS = [
  'id',
  'created_at',
  'updated_at',
  'type',
  'direction',
  'status',
  'asset',
  'amount',
  'fee',
  'total',
  'balance_asset',
  'profile_id',
  'ref_id',
  'crypto_network',
  'crypto_tx_hash',
  'destination_address',
  'memo',
] as const

/**
 * A value as CSV (RFC 4180). Spreadsheets run text that begins like a formula, and clients choose ref_ids and memos: an
 * apostrophe makes it text.
 */
function cell(value: string | undefined): string {
  const text = /^[=+\-@\t\r]/.test(value ?? '') ? `'${value}` : (value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Saves the transfers with the filters of the address as a CSV file. Amounts are written as the API writes them. */
function Export() {
  const progress = useSignal('')
  useEffect(() => () => void (progress.value = ''), [])
  const run = async () => {
    const lines = [COLUMNS.join(',')]
    let cursor = ''
    do {
      const { items, next_page_cursor = '' } = await send<Page<Transfer>>({
        method: 'GET',
        path: PATH,
        query: { ...filters(), limit: EXPORT_PAGE, page_cursor: cursor },
      })
      for (const item of items) lines.push(COLUMNS.map((name) => cell(item[name])).join(','))
      cursor = next_page_cursor
      progress.value = `${lines.length - 1} transfers`
    } while (cursor !== '' && lines.length <= EXPORT_MAX)
    if (cursor !== '') lines.push(`more than ${EXPORT_MAX} transfers: choose a shorter time`)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([`${lines.join('\r\n')}\r\n`], { type: 'text/csv' }))
    link.download = 'transfers.csv'
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }
  return (
    <span class="export">
      <button
        type="button"
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
