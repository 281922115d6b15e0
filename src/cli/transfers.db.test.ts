import { expect, test } from 'vitest'
import { BASE_URL, fund, newCustomer, runBursar, withdrawalOf, ownTestService } from '../../test/support.ts'
import { settleWithdrawals } from '../rails/payouts/settle-withdrawals.ts'
import { ownFolder } from '../../test/at-end.ts'

/** An operator reads what the API shows a customer, without its credentials. */
const service = await ownTestService({ BURSAR_MODE: 'sandbox' })
const folder = await ownFolder()
const customer = await newCustomer(service)
await fund(customer, '100')

const bursar = (...args: string[]) =>
  runBursar(args, { DATABASE_URL: service.url, BURSAR_DATA_DIR: folder, BURSAR_BASE_URL: BASE_URL })

async function read<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await bursar(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

const withdraw = async (amount: string) =>
  (
    await customer.call<{ id: string; ref_id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { amount, ref_id: `order-${amount}` }),
    )
  ).body

test('transfers, balances and open withdrawals are read with the role of the service alone', async () => {
  const other = await newCustomer(service)
  await fund(other, '1')
  const { id } = await withdraw('7')
  await withdraw('8')
  const of = ['--customer', customer.customer_id]

  const all = await bursar('transfer', 'list', ...of, '--json')
  const listed = all.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { ref_id?: string; amount: string })
  expect(listed.map(({ amount }) => amount)).toEqual(['8', '7', '100'])
  const { body } = await customer.call<{ items: object[] }>('GET', '/v2/transfer/transfers')
  expect(listed).toEqual(body.items)
  const narrowed = ['--type', 'CRYPTO_WITHDRAWAL', '--status', 'PENDING', '--ref-id', 'order-7']
  expect(await read('transfer', 'list', ...of, ...narrowed)).toEqual(listed[1])
  const table = await bursar('transfer', 'list', ...of, '--limit', '1')
  expect(table.stdout).toContain('CRYPTO_WITHDRAWAL  PENDING')
  expect(table.stdout).not.toContain('order-7')

  const balances = await customer.call<{ items: { asset: string; available: string }[] }>(
    'GET',
    `/v2/profiles/${customer.profile_id}/balances`,
  )
  const expected = balances.body.items.map((one) => ({
    ...one,
    profile_id: customer.profile_id,
    nickname: 'Default',
  }))
  expect(expected).not.toEqual([])
  expect(await read('balance', 'list', ...of)).toEqual({ balances: expected })
  expect(await read('balance', 'list', ...of, '--profile', other.profile_id)).toEqual({ balances: [] })

  const day = new Date().toISOString().slice(0, 10)
  for (const time of [[], ['--at', new Date().toISOString()], ['--from', day, ...of]]) {
    type Ledger = Record<'items' | 'sums', { account: string; asset: string; closing: string }[]>
    const { items, sums } = await read<Ledger>('report', 'trial-balance', ...time)
    expect(sums.map(({ closing }) => closing)).toEqual(sums.map(() => '0'))
    // The withdrawals are in flight.
    expect(items.map(({ account }) => account)).toEqual(
      expect.arrayContaining(['bank', 'fees', 'in_flight:ETHEREUM', 'profile']),
    )
    if (time.includes('--from'))
      for (const { asset, available } of expected)
        expect(items).toContainEqual(
          expect.objectContaining({ account: 'profile', asset, closing: available }),
        )
  }
  expect((await bursar('report', 'trial-balance')).stdout).toMatch(
    /^From \S+ to before 20\S+\naccount +name +profile_id +asset +opening/,
  )
  expect((await bursar('report', 'trial-balance', '--at', 'noon')).code).toBe(1)

  expect((await bursar('freeze', 'customer', customer.customer_id, '--reason', 'a court asks')).code).toBe(0)
  await settleWithdrawals(service.db, service.networks)
  const { withdrawals } = await read<{ withdrawals: object[] }>('withdrawal', 'list', ...of)
  expect(withdrawals).toMatchObject([
    { transfer_id: id, amount: '7', network: 'ETHEREUM', state: 'HELD', waiting_code: 'FROZEN' },
    { amount: '8' },
  ])
  expect((await bursar('withdrawal', 'list')).stdout).toContain('a court asks')
  const { body: history } = await customer.call<{
    transfer: object
    entries: object[]
    transactions: object[]
  }>('GET', `/v2/transfer/transfers/${id}/history`)
  const { transfer, entries, transactions } = history
  expect(entries.length).toBeGreaterThan(2)
  const waiting = { code: 'FROZEN' }
  expect(await read('transfer', 'show', id)).toMatchObject({ transfer, entries, transactions, waiting })
})

test('an unknown customer or transfer is no empty answer', async () => {
  const nobody = crypto.randomUUID()
  for (const [args, said] of [
    [['transfer', 'list', '--customer', nobody], `there is no customer ${nobody}`],
    [['balance', 'list', '--customer', nobody], `there is no customer ${nobody}`],
    [['withdrawal', 'list', '--customer', nobody], `there is no customer ${nobody}`],
    [['transfer', 'show', nobody], `there is no transfer ${nobody}`],
  ] as const) {
    const { code, stderr } = await bursar(...args)
    expect(code).toBe(1)
    expect(stderr).toContain(said)
  }
  expect((await bursar('transfer', 'list')).code).toBe(2)
})
