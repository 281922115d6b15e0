import { operation } from '../operation.ts'
import { NO_POLICY, Policy, policyToWire } from '../../governance/policy/policy.ts'

export const getPolicy = operation({
  method: 'GET',
  url: '/v2/policy',
  scope: 'policy:read_policy',
  tag: 'Governance',
  summary: 'Get Policy',
  description:
    'Reads the rules for payments, and which changes need approval. Version 0: there is no policy.',
  reply: Policy,
  problems: ['unavailable'],
  async run({ customerId, db, policies }) {
    return policyToWire((await policies.newest(db, customerId)) ?? NO_POLICY)
  },
})
