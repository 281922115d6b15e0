/*
 * Invariants of an operator's command that asks a node about a withdrawal:
 * 1. no lock is held during the request, so that a worker can sign and record;
 * 2. if a worker advanced the withdrawal meanwhile, the command records nothing.
 */
import { expect, test } from 'vitest'
import {
  credit,
  newCustomer,
  TEST_ORIGIN,
  type TestCustomer,
  withdraw,
  ownTestService,
} from '../../../test/support.ts'
import { networksWith as changed, readTransfer } from '../../../test/payouts.ts'
import { hurryUnlocked } from '../../../test/work-off.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { transaction } from '../../db/database.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { verify } from '../../money/verify/verify.ts'
import { signAlone } from './lease.ts'
import { markWithdrawalPaid } from './mark-withdrawal-paid.ts'
import { resolveWithdrawal } from './resolve-withdrawal.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'

const service = await ownTestService()

const REASON = { code: 'UNRESOLVED', detail: 'the receipt lacks the transfer' } as const
const HASH = 'ab'.repeat(32)
const PAID = { raw_transaction: Buffer.from('{"signed":"elsewhere"}'), crypto_tx_hash: HASH }

async function ordered(customer: TestCustomer): Promise<Transfer> {
  await credit(service.ledger, customer, 'ETH', '10')
  return withdraw(customer, { asset: 'ETH', balance_asset: 'ETH', amount: '1' })
}

const networksWith = (change: Partial<NetworkAdapter>) => changed(service.networks, change)
const unresolved: NetworkAdapter['checkStatus'] = async (asked) =>
  asked.map(() => ({ state: 'UNRESOLVED', reason: REASON }))

const kept = async ({ id }: Transfer) =>
  (
    await service.db.query<{ state: string; crypto_tx_hash: string | null }>(
      'select state, crypto_tx_hash from outgoing_transfers where transfer_id = $1',
      [id],
    )
  ).rows[0]
const hurry = () => hurryUnlocked(service.db)

/** Takes the locks that a worker takes, or fails immediately. */
const requireUnlocked = ({ customer_id, id }: Transfer) =>
  transaction(service.db, async (tx) => {
    await tx.query('set local lock_timeout = 1000')
    await signAlone(tx, 'ETHEREUM')
    for (const row of [
      'outgoing_transfers where customer_id = $1 and transfer_id = $2',
      'transfers where customer_id = $1 and id = $2',
    ])
      await tx.query(`select from ${row} for update nowait`, [customer_id, id])
  })

test('resolving a withdrawal holds no lock during the request to the node', async () => {
  const customer = await newCustomer(service)
  const networks = networksWith({ checkStatus: unresolved })
  const created = await ordered(customer)
  for (let round = 1; round <= 3; round++) {
    await settleWithdrawals(service.db, networks)
    await hurry()
  }
  expect(await kept(created)).toMatchObject({ state: 'BROADCAST' })
  let asked = 0
  const asking = networksWith({
    checkStatus: async (withdrawals) => {
      asked += 1
      await requireUnlocked(created)
      return unresolved(withdrawals)
    },
  })
  const said = await resolveWithdrawal(service.db, asking, created.id, {
    outcome: 'PAID',
    evidence: 'looked at the explorer',
    origin: TEST_ORIGIN,
  })
  expect(said).toMatchObject({ outcome: 'PAID', status: 'COMPLETED' })
  expect(asked).toBe(1)
  expect((await readTransfer(customer, created)).status).toBe('COMPLETED')
})

test('a withdrawal that a worker and an operator end simultaneously ends once', async () => {
  const customer = await newCustomer(service)
  const created = await ordered(customer)
  const networks = networksWith({ checkStatus: unresolved })
  for (let round = 1; round <= 3; round++) {
    await settleWithdrawals(service.db, networks)
    await hurry()
  }
  const late = networksWith({
    checkStatus: async (withdrawals) => {
      await hurry()
      const confirmed: NetworkAdapter['checkStatus'] = async (asked) =>
        asked.map(() => ({ state: 'CONFIRMED', crypto_tx_index: '0' }))
      await settleWithdrawals(service.db, networksWith({ checkStatus: confirmed }))
      return unresolved(withdrawals)
    },
  })
  await expect(
    resolveWithdrawal(service.db, late, created.id, {
      outcome: 'NOT_PAID',
      evidence: 'nothing arrived',
      origin: TEST_ORIGIN,
    }),
  ).rejects.toThrow('taken further by another worker')
  expect((await readTransfer(customer, created)).status).toBe('COMPLETED')
  const { rowCount } = await service.db.query('select from resolved_withdrawals where transfer_id = $1', [
    created.id,
  ])
  expect(rowCount).toBe(0)
  expect((await verify(service.db)).disagreements).toEqual([])
})

test('marking a withdrawal as paid holds no lock during the request to the node', async () => {
  const customer = await newCustomer(service)
  const created = await ordered(customer)
  await service.db.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at)
     values ($1, $2, 'ETHEREUM', 'HELD', now())`,
    [customer.customer_id, created.id],
  )
  const keptWith: string[] = []
  const networks = networksWith({
    claimTransaction: async () => {
      await requireUnlocked(created)
      return { ...PAID, keep: async () => void keptWith.push(created.id) }
    },
  })
  await markWithdrawalPaid(service.db, networks, created.id, HASH, TEST_ORIGIN)
  expect(await kept(created)).toEqual({ state: 'SIGNED', crypto_tx_hash: HASH })
  expect(keptWith).toEqual([created.id])
  // The same transaction does not pay another withdrawal of the same amount and destination.
  const other = await ordered(customer)
  await expect(markWithdrawalPaid(service.db, networks, other.id, HASH, TEST_ORIGIN)).rejects.toThrow(
    `${HASH} is the transaction of withdrawal ${created.id}`,
  )
  expect(await kept(other)).toBeUndefined()
  await service.owner.query('delete from outgoing_transfers where transfer_id = $1', [created.id])
})

test('a withdrawal that a worker signed while an operator marked it as paid keeps its own transaction', async () => {
  const customer = await newCustomer(service)
  const created = await ordered(customer)
  const hash = 'cd'.repeat(32)
  const networks = networksWith({
    claimTransaction: async () => {
      await settleWithdrawals(service.db, networksWith({ checkStatus: unresolved }))
      return { ...PAID, crypto_tx_hash: hash }
    },
  })
  await expect(markWithdrawalPaid(service.db, networks, created.id, hash, TEST_ORIGIN)).rejects.toThrow(
    'taken further by another worker',
  )
  const record = await kept(created)
  expect(record).toMatchObject({ crypto_tx_hash: expect.any(String) as string })
  expect(record!.crypto_tx_hash).not.toBe(hash)
  const { rowCount } = await service.db.query('select from replaced_transactions where transfer_id = $1', [
    created.id,
  ])
  expect(rowCount).toBe(0)
})
