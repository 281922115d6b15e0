import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { Amount, AssetSymbol, Filter, Timestamp } from '../contract/fields.ts'
import { Problem, type FieldError } from '../contract/problems.ts'
import { validatorCompiler } from './validation.ts'
import { countCpu } from '../../test/cpu-time.ts'

const Body = Type.Object(
  {
    amount: Amount('Amount.'),
    asset: AssetSymbol,
    roles: Type.Optional(
      Type.Array(Type.Enum(['OWNER', 'TRUSTEE'], { type: 'string' }), { uniqueItems: true }),
    ),
    wire: Type.Optional(Type.Object({ bank: Type.String() }, { additionalProperties: false })),
  },
  { additionalProperties: false },
)
const Query = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    order: Type.Optional(Type.Enum(['DESC', 'ASC'], { type: 'string' })),
    assets: Filter(AssetSymbol, 'Assets.'),
    'created_at.gte': Type.Optional(Timestamp('After or equal.')),
  },
  { additionalProperties: false },
)

function errorsOf(httpPart: 'body' | 'querystring', input: object): FieldError[] {
  const schema = httpPart === 'body' ? Body : Query
  const validate = validatorCompiler({ schema, httpPart, method: 'POST', url: '/' })
  const { error } = validate(input) as { error?: unknown }
  if (error === undefined) return []
  if (!(error instanceof Problem) || error.errors === undefined)
    throw new Error('not a refusal with its errors')
  const body = error.body('https://bursar.example')
  expect(body).toMatchObject({ status: 400, detail: error.errors[0]!.detail, errors: error.errors })
  return error.errors
}

describe('the errors of a body', () => {
  test('are all listed with the pointer to their field; the first is also the detail', () => {
    const errors = errorsOf('body', {
      amount: '-1',
      asset: 'usd',
      roles: ['OWNER', 'OWNER'],
      wire: { branch: 'x' },
      colour: 'red',
    })
    expect(new Set(errors)).toEqual(
      new Set([
        { pointer: '#/amount', detail: 'amount must be a decimal number without a sign, such as 25.5' },
        { pointer: '#/asset', detail: 'asset must be a ticker: capitals and digits' },
        { pointer: '#/roles', detail: 'roles must not name a value twice' },
        { pointer: '#/wire/bank', detail: 'wire.bank is required' },
        { pointer: '#/wire/branch', detail: 'wire.branch is not a known field' },
        { pointer: '#/colour', detail: 'colour is not a known field' },
      ]),
    )
  })

  test('contain one error for each faulty field, and none for a good body', () => {
    expect(errorsOf('body', { amount: 5, asset: 'USD' })).toEqual([
      { pointer: '#/amount', detail: 'amount must be a string' },
    ])
    expect(errorsOf('body', { amount: '5', asset: 'USD' })).toEqual([])
  })

  test('have escaped pointers', () => {
    const pointers = errorsOf('body', { amount: '5', asset: 'USD', 'a/b~c': 1 }).map(({ pointer }) => pointer)
    expect(pointers).toEqual(['#/a~1b~0c'])
  })

  test('are at most 20', () => {
    const unknown = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field${index}`, 1]))
    expect(errorsOf('body', { amount: '5', asset: 'USD', ...unknown })).toHaveLength(20)
  })

  test('contain only the first error of a large body, because its patterns would take too long', () => {
    const cpuMs = countCpu()
    const hostile = { amount: '1'.repeat(60_000), asset: 'a'.repeat(60_000), wire: {}, colour: 'red' }
    expect(errorsOf('body', hostile)).toHaveLength(1)
    expect(cpuMs()).toBeLessThan(100)
    const many = Array.from({ length: 5_000 }, () => 'nobody')
    expect(errorsOf('body', { amount: '-1', asset: 'usd', roles: many })).toHaveLength(1)
  })

  test('name the NUL character', () => {
    expect(errorsOf('body', { amount: '5', asset: 'USD', wire: { bank: 'a\0b' } })).toEqual([
      {
        pointer: '#/wire/bank',
        detail: 'wire.bank must not hold the NUL character or half of a surrogate pair',
      },
    ])
  })
})

describe('the errors of a query', () => {
  test.each([
    [{ limit: ['1', '2'] }, '#/limit', 'limit is given more than once'],
    [{ order: ['ASC', 'DESC'] }, '#/order', 'order is given more than once'],
    [{ limit: '1e2' }, '#/limit', 'limit must be an integer'],
    [{ assets: ['USD', 'usd'] }, '#/assets/1', 'assets.1 must be a ticker: capitals and digits'],
    [{ colour: 'red' }, '#/colour', 'colour is not a known query parameter'],
    [{ '': '1' }, '#/', '"" is not a known query parameter'],
    [
      { 'created_at.gte': '2026-01-31T09:30:00 02:00' },
      '#/created_at.gte',
      'created_at.gte must be an RFC 3339 date-time; write the + of its offset as %2B',
    ],
    [{ 'created_at.gte': 'yesterday' }, '#/created_at.gte', 'created_at.gte must be an RFC 3339 date-time'],
  ])('%j', (query, pointer, detail) => {
    expect(errorsOf('querystring', query)).toEqual([{ pointer, detail }])
  })

  test('are all listed', () => {
    const query = { limit: '0', order: 'UP', colour: 'red' }
    expect(
      errorsOf('querystring', query)
        .map(({ pointer }) => pointer)
        .sort(),
    ).toEqual(['#/colour', '#/limit', '#/order'])
  })
})
