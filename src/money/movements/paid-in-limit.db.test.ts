/*
 * Invariant of a real network in a sandbox: payments of an asset to a customer over it never exceed the customer's
 * deposits of it over the network. Wires, conversions and simulated networks add nothing. Excess is refused when it
 * is requested, and again before it is signed.
 */
import { originOfLoop } from '../../contract/actor.ts'
import { expect, test } from 'vitest'
import { DESTINATION, fund, newCustomer, withdrawalOf, ownTestService } from '../../../test/support.ts'
import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction } from '../../db/database.ts'
import type { PayoutNetwork, NetworkAdapter } from '../../networks/network.ts'
import { runOrchestrations } from '../../resources/orchestrations/run-orchestrations.ts'
import { checkBeforeSigning } from '../../rails/payouts/check-before-signing.ts'
import { deposit } from './deposit.ts'

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'

const service = await ownTestService()
// A real network, as the file of networks creates it in a sandbox.
const networks = service.networks as Map<PayoutNetwork, NetworkAdapter>
const { isSimulated: _, ...real } = networks.get('ETHEREUM')!
networks.set('ETHEREUM', { ...real, paysDepositsOnly: true })
const customer = await newCustomer(service)
await fund(customer, '1000')

/** Deposits over the real network. */
const payIn = (asset: string, amount: string, { customer_id, profile_id } = customer) =>
  service.ledger.submit(
    customer_id,
    deposit(
      customer_id,
      {
        profile_id,
        type: 'CRYPTO_DEPOSIT',
        asset,
        minor: parseAmount(amount, decimalsOf(asset))!,
        arrivedAt: 'custody:ETHEREUM',
        place: undefined,
        record: { crypto_network: 'ETHEREUM', destination_address: DESTINATION },
      },
      originOfLoop('test'),
    ),
  )

const withdraw = (changes: object = {}, of = customer) =>
  of.call('POST', WITHDRAWALS, withdrawalOf(of, { ...changes }))
const refused = (available: string, needed: string, asset = 'USDP') => ({
  status: 403,
  body: {
    type: expect.stringMatching(/insufficient-funds$/) as string,
    detail: `ETHEREUM is a real network, and a sandbox pays no more over it than has come in over it for the customer: ${available} ${asset} are left and ${needed} are needed`,
    meta: { profile_id: customer.profile_id, asset, available, needed },
  },
})

test('a sandbox deposit arrives only over a simulated network', async () => {
  const url = `/v2/sandbox/profiles/${customer.profile_id}/deposit`
  expect(
    await customer.call('POST', url, { asset: 'ETH', amount: '1', crypto_network: 'ETHEREUM' }),
  ).toMatchObject({
    status: 400,
    body: {
      detail: expect.stringMatching(
        /^crypto_network ETHEREUM is a real network here: send ETH over it/,
      ) as string,
    },
  })
  // No other network lists LINK.
  expect(await customer.call('POST', url, { asset: 'LINK', amount: '1' })).toMatchObject({
    status: 400,
    body: {
      detail: expect.stringMatching(
        /^crypto_network ETHEREUM is a real network here: send LINK over it/,
      ) as string,
    },
  })
  const { body } = await customer.call('POST', url, { asset: 'ETH', amount: '1' })
  const { rows } = await service.db.query('select account from entries where transfer_id = $1', [
    body.activity_id,
  ])
  expect(rows).toContainEqual({ account: 'simulated:BASE' })
})

test('simulated or wired money cannot leave: neither coins nor dollars, nor by an orchestration', async () => {
  expect(await withdraw()).toMatchObject(refused('0', '10'))
  expect(await withdraw({ asset: 'ETH', balance_asset: 'ETH', amount: '0.5' })).toMatchObject(
    refused('0', '0.5', 'ETH'),
  )
  const started = await customer.call('POST', '/v2/orchestration/orchestrations', {
    ref_id: 'started',
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '10',
    source: { profile: { profile_id: customer.profile_id } },
    destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
  })
  expect(started).toMatchObject(refused('0', '9'))

  const { body } = await customer.call<{ rule: { id: string; source: { fiat: { memo_id: string } } } }>(
    'POST',
    '/v2/orchestration/rules',
    {
      ref_id: 'rule',
      profile_id: customer.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: { network: 'WIRE' } },
      destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
    },
  )
  await customer.call('POST', '/v2/sandbox/fiat-deposits', {
    amount: '50',
    asset: 'USD',
    memo_id: body.rule.source.fiat.memo_id,
    fiat_network_instructions: { wire: {} },
  })
  expect(await runOrchestrations(service.db, service)).toBe(1)
  const list = `/v2/orchestration/orchestrations?orchestration_rule_id=${body.rule.id}`
  expect((await customer.call('GET', list)).body).toMatchObject({
    items: [
      { status: 'FAILED', fail_reason: { detail: expect.stringMatching(/^ETHEREUM is a real/) as string } },
    ],
  })
})

test('deposited money can leave once, also after conversion, and each customer has its own limit', async () => {
  await payIn('USDP', '25')
  const other = await newCustomer(service)
  await fund(other, '100')
  expect((await withdraw({}, other)).status).toBe(403)
  expect((await withdraw({ ref_id: 'one', amount: '15' })).status).toBe(200)
  expect(await withdraw({ amount: '10.01' })).toMatchObject(refused('10', '10.01'))
  expect((await withdraw({ amount: '10', balance_asset: 'USDP' })).status).toBe(200)
  expect(await withdraw({ amount: '1' })).toMatchObject(refused('0', '1'))
  // A retry returns its record, whatever amount is spendable.
  expect((await withdraw({ ref_id: 'one', amount: '15' })).status).toBe(409)
  // Over a simulated network, everything may leave.
  const solana = {
    crypto_network: 'SOLANA',
    destination_address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
  }
  expect((await withdraw({ amount: '100', ...solana })).status).toBe(200)
})

test('a withdrawal accepted beyond the limit is not signed, and shows the reason', async () => {
  const own = await newCustomer(service)
  await fund(own, '100')
  await payIn('USDP', '12', own)
  const networks = service.networks as Map<PayoutNetwork, NetworkAdapter>
  const limited = networks.get('ETHEREUM')!
  // Accepted by a process that does not know yet of another's withdrawal, or of the network's section.
  const unlimited: NetworkAdapter = { ...limited }
  delete unlimited.paysDepositsOnly
  networks.set('ETHEREUM', unlimited)
  const ids = []
  for (const amount of ['10', '5', '2']) ids.push(String((await withdraw({ amount }, own)).body.id))
  networks.set('ETHEREUM', limited)
  const claimed = ids.map((transfer_id, n) => ({ transfer_id, asset: 'USDP', amount: ['10', '5', '2'][n]! }))
  const work = { customer_id: own.customer_id, network: 'ETHEREUM' as const }
  const decisions = await transaction(service.db, (tx) => checkBeforeSigning(tx, work, claimed, limited))
  expect(ids.map((id) => decisions.get(id))).toEqual([
    { outcome: 'SIGN' },
    {
      outcome: 'DEFERRED',
      reason: {
        code: 'NOT_PAID_IN',
        detail: expect.stringMatching(/2 USDP are left and 5 are needed$/) as string,
      },
    },
    { outcome: 'SIGN' },
  ])
  // A signed withdrawal counts as taken.
  await service.db.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, raw_transaction, crypto_tx_hash, created_at)
     values ($1, $2, 'ETHEREUM', 'BROADCAST', '\\x02', '0x2', now())`,
    [own.customer_id, ids[0]],
  )
  const later = await transaction(service.db, (tx) => checkBeforeSigning(tx, work, claimed.slice(1), limited))
  expect([...later.values()].map(({ outcome }) => outcome)).toEqual(['DEFERRED', 'SIGN'])
  expect([
    ...(await transaction(service.db, (tx) => checkBeforeSigning(tx, work, claimed, unlimited))).values(),
  ]).toEqual(ids.map(() => ({ outcome: 'SIGN' })))
})
