import type { ComponentChildren } from 'preact'
import { inWords, readable } from '../format.ts'
import { Table, type Column } from '../list.tsx'
import { OnNetwork } from '../on-network.tsx'
import { Actor, Amount, Id, Link, Status, Time } from '../parts.tsx'
import { RuleInForce } from '../policy.tsx'
import type { Approval, Delivery, Entry, NetworkTransaction, Transfer, TransferHistory } from '../records.ts'
import { amountColumn } from '../tables.tsx'
import { AttemptLine } from './events.tsx'

/** The lines of the story of one transfer, from its history. */

/** A line of the story: when, what, and the record that proves it. */
export interface Line {
  key: string
  /** Undefined: now. */
  at?: string
  /** A text, or its parts in order; so is the proof. */
  title: ComponentChildren
  kind: 'good' | 'bad' | 'wait' | 'plain'
  proof: ComponentChildren
  body?: ComponentChildren
}

/** All lines of a transfer, oldest first. Lines of one moment keep the order in which they follow from each other. */
export function linesOf(history: TransferHistory): Line[] {
  const lines = [
    ...changeLines(history),
    ...entryLines(history),
    ...approvalLines(history.approval),
    ...transactionLines(history),
    ...eventLines(history),
    ...orchestrationLines(history),
  ]
  const dated = lines
    .filter(({ at }) => at !== undefined)
    .sort((a, b) => (a.at! < b.at! ? -1 : a.at! > b.at! ? 1 : 0))
  return [...dated, ...lines.filter(({ at }) => at === undefined)]
}

const WHO: Record<string, string> = {
  API_CLIENT: 'API client',
  OPERATOR: 'operator',
  WORKER: 'worker',
  COMMAND_LINE: 'command line of',
}

const DONE: Record<string, string> = {
  'transfer.create': 'Requested',
  'transfer.complete': 'Completed',
  'transfer.fail': 'Failed, recorded',
  'transfer.cancel': 'Cancelled',
}

/** Who did it, from the audit log. */
const changeLines = ({ changes = [], transfer }: TransferHistory): Line[] =>
  changes.map(({ id, at, actor, action, outcome, request_id, ip }) => ({
    key: id,
    at,
    kind: outcome === 'REFUSED' || action === 'transfer.fail' ? 'bad' : 'plain',
    title: [
      action === 'transfer.create' && transfer.type.endsWith('DEPOSIT')
        ? 'Recorded'
        : (DONE[action] ?? inWords(action.replace('transfer.', ''))),
      ` by ${WHO[actor.type] ?? actor.type} `,
      <Actor of={actor} />,
    ],
    proof: [
      ...['audit log ', <code>{action}</code>, ' ', <Id of={id} />],
      ...(request_id === undefined ? [] : [' · request ', <Id of={request_id} />]),
      ip !== undefined && ` · from ${ip}`,
    ],
  }))

const POSTED: Record<string, string> = {
  CREATED: 'The ledger moved the money',
  SETTLED: 'The ledger settled it',
  REFUNDED: 'The ledger gave the money back',
}

/** The entries of each event of the ledger, with the balances before and after. */
function entryLines({ entries }: TransferHistory): Line[] {
  const events = [...new Set(entries.map(({ event }) => event))]
  return events.map((event) => {
    const own = entries.filter((entry) => entry.event === event)
    return {
      key: `entries ${event}`,
      at: own[0]!.created_at,
      kind: event === 'REFUNDED' ? 'bad' : event === 'SETTLED' ? 'good' : 'plain',
      title: POSTED[event],
      body: (
        <Table
          class="entries"
          name={`Entries ${event}`}
          items={own}
          columns={own.some(hasBalance) ? [...ENTRY_COLUMNS, ...BALANCE_COLUMNS] : ENTRY_COLUMNS}
          keyOf={({ position }) => position}
          classOf={({ account }) => (account === 'profile' ? 'own' : undefined)}
        />
      ),
      proof: [`${own.length} entries `, <code>{event}</code>, ', which sum to zero'],
    }
  })
}

/** Accounts of the platform keep no balance. */
const hasBalance = ({ balance_after }: Entry) => balance_after !== undefined

const ENTRY_COLUMNS: Column<Entry>[] = [
  {
    name: 'Account',
    onCard: 0,
    cell: ({ account, profile_id, sequence }) => (
      <>
        {account}
        {profile_id !== undefined && (
          <>
            {' '}
            <Id of={profile_id} /> <small>#{sequence}</small>
          </>
        )}
      </>
    ),
  },
  {
    name: 'Change',
    number: true,
    onCard: 0,
    cell: ({ amount, asset }) => <Amount amount={amount} asset={asset} sign />,
  },
]
const BALANCE_COLUMNS = [
  amountColumn<Entry>('Before', ({ balance_before: amount, asset }) => ({ amount, asset })),
  amountColumn<Entry>('After', ({ balance_after: amount, asset }) => ({ amount, asset })),
]

/** The approval that the policy required, and each decision. */
function approvalLines(approval: Approval | undefined): Line[] {
  if (approval === undefined) return []
  const { id, created_at, required, role, rule_id, policy_version, status, ended_at, deadline } = approval
  const proof = ['approval ', <Id of={id} to={`approvals/${id}`} />]
  const lines: Line[] = [
    {
      key: id,
      at: created_at,
      kind: 'wait',
      title: `The policy requires ${required} of the role ${inWords(role)}`,
      body: (
        <p>
          Rule <code>{rule_id ?? 'default'}</code> of version {policy_version}:{' '}
          <RuleInForce version={policy_version} id={rule_id} of={approval.subject.id} /> Until{' '}
          <Time at={deadline} />
        </p>
      ),
      proof,
    },
    ...approval.decisions.map(({ approver_id, decision, created_at: at }): Line => ({
      key: `${id} ${approver_id}`,
      at,
      kind: decision === 'APPROVE' ? 'good' : 'bad',
      title: [`${decision === 'APPROVE' ? 'Approved' : 'Rejected'} by approver `, <Id of={approver_id} />],
      proof,
    })),
  ]
  const title = `The approval is ${inWords(status)}`
  if (ended_at !== undefined) lines.push({ key: `${id} end`, at: ended_at, kind: 'plain', title, proof })
  return lines
}

/** The transactions on the network with their times, replaced ones too, and why the payment waits now. */
function transactionLines({ transactions, waiting, transfer }: TransferHistory): Line[] {
  const lines = transactions.flatMap((transaction) => linesOfTransaction(transaction, transfer))
  if (waiting !== undefined)
    lines.push({
      key: 'waiting',
      kind: 'wait',
      title: `Waiting: ${readable(waiting.detail)}`,
      ...(waiting.since !== undefined && {
        body: (
          <p>
            Since <Time at={waiting.since} />
          </p>
        ),
      }),
      proof: <code>{waiting.code}</code>,
    })
  return lines
}

function linesOfTransaction(transaction: NetworkTransaction, { status, crypto_network }: Transfer): Line[] {
  const { crypto_tx_hash, state, signed_at, broadcast_at, replaced_at } = transaction
  const proof = ['transaction ', <OnNetwork of={crypto_tx_hash} kind="hash" network={crypto_network} />]
  const lines: Line[] = []
  const add = (what: string, at: string | undefined, title: string) => {
    if (at !== undefined) lines.push({ key: `${what} ${crypto_tx_hash}`, at, kind: 'plain', title, proof })
  }
  add('signed', signed_at, 'Signed')
  add('broadcast', broadcast_at, 'Broadcast: the network accepted it')
  if (state === 'REPLACED') add('replaced', replaced_at, 'Replaced by a transaction with a higher fee')
  else if (status === 'PENDING')
    lines.push({
      key: `now ${crypto_tx_hash}`,
      kind: 'wait',
      title: state === 'BROADCAST' ? 'Waiting for the network' : 'To be broadcast',
      ...(transaction.confirmations !== undefined && { body: <Confirmations of={transaction} /> }),
      proof,
    })
  return lines
}

/** The confirmations of a transaction so far. They count up while the page is open. */
const Confirmations = ({
  of: { confirmations = 0, confirmations_needed: needed },
}: {
  of: NetworkTransaction
}) => (
  <p class="confirmations">
    {needed === undefined ? (
      `${confirmations} confirmations; the node says when it is final`
    ) : (
      <>
        <progress max={needed} value={confirmations} aria-label="Confirmations" /> {confirmations} of {needed}{' '}
        confirmations
      </>
    )}
  </p>
)

/** The transfer's events, and each attempt to deliver them. */
const eventLines = ({ events = [], deliveries = [] }: TransferHistory): Line[] =>
  events.map(({ id, type, created_at }) => {
    const own = deliveries.filter(({ delivery }) => delivery.id === id)
    return {
      key: id,
      at: created_at,
      kind: type.endsWith('.completed') ? 'good' : type.endsWith('.failed') ? 'bad' : 'plain',
      title: ['Event ', <code>{type}</code>],
      body: own.length === 0 ? undefined : <Deliveries deliveries={own} />,
      proof: ['event ', <Id of={id} />, own.length === 0 && ' · no webhook receives it'],
    }
  })

const Deliveries = ({ deliveries }: { deliveries: Delivery[] }) => (
  <ul class="deliveries">
    {deliveries.map(({ delivery, webhook_name, attempts }) => (
      <li key={delivery.webhook_id}>
        <strong>{webhook_name}</strong> <Status of={delivery.status} />
        <ol>
          {attempts.map((attempt) => (
            <li key={attempt.id}>
              <AttemptLine of={attempt} />
              {attempt.error !== undefined && <span class="quiet"> {attempt.error}</span>}
            </li>
          ))}
        </ol>
        {delivery.next_attempt_at !== undefined && (
          <p>
            Next attempt <Time at={delivery.next_attempt_at} />
          </p>
        )}
      </li>
    ))}
  </ul>
)

/** The orchestration that the transfer belongs to, with its other transfer. */
const orchestrationLines = ({ orchestrations = [], transfer }: TransferHistory): Line[] =>
  orchestrations.map(({ id, status, role, source_transfer_id, destination_transfer_id }) => {
    const other = role === 'SOURCE' ? destination_transfer_id : source_transfer_id
    return {
      key: id,
      at: transfer.created_at,
      kind: 'plain',
      title: [
        role === 'SOURCE' ? 'It started an orchestration ' : 'It pays out an orchestration ',
        <Status of={status} />,
      ],
      body:
        other === undefined || other === transfer.id ? undefined : (
          <p>
            {role === 'SOURCE' ? 'The money went on with ' : 'The money came with '}
            <Link to={`transfers/${other}`}>transfer {other}</Link>
          </p>
        ),
      proof: [<Link to={`orchestrations/${id}`}>orchestration</Link>, ' ', <Id of={id} />],
    }
  })
