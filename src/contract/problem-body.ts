import { Type, type Static } from 'typebox'
import { NamedObject } from './fields.ts'

/** The body of every error response (RFC 9457). */
export const ProblemBody = NamedObject('Problem', {
  type: Type.String({ description: 'The URI of a page that explains the problem, or about:blank.' }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String({ description: 'What is wrong: the field and the rule.' }),
  meta: Type.Optional(
    Type.Unsafe<Record<string, unknown>>(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'Facts about the problem; its fields depend on `type`.',
        },
      ),
    ),
  ),
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        pointer: Type.String({
          description: 'The field, as a JSON pointer: #/destination/crypto/network.',
        }),
        detail: Type.String(),
      }),
      {
        description:
          'Of a 400: the fields that are wrong. Where the request breaks its schema, all of them, at most 20; otherwise those that `detail` is about. Of a 404: those of the body that name the record.',
      },
    ),
  ),
})
export type ProblemBody = Static<typeof ProblemBody>
