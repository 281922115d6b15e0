import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { FOUND_BY, FOUND_MAX, FOUND_TYPES } from './find-by-whole-name.ts'
import { findRecords } from './find-records.ts'

/** The longest name of a record: a memo of 256 characters. */
const TEXT_LENGTH_MAX = 256

const Found = NamedObject('FoundRecord', {
  type: OneOf(Object.keys(FOUND_TYPES), 'Type of the record.'),
  id: Uuid('Id of the record.'),
  found_by: OneOf(
    FOUND_BY,
    'Which of its names was searched for. PREFIX: the beginning of an id, hash or address. NAME: the beginning of a name for people. AMOUNT: its amount or total.',
  ),
  status: Type.Optional(Type.String({ description: 'Status of the record, where it has one.' })),
  amount: Type.Optional(Amount('Amount of the record, where it has one.')),
  asset: Type.Optional(AssetSymbol),
  profile_id: Type.Optional(Uuid('Profile of the record, where it has one.')),
  name: Type.Optional(
    Type.String({
      description: 'Name of the record; otherwise that of its profile, for tokens that may read profiles.',
    }),
  ),
  created_at: Timestamp('When the record was created.'),
})

export const searchRecords = operation({
  method: 'GET',
  url: '/v2/search',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Search Records',
  description: `Finds records by their id, \`ref_id\`, transaction hash, address, memo or the bank's reference of a wire; then by the beginning of an id, hash, address or name, and by amount. At most ${FOUND_MAX}, each kind newest first. Records of types that the token may not read are left out.`,
  query: Closed({
    q: Type.String({
      minLength: 1,
      maxLength: TEXT_LENGTH_MAX,
      description:
        'An id, `ref_id`, transaction hash, address, memo or the reference of a bank. Or the beginning of an id (8 hexadecimal digits), hash, address (6 characters after `0x`) or name (3 characters); or `0x529084…169EE7`, its beginning and its end; or an amount, such as `26.5` or `26.5 USDP`.',
    }),
  }),
  example: { query: { q: EXAMPLE.transfer_id } },
  reply: Type.Object({ items: Type.Array(Found) }),
  async run({ query, customerId, scopes, settings, db, rowMacs }) {
    const items = await findRecords(db, customerId, query.q.trim(), {
      scopes,
      sandbox: settings.mode === 'sandbox',
      macs: rowMacs,
    })
    return { items }
  },
})
