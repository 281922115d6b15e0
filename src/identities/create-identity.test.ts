import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  everyTable,
  newCustomer,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'

const IDENTITIES = '/v2/identity/identities'
const A_UUID = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
) as string
const A_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string

let service: TestService
let customer: TestCustomer
let other: TestCustomer
beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  other = await newCustomer(service)
})
afterAll(() => service.close())

const PERSON = { first_name: 'Ada', last_name: 'Lovelace' }
const personOf = (changes: Record<string, unknown> = {}) => ({
  ref_id: randomUUID(),
  person_details: PERSON,
  ...changes,
})

async function refused(status: number, body: object, ...words: string[]): Promise<void> {
  const before = await everyTable(service.db)
  const answer = await customer.call<{ detail: string }>('POST', IDENTITIES, body)
  expect(answer.status).toBe(status)
  for (const word of words) expect(answer.body.detail).toContain(word)
  expect(await everyTable(service.db)).toEqual(before)
}

describe('an identity is answered whole, and read again as it was made:', () => {
  test('a person, with everything that may be known', async () => {
    const person_details = {
      ...PERSON,
      date_of_birth: '1815-12-10',
      address: {
        country: 'GB',
        address1: '12',
        address2: 'b',
        city: 'London',
        province: 'X',
        zip_code: 'Y',
        floor: 2,
      },
      email: 'ada@example.com',
      phone_number: '+44 20 7946 0000',
      nationality: 'GB',
      // Fields that the contract does not list are kept.
      cip_id: null,
      tax: [{ id: '1', exact: 0.1 }],
      toString: 'x',
    }
    const metadata = { order: '1041', '': '' }
    const made = await customer.call('POST', IDENTITIES, { ref_id: 'whole', person_details, metadata })
    expect(made.body).toEqual({
      id: A_UUID,
      customer_id: customer.customer_id,
      ref_id: 'whole',
      type: 'PERSON',
      status: 'PENDING',
      summary_status: 'PENDING',
      user_disabled: false,
      admin_disabled: false,
      details: person_details,
      person_details,
      metadata,
      created_at: A_TIME,
      updated_at: made.body.created_at,
    })
    expect(made.status).toBe(200)
    expect(await customer.call('GET', `${IDENTITIES}/${String(made.body.id)}`)).toMatchObject({
      status: 200,
      body: made.body,
    })
  })

  test('an institution, with the least that must be', async () => {
    const ref_id = randomUUID()
    const made = await customer.call('POST', IDENTITIES, { ref_id, institution_details: { name: 'Acme' } })
    expect(made.body).toEqual({
      id: A_UUID,
      customer_id: customer.customer_id,
      ref_id,
      type: 'INSTITUTION',
      status: 'PENDING',
      summary_status: 'PENDING',
      user_disabled: false,
      admin_disabled: false,
      details: { name: 'Acme' },
      institution_details: { name: 'Acme' },
      created_at: A_TIME,
      updated_at: made.body.created_at,
    })
    const read = await customer.call('GET', `${IDENTITIES}/${String(made.body.id)}`)
    expect(read.body).toEqual(made.body)
  })

  test('an institution, with everything that may be known', async () => {
    const institution_details = {
      name: 'Acme',
      business_address: { country: 'US', floor: 3 },
      institution_type: 'LLC',
      email: 'office@example.com',
      lei: '5493001KJTIIGC8Y1R12',
    }
    const { body } = await customer.call('POST', IDENTITIES, { ref_id: randomUUID(), institution_details })
    expect(body).toMatchObject({ details: institution_details, institution_details })
  })
})

describe('refused:', () => {
  const both = ['person_details', 'institution_details']
  test('neither kind of details', () => refused(400, { ref_id: 'x' }, ...both))
  test('both kinds of details', () =>
    refused(400, personOf({ institution_details: { name: 'Acme' } }), ...both))
  test('no ref_id', () => refused(400, personOf({ ref_id: undefined }), 'ref_id is required'))
  test('an unknown field', () =>
    refused(400, personOf({ status: 'APPROVED' }), 'status is not a known field'))

  test.each<[string, object, string]>([
    ['no first_name', { last_name: 'x' }, 'person_details.first_name is required'],
    ['no last_name', { first_name: 'x' }, 'person_details.last_name is required'],
    ['an empty first_name', { ...PERSON, first_name: '' }, 'person_details.first_name'],
    ['no date', { ...PERSON, date_of_birth: '10.12.1815' }, 'person_details.date_of_birth must be a date'],
    ['an impossible date', { ...PERSON, date_of_birth: '2026-02-30' }, 'date_of_birth must be a date'],
    ['an address in one line', { ...PERSON, address: 'London' }, 'person_details.address must be an object'],
    ['a city that is a number', { ...PERSON, address: { city: 5 } }, 'person_details.address.city'],
  ])('a person with %s', (_, person_details, rule) => refused(400, personOf({ person_details }), rule))

  test('an institution without a name', () =>
    refused(400, { ref_id: 'x', institution_details: {} }, 'institution_details.name is required'))
})

describe('a ref_id', () => {
  test('that is taken answers with the record as it is now, whatever the body', async () => {
    const ref_id = randomUUID()
    const first = await customer.call('POST', IDENTITIES, personOf({ ref_id }))
    const path = `${IDENTITIES}/${String(first.body.id)}`
    const approved = await customer.call('PUT', `${path}/sandbox-status`, { status: 'APPROVED' })
    const before = await everyTable(service.db)
    const again = await customer.call('POST', IDENTITIES, { ref_id, institution_details: { name: 'Acme' } })
    expect(again).toMatchObject({ status: 409, body: { title: 'Already exists', meta: {} } })
    expect(again.body.meta).toEqual({ existing: approved.body })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('is free for another customer', async () => {
    const body = personOf()
    const [mine, theirs] = [
      await customer.call('POST', IDENTITIES, body),
      await other.call('POST', IDENTITIES, body),
    ]
    expect([mine.status, theirs.status]).toEqual([200, 200])
    expect(theirs.body.customer_id).toBe(other.customer_id)
  })

  test('that many use at once makes one record', async () => {
    const body = personOf()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => customer.call('POST', IDENTITIES, body)),
    )
    const made = answers.filter(({ status }) => status === 200)
    expect(made).toHaveLength(1)
    for (const answer of answers.filter((one) => one !== made[0])) {
      expect(answer).toMatchObject({ status: 409, body: { meta: { existing: made[0]!.body } } })
    }
  })
})

test('another customer finds nothing; what is no id is told', async () => {
  const { body } = await customer.call('POST', IDENTITIES, personOf())
  const theirs = await other.call('GET', `${IDENTITIES}/${String(body.id)}`)
  const nobodys = await other.call('GET', `${IDENTITIES}/${randomUUID()}`)
  expect([theirs.status, nobodys.status]).toEqual([404, 404])
  expect(theirs.body.detail).toBe(`identity ${String(body.id)} not found`)
  expect(await customer.call('GET', `${IDENTITIES}/ada`)).toMatchObject({
    status: 400,
    body: { detail: 'id must be a UUID' },
  })
})
