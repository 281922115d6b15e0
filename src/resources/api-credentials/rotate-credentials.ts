import assert from 'node:assert/strict'
import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, GRACE_SECONDS, GraceSeconds, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { rotateSecret } from '../../access/tokens/api-clients.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import { ApiCredentials, CREDENTIALS_COLUMNS, credentialsToWire, type CredentialsRow } from './credentials.ts'

/**
 * Gives an API client a new secret (API behaviour, API credentials). Its previous secret stays valid for
 * `grace_seconds`. The token must have all scopes of that client, because the new secret gives them to the caller.
 */
export const rotateCredentials = operation({
  method: 'POST',
  url: '/v2/api-creds/credentials/:client_id/rotate',
  scope: 'api_creds:rotate_credentials',
  tag: 'API Credentials',
  repeats: 'a second rotation retires the secret that the first one made',
  summary: 'Rotate API Credentials',
  description:
    'Answers a new secret, which is shown only once. The previous secret is accepted until `grace_seconds` have passed; a secret from before that one no longer. Access tokens stay valid until they expire. The token of this request must have every scope of the client.',
  params: Type.Object({ client_id: Uuid('The API client.') }),
  query: ApprovalQuery,
  body: Closed({ grace_seconds: GraceSeconds('How long the previous secret is accepted. 0: no longer.') }),
  example: {
    params: { client_id: EXAMPLE.client_id },
    bodies: { 'One hour for the change': { grace_seconds: 3600 } },
  },
  reply: Type.Object({
    client_id: Uuid('The API client.'),
    client_secret: Type.String({ description: 'The new secret. It is not stored and not shown again.' }),
    credentials: ApiCredentials,
  }),
  problems: ['not-found', 'approval-required', 'approval-ended'],
  run: ({
    params: { client_id },
    query: { approval_id },
    body,
    customerId,
    scopes,
    origin,
    settings,
    db,
    policies,
    rowMacs,
  }) => {
    if (settings.oauthIssuer !== undefined)
      throw problem.badRequest(`access tokens come from ${settings.oauthIssuer}: rotate the secret there`)
    const change = {
      subject: 'CREDENTIALS',
      operation: 'POST /v2/api-creds/credentials/{client_id}/rotate',
      target: { type: 'api_client', id: client_id },
      values: body,
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    return withApprovedChange(db, policies, asked, async (tx) => {
      const { rows } = await tx.query<CredentialsRow>(
        `select ${CREDENTIALS_COLUMNS} from api_clients where customer_id = $1 and id = $2 for update`,
        [customerId, client_id],
      )
      const [client] = rows
      if (client === undefined || client.disabled_at !== null) throw problem.notFound('API client', client_id)
      const lacking = client.scopes.filter((scope) => !scopes.includes(scope))
      if (lacking.length > 0)
        throw problem.forbidden(
          `the access token lacks scopes of API client ${client_id}: ${lacking.join(' ')}`,
        )
      const rotated = await rotateSecret(tx, rowMacs, client_id, body.grace_seconds ?? GRACE_SECONDS, origin)
      assert(rotated !== undefined, 'the row is locked and enabled')
      const { client_secret, ...changed } = rotated
      return { client_id, client_secret, credentials: credentialsToWire({ ...client, ...changed }) }
    })
  },
})
