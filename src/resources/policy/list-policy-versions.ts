import { Type } from 'typebox'
import { operation } from '../operation.ts'
import { Policy, policyToWire } from '../../governance/policy/policy.ts'
import { Closed } from '../../contract/fields.ts'

const VERSIONS_MAX = 100

export const listPolicyVersions = operation({
  method: 'GET',
  url: '/v2/policy/versions',
  scope: 'policy:read_policy',
  tag: 'Governance',
  summary: 'List Policy Versions',
  description: 'Lists up to 100 versions, newest first; `before` continues.',
  query: Closed({
    before: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Only versions with a lower number.',
      }),
    ),
  }),
  reply: Type.Object({
    items: Type.Array(
      Type.Object({
        policy: Policy,
        trusted: Type.Boolean({
          description:
            'False: its MAC is wrong or its master key is not configured, and nothing is paid under it.',
        }),
      }),
    ),
  }),
  async run({ query: { before }, customerId, db, policies }) {
    const rows = await policies.versions(db, customerId, before, VERSIONS_MAX)
    return { items: rows.map(({ trusted, ...version }) => ({ policy: policyToWire(version), trusted })) }
  },
})
