import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import { ApiCredentials, CREDENTIALS_COLUMNS, credentialsToWire, type CredentialsRow } from './credentials.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const deleteCredentials = operation({
  method: 'DELETE',
  url: '/v2/api-creds/credentials/:client_id',
  scope: 'api_creds:delete_credentials',
  tag: 'API Credentials',
  summary: 'Delete API Credentials',
  description:
    'The secret and all access tokens of the API client are refused within a second. The record stays, with the status DELETED. A repeat changes nothing. Only an operator can undo it, or create another client.',
  params: Type.Object({ client_id: Uuid('The API client.') }),
  query: ApprovalQuery,
  example: { params: { client_id: EXAMPLE.client_id } },
  reply: Type.Object({ credentials: ApiCredentials }),
  problems: ['not-found', 'approval-required', 'approval-ended'],
  run: ({ params: { client_id }, query: { approval_id }, customerId, origin, db, policies }) => {
    const change = {
      subject: 'CREDENTIALS',
      operation: 'DELETE /v2/api-creds/credentials/{client_id}',
      target: { type: 'api_client', id: client_id },
      values: {},
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    return withApprovedChange(db, policies, asked, async (tx) => {
      const { rows } = await tx.query<CredentialsRow>(
        `select ${CREDENTIALS_COLUMNS} from api_clients where customer_id = $1 and id = $2 for update`,
        [customerId, client_id],
      )
      const [client] = rows
      if (client === undefined) throw problem.notFound('API client', client_id)
      if (client.disabled_at !== null) return { credentials: credentialsToWire(client) }
      const { rows: deleted } = await tx.query<CredentialsRow>(
        `
        update api_clients
        set disabled_at = now, updated_at = now
        from (select clock_timestamp() as now) clock
        where customer_id = $1 and id = $2
        returning ${CREDENTIALS_COLUMNS}`,
        [customerId, client_id],
      )
      await recordNow(tx, customerId, audited(origin, 'api_client.delete', client_id))
      return { credentials: credentialsToWire(deleted[0]!) }
    })
  },
})
