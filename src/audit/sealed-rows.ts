import type { KeyObject } from 'node:crypto'
import type { Queryable, Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { Macs } from '../keys/macs.ts'
import type { Seal } from './freeze-ends.ts'
import type { MasterKeys, Purpose } from '../keys/master-keys.ts'

/**
 * MACs of rows that the service's database role must not be able to forge, such as those that authenticate. Each MAC is made
 * with a key derived from the master key: whoever has that role alone can neither make nor change such a row. The role can
 * put an older row back, with its MAC. But the MAC covers `sealed_at`, the time when it was made. A later record of the
 * audit log, which the role cannot remove, then shows that the row is out of date (`endedLater`).
 */

interface SealedTable {
  purpose: Purpose
  key: readonly string[]
  /** What the MAC covers besides key and `sealed_at`: columns, or SQL over a row `r`. */
  covers: readonly string[]
  /** Which rows have a MAC, as SQL over a row `r`. */
  live: string
}

const microsOf = (column: string) => `(extract(epoch from r.${column}) * 1000000)::bigint`
const hexOf = (column: string) => `encode(r.${column}, 'hex')`

/** The tables with MACs. What a MAC covers never changes: another scheme gets another purpose. */
const SEALED = {
  api_clients: {
    purpose: 'apiClients',
    key: ['customer_id', 'id'],
    covers: [
      'r.scopes',
      hexOf('secret_hash'),
      hexOf('previous_secret_hash'),
      microsOf('previous_secret_expires_at'),
    ],
    live: 'r.disabled_at is null',
  },
  operators: {
    purpose: 'operators',
    key: ['id'],
    covers: ['r.name', 'r.role', 'r.customer_id', 'r.openid_issuer', 'r.openid_subject'],
    live: 'r.disabled_at is null',
  },
  operator_sessions: {
    purpose: 'operatorSessions',
    key: ['id'],
    covers: ['r.operator_id', hexOf('secret_hash'), microsOf('expires_at'), 'r.method', 'r.passkey_id'],
    live: 'r.ended_at is null',
  },
  operator_links: {
    purpose: 'operatorLinks',
    key: ['hash'],
    covers: ['r.operator_id', microsOf('expires_at')],
    live: 'r.used_at is null',
  },
  operator_passkeys: {
    purpose: 'operatorPasskeys',
    key: ['id'],
    covers: ['r.operator_id', 'r.credential_id', hexOf('public_key')],
    live: 'r.removed_at is null',
  },
  // The MAC does not cover the status. It covers the cooling time, and a rejection is in the audit log.
  crypto_destination_addresses: {
    purpose: 'destinationAddresses',
    key: ['customer_id', 'id'],
    covers: [
      'r.identity_id',
      'r.crypto_network',
      'r.address',
      'r.canonical_address',
      microsOf('cooling_until'),
    ],
    live: "r.status <> 'REJECTED'",
  },
  deposit_addresses: {
    purpose: 'depositAddresses',
    key: ['customer_id', 'id'],
    covers: [
      'r.profile_id',
      'r.crypto_network',
      'r.address',
      'r.derivation',
      'r.conversion_target_asset',
      'r.identity_id',
      'r.account_id',
    ],
    live: 'true',
  },
  // A deletion is in the audit log.
  orchestration_rules: {
    purpose: 'orchestrationRules',
    key: ['customer_id', 'id'],
    covers: [
      'r.profile_id',
      'r.source_asset',
      'r.destination_asset',
      'r.source_id',
      'r.source',
      'r.destination',
      'r.identity_id',
      'r.account_id',
    ],
    live: "r.status = 'ACTIVE'",
  },
  fiat_deposit_instructions: {
    purpose: 'fiatDepositInstructions',
    key: ['customer_id', 'id'],
    covers: ['r.profile_id', 'r.memo_id', 'r.identity_id', 'r.account_id'],
    live: 'true',
  },
  // The MAC does not cover the state: credited_deposits has the deposits that were credited.
  incoming_transfers: {
    purpose: 'incomingTransfers',
    key: ['customer_id', 'network', 'crypto_tx_hash', 'crypto_tx_index'],
    covers: ['r.address', 'r.asset', 'r.amount'],
    live: "r.state = 'WAITING'",
  },
  reward_rates: {
    purpose: 'rewardRates',
    key: ['effective_from', 'set_at'],
    covers: ['r.rate'],
    live: 'true',
  },
  // Its lines are those with an ordinal up to `lines`: they are added with it, and no row is changed.
  bank_statements: {
    purpose: 'bankStatements',
    key: ['position'],
    covers: ['r.account', 'r.lines', 'r.content_hash'],
    live: 'true',
  },
  // A used quote may be reset to unused: its fee holds until it expires.
  fee_quotes: {
    purpose: 'feeQuotes',
    key: ['customer_id', 'id'],
    covers: [
      'r.asset',
      'r.crypto_network',
      'r.destination_address',
      'r.fee',
      'r.amount',
      'r.total',
      microsOf('expires_at'),
    ],
    live: 'r.transfer_id is null',
  },
  // The newest real price: decisions use no other.
  markets: {
    purpose: 'prices',
    key: ['market'],
    covers: ['r.newest_minute', 'r.newest_price'],
    live: "r.source = 'REAL' and r.newest_minute is not null",
  },
  deployment: {
    purpose: 'deployment',
    key: ['id'],
    covers: ['r.mode', 'r.issuer'],
    live: 'true',
  },
  // The end of a freeze. A freeze in force needs no MAC.
  freezes: {
    purpose: 'freezes',
    key: ['reason', 'created_at', 'kind', 'subject'],
    covers: [microsOf('lifted_at')],
    live: 'r.lifted_at is not null',
  },
  customer_freezes: {
    purpose: 'customerFreezes',
    key: ['customer_id', 'reason', 'created_at', 'subject'],
    covers: [microsOf('lifted_at')],
    live: 'r.lifted_at is not null',
  },
} as const satisfies Record<string, SealedTable>
export type SealedName = keyof typeof SEALED

const isOfPlatform = (table: SealedName): boolean =>
  !(SEALED[table] as SealedTable).key.includes('customer_id')

/** SQL for the text that the MAC of a row `r` covers. JSON delimits the members, so no two rows have the same text. */
const textOfRow = (table: SealedName): string => {
  const { key, covers } = SEALED[table] as SealedTable
  const members = [...key.map((name) => `r.${name}::text`), ...covers, microsOf('sealed_at')]
  return `json_build_array(${members.join(', ')})::text`
}

/** SQL that selects what `objectionTo` needs of a row `r` of this table. */
export const sealOf = (table: SealedName): string => `${textOfRow(table)} as sealed, r.mac`

export type { Seal }

/** Called for a row that is refused, since its MAC is missing or wrong. `id` names it in logs. */
export type OnForged = (table: SealedName | 'balances', id: string, objection: string) => void

/** The purposes whose MACs have 22 characters, which are 132 bits. */
const SHORT: readonly Purpose[] = ['balances', 'withdrawals']
const SHORT_LENGTH = 22

export class RowMacs {
  readonly #masterKeys: MasterKeys
  readonly #macs = new Map<Purpose, Macs>()
  readonly onForged: OnForged
  /** The Ed25519 key with which this process signs the withdrawals that it accepts; absent where there are no signer processes. */
  readonly acceptanceKey: KeyObject | undefined

  constructor(masterKeys: MasterKeys, onForged: OnForged = () => undefined, acceptanceKey?: KeyObject) {
    this.#masterKeys = masterKeys
    this.onForged = onForged
    this.acceptanceKey = acceptanceKey
  }

  /** The MACs of one purpose, for texts that a process makes itself. */
  of(purpose: Purpose): Macs {
    let macs = this.#macs.get(purpose)
    if (macs === undefined) {
      macs = new Macs(this.#masterKeys, purpose, SHORT.includes(purpose) ? SHORT_LENGTH : undefined)
      this.#macs.set(purpose, macs)
    }
    return macs
  }

  /** A pattern of `like` for the MACs of the current master key. */
  get ofCurrentKey(): string {
    return `${this.#masterKeys.current.id}.%`
  }

  #of(table: SealedName): Macs {
    return this.of(SEALED[table].purpose)
  }

  /** Returns what is wrong with a row; undefined when it is as it was sealed. */
  objectionTo(table: SealedName, { sealed, mac }: Seal): string | undefined {
    return mac === null
      ? 'it has no MAC: no Bursar with the master key made it'
      : this.#of(table).objectionTo(sealed, mac)
  }

  /** Whether a row is as it was sealed. Calls `onForged` where it is not. */
  isGenuine(table: SealedName, id: string, seal: Seal): boolean {
    const objection = this.objectionTo(table, seal)
    if (objection !== undefined) this.onForged(table, id, objection)
    return objection === undefined
  }

  /** As `isGenuine`, and false for an older row that was put back: one for which `endedLater` is true. */
  isCurrent(table: SealedName, id: string, seal: Seal, endedLater: boolean): boolean {
    if (!this.isGenuine(table, id, seal)) return false
    if (endedLater)
      this.onForged(table, id, 'the audit log says that it was ended or changed after it was sealed')
    return !endedLater
  }

  /** Returns the rows of a customer, by their ids, that are as they were sealed. Calls `onForged` for the others. */
  async genuine<Row extends { id: string }>(
    db: Queryable,
    table: SealedName,
    customerId: string,
    rows: readonly Row[],
  ): Promise<Row[]> {
    if (rows.length === 0) return []
    const { rows: seals } = await db.query<Seal & { id: string }>(
      `select r.id, ${sealOf(table)} from ${table} r where r.customer_id = $1 and r.id = any ($2::uuid[])`,
      [customerId, rows.map(({ id }) => id)],
    )
    const genuine = new Set(seals.flatMap(({ id, ...seal }) => (this.isGenuine(table, id, seal) ? id : [])))
    return rows.filter(({ id }) => genuine.has(id))
  }

  /** Throws an Error for a row that is not as it was sealed: sealing it again would make it trusted. */
  requireGenuine(table: SealedName, id: string, seal: Seal): void {
    const objection = this.objectionTo(table, seal)
    if (objection !== undefined)
      throw new Error(`${table} ${id} was changed or invented in the database: ${objection} (bursar verify)`)
  }

  /**
   * The live rows of a customer, or of the platform, that are not as they were sealed, with what is wrong. `of` says which
   * rows `r` are of the customer `$1`, in SQL: by default those with its id, and of tables without customers all as the
   * platform's.
   */
  async notGenuine(
    db: Queryable,
    table: SealedName,
    customerId: string,
    of = isOfPlatform(table) ? `$1::uuid = '${PLATFORM_ID}'` : 'r.customer_id = $1',
  ): Promise<{ id: string; objection: string }[]> {
    const { key, live } = SEALED[table]
    const own = key.filter((name) => name !== 'customer_id').map((name) => `r.${name}`)
    const { rows } = await db.query<Seal & { id: string }>(
      `select concat_ws(' ', ${own.join(', ')}) as id, ${sealOf(table)} from ${table} r where ${of} and ${live} order by 1`,
      [customerId],
    )
    return rows.flatMap(({ id, ...seal }) => {
      const objection = this.objectionTo(table, seal)
      return objection === undefined ? [] : { id, objection }
    })
  }

  /** Makes the MAC of a row whose text a statement of this transaction returned (`sealOf`). */
  macOf(table: SealedName, sealed: string): string {
    return this.#of(table).make(sealed)
  }

  /** Gives a row that was made or changed in this transaction its MAC. `key` is in the order of the table's key. */
  async seal(tx: Queryable, table: SealedName, ...key: readonly (string | Buffer)[]): Promise<void> {
    const { key: names } = SEALED[table]
    const where = names.map((name, index) => `r.${name} = $${index + 1}`).join(' and ')
    // The database makes the text, and this process its MAC. It comes by a SELECT (rule 4 of src/db/distribution.ts).
    await tx.query(`update ${table} r set sealed_at = (select clock_timestamp()) where ${where}`, [...key])
    const { rows } = await tx.query<{ sealed: string }>(
      `select ${textOfRow(table)} as sealed from ${table} r where ${where}`,
      [...key],
    )
    await tx.query(`update ${table} r set mac = $${key.length + 1} where ${where}`, [
      ...key,
      this.macOf(table, rows[0]!.sealed),
    ])
  }

  /** Gives all live rows without a MAC one, as they are: after the loss of a master key. */
  async sealAll(tx: Transaction, table: SealedName): Promise<void> {
    const { key, live } = SEALED[table]
    const { rows } = await tx.query<Record<string, string | Buffer>>(
      `select ${key.map((name) => `r.${name}`).join(', ')} from ${table} r where r.mac is null and ${live}`,
    )
    for (const row of rows) await this.seal(tx, table, ...key.map((name) => row[name]!))
  }

  /**
   * Makes the MACs of older master keys again with the current one, so that an older key need not be kept. A row whose MAC
   * is wrong stays as it is. Returns the number of rows.
   */
  async renew(db: Queryable): Promise<number> {
    let renewed = 0
    for (const table of SEALED_TABLES) {
      const { key } = SEALED[table]
      const { rows } = await db.query<Seal & Record<string, string | Buffer>>(
        `select ${key.join(', ')}, ${sealOf(table)} from ${table} r where r.mac is not null and r.mac not like $1`,
        [this.ofCurrentKey],
      )
      for (const row of rows) {
        if (this.objectionTo(table, row) !== undefined) continue
        const where = key.map((name, index) => `r.${name} = $${index + 3}`).join(' and ')
        const { rowCount } = await db.query(`update ${table} r set mac = $1 where r.mac = $2 and ${where}`, [
          this.macOf(table, row.sealed),
          row.mac,
          ...key.map((name) => row[name]!),
        ])
        renewed += rowCount!
      }
    }
    return renewed
  }
}

let opened: (() => Promise<RowMacs>) | undefined

/**
 * Gives this process its master keys, which are opened when they are first needed. Everything that posts needs them:
 * requests, settlement, statements and commands. Without them nothing is posted.
 */
export function sealRowsWith(openMasterKeys: () => Promise<MasterKeys>, onForged?: OnForged): void {
  let macs: Promise<RowMacs> | undefined
  opened = () => (macs ??= openMasterKeys().then((keys) => new RowMacs(keys, onForged)))
}

/** The MACs with the master keys of this process, for code that is given none. Throws an Error where it was given no keys. */
export function ownRowMacs(): Promise<RowMacs> {
  if (opened === undefined) throw new Error('this process has no master keys: nothing is posted')
  return opened()
}

export const SEALED_TABLES = Object.keys(SEALED) as SealedName[]

/** Actions that end or change a row: a row that was sealed before such an action is out of date. */
const ENDS = [
  'api_client.rotate',
  'operator.set_role',
  'api_client.disable',
  'api_client.delete',
  'operator.disable',
  'session.revoke',
  'passkey.delete',
]

/**
 * SQL: whether a record `l` of the audit log says that a row, sealed at this time, ended or changed later. A change of a row
 * is recorded first and sealed afterwards, in one transaction.
 */
export const endedLater = (sealedAt: string) =>
  `(l.action in (${ENDS.map((action) => `'${action}'`).join(', ')}) and l.created_at >= ${sealedAt})`
