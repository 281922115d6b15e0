import { useSignal } from '@preact/signals'
import { get } from '../api.ts'
import { inWords } from '../format.ts'
import { useCall } from '../load.ts'
import { Amount, Answered, Id, Link, Status, Time } from '../parts.tsx'
import type { Orchestration, Transfer } from '../records.ts'
import { may } from '../session.ts'
import { failedStep, isOneTransfer } from './orchestration-way.tsx'

/** The steps of a run, with the one that failed opened. */

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
  const failedIndex = steps.findIndex((step) => step.status === 'FAILED')
  if (failed !== undefined && failedIndex >= 0)
    steps[failedIndex] = { ...steps[failedIndex]!, detail: fail_reason?.detail ?? steps[failedIndex]!.detail }
  return steps
}

export function Steps({ of }: { of: Orchestration }) {
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
