import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { byCustomer } from '../../db/rows.ts'
import type { RailsContext } from '../context.ts'
import { lacksSettings, screenedSince } from '../screening/requirement.ts'
import { paymentOfDeposit } from '../screening/screened-payments.ts'
import type { Screening } from '../screening/screening.ts'
import type { IncomingTransfer, Sifted, Waiting } from './incoming-transfers.ts'
import { FORGED_ADDRESS, genuineAmong, selectOwners, type AddressOwner } from './owners.ts'

/** A deposit with the genuine records of its address, of which there is one, unless somebody wrote into the database. */
export type OwnedDeposit = IncomingTransfer & { owners: readonly AddressOwner[] }

export const FORGED_DEPOSIT = 'it was invented or changed in the database (bursar verify)'

/** Finds the owners of deposits. Those wait that Bursar did not record, and whose address it did not give out. */
export async function withOwners(
  { db, ledger }: Pick<RailsContext, 'db' | 'ledger'>,
  network: CryptoNetwork,
  deposits: readonly IncomingTransfer[],
): Promise<Sifted<OwnedDeposit>> {
  const found = await selectOwners(db, network, deposits)
  const pass: OwnedDeposit[] = []
  const wait: Waiting[] = []
  for (const incoming of deposits) {
    const recorded = found.get(incoming.address)
    const owners = genuineAmong(ledger, recorded)
    const isRecorded = () =>
      ledger.macs?.isGenuine('incoming_transfers', incoming.crypto_tx_hash, incoming) === true
    if (recorded === undefined || (owners.length > 0 && isRecorded())) pass.push({ ...incoming, owners })
    else
      wait.push({ incoming, reason: 'FORGED', detail: owners.length > 0 ? FORGED_DEPOSIT : FORGED_ADDRESS })
  }
  return { pass, wait }
}

/** Lets deposits pass that screening allows. Without screening, all of them pass while none must be screened. */
export async function screened(
  db: Database,
  screening: Screening | undefined,
  deposits: OwnedDeposit[],
): Promise<Sifted<OwnedDeposit>> {
  if (screening === undefined) {
    const since = deposits.length === 0 ? undefined : await screenedSince(db)
    if (since === undefined) return { pass: deposits, wait: [] }
    const detail = lacksSettings(since)
    return { pass: [], wait: deposits.map((incoming) => ({ incoming, reason: 'SCREENING', detail })) }
  }
  const pass: OwnedDeposit[] = []
  const wait: Waiting[] = []
  for (const own of byCustomer(deposits).values()) {
    const payments = own.map(
      (incoming) => incoming.owners[0] && paymentOfDeposit(incoming, incoming.owners[0]),
    )
    const standings = await screening.standingsOf(
      db,
      payments.flatMap((payment) => payment ?? []),
    )
    for (const [index, incoming] of own.entries()) {
      const payment = payments[index]
      const standing = payment && standings.get(payment.subject)!
      // A deposit whose address nobody owns passes: its credit fails for that reason.
      if (standing === undefined || standing.allowed) pass.push(incoming)
      else wait.push({ incoming, reason: 'SCREENING', detail: standing.detail })
    }
  }
  return { pass, wait }
}
