import { OneOf } from '../../contract/fields.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { ApiCredentials, CREDENTIALS_COLUMNS, credentialsToWire, type CredentialsRow } from './credentials.ts'

export const listCredentials = listOperation({
  url: '/v2/api-creds/credentials',
  scope: 'api_creds:read_credentials',
  tag: 'API Credentials',
  summary: 'List API Credentials',
  description: "Lists the customer's API clients, newest first. Secrets are never shown.",
  example: { query: { limit: 10 } },
  list: 'api-credentials',
  item: ApiCredentials,
  select: `select ${CREDENTIALS_COLUMNS} from api_clients`,
  filters: {
    ids: filterBy.ids('id', 'Filter by ids.'),
    client_ids: filterBy.ids('id', 'Filter by client ids, as ids does.'),
    statuses: {
      ...filterBy.values(
        "case when disabled_at is null then 'APPROVED' else 'DELETED' end",
        'Filter by status; APPROVED by default. No record is DISABLED.',
        OneOf(['APPROVED', 'DELETED', 'DISABLED'], 'Status.'),
      ),
      compareWith: (given = ['APPROVED']) => given,
    },
  },
  toWire: (row: CredentialsRow) => credentialsToWire(row),
})
