import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'

/** The hash of the network's first block: this one, unless another was recorded before. */
export async function recordedGenesis(db: Database, network: CryptoNetwork, hash: string): Promise<string> {
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
