import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BANK } from '../../../test/bank.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import { newCustomer, ownTestService, type TestCustomer, type TestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { momentAt, momentOfMicros, newId, readClock } from '../../db/ids.ts'
import { ownFolder } from '../../../test/at-end.ts'

interface Point {
  at: string
  in_flight: string
  waiting: number
  in: string
  out: string
}
type Mode = 'sandbox' | 'live'

const MINUTE = 60_000_000
const HOUR = 60 * MINUTE

const BURSAR_BANK_FILE = join(await ownFolder(), 'bank.json')
await writeFile(BURSAR_BANK_FILE, JSON.stringify(BANK))
const services: Record<Mode, TestService> = {
  sandbox: await ownTestService(),
  live: await ownTestService({ BURSAR_MODE: 'live', BURSAR_BANK_FILE }),
}
/** The moment when the test began, and the full hour before it: microseconds. */
const now = (await transaction(services.live.db, readClock)).micros
const lastHour = now - (now % HOUR)

/** So many hours before the last full one. */
const hoursAgo = (hours: number) => lastHour - hours * HOUR

/** Writes a transfer that was created and then changed at these moments. Returns its id. */
async function transfer(
  { owner }: TestService,
  { customer_id, profile_id }: TestCustomer,
  type: string,
  status: string,
  [from, to]: [from: number, to: number],
  { asset = 'USDP', value }: { asset?: string; value: string },
): Promise<string> {
  const created = momentOfMicros(from).text
  const id = newId(momentAt(created))
  const direction = /DEPOSIT|CREDIT/.test(type) ? 'CREDIT' : 'DEBIT'
  await owner.query(
    `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, notional_value,
                            created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, 3, 0, $8, $9, $10, $11)`,
    [
      ...[customer_id, id, profile_id, type, direction, status, asset],
      ...(asset === 'USDP' ? ['3', value] : [value, null]),
      ...[created, momentOfMicros(to).text],
    ],
  )
  return id
}

/** Writes the approval of a transfer or, without one, of a change. */
async function approval(
  { owner }: TestService,
  { customer_id }: TestCustomer,
  status: string,
  from: number,
  { approved, ended, transfer_id }: { approved?: number; ended?: number; transfer_id?: string },
): Promise<void> {
  const created = momentOfMicros(from).text
  const change = transfer_id === undefined ? [{ subject: 'ADDRESSES' }, randomUUID()] : [null, null]
  await owner.query(
    `insert into approvals (customer_id, id, created_at, transfer_id, change, change_digest, required, role, policy_version,
                            initiator_type, initiator_id, deadline, status, approved_at, ended_at)
     values ($1, $2, $3, $4, $5, $6, 1, 'APPROVER', 1, 'API_CLIENT', 'x', $3::timestamptz + interval '30 days', $7, $8, $9)`,
    [
      ...[customer_id, newId(momentAt(created)), created, transfer_id, ...change, status],
      ...[approved, ended].map((micros) => (micros === undefined ? null : momentOfMicros(micros).text)),
    ],
  )
}

async function activityOf(service: TestService, { customer_id }: TestCustomer): Promise<Point[]> {
  const call = await newOperatorCaller(service, 'VIEWER', { customerId: customer_id })
  const ask = async () => (await call<{ items: Point[] }>('GET', '/v2/operators/activity')).body.items
  const [items, again] = await Promise.all([ask(), ask()])
  expect(again).toEqual(items)
  return items
}

/** The points of so many hours ago; the next full hour may begin during a test. */
const pointsOf = (items: Point[], hours: number[]) =>
  hours.map((ago) => items.find(({ at }) => at === momentOfMicros(hoursAgo(ago)).text)!)

describe('List Activity', () => {
  test('has each full hour of the last 24 hours and now', async () => {
    const items = await activityOf(services.sandbox, await newCustomer(services.sandbox))
    const nothing = { in_flight: '0', waiting: 0, in: '0', out: '0' }
    expect(items).toEqual(items.map(({ at }) => ({ at, ...nothing })))
    const moments = items.map(({ at }) => momentAt(at).micros)
    expect(moments).toHaveLength(25)
    const [last, hour] = [moments[24]!, moments[23]!]
    expect(hour % HOUR).toBe(0)
    expect(moments.slice(0, 24)).toEqual(Array.from({ length: 24 }, (_, index) => hour - (23 - index) * HOUR))
    expect(last).toBeGreaterThanOrEqual(now)
    expect(last - hour).toBeLessThan(HOUR)
  })

  test('a payment is in flight from its creation to its end, and what was completed counts once', async () => {
    const service = services.sandbox
    const customer = await newCustomer(service)
    const other = await newCustomer(service)
    const span = (from: number, to: number): [number, number] => [hoursAgo(from), hoursAgo(to)]
    const add = (type: string, status: string, at: [number, number], value: string, by = customer) =>
      transfer(service, by, type, status, at, { value })
    await add('CRYPTO_WITHDRAWAL', 'COMPLETED', span(5.5, 3.5), '100.25')
    await add('CRYPTO_WITHDRAWAL', 'FAILED', span(5.5, 4.5), '10')
    await add('CRYPTO_WITHDRAWAL', 'PENDING', span(72, 2.5), '1')
    // In flight for ten days.
    await add('CRYPTO_WITHDRAWAL', 'COMPLETED', span(240, 3.25), '0.5')
    // From a moment to a moment.
    await add('CRYPTO_WITHDRAWAL', 'COMPLETED', span(2, 1), '40')
    await transfer(service, customer, 'WIRE_WITHDRAWAL', 'PENDING', span(0.5, 0.5), {
      asset: 'USD',
      value: '2000',
    })
    // At the end of an hour, and a microsecond later.
    await add('CRYPTO_DEPOSIT', 'COMPLETED', span(4.5, 3), '5')
    await add('CRYPTO_DEPOSIT', 'COMPLETED', [hoursAgo(4.5), hoursAgo(3) + 1], '6')
    await add('CRYPTO_DEPOSIT', 'PENDING', span(4.5, 4.5), '70000')
    await add('CRYPTO_DEPOSIT', 'FAILED', span(4.5, 3.5), '70000')
    await add('INTERNAL_TRANSFER_DEBIT', 'COMPLETED', span(3.5, 3.5), '70000')
    await add('INTERNAL_TRANSFER_CREDIT', 'COMPLETED', span(3.5, 3.5), '70000')
    // A reward has no recorded value.
    await transfer(service, customer, 'PAXOS_TRANSFER_CREDIT', 'COMPLETED', span(3.5, 3.5), {
      asset: 'USDG',
      value: '0.07',
    })
    // Before the first point, and before its hour.
    for (const ago of [23.5, 22.5]) await add('WIRE_DEPOSIT', 'COMPLETED', span(ago, ago), '7')
    await add('WIRE_DEPOSIT', 'COMPLETED', span(26, 25), '70000')
    // Within the last 60 minutes, of which some may be before the full hour.
    for (const minutes of [1, 55])
      await add('WIRE_DEPOSIT', 'COMPLETED', [now - 2 * HOUR, now - minutes * MINUTE], '8')
    await add('CRYPTO_WITHDRAWAL', 'PENDING', span(5.5, 5.5), '70000', other)
    await add('CRYPTO_WITHDRAWAL', 'COMPLETED', span(5.5, 3.5), '70000', other)

    const items = await activityOf(service, customer)
    const shown = pointsOf(items, [6, 5, 4, 3, 2]).map(({ in_flight, in: credited, out }) => [
      in_flight,
      credited,
      out,
    ])
    expect(shown).toEqual([
      ['1.5', '0', '0'],
      ['111.75', '0', '0'],
      ['101.75', '0', '0'],
      ['1', '5.07', '100.75'],
      ['41', '6', '0'],
    ])
    expect(pointsOf(items, [1, 0]).map(({ in_flight, out }) => [in_flight, out])).toEqual([
      ['1', '40'],
      ['2001', '0'],
    ])
    expect(items[0]).toMatchObject({ in_flight: '1.5', in: '7' })
    expect(items[24]).toMatchObject({ in_flight: '2001', in: '16', out: '0' })
    // Nobody waits for a person: the simulated bank sends the wire.
    expect(new Set(items.map(({ waiting }) => waiting))).toEqual(new Set([0]))
  })

  test.each<[mode: Mode, waiting: number[], last: number]>([
    // Without the wires, whose approvals count while they are pending.
    ['sandbox', [1, 4, 3, 1, 2, 1, 1], 1],
    ['live', [1, 5, 3, 1, 2, 2, 2], 2],
  ])('approvals wait until they are decided; %s', async (mode, waiting, last) => {
    const service = services[mode]
    const [customer, other] = [await newCustomer(service), await newCustomer(service)]
    const [early, late] = [hoursAgo(5.5), hoursAgo(3.5)]
    const value = { asset: 'USD', value: '1' }
    const paid = await transfer(service, customer, 'CRYPTO_WITHDRAWAL', 'COMPLETED', [early, late], value)
    await approval(service, customer, 'APPROVED', early, { approved: hoursAgo(4.5), transfer_id: paid })
    await approval(service, customer, 'USED', early, { approved: hoursAgo(4), ended: hoursAgo(2.5) })
    await approval(service, customer, 'REJECTED', early, { ended: late })
    // The longest deadline has not passed.
    await approval(service, customer, 'PENDING', hoursAgo(29 * 24), {})
    await approval(service, customer, 'EXPIRED', hoursAgo(40), { ended: hoursAgo(30) })
    await approval(service, other, 'PENDING', early, {})
    const failed = await transfer(
      service,
      customer,
      'CRYPTO_WITHDRAWAL',
      'FAILED',
      [hoursAgo(4.25), late],
      value,
    )
    await approval(service, customer, 'CANCELLED', hoursAgo(4.25), { ended: late, transfer_id: failed })
    await transfer(service, customer, 'WIRE_WITHDRAWAL', 'COMPLETED', [early, hoursAgo(4.5)], value)
    await transfer(service, other, 'WIRE_WITHDRAWAL', 'PENDING', [early, early], value)
    const created = hoursAgo(2.5)
    const wire = await transfer(service, customer, 'WIRE_WITHDRAWAL', 'PENDING', [created, created], value)
    await approval(service, customer, 'APPROVED', created, { approved: hoursAgo(1.5), transfer_id: wire })
    const items = await activityOf(service, customer)
    expect(pointsOf(items, [6, 5, 4, 3, 2, 1, 0]).map((point) => point.waiting)).toEqual(waiting)
    expect(items[24]!.waiting).toBe(last)
  })
})
