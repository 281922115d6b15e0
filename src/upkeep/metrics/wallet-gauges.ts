import { Gauge, type Registry } from 'prom-client'
import type { Look } from '../../rails/wallets/look.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Seen } from '../../rails/treasury/watch-custody.ts'
import { REASON_LABELS } from './reason-labels.ts'

type Sample = readonly [labels: Record<string, string>, value: number]

const amountsOf = (held: Record<string, string>): Sample[] =>
  Object.entries(held).map(([asset, amount]) => [{ asset }, Number(amount)])

const lanesOf = (
  { lanes = [] }: NetworkStatus,
  samplesOf: (lane: (typeof lanes)[number]) => Sample[],
): Sample[] =>
  lanes.flatMap((one) =>
    samplesOf(one).map(([labels, value]): Sample => [{ lane: one.lane, ...labels }, value]),
  )

function formerAmounts({ formerWallets = [] }: NetworkStatus): Sample[] {
  const sums = new Map<string, number>()
  for (const { held } of formerWallets)
    for (const [asset, amount] of Object.entries(held))
      sums.set(asset, (sums.get(asset) ?? 0) + Number(amount))
  return [...sums].map(([asset, sum]) => [{ asset }, sum])
}

/** Gauges of one look at a network. A network has 21 hot wallets at most, so that the label `lane` has few values. */
const GAUGES: {
  name: string
  help: string
  labels: string[]
  of: (status: NetworkStatus, asks: Look['asks']) => Sample[]
}[] = [
  {
    name: 'bursar_hot_wallet_amount',
    help: 'What the hot wallet holds, all its lanes together, in units of the asset.',
    labels: ['asset'],
    of: ({ held, hotWallet = held }) => amountsOf(hotWallet),
  },
  {
    name: 'bursar_former_hot_wallets_amount',
    help: 'What wallets have that were the hot wallet before, in units of the asset.',
    labels: ['asset'],
    of: formerAmounts,
  },
  {
    name: 'bursar_treasury_asks',
    help: 'What people are asked to move, in units of the asset, by kind; refill: the hot wallet is below its low mark; send: above its high mark.',
    labels: ['asset', 'kind'],
    of: (_, asks) =>
      asks.map(({ kind, asset, amount }) => [{ asset, kind: kind.toLowerCase() }, Number(amount)]),
  },
  {
    name: 'bursar_lane_amount',
    help: 'What a lane of the hot wallet holds, in units of the asset.',
    labels: ['lane', 'asset'],
    of: (status) => lanesOf(status, ({ held = {} }) => amountsOf(held)),
  },
  {
    name: 'bursar_lane_in_flight',
    help: 'Transactions of a lane that are signed and not mined.',
    labels: ['lane'],
    of: (status) => lanesOf(status, ({ in_flight }) => [[{}, in_flight]]),
  },
  {
    name: 'bursar_lane_blocked',
    help: '1 where a lane signs nothing, by reason.',
    labels: ['lane', 'reason'],
    of: (status) =>
      lanesOf(status, ({ blocked }) => (blocked ? [[{ reason: REASON_LABELS[blocked.code] }, 1]] : [])),
  },
  {
    name: 'bursar_signer_reachable',
    help: '1 where the signer process of a network answers, 0 where it does not.',
    labels: [],
    of: ({ signer }) => (signer ? [[{}, signer.reachable ? 1 : 0]] : []),
  },
  {
    name: 'bursar_signer_next_nonce',
    help: 'The next nonce of a lane by the journal of its signer process.',
    labels: ['lane'],
    of: (status) => lanesOf(status, ({ journal }) => (journal ? [[{}, journal.next_nonce]] : [])),
  },
  {
    name: 'bursar_signer_journal_ahead',
    help: 'Nonces by which the journal of the signer process is ahead of the database; negative: given out, and not signed.',
    labels: ['lane'],
    of: (status) => lanesOf(status, ({ journal }) => (journal ? [[{}, journal.ahead]] : [])),
  },
]

/** Adds the gauges of wallets. Of a network whose node does not answer, nothing is known, and nothing is shown. */
export function walletGauges(registers: Registry[]): Seen {
  const seen = new Map<CryptoNetwork, Look>()
  for (const { name, help, labels, of } of GAUGES)
    new Gauge({
      name,
      help,
      labelNames: ['network', ...labels],
      registers,
      collect() {
        this.reset()
        for (const [network, { status, asks }] of seen)
          for (const [more, value] of of(status, asks)) this.set({ network, ...more }, value)
      },
    })
  return (network, look) => {
    if (look === undefined) seen.delete(network)
    else seen.set(network, look)
  }
}
