import { isAddress, type Address } from '@solana/addresses'
import type { Queryable } from '../../src/db/database.ts'
import { arraysOf } from '../../src/db/rows.ts'
import { readAccounts, tokenAccountOf, type Accounts } from './accounts.ts'
import { GAS_ASSET, NETWORK, offChain, type Facts, type SolanaChain } from './chain.ts'
import { associatedOf } from './instructions.ts'

/**
 * The accounts of deposit addresses: the address itself for SOL, and its associated account of each token. `address_holdings` has
 * what they hold, from the first deposit on.
 */

type Tokens = Facts['tokens']

export interface Place {
  customer_id: string
  address: Address
  asset: string
  account: Address
}

/** What an account holds, in units of the chain. */
export type Held = Place & { units: bigint }

/** The account of an asset at an address; undefined for a token that the node does not have. */
export function accountOf(tokens: Tokens, address: Address, asset: string): Address | undefined {
  if (asset === GAS_ASSET) return address
  const token = tokens.get(asset)
  return token && associatedOf(address, token.mint, token.program)
}

/** The asset of a transfer: SOL has no mint. Undefined for a token that is none of ours. */
export const assetOf = (tokens: Tokens, mint: string | undefined): string | undefined =>
  mint === undefined ? GAS_ASSET : [...tokens].find(([, token]) => token.mint === mint)?.[0]

/** The assets whose accounts are read: SOL, and the tokens that the node has. */
export const assetsOf = (tokens: Tokens): string[] => [GAS_ASSET, ...tokens.keys()]

/** Those of these accounts that are deposit addresses', by account and asset. Another account of a token than the associated one is none. */
export async function placesAmong(
  db: Queryable,
  tokens: Tokens,
  accounts: readonly { account: Address; owner: Address; asset: string }[],
): Promise<Map<string, Place>> {
  const owners = [...new Set(accounts.map(({ owner }) => owner))]
  if (owners.length === 0) return new Map()
  const { rows } = await db.query<{ customer_id: string; address: Address }>(
    `select customer_id, address from deposit_addresses
     where address = any ($2) and crypto_network = $1 and derivation is not null`,
    [NETWORK, owners],
  )
  const customers = new Map(rows.map(({ address, customer_id }) => [address, customer_id]))
  return new Map(
    accounts.flatMap(({ account, owner, asset }) => {
      const customer_id = customers.get(owner)
      return customer_id !== undefined && accountOf(tokens, owner, asset) === account
        ? [[`${account} ${asset}`, { customer_id, address: owner, asset, account }] as const]
        : []
    }),
  )
}

/** Units of an account in which a place is held. */
export const unitsIn = (
  { account, asset }: Pick<Place, 'account' | 'asset'>,
  accounts: Pick<Accounts, 'get'>,
) =>
  (asset === GAS_ASSET ? accounts.get(account)?.lamports : tokenAccountOf(accounts.get(account))?.units) ?? 0n

/** Most balances that one round reads again: one call. */
const STALE_MAX = 100

/** Reads the balances that may have changed by what no block of a scan shows: a sweep that was just made, or is lost. */
export async function readStale(db: Queryable, { rpc }: SolanaChain, tokens: Tokens): Promise<Held[]> {
  const { rows } = await db.query<Omit<Place, 'account'>>(
    `select customer_id, address, asset from address_holdings
     where network = $1 and stale_at is not null and asset = any ($2)
     order by random() limit ${STALE_MAX}`,
    [NETWORK, assetsOf(tokens)],
  )
  // A row that somebody has changed to what is no address keeps no other out.
  const places = rows
    .filter(({ address }) => isAddress(address))
    .map((row) => ({ ...row, account: accountOf(tokens, row.address, row.asset)! }))
  const accounts = await readAccounts(
    rpc,
    places.map(({ account }) => account),
  )
  return places.map((place) => ({ ...place, units: unitsIn(place, accounts) }))
}

/** Records what accounts hold. */
export async function keepHeld(tx: Queryable, held: readonly Held[]): Promise<void> {
  if (held.length === 0) return
  await tx.query(
    `
    insert into address_holdings (customer_id, network, address, asset, balance)
    select customer_id, $1, address, asset, balance
    from unnest($2::uuid[], $3::text[], $4::text[], $5::numeric[]) as s (customer_id, address, asset, balance)
    on conflict (customer_id, network, address, asset) do update
      set balance = excluded.balance, stale_at = null`,
    [
      NETWORK,
      ...arraysOf(held, 'customer_id', 'address', 'asset'),
      held.map(({ asset, units }) => offChain(asset, units)),
    ],
  )
}
