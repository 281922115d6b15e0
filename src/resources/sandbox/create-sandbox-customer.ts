import { Type } from 'typebox'
import { createCustomer } from '../../money/records/customer.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'
import { Closed, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { scopesOf } from '../../contract/scopes.ts'
import { forAll, transaction } from '../../db/database.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { operation } from '../operation.ts'

/** The scope over the whole sandbox, which a customer of a test does not get. */
const OF_THE_WHOLE = 'sandbox:write_sandbox'
const SCOPES = scopesOf('sandbox').filter((scope) => scope !== OF_THE_WHOLE)

export const createSandboxCustomer = operation({
  method: 'POST',
  url: '/v2/sandbox/customers',
  scope: OF_THE_WHOLE,
  tag: 'Sandbox',
  repeats: 'each request creates a customer',
  summary: 'Create Sandbox Customer',
  description:
    'Creates a customer with its DEFAULT profile and an API client, so that suites which run at the same time do not see each other. The client has every scope but `sandbox:write_sandbox`. Exists in sandbox mode only.',
  sandboxOnly: true,
  body: Closed({ name: Type.Optional(Text(100, 'Name of the customer and its API client.', 1)) }),
  example: { bodies: { 'A customer for one suite': { name: 'checkout suite' } } },
  reply: Type.Object({
    customer_id: Uuid('The customer.'),
    profile_id: Uuid('Its DEFAULT profile.'),
    client_id: Uuid('The API client.'),
    client_secret: Type.String({ description: 'Its secret, which is not stored and not shown again.' }),
    base_url: Type.String({ description: 'Where the API is.' }),
    token_url: Type.String({ description: 'Where the client takes its access tokens.' }),
  }),
  run({ body: { name = 'Sandbox customer' }, origin, db, settings, rowMacs, baseUrl }) {
    if (settings.oauthIssuer !== undefined)
      throw problem.badRequest(`access tokens come from ${settings.oauthIssuer}: create the client there`)
    return transaction(forAll(db), async (tx) => {
      const created = await createCustomer(tx, name)
      const { customer_id } = created
      const client = await createApiClient(tx, rowMacs, customer_id, SCOPES, { name })
      await recordNow(
        tx,
        customer_id,
        audited(origin, 'customer.create', customer_id),
        audited(origin, 'api_client.create', client.client_id, { after: { scopes: SCOPES } }),
      )
      return { ...created, ...client, base_url: baseUrl, token_url: `${baseUrl}/oauth2/token` }
    })
  },
})
