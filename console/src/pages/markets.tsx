import { useMemo } from 'preact/hooks'
import { setQuery } from '../address.ts'
import { get } from '../api.ts'
import { PriceChart } from '../chart.tsx'
import { changeOf, groupDigits, inWords } from '../format.ts'
import { filterOf, Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Curl, Failure, Link, Time, Title } from '../parts.tsx'
import type { Candle, Market, Price } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn } from '../tables.tsx'

/** Markets: the newest prices, and one market over time. */

const markets = get('/v2/markets')
const prices = get('/v2/all-markets/prices')

interface Row extends Market {
  price: Price | undefined
}

const COLUMNS: Column<Row>[] = [
  { name: 'Market', cell: ({ market }) => <Link to={`markets/${market}`}>{market}</Link> },
  amountColumn('Price', ({ price, quote_asset: asset }) => ({ amount: price?.current_price, asset })),
  { name: '24-hour change', number: true, cell: ({ price }) => <ChangeOf price={price} /> },
  { name: 'Time', cell: ({ price }) => price !== undefined && <Time at={price.snapshot_at} /> },
  { name: 'Source', cell: ({ source }) => (source === undefined ? 'no price yet' : inWords(source)) },
]

function ChangeOf({ price }: { price: Price | undefined }) {
  if (price?.yesterday_price === undefined) return <>–</>
  const change = changeOf(price.current_price, price.yesterday_price)
  return <span class={{ '−': 'fall', '+': 'rise' }[change[0]!]}>{change}</span>
}

export function MarketsPage() {
  const listed = useCall<{ markets: Market[] }>(markets)
  const priced = useCall<{ items: Price[] }>(prices)
  const rowOf = (market: Market): Row => ({
    ...market,
    price: priced.data.value?.items.find((price) => price.market === market.market),
  })
  const byName = (a: Row, b: Row) => (a.market < b.market ? -1 : 1)
  return (
    <>
      <Title>Markets</Title>
      <Failure of={priced.error.value} />
      <Answered of={listed}>
        {(answer) => (
          <Table
            name="Markets"
            items={answer.markets.map(rowOf).sort(byName)}
            columns={COLUMNS}
            keyOf={({ market }) => market}
          />
        )}
      </Answered>
      <Curl of={prices} />
    </>
  )
}

const DAY_MS = 86_400_000
/** How far a chart goes back; the API chooses candles that are fine enough. */
const SPANS: Record<string, { name: string; days: number }> = {
  '1d': { name: '1 day', days: 1 },
  '1w': { name: '1 week', days: 7 },
  '1m': { name: '1 month', days: 30 },
  '1y': { name: '1 year', days: 365 },
  all: { name: 'All', days: 36_500 },
}
const CANDLES_MAX = 240
const ROWS = 20

/** How long an increment of the API is, in seconds. */
const SECONDS: Record<string, number> = {
  ONE_MINUTE: 60,
  FIVE_MINUTES: 300,
  FIFTEEN_MINUTES: 900,
  THIRTY_MINUTES: 1_800,
  ONE_HOUR: 3_600,
  TWO_HOURS: 7_200,
  TWELVE_HOURS: 43_200,
  ONE_DAY: 86_400,
  ONE_WEEK: 604_800,
  TWO_WEEKS: 1_209_600,
  FOUR_WEEKS: 2_419_200,
}

export function MarketPage({ market }: { market: string }) {
  const listed = useCall<{ markets: Market[] }>(markets)
  const record = listed.data.value?.markets.find((listing) => listing.market === market)
  const quiet = (text: string) => <p class="quiet">{text}</p>
  return (
    <>
      <Title of={market}>
        {market} {record?.source !== undefined && <small>{inWords(record.source)} prices</small>}
      </Title>
      <Answered of={listed}>
        {() => {
          if (record === undefined) return quiet('There is no market with this name.')
          if (record.last_time === undefined) return quiet('This market has no price yet.')
          return may('exchange:historical_prices') ? (
            <History market={record} last={record.last_time} />
          ) : (
            quiet('Your role does not read the history of prices.')
          )
        }}
      </Answered>
    </>
  )
}

function History({ market, last }: { market: Market; last: string }) {
  const chosen = filterOf('span') in SPANS ? filterOf('span') : '1m'
  const asLine = filterOf('as') === 'line'
  const begin = new Date(Date.parse(last) - SPANS[chosen]!.days * DAY_MS)
  const call = get(`/v2/markets/${market.market}/historical-candles`, {
    max_data_points: CANDLES_MAX,
    'range.begin': begin.getUTCFullYear() < 1970 ? '' : begin.toISOString(),
    limit: CANDLES_MAX,
  })
  const read = useCall<{ increment: string; items: Candle[] }>(call)
  const answer = read.data.value
  const seconds = SECONDS[answer?.increment ?? ''] ?? 60
  const candles = useMemo(() => answer?.items.toReversed(), [answer])
  const gaps = useMemo(() => gapsOf(candles ?? [], seconds), [candles])
  return (
    <>
      <div class="buttons" role="group" aria-label="Chart">
        <span class="choice">
          {Object.entries(SPANS).map(([span, { name }]) => (
            <button
              key={span}
              type="button"
              aria-pressed={span === chosen}
              onClick={() => setQuery({ span: span === '1m' ? '' : span })}
            >
              {name}
            </button>
          ))}
        </span>
        <span class="choice">
          <button type="button" aria-pressed={!asLine} onClick={() => setQuery({ as: '' })}>
            Candles
          </button>
          <button type="button" aria-pressed={asLine} onClick={() => setQuery({ as: 'line' })}>
            Line
          </button>
        </span>
      </div>
      <Answered of={read}>{() => null}</Answered>
      {candles?.length === 0 && <p class="quiet">No candle has ended in this time.</p>}
      {candles !== undefined && candles.length > 0 && (
        <>
          <PriceChart
            candles={candles}
            seconds={seconds}
            asLine={asLine}
            label={`${market.market}, ${candles.length} candles of ${inWords(answer!.increment).toLowerCase()}`}
          />
          <p class="quiet">
            {candles.length} candles of {inWords(answer!.increment).toLowerCase()}.{' '}
            {gaps.length === 0
              ? 'No price is missing.'
              : `${gaps.length === 1 ? '1 gap' : `${gaps.length} gaps`}, in which no price is known; the longest from ${gaps[0]!.from} to ${gaps[0]!.to} UTC.`}
          </p>
          <h2>Latest candles</h2>
          <Table
            name="Candles"
            items={answer!.items.slice(0, ROWS)}
            columns={CANDLE_COLUMNS}
            keyOf={({ timestamp }) => timestamp}
          />
        </>
      )}
      <Curl of={call} />
    </>
  )
}

const priceColumn = (name: string, field: 'open' | 'high' | 'low' | 'close'): Column<Candle> => ({
  name,
  number: true,
  cell: (candle) => groupDigits(candle[field]),
})
const CANDLE_COLUMNS: Column<Candle>[] = [
  { name: 'From', cell: ({ timestamp }) => <Time at={timestamp} /> },
  priceColumn('Open', 'open'),
  priceColumn('High', 'high'),
  priceColumn('Low', 'low'),
  priceColumn('Close', 'close'),
]

/** Where candles are missing, the longest first. */
function gapsOf(candles: readonly Candle[], seconds: number): { from: string; to: string; length: number }[] {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
  const gaps = candles.slice(1).flatMap(({ timestamp }, index) => {
    const from = Date.parse(candles[index]!.timestamp) + seconds * 1000
    const to = Date.parse(timestamp)
    return to > from ? [{ from: day(from), to: day(to), length: to - from }] : []
  })
  return gaps.sort((a, b) => b.length - a.length)
}
