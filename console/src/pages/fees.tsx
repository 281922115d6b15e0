import type { ComponentChildren } from 'preact'
import { Table, type Column } from '../list.tsx'
import { Amount, Id, Time } from '../parts.tsx'
import { Usd } from '../prices.tsx'
import type { Fees, Transfer, TransferHistory } from '../records.ts'
import { usdOfPart } from '../usd.ts'

/** For how long the service keeps a quote that was used. */
const QUOTE_KEPT_MS = 30 * 86_400_000

interface Line {
  name: string
  amount?: ComponentChildren
  note?: ComponentChildren
}

/** The quoted fee of a withdrawal, the fee charged, the fee that the network took, and what the platform keeps. */
export function FeeComparison({ history, fees }: { history: TransferHistory; fees: Fees }) {
  const lines = [quoted(history, fees), charged(history, fees), taken(history, fees), ...kept(history, fees)]
  return (
    <>
      <h2>Fees</h2>
      <Table class="fees" name="Fees" items={lines} columns={COLUMNS} keyOf={({ name }) => name} />
    </>
  )
}

const COLUMNS: Column<Line>[] = [
  { name: 'Fee', onCard: 1, cell: ({ name }) => name },
  { name: 'Amount', number: true, onCard: 2, cell: ({ amount = '–' }) => amount },
  { name: 'Note', onCard: 3, cell: ({ note }) => note },
]

function quoted({ transfer: { asset, created_at } }: TransferHistory, { quote }: Fees): Line {
  const name = 'Quoted fee'
  if (quote === undefined) {
    const isOld = Date.now() - Date.parse(created_at) > QUOTE_KEPT_MS
    return {
      name,
      note: isOld ? 'No quote is kept for longer than 30 days.' : 'The withdrawal used no quote.',
    }
  }
  return {
    name,
    amount: <Amount amount={quote.fee} asset={asset} />,
    note: (
      <>
        quote <Id of={quote.id} /> of <Time at={quote.created_at} />, valid until{' '}
        <Time at={quote.expires_at} />
      </>
    ),
  }
}

const charged = ({ transfer }: TransferHistory, { quote }: Fees): Line => ({
  name: 'Fee charged',
  amount: <Amount amount={transfer.fee} asset={transfer.asset} />,
  note: (
    <Worth
      said={transfer.status === 'FAILED' ? 'refunded' : quote === undefined ? '' : 'as quoted'}
      amount={transfer.fee}
      of={transfer}
    />
  ),
})

/** What is said of a part of a transfer, and what the part was worth when the transfer was made. */
const Worth = ({
  said = '',
  amount,
  of: { total, notional_value },
}: {
  said?: string
  amount: string
  of: Transfer
}) => (
  <>
    {said}
    {notional_value !== undefined && (
      <>
        {said !== '' && ', '}worth <Usd value={usdOfPart(amount, total, notional_value)} />
      </>
    )}
  </>
)

function taken({ transfer, entries }: TransferHistory, { network_fee, network_fee_value }: Fees): Line {
  const { asset, status } = transfer
  const name = 'Network fee paid'
  if (network_fee === undefined) {
    const isSimulated = entries.some(({ account }) => account.startsWith('simulated:'))
    return {
      name,
      note: isSimulated
        ? 'A simulated network takes nothing.'
        : status === 'PENDING'
          ? 'Known when the transaction is final.'
          : 'Nothing was paid.',
    }
  }
  return {
    name,
    amount: <Amount amount={network_fee.amount} asset={network_fee.asset} />,
    note:
      network_fee.asset === asset ? (
        <Worth amount={network_fee.amount} of={transfer} />
      ) : network_fee_value === undefined ? (
        `There was no price to convert it to ${asset}.`
      ) : (
        <>
          <Amount amount={network_fee_value} asset={asset} /> at the prices of that time
        </>
      ),
  }
}

function kept({ transfer: { asset, status } }: TransferHistory, { difference }: Fees): Line[] {
  if (difference === undefined) return []
  const isLoss = difference.startsWith('-')
  return [
    {
      name: 'Difference',
      amount: (
        <span class={isLoss ? 'fall' : 'rise'}>
          <Amount amount={difference} asset={asset} sign={difference !== '0'} />
        </span>
      ),
      note: `${isLoss ? 'The platform lost this' : difference === '0' ? 'The platform kept nothing' : 'The platform kept this'}: the ${
        status === 'FAILED' ? 'refunded fee' : 'fee charged'
      } less the network fee.`,
    },
  ]
}
