import { Type, type TObjectOptions, type TProperties, type TSchema, type TSchemaOptions } from 'typebox'
import { AMOUNT_PATTERN } from './assets/amount.ts'
import { CRYPTO_NETWORKS } from './assets/catalogue.ts'

/** Schemas of fields that many operations share. Each has a maximum length: the patterns backtrack on long input. */

/** A record, by its name in the API document. */
export const NamedObject = <Members extends TProperties>(name: string, members: Members) =>
  Type.Object(members, { $id: name })

/** An object that has these members and no others. */
export const Closed = <Members extends TProperties>(members: Members, options: TObjectOptions = {}) =>
  Type.Object(members, { additionalProperties: false, ...options })

export const OneOf = <const Word extends string>(
  words: readonly Word[],
  description: string,
  options: TSchemaOptions = {},
) => Type.Enum([...words], { type: 'string', ...options, description })

/** The id of a record. UUIDs are converted to lower case, as PostgreSQL writes them. */
export const Uuid = (description: string) =>
  Type.String({
    transform: ['toLowerCase'],
    format: 'uuid',
    maxLength: 36,
    description,
    examples: ['0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'],
  })

/** The `identity_id` of a deposit address, or of deposit instructions, without an identity. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** A decimal string (API behaviour, Transfers). 40 characters hold 21 digits and the 18 decimals of the finest asset. */
export const AMOUNT_LENGTH_MAX = 40
export const Amount = (description: string) =>
  Type.String({
    maxLength: AMOUNT_LENGTH_MAX,
    pattern: AMOUNT_PATTERN,
    inWords: 'must be a decimal number without a sign, such as 25.5',
    description,
    examples: ['25.5'],
  })

export const isAmount = ({ pattern }: { pattern?: string }): boolean => pattern === AMOUNT_PATTERN

export const AssetSymbol = Type.String({
  minLength: 1,
  maxLength: 16,
  pattern: '^[A-Z0-9]+$',
  inWords: 'must be a ticker: capitals and digits',
  description: 'Asset, by its ticker.',
  examples: ['USDP'],
})

export const Network = Type.Enum([...CRYPTO_NETWORKS], {
  type: 'string',
  description: 'Blockchain network.',
  examples: ['ETHEREUM'],
})

export const WIRE_MEMO_LENGTH_MAX = 500

/**
 * Characters that text of a request must not have: those that PostgreSQL cannot store; and control characters, invisible
 * characters, and those that change the direction of text. Emoji and the joiners of Persian or Hindi are allowed.
 */
export const UNSTORABLE = /[\0\p{Surrogate}]/u
export const UNREADABLE =
  /(?![\t\n\r])\p{Cc}|[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\p{Surrogate}]/u

/** LINE: one line. LINES: several. ID: one line without invisible characters. POSTAL: a line of an address, without emoji. */
export type TextKind = 'LINE' | 'LINES' | 'ID' | 'POSTAL'

const BREAK = /[\t\n\r\u2028\u2029]/
const INVISIBLE = /[\p{Cc}\p{Cf}]/u
/** Not \p{Emoji}, which has the digits. */
const EMOJI = /[\p{Emoji_Presentation}\ufe0f]/u
/** Spaces, and letters that are rendered as nothing. */
const BLANK = /^[\s\u115f\u1160\u2800\u3164\uffa0\u200c\u200d]+$/

/** Whether text is not blank and has the form of its kind. `minLength` decides about empty text. */
export const isFilledIn = (kind: TextKind, text: string): boolean =>
  !BLANK.test(text) &&
  (kind === 'LINES' || !BREAK.test(text)) &&
  (kind !== 'ID' || !INVISIBLE.test(text)) &&
  (kind !== 'POSTAL' || !EMOJI.test(text))

const REF_ID_LENGTH_MAX = 100
export const RefId = Type.String({
  minLength: 1,
  maxLength: REF_ID_LENGTH_MAX,
  textKind: 'ID',
  description:
    'Client-specified id for replay protection and lookup: a second record with it is refused with 409.',
  examples: ['payout-2026-0001'],
})

/** How long a previous secret is accepted after a rotation: by default, and at most. */
export const GRACE_SECONDS = 24 * 60 * 60
export const GRACE_SECONDS_MAX = 7 * GRACE_SECONDS
export const GraceSeconds = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: GRACE_SECONDS_MAX, default: GRACE_SECONDS, description }))

/** The query of an operation that moves money. */
export const DryRunQuery = Closed({
  dry_run: Type.Optional(
    Type.Boolean({
      description:
        'True: answers what the same request would be answered now, and changes nothing. The id belongs to no record.',
    }),
  ),
})

/** Free text of one line, such as a name. */
export const Text = (maxLength: number, description: string, minLength = 0) =>
  Type.String({ minLength, maxLength, textKind: 'LINE', description })

/** The name of an actor, which people gave it. */
export const ActorName = Type.Optional(
  Type.String({ description: 'The name of the API client or operator, where it has one.' }),
)

/** Free text of any number of lines. */
export const TextOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description })
/** The answer of a list that is never longer than an answer. */
export const Items = <T extends TSchema>(item: T) => Type.Object({ items: Type.Array(item) })
/** The answer of an operation that changes something and tells nothing. */
export const Nothing = Type.Object({})

export const Lines = (maxLength: number, description: string) =>
  Type.String({ minLength: 0, maxLength, textKind: 'LINES', description })

/** Client metadata: at most 6 pairs, keys and values of at most 100 characters (API behaviour, Conventions). */
export const Metadata = Type.Unsafe<Record<string, string>>({
  type: 'object',
  // Not `Type.Record`: its pattern for keys, '^.*$', misses those with a line break in them.
  additionalProperties: Type.String({ maxLength: 100 }),
  maxProperties: 6,
  propertyNames: Type.String({ maxLength: 100 }),
  description: 'Up to 6 pairs of strings; each key and value at most 100 characters.',
  examples: [{ order: '1041' }],
})

/** Largest JSON size of an object with free members. A page has up to 1,000 records, and an identity holds two such objects. */
const FREE_BYTES_MAX = 8 * 1024
/** Options for the schema of an object with free members in a request. */
export const Free = { additionalProperties: true, maxBytes: FREE_BYTES_MAX } as const

/** A time: RFC 3339, in UTC with microseconds. */
export const Timestamp = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-01-31T09:30:00.123456Z'] })

/** A person's date of birth: from 1800 on, and not in the future. */
export const BirthDate = Type.String({ format: 'date', birth: true, description: 'Date of birth.' })

/** An array parameter: it can be repeated, and with `commas` a value is also split at its commas. */
export const Filter = <T extends TSchema>(item: T, description: string) =>
  Type.Optional(
    Type.Array(item, {
      maxItems: 100,
      commas: true,
      description: `${description} At most 100 values; repeat the parameter or separate with commas.`,
    }),
  )
/** An array parameter whose values may contain commas: it can only be repeated. */
export const FilterWithoutCommas = <T extends TSchema>(item: T, description: string) =>
  Type.Optional(
    Type.Array(item, {
      maxItems: 100,
      description: `${description} At most 100 values; repeat the parameter.`,
    }),
  )

/** Maximum length where the contract sets none. A request line with more of them is refused for its size. */
export const LENGTH_MAX = 100_000

/** An id in a list filter. A value that is not a UUID matches nothing; it is not an error. */
export const FilterValue = Type.String({ maxLength: LENGTH_MAX })
