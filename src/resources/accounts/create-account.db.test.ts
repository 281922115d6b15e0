import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  caller,
  everyTable,
  fetchToken,
  newCustomer,
  type TestCustomer,
  sharedTestService,
} from '../../../test/support.ts'
import { SCOPES } from '../../contract/scopes.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'
import type { Account } from '../../money/records/account.ts'

const ACCOUNTS = '/v2/identity/accounts'
const A_UUID = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
) as string
const A_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string
const NOBODY = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'

const service = await sharedTestService()
let customer: TestCustomer
let other: TestCustomer
/** Ids of identities of the customer, and the id of another customer's identity. */
let ids: string[]
let others: string
beforeAll(async () => {
  customer = await newCustomer(service)
  other = await newCustomer(service)
  ids = await Promise.all(Array.from({ length: 4 }, () => newIdentity(customer)))
  others = await newIdentity(other)
})

async function newIdentity({ call }: TestCustomer): Promise<string> {
  const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
  const { body } = await call<{ id: string }>('POST', '/v2/identity/identities', {
    ref_id: randomUUID(),
    person_details,
  })
  return body.id
}

async function made(body: object, by = customer): Promise<Account> {
  const answer = await by.call<Account>('POST', ACCOUNTS, body)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

/** Counts the rows of accounts and of the records created with them. */
async function counts(): Promise<number[]> {
  const { accounts, account_members, profiles } = await everyTable(service.db)
  return [accounts!.length, account_members!.length, profiles!.length]
}

describe('Create Account', () => {
  describe('the answer has all fields of an account, and a later read equals it:', () => {
    test('with all fields', async () => {
      const account = {
        identity_id: ids[0]!,
        ref_id: 'whole',
        type: 'ROTH_IRA',
        description: 'Savings',
        metadata: { order: '1041', '': '' },
        members: [
          { identity_id: ids[3]!, roles: ['AUTHORIZED_USER', 'BENEFICIAL_OWNER'] },
          { identity_id: ids[1]! },
          { identity_id: ids[2]!, roles: ['FINANCIAL_ADVISOR'] },
        ],
      }
      const body = await made({ account, create_profile: true })
      expect(body).toEqual({
        id: A_UUID,
        identity_id: ids[0],
        description: 'Savings',
        admin_disabled: false,
        user_disabled: false,
        metadata: account.metadata,
        ref_id: 'whole',
        members: account.members.map(({ identity_id, roles = [] }) => ({
          id: A_UUID,
          identity_id,
          ...(roles.length > 0 && { type: roles[0] }),
          roles,
        })),
        created_at: A_TIME,
        updated_at: body.created_at,
        summary_status: 'PENDING',
        profile_id: A_UUID,
        type: 'ROTH_IRA',
      })
      const read = await customer.call('GET', `${ACCOUNTS}/${body.id}`)
      expect(read).toMatchObject({ status: 200 })
      expect(read.body).toEqual(body)
      const profile = await customer.call('GET', `/v2/profiles/${body.profile_id}`)
      expect(profile.body).toEqual({
        id: body.profile_id,
        nickname: `Account ${body.id}`,
        type: 'NORMAL',
        description: 'Savings',
        account_id: body.id,
      })
    })

    test.each([{}, { create_profile: false }])('with only the required fields and %j', async (rest) => {
      const before = await counts()
      const body = await made({ account: { identity_id: ids[0]!.toUpperCase() }, ...rest })
      expect(body).toEqual({
        id: A_UUID,
        identity_id: ids[0],
        admin_disabled: false,
        user_disabled: false,
        members: [],
        created_at: A_TIME,
        updated_at: body.created_at,
        summary_status: 'PENDING',
        type: 'BROKERAGE',
      })
      expect((await customer.call('GET', `${ACCOUNTS}/${body.id}`)).body).toEqual(body)
      expect(await counts()).toEqual([before[0]! + 1, before[1], before[2]])
    })

    test('with its primary identity also as a member', async () => {
      const body = await made({ account: { identity_id: ids[0], members: [{ identity_id: ids[0] }] } })
      expect(body.members).toEqual([{ id: A_UUID, identity_id: ids[0], roles: [] }])
    })

    test.each<[string, object, string[]]>([
      ['a type without roles', { type: 'AUTHORIZED_USER' }, ['AUTHORIZED_USER']],
      ['a type and an empty list of roles', { type: 'AUTHORIZED_USER', roles: [] }, ['AUTHORIZED_USER']],
      [
        'a type that is the second of its roles',
        { type: 'AUTHORIZED_USER', roles: ['BENEFICIAL_OWNER', 'AUTHORIZED_USER'] },
        ['AUTHORIZED_USER', 'BENEFICIAL_OWNER'],
      ],
    ])('with a member that has %s', async (_, given, roles) => {
      const body = await made({
        account: { identity_id: ids[0], members: [{ identity_id: ids[1], ...given }] },
      })
      expect(body.members).toEqual([{ id: A_UUID, identity_id: ids[1], type: roles[0], roles }])
      expect((await customer.call('GET', `${ACCOUNTS}/${body.id}`)).body).toEqual(body)
    })

    test('with the maximum of members, in the given order', async () => {
      const many = await Promise.all(Array.from({ length: 100 }, () => newIdentity(customer)))
      const members = many.sort(() => Math.random() - 0.5).map((identity_id) => ({ identity_id, roles: [] }))
      const account = { identity_id: ids[0]!, members }
      const body = await made({ account })
      expect(body.members.map(({ identity_id }) => identity_id)).toEqual(many)
      const refused = await customer.call('POST', ACCOUNTS, {
        account: { ...account, members: [...members, { identity_id: ids[0] }] },
      })
      expect(refused).toMatchObject({
        status: 400,
        body: { detail: 'account.members must have at most 100 values' },
      })
    })
  })

  describe('a request is refused and changes nothing:', () => {
    type Refusal = [what: string, status: number, detail: string, body: () => object]
    const of = (changes: object) => ({ account: { identity_id: ids[0], ...changes } })

    test.each<Refusal>([
      ['no account', 400, 'account is required', () => ({})],
      ['no identity', 400, 'account.identity_id is required', () => ({ account: {} })],
      [
        'an id that is not a UUID',
        400,
        'account.identity_id must be a UUID',
        () => of({ identity_id: 'ada' }),
      ],
      ['an unknown field', 400, 'x is not a known field', () => ({ ...of({}), x: 1 })],
      ['an unknown field of the account', 400, 'account.x is not a known field', () => of({ x: 1 })],
      [
        "the administrator's flag",
        400,
        'account.admin_disabled is not a known',
        () => of({ admin_disabled: false }),
      ],
      [
        'an unknown field of a member',
        400,
        'account.members.0.id is not a known field',
        () => of({ members: [{ identity_id: ids[1], id: NOBODY }] }),
      ],
      ['an unknown type', 400, 'account.type must be one of BROKERAGE, TRAD', () => of({ type: 'SAVINGS' })],
      [
        'text as create_profile',
        400,
        'create_profile must be a boolean',
        () => ({ ...of({}), create_profile: '1' }),
      ],
      ['a member without identity', 400, 'members.0.identity_id is required', () => of({ members: [{}] })],
      [
        'an unknown role',
        400,
        'account.members.0.roles.0 must be one of BENEFICIAL_OWNER',
        () => of({ members: [{ identity_id: ids[1], roles: ['OWNER'] }] }),
      ],
      [
        'an unknown type of a member',
        400,
        'account.members.0.type must be one of BENEFICIAL_OWNER',
        () => of({ members: [{ identity_id: ids[1], type: 'OWNER' }] }),
      ],
      [
        'a type that is not among the roles',
        400,
        'account.members.1.type AUTHORIZED_USER is not one of account.members.1.roles',
        () =>
          of({
            members: [
              { identity_id: ids[2] },
              { identity_id: ids[1], type: 'AUTHORIZED_USER', roles: ['BENEFICIAL_OWNER'] },
            ],
          }),
      ],
      [
        'a role that is listed twice',
        400,
        'account.members.0.roles',
        () => of({ members: [{ identity_id: ids[1], roles: ['AUTHORIZED_USER', 'AUTHORIZED_USER'] }] }),
      ],
      [
        'a member that is listed twice',
        400,
        'account.members.2.identity_id is that of account.members.0',
        () =>
          of({ members: [ids[1]!, ids[2]!, ids[1]!.toUpperCase()].map((identity_id) => ({ identity_id })) }),
      ],
      ['an unknown identity', 404, `identity ${NOBODY} not found`, () => of({ identity_id: NOBODY })],
      [
        'an unknown identity as a member',
        404,
        `identity ${NOBODY} not found`,
        () => of({ members: [{ identity_id: ids[1] }, { identity_id: NOBODY }] }),
      ],
      [
        "another customer's identity",
        404,
        'not found',
        () => of({ identity_id: others, members: [{ identity_id: NOBODY }] }),
      ],
      [
        "another customer's identity as a member, before an unknown identity",
        404,
        'not found',
        () => of({ members: [{ identity_id: others }, { identity_id: NOBODY }] }),
      ],
    ])('%s', async (_, status, detail, body) => {
      const before = await everyTable(service.db)
      const answer = await customer.call<{ detail: string }>('POST', ACCOUNTS, {
        create_profile: true,
        ...body(),
      })
      expect(answer).toMatchObject({ status, body: { detail: expect.stringContaining(detail) as string } })
      if (status === 404 && detail === 'not found') expect(answer.body.detail).toContain(others)
      expect(await everyTable(service.db)).toEqual(before)
    })

    // A failure after the account's own row also removes that row.
    test.each(['account_members', 'profiles'])('when the table %s refuses the row', async (table) => {
      const before = await everyTable(service.db)
      const account = { identity_id: ids[0], ref_id: randomUUID(), members: [{ identity_id: ids[1] }] }
      await service.owner.query(`alter table ${table} add constraint closed check (false) not valid`)
      try {
        const answer = await customer.call('POST', ACCOUNTS, { account, create_profile: true })
        expect(answer.status).toBe(500)
        expect(await everyTable(service.db)).toEqual(before)
      } finally {
        await service.owner.query(`alter table ${table} drop constraint closed`)
      }
      await made({ account, create_profile: true })
    })
  })

  describe('a ref_id', () => {
    test('that is taken answers with its current record, whatever the body', async () => {
      const ref_id = randomUUID()
      const first = await made({
        account: { identity_id: ids[0], ref_id, members: [{ identity_id: ids[1] }] },
        create_profile: true,
      })
      const before = await everyTable(service.db)
      // A repeat is answered even before the identities are checked.
      for (const account of [
        { identity_id: ids[2], ref_id },
        { identity_id: NOBODY, ref_id },
      ]) {
        const again = await customer.call('POST', ACCOUNTS, { account })
        expect(again).toMatchObject({ status: 409, body: { title: 'Already Exists' } })
        expect(again.body.meta).toMatchObject({ existing: first })
      }
      expect(await everyTable(service.db)).toEqual(before)
    })

    test('is free for another API client of the customer, and for another customer', async () => {
      const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, SCOPES)
      const second = { ...customer, call: caller(service.app, await fetchToken(service.app, client)) }
      const account = { identity_id: ids[0], ref_id: randomUUID() }
      const mine = await made({ account })
      const seconds = await made({ account }, second)
      await made({ account: { ...account, identity_id: others } }, other)
      expect(seconds.id).not.toBe(mine.id)
      // Both clients see both accounts; each client's repeat returns its own.
      for (const [by, existing] of [
        [customer, mine],
        [second, seconds],
      ] as const) {
        const list = await by.call<{ items: Account[] }>('GET', `${ACCOUNTS}?ref_ids=${account.ref_id}`)
        expect(list.body.items).toEqual([seconds, mine])
        expect(await by.call('POST', ACCOUNTS, { account })).toMatchObject({
          status: 409,
          body: { meta: { existing } },
        })
      }
    })

    test('in many requests at once creates one account, one profile and each member once', async () => {
      const account = {
        identity_id: ids[0],
        ref_id: randomUUID(),
        members: [{ identity_id: ids[1] }, { identity_id: ids[2] }],
      }
      const before = await counts()
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          customer.call<Account>('POST', ACCOUNTS, { account, create_profile: true }),
        ),
      )
      const first = answers.filter(({ status }) => status === 200)
      expect(first).toHaveLength(1)
      for (const answer of answers.filter((one) => one !== first[0])) {
        expect(answer).toMatchObject({ status: 409, body: { meta: { existing: first[0]!.body } } })
      }
      expect(await counts()).toEqual([before[0]! + 1, before[1]! + 2, before[2]! + 1])
    })

    test('is optional: any number of accounts have none', async () => {
      const account = { identity_id: ids[0] }
      const [one, two] = await Promise.all([made({ account }), made({ account })])
      expect(one.id).not.toBe(two.id)
    })
  })
})

describe('Get Account', () => {
  test('another customer cannot read an account; an id that is not a UUID is a 400', async () => {
    const { id } = await made({ account: { identity_id: ids[0] } })
    const theirs = await other.call('GET', `${ACCOUNTS}/${id}`)
    expect(theirs).toMatchObject({ status: 404, body: { detail: `account ${id} not found` } })
    expect((await other.call('GET', `${ACCOUNTS}/${NOBODY}`)).status).toBe(404)
    expect(await customer.call('GET', `${ACCOUNTS}/savings`)).toMatchObject({
      status: 400,
      body: { detail: 'id must be a UUID' },
    })
  })
})
