import { Type } from 'typebox'
import { Filter, FilterValue } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { ApiCredentials, CREDENTIALS_COLUMNS, credentialsToWire, type CredentialsRow } from './credentials.ts'

/** Lists the customer's API clients, by creation time (API behaviour, API credentials). Secrets are not stored. */
export const listCredentials = operation({
  method: 'GET',
  url: '/v2/api-creds/credentials',
  scope: 'api_creds:read_credentials',
  tag: 'API Credentials',
  summary: 'List API Credentials',
  description: "Lists the customer's API clients, newest first. Secrets are never shown.",
  example: { query: { limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      client_ids: Filter(FilterValue, 'Filter by client ids, as ids does.'),
      statuses: Filter(ApiCredentials.properties.status, 'Filter by status; APPROVED by default.'),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(ApiCredentials),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'api-credentials',
      select: `select ${CREDENTIALS_COLUMNS} from api_clients`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['id = any (?::uuid[])', uuidsOf(query.client_ids)],
        [
          "case when disabled_at is null then 'APPROVED' else 'DELETED' end = any (?)",
          query.statuses ?? ['APPROVED'],
        ],
      ],
      toWire: (row: CredentialsRow) => credentialsToWire(row),
    }),
})
