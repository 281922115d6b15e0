import { SANDBOX_SCOPES } from '../../contract/scopes.ts'
import type { Database, Queryable } from '../../db/database.ts'
import { failed, ok, orElse, warn, type Finding } from '../../finding.ts'
import { findMasterKeys, HOW_TO_MAKE_ONE, masterKeyFile } from '../../keys/master-keys.ts'
import { checkOtherReaders } from '../../keys/readers.ts'
import { checkSecretFile } from '../../keys/secret-file.ts'
import type { Settings } from '../../settings.ts'
import { listSigningKeys } from './signing-keys.ts'

/** Checks that there is a master key, that only this process can read it, and that it decrypts the signing keys. */
export async function checkKeys(settings: Settings, db: Queryable | undefined): Promise<Finding[]> {
  const masterKeys = await findMasterKeys(settings)
  const { mode, masterKeyFile: path, masterKey, dataDir, acceptanceKeyFile } = settings
  if (masterKeys === undefined)
    return mode === 'live'
      ? [failed('live mode needs a master key, and none is set', `create one: ${HOW_TO_MAKE_ONE}`)]
      : [ok('the sandbox generates its master key at the first start')]
  const file = masterKey === undefined ? (path ?? masterKeyFile(dataDir)) : undefined
  const unreadable = (db === undefined ? [] : await listSigningKeys(db)).filter(
    ({ status, master_key_id: id }) => status !== 'RETIRED' && masterKeys.find(id ?? '') === undefined,
  )
  return [
    ok(`master key ${masterKeys.current.id}${file === undefined ? '' : `, in ${file}`}`),
    ...(file === undefined ? [] : await checkSecretFile(file)),
    ...(acceptanceKeyFile === undefined
      ? []
      : await checkOtherReaders('BURSAR_ACCEPTANCE_KEY_FILE', acceptanceKeyFile, [acceptanceKeyFile])),
    ...unreadable.map(({ id, master_key_id }) =>
      failed(
        `signing key ${id} is encrypted with master key ${master_key_id ?? 'unknown'}, which is not set`,
        'add that master key on a line below the current one (docs/guides/backup.md)',
      ),
    ),
  ]
}

/** Warns of clients of a live service that have scopes of sandbox operations. */
export async function checkClients(db: Database, { mode }: Settings): Promise<Finding[]> {
  if (mode === 'sandbox') return []
  const { rows } = await db.query<{ id: string }>(
    'select id from api_clients where disabled_at is null and scopes && $1::text[] order by id limit 10',
    [SANDBOX_SCOPES],
  )
  const says = `clients with sandbox scopes (${SANDBOX_SCOPES.join(', ')}): ${rows.map(({ id }) => id).join(', ')}`
  const advice = 'replace them with bursar client create, then bursar client disable'
  return orElse(rows.length === 0 ? [] : [warn(says, advice)], 'no client has a sandbox scope')
}
