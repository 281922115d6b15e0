import { describe, expect, test } from 'vitest'
import { BASE_URL, everyTable, fund, newCustomer, newHolder, ownTestService } from '../../../test/support.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import type { FiatAccount } from '../../money/records/fiat-account.ts'
import { REJECTED_ACCOUNT_NUMBER } from '../../networks/simulated/magic-addresses.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { A_UUID, A_TIME, refusedWith } from '../../../test/matchers.ts'

const FIAT_ACCOUNTS = '/v2/transfer/fiat-accounts'
const RULES = '/v2/orchestration/rules'

const PERSON = { person_details: { first_name: 'Ada', last_name: 'Lovelace' } }
const INSTITUTION = { institution_details: { name: 'Acme Ltd' } }
const WIRE = {
  account_number: '000987654321',
  fiat_account_owner_address: { country: 'GB', city: 'London', po_box: '7' },
  routing_details: {
    routing_number_type: 'ABA',
    routing_number: '021000021',
    bank_name: 'First Example Bank',
    bank_address: { country: 'US' },
    branch: 'Main Street',
  },
  intermediary: { bank_name: 'Second Example Bank' },
}

const service = await ownTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)
await fund(customer, '1000')

const BODY = {
  fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Lovelace' }, note: { b: 1, a: 2 } },
  fiat_network_instructions: {
    wire: { account_number: '1', routing_details: { routing_number: '021000021', bank_name: 'B' } },
  },
}
async function post<T>(url: string, body: object): Promise<T> {
  const answer = await customer.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}
const create = (changes: object = {}) => post<FiatAccount>(FIAT_ACCOUNTS, { ...BODY, ...changes })
const at = (id: string) => `${FIAT_ACCOUNTS}/${id}`
const listed = async (query = '') => {
  const { body } = await customer.call<{ items: FiatAccount[] }>(
    'GET',
    `${FIAT_ACCOUNTS}?limit=1000&${query}`,
  )
  return body.items
}
const wireTo = (fiat_account_id: string, changes: object = {}) => ({
  profile_id: customer.profile_id,
  asset: 'USD',
  fiat_account_id,
  amount: '1',
  ...changes,
})
const ruleTo = (fiat_account_id: string) => ({
  ref_id: crypto.randomUUID(),
  profile_id: customer.profile_id,
  source_asset: 'USD',
  destination_asset: 'USD',
  source: { fiat: {} },
  destination: { fiat: { fiat_account_id } },
})
const isNotFound = (id: string) => ({ status: 404, body: { detail: `fiat account ${id} not found` } })

describe('Get Fiat Account', () => {
  test('answers the record as it was created', async () => {
    const created = await create({ metadata: { order: '1' } })
    expect(created.updated_at).toBe(created.created_at)
    expect((await customer.call('GET', at(created.id))).body).toEqual(created)
  })
})

describe('List Fiat Accounts', () => {
  test('filters by ref_id and status, in both orders', async () => {
    const created = await create({ ref_id: 'read', metadata: { order: '1' } })
    expect(await listed('ref_ids=read&statuses=APPROVED')).toEqual([created])
    expect(await listed('ref_ids=read&statuses=REJECTED')).toEqual([])
    expect((await listed('order_by=CREATED_AT&order=ASC')).at(-1)).toEqual(created)
  })
})

describe('Create Fiat Account', () => {
  test.each([
    ['a person', PERSON],
    ['an institution', INSTITUTION],
    ['a person with an unlisted detail', { person_details: { ...PERSON.person_details, title: 'Countess' } }],
    [
      'an institution with unlisted members',
      { institution_details: { name: 'Acme', lei: '7' }, since: '1843' },
    ],
  ])('an account of %s is answered as the request gave it', async (_, fiat_account_owner) => {
    const given = { fiat_account_owner, fiat_network_instructions: { wire: WIRE } }
    const { body } = await customer.call('POST', FIAT_ACCOUNTS, given)
    expect(body).toEqual({
      id: A_UUID,
      customer_id: customer.customer_id,
      status: 'APPROVED',
      ...given,
      created_at: A_TIME,
      updated_at: body.created_at,
    })
  })

  test('an account is answered with all fields of the request', async () => {
    const given = {
      ...(await newHolder(customer)),
      ref_id: crypto.randomUUID(),
      metadata: { order: '1041', '': '' },
    }
    expect(await create(given)).toMatchObject(given)
  })

  test('an account that the bank refuses is REJECTED and cannot be paid', async () => {
    const { id, status } = await create({
      fiat_network_instructions: { wire: { account_number: REJECTED_ACCOUNT_NUMBER } },
    })
    expect(status).toBe('REJECTED')
    const before = await everyTable(service.db)
    expect(await customer.call('POST', '/v2/transfer/fiat-withdrawals', wireTo(id))).toMatchObject({
      status: 403,
      body: { type: `${BASE_URL}/problems/disabled`, meta: { id, status } },
    })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('a ref_id that is taken is answered with its record, also of many at once', async () => {
    const ref_id = crypto.randomUUID()
    const order = (n: number) =>
      customer.call<FiatAccount & { meta: unknown }>('POST', FIAT_ACCOUNTS, {
        fiat_account_owner: { institution_details: { name: `Acme ${n}` } },
        fiat_network_instructions: { wire: WIRE },
        ref_id,
      })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => order(n)))
    const [winner, ...others] = answers.filter(({ status }) => status === 200)
    expect(others).toEqual([])
    const before = await everyTable(service.db)
    answers.push(await order(10))
    for (const { status, body } of answers.filter((answer) => answer !== winner)) {
      expect({ status, meta: body.meta }).toMatchObject({ status: 409, meta: { existing: winner!.body } })
    }
    expect(await everyTable(service.db)).toEqual(before)
    // Another customer may use the same ref_id.
    expect((await other.call('POST', FIAT_ACCOUNTS, { ...BODY, ref_id })).status).toBe(200)
  })

  // The rules are tried one by one in bank-identifiers.test.ts.
  test.each([
    ['account_number', { account_number: '****1234' }],
    ['account_number', { account_number: 'DE89370400440532013001' }],
    [
      'routing_details.routing_number',
      { routing_details: { routing_number_type: 'ABA', routing_number: '021000022' } },
    ],
    [
      'routing_details.routing_number',
      { routing_details: { routing_number_type: 'SWIFT', routing_number: 'hello' } },
    ],
    ['routing_details.routing_number_type', { routing_details: { routing_number_type: 'FOO' } }],
    ['account_type', { account_type: 'FOO' }],
    ['fiat_account_owner_address.city', { fiat_account_owner_address: { city: 'Bonn \u{1F600}' } }],
  ])('what no bank has is refused: %s of %j', async (field, wire) => {
    const before = await everyTable(service.db)
    const body = { ...BODY, fiat_network_instructions: { wire: { account_number: '1', ...wire } } }
    expect(await customer.call('POST', FIAT_ACCOUNTS, body)).toMatchObject({
      status: 400,
      body: {
        detail: expect.stringMatching(
          `^fiat_network_instructions\\.wire\\.${field} must (not )?be `,
        ) as string,
      },
    })
    expect(await everyTable(service.db)).toEqual(before)
  })
})

describe('Update Fiat Account', () => {
  test('replaces the metadata; owner and bank details may be repeated, in any order of their members', async () => {
    const created = await create({ metadata: { a: '1', b: '2' } })
    const { status, body } = await customer.call<FiatAccount>('PUT', at(created.id), {
      metadata: { c: '3' },
      fiat_account_owner: {
        note: { a: 2, b: 1 },
        person_details: { last_name: 'Lovelace', first_name: 'Ada' },
      },
      fiat_network_instructions: BODY.fiat_network_instructions,
    })
    expect(status).toBe(200)
    expect(body).toEqual({ ...created, metadata: { c: '3' }, updated_at: body.updated_at })
    expect(body.updated_at > created.updated_at).toBe(true)
    const repeated = await customer.call('PUT', at(created.id), BODY)
    expect(repeated).toMatchObject({ status: 200, body })
    expect((await customer.call('GET', at(created.id))).body).toEqual(body)
  })

  test.each([
    ['fiat_account_owner', { person_details: { first_name: 'Ada', last_name: 'Other' } }],
    ['fiat_account_owner', { ...BODY.fiat_account_owner, note: { b: 1, a: 3 } }],
    ['fiat_network_instructions', { wire: { account_number: '1' } }],
    ['fiat_network_instructions', { wire: { ...BODY.fiat_network_instructions.wire, account_number: '9' } }],
  ])('of %s is refused, and also leaves the metadata unchanged: %j', async (field, value) => {
    const { id } = await create({ metadata: { a: '1' } })
    const before = await everyTable(service.db)
    const answer = await customer.call('PUT', at(id), { metadata: { a: '2' }, [field]: value })
    expect(answer).toMatchObject(refusedWith(400, `${field} cannot be changed`))
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('takes the whole record back; of another member is refused', async () => {
    const made = await create()
    const sent = { ...made, metadata: { sent: 'back' } }
    expect(await customer.call('PUT', at(made.id), sent)).toMatchObject({
      status: 200,
      body: { metadata: { sent: 'back' } },
    })
    const { body: now } = await customer.call<FiatAccount>('GET', at(made.id))
    expect(await customer.call('PUT', at(made.id), { ...now, status: 'REJECTED' })).toMatchObject(
      refusedWith(400, 'status cannot be changed'),
    )
  })

  test('of bank details is also refused to the database role of the service', async () => {
    const { id } = await create()
    const change = "update fiat_accounts set fiat_network_instructions = '{}' where id = $1"
    await expect(service.db.query(change, [id])).rejects.toThrow('permission denied')
  })
})

describe('Delete Fiat Account', () => {
  describe('a deleted fiat account', () => {
    test('is not found, updated or paid; include_deleted shows it, and a repeat changes nothing', async () => {
      const created = await create({ ref_id: 'deleted' })
      const { status, body: deleted } = await customer.call<FiatAccount>('DELETE', at(created.id))
      const { deleted_at, updated_at } = deleted
      expect({ status, deleted }).toEqual({ status: 200, deleted: { ...created, deleted_at, updated_at } })
      expect(deleted_at! > created.created_at).toBe(true)
      const before = await everyTable(service.db)

      expect(await customer.call('DELETE', at(created.id))).toMatchObject({ status: 200, body: deleted })
      for (const [method, url, body] of [
        ['GET', at(created.id), undefined],
        ['PUT', at(created.id), { metadata: {} }],
        ['POST', '/v2/transfer/fiat-withdrawals', wireTo(created.id)],
        ['POST', RULES, ruleTo(created.id)],
        [
          'POST',
          '/v2/orchestration/orchestrations',
          {
            ref_id: 'to deleted',
            source_asset: 'USDG',
            destination_asset: 'USD',
            source_amount: '1',
            source: { profile: { profile_id: customer.profile_id } },
            destination: { fiat: { fiat_account_id: created.id } },
          },
        ],
      ] as const)
        expect(await customer.call(method, url, body), url).toMatchObject(isNotFound(created.id))
      expect(await everyTable(service.db)).toEqual(before)

      expect((await customer.call('GET', `${at(created.id)}?include_deleted=true`)).body).toEqual(deleted)
      expect(await listed('ref_ids=deleted')).toEqual([])
      expect(await listed('ref_ids=deleted&include_deleted=true')).toEqual([deleted])
      // Its ref_id stays taken, so a late repeat of the request that created it creates no second one.
      expect(await customer.call('POST', FIAT_ACCOUNTS, { ...BODY, ref_id: 'deleted' })).toMatchObject({
        status: 409,
        body: { meta: { existing: deleted } },
      })
    })

    test('still gets the wires that were accepted before', async () => {
      const { id } = await create()
      const wire = await post<Transfer>('/v2/transfer/fiat-withdrawals', wireTo(id))
      expect((await customer.call('DELETE', at(id))).status).toBe(200)
      for (let round = 1; round <= 3; round++) {
        await service.db.query(
          'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
        )
        await settleWithdrawals(service.db, service.networks)
      }
      expect((await customer.call('GET', `/v2/transfer/transfers/${wire.id}`)).body).toMatchObject({
        status: 'COMPLETED',
        fiat_account_id: id,
      })
    })
  })

  describe('an active rule that pays to a fiat account', () => {
    test('blocks the delete, whose refusal names the rule; after the rule is deleted, the delete works', async () => {
      const { id } = await create()
      const { rule } = await post<{ rule: { id: string } }>(RULES, ruleTo(id))
      const before = await everyTable(service.db)
      expect(await customer.call('DELETE', at(id))).toMatchObject({
        status: 400,
        body: {
          detail: `fiat account ${id} is paid by the active orchestration rule ${rule.id}: delete the rule first`,
        },
      })
      expect(await everyTable(service.db)).toEqual(before)
      await customer.call('DELETE', `${RULES}/${rule.id}`)
      expect((await customer.call('DELETE', at(id))).status).toBe(200)
    })

    test('never pays to a deleted account, when rule and delete are requested at once', async () => {
      for (let round = 1; round <= 15; round++) {
        const { id } = await create()
        const [made, deleted] = await Promise.all([
          customer.call('POST', RULES, ruleTo(id)),
          customer.call('DELETE', at(id)),
        ])
        expect([made.status, deleted.status]).toSatisfy(
          ([rule, account]) => (rule === 200 && account === 400) || (rule === 404 && account === 200),
        )
      }
    })
  })
})
