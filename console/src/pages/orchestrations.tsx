import { get } from '../api.ts'
import { groupDigits } from '../format.ts'
import { Choice, filterOf, Filters, Paged, TextFilter, useList, type Column } from '../list.tsx'
import { useCall, useFresh, useRecords, useTransfers } from '../load.ts'
import { Amount, Answered, Curl, Facts, Id, Link, Name, Status, Time, Title } from '../parts.tsx'
import type { Orchestration, Rule, Transfer } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn, ListPage } from '../tables.tsx'
import { Steps } from './orchestration-steps.tsx'
import { kindOf, Way } from './orchestration-way.tsx'

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

const useRules = (ids: readonly (string | undefined)[]) =>
  useRecords<Rule>('/v2/orchestration/rules', 'orchestration:read_orchestration_rule', ids)

const useNamed = (runs: readonly Orchestration[] = []): Named => ({
  rules: useRules(runs.map(({ orchestration_rule_id }) => orchestration_rule_id)),
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
    amountColumn('Amount', ({ source_amount: amount, source_asset: asset }) => ({ amount, asset })),
    amountColumn('Paid', paidBy),
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
