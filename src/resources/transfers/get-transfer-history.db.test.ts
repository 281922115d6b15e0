/* What a transfer's history tells, whom it tells what, and that a changed entry no longer derives. */
import { describe, expect, test } from 'vitest'
import {
  asAdmin,
  DESTINATION,
  fund,
  newCustomer,
  startTestService,
  withdraw as order,
  withdrawalOf,
  ownTestService,
  callerWith,
} from '../../../test/support.ts'
import { hurry, workOff } from '../../../test/work-off.ts'
import { transaction } from '../../db/database.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { selectFeesOf } from './transfer-fees.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')

interface Entry {
  event: string
  account: string
  asset: string
  amount: string
  balance_before?: string
  balance_after?: string
  sequence?: number
}
interface History {
  transfer: { id: string; status: string; crypto_tx_hash?: string }
  entries: Entry[]
  transactions: {
    crypto_tx_hash: string
    state: string
    signed_at?: string
    broadcast_at?: string
    confirmations?: number
    confirmations_needed?: number
  }[]
  changes?: { action: string; actor: { type: string; id: string }; request_id?: string }[]
  approval?: object
  orchestrations?: { id: string; role: string }[]
  events?: { type: string }[]
  deliveries?: object[]
  fees?: { quote?: { id: string; fee: string; created_at: string; expires_at: string }; network_fee?: object }
}
interface Verification {
  holds: boolean
  checks: { check: string; holds: boolean; detail: string }[]
}

const historyOf = async (id: string, call = customer.call): Promise<History> =>
  (await call<History>('GET', `/v2/transfer/transfers/${id}/history`)).body
const verificationOf = async (id: string): Promise<Verification> =>
  (await customer.call<Verification>('GET', `/v2/transfer/transfers/${id}/verification`)).body

const withdraw = async () => (await order(customer)).id

describe('Get Transfer History', () => {
  test('a withdrawal: who asked, the entries with balances, the transaction, the events', async () => {
    const id = await withdraw()
    const pending = await historyOf(id)
    expect(pending.transfer.status).toBe('PENDING')
    expect(pending.events!.map(({ type }) => type)).toEqual(['transfer.crypto_withdrawal.pending'])
    await workOff(service, () => hurry(service.db))
    const { transfer, entries, transactions, changes, events, deliveries, orchestrations, approval } =
      await historyOf(id)
    expect(transfer.status).toBe('COMPLETED')
    const own = entries.filter(({ account }) => account === 'profile')
    expect(own).toHaveLength(1)
    expect(Number(own[0]!.balance_before) + Number(own[0]!.amount)).toBe(Number(own[0]!.balance_after))
    expect(entries.map(({ event }) => event)).toEqual([...entries.map(({ event }) => event)].sort())
    expect(new Set(entries.map(({ event }) => event))).toEqual(new Set(['CREATED', 'SETTLED']))
    expect(transactions).toEqual([
      {
        crypto_tx_hash: transfer.crypto_tx_hash,
        state: 'ENDED',
        signed_at: expect.any(String) as unknown,
        broadcast_at: expect.any(String) as unknown,
      },
    ])
    expect(changes!.map(({ action }) => action)).toEqual(['transfer.create', 'transfer.complete'])
    expect(changes![0]).toMatchObject({ actor: { type: 'API_CLIENT', id: customer.client_id } })
    expect(changes![0]!.request_id).toBeDefined()
    expect(events!.map(({ type }) => type)).toEqual([
      'transfer.crypto_withdrawal.pending',
      'transfer.crypto_withdrawal.completed',
    ])
    expect(deliveries).toEqual([])
    expect(orchestrations).toEqual([])
    expect(approval).toBeUndefined()
  })

  test('the fee quote that a withdrawal used, and none for another', async () => {
    const asked = {
      asset: 'USDP',
      crypto_network: 'ETHEREUM',
      destination_address: DESTINATION,
      amount: '10',
    }
    const { body: quote } = await customer.call<{ id: string; fee: string; expires_at: string }>(
      'POST',
      '/v2/transfer/fees/crypto-withdrawal',
      asked,
    )
    const { body } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { fee_id: quote.id }),
    )
    const { fees } = await historyOf(body.id)
    expect(fees).toEqual({
      quote: {
        id: quote.id,
        fee: quote.fee,
        created_at: expect.any(String) as unknown,
        expires_at: quote.expires_at,
      },
    })
    expect(fees!.quote!.created_at < quote.expires_at).toBe(true)
    expect((await historyOf(await withdraw())).fees).toEqual({})
    await workOff(service, () => hurry(service.db))
    // A simulated network takes nothing.
    expect((await historyOf(body.id)).fees).toEqual(fees)
  })

  test('the network fee by the prices of the end, and what the platform won or lost', async () => {
    const ended = { asset: 'USDP', fee: '1', status: 'COMPLETED' } as const
    const taken = (asset: string, amount: string) =>
      [
        { account: 'network_fees:ETHEREUM', asset, amount: `-${amount}` },
        { account: 'custody:ETHEREUM', asset, amount },
      ].map((entry) => ({
        ...entry,
        event: 'SETTLED' as const,
        position: 1,
        created_at: '2026-02-03T04:05:30Z',
      }))
    const feesOf = (transfer: object, entries: ReturnType<typeof taken>, sandbox = false) =>
      selectFeesOf(
        { db: service.db, sandbox },
        customer.customer_id,
        { id: customer.profile_id, ...ended, ...transfer },
        entries,
      )
    const network_fee = { asset: 'ETH', amount: '0.0001' }
    expect(await feesOf({}, taken('ETH', '0.0001'))).toEqual({ network_fee })
    const minute = Math.floor(Date.parse('2026-02-03T04:05:00Z') / 60_000)
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, 'ETHUSD', 'REAL')
      await writePrices(tx, id!, {
        coversMinutes: 1,
        minute: [minute - 1, minute + 1],
        second: [0, 0],
        prices: [['3000.00001', '9']],
      })
    })
    expect(await feesOf({}, taken('ETH', '0.0001'))).toEqual({
      network_fee,
      // Rounded up to eight decimals.
      network_fee_value: '0.30000001',
      difference: '0.69999999',
    })
    expect(await feesOf({ status: 'FAILED' }, taken('ETH', '0.0001'))).toMatchObject({
      difference: '-0.30000001',
    })
    expect(await feesOf({ asset: 'ETH', fee: '0.0004' }, taken('ETH', '0.0005'))).toEqual({
      network_fee: { asset: 'ETH', amount: '0.0005' },
      network_fee_value: '0.0005',
      difference: '-0.0001',
    })
    expect(await feesOf({}, taken('LTC', '0.0001'))).not.toHaveProperty('difference')
  })

  test('a transaction under way: when it was signed and broadcast, and its confirmations as they come', async () => {
    const slow = await startTestService({ BURSAR_SIMULATED_CONFIRMATION_MS: '3600000' })
    try {
      const own = await newCustomer(slow)
      await fund(own, '100')
      const { body } = await own.call<{ id: string }>(
        'POST',
        '/v2/transfer/crypto-withdrawals',
        withdrawalOf(own),
      )
      const step = async () => {
        await hurry(slow.db)
        await settleWithdrawals(slow.db, slow.networks)
        const { transactions, transfer } = await historyOf(body.id, own.call)
        return { ...transactions[0], status: transfer.status }
      }
      const broadcast = await step()
      expect(broadcast).toMatchObject({ state: 'BROADCAST', status: 'PENDING' })
      expect(broadcast.broadcast_at! > broadcast.signed_at!).toBe(true)
      expect(await step()).not.toHaveProperty('confirmations')
      for (const [minutes, confirmations] of [
        [16, 1],
        [30, 3],
      ]) {
        await slow.owner.query(
          'update simulated_chain set broadcast_at = broadcast_at - make_interval(mins => $1)',
          [minutes],
        )
        expect(await step()).toEqual({ ...broadcast, confirmations, confirmations_needed: 4 })
      }
      await slow.owner.query(`update simulated_chain set broadcast_at = broadcast_at - interval '1 hour'`)
      const ended = await step()
      expect(ended).toMatchObject({
        status: 'COMPLETED',
        state: 'ENDED',
        broadcast_at: broadcast.broadcast_at,
      })
      expect(ended).not.toHaveProperty('confirmations')
    } finally {
      await slow.close()
    }
  })

  test('an orchestration is named with both of its transfers', async () => {
    const { body } = await customer.call<{ id: string; destination_transfer: { id: string } }>(
      'POST',
      '/v2/orchestration/orchestrations',
      {
        ref_id: 'history',
        source_asset: 'USD',
        destination_asset: 'USDP',
        source_amount: '10',
        source: { profile: { profile_id: customer.profile_id } },
        destination: {
          crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' },
        },
      },
    )
    const { rows } = await service.db.query<{ id: string }>(
      'select destination_transfer_id as id from orchestrations where id = $1',
      [body.id],
    )
    const { orchestrations } = await historyOf(rows[0]!.id)
    expect(orchestrations).toEqual([expect.objectContaining({ id: body.id, role: 'DESTINATION' })])
  })

  test('a part without its scope is absent', async () => {
    const id = await withdraw()
    const call = await callerWith(service, customer, ['transfer:read_transfer'])
    expect(Object.keys(await historyOf(id, call)).sort()).toEqual([
      'entries',
      'fees',
      'transactions',
      'transfer',
    ])
  })

  test('the reason of a payment that waits is for operators only', async () => {
    const id = await withdraw()
    await service.db.query(
      `update outgoing_transfers set waiting_code = 'HOT_WALLET_SHORT', waiting_detail = 'secret', waiting_since = now()
       where transfer_id = $1`,
      [id],
    )
    expect(JSON.stringify(await historyOf(id))).not.toContain('secret')
  })
})

describe('Verify Transfer', () => {
  test('everything derives again; a changed entry, balance or status does not', async () => {
    await workOff(service, () => hurry(service.db))
    const id = await withdraw()
    await workOff(service, () => hurry(service.db))
    const sound = await verificationOf(id)
    expect(sound.checks.filter(({ holds }) => !holds)).toEqual([])
    expect(sound.holds).toBe(true)
    const failing = async () =>
      (await verificationOf(id)).checks.filter(({ holds }) => !holds).map(({ check }) => check)
    const damage = async (change: string, undo: string) => {
      await asAdmin(change.replaceAll('$1', `'${id}'`), service.url)
      const found = await failing()
      await asAdmin(undo.replaceAll('$1', `'${id}'`), service.url)
      expect(await failing()).toEqual([])
      return found
    }
    const fees = `where transfer_id = $1 and account = 'fees'`
    expect(
      await damage(
        `update entries set amount = amount + 1 ${fees}`,
        `update entries set amount = amount - 1 ${fees}`,
      ),
    ).toEqual(['SUMS_TO_ZERO', 'AUDIT_CHAIN'])
    const profile = `where transfer_id = $1 and account = 'profile'`
    expect(
      await damage(
        `update entries set balance_after = balance_after + 1 ${profile}`,
        `update entries set balance_after = balance_after - 1 ${profile}`,
      ),
    ).toEqual(['BALANCES_FOLLOW', 'AUDIT_CHAIN'])
    expect(
      await damage(
        `update transfers set status = 'FAILED' where id = $1`,
        `update transfers set status = 'COMPLETED' where id = $1`,
      ),
    ).toEqual(['POSTINGS_OF_STATUS'])
  })
})
