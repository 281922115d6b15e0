import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { NodeFailure } from './node-failure.ts'

/**
 * Checks a node's chain by the hash of its first block, which the database keeps from the first answer on. Throws a
 * NodeFailure for another than was recorded.
 */
export async function requireGenesis(db: Database, network: CryptoNetwork, hash: string): Promise<void> {
  const recorded = await recordedGenesis(db, network, hash)
  if (recorded !== hash)
    throw new NodeFailure(
      `the node of ${network} is on another chain: its first block is ${hash}, and was ${recorded} when this database first ` +
        `used the network`,
    )
}

/** Makes a check that is done once for all callers, and again after it failed, or its answer became stale. */
export function checkedOnce<T>(check: () => Promise<T>) {
  let known: Promise<T> | undefined
  return {
    get() {
      if (known !== undefined) return known
      const asked = check()
      known = asked
      asked.catch(() => {
        if (known === asked) known = undefined
      })
      return asked
    },
    markStale() {
      known = undefined
    },
  }
}

/** The hash of the network's first block: this one, unless another was recorded before. */
async function recordedGenesis(db: Database, network: CryptoNetwork, hash: string): Promise<string> {
  const read = async () => {
    const { rows } = await db.query<{ block_hash: string }>(
      'select block_hash from network_genesis where network = $1',
      [network],
    )
    return rows[0]?.block_hash
  }
  const known = await read()
  if (known !== undefined) return known
  await db.query(
    `
    insert into network_genesis (network, block_hash, recorded_at) values ($1, $2, clock_timestamp())
    on conflict (network) do nothing`,
    [network, hash],
  )
  return (await read()) ?? hash
}
