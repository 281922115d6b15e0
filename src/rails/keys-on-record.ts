import { NodeFailure } from '../chains/node-failure.ts'
import type { ConfiguredNetwork } from '../chains/open-networks.ts'
import { NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Queryable } from '../db/database.ts'
import { compatibleNetworks } from '../money/records/deposit-address.ts'

/** Compares the keys of the networks file with those that the records of this database name. */

/**
 * Says which keys gave out deposit addresses or paid, by the records, and are not configured: nothing at their addresses can be
 * moved. Of the addresses of a key, the newest is derived again. Throws a NodeFailure where a node has the keys and does not answer.
 */
export async function foreignKeys(
  db: Queryable,
  opened: ReadonlyMap<CryptoNetwork, Pick<ConfiguredNetwork, 'keys'>>,
): Promise<string[]> {
  return [...(await foreignDepositKeys(db, opened)), ...(await foreignWallets(db, opened))]
}

type Opened = Parameters<typeof foreignKeys>[1]

async function foreignDepositKeys(db: Queryable, opened: Opened): Promise<string[]> {
  const { rows } = await db.query<{ network: CryptoNetwork; key: string | null; newest: string }>(
    `
    select crypto_network as network, split_part(derivation, '/', 1) as key,
           max((id || ' ' || address || ' ' || coalesce(derivation, '')) collate "C") as newest
    from deposit_addresses
    where crypto_network = any ($1)
    group by 1, 2
    order by 1, 2`,
    [[...new Set([...opened.keys()].flatMap(compatibleNetworks))]],
  )
  const found: string[] = []
  for (const { network, key, newest } of rows) {
    const [, address = '', derivation = ''] = newest.split(' ')
    const family = compatibleNetworks(network).flatMap((one) => opened.get(one)?.keys ?? [])
    const own = family.filter(({ gave }) => gave !== undefined)
    const isDerived = ['evm', 'solana'].includes(NETWORKS[network].family)
    // A simulated address has no key.
    if (own.length === 0 || (isDerived && key === null)) continue
    const name = isDerived ? key! : address
    if (family.some(({ former }) => former.includes(name))) continue
    const gave = own.map(async (keys) => keys.gave!({ address, derivation }))
    const answers = await Promise.all(gave.map((one) => one.catch(noKey)))
    if (!answers.includes(true))
      found.push(
        `${network}: another key than the configured one gave out deposit address ${address}: configure that key, or name ` +
          `"${name}" in former_keys, and nothing at its addresses is moved`,
      )
  }
  return found
}

/** A path that no key has is of no key. */
function noKey(error: unknown): false {
  if (error instanceof NodeFailure) throw error
  return false
}

async function foreignWallets(db: Queryable, opened: Opened): Promise<string[]> {
  const { rows } = await db.query<{ network: CryptoNetwork; wallets: string[] }>(
    `
    select network, array_agg(wallet order by wallet) as wallets
    from (
      select network, address as wallet from evm_nonces where next_nonce > 0
      union all
      select network, nonce_account from solana_lanes
      union all
      select network, split_part(checked_block, ' ', 1) from wallet_checks where network = 'STELLAR'
    ) signed
    where network = any ($1)
    group by network
    order by network`,
    [[...opened.keys()]],
  )
  return rows.flatMap(({ network, wallets }) => {
    const { foreignWallets, former } = opened.get(network)!.keys
    const foreign = (foreignWallets?.(wallets) ?? []).filter((one) => !former.includes(one))
    const how = NETWORKS[network].family === 'evm' ? 'former_hot_wallets' : 'former_keys'
    return foreign.map(
      (one) =>
        `${network}: ${one} has paid, and is of no configured wallet: configure its key, or name it in ${how}`,
    )
  })
}
