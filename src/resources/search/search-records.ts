import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { findRecords, FOUND_BY, FOUND_MAX, FOUND_TYPES } from './find-records.ts'

/** The longest name of a record: a memo of 256 characters. */
const TEXT_LENGTH_MAX = 256

const Found = NamedObject('FoundRecord', {
  type: OneOf(Object.keys(FOUND_TYPES), 'Type of the record.'),
  id: Uuid('Id of the record.'),
  found_by: OneOf(FOUND_BY, 'Which of its names was searched for.'),
  status: Type.Optional(Type.String({ description: 'Status of the record, where it has one.' })),
  created_at: Timestamp('When the record was created.'),
})

/** Finds records by any of their names (API behaviour, Search). */
export const searchRecords = operation({
  method: 'GET',
  url: '/v2/search',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Search Records',
  description: `Finds records by their exact id, \`ref_id\`, transaction hash, address or memo, newest first and at most ${FOUND_MAX}. Records of types that the token may not read are left out.`,
  query: Closed({
    q: Type.String({
      minLength: 1,
      maxLength: TEXT_LENGTH_MAX,
      description: 'An id, `ref_id`, transaction hash, address or memo.',
    }),
  }),
  example: { query: { q: EXAMPLE.transfer_id } },
  reply: Type.Object({ items: Type.Array(Found) }),
  async run({ query, customerId, scopes, settings, db }) {
    const items = await findRecords(db, customerId, query.q.trim(), {
      scopes,
      sandbox: settings.mode === 'sandbox',
    })
    return { items }
  },
})
