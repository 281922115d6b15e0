import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { get, type Call } from '../api.ts'
import { downSince } from '../connection.ts'
import { inWords, readable } from '../format.ts'
import { Frozen, FreezesOfCustomer, useFreezes } from '../freezes.tsx'
import { live } from '../live.ts'
import { useCall, useEvery, useFresh, useTransfers, type Loaded } from '../load.ts'
import { Amount, Answered, Curl, Failure, Link, Loading, Status, Time, Title } from '../parts.tsx'
import { usePrices } from '../prices.tsx'
import { countOf } from '../records.ts'
import type { Activity, Approval, BalanceHistory, Network, OpenWire, Page } from '../records.ts'
import type { Profile, Transfer, Volume, Webhook } from '../records.ts'
import { may, service, session } from '../session.ts'
import { BalancesByProfile, BalancesOfAll, Figures } from './figures.tsx'
import { Custody } from './networks.tsx'
import { isLate, needsPerson } from './transfer-state.ts'
import { Transfers } from './transfers.tsx'
import { UndeliveredEvents, useUndelivered } from './undelivered.tsx'

/** The home page: four figures; what needs a person, and nothing else; then what waits, the latest transfers and balances. */

const SHOWN = 10
const transfers = get('/v2/transfer/transfers')
const waiting = { ...transfers, query: { statuses: ['PENDING'], order: 'ASC', limit: 100 } }
const latest = { ...transfers, query: { statuses: ['COMPLETED', 'FAILED'], limit: SHOWN } }
/** What waiting transfers are compared with. */
const completedOf = (types: readonly string[]) => ({
  ...transfers,
  query: { type: types, statuses: ['COMPLETED'], limit: 100 },
})
const approvals = get('/v2/approvals', { statuses: ['PENDING'], order: 'ASC', limit: SHOWN })
const webhooks = get('/v2/webhooks', { limit: 100 })
const networks = get('/v2/networks')
const profiles = get('/v2/profiles', { order: 'ASC', limit: SHOWN })
const history = get('/v2/balances/history')
const volumes = get('/v2/transfer/volumes')
const wires = get('/v2/operators/wires')
const activity = get('/v2/operators/activity')

/** Sums cost more than lists, and are read less often. */
const SUMS_MS = 10_000

const readAgain = (lists: Record<string, Pick<Loaded<unknown>, 'again'>>) =>
  Object.values(lists).forEach(({ again }) => again(true))

/** What the page shows, each as fresh as its cost allows. */
function useHome() {
  const seesMoney = may('funding:read_profile')
  const lists = {
    waiting: useCall<Page<Transfer>>(waiting),
    approvals: useCall<Page<Approval>>(may('approvals:read_approval') ? approvals : undefined),
    webhooks: useCall<Page<Webhook>>(may('webhooks:read_webhook') ? webhooks : undefined),
    networks: useCall<{ items: Network[] }>(seesMoney ? networks : undefined),
    freezes: useFreezes(),
    wires: useCall<{ items: OpenWire[] }>(readsWires() ? wires : undefined),
    latest: useCall<Page<Transfer>>(latest),
  }
  const types = [...new Set(lists.waiting.data.value?.items.map(({ type }) => type))].sort()
  const sums = {
    completed: useCall<Page<Transfer>>(types.length > 0 ? completedOf(types) : undefined),
    profiles: useCall<Page<Profile>>(seesMoney ? profiles : undefined),
    history: useCall<{ items: BalanceHistory[] }>(seesMoney ? history : undefined),
    volumes: useCall<{ items: Volume[] }>(volumes),
    activity: useCall<{ items: Activity[] }>(may('operators:read_activity') ? activity : undefined),
  }
  const reading = useSignal(0)
  const now = useSignal(Date.now())
  useFresh(() => readAgain(lists))
  useFresh(
    () => {
      readAgain(sums)
      reading.value++
    },
    /./,
    SUMS_MS,
  )
  useEvery(SUMS_MS, () => {
    now.value = Date.now()
    // A wire that may be sent now makes no event, nor does the end of an hour.
    readAgain({ wires: lists.wires, activity: sums.activity })
  })
  return { ...lists, ...sums, reading: reading.value, now: now.value, usd: usePrices() }
}

export function Home() {
  const read = useHome()
  const { data: pending } = read.waiting
  const more = pending.value?.next_page_cursor === undefined ? '' : '+'
  // Each payment stands once on the page.
  const above = [
    ...(lateOf(read) ?? []).map(({ id }) => id),
    ...(read.wires.data.value?.items ?? []).filter(isToSend).map(({ transfer_id }) => transfer_id),
    ...askedOf(read),
  ]
  const others = pending.value?.items.filter(({ id }) => !above.includes(id))
  return (
    <>
      <div class="page-title">
        <Title>Home</Title>
        <span class="quiet">
          {live.value ? '● live' : downSince.value === undefined ? '○ connecting' : '○ no connection'}
        </span>
      </div>
      <Figures
        usd={read.usd}
        now={read.now}
        history={read.history.data.value?.items}
        pending={pending.value}
        approvals={read.approvals.data.value}
        wires={readsWires() ? read.wires.data.value?.items.filter(isToSend) : []}
        activity={read.activity.data.value?.items}
        volumes={read.volumes.data.value?.items}
      />
      <Attention read={read} />
      {others !== undefined && others.length > 0 && (
        <Section name="Also waiting, oldest first" count={`${others.length}${more}`} call={waiting}>
          <Transfers items={others.slice(0, SHOWN)} name="Also waiting" none="" />
        </Section>
      )}
      <h2>Latest transfers that have ended</h2>
      <Answered of={read.latest}>
        {({ items }) => <Transfers items={items} name="Latest transfers" none="There is no transfer yet." />}
      </Answered>
      <Curl of={latest} />
      <div class="columns">
        {read.profiles.data.value !== undefined && (
          <BalancesByProfile profiles={read.profiles.data.value} reading={read.reading} />
        )}
        {read.history.data.value !== undefined && (
          <BalancesOfAll history={read.history.data.value.items} usd={read.usd} />
        )}
      </div>
      <Curl of={history} />
    </>
  )
}

const Section = ({
  name,
  count,
  call,
  children,
}: {
  name: string
  count: string
  call?: Call
  children: ComponentChildren
}) => (
  <section class="part">
    <h2>
      {name} <span class="count">{count}</span>
    </h2>
    {children}
    {call !== undefined && <Curl of={call} />}
  </section>
)

/** Something that may need a person: where it has no items, it is not shown. */
interface Part {
  items: readonly unknown[] | undefined
  body: () => ComponentChildren
}

function Attention({ read }: { read: ReturnType<typeof useHome> }) {
  const undelivered = useUndelivered(read.webhooks.data.value?.items)
  const asked = read.approvals.data.value
  const ofAsked = useTransfers(asked?.items.map(({ subject }) => subject.id))
  const parts: Part[] = [
    ofTransfers(read),
    ...(may('approvals:read_approval') ? [ofApprovals(asked, ofAsked)] : []),
    ...(readsWires() ? [ofWires(read.wires.data.value?.items)] : []),
    ...(may('webhooks:read_webhook')
      ? [part('Undelivered events', undelivered.items, (items) => <UndeliveredEvents items={items} />)]
      : []),
    ...(may('operators:read_freeze')
      ? [{ items: read.freezes.data.value?.items, body: () => <FreezesOfCustomer key="frozen" /> }]
      : []),
    ...(may('funding:read_profile') ? ofNetworks(read.networks.data.value?.items) : []),
  ]
  const reads = [
    read.waiting,
    read.wires,
    read.approvals,
    read.webhooks,
    read.networks,
    read.freezes,
    undelivered,
  ]
  const error = reads.find((call) => call.error.value !== undefined)?.error.value
  const shown = parts.filter(({ items }) => items !== undefined && items.length > 0)
  const isKnown = parts.every(({ items }) => items !== undefined)
  return (
    <>
      <Failure of={error} />
      {!isKnown && error === undefined && <Loading />}
      {isKnown && error === undefined && shown.length === 0 && <p role="status">Nothing needs attention.</p>}
      {shown.length > 0 && <div class="columns">{shown.map(({ body }) => body())}</div>}
    </>
  )
}

/** A part with a heading of its own. */
const part = <T,>(
  name: string,
  items: readonly T[] | undefined,
  body: (items: readonly T[]) => ComponentChildren,
  { call, count }: { call?: Call; count?: string } = {},
): Part => ({
  items,
  body: () => (
    <Section
      key={name}
      name={name}
      count={count ?? String(items!.length)}
      {...(call !== undefined && { call })}
    >
      {body(items!)}
    </Section>
  ),
})

const lines = <T,>(
  name: string,
  items: readonly T[] | undefined,
  keyOf: (item: T) => string,
  line: (item: T) => ComponentChildren,
  more: { call?: Call; count?: string } = {},
): Part =>
  part(
    name,
    items,
    (shown) => (
      <ul class="plain">
        {shown.map((item) => (
          <li key={keyOf(item)}>{line(item)}</li>
        ))}
      </ul>
    ),
    more,
  )

const askedOf = ({ approvals }: ReturnType<typeof useHome>) =>
  approvals.data.value?.items.map(({ subject }) => subject.id) ?? []

/** The transfers that wait for longer than is usual. An approval is asked for by itself. */
function lateOf(read: ReturnType<typeof useHome>) {
  const pending = read.waiting.data.value?.items
  const usual = pending?.length === 0 ? [] : read.completed.data.value?.items
  const asked = askedOf(read)
  return (
    usual && pending?.filter((transfer) => !asked.includes(transfer.id) && isLate(transfer, usual, read.now))
  )
}

const ofTransfers = (read: ReturnType<typeof useHome>): Part =>
  part('Waiting for longer than usual', lateOf(read), (items) => (
    <Transfers items={items.slice(0, SHOWN)} name="Waiting for longer than usual" none="" />
  ))

const ofApprovals = (page: Page<Approval> | undefined, transfers: ReturnType<typeof useTransfers>): Part =>
  lines(
    'Approvals',
    page?.items,
    ({ id }) => id,
    ({ id, subject, approvals: given, required, role, deadline }) => (
      <>
        <Link to={`approvals/${id}`}>{inWords(transfers.get(subject.id)?.type ?? subject.type)}</Link>{' '}
        <Amount amount={transfers.get(subject.id)?.amount} asset={transfers.get(subject.id)?.asset} /> {given}{' '}
        of {required} of role {inWords(role).toLowerCase()}, until <Time at={deadline} />
      </>
    ),
    { call: approvals, count: countOf(page) },
  )

/** Whether somebody is to send the wire now. One that waits for its approval, or is frozen, is not. */
const isToSend = ({ customer_id, state }: OpenWire): boolean =>
  customer_id === session.value!.customer_id && state !== 'WAITING'

/** In a sandbox, the simulated bank sends wires by itself. */
const readsWires = () => may('operators:read_wire') && service.value?.mode === 'live'

const ofWires = (open: readonly OpenWire[] | undefined): Part =>
  lines(
    'Wires to send',
    open?.filter(isToSend),
    ({ transfer_id }) => transfer_id,
    ({ amount, asset, payee, state }) => (
      <>
        <Link to="wires">
          <Amount amount={amount} asset={asset} />
        </Link>{' '}
        to {payee} <Status of={state} />
      </>
    ),
    { call: wires },
  )

const NetworkLink = ({ of }: { of: string }) => <Link to="networks">{inWords(of)}</Link>

/** Networks that are delayed, stopped or frozen, and what waits on them. Operators of the deployment see more of it. */
function ofNetworks(items: readonly Network[] | undefined): Part[] {
  const each = <T,>(figuresOf: (figures: NonNullable<Network['for_operators']>) => readonly T[]) =>
    items?.flatMap(({ crypto_network, for_operators }) =>
      for_operators === undefined
        ? []
        : figuresOf(for_operators).map((figure) => ({ ...figure, crypto_network })),
    )
  return [
    lines(
      'Delayed or stopped networks',
      items?.filter(
        ({ status, for_operators }) =>
          ['DELAYED', 'STOPPED'].includes(status) || for_operators?.reachable === false,
      ),
      ({ crypto_network }) => crypto_network,
      ({ crypto_network, status, for_operators }) => (
        <>
          <NetworkLink of={crypto_network} />{' '}
          <Status of={for_operators?.reachable === false ? 'NOT REACHABLE' : status} />
        </>
      ),
      { call: networks },
    ),
    lines(
      'Payments that need an operator',
      each(({ waiting: reasons }) => reasons.filter(({ code }) => needsPerson(code))),
      ({ crypto_network, code, detail }) => crypto_network + code + detail,
      ({ crypto_network, code, detail, count, since }) => (
        <>
          <NetworkLink of={crypto_network} />: {count} since <Time at={since} /> <Status of={code} />{' '}
          {readable(detail)}
        </>
      ),
    ),
    lines(
      'Frozen networks',
      each(({ frozen }) => frozen),
      ({ crypto_network, reason }) => crypto_network + reason,
      ({ crypto_network, reason, detail, since }) => (
        <>
          <NetworkLink of={crypto_network} /> <Frozen reason={reason} detail={detail} since={since} />
        </>
      ),
    ),
    // While a payment is in flight, it has left the wallet and not yet the ledger.
    part(
      'Custody below the ledger, with nothing in flight',
      items?.filter(
        ({ for_operators: figures }) =>
          figures?.in_flight === 0 &&
          figures.custody.some(({ difference = '' }) => difference.startsWith('-')),
      ),
      (shown) =>
        shown.map(({ crypto_network, for_operators }) => (
          <div key={crypto_network}>
            <h3>{inWords(crypto_network)}</h3>
            <Custody of={for_operators!.custody} name={crypto_network} />
          </div>
        )),
    ),
  ]
}
