import type { Command } from 'commander'
import { transaction, type Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { openMasterKeys, type MasterKeys } from '../keys/master-keys.ts'
import { sealBalances } from '../ledger/balance-macs.ts'
import {
  listSigningKeys,
  retireSigningKey,
  rotateSigningKeys,
  type SigningKeySummary,
} from '../oauth/signing-keys.ts'
import {
  logOperator,
  originOfCommand,
  uuid,
  withDatabase,
  withMigratedDatabase,
  withOwnersDatabase,
} from './command-line.ts'
import { print, table } from './output.ts'
import { audited, recordNow } from '../records/audited.ts'
import { sealOrders } from '../records/orchestration.ts'
import { RowMacs, SEALED_TABLES } from '../records/row-macs.ts'
import { verify } from '../verify/verify.ts'

/** Defines `bursar keys`. */
export function keyCommands(program: Command): void {
  const keys = program.command('keys').description('the keys that sign access tokens')

  keys
    .command('list')
    .description('list the signing keys, newest first')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const found = await listSigningKeys(db)
        if (json) return print({ keys: found })
        const columns = ['id', 'status', 'created_at', 'signs_from', 'retired_at', 'master_key_id']
        const cells = (key: SigningKeySummary) => [
          key.id,
          key.status,
          key.created_at,
          key.signs_from,
          key.retired_at,
          key.master_key_id,
        ]
        print(table(columns, found.map(cells)))
      }),
    )

  keys
    .command('rotate')
    .description(
      'create a signing key that signs new tokens in a minute; older keys verify tokens until they are retired',
    )
    .option('--now', 'sign with the new key at once, for example after a leak of the old key')
    .option('--json', 'print JSON')
    .action(({ now = false, json }: { now?: boolean; json?: true }) =>
      withMigratedDatabase(async (db, settings) => {
        const made = await rotateSigningKeys(db, await openMasterKeys(settings), {
          now,
          origin: originOfCommand(),
        })
        logOperator(settings, 'made a signing key', { id: made.id, signs_from: made.signs_from })
        if (json) return print(made)
        const { id, signs_from } = made
        print(`Signing key ${id} signs new tokens from ${signs_from} on.`)
        print(
          `Older tokens expire at most ${settings.tokenTtlSeconds} s after that. Then retire the older keys (bursar keys list).`,
        )
      }),
    )

  keys
    .command('retire')
    .description(
      'end a signing key permanently: delete its private half; every process refuses its tokens within ten seconds',
    )
    .argument('<id>', 'signing key', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const retired = await retireSigningKey(db, id, originOfCommand())
        if (retired) logOperator(settings, 'retired a signing key', { id })
        if (json) return print({ id, retired })
        print(retired ? `Signing key ${id} is retired.` : `Signing key ${id} was already retired.`)
      }),
    )
  defineSeal(keys)
}

function defineSeal(keys: Command): void {
  keys
    .command('seal')
    .description(
      'after the loss of a master key: give new MACs to what the lost key sealed, as it is. Only where bursar verify finds nothing else. Needs the role that owns the schema',
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withOwnersDatabase(async (owner, settings) => {
        const masterKeys = await openMasterKeys(settings)
        const { disagreements } = await verify(owner)
        if (disagreements.length > 0)
          throw new Error(
            `bursar verify finds ${disagreements.length} disagreements: what would be sealed is not what was posted`,
          )
        await transaction(owner, async (tx) => {
          await sealAgain(tx, masterKeys)
          await recordNow(
            tx,
            PLATFORM_ID,
            audited(originOfCommand(), 'master_key.replace', masterKeys.current.id),
          )
        })
        logOperator(settings, 'sealed all rows of a lost master key', {
          master_key_id: masterKeys.current.id,
        })
        if (json) return print({ master_key_id: masterKeys.current.id })
        print(
          'All that the lost key sealed has new MACs. Look at bursar operator list and bursar client list.',
        )
      }),
    )
}

/**
 * Gives new MACs to all rows whose MACs none of these keys made, as they are. For the role that owns the schema, in its transaction.
 * Ends of freezes keep theirs: what was frozen holds again.
 */
async function sealAgain(owner: Transaction, masterKeys: MasterKeys): Promise<void> {
  const macs = new RowMacs(masterKeys)
  const rows = SEALED_TABLES.filter((table) => !table.endsWith('freezes'))
  for (const table of [...rows, 'balances', 'orchestrations'])
    await owner.query(
      `update ${table} set mac = null where mac is not null and mac not like all ($1::text[])`,
      [masterKeys.ids.map((id) => `${id}.%`)],
    )
  for (const table of rows) await macs.sealAll(owner, table)
  await sealBalances(owner, 'WITHOUT', masterKeys)
  await sealOrders(owner, 'WITHOUT', macs)
}
