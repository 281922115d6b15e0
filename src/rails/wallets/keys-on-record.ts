import { NodeFailure } from '../../networks/node-failure.ts'
import type { ConfiguredNetwork } from '../../networks/open-networks.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { compatibleNetworks } from '../../money/records/deposit-address.ts'

/** Compares the keys of the networks file with those that the records of this database name. */

/**
 * Says which keys gave out deposit addresses or were used as wallets, by the records, and are not configured: nothing at
 * their addresses can be moved. Of the addresses of a key, the newest is derived again. A network whose node has the keys
 * and does not answer is not compared.
 */
export async function foreignKeys(
  db: Queryable,
  opened: ReadonlyMap<CryptoNetwork, Pick<ConfiguredNetwork, 'keys'>>,
): Promise<{ foreign: string[]; notCompared: Map<CryptoNetwork, NodeFailure> }> {
  const foreign: string[] = []
  const notCompared = new Map<CryptoNetwork, NodeFailure>()
  for (const network of opened.keys()) {
    try {
      foreign.push(...(await foreignDepositKeys(db, opened, network)))
    } catch (error) {
      if (!(error instanceof NodeFailure)) throw error
      notCompared.set(network, error)
    }
  }
  return { foreign: [...foreign, ...(await foreignWallets(opened))], notCompared }
}

type Opened = Parameters<typeof foreignKeys>[1]

/** An address of another EVM network is judged where that network is opened. */
async function foreignDepositKeys(db: Queryable, opened: Opened, network: CryptoNetwork): Promise<string[]> {
  const family = compatibleNetworks(network).flatMap((other) => opened.get(other)?.keys ?? [])
  const own = family.filter(({ gave }) => gave !== undefined)
  if (own.length === 0) return []
  const areDerived = own.some((keys) => keys.areDerived)
  const found: string[] = []
  for await (const { key, address, derivation } of newestOfEachKey(db, network)) {
    // A simulated address has no key.
    if (areDerived && key === '') continue
    const name = areDerived ? key : address
    if (family.some(({ former }) => former.includes(name))) continue
    const gave = own.map(async (keys) => keys.gave!({ address, derivation }))
    const answers = await Promise.all(gave.map((answer) => answer.catch(noKey)))
    if (!answers.includes(true))
      found.push(
        `${network}: another key than the configured one gave out deposit address ${address}: configure that key, or name ` +
          `"${name}" in former_keys, and nothing at its addresses is moved`,
      )
  }
  return found
}

/** Each key is one look-up in an index, among any number of addresses. */
async function* newestOfEachKey(db: Queryable, network: CryptoNetwork) {
  for (let least = ''; ;) {
    const { rows } = await db.query<{ key: string; address: string; derivation: string }>(
      `
      select split_part(coalesce(derivation, ''), '/', 1) as key, address, coalesce(derivation, '') as derivation
      from deposit_addresses
      where crypto_network = $1 and split_part(coalesce(derivation, ''), '/', 1) collate "C" >= $2
      order by split_part(coalesce(derivation, ''), '/', 1) collate "C", id desc
      limit 1`,
      [network, least],
    )
    const [newest] = rows
    if (newest === undefined) return
    yield newest
    // The least text that is greater.
    least = `${newest.key}\u0001`
  }
}

/** A path that no key has is of no key. */
function noKey(error: unknown): false {
  if (error instanceof NodeFailure) throw error
  return false
}

async function foreignWallets(opened: Opened): Promise<string[]> {
  const found: string[] = []
  for (const [network, { keys }] of opened)
    for (const wallet of (await keys.foreignWallets?.find()) ?? [])
      if (!keys.former.includes(wallet))
        found.push(
          `${network}: ${wallet} was used, and is of no configured wallet: ${keys.foreignWallets!.advice}`,
        )
  return found
}
