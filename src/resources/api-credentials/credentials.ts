import { Type, type Static } from 'typebox'
import { NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { presentOf } from '../../db/rows.ts'

/** The credentials of an API client, without its secret (API behaviour, API credentials). */
export const ApiCredentials = NamedObject('ApiCredentials', {
  id: Uuid('The same as client_id.'),
  client_id: Uuid('The id of the API client.'),
  name: Type.Optional(Type.String({ description: 'Its name, for people. The operator gives it.' })),
  customer_id: Uuid('Customer id.'),
  client_scopes: Type.Array(Type.String(), { description: 'The scopes that its tokens may have.' }),
  client_scope_strings: Type.Array(Type.String(), { description: 'The same as client_scopes.' }),
  status: OneOf(['APPROVED', 'DELETED'], 'DELETED: its tokens are refused.'),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
  last_used_at: Type.Optional(Timestamp('When it last took an access token, to the minute.')),
  previous_secret_expires_at: Type.Optional(
    Timestamp('After a rotation: until when the previous secret is accepted.'),
  ),
})

export interface CredentialsRow {
  customer_id: string
  id: string
  name: string | null
  created_at: string
  updated_at: string
  disabled_at: string | null
  scopes: string[]
  last_used_at: string | null
  previous_secret_expires_at: string | null
}

export const CREDENTIALS_COLUMNS =
  'customer_id, id, name, created_at, updated_at, last_used_at, disabled_at, scopes, previous_secret_expires_at'

export const credentialsToWire = (row: CredentialsRow): Static<typeof ApiCredentials> => ({
  id: row.id,
  client_id: row.id,
  customer_id: row.customer_id,
  client_scopes: row.scopes,
  client_scope_strings: row.scopes,
  status: row.disabled_at === null ? 'APPROVED' : 'DELETED',
  created_at: row.created_at,
  updated_at: row.updated_at,
  ...presentOf({
    name: row.name,
    last_used_at: row.last_used_at,
    previous_secret_expires_at: row.previous_secret_expires_at,
  }),
})
