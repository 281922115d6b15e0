import type { Command } from 'commander'
import { transaction, type Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import type { MasterKeys } from '../keys/master-keys.ts'
import { listSigningKeys, retireSigningKey, rotateSigningKeys } from '../access/tokens/signing-keys.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { sealOrders } from '../money/records/orchestration.ts'
import { RowMacs, SEALED_TABLES } from '../audit/sealed-rows.ts'
import { verify } from '../money/verify/verify.ts'
import { uuid } from './arguments.ts'
import { inDatabase, inMigratedDatabase, inOwnersDatabase } from './command-line.ts'
import { group } from './define.ts'
import { sealBalances } from '../money/ledger/sealed-balances.ts'

export function keyCommands(program: Command): void {
  const keys = group(program, ['keys', 'the keys that sign access tokens'], inDatabase, {
    '<id>': ['signing key', uuid],
    '--now': ['sign with the new key at once, for example after a leak of the old key'],
  })
  keys.list('list', {
    about: 'list the signing keys, newest first',
    key: 'keys',
    run: ({ db }) => listSigningKeys(db),
    columns: ['id', 'status', 'created_at', 'signs_from', 'retired_at', 'master_key_id'],
  })
  keys.command('rotate [--now]', {
    in: inMigratedDatabase,
    about:
      'create a signing key that signs new tokens in a minute; older keys verify tokens until they are retired',
    run: async ({ db, origin, ...at }, { now = false }) =>
      rotateSigningKeys(db, await at.keys(), { now, origin }),
    says: ({ id, signs_from }, _, { settings: { tokenTtlSeconds } }) =>
      `Signing key ${id} signs new tokens from ${signs_from} on.\n` +
      `Older tokens expire at most ${tokenTtlSeconds} s after that. Then retire the older keys (bursar keys list).`,
    logs: 'made a signing key',
    logged: ({ id, signs_from }) => ({ id, signs_from }),
  })
  keys.command('retire <id>', {
    about:
      'end a signing key permanently: delete its private half; every process refuses its tokens within ten seconds',
    run: async ({ db, origin }, { id }) => ({ id, retired: await retireSigningKey(db, id, origin) }),
    says: ({ id, retired }) => `Signing key ${id} ${retired ? 'is' : 'was already'} retired.`,
    logs: 'retired a signing key',
    logged: ({ id, retired }) => retired && { id },
  })
  keys.command('seal', {
    in: inOwnersDatabase,
    about:
      'after the loss of a master key: give new MACs to what the lost key sealed, as it is. Only where bursar verify finds nothing else. Needs the role that owns the schema',
    async run({ db: owner, origin, ...at }) {
      const masterKeys = await at.keys()
      const { disagreements } = await verify(owner)
      if (disagreements.length > 0)
        throw new Error(
          `bursar verify finds ${disagreements.length} disagreements: what would be sealed is not what was posted`,
        )
      const master_key_id = masterKeys.current.id
      await transaction(owner, async (tx) => {
        await sealAgain(tx, masterKeys)
        await recordNow(tx, PLATFORM_ID, audited(origin, 'master_key.replace', master_key_id))
      })
      return { master_key_id }
    },
    says: () =>
      'All that the lost key sealed has new MACs. Look at bursar operator list and bursar client list.',
    logs: 'sealed all rows of a lost master key',
  })
}

/**
 * Gives new MACs to all rows whose MACs none of these keys made. The rows themselves stay as they are. For the role that
 * owns the schema, in its transaction. Ends of freezes get no new MAC: a freeze whose end the lost key sealed holds again.
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
  await sealBalances(owner, 'WITHOUT', macs)
  await sealOrders(owner, 'WITHOUT', macs)
}
