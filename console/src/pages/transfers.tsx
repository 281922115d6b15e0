import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { send, type Call } from '../api.ts'
import { inWords } from '../format.ts'
import { useCall } from '../load.ts'
import { Curl, Failure, Loading, Pager, Title } from '../parts.tsx'
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
const PAGE_SIZE = 50
/** Rows of an export: 100 pages of the API's largest size. The file says where it was cut. */
const EXPORT_MAX = 100_000
const EXPORT_PAGE = 1_000

/** The call for the filters in the address. */
function callOf(query: URLSearchParams, limit: number, cursor: string): Call {
  const one = (name: string) => query.get(name) ?? ''
  const day = (name: string) => (one(name) === '' ? '' : `${one(name)}T00:00:00Z`)
  return {
    method: 'GET',
    path: '/v2/transfer/transfers',
    query: {
      statuses: one('status'),
      type: one('type'),
      profile_ids: one('profile'),
      'created_at.gte': day('from'),
      'created_at.lt': day('before'),
      order: one('order'),
      limit,
      page_cursor: cursor,
    },
  }
}

export function TransfersPage() {
  const { query } = address.value
  const call = callOf(query, PAGE_SIZE, query.get('cursor') ?? '')
  const { data, error } = useCall<Page<Transfer>>(call)
  // A filter begins at the first page: a cursor belongs to its filters.
  const filter = (name: string) => (value: string) => setQuery({ [name]: value, cursor: '' })
  return (
    <>
      <Title>Transfers</Title>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Choice name="Status" value={query.get('status')} of={STATUSES} choose={filter('status')} />
        <Choice name="Type" value={query.get('type')} of={TYPES} choose={filter('type')} />
        <Day name="From" value={query.get('from')} choose={filter('from')} />
        <Day name="Before" value={query.get('before')} choose={filter('before')} />
        <label>
          Order
          <select
            value={query.get('order') ?? ''}
            onChange={({ currentTarget }) => filter('order')(currentTarget.value)}
          >
            <option value="">Newest first</option>
            <option value="ASC">Oldest first</option>
          </select>
        </label>
        <Export />
      </form>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value !== undefined && (
        <Transfers items={data.value.items} none="No transfer has these properties." />
      )}
      <Pager next={data.value?.next_page_cursor} />
      <Curl of={call} />
    </>
  )
}

interface FieldProps {
  name: string
  value: string | null
  choose: (value: string) => void
}

const Choice = ({ name, value, of, choose }: FieldProps & { of: readonly string[] }) => (
  <label>
    {name}
    <select value={value ?? ''} onChange={({ currentTarget }) => choose(currentTarget.value)}>
      <option value="">Any</option>
      {of.map((one) => (
        <option key={one} value={one}>
          {inWords(one)}
        </option>
      ))}
    </select>
  </label>
)

const Day = ({ name, value, choose }: FieldProps) => (
  <label>
    {name}
    <input type="date" value={value ?? ''} onChange={({ currentTarget }) => choose(currentTarget.value)} />
  </label>
)

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
      const { items, next_page_cursor = '' } = await send<Page<Transfer>>(
        callOf(address.value.query, EXPORT_PAGE, cursor),
      )
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
