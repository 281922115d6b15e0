import type { Database, Transaction } from './db/database.ts'
import { bringUpToDate, type DataSteps } from './db/migrate.ts'
import { sealBalances } from './ledger/balance-macs.ts'
import { openMasterKeys, type MasterKeys } from './keys/master-keys.ts'
import { sealPending } from './movements/withdrawal-macs.ts'
import { encryptPlainKeys } from './oauth/signing-keys.ts'
import { sealOrders } from './records/orchestration.ts'
import { AUTHENTICATING_TABLES, RowMacs, SEALED_TABLES, sealRows } from './records/row-macs.ts'
import type { Settings } from './settings.ts'

/**
 * Brings the database up to date: the schema, and the content that a migration converts with the master key. The key is
 * required only if there is such content. `ownerUrl` is for the role that owns the schema, if the service's role does not.
 * Returns the names of the migrations that ran. Throws as `migrate` does, and `SettingsError`.
 */
export const upgrade = (db: Database, settings: Settings, ownerUrl?: string): Promise<string[]> =>
  bringUpToDate(
    db,
    ownerUrl,
    dataSteps(() => openMasterKeys(settings)),
  )

/** The first migration after which rows have MACs besides withdrawals. */
const FIRST_SEALS = 101

/**
 * After the loss of a master key: gives new MACs to all rows whose MACs none of these keys made, as they are, with the steps of the
 * migrations. For the role that owns the schema, in its transaction. Ends of freezes keep theirs: what was frozen holds again.
 */
export async function sealAgain(owner: Transaction, masterKeys: MasterKeys): Promise<void> {
  const made = masterKeys.ids.map((id) => `${id}.%`)
  for (const table of [...SEALED_TABLES, 'balances', 'orchestrations'].filter(
    (one) => !one.endsWith('freezes'),
  ))
    await owner.query(
      `update ${table} set mac = null where mac is not null and mac not like all ($1::text[])`,
      [made],
    )
  for (const [version, step] of dataSteps(() => Promise.resolve(masterKeys)))
    if (version >= FIRST_SEALS) await step(owner)
}

/** The steps that migrations run in addition to their SQL. */
export const dataSteps = (masterKeys: () => Promise<MasterKeys>): DataSteps =>
  new Map([
    [17, (tx) => encryptPlainKeys(tx, masterKeys)],
    [18, (tx) => sealPending(tx, masterKeys)],
    [101, (tx) => sealRows(tx, AUTHENTICATING_TABLES, masterKeys)],
    [102, (tx) => sealRows(tx, ['deposit_addresses'], masterKeys)],
    [103, (tx) => sealRows(tx, ['incoming_transfers'], masterKeys)],
    [104, async (tx) => void (await sealBalances(tx, 'WITHOUT', masterKeys))],
    [105, (tx) => sealRows(tx, ['orchestration_rules', 'fiat_deposit_instructions'], masterKeys)],
    [113, (tx) => sealRows(tx, ['crypto_destination_addresses'], masterKeys)],
    [115, (tx) => sealRows(tx, ['reward_rates'], masterKeys)],
    [116, (tx) => sealRows(tx, ['deployment'], masterKeys)],
    [151, (tx) => sealRows(tx, ['markets'], masterKeys)],
    [152, (tx) => sealRows(tx, ['fee_quotes'], masterKeys)],
    [114, async (tx) => void (await sealOrders(tx, 'WITHOUT', async () => new RowMacs(await masterKeys())))],
  ])
