import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Uuid } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'
import { operation } from '../operation.ts'
import { ApiCredentials, CREDENTIALS_COLUMNS, credentialsToWire, type CredentialsRow } from './credentials.ts'

/**
 * Deletes an API client, possibly the caller itself (API behaviour, API credentials). Its secret and its access
 * tokens are refused within a second. The record stays. A repeat changes nothing.
 */
export const deleteCredentials = operation({
  method: 'DELETE',
  url: '/v2/api-creds/credentials/:client_id',
  scope: 'api_creds:delete_credentials',
  tag: 'API Credentials',
  summary: 'Delete API Credentials',
  description:
    'The secret and all access tokens of the API client are refused within a second. The record stays, with the status DELETED. A repeat changes nothing. Only an operator can undo it, or create another client.',
  params: Type.Object({ client_id: Uuid('The API client.') }),
  example: { params: { client_id: EXAMPLE.client_id } },
  reply: Type.Object({ credentials: ApiCredentials }),
  problems: ['not-found'],
  async run({ params: { client_id }, customerId, db }) {
    const { rows } = await db.query<CredentialsRow>(
      `
      update api_clients
      set updated_at = case when disabled_at is null then clock_timestamp() else updated_at end,
          disabled_at = coalesce(disabled_at, clock_timestamp())
      where customer_id = $1 and id = $2
      returning ${CREDENTIALS_COLUMNS}`,
      [customerId, client_id],
    )
    if (rows[0] === undefined) throw problem.notFound('API client', client_id)
    return { credentials: credentialsToWire(rows[0]) }
  },
})
