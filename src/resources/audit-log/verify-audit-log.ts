import { Type } from 'typebox'
import { Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { verifyNextLinks } from '../../money/verify/audit-chains.ts'

const Position = (description: string) => Type.Integer({ minimum: 0, description })
const Hash = (description: string) =>
  Type.String({
    pattern: '^[0-9a-f]{64}$',
    inWords: 'must be 64 hexadecimal digits in lower case',
    maxLength: 64,
    description,
  })

export const AuditLogVerification = Type.Object({
  links: Type.Integer({ minimum: 0, description: 'Links that this request computed again.' }),
  records: Type.Integer({
    minimum: 0,
    description: 'Their rows of the audit log; payments of a batch share one.',
  }),
  checked: Type.Object(
    { position: Position('Its position.'), hash: Hash('Its hash.') },
    {
      description:
        'The last link that is as it was written. Send it as `after_position` and `after_hash` to continue.',
    },
  ),
  is_complete: Type.Boolean({ description: 'Whether it is the last link of the chain.' }),
  head: Type.Optional(
    Type.Object(
      {
        customer_id: Uuid('Customer.'),
        position: Position('The position of the last link.'),
        hash: Hash('Its hash.'),
      },
      {
        description: 'The end of the chain. Kept elsewhere, it contradicts whoever rewrites the chain later.',
      },
    ),
  ),
  fault: Type.Optional(
    Type.Object(
      {
        fault: Type.String({ description: 'What is not as it was written.' }),
        position: Type.Optional(Position('The link.')),
        record_id: Type.Optional(Type.String({ description: 'The record of the audit log.' })),
        action: Type.Optional(Type.String({ description: 'Its action.' })),
        subject_ids: Type.Optional(
          Type.Array(Type.String(), { description: 'The records that were changed, or whose entries were.' }),
        ),
        created_at: Type.Optional(Timestamp('When it was written.')),
      },
      {
        description: 'The first place that is not as it was written. Absent: there is none up to `checked`.',
      },
    ),
  ),
})

export const verifyAuditLog = operation({
  method: 'GET',
  url: '/v2/audit-log/verification',
  scope: 'audit:read_audit_log',
  tag: 'Governance',
  summary: 'Verify Audit Log',
  description:
    "Computes links of the audit log's chain again, from their records and the ledger entries that these cover. A request computes some hundred links: while `is_complete` is false, repeat it after `checked`. It may also begin after a head that was kept elsewhere, which the chain must then contain.",
  query: Closed({
    after_position: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Begin after this link (default: with the first).',
      }),
    ),
    after_hash: Type.Optional(Hash('The hash of that link, as it was known before.')),
  }),
  example: {},
  reply: AuditLogVerification,
  async run({ query: { after_position: position, after_hash: hash }, customerId, db }) {
    if ((position === undefined) !== (hash === undefined))
      throw problem.badRequest(
        'after_position and after_hash are sent together',
        'after_position',
        'after_hash',
      )
    const after = position === undefined || hash === undefined ? undefined : { position, hash }
    const found = await transaction(
      db,
      (tx) => verifyNextLinks(tx, customerId, after),
      'isolation level repeatable read read only',
    )
    return {
      ...found,
      is_complete: found.fault === undefined && found.checked.position === found.head?.position,
    }
  },
})
