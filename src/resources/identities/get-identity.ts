import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed } from '../../contract/fields.ts'
import { readOperation } from '../operation.ts'
import { Identity, identityToWire, includeParameters, requireIdentity } from '../../money/records/identity.ts'

export const getIdentity = readOperation({
  url: '/v2/identity/identities/:id',
  scope: 'identity:read_identity',
  tag: 'Identities',
  summary: 'Get Identity',
  description: 'Reads one identity.',
  id: 'Identity id.',
  example: EXAMPLE.identity_id,
  query: Closed(includeParameters),
  reply: Identity,
  async run({ params, query, customerId, db }) {
    return identityToWire(await requireIdentity(db, customerId, params.id), query)
  },
})
