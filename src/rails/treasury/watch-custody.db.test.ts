import { originOfLoop } from '../../contract/actor.ts'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { newCustomer, ownTestService } from '../../../test/support.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { selectFreezes } from '../../money/records/freezes.ts'
import type { Networks } from '../../networks/network.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'
import { walletGauges } from '../../upkeep/metrics/wallet-gauges.ts'
import { postRefill } from './acknowledged.ts'
import { watchCustody, watchWallets, type Suspicions } from './watch-custody.ts'

const service = await ownTestService()

/** Credits a deposit over LITECOIN. */
async function arrive(minor: bigint): Promise<void> {
  const { customer_id, profile_id } = await newCustomer(service)
  const arrived = {
    profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset: 'LTC',
    minor,
    arrivedAt: 'custody:LITECOIN',
    place: { id: crypto.randomUUID() },
    record: { crypto_network: 'LITECOIN' },
  } as const
  await service.ledger.submit(customer_id, deposit(customer_id, arrived, originOfLoop('test')))
}

/** A network with this balance, which does something during the request. */
const holding = (LTC: string, meanwhile = async () => undefined as void): Networks =>
  new Map([
    [
      'LITECOIN',
      {
        ...service.networks.get('LITECOIN')!,
        status: async () => {
          await meanwhile()
          return { height: 1, held: { LTC } }
        },
      },
    ],
  ])

test('a balance below custody in two consecutive checks stops payouts over the network', async () => {
  await arrive(150_000_000n)
  const suspicions: Suspicions = new Map()
  const look = (networks: Networks) => watchCustody(service.db, networks, suspicions)
  expect(await look(holding('1.5'))).toBe(0)
  // A single check may have met a node that was behind.
  expect(await look(holding('1.4'))).toBe(0)
  expect(await look(holding('1.5'))).toBe(0)
  expect(await look(holding('1.4'))).toBe(0)
  expect(await selectFreezes(service.db)).toEqual([])
  expect(await look(holding('1.4'))).toBe(1)
  expect(await selectFreezes(service.db)).toMatchObject([
    {
      kind: 'NETWORK',
      subject: 'LITECOIN',
      reason: 'CUSTODY_SHORT',
      detail: '1.4 LTC are held, and 1.5 are in custody',
    },
  ])
})

test('a credit during the request to the chain is not a shortage', async () => {
  await service.owner.query('delete from freezes; delete from customer_freezes')
  const suspicions: Suspicions = new Map()
  let held = 150_000_000n
  for (let count = 1; count <= 3; count++) {
    const networks = holding(`${held / 100_000_000n}.5`, () => arrive(100_000_000n))
    expect(await watchCustody(service.db, networks, suspicions)).toBe(0)
    held += 100_000_000n
  }
  expect(await selectFreezes(service.db)).toEqual([])
})

test('metrics are told what each look finds, in a sandbox, too, and forget a node that does not answer', async () => {
  const lane = { lane: '0x1', held: { LTC: '0.4' }, in_flight: 2 }
  const journal = { next_nonce: 7, ahead: -1 }
  const found: NetworkStatus = {
    height: 1,
    held: { LTC: '999' },
    hotWallet: { LTC: '0.5' },
    formerWallets: [
      { address: 'one', held: { LTC: '0.25' } },
      { address: 'another', held: { LTC: '0.5' } },
    ],
    lanes: [
      { ...lane, journal },
      { ...lane, lane: '0x2', blocked: { code: 'SIGNER_REFUSES', detail: 'it does not have it' } },
    ],
    signer: { reachable: true },
  }
  const treasury = { marks: { LTC: { low: '1', target: '2.5' } }, cold: [] }
  const registry = new Registry()
  const seen = walletGauges([registry])
  const withStatus = (status: () => Promise<NetworkStatus>): Networks =>
    new Map([['LITECOIN', { ...service.networks.get('LITECOIN')!, status, treasury }]])
  const told = async () =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => /^bursar/.test(line))
      .map((line) => line.replace('network="LITECOIN"', ''))
  await watchWallets(
    service.db,
    withStatus(async () => found),
    seen,
  )
  expect(await told()).toEqual([
    'bursar_hot_wallet_amount{,asset="LTC"} 0.5',
    'bursar_former_hot_wallets_amount{,asset="LTC"} 0.75',
    'bursar_treasury_asks{,asset="LTC",kind="refill"} 2',
    'bursar_lane_amount{,lane="0x1",asset="LTC"} 0.4',
    'bursar_lane_amount{,lane="0x2",asset="LTC"} 0.4',
    'bursar_lane_in_flight{,lane="0x1"} 2',
    'bursar_lane_in_flight{,lane="0x2"} 2',
    'bursar_lane_blocked{,lane="0x2",reason="signer_refuses"} 1',
    'bursar_signer_reachable{} 1',
    'bursar_signer_next_nonce{,lane="0x1"} 7',
    'bursar_signer_journal_ahead{,lane="0x1"} -1',
  ])
  await watchCustody(
    service.db,
    withStatus(async () => ({ height: 2, held: { LTC: '9' } })),
    new Map(),
    seen,
  )
  expect(await told()).toEqual(['bursar_hot_wallet_amount{,asset="LTC"} 9'])
  const away = withStatus(() => Promise.reject(new Error('the node is away')))
  await expect(watchWallets(service.db, away, seen)).rejects.toThrow('custody of 1 networks is not known')
  expect(await told()).toEqual([])
})

/** A payment has failed. `before` is a little more than custody, and `look` compares what is held with it. */
async function afterFailure() {
  const { rows } = await service.db.query<{ held: string }>(
    `select -sum(amount) as held from entries where account = 'custody:LITECOIN'`,
  )
  const before = BigInt(rows[0]!.held.split('.')[0]!) + 1n
  const suspicions: Suspicions = new Map()
  const look = (held: bigint) => watchCustody(service.db, holding(`${held}`), suspicions)
  await service.db.query(
    `insert into failed_transactions (network, crypto_tx_hash, failed_at, counts) values ('LITECOIN', 'failed', clock_timestamp(), true)`,
  )
  return { before, look }
}

test('a refill that is posted within an hour of a failed payment is no surplus that the payment took', async () => {
  await service.owner.query('delete from freezes; delete from customer_freezes')
  const { before, look } = await afterFailure()
  // A refill of 100 has arrived, and is not posted yet.
  for (const _ of [1, 2]) expect(await look(before + 100n)).toBe(0)
  const effect = { moved: [{ asset: 'LTC', amount: '100' }], payments: [] }
  await postRefill(service.db, 'LITECOIN', 'refill', effect, originOfLoop('test'))
  for (const _ of [1, 2]) expect(await look(before + 100n)).toBe(0)
  await service.owner.query('delete from failed_transactions')
})

test('beyond what was posted, a smaller surplus after a failed payment is short', async () => {
  const { before, look } = await afterFailure()
  for (const _ of [1, 2]) expect(await look(before + 150n)).toBe(0)
  expect(await look(before + 30n)).toBe(0)
  expect(await look(before + 30n)).toBe(1)
})
