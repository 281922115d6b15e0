import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Call } from '../api.ts'
import { downSince } from '../connection.ts'
import { inWords } from '../format.ts'
import { FreezesOfCustomer } from '../freezes.tsx'
import { live, onEvents } from '../live.ts'
import { Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Failure, Id, Link, Loading, Status, Time, Title } from '../parts.tsx'
import {
  countOf,
  type Approval,
  type Balance,
  type Network,
  type Page,
  type Profile,
  type Transfer,
  type Webhook,
} from '../records.ts'
import { may, service } from '../session.ts'
import { BalancesOverTime, CustodyAndFreezes, VolumeOfADay } from './figures.tsx'
import { SandboxButtons } from './sandbox.tsx'
import { Transfers } from './transfers.tsx'
import { UndeliveredEvents } from './undelivered.tsx'

/** The home page: first what needs a person, oldest first; then the latest transfers and the figures. */

const SHOWN = 10
const waiting = {
  method: 'GET',
  path: '/v2/transfer/transfers',
  query: { statuses: ['PENDING'], order: 'ASC', limit: SHOWN },
} as const
const approvals = {
  method: 'GET',
  path: '/v2/approvals',
  query: { statuses: ['PENDING'], order: 'ASC', limit: SHOWN },
} as const
const webhooks = { method: 'GET', path: '/v2/webhooks', query: { limit: 100 } } as const
const networks = { method: 'GET', path: '/v2/networks' } as const
const latest = { method: 'GET', path: '/v2/transfer/transfers', query: { limit: SHOWN } } as const
const profiles = { method: 'GET', path: '/v2/profiles', query: { order: 'ASC', limit: 5 } } as const

/** Events come in bursts: the lists are read again once for each burst. */
const SETTLE_MS = 400

export function Home() {
  const lists = {
    waiting: useCall<Page<Transfer>>(waiting),
    approvals: useCall<Page<Approval>>(may('approvals:read_approval') ? approvals : undefined),
    webhooks: useCall<Page<Webhook>>(may('webhooks:read_webhook') ? webhooks : undefined),
    networks: useCall<{ items: Network[] }>(may('funding:read_profile') ? networks : undefined),
    latest: useCall<Page<Transfer>>(latest),
    profiles: useCall<Page<Profile>>(may('funding:read_profile') ? profiles : undefined),
  }
  useEffect(() => {
    let timer = 0
    const again = () => {
      clearTimeout(timer)
      timer = window.setTimeout(() => {
        for (const list of Object.values(lists)) list.again(true)
      }, SETTLE_MS)
    }
    const stop = onEvents(again)
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])
  const stopped = lists.networks.data.value?.items.filter(({ status }) =>
    ['DELAYED', 'STOPPED'].includes(status),
  )
  const error = Object.values(lists).find((list) => list.error.value !== undefined)?.error.value
  return (
    <>
      <div class="page-title">
        <Title>Needs attention</Title>
        <span class="quiet">
          {live.value ? '● live' : downSince.value === undefined ? '○ connecting' : '○ no connection'}
        </span>
      </div>
      <Failure of={error} />
      <Section
        name="Waiting, oldest first"
        count={countOf(lists.waiting.data.value)}
        of={lists.waiting.data.value}
        call={waiting}
      >
        <Transfers items={lists.waiting.data.value?.items ?? []} none="No transfer waits." />
        <Reasons networks={lists.networks.data.value?.items ?? []} />
      </Section>
      <div class="columns">
        {may('approvals:read_approval') && (
          <Section
            name="Approvals"
            count={countOf(lists.approvals.data.value)}
            of={lists.approvals.data.value}
            call={approvals}
          >
            <Approvals items={lists.approvals.data.value?.items ?? []} />
          </Section>
        )}
        {may('webhooks:read_webhook') && <UndeliveredEvents webhooks={lists.webhooks.data.value?.items} />}
        {may('funding:read_profile') && (
          <Section
            name="Delayed or stopped networks"
            count={String(stopped?.length ?? '')}
            of={stopped}
            call={networks}
          >
            {stopped?.length === 0 && <p class="quiet">No connected network is delayed or stopped.</p>}
            <ul class="plain">
              {stopped?.map(({ crypto_network, status }) => (
                <li key={crypto_network}>
                  {inWords(crypto_network)} <Status of={status} />
                </li>
              ))}
            </ul>
          </Section>
        )}
        <FreezesOfCustomer />
      </div>
      <VolumeOfADay />
      <CustodyAndFreezes networks={lists.networks.data.value?.items} />
      <h2>Latest transfers</h2>
      {lists.latest.data.value === undefined ? (
        <Loading />
      ) : (
        <Transfers items={lists.latest.data.value.items} none="There is no transfer yet." />
      )}
      <Curl of={latest} />
      {may('funding:read_profile') && (
        <>
          <BalancesOverTime />
          <h2>Balances by profile</h2>
          <div class="columns">
            {lists.profiles.data.value?.items.map((profile) => (
              <Balances key={profile.id} profile={profile} />
            ))}
          </div>
        </>
      )}
      {service.value?.mode === 'sandbox' && (
        <SandboxButtons profiles={lists.profiles.data.value?.items ?? []} />
      )}
    </>
  )
}

/** A part of the page with its count. */
const Section = ({
  name,
  count,
  of,
  call,
  children,
}: {
  name: string
  count: string
  of: unknown
  call: Call
  children: ComponentChildren
}) => (
  <section class="part">
    <h2>
      {name} <span class="count">{count}</span>
    </h2>
    {of === undefined ? <Loading /> : children}
    <Curl of={call} />
  </section>
)

/** Why payments wait on a network. Only operators of the deployment are told. */
const Reasons = ({ networks }: { networks: readonly Network[] }) => (
  <ul class="plain">
    {networks.flatMap(({ crypto_network, for_operators }) =>
      (for_operators?.waiting ?? []).map(({ code, detail, count, since }) => (
        <li key={crypto_network + code + detail}>
          <Link to="networks">{inWords(crypto_network)}</Link>: {count} since <Time at={since} />{' '}
          <Status of={code} /> {detail}
        </li>
      )),
    )}
  </ul>
)

const Approvals = ({ items }: { items: readonly Approval[] }) =>
  items.length === 0 ? (
    <p class="quiet">Nothing waits for approval.</p>
  ) : (
    <ul class="plain">
      {items.map(({ id, subject, approvals: given, required, role, deadline }) => (
        <li key={id}>
          {subject.type === 'transfer' ? (
            <Link to={`transfers/${subject.id}`}>Transfer</Link>
          ) : (
            inWords(subject.type)
          )}{' '}
          <Id of={subject.id} /> {given} of {required} of role {inWords(role).toLowerCase()}, until{' '}
          <Time at={deadline} />
        </li>
      ))}
    </ul>
  )

const BALANCE_COLUMNS: Column<Balance>[] = [
  { name: 'Asset', onCard: 1, cell: ({ asset }) => asset },
  {
    name: 'Available',
    number: true,
    onCard: 2,
    cell: ({ asset, available }) => <Amount amount={available} asset={asset} />,
  },
]

function Balances({ profile: { id, nickname } }: { profile: Profile }) {
  const call = { method: 'GET', path: `/v2/profiles/${id}/balances` } as const
  const { data } = useCall<{ items: Balance[] }>(call)
  return (
    <section class="part">
      <h3>
        <Link to={`profiles/${id}`}>{nickname}</Link>
      </h3>
      <Table
        name={`Balances of ${nickname}`}
        items={data.value?.items ?? []}
        keyOf={({ asset }) => asset}
        columns={BALANCE_COLUMNS}
      />
      {data.value?.items.length === 0 && <p class="quiet">No balance.</p>}
      <Curl of={call} />
    </section>
  )
}
