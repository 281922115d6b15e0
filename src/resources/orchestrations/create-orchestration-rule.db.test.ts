import { describe, expect, test } from 'vitest'
import { everyTable, newCustomer, newHolder, ownTestService } from '../../../test/support.ts'
import type { Orchestration } from '../../money/records/orchestration.ts'
import type { OrchestrationRule } from '../../money/records/orchestration-rule.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { runOrchestrations } from './run-orchestrations.ts'
import { refusedWith } from '../../../test/matchers.ts'

const RULES = '/v2/orchestration/rules'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'

const service = await ownTestService()
const customer = await newCustomer(service)
const holder = await newHolder(customer)

async function post<T>(url: string, body: object): Promise<T> {
  const answer = await customer.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

const ruleOf = (changes: object = {}) => ({
  ref_id: crypto.randomUUID(),
  profile_id: customer.profile_id,
  source_asset: 'USD',
  destination_asset: 'USDP',
  source: { fiat: {} },
  ...changes,
})
const newRule = async (changes: object = {}) =>
  (await post<{ rule: OrchestrationRule }>(RULES, ruleOf(changes))).rule

const depositTo = (profile_id: string, body: object) =>
  post<object>(`/v2/sandbox/profiles/${profile_id}/deposit`, { amount: '5', ...body })

/** Makes a deposit at a rule's source. Returns its orchestration after it has ended. */
async function orchestrated({ id, profile_id, source, source_asset: asset }: OrchestrationRule) {
  if (source.fiat !== undefined)
    await post('/v2/sandbox/fiat-deposits', {
      amount: '5',
      asset: 'USD',
      memo_id: source.fiat.memo_id,
      fiat_network_instructions: { wire: {} },
    })
  else if (source.crypto !== undefined)
    await depositTo(profile_id, {
      asset,
      crypto_network: source.crypto.network,
      crypto_address: source.crypto.address,
    })
  else await depositTo(profile_id, { asset })
  await runOrchestrations(service.db, service)
  const { body } = await customer.call<{ items: [Orchestration] }>(
    'GET',
    `${ORCHESTRATIONS}?orchestration_rule_id=${id}`,
  )
  return body.items[0]
}

const transferOf = async (link: { transfer_id: string } | undefined) =>
  (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${link!.transfer_id}`)).body

describe('Get Orchestration', () => {
  test('the links of an orchestration have the current status of their transfers', async () => {
    await depositTo(customer.profile_id, { asset: 'USD' })
    const created = await post<Orchestration>(ORCHESTRATIONS, {
      ref_id: 'links',
      profile_id: customer.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '3',
      source: { profile: { profile_id: customer.profile_id } },
      destination: {
        crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' },
      },
    })
    expect(created).toMatchObject({
      source_transfer: { status: 'PENDING' },
      destination_transfer: { status: 'PENDING' },
    })
    const { transfer_id } = created.destination_transfer!
    await customer.call('POST', `/v2/transfer/transfers/${transfer_id}/cancel`)
    expect((await customer.call('GET', `${ORCHESTRATIONS}/${created.id}`)).body).toMatchObject({
      status: 'FAILED',
      source_transfer: { transfer_id, status: 'FAILED' },
      destination_transfer: { transfer_id, status: 'FAILED' },
    })
  })
})

describe('List Orchestration Rules', () => {
  test('the list of rules is filtered under both names, and answers `rules` beside `items`', async () => {
    const { id: profile_id } = await post<{ id: string }>('/v2/profiles', { nickname: 'Listed' })
    const [usd, usdg] = [
      await newRule({ profile_id }),
      await newRule({ profile_id, source_asset: 'USDG', source: { profile: { profile_id } } }),
    ]
    await customer.call('DELETE', `${RULES}/${usd.id}`)
    const idsOf = async (query: string) => {
      const { body } = await customer.call<{ items: { id: string }[]; rules: object[] }>(
        'GET',
        `${RULES}?${query}`,
      )
      expect(body.rules).toEqual(body.items)
      return body.items.map(({ id }) => id)
    }
    const own = `profile_id=${profile_id}`
    expect(await idsOf(own)).toEqual([usdg.id, usd.id])
    expect(await idsOf(`${own}&status=ACTIVE`)).toEqual([usdg.id])
    expect(await idsOf(`${own}&status=ACTIVE&status=DELETED`)).toEqual([usdg.id, usd.id])
    expect(await idsOf(`${own}&status=ACTIVE&statuses=DELETED`)).toEqual([])
    expect(await idsOf(`${own}&source_asset=USD`)).toEqual([usd.id])
    expect(await idsOf(`${own}&source_asset=USDG,USD&destination_asset=USDP`)).toEqual([usdg.id, usd.id])
    expect(await idsOf(`${own}&destination_asset=PYUSD`)).toEqual([])
  })
})

describe('Create Orchestration Rule', () => {
  describe('the identity and account of a rule', () => {
    const sources = (): [string, object][] => [
      ['fiat', { source: { fiat: {} } }],
      ['crypto', { source_asset: 'USDG', source: { crypto: { network: 'ETHEREUM' } } }],
    ]

    test('are on its orchestrations and on all of their transfers', async () => {
      for (const [kind, source] of sources()) {
        const rule = await newRule({ ...source, ...holder })
        expect(rule, kind).toMatchObject(holder)
        const orchestration = await orchestrated(rule)
        expect(orchestration, kind).toMatchObject({ status: 'COMPLETED', ...holder })
        for (const link of [orchestration.source_transfer, orchestration.destination_transfer])
          expect(await transferOf(link), kind).toMatchObject(holder)
      }
    })

    test('of a profile source are those of its orchestrations and payouts; the deposit names its own', async () => {
      const { id: profile_id } = await post<{ id: string }>('/v2/profiles', { nickname: 'Profile source' })
      const rule = await newRule({ profile_id, source: { profile: { profile_id } }, ...holder })
      const orchestration = await orchestrated(rule)
      expect(orchestration).toMatchObject({ status: 'COMPLETED', ...holder })
      expect(await transferOf(orchestration.source_transfer)).not.toHaveProperty('identity_id')
      expect(await transferOf(orchestration.destination_transfer)).toMatchObject(holder)
    })

    test('replace both holders of a deposit address: an identity has its own account', async () => {
      const { id: profile_id } = await post<{ id: string }>('/v2/profiles', {
        nickname: 'Address of another',
      })
      const other = await newHolder(customer)
      const place = { profile_id, crypto_network: 'ETHEREUM' }
      const { address } = await post<{ address: string }>('/v2/transfer/deposit-addresses', {
        ...place,
        ...other,
      })
      const rule = await newRule({
        profile_id,
        source_asset: 'USDG',
        source: { profile: { profile_id } },
        identity_id: holder.identity_id,
      })
      await depositTo(profile_id, { asset: 'USDG', crypto_network: 'ETHEREUM', crypto_address: address })
      const { body } = await customer.call<{ items: [Orchestration] }>(
        'GET',
        `${ORCHESTRATIONS}?orchestration_rule_id=${rule.id}`,
      )
      expect(body.items).toMatchObject([{ identity_id: holder.identity_id }])
      expect(body.items[0]).not.toHaveProperty('account_id')
      expect(await transferOf(body.items[0].source_transfer)).toMatchObject(other)
    })

    test('must belong together and be approved; a refusal records nothing', async () => {
      const other = await newHolder(customer)
      const before = await everyTable(service.db)
      const foreign = { identity_id: holder.identity_id, account_id: other.account_id }
      for (const [, source] of sources())
        expect(await customer.call('POST', RULES, ruleOf({ ...source, ...foreign }))).toMatchObject(
          refusedWith(400, 'does not belong to identity_id'),
        )
      expect(await everyTable(service.db)).toEqual(before)
    })

    test('denied later, stop the payout: the orchestration fails and the money stays', async () => {
      const later = await newHolder(customer)
      const rule = await newRule(later)
      const path = `/v2/identity/identities/${later.identity_id}/sandbox-status`
      await customer.call('PUT', path, { status: 'DENIED' })
      const orchestration = await orchestrated(rule)
      expect(orchestration).toMatchObject({
        status: 'FAILED',
        fail_reason: { detail: expect.stringContaining('is DENIED') as string },
        source_transfer: { status: 'COMPLETED' },
      })
      expect(orchestration).not.toHaveProperty('destination_transfer')
    })
  })

  test('an orchestration of a rule shows a ref_id that finds it, and that no client can take', async () => {
    const { id, ref_id } = await orchestrated(await newRule())
    expect(ref_id).toBe(`orchestration_id.${id}`)
    const { rows } = await service.db.query('select ref_id from orchestrations where id = $1', [id])
    expect(rows).toEqual([{ ref_id: null }])
    const { body } = await customer.call<{ items: [Orchestration] }>(
      'GET',
      `${ORCHESTRATIONS}?ref_id=${ref_id}`,
    )
    expect(body.items.map((one) => one.id)).toEqual([id])
    expect((await customer.call('GET', `${ORCHESTRATIONS}/${id}`)).body).toMatchObject({ ref_id })
    const taken = await customer.call('POST', ORCHESTRATIONS, {
      ref_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '1',
      source: { profile: { profile_id: customer.profile_id } },
    })
    expect(taken).toMatchObject({
      status: 400,
      body: { detail: `ref_id ${ref_id} is reserved: orchestrations of rules have such ref_ids` },
    })
  })

  test('a rule keeps the client that made it, as the initiator of its transfers', async () => {
    const { id } = await newRule()
    const { rows } = await service.db.query('select created_by from orchestration_rules where id = $1', [id])
    expect(rows).toEqual([{ created_by: { type: 'API_CLIENT', id: customer.client_id } }])
  })

  test('the audit log names who starts the orchestration of a rule, and the worker for its transfer and its end', async () => {
    const rule = await newRule({ destination: undefined })
    const { id, destination_transfer } = await orchestrated(rule)
    const { rows } = await service.db.query(
      `select actor_type, actor_id, action from audit_log
       where customer_id = $1 and $2 = any (subject_ids::text[]) or $3 = any (subject_ids::text[])
       order by id`,
      [customer.customer_id, id, destination_transfer!.transfer_id],
    )
    expect(rows).toEqual([
      { actor_type: 'API_CLIENT', actor_id: customer.client_id, action: 'orchestration.create' },
      { actor_type: 'WORKER', actor_id: 'orchestrations', action: 'transfer.create' },
      { actor_type: 'WORKER', actor_id: 'orchestrations', action: 'orchestration.complete' },
    ])
  })
})
