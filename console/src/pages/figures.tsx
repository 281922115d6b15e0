import { useMemo } from 'preact/hooks'
import { BalanceChart } from '../chart.tsx'
import { inWords } from '../format.ts'
import { Frozen } from '../freezes.tsx'
import { Table } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Failure, Link, Loading, Status } from '../parts.tsx'
import type { BalanceHistory, Network, Volume } from '../records.ts'
import { may } from '../session.ts'
import { Custody } from './networks.tsx'
import { BalanceChange } from './transfers.tsx'

/** Figures of the home page: volume and balances; for operators of the deployment also custody and frozen networks. */

const volumes = { method: 'GET', path: '/v2/transfer/volumes' } as const

/** What moved in the last 24 hours. */
export function VolumeOfADay() {
  const { data, error } = useCall<{ items: Volume[] }>(volumes)
  return (
    <section class="part">
      <h2>The last 24 hours</h2>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value?.items.length === 0 && <p class="quiet">Nothing has moved.</p>}
      {data.value !== undefined && data.value.items.length > 0 && (
        <Table
          name="The last 24 hours"
          items={data.value.items}
          keyOf={({ type, asset, status, direction }) => `${type} ${asset} ${status} ${direction}`}
          columns={[
            { name: 'Type', cell: ({ type }) => <Link to={`transfers?type=${type}`}>{inWords(type)}</Link> },
            { name: 'Status', cell: ({ status }) => <Status of={status} /> },
            { name: 'Transfers', number: true, cell: ({ count }) => count },
            {
              name: 'Sum',
              number: true,
              cell: (volume) => <BalanceChange of={{ ...volume, total: volume.amount }} />,
            },
          ]}
        />
      )}
      <Curl of={volumes} />
    </section>
  )
}

const history = { method: 'GET', path: '/v2/balances/history' } as const

/** The balances of all profiles together over the last 30 days, by asset. */
export function BalancesOverTime() {
  const { data, error } = useCall<{ items: BalanceHistory[] }>(history)
  return (
    <section>
      <h2>Balances of all profiles</h2>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      {data.value?.items.length === 0 && <p class="quiet">No profile has had a balance.</p>}
      <div class="columns">
        {data.value?.items.map(({ asset, points }) => (
          <OverTime key={asset} asset={asset} points={points} />
        ))}
      </div>
      <Curl of={history} />
    </section>
  )
}

function OverTime({ asset, points }: BalanceHistory) {
  const drawn = useMemo(() => points.map(({ at, available }) => ({ at, amount: available })), [points])
  const label = `${asset} of all profiles, the last ${points.length - 1} days`
  return (
    <section class="part">
      <h3>
        <Amount amount={points.at(-1)!.available} asset={asset} />
      </h3>
      <BalanceChart points={drawn} label={label} />
    </section>
  )
}

/** Custody compared with the ledgers for each connected real network, and every freeze of a network. */
export function CustodyAndFreezes({ networks }: { networks: readonly Network[] | undefined }) {
  if (!may('operators:read_network')) return null
  const seen = (networks ?? []).filter(({ for_operators }) => for_operators !== undefined)
  const real = seen.filter(({ for_operators }) => for_operators!.reachable !== undefined)
  const frozen = seen.flatMap(({ crypto_network, for_operators }) =>
    for_operators!.frozen.map((freeze) => ({ ...freeze, crypto_network })),
  )
  return (
    <section class="part">
      <h2>Custody against the ledger</h2>
      {networks === undefined && <Loading />}
      {networks !== undefined && real.length === 0 && <p class="quiet">No real network is connected.</p>}
      {real.map(({ crypto_network, for_operators }) => (
        <div key={crypto_network}>
          <h3>{inWords(crypto_network)}</h3>
          <Custody of={for_operators!.custody} name={crypto_network} />
        </div>
      ))}
      <h2>
        Frozen networks <span class="count">{networks !== undefined && frozen.length}</span>
      </h2>
      {networks !== undefined && frozen.length === 0 && <p class="quiet">No network is frozen.</p>}
      <ul class="plain">
        {frozen.map(({ crypto_network, reason, detail, since }) => (
          <li key={crypto_network + reason}>
            <Link to="networks">{inWords(crypto_network)}</Link>{' '}
            <Frozen reason={reason} detail={detail} since={since} />
          </li>
        ))}
      </ul>
    </section>
  )
}
