import type { ComponentChildren } from 'preact'
import { get } from '../api.ts'
import { textCell } from '../../../src/contract/csv.ts'
import { Export, readerOf } from '../export.tsx'
import { inWords, signed, sumOf } from '../format.ts'
import { Choice, createdAt, filterOf, Filters, Paged, Period, Table, TextFilter, useList } from '../list.tsx'
import type { Column } from '../list.tsx'
import { useCall, useProfiles, useRecords } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, Name, Status, Time, Title } from '../parts.tsx'
import { nameOfParty } from '../records.ts'
import type { Asset, FiatAccount, Identity, Page, Profile, Transfer, Volume } from '../records.ts'
import { amountColumn } from '../tables.tsx'
import { Views } from '../views.tsx'

/** All transfers, with filters that the address keeps, a page at a time; and the table of transfers for other pages. */

const STATUSES = ['PENDING', 'COMPLETED', 'FAILED']
const INTERNAL = ['INTERNAL_TRANSFER_DEBIT', 'INTERNAL_TRANSFER_CREDIT']
const REWARDS = ['PAXOS_TRANSFER_DEBIT', 'PAXOS_TRANSFER_CREDIT']
const WIRES = ['WIRE_WITHDRAWAL', 'WIRE_DEPOSIT']
const TYPES = ['CRYPTO_WITHDRAWAL', 'CRYPTO_DEPOSIT', ...WIRES, ...INTERNAL, ...REWARDS]

const PATH = '/v2/transfer/transfers'
const FIAT_ACCOUNTS = '/v2/transfer/fiat-accounts'
const READ_FIAT_ACCOUNT = 'transfer:read_fiat_account'
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

const isFiltered = () => Object.values(filters()).some((value) => value !== '')

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
          prepare={readNames}
          cellsOf={cellsOf}
          note="amount, fee, total, notional_value and balance_change are numbers, of which a spreadsheet keeps 15 digits."
        />
      </Filters>
      <Paged list={list}>
        <Totals />
        <Transfers
          items={list.items ?? []}
          name="Transfers"
          none={isFiltered() ? 'No transfer has these properties.' : 'There is no transfer yet.'}
        />
      </Paged>
    </>
  )
}

/** Read when the list is there, and a part of its own: the list neither waits for the assets nor is drawn again for them. */
function AssetAndNetwork({ isNext }: { isNext: boolean }) {
  const call = get('/v2/assets')
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
  fees: string
  pending: string
}

const totalColumn = (name: string, amountOf: (total: Total) => string, sign: boolean): Column<Total> => ({
  name,
  number: true,
  cell: (total) => (
    <Amount amount={amountOf(total)} asset={total.asset} sign={sign && /[1-9]/.test(amountOf(total))} />
  ),
})

const TOTAL_COLUMNS: Column<Total>[] = [
  { name: 'Balance', cell: ({ asset }) => asset },
  totalColumn('In', (total) => total.in, true),
  totalColumn('Out', ({ out }) => out, true),
  totalColumn('Fees in it', ({ fees }) => fees, false),
  totalColumn('Pending', ({ pending }) => pending, true),
]

/** Sums the changes of balances, by the balance's asset, as `balance_change` in the CSV. What failed has moved nothing. */
function totalsOf(volumes: readonly Volume[]): Total[] {
  const moved = volumes.filter(({ status }) => status !== 'FAILED')
  return [...new Set(moved.map(({ balance_asset }) => balance_asset))].sort().map((asset) => {
    const sum = (amountOf: (volume: Volume) => string | false) =>
      sumOf(moved.flatMap((volume) => (volume.balance_asset === asset && amountOf(volume)) || []))
    const isDone = ({ status }: Volume) => status === 'COMPLETED'
    return {
      asset,
      in: sum((volume) => isDone(volume) && volume.direction === 'CREDIT' && volume.total),
      out: sum((volume) => isDone(volume) && volume.direction === 'DEBIT' && changeOf({ ...volume, asset })),
      fees: sum((volume) => isDone(volume) && volume.fee),
      pending: sum((volume) => !isDone(volume) && changeOf({ ...volume, asset })),
    }
  })
}

/** The sums of what the filters leave. Without a filter there are none: they would read all transfers. */
function Totals() {
  const query = filters()
  const hasTime = filterOf('from') + filterOf('before') !== ''
  const call = get('/v2/transfer/volumes', {
    ...query,
    ...(!hasTime && { 'created_at.gte': '1970-01-01T00:00:00Z' }),
  })
  const { data, error } = useCall<{ items: Volume[] }>(isFiltered() ? call : undefined)
  if (!isFiltered() || data.value?.items.length === 0) return null
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
          <p class="quiet">
            What the transfers change the balances by, with fees: the sum of balance_change in the CSV.
          </p>
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
  { ...amountColumn<Transfer>('Amount', (transfer) => transfer), named: true, onCard: 5 },
  { name: 'Balance change', number: true, onCard: 2, cell: (transfer) => <BalanceChange of={transfer} /> },
  {
    name: 'Counterparty',
    onCard: 6,
    cell: (transfer) => (
      <>
        {counterpartyOf(transfer)}{' '}
        <small>{transfer.crypto_network !== undefined && inWords(transfer.crypto_network)}</small>
      </>
    ),
  },
  {
    name: 'Profile',
    named: true,
    onCard: 8,
    cell: ({ profile_id }) => <ProfileLink id={profile_id} of={profiles} />,
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
    cell: ({ ref_id }) => ref_id !== undefined && <Name of={ref_id} />,
  },
]

/** A profile by its nickname, or by its id where the nickname may not be read. */
const ProfileLink = ({ id, of }: { id: string; of: ReadonlyMap<string | undefined, Profile> }) => {
  const nickname = of.get(id)?.nickname
  return nickname === undefined ? <Id of={id} /> : <Name of={nickname} to={`profiles/${id}`} />
}

export function Transfers({ items, name, none }: { items: readonly Transfer[]; name: string; none: string }) {
  const payeeOf = usePayees(items)
  const profiles = useProfiles(items.map(({ profile_id }) => profile_id))
  return items.length === 0 ? (
    <p class="quiet">{none}</p>
  ) : (
    <Table name={name} items={items} columns={columnsOf(profiles, payeeOf)} />
  )
}

/** Whom each of these transfers pays, or who paid it: a profile, an address, or the owner of a bank account. */
export function usePayees(items: readonly Transfer[]): (transfer: Transfer) => ComponentChildren {
  const groups = items.flatMap(({ type, group_id }) => (INTERNAL.includes(type) && group_id) || [])
  const sides =
    useCall<Page<Transfer>>(
      groups.length === 0
        ? undefined
        : get(PATH, { group_ids: [...new Set(groups)], type: INTERNAL, limit: 1_000 }),
    ).data.value?.items ?? []
  const otherOf = ({ type, group_id, direction }: Transfer) =>
    INTERNAL.includes(type)
      ? sides.find((side) => side.group_id === group_id && side.direction !== direction)
      : undefined
  const accounts = useRecords<FiatAccount>(
    FIAT_ACCOUNTS,
    READ_FIAT_ACCOUNT,
    items.map(({ fiat_account_id }) => fiat_account_id),
  )
  const profiles = useProfiles(sides.map(({ profile_id }) => profile_id))
  return (transfer) => {
    const other = otherOf(transfer)?.profile_id
    if (other !== undefined) return <ProfileLink id={other} of={profiles} />
    const { destination_address, fiat_account_id } = transfer
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
}

// ------------------------------------------------------------------------------------------------------- the CSV

/** Records that the exports of this page name. */
const profiles = new Map<string | undefined, Profile>()
const payees = new Map<string | undefined, FiatAccount>()
const identities = new Map<string | undefined, Identity>()
const readProfiles = readerOf(profiles, '/v2/profiles', 'funding:read_profile')
const readPayees = readerOf(payees, FIAT_ACCOUNTS, READ_FIAT_ACCOUNT)
const readIdentities = readerOf(identities, '/v2/identity/identities', 'identity:read_identity')

async function readNames(items: readonly Transfer[]): Promise<void> {
  await readProfiles(items.map(({ profile_id }) => profile_id))
  await readPayees(items.map(({ fiat_account_id }) => fiat_account_id))
  await readIdentities(items.map(({ identity_id }) => identity_id))
}

/** The columns of an export that are no text of the transfer. */
const CELLS: Record<string, (transfer: Transfer) => string | undefined> = {
  // A transfer that is COMPLETED never changes again.
  completed_at: ({ status, updated_at }) => (status === 'COMPLETED' ? updated_at : undefined),
  secondary_status: ({ secondary_status }) => secondary_status?.name,
  balance_change: changeOf,
  profile: ({ profile_id }) => profiles.get(profile_id)?.nickname,
  identity: ({ identity_id }) => nameOfParty(identities.get(identity_id)),
  payee: ({ fiat_account_id }) => nameOfParty(payees.get(fiat_account_id)?.fiat_account_owner),
  metadata: ({ metadata }) => metadata && JSON.stringify(metadata),
}
const NUMBERS = ['amount', 'fee', 'total', 'notional_value', 'balance_change']
const CSV_COLUMNS = [
  ...['id', 'created_at', 'updated_at', 'completed_at', 'type', 'direction', 'status', 'secondary_status'],
  ...['asset', ...NUMBERS, 'balance_asset', 'profile_id', 'profile', 'identity_id', 'identity', 'ref_id'],
  ...['crypto_network', 'crypto_tx_hash', 'destination_address', 'fiat_account_id', 'payee', 'group_id'],
  ...['memo', 'bank_reference', 'metadata'],
]

const cellsOf = (transfer: Transfer): string[] =>
  CSV_COLUMNS.map((name) => {
    const own = (transfer as unknown as Record<string, string | undefined>)[name]
    const text = name in CELLS ? CELLS[name]!(transfer) : own
    return NUMBERS.includes(name) ? (text ?? '') : textCell(text)
  })
