import { isAddress, type Address } from '@solana/addresses'
import type { Database, Queryable } from '../../src/db/database.ts'
import { arraysOf } from '../../src/db/rows.ts'
import { GAS_ASSET, NETWORK, offChain, type Facts } from './chain.ts'
import { associatedOf } from './instructions.ts'

/**
 * The accounts of deposit addresses, as `address_holdings` records them: the address itself for SOL, and its associated
 * account of each token. Each has a place of its own to read on from.
 */

type Tokens = Facts['tokens']

export interface DepositAccount {
  customer_id: string
  address: Address
  asset: string
  account: Address
  /** The newest transaction that was read; null where none was. */
  signature: string | null
  /** What the account held after that transaction, a decimal string. */
  balance: string
  /** Since when it is to be read though its balance may be the same: something is not read yet, or was swept. */
  stale_at: string | null
  /** It has been stale for so long that no lag of a node explains it. */
  is_late: boolean
}

/** How long the transactions of an account may lag behind its balance. */
const LATE_SECONDS = 600

const COLUMNS = `h.customer_id, h.address, h.asset, h.account, h.signature, h.balance, h.stale_at,
  coalesce(h.stale_at < clock_timestamp() - make_interval(secs => ${LATE_SECONDS}), false) as is_late`

/** The account of an asset at an address; undefined for a token that the node does not have. */
export function accountOf(tokens: Tokens, address: Address, asset: string): Address | undefined {
  if (asset === GAS_ASSET) return address
  const token = tokens.get(asset)
  return token && associatedOf(address, token.mint, token.program)
}

/** The assets whose accounts are read: SOL, and the tokens that the node has. */
export const assetsOf = (tokens: Tokens): string[] => [GAS_ASSET, ...tokens.keys()]

/** Records the accounts of new addresses, or those of new tokens. The account of another mint is read from its beginning. */
export async function keepAccounts(
  db: Queryable,
  tokens: Tokens,
  places: readonly { customer_id: string; address: string }[],
): Promise<void> {
  const accounts = places.flatMap(({ customer_id, address }) =>
    // A row that somebody has changed in the database keeps no other out.
    !isAddress(address)
      ? []
      : assetsOf(tokens).map((asset) => {
          return { customer_id, address, asset, account: accountOf(tokens, address, asset)! }
        }),
  )
  await db.query(
    `
    insert into address_holdings (customer_id, network, address, asset, account, balance)
    select customer_id, $1, address, asset, account, 0
    from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) as s (customer_id, address, asset, account)
    on conflict (customer_id, network, address, asset) do update
      set account = excluded.account, signature = null, balance = 0, stale_at = null
      where address_holdings.account is distinct from excluded.account`,
    [NETWORK, ...arraysOf(accounts, 'customer_id', 'address', 'asset', 'account')],
  )
}

/** Most addresses whose accounts one round records: each account takes some milliseconds. */
const FILLED_MAX = 100

/** Records missing accounts: of tokens that are new in the catalogue or at the node. Returns whether there may be more. */
export async function fillAccounts(db: Database, tokens: Tokens): Promise<boolean> {
  const { rows } = await db.query<{ customer_id: string; address: string }>(
    `
    select d.customer_id, d.address
    from deposit_addresses d
    where d.crypto_network = $1 and d.derivation is not null and cardinality($2::text[]) > (
      select count(*) from address_holdings h
      where h.customer_id = d.customer_id and h.network = $1 and h.address = d.address and h.asset = any ($2)
        and h.account is not null)
    order by random()
    limit ${FILLED_MAX}`,
    [NETWORK, assetsOf(tokens)],
  )
  if (rows.length > 0) await keepAccounts(db, tokens, rows)
  return rows.length === FILLED_MAX && rows.some(({ address }) => isAddress(address))
}

/** The next accounts in their order; from the first one on again after the last. */
export async function selectNext(
  db: Database,
  tokens: Tokens,
  after: string,
  limit: number,
): Promise<DepositAccount[]> {
  const { rows } = await db.query<DepositAccount>(
    `
    select ${COLUMNS} from address_holdings h
    where h.network = $1 and h.account > $2 and h.asset = any ($4)
    order by h.account limit $3`,
    [NETWORK, after, limit, assetsOf(tokens)],
  )
  return rows
}

/** Accounts that are to be read in any case. In random order, so that one that takes long delays no other. */
export async function selectStale(db: Database, tokens: Tokens, limit: number): Promise<DepositAccount[]> {
  const { rows } = await db.query<DepositAccount>(
    `
    select ${COLUMNS} from address_holdings h
    where h.network = $1 and h.stale_at is not null and h.account is not null and h.asset = any ($3)
    order by random()
    limit $2`,
    [NETWORK, limit, assetsOf(tokens)],
  )
  return rows
}

/** Those of these accounts that are deposit addresses'. */
export async function accountsAmong(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, Pick<DepositAccount, 'address' | 'asset' | 'account'>>> {
  const { rows } = await db.query<Pick<DepositAccount, 'address' | 'asset' | 'account'>>(
    'select address, asset, account from address_holdings where network = $1 and account = any ($2)',
    [NETWORK, [...new Set(accounts)]],
  )
  return new Map(rows.map((row) => [row.account, row]))
}

export interface ReadUpTo extends Pick<
  DepositAccount,
  'customer_id' | 'address' | 'asset' | 'signature' | 'stale_at'
> {
  /** In units of the chain. */
  units: bigint
  /** Everything is read that explains its balance. */
  isDone: boolean
  /** Something new was read, so that it is not late. */
  hasMoved: boolean
}

/** Records how far accounts were read, with the deposits that were found. */
export async function keepRead(tx: Queryable, read: readonly ReadUpTo[]): Promise<void> {
  if (read.length === 0) return
  await tx.query(
    `
    update address_holdings h
    set signature = r.signature, balance = r.balance,
        -- A sweep may have ended since the account was looked at.
        stale_at = case when r.is_done and h.stale_at is not distinct from r.stale_at then null
                        when r.has_moved then r.now
                        else coalesce(h.stale_at, r.now) end
    from (
      -- The time is a column: rule 3 of src/db/distribution.ts.
      select *, (select statement_timestamp()) as now
      from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::numeric[],
                         $8::boolean[], $9::boolean[])
        as s (customer_id, address, asset, signature, stale_at, balance, is_done, has_moved)
    ) r
    where h.customer_id = any ($2::uuid[]) and h.customer_id = r.customer_id and h.network = $1
      and h.address = r.address and h.asset = r.asset`,
    [
      NETWORK,
      ...arraysOf(read, 'customer_id', 'address', 'asset', 'signature', 'stale_at'),
      read.map(({ asset, units }) => offChain(asset, units)),
      read.map(({ isDone }) => isDone),
      read.map(({ hasMoved }) => hasMoved),
    ],
  )
}
