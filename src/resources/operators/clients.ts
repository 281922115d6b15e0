import { Type } from 'typebox'
import { registerApiClient, renameApiClient } from '../../access/tokens/api-clients.ts'
import { Closed, Nothing, OneOf, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { SCOPES } from '../../contract/scopes.ts'
import { transaction } from '../../db/database.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import { operatorOperation } from '../operation.ts'

/** API clients of the token's customer. */

const Name = Text(100, 'Its name, for people.', 1)

/** Creates an API client; its secret is answered once. The operator gives no scope that it does not have itself. */
export const createClient = operatorOperation({
  method: 'POST',
  url: '/v2/operators/clients',
  scope: 'operators:write_client',
  summary: 'Create API Client',
  repeats: 'a second request makes a second client; List API Credentials shows what exists',
  query: ApprovalQuery,
  body: Closed({
    name: Name,
    scopes: Type.Array(OneOf(SCOPES, 'A scope.'), {
      minItems: 1,
      maxItems: SCOPES.length,
      uniqueItems: true,
    }),
  }),
  reply: Type.Object({
    client_id: Uuid('API client.'),
    client_secret: Type.String({ description: 'Its secret, which is answered once.' }),
  }),
  run({ query: { approval_id }, body, customerId, scopes, origin, settings, db, policies, rowMacs }) {
    if (settings.oauthIssuer !== undefined)
      throw problem.badRequest(`access tokens come from ${settings.oauthIssuer}: create the client there`)
    const lacking = body.scopes.filter((scope) => !scopes.includes(scope))
    if (lacking.length > 0)
      throw problem.forbidden(`the access token lacks scopes to give: ${lacking.join(' ')}`)
    const asked = {
      subject: 'CREDENTIALS',
      customer_id: customerId,
      origin,
      operation: 'POST /v2/operators/clients',
      target: { type: 'api_client', id: 'new' },
      values: body,
      approval_id,
    } as const
    return withApprovedChange(db, policies, asked, (tx) =>
      registerApiClient(tx, rowMacs, customerId, body, origin),
    )
  },
})

export const renameClient = operatorOperation({
  method: 'PUT',
  url: '/v2/operators/clients/:client_id',
  scope: 'operators:write_client',
  summary: 'Rename API Client',
  params: Closed({ client_id: Uuid('API client.') }),
  body: Closed({ name: Name }),
  reply: Nothing,
  run: ({ params: { client_id }, body: { name }, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      if (!(await renameApiClient(tx, customerId, client_id, name, origin)))
        throw problem.notFound('API client', client_id)
      return {}
    }),
})
