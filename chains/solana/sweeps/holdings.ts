import type { Address } from '@solana/addresses'
import type { Database } from '../../../src/db/database.ts'
import { givenAmong } from '../../../src/networks/given-addresses.ts'
import { readAccounts } from '../accounts.ts'
import { NETWORK, onChain, type SolanaChain } from '../chain.ts'
import { assetsOf, type DepositAccount } from '../deposit-accounts.ts'
import { addressesOf, unitsIn } from '../deposit-scan.ts'

/** What deposit addresses hold, as `evm_holdings` records it. */

const UNDER_WAY = `exists (
  select 1 from evm_sweeps s
  where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
    and s.state in ('SIGNED', 'BROADCAST'))`

/** The sums of what deposit addresses hold, by asset, in units of the chain. Balances that may have changed are read again. */
export async function heldAtAddresses(db: Database, chain: SolanaChain): Promise<Map<string, bigint>> {
  const { tokens } = await chain.facts()
  const { rows } = await db.query<
    Pick<DepositAccount, 'customer_id' | 'address' | 'asset' | 'account' | 'balance'> & {
      is_uncertain: boolean
    }
  >(
    `
    select * from (
      select h.customer_id, h.address, h.asset, h.account, h.balance,
             h.stale_at is not null or ${UNDER_WAY} as is_uncertain
      from evm_holdings h
      where h.network = $1 and h.account is not null and h.asset = any ($2)
    ) held
    where balance > 0 or is_uncertain
    order by customer_id`,
    [NETWORK, assetsOf(tokens)],
  )
  const given = await givenAmong(chain, db, rows)
  const uncertain = given.filter(({ is_uncertain }) => is_uncertain)
  const accounts = await readAccounts(chain.rpc, addressesOf(uncertain))
  const sums = new Map<string, bigint>()
  for (const one of given) {
    const units = one.is_uncertain ? unitsIn(one, accounts) : onChain(one.asset, one.balance)
    sums.set(one.asset, (sums.get(one.asset) ?? 0n) + units)
  }
  return sums
}

/** An asset at a deposit address that may be worth sweeping. */
export interface SweepPlace extends Pick<DepositAccount, 'customer_id' | 'address' | 'asset' | 'account'> {
  derivation: string
}

/** Places without a sweep under way that hold at least this much. `least` has decimal strings by asset. */
export async function selectWorth(
  db: Database,
  chain: SolanaChain,
  least: ReadonlyMap<string, string>,
  limit: number,
): Promise<SweepPlace[]> {
  const { rows } = await db.query<SweepPlace>(
    `
    select h.customer_id, h.address, h.asset, h.account,
           (select d.derivation from deposit_addresses d
            where d.customer_id = h.customer_id and d.address = h.address limit 1) as derivation
    from evm_holdings h
    join unnest($2::text[], $3::numeric[]) as a (asset, least) on a.asset = h.asset and h.balance >= a.least
    where h.network = $1 and h.balance > 0 and h.account is not null and not ${UNDER_WAY}
    -- Random order, so that addresses which cannot be swept never block the others.
    order by random()
    limit $4`,
    [NETWORK, [...least.keys()], [...least.values()], limit],
  )
  return givenAmong(chain, db, rows)
}

export interface Sweep {
  customer_id: string
  id: string
  address: Address
  asset: string
  amount: string
  state: 'SIGNED' | 'BROADCAST'
  raw_transaction: Buffer
  crypto_tx_hash: string
}

/** The sweeps under way: at most as many as there are lanes for them, unless bytes were lost. */
export async function selectUnderWay(db: Database): Promise<Sweep[]> {
  const { rows } = await db.query<Sweep>(
    `
    select customer_id, id, address, asset, amount, state, raw_transaction, crypto_tx_hash
    from evm_sweeps
    where network = $1 and kind = 'SWEEP' and state in ('SIGNED', 'BROADCAST')
    order by signed_at`,
    [NETWORK],
  )
  return rows
}
