import { readBankAccount } from '../../networks/bank/bank-account.ts'
import { manualWires } from '../../networks/bank/manual-wires.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { Queryable } from '../../db/database.ts'
import { ok, warn, type Finding } from '../../finding.ts'
import { blame, type Settings } from '../../settings.ts'

/**
 * The bank of live mode, whose wires an operator sends by hand; undefined without BURSAR_BANK_FILE. Throws `SettingsError`
 * for an invalid file.
 */
export async function openBank({
  mode,
  bankFile,
}: Pick<Settings, 'mode' | 'bankFile'>): Promise<NetworkAdapter | undefined> {
  if (bankFile === undefined) return undefined
  const refuse = blame('BURSAR_BANK_FILE')
  if (mode === 'sandbox') refuse(new Error("a bank account is for live mode: a sandbox's bank is simulated"))
  return manualWires(await readBankAccount(bankFile).catch(refuse))
}

const WIRE_SECONDS_WARN = 86_400

/** The bank account that customers send wires to, and the wires that wait for an operator. */
export async function checkBank(db: Queryable | undefined, settings: Settings): Promise<Finding> {
  const adapter = await openBank(settings)
  if (settings.mode === 'sandbox') return ok('simulated')
  const account = adapter?.bankAccount
  if (account === undefined)
    return ok('no bank account: deposit instructions and fiat withdrawals are refused')
  const says = `wires are received by ${account.account_owner} at ${account.bank_name}`
  if (db === undefined) return ok(says)
  const { rows } = await db.query<{ ready: number; taken: number; oldest_seconds: number }>(`
    select count(*) filter (where waiting_code = 'WIRE_TO_TAKE')::integer as ready,
           count(*) filter (where waiting_code = 'WIRE_TAKEN')::integer as taken,
           coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::integer as oldest_seconds
    from outgoing_transfers
    where due_at is not null and network = 'WIRE' and waiting_code in ('WIRE_TO_TAKE', 'WIRE_TAKEN')`)
  const { ready, taken, oldest_seconds } = rows[0]!
  const open = `${ready} wires to send, ${taken} taken and not marked`
  return oldest_seconds > WIRE_SECONDS_WARN
    ? warn(`${open}, the oldest for ${Math.floor(oldest_seconds / 3600)} hours`, 'bursar wire list')
    : ok(`${says}; ${open}`)
}
