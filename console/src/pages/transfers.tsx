import type { ComponentChildren } from 'preact'
import { send } from '../api.ts'
import { textCell } from '../csv.ts'
import { Export } from '../export.tsx'
import { inWords, shortName, signed, sumOf } from '../format.ts'
import {
  Choice,
  createdAt,
  filterOf,
  Filters,
  Paged,
  Period,
  Table,
  TextFilter,
  useList,
  type Column,
} from '../list.tsx'
import { useCall, useRecords } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, Status, Time, Title } from '../parts.tsx'
import {
  nameOfParty,
  type Asset,
  type FiatAccount,
  type Page,
  type Profile,
  type Transfer,
  type Volume,
} from '../records.ts'
import { may } from '../session.ts'
import { amountColumn } from '../tables.tsx'
import { Views } from '../views.tsx'

/** All transfers, with filters that the address keeps, a page at a time; and the table of transfers for other pages. */

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
const INTERNAL = ['INTERNAL_TRANSFER_DEBIT', 'INTERNAL_TRANSFER_CREDIT']

const PATH = '/v2/transfer/transfers'
const PROFILES = '/v2/profiles'
const READ_PROFILE = 'funding:read_profile'
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The filters in the address, as the API names them. A counterparty is an address, or a bank account by its id. */
function filters(): Record<string, string> {
  const to = filterOf('to')
  return {
    statuses: filterOf('status'),
    type: filterOf('type'),
    profile_ids: filterOf('profile'),
    assets: filterOf('asset'),
    crypto_networks: filterOf('network'),
    'amount.gte': filterOf('least'),
    'amount.lte': filterOf('most'),
    [UUID.test(to) ? 'fiat_account_ids' : 'destination_addresses']: to,
    ...createdAt(),
  }
}

export function TransfersPage() {
  const query = { ...filters(), order: filterOf('order') }
  const list = useList<Transfer>(PATH, query)
  return (
    <>
      <Title>Transfers</Title>
      <Views />
      <Filters>
        <Choice name="Status" filter="status" of={STATUSES} />
        <Choice name="Type" filter="type" of={TYPES} />
        <AssetAndNetwork isNext={list.items !== undefined} />
        <TextFilter name="Amount from" filter="least" size={9} inputMode="decimal" />
        <TextFilter name="Amount to" filter="most" size={9} inputMode="decimal" />
        <TextFilter name="To (address, or id of a bank account)" filter="to" size={24} />
        <Period />
        <Choice name="Order" filter="order" of={['ASC']} any="Newest first" say={() => 'Oldest first'} />
        <Export<Transfer>
          name="transfers"
          path={PATH}
          query={query}
          columns={CSV_COLUMNS}
          prepare={readNicknames}
          cellsOf={cellsOf}
          note="amount, fee, total, notional_value and balance_change are numbers, of which a spreadsheet keeps 15 digits."
        />
      </Filters>
      <Paged list={list}>
        <Totals />
        <Transfers items={list.items ?? []} none="No transfer has these properties." />
      </Paged>
    </>
  )
}

/** Read when the list is there, and a part of its own: the list neither waits for the assets nor is drawn again for them. */
function AssetAndNetwork({ isNext }: { isNext: boolean }) {
  const call = { method: 'GET', path: '/v2/assets' } as const
  const assets = useCall<{ items: Asset[] }>(isNext ? call : undefined).data.value?.items ?? []
  const networks = assets.flatMap((asset) => asset.networks.map(({ crypto_network }) => crypto_network))
  return (
    <>
      <Choice name="Asset" filter="asset" of={assets.map(({ asset }) => asset)} say={(asset) => asset} />
      <Choice name="Network" filter="network" of={[...new Set(networks)].sort()} />
    </>
  )
}

// ------------------------------------------------------------------------------------------------------- totals

interface Total {
  asset: string
  in: string
  out: string
  pending: string[]
}

const Sum = ({ of, asset }: { of: string; asset: string }) =>
  /[1-9]/.test(of) ? <Amount amount={of} asset={asset} sign /> : <>0</>

const TOTAL_COLUMNS: Column<Total>[] = [
  { name: 'Asset', cell: ({ asset }) => asset },
  { name: 'In', number: true, cell: (total) => <Sum of={total.in} asset={total.asset} /> },
  { name: 'Out', number: true, cell: (total) => <Sum of={total.out} asset={total.asset} /> },
  {
    name: 'Pending',
    number: true,
    cell: ({ pending, asset }) =>
      pending.length === 0
        ? '0'
        : pending.map((sum) => (
            <div key={sum}>
              <Sum of={sum} asset={asset} />
            </div>
          )),
  },
]

/** Sums what has come in, gone out and is under way, by asset. What failed has moved nothing. */
function totalsOf(volumes: readonly Volume[]): Total[] {
  return [...new Set(volumes.map(({ asset }) => asset))].sort().map((asset) => {
    const sum = (status: string, direction: string) =>
      sumOf(
        volumes
          .filter((one) => one.asset === asset && one.status === status && one.direction === direction)
          .map(({ amount }) => amount),
      )
    const pending = [sum('PENDING', 'CREDIT'), `-${sum('PENDING', 'DEBIT')}`]
    return {
      asset,
      in: sum('COMPLETED', 'CREDIT'),
      out: `-${sum('COMPLETED', 'DEBIT')}`,
      pending: pending.filter((one) => /[1-9]/.test(one)),
    }
  })
}

/** The sums of what the filters leave. Without a filter there are none: they would read all transfers. */
function Totals() {
  const query = filters()
  const isFiltered = Object.values(query).some((value) => value !== '')
  const hasTime = filterOf('from') + filterOf('before') !== ''
  const call = {
    method: 'GET',
    path: '/v2/transfer/volumes',
    query: { ...query, ...(!hasTime && { 'created_at.gte': '1970-01-01T00:00:00Z' }) },
  } as const
  const { data, error } = useCall<{ items: Volume[] }>(isFiltered ? call : undefined)
  if (!isFiltered || data.value?.items.length === 0) return null
  return (
    <section class="part totals">
      <h2>Totals of these transfers</h2>
      <Failure of={error.value} />
      {data.value !== undefined && (
        <>
          <Table
            name="Totals"
            items={totalsOf(data.value.items)}
            columns={TOTAL_COLUMNS}
            keyOf={({ asset }) => asset}
          />
          <p class="quiet">Amounts without fees. A failed transfer counts in none.</p>
        </>
      )}
      <Curl of={call} />
    </section>
  )
}

// ------------------------------------------------------------------------------------------------------- the table

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

const columnsOf = (
  profiles: ReadonlyMap<string | undefined, Profile>,
  counterpartyOf: (transfer: Transfer) => ComponentChildren,
): Column<Transfer>[] => [
  { name: 'Created', onCard: 3, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Type',
    onCard: 1,
    cell: ({ id, type }) => <Link to={`transfers/${id}`}>{inWords(type)}</Link>,
  },
  { ...amountColumn<Transfer>('Amount', ({ amount }) => amount), named: true, onCard: 5 },
  { name: 'Balance change', number: true, onCard: 2, cell: (one) => <BalanceChange of={one} /> },
  {
    name: 'Counterparty',
    onCard: 6,
    cell: (one) => (
      <>
        {counterpartyOf(one)} <small>{one.crypto_network !== undefined && inWords(one.crypto_network)}</small>
      </>
    ),
  },
  {
    name: 'Profile',
    named: true,
    onCard: 8,
    cell: ({ profile_id }) => (
      <div class="ref">
        <ProfileLink id={profile_id} of={profiles} />
      </div>
    ),
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
    name: 'ref_id',
    onCard: 9,
    cell: ({ ref_id }) => ref_id !== undefined && <div class="ref">{ref_id}</div>,
  },
]

/** A profile by its nickname, or by its id where the nickname may not be read. */
const ProfileLink = ({ id, of }: { id: string; of: ReadonlyMap<string | undefined, Profile> }) => {
  const nickname = of.get(id)?.nickname
  return nickname === undefined ? <Id of={id} /> : <Link to={`profiles/${id}`}>{shortName(nickname)}</Link>
}

/** Transfers, a line each. */
export function Transfers({ items, none }: { items: readonly Transfer[]; none: string }) {
  const groups = items.flatMap(({ type, group_id }) => (INTERNAL.includes(type) && group_id) || [])
  const sides =
    useCall<Page<Transfer>>(
      groups.length === 0
        ? undefined
        : {
            method: 'GET',
            path: PATH,
            query: { group_ids: [...new Set(groups)], type: INTERNAL, limit: 1_000 },
          },
    ).data.value?.items ?? []
  const otherOf = ({ type, group_id, direction }: Transfer) =>
    INTERNAL.includes(type)
      ? sides.find((side) => side.group_id === group_id && side.direction !== direction)
      : undefined
  const accounts = useRecords<FiatAccount>(
    '/v2/transfer/fiat-accounts',
    'transfer:read_fiat_account',
    items.map(({ fiat_account_id }) => fiat_account_id),
  )
  const profiles = useRecords<Profile>(
    PROFILES,
    READ_PROFILE,
    [...items, ...sides].map(({ profile_id }) => profile_id),
  )
  const counterpartyOf = (one: Transfer) => {
    const other = otherOf(one)?.profile_id
    if (other !== undefined) return <ProfileLink id={other} of={profiles} />
    const { destination_address, fiat_account_id } = one
    if (fiat_account_id === undefined)
      return destination_address !== undefined && <Id of={destination_address} />
    const account = accounts.get(fiat_account_id)
    const number = account?.fiat_network_instructions.wire.account_number
    return account === undefined ? (
      <Id of={fiat_account_id} />
    ) : (
      <>
        {nameOfParty(account.fiat_account_owner)} {number !== undefined && `…${number.slice(-4)}`}
      </>
    )
  }
  return items.length === 0 ? (
    <p class="quiet">{none}</p>
  ) : (
    <Table
      name="Transfers"
      items={items}
      columns={columnsOf(profiles, counterpartyOf)}
      keyOf={({ id }) => id}
    />
  )
}

// ------------------------------------------------------------------------------------------------------- the CSV

/** The columns of an export. Amounts are numbers; all others are text. */
const AMOUNTS = ['amount', 'fee', 'total', 'notional_value'] as const
const CSV_COLUMNS = [
  'id',
  'created_at',
  'updated_at',
  'completed_at',
  'type',
  'direction',
  'status',
  'secondary_status',
  'asset',
  ...AMOUNTS,
  'balance_change',
  'balance_asset',
  'profile_id',
  'profile',
  'ref_id',
  'crypto_network',
  'crypto_tx_hash',
  'destination_address',
  'fiat_account_id',
  'group_id',
  'memo',
  'metadata',
] as const

/** The nicknames of profiles in the exports of this page. */
const nicknames = new Map<string, string>()
/** Ids in one filter of the API. */
const IDS_MAX = 100

async function readNicknames(items: readonly Transfer[]): Promise<void> {
  if (!may(READ_PROFILE)) return
  const missing = [...new Set(items.map(({ profile_id }) => profile_id))].filter((id) => !nicknames.has(id))
  for (let at = 0; at < missing.length; at += IDS_MAX) {
    const ids = missing.slice(at, at + IDS_MAX)
    const found = await send<Page<Profile>>({ method: 'GET', path: PROFILES, query: { ids, limit: IDS_MAX } })
    for (const { id, nickname } of found.items) nicknames.set(id, nickname)
  }
}

const cellsOf = (transfer: Transfer): string[] =>
  CSV_COLUMNS.map((name) => {
    if (name === 'metadata') return textCell(transfer.metadata && JSON.stringify(transfer.metadata))
    // A transfer that is COMPLETED never changes again.
    if (name === 'completed_at') return textCell(transfer.status === 'COMPLETED' ? transfer.updated_at : '')
    if (name === 'secondary_status') return textCell(transfer.secondary_status?.name)
    if (name === 'balance_change') return changeOf(transfer)
    if (name === 'profile') return textCell(nicknames.get(transfer.profile_id))
    const isAmount = AMOUNTS.some((amount) => amount === name)
    return isAmount ? (transfer[name] ?? '') : textCell(transfer[name])
  })
