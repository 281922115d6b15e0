import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { EVENT_TYPES, FREQUENT_EVENT_TYPES } from '../../contract/event-types.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { transaction } from '../../db/database.ts'
import { idsAt, readClock } from '../../db/ids.ts'
import type { Event } from '../../money/records/event.ts'
import {
  approve,
  DESTINATION,
  fund,
  newCustomer,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { runs, SEED } from '../../../test/seed.ts'
import { hurry, workOff } from '../../../test/work-off.ts'

const service = await ownTestService()
const customer = await newCustomer(service)

const EVENTS = '/v2/events'
type Page = { events: Event[]; items: Event[]; next_page_cursor?: string }

async function list(query = '', of = customer): Promise<Page> {
  const answer = await of.call<Page>('GET', `${EVENTS}?${query}`)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  expect(answer.body.items).toEqual(answer.body.events)
  return answer.body
}

async function walk(query: string, of = customer): Promise<Event[]> {
  const events: Event[] = []
  let cursor = ''
  for (let page = 0; page < 200; page++) {
    const { items, next_page_cursor } = await list(`${query}${cursor}`, of)
    events.push(...items)
    if (next_page_cursor === undefined) return events
    cursor = `&page_cursor=${next_page_cursor}`
  }
  throw new Error('the walk does not end')
}

describe('List Events', () => {
  describe('the object of an event', () => {
    test('of a withdrawal has its hash only once it has ended', async () => {
      await fund(customer, '1000')
      const body = withdrawalOf(customer, { memo: 'For rent', ref_id: 'rent' })
      const { body: transfer } = await customer.call<Record<string, string>>(
        'POST',
        '/v2/transfer/crypto-withdrawals',
        body,
      )
      await workOff(service, () => hurry(service.db))
      const { body: ended } = await customer.call<Record<string, string>>(
        'GET',
        `/v2/transfer/transfers/${transfer.id!}`,
      )
      expect(ended).toMatchObject({ status: 'COMPLETED' })
      const object = {
        id: transfer.id,
        type: 'CRYPTO_WITHDRAWAL',
        status: 'PENDING',
        profile_id: customer.profile_id,
        ref_id: 'rent',
        crypto_network: transfer.crypto_network,
        memo: 'For rent',
      }
      const { events } = await list(`object_id=${transfer.id}`)
      expect(events).toEqual([
        {
          id: expect.any(String) as string,
          type: 'transfer.crypto_withdrawal.pending',
          object_type: 'transfer_status_change',
          object,
          created_at: transfer.created_at,
          undelivered_webhooks: 0,
        },
        {
          id: expect.any(String) as string,
          type: 'transfer.crypto_withdrawal.completed',
          object_type: 'transfer_status_change',
          object: {
            ...object,
            status: 'COMPLETED',
            crypto_tx_hash: ended.crypto_tx_hash,
            ...(ended.crypto_tx_index !== undefined && { crypto_tx_index: ended.crypto_tx_index }),
          },
          created_at: ended.updated_at,
          undelivered_webhooks: 0,
        },
      ])
      expect(Object.keys(events[0]!)).toEqual([
        'id',
        'type',
        'object_type',
        'object',
        'created_at',
        'undelivered_webhooks',
      ])
      for (const event of events) {
        const answer = await customer.call('GET', `${EVENTS}/${event.id}`)
        expect(answer.body).toEqual(event)
      }
    })

    test('of an orchestration has its rule and its ref_id', async () => {
      const { rule } = (
        await customer.call<{
          rule: { id: string; source: { fiat: { memo_id: string } } }
        }>('POST', '/v2/orchestration/rules', {
          ref_id: 'rule',
          profile_id: customer.profile_id,
          source_asset: 'USD',
          destination_asset: 'USDP',
          source: { fiat: { network: 'WIRE' } },
          destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
        })
      ).body
      await customer.call('POST', '/v2/sandbox/fiat-deposits', {
        amount: '20',
        asset: 'USD',
        memo_id: rule.source.fiat.memo_id,
        fiat_network_instructions: { wire: {} },
      })
      await workOff(service, () => hurry(service.db))
      const events = await walk('types=orchestration.*')
      const [id] = events.map(({ object }) => object.id)
      const object = { id, ref_id: `orchestration_id.${id}`, orchestration_rule_id: rule.id }
      expect(events).toMatchObject([
        { type: 'orchestration.processing', object: { ...object, status: 'PROCESSING' } },
        { type: 'orchestration.completed', object: { ...object, status: 'COMPLETED' } },
      ])
      expect(await walk(`object_id=${id}`)).toEqual(events)
      expect(await walk(`object_id=${id}&type=orchestration.completed`)).toEqual(events.slice(1))
    })

    test('of each other type has exactly the members of the contract', async () => {
      const { call } = customer
      const ADA = { first_name: 'Ada', last_name: 'Example' }
      const identity = await call<{ id: string }>('POST', '/v2/identity/identities', {
        ref_id: 'ada',
        person_details: ADA,
      })
      await approve(customer, identity.body.id)
      const bank = await call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
        fiat_account_owner: { person_details: ADA },
        fiat_network_instructions: { wire: { account_number: '1' } },
      })
      expect(await walk('types=fiat_account.*')).toMatchObject([
        {
          type: 'fiat_account.approved',
          object_type: 'fiat_account_status_change',
          object: { id: bank.body.id, status: 'APPROVED' },
        },
      ])
      const book = await call<{ address: { id: string } }>('PUT', '/v2/transfer/crypto-destination-address', {
        crypto_network: 'ETHEREUM',
        address: DESTINATION,
      })
      const [approved] = await walk('type=identity.approved')
      expect(approved).toMatchObject({
        object_type: 'identity_summary_status_change',
        object: {
          id: approved!.id,
          identity_id: identity.body.id,
          old_summary_status: 'PENDING',
          new_summary_status: 'APPROVED',
        },
      })
      expect(await walk('types=crypto_destination_address.*')).toMatchObject([
        {
          type: 'crypto_destination_address.approved',
          object_type: 'crypto_destination_address_status_change',
          object: {
            id: book.body.address.id,
            crypto_network: 'ETHEREUM',
            address: DESTINATION,
            status: 'APPROVED',
          },
        },
      ])
    })
  })

  describe('the filters', () => {
    const typesOfEvents = Object.keys(EVENT_TYPES).filter(
      (type) => type.startsWith('webhook') || type.includes('account'),
    )
    const records = Array.from({ length: 3 }, (_, index) => `0192f3a4-0000-7000-8000-0000000001a${index}`)
    let other: TestCustomer
    let all: Event[]

    beforeAll(async () => {
      other = await newCustomer(service)
      const random = fc.sample(
        fc.record({
          type: fc.constantFrom(...typesOfEvents),
          object_id: fc.constantFrom(...records),
          is_test: fc.boolean(),
        }),
        { numRuns: 150, seed: SEED },
      )
      for (const { type, object_id, is_test } of random) {
        await transaction(service.db, async (tx) => {
          const now = await readClock(tx)
          const object = {
            name: 'Payments',
            failing_since: now.text,
            status: 'APPROVED',
            account_id: object_id,
            old_summary_status: 'PENDING',
            new_summary_status: 'APPROVED',
          }
          if (!is_test) return insertEvents(tx, other.customer_id, now, [{ type, object_id, object }])
          await tx.query(
            `insert into events (customer_id, id, created_at, type, object_id, object, is_test)
             values ($1, $2, $3, $4, $5, $6, true)`,
            [other.customer_id, idsAt(now)(), now.text, type, object_id, object],
          )
        })
      }
      all = await walk('', other)
      expect(all.length).toBeGreaterThan(30)
    })

    test('select what an independent filter selects, in both orders and any size of page', async () => {
      const query = fc.record({
        type: fc.option(fc.constantFrom(...typesOfEvents), { nil: undefined }),
        types: fc.array(
          fc.constantFrom('account.*', 'fiat_account.*', 'webhook.disabled', '*', 'transfer.*'),
          {
            maxLength: 2,
          },
        ),
        object_id: fc.option(fc.constantFrom(...records), { nil: undefined }),
        order: fc.constantFrom('ASC', 'DESC'),
        limit: fc.integer({ min: 1, max: 100 }),
        after: fc.option(fc.nat(all.length - 1), { nil: undefined }),
      })
      await fc.assert(
        fc.asyncProperty(query, async ({ type, types, object_id, order, limit, after }) => {
          const given = {
            type,
            object_id,
            order,
            limit,
            'created_at.gt': after === undefined ? undefined : all[after]!.created_at,
          }
          const parts = Object.entries(given).flatMap(([name, value]) =>
            value === undefined ? [] : `${name}=${value}`,
          )
          const text = [...parts, ...types.map((one) => `types=${one}`)].join('&')
          const expected = all.filter(
            (event) =>
              (type === undefined || event.type === type) &&
              (types.length === 0 ||
                types.some(
                  (one) =>
                    event.type === one || (one.endsWith('*') && event.type.startsWith(one.slice(0, -1))),
                )) &&
              (object_id === undefined || recordOf(event) === object_id) &&
              (given['created_at.gt'] === undefined || event.created_at > given['created_at.gt']),
          )
          if (order === 'DESC') expected.reverse()
          expect((await walk(text, other)).map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
        }),
        runs(80),
      )
    })

    test('of events of tests shows only those', async () => {
      const tests = await walk('is_test=true', other)
      expect(tests.length + all.length).toBe(150)
      expect(await walk('is_test=false', other)).toEqual(all)
    })

    const recordOf = ({ object }: Event) =>
      'account_id' in object ? object.account_id : (object as { id: string }).id
  })

  test('the index of rare types leaves out exactly the types that lists take for frequent', async () => {
    const { rows } = await service.db.query<{ predicate: string }>(
      "select pg_get_expr(indpred, indrelid) as predicate from pg_index where indexrelid = 'events_type'::regclass",
    )
    const { predicate } = rows[0]!
    expect(predicate).toMatch(/^\(type <> ALL \(ARRAY\[.*\]\)\)$/)
    const left = [...predicate.matchAll(/'([^']+)'/g)].map(([, type]) => type)
    expect(left.sort()).toEqual([...FREQUENT_EVENT_TYPES].sort())
  })
})

describe('Get Event', () => {
  test("answers the event as the list has it; another customer's is a 404", async () => {
    const [event] = await walk('')
    const path = `${EVENTS}/${event!.id}`
    expect((await customer.call('GET', path)).body).toEqual(event)
    expect((await (await newCustomer(service)).call('GET', path)).status).toBe(404)
  })
})
