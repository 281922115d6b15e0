import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { everyTable, newCustomer, sharedTestService, newIdentity, callerWith } from '../../../test/support.ts'
import type { Account } from '../../money/records/account.ts'
import { NOBODY, A_UUID, A_TIME, refusedWith } from '../../../test/matchers.ts'

const ACCOUNTS = '/v2/identity/accounts'

const service = await sharedTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)
/** Ids of identities of the customer, and the id of another customer's identity. */
const ids = await Promise.all(Array.from({ length: 4 }, () => newIdentity(customer)))
const others = await newIdentity(other)

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
    test('a type of a member that is not among its roles', async () => {
      const before = await everyTable(service.db)
      const member = { identity_id: ids[1], type: 'AUTHORIZED_USER', roles: ['BENEFICIAL_OWNER'] }
      const account = { identity_id: ids[0], members: [{ identity_id: ids[2] }, member] }
      expect(await customer.call('POST', ACCOUNTS, { account, create_profile: true })).toMatchObject({
        status: 400,
        body: {
          detail: 'account.members.1.type AUTHORIZED_USER is not one of account.members.1.roles',
        },
      })
      expect(await everyTable(service.db)).toEqual(before)
    })

    test("another customer's identity, which is named before an unknown one", async () => {
      const before = await everyTable(service.db)
      for (const account of [
        { identity_id: others, members: [{ identity_id: NOBODY }] },
        { identity_id: ids[0], members: [{ identity_id: others }, { identity_id: NOBODY }] },
      ])
        expect(await customer.call('POST', ACCOUNTS, { account, create_profile: true })).toMatchObject(
          refusedWith(404, others),
        )
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
      const second = { ...customer, call: await callerWith(service, customer) }
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
