import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { get, post, put } from '../api.ts'
import { Table, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Amount, Answered, Curl, Failure, Id, Status, Time, Title } from '../parts.tsx'
import { PolicyDiff, Rules } from '../policy.tsx'
import { changesInWords, documentOf, EMPTY, isSame, textOf, type PolicyDocument } from '../policy-words.ts'
import type { Policy, PolicyTrial } from '../records.ts'
import { may } from '../session.ts'
import { amountColumn } from '../tables.tsx'

/** The customer's policy: what its rules say, a new version, and the versions before. */

const policy = get('/v2/policy')
const versions = get('/v2/policy/versions')

export function PolicyPage() {
  const read = useCall<Policy>(policy)
  return (
    <>
      <Title>Policy</Title>
      <Answered of={read}>
        {(present) => (
          <>
            <p>
              {present.created_at === undefined ? (
                'There is no policy yet.'
              ) : (
                <>
                  Version {present.version}, since <Time at={present.created_at} />.
                </>
              )}
            </p>
            <Rules of={documentOf(present)} />
            <details>
              <summary>As JSON</summary>
              <pre class="diff" tabIndex={0}>
                {textOf(documentOf(present))}
              </pre>
            </details>
            {may('policy:write_policy') && (
              <Edit key={present.version} present={present} again={() => read.again()} />
            )}
            <Versions key={`versions ${present.version}`} />
          </>
        )}
      </Answered>
      <Curl of={policy} />
    </>
  )
}

/** What a text says, or why it is no policy. */
function documentIn(text: string, present: PolicyDocument): { document?: PolicyDocument; fault?: Error } {
  try {
    const document = JSON.parse(text) as PolicyDocument
    changesInWords(present, document)
    return { document }
  } catch (error) {
    return { fault: error instanceof SyntaxError ? error : new Error('It has no list of rules.') }
  }
}

/** A new version: its text, what differs, what it would have done, and saving it. */
function Edit({ present, again }: { present: Policy; again: () => void }) {
  const before = documentOf(present)
  const text = useSignal(textOf(before))
  const { document, fault } = documentIn(text.value, before)
  return (
    <section>
      <h2>A new version</h2>
      <label class="text">
        The policy as JSON
        <textarea
          rows={16}
          spellcheck={false}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      </label>
      <Failure of={fault} />
      {document !== undefined && <PolicyDiff before={before} after={document} />}
      {document !== undefined && (
        <>
          <Trial key={text.value} document={document} />
          {!isSame(before, document) && (
            <Action
              call={put('/v2/policy', { ...document, replaces: present.version })}
              done={again}
              kind="main"
              ask={`Make it version ${present.version + 1}? It counts for every payment from then on.`}
            >
              Save
            </Action>
          )}
        </>
      )}
    </section>
  )
}

type TriedOutcome = PolicyTrial['outcomes'][number]

const TRIED: Column<TriedOutcome>[] = [
  {
    name: 'Rule',
    cell: ({ rule_id }) => (rule_id === undefined ? 'none' : <code>{rule_id}</code>),
  },
  { name: 'Outcome', cell: ({ outcome }) => <Status of={outcome} /> },
  { name: 'Payments', number: true, cell: ({ count }) => count },
  amountColumn('Value', ({ notional_value: amount }) => ({ amount, asset: 'USD' })),
  {
    name: 'Totals',
    number: true,
    cell: ({ totals }) =>
      totals.map(({ asset, total }) => (
        <div key={asset}>
          <Amount amount={total} asset={asset} />
        </div>
      )),
  },
  {
    name: 'The newest',
    cell: ({ transfer_ids }) =>
      transfer_ids.map((id) => (
        <div key={id}>
          <Id of={id} to={`transfers/${id}`} />
        </div>
      )),
  },
]

/** What a policy would have done with the payments of the last 30 days. */
function Trial({ document }: { document: PolicyDocument }) {
  const found = useSignal<PolicyTrial | undefined>(undefined)
  return (
    <>
      <Action<PolicyTrial>
        call={post('/v2/operators/policy-trials', document)}
        done={(answer) => (found.value = answer)}
      >
        Try it on the last month's payments
      </Action>
      <div role="status">{found.value !== undefined && <Tried of={found.value} />}</div>
    </>
  )
}

const Tried = ({ of: { from, judged, has_more, outcomes } }: { of: PolicyTrial }) => (
  <>
    <p>
      {judged} payments since <Time at={from} />, in their order{has_more && '; older ones are left out'}.
      Limits count from then on. Payments that were refused, and those to other customers, are left out.
    </p>
    {outcomes.length > 0 && (
      <Table
        name="What it would have done"
        items={outcomes}
        columns={TRIED}
        keyOf={({ rule_id, outcome }) => `${rule_id} ${outcome}`}
      />
    )}
  </>
)

interface Version {
  policy: Policy
  trusted: boolean
}

/** The newest hundred versions, each with what it changed. */
function Versions() {
  const { data, error } = useCall<{ items: Version[] }>(versions)
  if (data.value?.items.length === 0) return null
  return (
    <section>
      <h2>Versions</h2>
      <Failure of={error.value} />
      {data.value?.items.map((version, index, { [index + 1]: earlier }) => (
        <VersionOf key={version.policy.version} of={version} earlier={earlier?.policy} />
      ))}
      <Curl of={versions} />
    </section>
  )
}

function VersionOf({ of: { policy: now, trusted }, earlier }: { of: Version; earlier: Policy | undefined }) {
  const isShown = useSignal(false)
  const before = earlier === undefined ? undefined : documentOf(earlier)
  return (
    <details onToggle={({ currentTarget }) => (isShown.value = currentTarget.open)}>
      <summary>
        Version {now.version}, <Time at={now.created_at!} /> {!trusted && <Status of="NOT TRUSTED" />}
      </summary>
      {isShown.value &&
        (before === undefined && now.version > 1 ? (
          <p class="quiet">The version before it is not shown here.</p>
        ) : (
          <PolicyDiff before={before ?? EMPTY} after={documentOf(now)} />
        ))}
    </details>
  )
}
