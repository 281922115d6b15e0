import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { get, type Call } from '../api.ts'
import { inWords } from '../format.ts'
import { Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Answered, Id, ShownOnce } from '../parts.tsx'
import { PolicyDiff } from '../policy.tsx'
import { documentOf, EMPTY, type PolicyDocument } from '../policy-words.ts'
import type { Approval, Policy } from '../records.ts'
import { session } from '../session.ts'
import { changeOf, type ChangeToApprove } from '../statement.ts'
import { isOpen } from './approvals.tsx'

/** A change that waits for approvers: what it changes, and making it once it is approved. */

export function ChangeOf({ approval }: { approval: Approval }) {
  const change = changeOf(approval)!
  return (
    <section>
      <h2>What changes</h2>
      <p>
        <code>{change.operation}</code>: {inWords(change.target.type)} <Id of={change.target.id} />
      </p>
      {change.target.type === 'policy' ? (
        <PolicyChange approval={approval} document={change.values as unknown as PolicyDocument} />
      ) : (
        <Members of={change} />
      )}
    </section>
  )
}

/** The policy that is proposed, against the one in force; of an ended approval, against the one of that time. */
function PolicyChange({ approval, document }: { approval: Approval; document: PolicyDocument }) {
  const { policy_version: asked } = approval
  const call: Call = isOpen(approval) ? get('/v2/policy') : get('/v2/policy/versions', { before: asked + 1 })
  const read = useCall<Policy | { items: { policy: Policy }[] }>(call)
  const found = read.data.value
  if (found === undefined) return <Answered of={read}>{() => null}</Answered>
  const before = 'items' in found ? found.items[0]?.policy : found
  return (
    <>
      {before !== undefined && before.version !== asked && (
        <p class="failure">
          The policy has changed since this was asked for: version {before.version} is in force, not {asked}.
          The change would be refused.
        </p>
      )}
      <PolicyDiff before={before === undefined ? EMPTY : documentOf(before)} after={document} />
    </>
  )
}

interface Member {
  name: string
  before: unknown
  after: unknown
}
const inText = (value: unknown) => (value === undefined ? '' : <code>{JSON.stringify(value)}</code>)
const COLUMNS: Column<Member>[] = [
  { name: 'Member', cell: ({ name }) => name },
  { name: 'Before', cell: ({ before }) => inText(before) },
  { name: 'After', cell: ({ after }) => inText(after) },
]

/** Where the records are that a change can be compared with. */
const PRESENT: Record<string, (id: string) => string> = {
  operator: () => '/v2/operators',
  webhook: (id) => `/v2/webhooks/${id}`,
}

/** The members that a change gives a record, beside those that it has. */
function Members({ of: { operation, target, values } }: { of: ChangeToApprove }) {
  const path = operation.startsWith('PUT ') ? PRESENT[target.type]?.(target.id) : undefined
  const { data } = useCall<
    Record<string, unknown> & { items?: (Record<string, unknown> & { id: string })[] }
  >(path === undefined ? undefined : get(path))
  const present = data.value?.items?.find(({ id }) => id === target.id) ?? data.value
  const members = Object.entries(values).map(([name, after]) => ({ name, before: present?.[name], after }))
  return members.length === 0 ? null : (
    <Table name="Members that change" items={members} columns={COLUMNS} keyOf={({ name }) => name} />
  )
}

/** The request that makes an approved change; undefined where only the sender of the request has all of it. */
function requestOf({ id, policy_version }: Approval, change: ChangeToApprove): Call | undefined {
  const { operation, target, values } = change
  const query = { approval_id: id }
  // A version that somebody else has made since is not replaced.
  if (operation === 'policy.set')
    return { method: 'PUT', path: '/v2/policy', query, body: { ...values, replaces: policy_version } }
  const [, method, path] = /^(POST|PUT|DELETE) (\/v2\/(?:api-creds|operators)\/\S+)$/.exec(operation) ?? []
  if (path === undefined) return undefined
  return {
    method: method as Call['method'],
    path: path.replace(/\{\w+\}/, target.id),
    query,
    ...(method !== 'DELETE' && { body: values }),
  }
}

/** Makes the change once it is approved, where the person asked for it. */
export function MakeChange({ of: approval, again }: { of: Approval; again: () => void }) {
  const secret = useSignal('')
  const change = changeOf(approval)
  const { status, initiator } = approval
  const isMine = initiator.type === 'OPERATOR' && initiator.id === session.value!.operator.id
  const request = change && requestOf(approval, change)
  return (
    <>
      <ShownOnce of={secret}>The new secret of the API client.</ShownOnce>
      {change !== undefined && status === 'APPROVED' && (
        <section>
          <h2>Making the change</h2>
          {isMine && request !== undefined ? (
            <Action<{ client_secret?: string }>
              call={request}
              kind="main"
              done={({ client_secret = '' }) => {
                secret.value = client_secret
                again()
              }}
            >
              Make the change now
            </Action>
          ) : (
            <p>Who asked for it makes the change, with the same request and this approval.</p>
          )}
        </section>
      )}
    </>
  )
}
