import { get } from './api.ts'
import { diffOf } from './diff.ts'
import { useCall, useTransfers } from './load.ts'
import { changesInWords, comparable, isSame, isUnpriced, ruleInWords, termsInWords } from './policy-words.ts'
import type { PolicyDocument } from './policy-words.ts'
import type { Policy } from './records.ts'
import { may } from './session.ts'

/** A policy in plain words, and the difference of two policies. */

/** The rules of a policy in their order, and its terms. */
export const Rules = ({ of }: { of: PolicyDocument }) => (
  <>
    {of.rules.length === 0 ? (
      <p>It has no rules: every payment is allowed.</p>
    ) : (
      <>
        <p class="quiet">The first rule that decides wins. A payment that none decides is allowed.</p>
        <ol class="rules">
          {of.rules.map((rule) => (
            <li key={rule.id}>
              <code>{rule.id}</code> {ruleInWords(rule)}{' '}
              {rule.description !== undefined && <small>{rule.description}</small>}
            </li>
          ))}
        </ol>
      </>
    )}
    <ul class="plain">
      {termsInWords(of).map((term) => (
        <li key={term}>{term}</li>
      ))}
    </ul>
  </>
)

/** What a rule of a version says, and why it fits a payment without a price; nothing where it cannot be read or trusted. */
export function RuleInForce({
  version,
  id,
  of,
}: {
  version: number
  id: string | null | undefined
  of: string
}) {
  const call = get('/v2/policy/versions', { before: version + 1 })
  const isRead = typeof id === 'string' && may('policy:read_policy')
  type Versions = { items: { policy: Policy; trusted: boolean }[] }
  const found = useCall<Versions>(isRead ? call : undefined).data.value?.items[0]
  const transfer = useTransfers([of]).get(of)
  const rule = found?.policy.rules.find((rule) => rule.id === id)
  if (rule === undefined || found?.trusted !== true) return null
  return (
    <>
      {ruleInWords(rule)}
      {transfer !== undefined &&
        isUnpriced(rule, transfer) &&
        ` No price of ${transfer.asset} was an hour old at most: then a payment is beyond each limit in USD.`}
    </>
  )
}

const TAGS = { '+': 'ins', '−': 'del', ' ': 'span' } as const

/** Two texts as one, with the lines marked that only one of them has. */
const Diff = ({ name, before, after }: { name: string; before: string; after: string }) => (
  <pre class="diff" tabIndex={0} role="region" aria-label={name}>
    {diffOf(before.split('\n'), after.split('\n')).map(({ kind, text }, index) => {
      const Tag = TAGS[kind]
      return <Tag key={index}>{`${kind} ${text}`}</Tag>
    })}
  </pre>
)

/** The difference of two policies, in words and line by line. */
export const PolicyDiff = ({ before, after }: { before: PolicyDocument; after: PolicyDocument }) =>
  isSame(before, after) ? (
    <p class="quiet">Nothing differs.</p>
  ) : (
    <>
      <ul>
        {changesInWords(before, after).map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
      <Diff name="The difference, line by line" before={comparable(before)} after={comparable(after)} />
    </>
  )
