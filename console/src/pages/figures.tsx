import type { ComponentChildren } from 'preact'
import { get, send } from '../api.ts'
import { Sparkline } from '../chart.tsx'
import { ago } from '../format.ts'
import { Table, type Column } from '../list.tsx'
import { useEach } from '../load.ts'
import { Amount, Failure, Link, Name } from '../parts.tsx'
import { InUsd, Usd, type UsdOf } from '../prices.tsx'
import { countOf, type Activity, type Approval, type Balance, type BalanceHistory } from '../records.ts'
import type { OpenWire, Page, Profile, Transfer, Volume } from '../records.ts'
import { amountColumn } from '../tables.tsx'
import { sumOfUsd } from '../usd.ts'

/** The figures of the home page: value, in flight, waiting, in and out; then the balances of all profiles and of each. */

interface Read {
  usd: UsdOf | undefined
  now: number
  history: readonly BalanceHistory[] | undefined
  pending: Page<Transfer> | undefined
  approvals: Page<Approval> | undefined
  /** The wires that somebody is to send; none where the bank sends them by itself. */
  wires: readonly OpenWire[] | undefined
  volumes: readonly Volume[] | undefined
  /** The last 24 hours. */
  activity: readonly Activity[] | undefined
}

/** Four figures. Each is blank until it is read. */
export const Figures = ({ usd, history, volumes, ...read }: Read) => (
  <dl class="figures">
    {history !== undefined && usd !== undefined && <Value history={history} usd={usd} />}
    <InFlight {...read} />
    <Waiting {...read} />
    {volumes !== undefined && usd !== undefined && (
      <InAndOut volumes={volumes} usd={usd} activity={read.activity} />
    )}
  </dl>
)

const Figure = ({
  name,
  note,
  children,
  line,
}: {
  name: string
  note: ComponentChildren
  children: ComponentChildren
  line?: ComponentChildren
}) => (
  <div>
    <dt>{name}</dt>
    <dd class="figure">{children}</dd>
    <dd class="quiet">
      {line}
      {note}
    </dd>
  </div>
)

/** A line of the last 24 hours, by the hour. */
const dayLine = (
  activity: Read['activity'],
  name: string,
  of: (point: Activity) => string,
  among = activity?.map(of),
) => activity && <Sparkline values={activity.map(of)} among={among} label={`${name}, the last 24 hours`} />

const oldestOf = ([oldest]: readonly { created_at: string }[], now: number): string | undefined =>
  oldest && `The oldest ${ago(oldest.created_at, now)}.`

/** The sum in USD of what has a price, and the assets that have none. */
function valueOf(amounts: readonly { asset: string; amount: string }[], usd: UsdOf) {
  const values = amounts.map(({ asset, amount }) => usd(amount, asset))
  const without = amounts.filter(({ amount }, index) => values[index] === undefined && /[1-9]/.test(amount))
  return {
    sum: sumOfUsd(values.filter((value) => value !== undefined)),
    without: [...new Set(without.map(({ asset }) => asset))],
  }
}

const withoutPrice = (assets: readonly string[]): string =>
  assets.length === 0 ? '' : ` Without ${assets.join(', ')}: no price.`

function Value({ history, usd }: { history: readonly BalanceHistory[]; usd: UsdOf }) {
  const days = history[0]?.points.length ?? 0
  const sums = Array.from({ length: days }, (_, day) =>
    valueOf(
      history.map(({ asset, points }) => ({ asset, amount: points[day]!.available })),
      usd,
    ),
  )
  const { sum, without } = sums.at(-1) ?? { sum: '0.00', without: [] }
  return (
    <Figure
      name="Value of all balances"
      note={`${days > 1 ? `${days - 1} days at today's prices.` : 'No profile has had a balance.'}${withoutPrice(without)}`}
      line={
        days > 1 && (
          <Sparkline values={sums.map(({ sum }) => sum)} label={`Value, the last ${days - 1} days`} />
        )
      }
    >
      <Usd value={sum} />
    </Figure>
  )
}

/** The pending payments out, by the value that each had when it was made. */
function InFlight({ pending, now, activity }: Pick<Read, 'pending' | 'now' | 'activity'>) {
  if (pending === undefined) return null
  const out = pending.items.filter(({ direction }) => direction === 'DEBIT')
  // The value of a wire is its USD, and is not recorded.
  const valued = out.flatMap(
    ({ notional_value, total, asset }) => notional_value ?? (asset === 'USD' ? total : []),
  )
  const unknown = out.length - valued.length
  const more = pending.next_page_cursor === undefined ? '' : 'At least '
  return (
    <Figure
      name="In flight"
      line={dayLine(activity, 'In flight', ({ in_flight }) => in_flight)}
      note={`${more}${out.length} ${out.length === 1 ? 'payment' : 'payments'} out. ${oldestOf(out, now) ?? ''}${
        unknown === 0 ? '' : ` ${unknown} without a price.`
      }`}
    >
      <Usd value={sumOfUsd(valued)} />
    </Figure>
  )
}

/** The approvals that are asked for, and the wires that somebody sends at the bank. */
function Waiting({
  approvals,
  wires,
  now,
  activity,
}: Pick<Read, 'approvals' | 'wires' | 'now' | 'activity'>) {
  if (approvals === undefined || wires === undefined) return null
  const oldest = [...approvals.items, ...wires].sort((a, b) => a.created_at.localeCompare(b.created_at))
  const parts = [
    countOf(approvals) + (approvals.items.length === 1 ? ' approval' : ' approvals'),
    `${wires.length} ${wires.length === 1 ? 'wire' : 'wires'} to send`,
  ]
  const note = oldest.length > 0 ? `${parts.join(', ')}. ` : ''
  return (
    <Figure
      name="Waiting for a person"
      note={note + (oldestOf(oldest, now) ?? 'Nothing waits for a person.')}
      line={dayLine(activity, 'Waiting for a person', ({ waiting }) => String(waiting))}
    >
      {countOf(approvals, wires.length)}
    </Figure>
  )
}

type Moved = Pick<Read, 'activity'> & { volumes: readonly Volume[]; usd: UsdOf }

/** What came and went in 24 hours, at today's prices. Failed transfers moved nothing, and internal ones stay inside. */
function InAndOut({ volumes, usd, activity }: Moved) {
  const moved = volumes.filter(({ status, type }) => status === 'COMPLETED' && !type.startsWith('INTERNAL_'))
  const side = (direction: Volume['direction']) => {
    const own = moved.filter((transfer) => transfer.direction === direction)
    return { ...valueOf(own, usd), count: own.reduce((sum, { count }) => sum + count, 0) }
  }
  const [came, went] = [side('CREDIT'), side('DEBIT')]
  const without = [...new Set([...came.without, ...went.without])]
  // One scale: a little out beside much in would look like as much.
  const both = activity?.flatMap((point) => [point.in, point.out])
  return (
    <Figure
      name="In and out, 24 hours"
      line={
        <>
          {dayLine(activity, 'In', (point) => point.in, both)}
          {dayLine(activity, 'Out', ({ out }) => out, both)}
        </>
      }
      note={`${came.count} in, ${went.count} out, completed.${withoutPrice(without)}`}
    >
      <div>{/[1-9]/.test(came.sum) ? <Usd value={came.sum} sign /> : 'nothing in'}</div>
      <div>{/[1-9]/.test(went.sum) ? <Usd value={`-${went.sum}`} sign /> : 'nothing out'}</div>
    </Figure>
  )
}

/** The balances of all profiles together, each with its last 30 days. */
export const BalancesOfAll = ({
  history,
  usd,
}: {
  history: readonly BalanceHistory[]
  usd: UsdOf | undefined
}) => (
  <section class="part">
    <h2>Balances of all profiles</h2>
    {history.length === 0 ? (
      <p class="quiet">No profile has had a balance.</p>
    ) : (
      <Table
        name="Balances of all profiles"
        items={history}
        keyOf={({ asset }) => asset}
        columns={[
          { name: 'Asset', onCard: 1, cell: ({ asset }) => asset },
          {
            name: 'Last days',
            onCard: 3,
            cell: ({ asset, points }) => (
              <Sparkline
                values={points.map(({ available }) => available)}
                label={`${asset} of all profiles, the last ${points.length - 1} days`}
              />
            ),
          },
          {
            ...amountColumn<BalanceHistory>('Available', ({ points, asset }) => ({
              amount: points.at(-1)!.available,
              asset,
            })),
            onCard: 2,
          },
          {
            name: 'Value',
            number: true,
            onCard: 4,
            cell: ({ asset, points }) => <InUsd usd={usd} amount={points.at(-1)!.available} asset={asset} />,
          },
        ]}
      />
    )}
  </section>
)

interface OfProfile {
  profile: Profile
  /** Undefined: the profile has none. */
  balance?: Balance
}

const COLUMNS: Column<OfProfile>[] = [
  {
    name: 'Profile',
    onCard: 1,
    cell: ({ profile: { id, nickname } }) => <Name of={nickname} to={`profiles/${id}`} />,
  },
  { name: 'Asset', cell: ({ balance }) => balance?.asset },
  {
    name: 'Available',
    number: true,
    onCard: 2,
    cell: ({ balance }) =>
      balance === undefined ? (
        <span class="quiet">no balance</span>
      ) : (
        <Amount amount={balance.available} asset={balance.asset} />
      ),
  },
]

/** The balances of these profiles in one table. `reading` counts up when they are to be read again. */
export function BalancesByProfile({ profiles, reading }: { profiles: Page<Profile>; reading: number }) {
  const { data, error } = useEach(
    profiles.items,
    ({ id }) => `${id} ${reading}`,
    async (profile, signal): Promise<OfProfile[]> => {
      const { items } = await send<{ items: Balance[] }>(get(`/v2/profiles/${profile.id}/balances`), {
        background: reading > 0,
        signal,
      })
      return items.length === 0 ? [{ profile }] : items.map((balance) => ({ profile, balance }))
    },
  )
  return (
    <section class="part">
      <h2>Balances by profile</h2>
      <Failure of={error.value} />
      <Table
        name="Balances by profile"
        items={data.value?.flat() ?? []}
        keyOf={({ profile, balance }) => `${profile.id} ${balance?.asset}`}
        columns={COLUMNS}
      />
      {profiles.next_page_cursor !== undefined && (
        <p>
          These are the oldest profiles. <Link to="profiles">All profiles</Link>
        </p>
      )}
    </section>
  )
}
