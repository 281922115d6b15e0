import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { type Call, get, send } from '../api.ts'
import { save } from '../export.tsx'
import { groupDigits } from '../format.ts'
import { Id, Status } from '../parts.tsx'
import type { ChainVerification } from '../records.ts'

const CALL: Call = get('/v2/audit-log/verification')

/** A button that recomputes the audit log's whole hash chain, and the chain's head as a file for an auditor to keep. */
export function AuditChain() {
  const links = useSignal(0)
  const records = useSignal(0)
  const last = useSignal<ChainVerification | undefined>(undefined)
  const walk = async () => {
    ;[links.value, records.value, last.value] = [0, 0, undefined]
    let query: NonNullable<Call['query']> = {}
    let isOver = false
    while (!isOver) {
      const answer: ChainVerification = await send({ ...CALL, query })
      links.value += answer.links
      records.value += answer.records
      last.value = answer
      query = { after_position: answer.checked.position, after_hash: answer.checked.hash }
      isOver = answer.is_complete || answer.fault !== undefined
    }
  }
  return (
    <section>
      <Action call={CALL} work={walk} done={() => undefined}>
        Verify the chain
      </Action>
      <div role="status">
        {last.value !== undefined && (
          <p>
            {last.value.is_complete && <Status of="HOLDS" />}
            {last.value.fault !== undefined && <Status of="DIFFERS" />} {groupDigits(String(links.value))}{' '}
            links with {groupDigits(String(records.value))} records are as they were written.{' '}
            {last.value.fault !== undefined && <Fault of={last.value.fault} />}
          </p>
        )}
      </div>
      {last.value?.is_complete && last.value.head !== undefined && <Head of={last.value.head} />}
    </section>
  )
}

const Fault = ({ of }: { of: NonNullable<ChainVerification['fault']> }) => (
  <strong>
    The next is not: {of.fault}
    {of.action !== undefined && ` (${of.action})`}.
  </strong>
)

const Head = ({ of }: { of: NonNullable<ChainVerification['head']> }) => (
  <p>
    Head: link {groupDigits(String(of.position))}, <Id of={of.hash} />{' '}
    <button
      type="button"
      title="For bursar audit verify --head. Kept elsewhere, it contradicts whoever rewrites the chain later."
      onClick={() =>
        save(`audit-head-${of.position}.json`, `${JSON.stringify({ heads: [of] })}\n`, 'application/json')
      }
    >
      Save the head
    </button>
  </p>
)
