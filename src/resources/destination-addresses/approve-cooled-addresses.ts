import { originOfLoop } from '../../contract/actor.ts'
import { transaction, type Database } from '../../db/database.ts'
import { ownCustomers } from '../../db/parts.ts'
import { customerName, eachAlone } from '../../db/each-alone.ts'
import { readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { addressEvent, type DestinationAddressRow } from '../../money/records/destination-address.ts'

const LOOP = originOfLoop('address_book')

const BATCH_MAX = 500

type Approved = Pick<DestinationAddressRow, 'id' | 'crypto_network' | 'address' | 'status'>

/**
 * Approves the addresses of the address book whose cooling time is over (API behaviour, Crypto destination addresses). Any
 * number of workers may run it at the same time. Returns the
 * number of approved addresses.
 */
export async function approveCooledAddresses(db: Database): Promise<number> {
  const { rows } = await ownCustomers(db).query<{ customer_id: string }>(
    `
    select distinct customer_id
    from crypto_destination_addresses
    where status = 'PENDING' and cooling_until <= clock_timestamp()`,
  )
  let approved = 0
  await eachAlone(rows, customerName, async ({ customer_id }) => {
    approved += await approveOf(db, customer_id)
  })
  return approved
}

const approveOf = (db: Database, customerId: string): Promise<number> =>
  transaction(db, async (tx) => {
    const { rows: due } = await tx.query<{ id: string }>(
      `
      select id
      from crypto_destination_addresses
      where customer_id = $1 and status = 'PENDING' and cooling_until <= clock_timestamp()
      order by id
      limit ${BATCH_MAX}
      for update skip locked`,
      [customerId],
    )
    if (due.length === 0) return 0
    // Read after the locks, so that the time is later than that of every earlier change.
    const now = await readClock(tx)
    const { rows } = await tx.query<Approved>(
      `
      update crypto_destination_addresses
      set status = 'APPROVED', approved_at = $2, updated_at = $2
      where customer_id = $1 and id = any ($3::uuid[])
      returning id, crypto_network, address, status`,
      [customerId, now.text, due.map(({ id }) => id)],
    )
    await insertEvents(tx, customerId, now, rows.map(addressEvent))
    recordChanges(
      tx,
      customerId,
      now,
      rows.map(({ id }) => ({
        origin: LOOP,
        action: 'destination_address.approve',
        subject: { type: 'destination_address', id },
      })),
    )
    return rows.length
  })
