import { get } from '../api.ts'
import { inWords, readable, short } from '../format.ts'
import { Frozen } from '../freezes.tsx'
import { Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Curl, Link, Status, Time, Title } from '../parts.tsx'
import type { Network } from '../records.ts'
import { nameOfCustomer } from '../session.ts'
import { amountColumn, TableOf } from '../tables.tsx'

/** Networks: their state; for operators of the deployment also custody, the hot wallet and what waits. */

const networksCall = get('/v2/networks')
type Figures = NonNullable<Network['for_operators']>

const finalityOf = ({ confirmations, finality, chain }: Network) =>
  confirmations !== undefined
    ? `${confirmations} confirmations`
    : finality !== undefined
      ? inWords(finality)
      : chain === 'SIMULATED'
        ? '–'
        : ''

const COLUMNS: Column<Network>[] = [
  { name: 'Network', cell: ({ crypto_network }) => inWords(crypto_network) },
  { name: 'Status', cell: ({ status }) => <Status of={status} /> },
  { name: 'Chain', cell: ({ chain }) => chain !== undefined && inWords(chain) },
  { name: 'Final after', cell: finalityOf },
  { name: 'Fees', cell: ({ fees }) => inWords(fees) },
  amountColumn('Withdrawal fee, own asset', ({ assets, native_asset: asset }) => ({
    amount: assets.find((fee) => fee.asset === asset)?.withdrawal_fee,
    asset,
  })),
  { name: 'Assets', number: true, cell: ({ assets }) => assets.length },
]

export function NetworksPage() {
  const read = useCall<{ items: Network[] }>(networksCall)
  const seen = read.data.value?.items.filter(({ for_operators }) => for_operators !== undefined) ?? []
  const [shown, quiet] = [seen.filter(needsALook), seen.filter((network) => !needsALook(network))]
  return (
    <>
      <Title>Networks</Title>
      <TableOf of={read} name="Networks" columns={COLUMNS} keyOf={({ crypto_network }) => crypto_network} />
      {seen.length > 0 && (
        <>
          <h2>For operators of the deployment</h2>
          <div class="columns">
            {shown.map((network) => (
              <NetworkFigures key={network.crypto_network} network={network} />
            ))}
          </div>
          {quiet.length > 0 && (
            <p class="quiet">
              Simulated, and nothing is under way:{' '}
              {quiet.map(({ crypto_network }) => inWords(crypto_network)).join(', ')}.
            </p>
          )}
        </>
      )}
      <Curl of={networksCall} />
    </>
  )
}

/** Whether there is more to show of a network than that it is simulated. */
const needsALook = ({ for_operators }: Network) => {
  const { reachable, in_flight, waiting, frozen, uncredited } = for_operators!
  return reachable !== undefined || in_flight > 0 || waiting.length + frozen.length + uncredited.length > 0
}

const Reachable = ({ of }: { of: boolean }) => <Status of={of ? 'REACHABLE' : 'NOT REACHABLE'} />

function NetworkFigures({ network: { crypto_network, for_operators } }: { network: Network }) {
  const figures = for_operators!
  const { reachable, error, height, hot_wallet, custody, in_flight, waiting, frozen, uncredited } = figures
  const { lanes = [], signer, asked, asks, refills } = figures
  return (
    <section class="part network">
      <h3>
        {inWords(crypto_network)}{' '}
        {reachable === undefined ? <small>simulated</small> : <Reachable of={reachable} />}{' '}
        {height !== undefined && <small>at height {height}</small>}
      </h3>
      {error !== undefined && <p class="failure">{error}</p>}
      {frozen.map(({ reason, detail, since }) => (
        <p key={reason} class="failure">
          <Frozen reason={reason} detail={detail} since={since} />
        </p>
      ))}
      {hot_wallet !== undefined && <HotWallet of={hot_wallet} />}
      {asks.map(({ kind, asset, amount, to }) => (
        <p key={kind + asset}>
          <Status of={kind === 'REFILL' ? 'BELOW' : 'ABOVE'} />{' '}
          {kind === 'REFILL' ? 'Cold storage is asked for' : 'It is proposed to send'}{' '}
          <Amount amount={amount} asset={asset} />
          {to !== undefined && (
            <>
              {' '}
              to <code title={to}>{short(to)}</code>
            </>
          )}
          : <code>{`bursar treasury ${kind === 'REFILL' ? 'refill' : 'confirm'}`}</code>
        </p>
      ))}
      {custody.some(isHeld) && <Custody of={custody} name={crypto_network} />}
      {lanes.length > 0 && <Lanes of={lanes} name={crypto_network} />}
      {signer !== undefined && (
        <p>
          The signer process <Reachable of={signer.reachable} /> {signer.error}
        </p>
      )}
      <p>
        {in_flight || 'No'} {in_flight > 1 ? 'withdrawals are' : 'withdrawal is'} under way.{' '}
        {in_flight > 0 && (
          <Link to={`transfers?type=CRYPTO_WITHDRAWAL&status=PENDING&network=${crypto_network}`}>
            Those of {nameOfCustomer()}
          </Link>
        )}
      </p>
      <ul class="plain">
        {asked !== undefined && (
          <li>
            <strong>{asked.count}</strong> wait for the signer since <Time at={asked.since} />
          </li>
        )}
        {waiting.map(({ code, detail, count, since }) => (
          <li key={code + detail}>
            <strong>{count}</strong> wait since <Time at={since} />: <Status of={code} /> {readable(detail)}
          </li>
        ))}
        {refills.map(({ crypto_tx_hash, since, detail }) => (
          <li key={crypto_tx_hash}>
            Refill <code title={crypto_tx_hash}>{short(crypto_tx_hash)}</code> is not posted since{' '}
            <Time at={since} /> {detail}
          </li>
        ))}
        {uncredited.map(({ reason, count, since }) => (
          <li key={reason}>
            <strong>{count}</strong> deposits are not credited since <Time at={since} />:{' '}
            <Status of={reason} />
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The hot wallet, with a meter where it has a low mark to compare with. */
function HotWallet({
  of: { asset, amount, low_mark, below_low_mark },
}: {
  of: NonNullable<Figures['hot_wallet']>
}) {
  return (
    <p>
      The hot wallet has <Amount amount={amount} asset={asset} />
      {low_mark !== undefined && (
        <>
          , its low mark is <Amount amount={low_mark} asset={asset} />{' '}
          {below_low_mark && <Status of="BELOW" />}
          <meter
            aria-label={`Hot wallet, ${amount} ${asset} of at least ${low_mark}`}
            min={0}
            max={Number(low_mark) * 3}
            low={Number(low_mark)}
            optimum={Number(low_mark) * 2}
            value={Number(amount)}
          />
        </>
      )}
    </p>
  )
}

/** The wallets that pay, each with the reason why it signs nothing. */
const Lanes = ({ of, name }: { of: NonNullable<Figures['lanes']>; name: string }) => (
  <Table
    name={`Wallets on ${name}`}
    items={of}
    keyOf={({ lane }) => lane}
    columns={[
      { name: 'Wallet', cell: ({ lane }) => <code title={lane}>{short(lane)}</code> },
      {
        name: 'Holds',
        number: true,
        cell: ({ holds }) =>
          holds.map(({ asset, amount }) => (
            <div key={asset}>
              <Amount amount={amount} asset={asset} />
            </div>
          )),
      },
      { name: 'In flight', number: true, cell: ({ in_flight }) => in_flight },
      {
        name: 'Signer, next nonce',
        number: true,
        cell: ({ journal }) =>
          journal !== undefined &&
          `${journal.next_nonce}${journal.ahead === 0 ? '' : ` (${Math.abs(journal.ahead)} ${journal.ahead > 0 ? 'ahead' : 'behind'})`}`,
      },
      {
        name: 'Signs',
        cell: ({ blocked }) =>
          blocked === undefined ? (
            'yes'
          ) : (
            <>
              <Status of={blocked.code} /> {blocked.detail}
            </>
          ),
      },
    ]}
  />
)

const isHeld = ({ held = '0', in_custody }: Figures['custody'][number]) => held !== '0' || in_custody !== '0'

/** The amounts held compared with those in the ledgers, per asset. Assets of which there is nothing are left out. */
export const Custody = ({ of, name }: { of: Figures['custody']; name: string }) => (
  <Table
    name={`Custody on ${name}`}
    items={of.filter(isHeld)}
    keyOf={({ asset }) => asset}
    columns={[
      { name: 'Asset', cell: ({ asset }) => asset },
      {
        name: 'Held',
        number: true,
        cell: ({ asset, held }) => (held === undefined ? '?' : <Amount amount={held} asset={asset} />),
      },
      amountColumn<Figures['custody'][number]>('In the ledger', ({ in_custody: amount, asset }) => ({
        amount,
        asset,
      })),
      {
        name: 'Difference',
        number: true,
        cell: ({ asset, difference }) =>
          difference !== undefined && (
            <span class={difference.startsWith('-') ? 'fall' : undefined}>
              <Amount amount={difference} asset={asset} sign={difference !== '0'} />
            </span>
          ),
      },
    ]}
  />
)
