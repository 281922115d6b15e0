import { useSignal } from '@preact/signals'
import { get } from '../api.ts'
import { groupDigits, inWords, short } from '../format.ts'
import { Graph, type Arrow, type Place } from '../graph.tsx'
import { Choice, filterOf, Filters, Paged, TextFilter, useList, type Column } from '../list.tsx'
import { useCall, useFresh, useRecords, useTransfers } from '../load.ts'
import { Amount, Answered, Curl, Facts, Id, Link, Name, Status, Time, Title } from '../parts.tsx'
import type { Orchestration, Rule, Transfer } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn, ListPage } from '../tables.tsx'

/** Orchestrations, which pass money on by themselves: the rules that start them, and each step of a run. */

/** The events that change what these pages show. */
const CHANGES = /^(orchestration|transfer)\./
const PATH = '/v2/orchestration/orchestrations'
const STATUSES = ['PROCESSING', 'COMPLETED', 'FAILED']

/** The rules and transfers to which runs refer. */
interface Named {
  rules: ReadonlyMap<string | undefined, Rule>
  transfers: ReadonlyMap<string | undefined, Transfer>
}

const useNamed = (runs: readonly Orchestration[] = []): Named => ({
  rules: useRecords(
    '/v2/orchestration/rules',
    'orchestration:read_orchestration_rule',
    runs.map(({ orchestration_rule_id }) => orchestration_rule_id),
  ),
  transfers: useTransfers(runs.map(({ destination_transfer }) => destination_transfer?.transfer_id)),
})

const RuleOf = ({ id, rules }: { id: string } & Pick<Named, 'rules'>) => {
  const rule = rules.get(id)
  return <Name of={rule?.nickname ?? rule?.ref_id ?? 'a rule'} to={`orchestrations/rules/${id}`} />
}

function columnsOf({ rules, transfers }: Named): Column<Orchestration>[] {
  const paidBy = ({ destination_transfer }: Orchestration) => {
    const paid = transfers.get(destination_transfer?.transfer_id)
    return paid?.status === 'COMPLETED' ? paid : undefined
  }
  return [
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: 'Route',
      cell: ({ id, source, destination }) => (
        <Link to={`orchestrations/${id}`}>
          {kindOf(source)} → {kindOf(destination)}
        </Link>
      ),
    },
    {
      name: 'Status',
      cell: ({ status, fail_reason }) => (
        <>
          <Status of={status} /> {fail_reason !== undefined && <small>{fail_reason.detail}</small>}
        </>
      ),
    },
    amountColumn(
      'Amount',
      ({ source_amount }) => source_amount,
      ({ source_asset }) => source_asset,
    ),
    amountColumn(
      'Paid',
      (run) => paidBy(run)?.amount,
      (run) => paidBy(run)?.asset,
    ),
    {
      name: 'Started by',
      cell: ({ orchestration_rule_id: rule, ref_id }) =>
        rule === undefined ? <Name of={ref_id ?? ''} /> : <RuleOf id={rule} rules={rules} />,
    },
  ]
}

export function OrchestrationsPage() {
  const list = useList<Orchestration>(PATH, {
    status: filterOf('status'),
    source_asset: filterOf('source'),
    destination_asset: filterOf('destination'),
    orchestration_rule_id: filterOf('rule'),
    order: filterOf('order'),
  })
  const named = useNamed(list.items)
  useFresh(list.isFirst ? list.again : undefined, CHANGES)
  return (
    <ListPage
      head={<Heading of="orchestrations" />}
      list={list}
      name="Orchestrations"
      none="No orchestration has these properties."
      columns={columnsOf(named)}
    >
      <Choice name="Status" filter="status" of={STATUSES} />
      <AssetFilters />
      <TextFilter name="Rule" filter="rule" />
      <Choice name="Order" filter="order" of={['ASC']} any="Newest first" say={() => 'Oldest first'} />
    </ListPage>
  )
}

const AssetFilters = () => (
  <>
    <TextFilter name="From asset" filter="source" size={6} />
    <TextFilter name="To asset" filter="destination" size={6} />
  </>
)

const RULE_COLUMNS: Column<Rule>[] = [
  {
    name: 'Rule',
    cell: ({ id, nickname, ref_id }) => <Name of={nickname ?? ref_id} to={`orchestrations/rules/${id}`} />,
  },
  { name: 'Status', cell: ({ status }) => <Status of={status} /> },
  {
    name: 'Route',
    cell: ({ source, destination }) => `${kindOf(source)} → ${kindOf(destination)}`,
  },
  {
    name: 'Assets',
    cell: ({ source_asset, destination_asset }) => `${source_asset} → ${destination_asset}`,
  },
  { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'ref_id', cell: ({ ref_id }) => <Name of={ref_id} /> },
]

export function RulesPage() {
  const list = useList<Rule>('/v2/orchestration/rules', {
    statuses: filterOf('status'),
    source_asset: filterOf('source'),
    destination_asset: filterOf('destination'),
  })
  return (
    <ListPage
      head={<Heading of="orchestrations/rules" />}
      list={list}
      name="Rules"
      none="No rule has these properties."
      columns={RULE_COLUMNS}
    >
      <Choice name="Status" filter="status" of={['ACTIVE', 'DELETED']} />
      <AssetFilters />
    </ListPage>
  )
}

/** The heading of both lists, with links between them. */
const Heading = ({ of }: { of: 'orchestrations' | 'orchestrations/rules' }) => (
  <>
    <Title>{of === 'orchestrations' ? 'Orchestrations' : 'Orchestration rules'}</Title>
    {may('orchestration:read_orchestration_rule') && (
      <nav class="tabs" aria-label="Orchestrations and rules">
        <Link to="orchestrations" current={of === 'orchestrations'}>
          Orchestrations
        </Link>
        <Link to="orchestrations/rules" current={of !== 'orchestrations'}>
          Rules
        </Link>
      </nav>
    )}
  </>
)

/** One rule: its route, and its runs with the step that failed. */
export function RulePage({ id }: { id: string }) {
  const call = get('/v2/orchestration/rules', { ids: id })
  const read = useCall<{ items: Rule[] }>(call)
  const list = useList<Orchestration>(PATH, { orchestration_rule_id: id, status: filterOf('status') })
  useFresh(list.isFirst ? list.again : undefined, CHANGES)
  return (
    <>
      <Answered of={read}>
        {({ items: [rule] }) =>
          rule === undefined ? (
            <Title>There is no such rule</Title>
          ) : (
            <>
              <header class="of-record">
                <Title of={rule.nickname ?? rule.ref_id}>
                  {rule.nickname ?? rule.ref_id} <Status of={rule.status} />
                </Title>
                <Id of={id} whole />
              </header>
              <Way of={rule} amount={rule.source_asset} />
            </>
          )
        }
      </Answered>
      <h2>Runs, newest first</h2>
      <Filters>
        <Choice name="Status" filter="status" of={STATUSES} />
      </Filters>
      <Paged list={list}>
        {list.items?.length === 0 && <p class="quiet">No deposit has started it.</p>}
        <ol class="runs">
          {list.items?.map((run) => (
            <li key={run.id}>
              <details open={run.status === 'FAILED'}>
                <summary>
                  <Time at={run.created_at} /> <Status of={run.status} />{' '}
                  <Amount amount={run.source_amount} asset={run.source_asset} />
                </summary>
                <Link to={`orchestrations/${run.id}`}>Open this run</Link>
                <Steps of={run} />
              </details>
            </li>
          ))}
        </ol>
      </Paged>
    </>
  )
}

const starterOf = ({ orchestration_rule_id: rule }: Orchestration, rules: Named['rules']) =>
  rule === undefined ? 'a request' : <RuleOf id={rule} rules={rules} />

/** One run: its route as a graph, and its steps, with the one that failed opened. */
export function OrchestrationPage({ id }: { id: string }) {
  const call = get(`${PATH}/${id}`)
  const read = useCall<Orchestration>(call)
  useFresh(read.again, CHANGES)
  const { rules } = useNamed(read.data.value && [read.data.value])
  return (
    <>
      <Answered of={read}>
        {(run) => (
          <>
            <header class="of-record">
              <Title>Orchestration</Title>
              <p class="figure">
                <Amount amount={run.source_amount} asset={run.source_asset} />
                {run.source_asset !== run.destination_asset && <> → {run.destination_asset}</>}{' '}
                <Status of={run.status} />
              </p>
              <Id of={id} whole />
            </header>
            <Way of={run} amount={`${groupDigits(run.source_amount)} ${run.source_asset}`} />
            <Facts
              of={[
                ['Created', <Time at={run.created_at} />],
                ['Changed', <Time at={run.updated_at} />],
                ['Started by', starterOf(run, rules)],
                ['Profile', <Id of={run.profile_id} to={`profiles/${run.profile_id}`} />],
                ['ref_id', run.ref_id],
              ]}
            />
            <h2>Steps</h2>
            <Steps of={run} />
          </>
        )}
      </Answered>
      <Curl of={call} />
    </>
  )
}

// ------------------------------------------------------------------------------------------------- the money's route

type Ways = Pick<Orchestration | Rule, 'profile_id' | 'source_asset' | 'destination_asset'> & {
  source: Orchestration['source'] | Rule['source']
  destination: Orchestration['destination'] | Rule['destination']
}

function kindOf({ crypto, fiat }: Ways['source'] | Ways['destination']): string {
  if (crypto !== undefined) return inWords(crypto.network)
  return fiat === undefined ? 'Profile' : 'Bank'
}

type State = Place['kind']

const stateOf = (status: string | undefined): State =>
  status === undefined ? undefined : status === 'COMPLETED' ? 'good' : status === 'FAILED' ? 'bad' : 'wait'

/** Whether one transfer is both the debit of the source and the payment. */
const isOneTransfer = ({ source_transfer, destination_transfer }: Orchestration) =>
  source_transfer !== undefined && source_transfer.transfer_id === destination_transfer?.transfer_id

/** The step at which a failed run stopped: 0 its deposit, 1 the conversion and payment, 2 the payment's end. */
function failedStep(run: Orchestration): number | undefined {
  if (run.status !== 'FAILED') return undefined
  if (run.source_transfer?.status === 'FAILED' && !isOneTransfer(run)) return 0
  return run.destination_transfer === undefined ? 1 : 2
}

/** The route as a graph. A rule has no states; a run has those of its transfers. */
function Way({ of, amount }: { of: Orchestration | Rule; amount: string }) {
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

// ------------------------------------------------------------------------------------------------- the steps of a run

interface Step {
  name: string
  status: string
  transferId?: string | undefined
  /** Shown where the step failed or has no transfer. */
  detail?: string | undefined
}

function stepsOf(run: Orchestration): Step[] {
  const { source, source_transfer, destination, destination_transfer, fail_reason, status } = run
  const failed = failedStep(run)
  const steps: Step[] = []
  if (!isOneTransfer(run))
    steps.push({
      name: source.profile === undefined ? 'Money arrives' : 'Money leaves its profile',
      status: source_transfer?.status ?? (status === 'PROCESSING' ? 'PENDING' : status),
      transferId: source_transfer?.transfer_id,
      detail: 'There is no transfer for this step.',
    })
  if (run.source_asset !== run.destination_asset)
    steps.push({
      name: `${run.source_asset} converted to ${run.destination_asset}`,
      status: failed === 1 ? 'FAILED' : destination_transfer === undefined ? 'PENDING' : 'COMPLETED',
      detail:
        'One to one, by the same posting as the payment: the profile pays from its balance of the first asset.',
    })
  const ends: Record<string, string> = { crypto: 'Paid on the network', fiat: 'Paid by wire' }
  steps.push({
    name: ends[Object.keys(destination)[0]!] ?? 'Credited to the profile',
    status: destination_transfer?.status ?? (failed === undefined ? 'PENDING' : 'FAILED'),
    transferId: destination_transfer?.transfer_id,
    detail: failed === undefined ? 'Its transfer is not created yet.' : 'Its transfer was not created.',
  })
  const at = steps.findIndex((step) => step.status === 'FAILED')
  if (failed !== undefined && at >= 0)
    steps[at] = { ...steps[at]!, detail: fail_reason?.detail ?? steps[at]!.detail }
  return steps
}

function Steps({ of }: { of: Orchestration }) {
  const steps = stepsOf(of)
  const failed = steps.findIndex(({ status }) => status === 'FAILED')
  return (
    <ol class="steps">
      {steps.map((step, index) => (
        <StepLine key={step.name} step={step} opened={index === failed} />
      ))}
    </ol>
  )
}

/** A step, and what its transfer says; that is read when the step is opened. */
function StepLine({ step: { name, status, transferId, detail }, opened }: { step: Step; opened: boolean }) {
  const isOpen = useSignal(opened)
  const isRead = isOpen.value && transferId !== undefined && may('transfer:read_transfer')
  const read = useCall<Transfer>(isRead ? get(`/v2/transfer/transfers/${transferId}`) : undefined)
  return (
    <li>
      <details open={opened} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>
          {name} <Status of={status} />
        </summary>
        {opened && detail !== undefined && <p class="failure">{detail}</p>}
        {!opened && transferId === undefined && <p class="quiet">{detail}</p>}
        {isRead && <Answered of={read}>{(transfer) => <TransferOfStep of={transfer} />}</Answered>}
      </details>
    </li>
  )
}

function TransferOfStep({
  of: { id, type, amount, asset, crypto_tx_hash, secondary_status, updated_at },
}: {
  of: Transfer
}) {
  return (
    <div class="step">
      <p>
        <Link to={`transfers/${id}`}>{inWords(type)}</Link> of <Amount amount={amount} asset={asset} />,{' '}
        <Time at={updated_at} />
      </p>
      {secondary_status !== undefined && (
        <p>
          <strong>{inWords(secondary_status.name)}</strong> <small>{secondary_status.detail}</small>
        </p>
      )}
      {crypto_tx_hash !== undefined && (
        <p>
          Transaction <Id of={crypto_tx_hash} />
        </p>
      )}
    </div>
  )
}
