import { useMemo } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { BalanceChart } from '../chart.tsx'
import { FreezesOfProfile, useFreezes } from '../freezes.tsx'
import { ListOf, Table, useList, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, Status, Time, Title } from '../parts.tsx'
import type { Balance, BalanceEntry, Page, Profile } from '../records.ts'

/** Profiles, and one profile: its balances, how each came about, and what it was at any moment. */

/** Entries that the chart shows: the latest. The table leads on to all of them. */
const CHART_ENTRIES = 500

const columnsOf = (frozen: ReadonlySet<string | undefined>): Column<Profile>[] => [
  {
    name: 'Nickname',
    cell: ({ id, nickname, deactivated_at }) => (
      <>
        <Link to={`profiles/${id}`}>{nickname}</Link>{' '}
        {deactivated_at !== undefined && <Status of="DISABLED" />} {frozen.has(id) && <Status of="FROZEN" />}
      </>
    ),
  },
  { name: 'Id', cell: ({ id }) => <Id of={id} /> },
  { name: 'Type', cell: ({ type }) => type },
  { name: 'Account', cell: ({ account_id }) => account_id !== undefined && <Id of={account_id} /> },
]

export function ProfilesPage() {
  const list = useList<Profile>('/v2/profiles')
  const frozen = new Set(useFreezes().data.value?.items.map(({ profile_id }) => profile_id))
  return (
    <>
      <Title>Profiles</Title>
      <ListOf
        list={list}
        name="Profiles"
        none="There is no profile."
        columns={columnsOf(frozen)}
        keyOf={({ id }) => id}
      />
    </>
  )
}

export function ProfilePage({ id }: { id: string }) {
  const profile = useCall<Profile>({ method: 'GET', path: `/v2/profiles/${id}` })
  const at = address.value.query.get('at') ?? ''
  const balances = {
    method: 'GET',
    path: `/v2/profiles/${id}/balances`,
    query: { at: at === '' ? '' : `${at}:00Z` },
  } as const
  const { data, error } = useCall<{ items: Balance[] }>(balances)
  const asset = address.value.query.get('asset') ?? data.value?.items[0]?.asset
  return (
    <>
      <Failure of={profile.error.value ?? error.value} />
      {profile.data.value !== undefined && (
        <header class="of-record">
          <Title>{profile.data.value.nickname}</Title>
          <Id of={id} whole />
          <FreezesOfProfile id={id} />
        </header>
      )}
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Balances at (UTC)
          <input
            type="datetime-local"
            value={at}
            onChange={({ currentTarget }) => setQuery({ at: currentTarget.value })}
          />
        </label>
        {at !== '' && (
          <button type="button" onClick={() => setQuery({ at: '' })}>
            Now
          </button>
        )}
      </form>
      <Table
        class="balances"
        name="Balances"
        items={data.value?.items ?? []}
        keyOf={(balance) => balance.asset}
        columns={[
          {
            name: 'Asset',
            onCard: 1,
            cell: (balance) => (
              <button
                type="button"
                aria-pressed={balance.asset === asset}
                onClick={() => setQuery({ asset: balance.asset, cursor: '' })}
              >
                {balance.asset}
              </button>
            ),
          },
          {
            name: `Available ${at === '' ? 'now' : `at ${at.replace('T', ' ')}`}`,
            number: true,
            onCard: 2,
            cell: ({ available, ...balance }) => <Amount amount={available} asset={balance.asset} />,
          },
        ]}
      />
      {data.value?.items.length === 0 && <p class="quiet">No balance.</p>}
      <Curl of={balances} />
      {asset !== undefined && <History key={asset} id={id} asset={asset} />}
    </>
  )
}

const entryColumns = (asset: string): Column<BalanceEntry>[] => [
  { name: 'Time', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Transfer',
    cell: ({ transfer_id }) => <Id of={transfer_id} to={`transfers/${transfer_id}`} />,
  },
  { name: 'Event', cell: ({ event }) => event },
  { name: 'Change', number: true, cell: ({ amount }) => <Amount amount={amount} asset={asset} sign /> },
  {
    name: 'After',
    number: true,
    cell: ({ balance_after }) => <Amount amount={balance_after} asset={asset} />,
  },
  { name: '#', number: true, cell: ({ sequence }) => sequence },
]

/** The changes of a balance: a chart of the latest, and all of them a page at a time. */
function History({ id, asset }: { id: string; asset: string }) {
  const path = `/v2/profiles/${id}/entries`
  const charted = useCall<Page<BalanceEntry>>({
    method: 'GET',
    path,
    query: { assets: asset, limit: CHART_ENTRIES },
  })
  const list = useList<BalanceEntry>(path, { assets: asset })
  const entries = charted.data.value?.items
  const points = useMemo(
    () =>
      entries?.map(({ created_at, balance_after }) => ({ at: created_at, amount: balance_after })).reverse(),
    [entries],
  )
  return (
    <>
      <h2>{asset} over time</h2>
      {points !== undefined && points.length > 0 && (
        <BalanceChart points={points} label={`Balance of ${asset}, the last ${points.length} changes`} />
      )}
      <ListOf
        list={list}
        name={`Entries of ${asset}`}
        none="Nothing has changed this balance."
        columns={entryColumns(asset)}
        keyOf={({ sequence }) => sequence}
      />
    </>
  )
}
