import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { setPolicy } from '../../../test/policies.ts'
import { runs } from '../../../test/seed.ts'
import {
  DESTINATION,
  everyTable,
  fund,
  newCustomer,
  withdrawalOf,
  sharedTestService,
} from '../../../test/support.ts'

const service = await sharedTestService()

const DAY_LIMIT = {
  id: 'day',
  match: { transfer_types: ['CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL'] },
  limit: { amount: '100', asset: 'USD', period_seconds: 86_400, per: 'PROFILE' },
  action: 'BLOCK',
} as const

describe('Put Policy', () => {
  test('keeps the policy, and its author in the audit log', async () => {
    const by = await newCustomer(service)
    const put = await by.call('PUT', '/v2/policy', { rules: [DAY_LIMIT], replaces: 0 })
    expect(put).toMatchObject({ status: 200, body: { version: 1, rules: [DAY_LIMIT] } })
    expect(await by.call('PUT', '/v2/policy', { rules: [], replaces: 0 })).toMatchObject({
      status: 409,
      body: { meta: { existing: put.body } },
    })
    await by.call('PUT', '/v2/policy', { rules: [] })
    const { rows } = await service.db.query<object>(
      "select actor_id, action, changes from audit_log where customer_id = $1 and action = 'policy.set' order by id",
      [by.customer_id],
    )
    expect(rows).toMatchObject([
      { actor_id: by.client_id, changes: { before: { rules: [] }, after: { rules: [DAY_LIMIT] } } },
      { actor_id: by.client_id, changes: { before: { rules: [DAY_LIMIT] }, after: { rules: [] } } },
    ])
  })

  test('of versions that are put at the same time, each counts once', async () => {
    const by = await newCustomer(service)
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => by.call('PUT', '/v2/policy', { rules: [], replaces: 0 })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(7)
  })

  test('a policy that requires approval of its changes is not changed without it', async () => {
    const by = await newCustomer(service)
    const guarded = { rules: [], changes: { subjects: ['POLICY'], approvals: 2 } }
    expect(await by.call('PUT', '/v2/policy', guarded)).toMatchObject({ status: 200 })
    expect(await by.call('PUT', '/v2/policy', { rules: [] })).toMatchObject({
      status: 403,
      body: { type: expect.stringMatching(/approval-required$/) as string },
    })
    expect((await by.call('GET', '/v2/policy')).body).toMatchObject({ version: 1 })
  })
})

describe('Get Policy', () => {
  test('answers the version in force, and version 0 where there is none', async () => {
    const [by, other] = [await newCustomer(service), await newCustomer(service)]
    const none = { version: 0, rules: [] }
    expect((await by.call('GET', '/v2/policy')).body).toEqual(none)
    const { body } = await by.call('PUT', '/v2/policy', { rules: [DAY_LIMIT] })
    expect((await by.call('GET', '/v2/policy')).body).toEqual(body)
    expect((await other.call('GET', '/v2/policy')).body).toEqual(none)
  })
})

describe('List Policy Versions', () => {
  test('newest first, before a version', async () => {
    const by = await newCustomer(service)
    const { body: first } = await by.call('PUT', '/v2/policy', { rules: [DAY_LIMIT] })
    const { body: second } = await by.call('PUT', '/v2/policy', { rules: [] })
    const versions = async (query = '') =>
      (await by.call<{ items: object[] }>('GET', `/v2/policy/versions${query}`)).body.items
    expect(await versions()).toMatchObject([
      { policy: second, trusted: true },
      { policy: first, trusted: true },
    ])
    expect(await versions('?before=2')).toMatchObject([{ policy: first }])
  })

  test('a version that cannot be trusted is listed as such, and not replaced over the API', async () => {
    const by = await newCustomer(service)
    await by.call('PUT', '/v2/policy', { rules: [] })
    await service.db.query(
      `insert into policies (customer_id, version, document, mac, created_at)
       select customer_id, 2, document, mac, created_at from policies where customer_id = $1`,
      [by.customer_id],
    )
    const { body } = await by.call<{ items: object[] }>('GET', '/v2/policy/versions')
    expect(body.items).toMatchObject([{ trusted: false }, { trusted: true }])
    expect(await by.call('GET', '/v2/policy')).toMatchObject({ status: 503 })
    expect(await by.call('PUT', '/v2/policy', { rules: [] })).toMatchObject({ status: 503 })
  })
})

describe('List Transfer Limits', () => {
  test('utilizations show what is left of each limit', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    const each = {
      id: 'each',
      limit: { amount: '90', asset: 'USDP', period_seconds: 0 },
      action: 'BLOCK',
    } as const
    const all = {
      id: 'all',
      limit: { amount: '500.5', asset: 'USD', period_seconds: 60 },
      action: 'APPROVE',
      approvals: 1,
    } as const
    await setPolicy(service.db, by.customer_id, {
      rules: [
        { action: 'BLOCK', match: { assets: ['BTC'] } },
        { ...DAY_LIMIT, match: { transfer_types: [...DAY_LIMIT.match.transfer_types] } },
        each,
        all,
      ],
    })
    const listed = async (query = '') =>
      (await by.call<{ items: object[] }>('GET', `/v2/transfer/limits/utilizations${query}`)).body.items
    expect(await listed()).toMatchObject([
      { id: 'each', remaining: '90' },
      { id: 'all', remaining: '500.5' },
    ])
    await by.call(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(by, { amount: undefined, total: '30.25' }),
    )
    expect(await listed()).toMatchObject([
      {
        id: `day:${by.profile_id}`,
        rule_id: 'day',
        per: 'PROFILE',
        subject: by.profile_id,
        limit: '100',
        remaining: '69.75',
        limit_asset: 'USD',
      },
      { id: 'each', period_seconds: 0, limit: '90', remaining: '90', limit_asset: 'USDP' },
      { id: 'all', per: 'CUSTOMER', limit: '500.5', remaining: '470.25' },
    ])
    expect(await listed('?transfer_type=INTERNAL_TRANSFER_DEBIT')).toMatchObject([
      { id: 'each' },
      { id: 'all' },
    ])
    const nobody = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
    expect(await listed(`?profile_id=${nobody}`)).toMatchObject([
      { subject: nobody, remaining: '100' },
      {},
      {},
    ])
  })
})

describe('dry_run', () => {
  /** What does not depend on the moment of a request. */
  const lasting = ({ status, body }: { status: number; body: Record<string, unknown> }) => {
    const {
      id: _id,
      created_at: _created,
      updated_at: _updated,
      group_id: _group,
      source_transfer,
      destination_transfer,
      status_details: _details,
      secondary_status,
      ...rest
    } = body
    const of = (link: unknown) => (link as { status?: string } | undefined)?.status
    return {
      ...rest,
      http: status,
      name: (secondary_status as { name?: string } | undefined)?.name,
      source: of(source_transfer),
      destination: of(destination_transfer),
    }
  }

  const amount = fc.oneof(
    fc.constantFrom('0', '1', '2', '49.99', '50', '50.01', '100000', '1.005', '0.000000000000000001', '.5'),
    fc.integer({ min: 1, max: 7_000 }).map((cents) => (cents / 100).toFixed(2)),
  )
  const request = fc.record({
    kind: fc.constantFrom('crypto', 'wire', 'internal', 'orchestration'),
    amount,
    isTotal: fc.boolean(),
    asset: fc.constantFrom('USD', 'USDP', 'USDG', 'NOPE'),
    refId: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
    profile: fc.constantFrom(0, 1),
  })

  test('agrees with the request that follows it, and changes nothing', async () => {
    const by = await newCustomer(service)
    await fund(by, '3000')
    const { body: second } = await by.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'second' })
    const { body: fiat } = await by.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
      fiat_account_owner: { institution_details: { name: 'A' } },
      fiat_network_instructions: { wire: { account_number: '1' } },
    })
    await setPolicy(service.db, by.customer_id, {
      rules: [
        { id: 'small', limit: { amount: '600', asset: 'USD', period_seconds: 3600 }, action: 'ALLOW' },
        {
          id: 'big',
          match: { assets: ['USDP'] },
          limit: { amount: '50', asset: 'USD', period_seconds: 0 },
          action: 'BLOCK',
        },
        {
          id: 'wires',
          match: { networks: ['WIRE'] },
          limit: { amount: '900', asset: 'USD', period_seconds: 3600, per: 'DESTINATION' },
          action: 'APPROVE',
          approvals: 1,
        },
      ],
    })
    const profiles = [by.profile_id, second.id]
    const send = (
      {
        kind,
        amount,
        isTotal,
        asset,
        refId,
        profile,
      }: typeof request extends fc.Arbitrary<infer T> ? T : never,
      query: string,
      n: number,
    ) => {
      const from = profiles[profile]!
      const ref_id = refId === undefined ? `own-${n}` : `ref-${refId}`
      const how = isTotal ? { total: amount } : { amount }
      switch (kind) {
        case 'crypto':
          return by.call('POST', `/v2/transfer/crypto-withdrawals${query}`, {
            profile_id: from,
            asset,
            balance_asset: 'USD',
            crypto_network: 'ETHEREUM',
            destination_address: DESTINATION,
            ref_id,
            ...how,
          })
        case 'wire':
          return by.call('POST', `/v2/transfer/fiat-withdrawals${query}`, {
            profile_id: from,
            asset,
            fiat_account_id: fiat.id,
            ref_id,
            ...how,
          })
        case 'internal':
          return by.call('POST', `/v2/transfer/internal${query}`, {
            asset,
            amount,
            from_profile_id: from,
            to_profile_id: profiles[1 - profile]!,
            ref_id,
          })
        default:
          return by.call('POST', `/v2/orchestration/orchestrations${query}`, {
            ref_id,
            source_asset: asset,
            destination_asset: 'USDG',
            source_amount: amount,
            source: { profile: { profile_id: from } },
          })
      }
    }
    let n = 0
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(request, async (one) => {
        n++
        const dry = lasting(await send(one, '?dry_run=true', n))
        const real = lasting(await send(one, '', n))
        expect(dry).toEqual(real)
        statuses.add(real.http)
      }),
      runs(3_000),
    )
    expect([...statuses].sort()).toEqual(expect.arrayContaining([200, 400, 403, 409]))
    const before = await everyTable(service.db)
    const one = {
      kind: 'crypto',
      amount: '2',
      isTotal: false,
      asset: 'USDG',
      refId: undefined,
      profile: 0,
    } as const
    await send(one, '?dry_run=true', 0)
    await send({ ...one, kind: 'orchestration', asset: 'USD' }, '?dry_run=true', 0)
    await send({ ...one, kind: 'internal', asset: 'USD' }, '?dry_run=true', 0)
    await send({ ...one, kind: 'wire', asset: 'USD' }, '?dry_run=true', 0)
    expect(await everyTable(service.db)).toEqual(before)
  })
})
