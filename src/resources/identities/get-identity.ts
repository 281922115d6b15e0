import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { Identity, identityToWire, includeParameters, requireIdentity } from './identity.ts'

/** Reads one identity by id (API behaviour, Identities). */
export const getIdentity = operation({
  method: 'GET',
  url: '/v2/identity/identities/:id',
  scope: 'identity:read_identity',
  tag: 'Identities',
  summary: 'Get Identity',
  description: 'Reads one identity.',
  example: { params: { id: EXAMPLE.identity_id } },
  params: Type.Object({ id: Uuid('Identity id.') }),
  query: Closed(includeParameters),
  reply: Identity,
  problems: ['not-found'],
  async run({ params, query, customerId, db }) {
    return identityToWire(await requireIdentity(db, customerId, params.id), query)
  },
})
