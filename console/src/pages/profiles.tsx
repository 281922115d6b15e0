import { useMemo } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { get } from '../api.ts'
import { BalanceChart } from '../chart.tsx'
import { textCell } from '../../../src/contract/csv.ts'
import { Export, FileButton, readerOf } from '../export.tsx'
import { inWords, timeOfId } from '../format.ts'
import { Freezes, useFreezes } from '../freezes.tsx'
import { createdAt, filterOf, Filters, ListOf, Period, Table, TextFilter, useList } from '../list.tsx'
import type { Column } from '../list.tsx'
import { useCall, useRecords, useTransfers } from '../load.ts'
import { Amount, Curl, Facts, Failure, Id, Link, Name, Status, Time, Title } from '../parts.tsx'
import { InUsd, usePrices, type UsdOf } from '../prices.tsx'
import { nameOfParty, type Account, type Identity, type Page, type Profile } from '../records.ts'
import type { Balance, BalanceEntry, Transfer } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn, ListPage } from '../tables.tsx'

/** Profiles, and one profile: its balances, how each came about, and what it was at any moment. */

/** Entries that the chart shows: the latest. The table leads on to all of them. */
const CHART_ENTRIES = 500

const columnsOf = (
  frozen: ReadonlySet<string | undefined>,
  ownerOf: (accountId: string | undefined) => string | undefined,
): Column<Profile>[] => [
  {
    name: 'Nickname',
    cell: ({ id, nickname, deactivated_at }) => (
      <>
        <Name of={nickname} to={`profiles/${id}`} />{' '}
        {deactivated_at !== undefined && <Status of="DISABLED" />} {frozen.has(id) && <Status of="FROZEN" />}
      </>
    ),
  },
  { name: 'Owner', cell: ({ account_id }) => ownerOf(account_id) },
  { name: 'Type', cell: ({ type }) => inWords(type) },
  { name: 'Created', cell: ({ id }) => <Time at={timeOfId(id)} /> },
  { name: 'Id', cell: ({ id }) => <Id of={id} /> },
  { name: 'Account', cell: ({ account_id }) => account_id !== undefined && <Id of={account_id} /> },
]

/** Finds the name of the person or institution that an account belongs to, in two requests for all profiles of a page. */
function useOwners(profiles: readonly Profile[] = []): (accountId: string | undefined) => string | undefined {
  const accounts = useRecords<Account>(
    '/v2/identity/accounts',
    'identity:read_account',
    profiles.map(({ account_id }) => account_id),
  )
  const identities = useRecords<Identity>(
    '/v2/identity/identities',
    'identity:read_identity',
    [...accounts.values()].map(({ identity_id }) => identity_id),
  )
  return (accountId) => nameOfParty(identities.get(accounts.get(accountId)?.identity_id))
}

export function ProfilesPage() {
  const list = useList<Profile>('/v2/profiles', { nickname: filterOf('nickname') })
  const ownerOf = useOwners(list.items)
  const frozen = new Set(useFreezes().data.value?.items.map(({ profile_id }) => profile_id))
  return (
    <ListPage
      list={list}
      name="Profiles"
      none="There is no such profile."
      columns={columnsOf(frozen, ownerOf)}
    >
      <TextFilter name="Whole nickname" filter="nickname" size={20} />
    </ListPage>
  )
}

export function ProfilePage({ id }: { id: string }) {
  const profile = useCall<Profile>(get(`/v2/profiles/${id}`))
  const at = address.value.query.get('at') ?? ''
  const balances = get(`/v2/profiles/${id}/balances`, { at: at === '' ? '' : `${at}:00Z` })
  const { data, error } = useCall<{ items: Balance[] }>(balances)
  const asset = address.value.query.get('asset') ?? data.value?.items[0]?.asset
  const usd = usePrices()
  return (
    <>
      <Failure of={profile.error.value ?? error.value} />
      {profile.data.value !== undefined && <Head profile={profile.data.value} />}
      <Filters>
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
      </Filters>
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
            ...amountColumn<Balance>(
              `Available ${at === '' ? 'now' : `at ${at.replace('T', ' ')}`}`,
              ({ available: amount, asset }) => ({ amount, asset }),
            ),
            onCard: 2,
          },
          ...(at === '' ? [valueColumn(usd)] : []),
        ]}
      />
      {data.value?.items.length === 0 && <p class="quiet">No balance.</p>}
      <Curl of={balances} />
      {may('reports:read_report') && (
        <p>
          <FileButton
            name={`statement-${id}`}
            call={get(`/v2/profiles/${id}/statement`, { from: filterOf('from'), to: filterOf('before') })}
            of="Save a statement"
          />{' '}
          <FileButton
            name={`proof-${id}`}
            call={get(`/v2/profiles/${id}/liability-proof`, { at: at ? `${at}:00Z` : filterOf('before') })}
            of="Save the proof of these balances"
            as="json"
          />
        </p>
      )}
      {asset !== undefined && <History key={asset} id={id} asset={asset} />}
    </>
  )
}

/** Who a profile is, and its state. A frozen one says so instead of "Active". */
function Head({ profile }: { profile: Profile }) {
  const { id, nickname, account_id, deactivated_at, description } = profile
  const ownerOf = useOwners([profile])
  const freezes = useFreezes()
  const isFrozen = freezes.data.value?.items.some(
    ({ profile_id }) => profile_id === undefined || profile_id === id,
  )
  const state = deactivated_at !== undefined ? 'DISABLED' : isFrozen === false ? 'ACTIVE' : undefined
  const owner = ownerOf(account_id)
  return (
    <header class="of-record">
      <Title of={nickname}>
        {nickname} {state !== undefined && <Status of={state} />}
      </Title>
      <Id of={id} whole />
      <Freezes profileId={id} changed={() => freezes.again()} />
      <Facts
        of={[
          ['Created', <Time at={timeOfId(id)} />],
          ['Disabled', deactivated_at && <Time at={deactivated_at} />],
          ['Owner', owner],
          ['Account', account_id && <Id of={account_id} />],
          ['Description', description || undefined],
        ]}
      />
    </header>
  )
}

const valueColumn = (usd: UsdOf | undefined): Column<Balance> => ({
  name: 'Value now',
  number: true,
  onCard: 3,
  cell: ({ asset, available }) => <InUsd usd={usd} amount={available} asset={asset} />,
})

/** What changed the balance: a transfer, or its refund. */
function nameOf({ event }: BalanceEntry, transfer: Transfer | undefined): string {
  if (transfer === undefined) return inWords(event)
  return event === 'REFUNDED' ? `Refund of ${inWords(transfer.type).toLowerCase()}` : inWords(transfer.type)
}

const entryColumns = (
  asset: string,
  transfers: ReadonlyMap<string | undefined, Transfer>,
): Column<BalanceEntry>[] => [
  { name: 'Time', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Transfer',
    cell: (entry) => (
      <>
        <Link to={`transfers/${entry.transfer_id}`}>{nameOf(entry, transfers.get(entry.transfer_id))}</Link>{' '}
        <Id of={entry.transfer_id} />
      </>
    ),
  },
  { name: 'Change', number: true, cell: ({ amount }) => <Amount amount={amount} asset={asset} sign /> },
  amountColumn('After', ({ balance_after: amount }) => ({ amount, asset })),
  { name: '#', number: true, cell: ({ sequence }) => sequence },
]

/** The transfers that a page of an export names. */
const exported = new Map<string | undefined, Transfer>()
const readTransfers = readerOf(exported, '/v2/transfer/transfers', 'transfer:read_transfer')
const readTransfersOf = (entries: readonly BalanceEntry[]) => {
  // A transfer that was pending may have ended since.
  exported.clear()
  return readTransfers(entries.map(({ transfer_id }) => transfer_id))
}
const CSV_COLUMNS = [
  ...['created_at', 'sequence', 'event', 'type', 'change', 'balance_after', 'asset'],
  ...['transfer_id', 'ref_id', 'memo', 'bank_reference', 'crypto_tx_hash', 'destination_address'],
]

function cellsOf({ created_at, sequence, event, transfer_id, ...entry }: BalanceEntry): string[] {
  const transfer = exported.get(transfer_id)
  return [
    ...[textCell(created_at), String(sequence), textCell(event), textCell(transfer?.type)],
    ...[entry.amount, entry.balance_after, textCell(entry.asset)],
    ...[transfer_id, transfer?.ref_id, transfer?.memo, transfer?.bank_reference].map(textCell),
    ...[transfer?.crypto_tx_hash, transfer?.destination_address].map(textCell),
  ]
}

/** The changes of a balance: a chart of the latest, and all of them a page at a time. */
function History({ id, asset }: { id: string; asset: string }) {
  const path = `/v2/profiles/${id}/entries`
  const charted = useCall<Page<BalanceEntry>>(get(path, { assets: asset, limit: CHART_ENTRIES }))
  const query = { assets: asset, ...createdAt() }
  const list = useList<BalanceEntry>(path, query)
  const transfers = useTransfers(list.items?.map(({ transfer_id }) => transfer_id))
  const entries = charted.data.value?.items
  const points = useMemo(
    () =>
      entries && [
        ...entries
          .map(({ created_at, balance_after }) => ({ at: created_at, amount: balance_after }))
          .reverse(),
        // The balance stays as it is.
        ...entries
          .slice(0, 1)
          .map(({ balance_after }) => ({ at: new Date().toISOString(), amount: balance_after })),
      ],
    [entries],
  )
  return (
    <>
      <h2>{asset} over time</h2>
      {points !== undefined && points.length > 0 && (
        <BalanceChart points={points} label={`Balance of ${asset}, the last ${points.length - 1} changes`} />
      )}
      <Filters>
        <Period />
        <Export<BalanceEntry>
          name={`${asset}-entries`}
          path={path}
          query={query}
          columns={CSV_COLUMNS}
          prepare={readTransfersOf}
          cellsOf={cellsOf}
        />
      </Filters>
      <ListOf
        list={list}
        name={`Entries of ${asset}`}
        none="Nothing has changed this balance."
        columns={entryColumns(asset, transfers)}
        keyOf={({ sequence }) => sequence}
      />
    </>
  )
}
