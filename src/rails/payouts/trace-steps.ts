import type { Tracing } from '../../contract/tracing.ts'
import type { Database } from '../../db/database.ts'
import { readTraces, type TracedTransfer } from '../../money/records/traces.ts'
import { byCustomer } from '../../db/rows.ts'
import type { Step } from './next-step.ts'

interface Part {
  name: string
  startMs: number
  endMs: number
}

/**
 * Adds committed steps to the traces of the payments that have one: the signature, the broadcast and the confirmation, each
 * from the end of the step before it. Times are the records', so the waits count.
 */
export async function traceSteps(db: Database, tracing: Tracing, steps: readonly Step[]): Promise<void> {
  const ended = steps.filter(({ withdrawal, state }) => state !== withdrawal.state && state !== 'HELD')
  for (const [customerId, own] of byCustomer(ended.map((step) => ({ ...step.withdrawal, step })))) {
    const ids = own.map(({ transfer_id }) => transfer_id)
    const traced = new Map((await readTraces(db, customerId, ids)).map((trace) => [trace.transfer_id, trace]))
    for (const { transfer_id, network, step } of own) {
      const found = traced.get(transfer_id)
      const part = found && partOf(step, found)
      if (part === undefined) continue
      const { name, startMs, endMs } = part
      const { status } = step.transfer ?? { status: 'PENDING' }
      tracing.part(found!.traceparent, name, { startMs }).end({
        attributes: { 'bursar.transfer_id': transfer_id, 'bursar.network': network, 'bursar.status': status },
        failed: status === 'FAILED',
        endMs,
      })
    }
  }
}

function partOf({ state, signed }: Step, traced: TracedTransfer): Part | undefined {
  const { createdMs, signedMs = createdMs, broadcastMs = signedMs, updatedMs } = traced
  switch (state) {
    case 'HELD':
    case 'ASKED':
      return undefined
    case 'SIGNED':
      // Without new bytes, the transaction is broadcast again.
      return signed && { name: 'signature', startMs: createdMs, endMs: signedMs }
    case 'BROADCAST':
      return { name: 'broadcast', startMs: signedMs, endMs: broadcastMs }
    case 'DONE':
      return { name: 'confirmation', startMs: broadcastMs, endMs: updatedMs }
  }
}
