import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { everyTable, newCustomer, sharedTestService } from '../../../test/support.ts'
import { A_UUID, A_TIME, refusedWith } from '../../../test/matchers.ts'

const IDENTITIES = '/v2/identity/identities'

const service = await sharedTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)

const PERSON = { first_name: 'Ada', last_name: 'Lovelace' }
const personOf = (changes: Record<string, unknown> = {}) => ({
  ref_id: randomUUID(),
  person_details: PERSON,
  ...changes,
})

describe('Create Identity', () => {
  describe('the answer has all fields of an identity, and a later read equals it:', () => {
    test.each(['first_name', 'last_name'])('a person with one name, as its %s', async (member) => {
      const said = { ref_id: `one ${member}`, person_details: { [member]: 'Sukarno' } }
      const made = await customer.call('POST', IDENTITIES, said)
      expect(made).toMatchObject({ status: 200, body: { ...said, details: said.person_details } })
      expect((await customer.call('GET', '/v2/search?q=sukar')).body).toMatchObject({
        items: expect.arrayContaining([expect.objectContaining({ id: made.body.id, name: 'Sukarno' })]) as [],
      })
    })

    test('a person with all details', async () => {
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

    test('an institution with only the required fields', async () => {
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

    test('an institution with all details', async () => {
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

  describe('tax details, due diligence and members', () => {
    const tax_details = [
      { tax_payer_id: '123-45-6789', tax_payer_country: 'USA' },
      { tax_payer_id: '1', kind: { exact: 0.1 } },
      {},
    ]
    const customer_due_diligence = {
      estimated_yearly_income: 'INCOME_50K_TO_100K',
      expected_transfer_value: 'TRANSFER_VALUE_0_TO_25K',
      source_of_wealth: 'EMPLOYMENT_INCOME',
      employment_status: 'FULL_TIME',
      employment_industry_sector: 'TECHNOLOGY',
      customer_regions: ['EUROPE'],
    }

    test('the create request answers tax details and due diligence, a read only when it asks for them', async () => {
      const rest = { is_merchant: false, tax_details_not_required: true }
      const body = personOf({ tax_details, customer_due_diligence, ...rest })
      const made = await customer.call('POST', IDENTITIES, body)
      expect(made).toMatchObject({ status: 200, body: { ...rest, details: PERSON } })
      expect(made.body).toMatchObject({ tax_details, customer_due_diligence })
      expect(made.body).not.toHaveProperty('institution_members')

      const path = `${IDENTITIES}/${String(made.body.id)}`
      const { tax_details: _, customer_due_diligence: __, ...usual } = made.body
      expect((await customer.call('GET', path)).body).toEqual(usual)
      expect((await customer.call('GET', `${path}?include_details=true`)).body).toEqual(made.body)
      const { details: ___, person_details: ____, ...bare } = usual
      expect((await customer.call('GET', `${path}?include_details=false`)).body).toEqual(bare)

      const list = async (query: string) => {
        const url = `${IDENTITIES}?ids=${String(made.body.id)}${query}`
        return (await customer.call<{ items: object[] }>('GET', url)).body.items
      }
      expect(await list('')).toEqual([usual])
      expect(await list('&include_details=true&include_institution_members=true')).toEqual([made.body])
      expect(await list('&include_details=false')).toEqual([bare])

      const again = await customer.call('POST', IDENTITIES, { ...body, tax_details: [] })
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: made.body } } })
    })

    test('an institution has its members in the given order', async () => {
      const persons = await Promise.all(
        Array.from({ length: 3 }, async () => (await customer.call('POST', IDENTITIES, personOf())).body),
      )
      const members = [
        {
          identity_id: persons[2]!.id,
          roles: ['TRUSTEE', 'BENEFICIAL_OWNER'],
          ownership: '25.5',
          position: 'CEO',
        },
        { identity_id: persons[0]!.id, roles: ['MANAGEMENT_CONTROL_PERSON'], name: 'Ada Lovelace' },
        {
          identity_id: persons[1]!.id,
          roles: ['ACCOUNT_OPENER', 'AUTHORIZED_USER', 'GRANTOR', 'BENEFICIARY'],
        },
      ]
      const body = {
        ref_id: randomUUID(),
        institution_details: { name: 'Acme' },
        institution_members: members,
      }
      const made = await customer.call('POST', IDENTITIES, body)
      const institution_members = members.map((member) => ({ id: A_UUID, ...member }))
      expect(made).toMatchObject({ status: 200, body: { institution_members } })
      expect(made.body.institution_members).toEqual(institution_members)

      const path = `${IDENTITIES}/${String(made.body.id)}`
      const { institution_members: _, ...usual } = made.body
      expect((await customer.call('GET', path)).body).toEqual(usual)
      expect((await customer.call('GET', `${path}?include_institution_members=false`)).body).toEqual(usual)
      expect((await customer.call('GET', `${path}?include_institution_members=true`)).body).toEqual(made.body)
      const again = await customer.call('POST', IDENTITIES, { ...body, institution_members: [] })
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: made.body } } })
    })

    test('a read of members gives an empty list for an institution without members, and no list for a person', async () => {
      const person = await customer.call('POST', IDENTITIES, personOf())
      const institution = await customer.call('POST', IDENTITIES, {
        ref_id: randomUUID(),
        institution_details: { name: 'Acme' },
        institution_members: [],
      })
      expect(institution.body).not.toHaveProperty('institution_members')
      const read = async (of: { body: { id?: unknown } }) =>
        (await customer.call('GET', `${IDENTITIES}/${String(of.body.id)}?include_institution_members=true`))
          .body
      expect(await read(person)).toEqual(person.body)
      expect(await read(institution)).toEqual({ ...institution.body, institution_members: [] })
    })
  })

  test.each<[string, object, string]>([
    ['neither name', { email: 'x@example.com' }, 'person_details must have a first_name or a last_name'],
    ['an impossible date', { ...PERSON, date_of_birth: '2026-02-30' }, 'date_of_birth must be a date'],
  ])('a person with %s is refused', async (_, person_details, rule) => {
    const before = await everyTable(service.db)
    expect(await customer.call('POST', IDENTITIES, personOf({ person_details }))).toMatchObject(
      refusedWith(400, rule),
    )
    expect(await everyTable(service.db)).toEqual(before)
  })

  describe('a ref_id', () => {
    test('that is taken answers with its current record, whatever the body', async () => {
      const ref_id = randomUUID()
      const first = await customer.call('POST', IDENTITIES, personOf({ ref_id }))
      const path = `${IDENTITIES}/${String(first.body.id)}`
      const approved = await customer.call('PUT', `${path}/sandbox-status`, { status: 'APPROVED' })
      const before = await everyTable(service.db)
      const again = await customer.call('POST', IDENTITIES, { ref_id, institution_details: { name: 'Acme' } })
      expect(again).toMatchObject({ status: 409, body: { title: 'Already Exists', meta: {} } })
      expect(again.body.meta).toMatchObject({ existing: approved.body })
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

    test('in many requests at once creates one record', async () => {
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
})

describe('Get Identity', () => {
  test('another customer cannot read an identity; an id that is not a UUID is a 400', async () => {
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
})
