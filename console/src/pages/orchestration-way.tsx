import { inWords, short } from '../format.ts'
import { Graph, type Arrow, type Place } from '../graph.tsx'
import type { Orchestration, Rule } from '../records.ts'

/** The route of the money of a rule or a run, as a picture. */

type Ways = Pick<Orchestration | Rule, 'profile_id' | 'source_asset' | 'destination_asset'> & {
  source: Orchestration['source'] | Rule['source']
  destination: Orchestration['destination'] | Rule['destination']
}

export function kindOf({ crypto, fiat }: Ways['source'] | Ways['destination']): string {
  if (crypto !== undefined) return inWords(crypto.network)
  return fiat === undefined ? 'Profile' : 'Bank'
}

type State = Place['kind']

const stateOf = (status: string | undefined): State =>
  status === undefined ? undefined : status === 'COMPLETED' ? 'good' : status === 'FAILED' ? 'bad' : 'wait'

/** Whether one transfer is both the debit of the source and the payment. */
export const isOneTransfer = ({ source_transfer, destination_transfer }: Orchestration) =>
  source_transfer !== undefined && source_transfer.transfer_id === destination_transfer?.transfer_id

/** The step at which a failed run stopped: 0 its deposit, 1 the conversion and payment, 2 the payment's end. */
export function failedStep(run: Orchestration): number | undefined {
  if (run.status !== 'FAILED') return undefined
  if (run.source_transfer?.status === 'FAILED' && !isOneTransfer(run)) return 0
  return run.destination_transfer === undefined ? 1 : 2
}

/** The route as a graph. A rule has no states; a run has those of its transfers. */
export function Way({ of, amount }: { of: Orchestration | Rule; amount: string }) {
  const run = 'source_amount' in of ? of : undefined
  const failed = run && failedStep(run)
  const arrived = run && (isOneTransfer(run) ? 'good' : stateOf(run.source_transfer?.status))
  const paid: State = run && (failed === undefined ? stateOf(run.destination_transfer?.status) : 'bad')
  const places: Place[] = [{ ...placeOf(of.source, true), kind: arrived }]
  const arrows: Arrow[] = []
  // The profile is in between, unless the money begins or ends there.
  if (
    of.source.profile?.profile_id !== of.profile_id &&
    of.destination.profile?.profile_id !== of.profile_id
  ) {
    arrows.push({ label: amount, kind: arrived })
    const kind = failed === 1 ? 'bad' : arrived
    places.push({ title: 'Profile', lines: [short(of.profile_id), conversionOf(of)], kind })
    arrows.push({ label: of.destination_asset, kind: paid })
  } else {
    const { source_asset, destination_asset } = of
    const label = source_asset === destination_asset ? amount : `${amount} → ${destination_asset}`
    arrows.push({ label, kind: paid })
  }
  places.push({ ...placeOf(of.destination, false), kind: paid })
  const words = places.map(({ title, lines }) => [title, ...lines].join(' ')).join(', then ')
  return <Graph places={places} arrows={arrows} label={`Route of the money: ${words}`} />
}

const conversionOf = ({ source_asset, destination_asset }: Ways) =>
  source_asset === destination_asset ? '' : `${source_asset} to ${destination_asset}`

/** The picture of an end. The members of a bank's end tell whether money comes or goes. */
function placeOf({ crypto, fiat, profile }: Ways['source'] | Ways['destination'], isSource: boolean): Place {
  if (crypto !== undefined) {
    const network = inWords(crypto.network)
    const title = isSource ? `${network} deposit` : network
    return { title, lines: ['to address', short(crypto.address)] }
  }
  if (fiat === undefined) return { title: 'Profile', lines: [short(profile!.profile_id)] }
  if ('bank_account_id' in fiat) return { title: 'Bank account', lines: [short(fiat.bank_account_id)] }
  if ('fiat_account_id' in fiat) return { title: 'Bank account', lines: [short(fiat.fiat_account_id)] }
  return { title: 'Wire', lines: ['with memo', 'memo_id' in fiat ? fiat.memo_id : fiat.memo] }
}
