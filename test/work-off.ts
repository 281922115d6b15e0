import { runOrchestrations } from '../src/resources/orchestrations/run-orchestrations.ts'
import type { Database } from '../src/db/database.ts'
import type { Ledger } from '../src/money/movements/queue.ts'
import type { Networks } from '../src/networks/network.ts'
import type { Settings } from '../src/settings.ts'
import { readable } from '../src/rails/deposits/credit-deposits.ts'
import { creditDeposits } from './credit-deposits.ts'
import { seeDepositsOn } from '../src/rails/deposits/see-deposits.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { sweepDepositAddresses } from '../src/rails/treasury/sweep-deposit-addresses.ts'

/** The request that mines a block. */
export interface Mining {
  url: string
  authorization?: string
  body: object
}

export async function mine({ url, authorization, body }: Mining): Promise<void> {
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) },
    body: JSON.stringify(body),
  })
  if (!reply.ok) throw new Error(`no block is made: ${reply.status}`)
}

const ROUNDS_MAX = 30

/**
 * Runs the worker's rounds in a fixed order, so that its steps can be counted: deposits and the orchestrations they
 * trigger, withdrawals, then sweeps. Each part repeats until it has no work left. Between two rounds a block is mined
 * and everything becomes due.
 */
export async function workOff(
  {
    db,
    ledger,
    networks,
    settings,
  }: { db: Database; ledger: Ledger; networks: Networks; settings: Settings },
  betweenRounds: () => Promise<void>,
): Promise<void> {
  await creditDeposits({ db, ledger, networks, settings })
  for (const [network, adapter] of readable(networks)) await seeDepositsOn({ db, settings }, network, adapter)
  await runOrchestrations(db, { networks, settings, macs: ledger.macs })
  const parts = [
    () => settleWithdrawals(db, networks),
    () => sweepDepositAddresses({ db, networks, settings }),
  ]
  for (const part of parts) {
    for (let round = 1; (await part()) > 0; round++) {
      if (round > ROUNDS_MAX) throw new Error('the worker does not come to an end')
      await betweenRounds()
    }
  }
}

/** More rounds than an ordinary withdrawal needs. */
const SETTLING_ROUNDS = 5

/** Runs the worker's rounds of withdrawals, with every withdrawal due in each round. */
export async function settle(
  { db, networks }: { db: Database; networks: Networks },
  rounds = SETTLING_ROUNDS,
): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    await db.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await settleWithdrawals(db, networks)
  }
}

/** Makes due the withdrawals that no transaction has locked. One customer at a time: a cluster locks rows of one only. */
export async function hurryUnlocked(db: Database, { endLeases = false } = {}): Promise<void> {
  const { rows } = await db.query<{ customer_id: string }>(
    'select distinct customer_id from outgoing_transfers where due_at is not null',
  )
  for (const { customer_id } of rows)
    await db.query(
      `
      update outgoing_transfers set due_at = (select clock_timestamp())${endLeases ? ', leased_until = null' : ''}
      where customer_id = $1 and transfer_id in (
        select transfer_id from outgoing_transfers where customer_id = $1 and due_at is not null for update skip locked)`,
      [customer_id],
    )
}

/** Makes all waiting work due, and frees the leases of a worker that died. */
export async function hurry(db: Database): Promise<void> {
  await db.query(
    'update outgoing_transfers set due_at = (select clock_timestamp()), leased_until = null where due_at is not null',
  )
  await db.query(`update incoming_transfers set due_at = (select clock_timestamp()) where state = 'WAITING'`)
  await db.query('update network_cursors set leased_until = null')
}
