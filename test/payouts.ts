import type { Database } from '../src/db/database.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import type { NetworkAdapter, Networks, PayoutNetwork } from '../src/networks/network.ts'
import type { TestCustomer } from './support.ts'

/** What tests of payouts look at, and how they change a network. */

type Reader = Pick<TestCustomer, 'call'>

/** A transfer as its customer reads it. */
export const readTransfer = async ({ call }: Reader, { id }: { id: string }): Promise<Transfer> =>
  (await call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

/** What the customer's profile may spend of an asset. */
export const availableOf = async (
  { call, profile_id }: Pick<TestCustomer, 'call' | 'profile_id'>,
  asset = 'USD',
): Promise<string> =>
  (await call<{ available: string }>('GET', `/v2/profiles/${profile_id}/balances/${asset}`)).body.available

/** The number of a withdrawal's transactions on its simulated network. */
export async function onChain(db: Database, id: string): Promise<number> {
  const { rowCount } = await db.query(
    `select from simulated_chain where position(convert_to($1, 'UTF8') in raw_transaction) > 0`,
    [id],
  )
  return rowCount!
}

/** These networks, with a change of one. */
export const networksWith = (
  networks: Networks,
  change: Partial<NetworkAdapter>,
  network: PayoutNetwork = 'ETHEREUM',
): Networks => new Map([...networks, [network, { ...networks.get(network)!, ...change }] as const])

/** How far a withdrawal is: its status, why it waits, and the number of its transactions on its simulated network. */
export async function standingOf(db: Database, id: string) {
  const { rows } = await db.query<{
    status: string
    waiting_code: string | null
    waiting_detail: string | null
  }>(
    `select t.status, b.waiting_code, b.waiting_detail
     from transfers t left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
     where t.id = $1`,
    [id],
  )
  return { ...rows[0]!, on_chain: await onChain(db, id) }
}
