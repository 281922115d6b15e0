/*
 * What clients and generators of many languages write, for every operation: lists with brackets, date-times with any spelling of
 * their offset, the values of enumerations.
 */
import { describe, expect, test } from 'vitest'
import { timeRange } from '../src/http/time-bounds.ts'
import { TransferType } from '../src/money/ledger/transfer.ts'
import { MARKETS } from '../src/contract/markets.ts'
import type { Operation } from '../src/http/operation.ts'
import { queryReader } from '../src/http/query-spelling.ts'
import { validatorCompiler } from '../src/http/validation.ts'
import { OPERATIONS, OPERATOR_OPERATIONS } from '../src/program/app.ts'
import { sampleOf } from './schema-faults.ts'

interface Schema {
  type?: string | string[]
  enum?: string[]
  format?: string
  default?: unknown
  items?: Schema
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}
const ALL: Operation[] = [...OPERATIONS, ...OPERATOR_OPERATIONS]
const withQuery = ALL.filter(({ query }) => query !== undefined)
const nameOf = ({ method, url }: Operation) => `${method} ${url}`
const parametersOf = ({ query }: Operation) => Object.entries(query!.properties as Record<string, Schema>)

/** Reads a query as the service does. Returns the values that the operation gets, or the refusal. */
function read(operation: Operation, given: Record<string, unknown>, lenient = false): object | string {
  const { query } = operation
  const values = { ...requiredOf(query as Schema), ...given }
  queryReader(query!)(values, lenient)
  const validate = validatorCompiler({ schema: query!, httpPart: 'querystring', method: 'GET', url: '/' })
  const { error } = validate(values) as { error?: Error }
  return error?.message.replace('bad-request: ', '') ?? values
}
const requiredOf = ({ properties = {}, required = [] }: Schema) =>
  Object.fromEntries(required.map((name) => [name, sampleOf(properties[name]!)]))

describe('lists', () => {
  test.each(withQuery.map((operation) => [nameOf(operation), operation] as const))(
    'of %s',
    (_, operation) => {
      for (const [name, { type, items }] of parametersOf(operation)) {
        if (type !== 'array') continue
        const value = sampleOf(items!)
        const expected = read(operation, { [name]: [value, value] })
        expect(expected).toBeTypeOf('object')
        for (const lenient of [false, true]) {
          expect(read(operation, { [`${name}[]`]: [value, value] }, lenient)).toEqual(expected)
          expect(read(operation, { [`${name}[0]`]: value, [`${name}[1]`]: value }, lenient)).toEqual(expected)
          expect(read(operation, { [name]: value, [`${name}[]`]: value }, lenient)).toEqual(expected)
          // No other spelling of a filter is dropped, so that no other records are answered.
          for (const other of [`${name}[x]`, `${name}[0][y]`, name.toUpperCase(), `${name}[`])
            expect(read(operation, { [other]: value }, lenient), other).toBe(
              `${other} is not a known query parameter`,
            )
        }
      }
    },
  )

  test('in the other number, where it is no parameter of its own', () => {
    const of = (url: string) => ALL.find((operation) => operation.url === url && operation.method === 'GET')!
    const transfers = of('/v2/transfer/transfers')
    expect(read(transfers, { profile_id: 'a', status: 'PENDING' })).toMatchObject({
      profile_ids: ['a'],
      statuses: ['PENDING'],
    })
    expect(read(of('/v2/transfer/crypto-destination-addresses'), { address: 'a' })).toMatchObject({
      addresses: ['a'],
    })
    expect(read(of('/v2/orchestration/orchestrations'), { statuses: 'FAILED' })).toMatchObject({
      status: ['FAILED'],
    })
    expect(read(of('/v2/orchestration/rules'), { status: 'ACTIVE' })).not.toHaveProperty('statuses')
  })
})

test('pairs of metadata: any key, in any spelling; none is dropped, and none is given twice', () => {
  const transfers = ALL.find(({ url, method }) => url === '/v2/transfer/transfers' && method === 'GET')!
  const isRead = (given: Record<string, unknown>, metadata: object) => {
    for (const lenient of [false, true])
      expect((read(transfers, given, lenient) as { metadata: object }).metadata).toEqual(metadata)
  }
  const isRefused = (given: Record<string, unknown>, why: string) => {
    for (const lenient of [false, true]) expect(read(transfers, given, lenient)).toContain(why)
  }
  isRead({ 'metadata.order': '1041', 'metadata[source]': 'web' }, { order: '1041', source: 'web' })
  for (const key of ['a.b', 'created_at.gte', 'limit', '', 'é', 'a b', 'toString', '__proto__']) {
    isRead({ [`metadata.${key}`]: 'x' }, { [key]: 'x' })
    isRead({ [`metadata[${key}]`]: 'x' }, { [key]: 'x' })
  }
  for (const key of ['a[b]', '[', 'a]b']) isRead({ [`metadata.${key}`]: 'x' }, { [key]: 'x' })
  for (const name of [
    'metadata[a][b]',
    'metadata[a',
    'Metadata.order',
    'METADATA[order]',
    'metadata_order',
    'metaData.a',
  ])
    isRefused({ [name]: 'x' }, `${name} is not a known query parameter`)
  isRefused({ 'metadata.order': ['1', '2'] }, 'metadata.order is given more than once')
  isRefused({ 'metadata.order': '1', 'metadata[order]': '2' }, 'metadata.order is given more than once')
  isRefused({ metadata: 'x', 'metadata.order': '1' }, 'metadata must be an object')
  isRefused({ metadata: '' }, 'metadata is empty')
  isRefused({ [`metadata.${'k'.repeat(101)}`]: 'x' }, 'a key must have at most 100 characters')
  isRefused({ 'metadata.k': 'v'.repeat(101) }, 'metadata.k must have at most 100 characters')
  const seven = Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`metadata.k${n}`, 'v']))
  isRefused(seven, 'metadata must have at most 6 pairs')
})

test('parameters with members: in brackets, and in the case of another language', () => {
  for (const operation of withQuery)
    for (const [name, { format }] of parametersOf(operation).filter(([name]) => name.includes('.'))) {
      const [base, member] = name.split('.') as [string, string]
      const value = format === 'date-time' ? '2026-01-31T09:30:00Z' : '5'
      const expected = read(operation, { [name]: value })
      expect(read(operation, { [`${base}[${member}]`]: value }, true)).toEqual(expected)
      const camel = name.replace('_a', 'A')
      if (camel !== name)
        expect(read(operation, { [camel]: value }, true)).toBe(`${camel} is not a known query parameter`)
    }
})

test('an empty text leaves cursors, orders and bounds unset, and is named everywhere else', () => {
  const unset: string[] = []
  for (const operation of withQuery)
    for (const [name, { format, type, items, enum: values }] of parametersOf(operation)) {
      const answer = read(operation, { [name]: '' })
      if (/^(?:page_cursor|order|order_by)$|\.(?:lte?|eq|gte?|begin|end)$/.test(name)) {
        expect(answer, `${nameOf(operation)} ${name}`).toEqual(read(operation, {}))
        unset.push(name)
      } else if (format !== undefined || type === 'integer' || type === 'boolean' || values !== undefined)
        expect(answer, `${nameOf(operation)} ${name}`).toBe(
          `${name} is empty: leave it out, or give it a value`,
        )
      else if (items?.enum !== undefined) expect(answer, name).toContain('is empty')
      // A filter by any text goes on filtering.
      else expect(JSON.stringify(answer), name).toMatch(/is empty|""/)
    }
  expect(unset.length).toBeGreaterThan(100)
})

/** Every date-time of requests, as a schema of its own with its path. */
function dateTimesOf(schema: Schema, path: string): string[] {
  if (schema.format === 'date-time') return [path]
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    dateTimesOf(member, `${path}.${name}`),
  )
  return [
    ...inner,
    ...[schema.items ?? [], schema.anyOf ?? []].flat().flatMap((one) => dateTimesOf(one, path)),
  ]
}

test('date-times have an offset with or without its colon; no other form is taken', () => {
  const inBodies = ALL.flatMap(({ body }) => (body === undefined ? [] : dateTimesOf(body as Schema, 'body')))
  expect(inBodies.length).toBeGreaterThan(5)
  const bodies = ['Z', 'z', '+00:00', '+0000', '-0330', '+05:30', '+2359']
  const wrong = ['', '+00', '+000', '+24:00', '+2400', '+00:60', '+0060', ' 0000', '+00:00:00', '+00000']
  const schema = { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } }
  const inBody = validatorCompiler({ schema, httpPart: 'body', method: 'POST', url: '/' })
  for (const offset of bodies)
    expect(inBody({ at: `2026-01-31T09:30:00${offset}` })).not.toHaveProperty('error')
  for (const offset of wrong) expect(inBody({ at: `2026-01-31T09:30:00${offset}` })).toHaveProperty('error')
  for (const operation of withQuery)
    for (const [name, { format }] of parametersOf(operation).filter(
      ([, { format }]) => format === 'date-time',
    )) {
      for (const offset of bodies)
        expect(read(operation, { [name]: `2026-01-31T09:30:00.5${offset}` }), `${name} ${format}`).toBeTypeOf(
          'object',
        )
      expect(read(operation, { [name]: '2026-01-31T09:30:00 0000' })).toContain(
        'write the + of its offset as %2B',
      )
    }
  const [one, other] = ['+05:30', '+0530'].map((offset) =>
    timeRange({ 'created_at.gte': `2026-01-31T09:30:00.000001${offset}` }, 'created_at'),
  )
  expect(one).toEqual(other)
})

/**
 * Why a request takes no other values: they are words of the contract (SPEC), of a record that only Bursar has (OWN), or all
 * that such platforms document (FULL). A new enumeration of a request needs its line here.
 */
const CLOSED = {
  SPEC: [
    MARKETS.join(),
    TransferType.enum.join(),
    'BITCOIN,ETHEREUM,BITCOIN_CASH,LITECOIN,SOLANA,POLYGON_POS,BASE,ARBITRUM_ONE,STELLAR,INK,XLAYER',
    'BROKERAGE,TRADITIONAL_IRA,ROTH_IRA,SEP_IRA,FINANCIAL_ADVISOR',
    'CREDIT,DEBIT',
    'DESC,ASC',
    'ONE_MINUTE,FIVE_MINUTES,FIFTEEN_MINUTES,THIRTY_MINUTES,ONE_HOUR,TWO_HOURS,TWELVE_HOURS,ONE_DAY,ONE_WEEK,TWO_WEEKS,FOUR_WEEKS',
    'PENDING,COMPLETED,FAILED',
    'PENDING,ERROR,APPROVED,DENIED,DISABLED',
    'STATEMENT_STATUS_UNSPECIFIED,STATEMENT_STATUS_INITIATED,STATEMENT_STATUS_GENERATED,STATEMENT_STATUS_PAID',
    'USD',
  ],
  OWN: [
    'day,type,asset,profile',
    'profile',
    'ACTIVE,DISABLED',
    'ALLOW,BLOCK,APPROVE',
    'ANY,ADDRESS_BOOK',
    'API_CLIENT,OPERATOR,WORKER,COMMAND_LINE',
    'BITCOIN,ETHEREUM,BITCOIN_CASH,LITECOIN,SOLANA,POLYGON_POS,BASE,ARBITRUM_ONE,STELLAR,INK,XLAYER,WIRE',
    'CREATED_AT',
    'CREATED_AT,UPDATED_AT',
    'CRYPTO_WITHDRAWAL,WIRE_WITHDRAWAL,INTERNAL_TRANSFER_DEBIT,PAXOS_TRANSFER_DEBIT',
    'DONE,REFUSED',
    'NONE,API_KEY,OAUTH2_CLIENT_CREDENTIALS',
    'PENDING,APPROVED,REJECTED,EXPIRED,CANCELLED,USED',
    'PENDING,DELIVERED,FAILED',
    'POLICY,APPROVERS,WEBHOOKS,CREDENTIALS,OPERATORS,ADDRESS_BOOK',
    'PROFILE,IDENTITY,CUSTOMER,DESTINATION',
    'REJECTED',
    'THIN,FULL',
  ],
  FULL: [
    'ABA,SWIFT',
    'ACTIVE,DELETED,PENDING,REJECTED',
    'APPROVED,DELETED,DISABLED',
    'BENEFICIAL_OWNER,ACCOUNT_OPENER,AUTHORIZED_USER,MANAGEMENT_CONTROL_PERSON,TRUSTEE,GRANTOR,BENEFICIARY,SOLE_PROPRIETOR',
    'BENEFICIAL_OWNER,AUTHORIZED_USER,FINANCIAL_ADVISOR,SOLE_PROPRIETOR',
    'CHECKING,SAVINGS',
    'CHECKING,SAVINGS,ABA,SWIFT',
    'NO_CONVERSION,USD',
    'PAYMENT_STATUS_PENDING,PAYMENT_STATUS_COMPLETED,PAYMENT_STATUS_FAILED',
    'PENDING,APPROVED,REJECTED',
    'PERSON,INSTITUTION',
    'PROCESSING,COMPLETED,FAILED,PENDING,REJECTED',
    'STATEMENT_TYPE_MONTHLY_REWARDS',
    'TRAVEL_RULE_INFO_REQUESTED,TRAVEL_RULE_REJECTED,CUSTOMER_REJECTED,PENDING_CUSTOMER_APPROVAL',
    'USDG_REWARDS',
    'WIRE',
  ],
}

test('each enumeration of a request is closed for a reason', () => {
  const found = new Set<string>()
  const walk = (schema: Schema): void => {
    if (schema.enum !== undefined) found.add(schema.enum.join())
    for (const inner of [
      Object.values(schema.properties ?? {}),
      schema.items ?? [],
      schema.anyOf ?? [],
    ].flat())
      walk(inner)
  }
  for (const { query, body, params } of OPERATIONS)
    for (const schema of [query, body, params]) if (schema !== undefined) walk(schema)
  expect([...found].sort()).toEqual(Object.values(CLOSED).flat().sort())
})
