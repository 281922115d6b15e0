/*
 * Invariants of internal transfers, also of many at once:
 * 1. each transfer is a debit and a credit of one group, posted together or not at all;
 * 2. the amount that leaves one profile arrives at the other: the customer's total stays the same;
 * 3. a refused request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import {
  approve,
  BASE_URL,
  caller,
  credit,
  entriesOf,
  everyTable,
  MASTER_KEYS,
  newCustomer,
  ownTestService,
  newProfile,
  newIdentity,
} from '../../../test/support.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { openDatabase } from '../../db/database.ts'
import { Ledger } from '../../money/movements/queue.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { buildApp } from '../../program/build-app.ts'
import { refusedWith } from '../../../test/matchers.ts'
import { availableOf } from '../../../test/payouts.ts'

const INTERNAL = '/v2/transfer/internal'

const service = await ownTestService()
const customer = await newCustomer(service)

const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

/** Creates two profiles, the first with this amount. */
async function newPair(asset: string, amount: string): Promise<[from: string, to: string]> {
  const [from, to] = [await newProfile(customer), await newProfile(customer)]
  await credit(service.ledger, { ...customer, profile_id: from }, asset, amount)
  return [from, to]
}

const available = (profile_id: string, asset: string) => availableOf({ ...customer, profile_id }, asset)

async function groupOf({ group_id }: Transfer): Promise<Transfer[]> {
  const { body } = await customer.call<{ items: Transfer[] }>(
    'GET',
    `/v2/transfer/transfers?order=ASC&group_ids=${group_id}`,
  )
  return body.items
}

describe('Create Internal Transfer', () => {
  test.each([
    ['USD', '10.50', '10.5', '89.5'],
    ['USDP', '0.000000000000000001', '0.000000000000000001', '99.999999999999999999'],
    ['BTC', '100.0', '100', '0'],
  ])(
    '%s %s: both legs are created at once, and the answer is the debit',
    async (asset, sent, amount, left) => {
      const [from, to] = await newPair(asset, '100')
      const ref_id = randomUUID()
      const said = { memo: 'lunch', metadata: { order: '17' } }
      const answer = await customer.call<Transfer>('POST', INTERNAL, {
        ref_id,
        asset,
        amount: sent,
        from_profile_id: from,
        to_profile_id: to,
        ...said,
      })
      expect(answer).toMatchObject({ status: 200 })
      const debit = answer.body
      const { id, group_id, created_at } = debit
      const side = {
        customer_id: customer.customer_id,
        status: 'COMPLETED',
        asset,
        balance_asset: asset,
        amount,
        fee: '0',
        total: amount,
        group_id,
        ...said,
        created_at,
        updated_at: created_at,
      }
      const sides = await groupOf(debit)
      expect(sides).toEqual([
        { ...side, id, ref_id, profile_id: from, type: 'INTERNAL_TRANSFER_DEBIT', direction: 'DEBIT' },
        {
          ...side,
          id: expect.any(String) as string,
          profile_id: to,
          type: 'INTERNAL_TRANSFER_CREDIT',
          direction: 'CREDIT',
        },
      ])
      expect(debit).toEqual(sides[0])
      expect(new Set([id, sides[1]!.id, group_id]).size).toBe(3)
      expect(await entriesOf(service.db, id)).toEqual([
        `CREATED profile ${asset} -${amount}`,
        `CREATED internal ${asset} ${amount}`,
      ])
      expect(await entriesOf(service.db, sides[1]!.id)).toEqual([
        `CREATED internal ${asset} -${amount}`,
        `CREATED profile ${asset} ${amount}`,
      ])
      expect([await available(from, asset), await available(to, asset)]).toEqual([left, amount])
      await requireClean()
    },
  )

  async function newHolder() {
    const identity_id = await newIdentity(customer)
    const account = await customer.call<{ id: string }>('POST', '/v2/identity/accounts', {
      account: { identity_id },
    })
    return { identity_id, account_id: account.body.id }
  }

  test('each leg names its own identity and account, and the credit has its own metadata', async () => {
    const [from, to] = await newPair('USD', '10')
    const [sender, receiver] = [await newHolder(), await newHolder()]
    await approve(customer, sender.identity_id)
    const body = {
      asset: 'USD',
      amount: '1',
      from_profile_id: from,
      to_profile_id: to,
      from_identity_id: sender.identity_id,
      from_account_id: sender.account_id,
      // An identity that is not APPROVED can receive money, as in a deposit, but cannot send any.
      to_identity_id: receiver.identity_id,
      to_account_id: receiver.account_id,
      metadata: { side: 'debit' },
      recipient_metadata: { side: 'credit' },
    }
    const answer = await customer.call<Transfer>('POST', INTERNAL, body)
    expect(answer.status).toBe(200)
    expect(await groupOf(answer.body)).toMatchObject([
      { direction: 'DEBIT', ...sender, metadata: { side: 'debit' } },
      { direction: 'CREDIT', ...receiver, metadata: { side: 'credit' } },
    ])
    const { recipient_metadata, to_account_id, from_identity_id, ...rest } = body
    const some = await customer.call<Transfer>('POST', INTERNAL, rest)
    const [debit, credited] = await groupOf(some.body)
    expect([debit!.identity_id, debit!.account_id]).toEqual([
      undefined,
      from_identity_id && sender.account_id,
    ])
    expect([credited!.identity_id, credited!.account_id]).toEqual([
      to_account_id && receiver.identity_id,
      undefined,
    ])
    expect(credited!.metadata).toEqual(recipient_metadata && body.metadata)
    await requireClean()
  })

  test('a sender that is not approved cannot send; ids that do not belong together are refused', async () => {
    const [from, to] = await newPair('USD', '10')
    const [holder, stranger] = [await newHolder(), await newHolder()]
    const before = await everyTable(service.db)
    const ask = (named: object) =>
      customer.call('POST', INTERNAL, {
        ...{ asset: 'USD', amount: '1', from_profile_id: from, to_profile_id: to },
        ...named,
      })
    expect(await ask({ from_identity_id: holder.identity_id })).toMatchObject({
      status: 403,
      body: { meta: { identity_id: holder.identity_id, current_status: 'PENDING' } },
    })
    expect(await ask({ from_account_id: holder.account_id })).toMatchObject({ status: 403 })
    const { account_id } = stranger
    for (const side of ['from', 'to'])
      expect(
        await ask({ [`${side}_identity_id`]: holder.identity_id, [`${side}_account_id`]: account_id }),
      ).toMatchObject(refusedWith(400, 'does not belong to'))
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('a transfer without ref_id, memo or metadata has none of them on either leg', async () => {
    const [from, to] = await newPair('USD', '1')
    const { body } = await customer.call<Transfer>('POST', INTERNAL, {
      asset: 'USD',
      amount: '1',
      from_profile_id: from,
      to_profile_id: to,
    })
    for (const side of await groupOf(body)) {
      for (const field of ['ref_id', 'memo', 'metadata', 'auto_conversion', 'identity_id', 'account_id']) {
        expect(side).not.toHaveProperty(field)
      }
    }
  })

  test('many concurrent requests with one ref_id create one transfer, and the others get its debit', async () => {
    const [from, to] = await newPair('USD', '100')
    const body = { asset: 'USD', from_profile_id: from, to_profile_id: to, ref_id: randomUUID() }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        // A repeat is answered before a lack of funds.
        customer.call<Transfer & { meta: unknown }>('POST', INTERNAL, { ...body, amount: String(60 + n) }),
      ),
    )
    const [winner, ...others] = answers.filter(({ status }) => status === 200)
    expect(others).toEqual([])
    for (const { status, body } of answers.filter((answer) => answer !== winner)) {
      expect({ status, meta: body.meta }).toMatchObject({ status: 409, meta: { existing: winner!.body } })
    }
    // A ref_id is unique among transfers of every type.
    const wire = await customer.call('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: from,
      asset: 'USDP',
      balance_asset: 'USD',
      crypto_network: 'ETHEREUM',
      amount: '5',
      destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
      ref_id: body.ref_id,
    })
    expect(wire).toMatchObject({ status: 409, body: { meta: { existing: winner!.body } } })
    expect(await available(to, 'USD')).toBe(winner!.body.amount)
    await requireClean()
  })

  test('the profile of a disabled account cannot send money, but can receive it', async () => {
    const identity_id = await newIdentity(customer)
    const account = await customer.call('POST', '/v2/identity/accounts', {
      account: { identity_id },
      create_profile: true,
    })
    const { id, profile_id } = account.body as { id: string; profile_id: string }
    await approve(customer, identity_id)
    const [sender] = await newPair('USD', '100')
    const send = (amount: string, from_profile_id: string, to_profile_id: string) =>
      customer.call('POST', INTERNAL, { asset: 'USD', amount, from_profile_id, to_profile_id })
    expect(await send('10', sender, profile_id)).toMatchObject({ status: 200 })

    const setIdentity = (state: object) =>
      customer.call('PUT', `/v2/identity/identities/${identity_id}/sandbox-status`, state)
    const unverified = (current_status: string) => ({ ref_path: 'profile_id', identity_id, current_status })
    for (const [state, slug, meta] of [
      [{ user_disabled: true }, 'disabled', { id, status: 'DISABLED' }],
      [{ user_disabled: false, status: 'DENIED' }, 'identity-verification-required', unverified('DENIED')],
      [{ status: 'PENDING' }, 'identity-verification-required', unverified('PENDING')],
    ] as const) {
      await setIdentity(state)
      const before = await everyTable(service.db)
      expect(await send('1', profile_id, sender)).toMatchObject({
        status: 403,
        body: { type: `${BASE_URL}/problems/${slug}`, meta },
      })
      expect(await everyTable(service.db)).toEqual(before)
      expect(await send('10', sender, profile_id)).toMatchObject({ status: 200 })
    }
    await setIdentity({ status: 'APPROVED' })
    expect(await send('40', profile_id, sender)).toMatchObject({ status: 200 })
    expect([await available(profile_id, 'USD'), await available(sender, 'USD')]).toEqual(['0', '100'])
    await requireClean()
  })

  // ---------------------------------------------------------------------------------------------- many at once

  describe('many transfers at once, in all directions, from several processes', () => {
    // With only two processes, one gets its locks before the other asks for more.
    const PROCESSES = 4
    const PROFILES = 4
    const ASSETS = ['USD', 'USDP'] as const
    const FUNDS = '100'

    /** Amounts in the asset's smallest units are small compared with the funds, except a few that exceed them. */
    const order = fc
      .record({
        asset: fc.constantFrom(...ASSETS),
        from: fc.nat(PROFILES - 1),
        by: fc.integer({ min: 1, max: PROFILES - 1 }),
        amount: fc.oneof(
          { weight: 4, arbitrary: fc.integer({ min: 1, max: 2_000 }) },
          { weight: 1, arbitrary: fc.integer({ min: 2_000, max: 20_000 }) },
        ),
      })
      .map(({ by, amount, ...order }) => ({
        ...order,
        to: (order.from + by) % PROFILES,
        amount: formatAmount(BigInt(amount), 2),
      }))

    /** Creates a separate process, as the database sees it, with its own connections and its own ledger. */
    async function newProcess() {
      const db = openDatabase(service.url, { max: 2, onError: () => undefined })
      const ledger = new Ledger(db)
      const { networks, settings } = service
      const log = pino({ level: 'silent' })
      const app = await buildApp({
        db,
        ledger,
        networks,
        settings,
        masterKeys: MASTER_KEYS,
        baseUrl: BASE_URL,
        log,
      })
      return {
        app,
        async end() {
          await app.close()
          await db.end()
        },
      }
    }

    test('neither deadlock, nor lose or create money', async () => {
      const processes = await Promise.all(Array.from({ length: PROCESSES }, newProcess))
      await fc.assert(
        fc.asyncProperty(fc.array(order, { minLength: 150, maxLength: 250, size: 'max' }), async (orders) => {
          const sender = await newCustomer(service)
          const profiles = [sender.profile_id]
          while (profiles.length < PROFILES) profiles.push(await newProfile(sender))
          // The other profiles have no balance yet: the first movements create them.
          for (const asset of ASSETS) await credit(service.ledger, sender, asset, FUNDS)

          const callers = processes.map(({ app }) => caller(app, sender.token))
          const answers = await Promise.all(
            orders.map(async ({ asset, amount, from, to }, n) => {
              // The pause keeps the transfers from all entering the same batch.
              await pause(n % 16)
              return callers[n % PROCESSES]!<Transfer>('POST', INTERNAL, {
                asset,
                amount,
                from_profile_id: profiles[from],
                to_profile_id: profiles[to],
                ref_id: `${n}`,
              })
            }),
          )

          const held = new Map<string, bigint>()
          const move = (profile: number, asset: string, minor: bigint) =>
            held.set(
              `${profiles[profile]} ${asset}`,
              (held.get(`${profiles[profile]} ${asset}`) ?? 0n) + minor,
            )
          for (const asset of ASSETS) move(0, asset, parseAmount(FUNDS, decimalsOf(asset))!)
          const made = new Set<string>()
          answers.forEach(({ status, body }, n) => {
            const { asset, amount, from, to } = orders[n]!
            if (status !== 200) {
              expect(body).toMatchObject({ status: 403, title: 'Insufficient Funds' })
              return
            }
            expect(body).toMatchObject({ profile_id: profiles[from], ref_id: `${n}`, asset })
            const minor = parseAmount(amount, decimalsOf(asset))!
            move(from, asset, -minor)
            move(to, asset, minor)
            made.add(body.group_id!)
          })
          // Each transfer has its own group, and every group has been answered.
          const groups = await service.db.query<{ group_id: string; sides: string }>(
            `select group_id, string_agg(direction, ' ' order by id) as sides from transfers
             where customer_id = $1 and type like 'INTERNAL%' group by group_id`,
            [sender.customer_id],
          )
          expect(made.size).toBe(answers.filter(({ status }) => status === 200).length)
          expect(new Set(groups.rows.map(({ group_id }) => group_id))).toEqual(made)
          expect(new Set(groups.rows.map(({ sides }) => sides))).toEqual(new Set(['DEBIT CREDIT']))

          const { rows } = await service.db.query<{ profile_id: string; asset: string; available: string }>(
            'select profile_id, asset, available from balances where customer_id = $1',
            [sender.customer_id],
          )
          expect(
            new Map(
              rows.map((row) => [
                `${row.profile_id} ${row.asset}`,
                parseAmount(row.available, decimalsOf(row.asset)),
              ]),
            ),
          ).toEqual(held)
        }),
        runs(5),
      )
      // The ledger decides a deadlocked batch again, so a deadlock would not show in the answers. A connection reports
      // its counters when it ends.
      await Promise.all(processes.map((process) => process.end()))
      const { rows } = await service.db.query<{ deadlocks: string }>(
        'select deadlocks from pg_stat_database where datname = current_database()',
      )
      expect(rows[0]!.deadlocks).toBe('0')
      await requireClean()
    })
  })
})
