import { useMemo } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { BalanceChart } from '../chart.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, Loading, Pager, Status, Time, Title } from '../parts.tsx'
import type { Balance, BalanceEntry, Page, Profile } from '../records.ts'

/** Profiles, and one profile: its balances, how each came about, and what it was at any moment. */

const PAGE_SIZE = 50
/** Entries that the chart shows: the latest. The table leads on to all of them. */
const CHART_ENTRIES = 500

export function ProfilesPage() {
  const { query } = address.value
  const call = {
    method: 'GET',
    path: '/v2/profiles',
    query: { limit: PAGE_SIZE, page_cursor: query.get('cursor') ?? '' },
  } as const
  const { data, error } = useCall<Page<Profile>>(call)
  return (
    <>
      <Title>Profiles</Title>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Profiles">
        <table>
          <thead>
            <tr>
              <th>Nickname</th>
              <th>Id</th>
              <th>Type</th>
              <th>Account</th>
            </tr>
          </thead>
          <tbody>
            {data.value?.items.map(({ id, nickname, type, account_id, deactivated_at }) => (
              <tr key={id}>
                <td>
                  <Link to={`profiles/${id}`}>{nickname}</Link>{' '}
                  {deactivated_at !== undefined && <Status of="DISABLED" />}
                </td>
                <td>
                  <Id of={id} />
                </td>
                <td>{type}</td>
                <td>{account_id !== undefined && <Id of={account_id} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager next={data.value?.next_page_cursor} />
      <Curl of={call} />
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
      <table class="balances">
        <thead>
          <tr>
            <th>Asset</th>
            <th class="number">Available {at === '' ? 'now' : `at ${at.replace('T', ' ')}`}</th>
          </tr>
        </thead>
        <tbody>
          {data.value?.items.map((balance) => (
            <tr key={balance.asset}>
              <td>
                <button
                  type="button"
                  aria-pressed={balance.asset === asset}
                  onClick={() => setQuery({ asset: balance.asset, cursor: '' })}
                >
                  {balance.asset}
                </button>
              </td>
              <td class="number">
                <Amount amount={balance.available} asset={balance.asset} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {data.value?.items.length === 0 && <p class="quiet">No balance.</p>}
      <Curl of={balances} />
      {asset !== undefined && <History key={asset} id={id} asset={asset} />}
    </>
  )
}

/** The changes of a balance: a chart of the latest, and all of them a page at a time. */
function History({ id, asset }: { id: string; asset: string }) {
  const path = `/v2/profiles/${id}/entries`
  const cursor = address.value.query.get('cursor') ?? ''
  const charted = useCall<Page<BalanceEntry>>({
    method: 'GET',
    path,
    query: { assets: asset, limit: CHART_ENTRIES },
  })
  const call = {
    method: 'GET',
    path,
    query: { assets: asset, limit: PAGE_SIZE, page_cursor: cursor },
  } as const
  const { data, error } = useCall<Page<BalanceEntry>>(call)
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
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      <div class="scroll" tabIndex={0} role="region" aria-label={`Entries of ${asset}`}>
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>Transfer</th>
              <th>Event</th>
              <th class="number">Change</th>
              <th class="number">After</th>
              <th class="number">#</th>
            </tr>
          </thead>
          <tbody>
            {data.value?.items.map(({ transfer_id, event, amount, balance_after, sequence, created_at }) => (
              <tr key={sequence}>
                <td>
                  <Time at={created_at} />
                </td>
                <td>
                  <Link to={`transfers/${transfer_id}`}>{transfer_id}</Link>
                </td>
                <td>{event}</td>
                <td class="number">
                  <Amount amount={amount} asset={asset} sign />
                </td>
                <td class="number">
                  <Amount amount={balance_after} asset={asset} />
                </td>
                <td class="number">{sequence}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager next={data.value?.next_page_cursor} />
      <Curl of={call} />
    </>
  )
}
