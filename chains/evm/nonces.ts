import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import type { EvmChain } from './chain.ts'

/** The addresses of a network that have signed. */
export async function usedWallets(db: Queryable, network: CryptoNetwork): Promise<string[]> {
  const { rows } = await db.query<{ address: string }>(
    'select address from evm_nonces where network = $1 and next_nonce > 0 order by address',
    [network],
  )
  return rows.map(({ address }) => address)
}

export async function lockNonce(
  tx: Transaction,
  { network, hotWallet: { address }, firstNonce }: EvmChain,
): Promise<{ next: number; acknowledged: ReadonlySet<number> }> {
  const wallet = [network, address]
  await tx.query(
    `insert into evm_nonces (network, address, next_nonce) values ($1, $2, 0)
     on conflict (network, address) do nothing`,
    wallet,
  )
  const { rows } = await tx.query<NonceRow>(
    'select next_nonce, acknowledged_nonces from evm_nonces where network = $1 and address = $2 for update',
    wallet,
  )
  return nextOf(firstNonce, rows[0])
}

interface NonceRow {
  next_nonce: string
  acknowledged_nonces: string[]
}

/** The next nonce of a wallet, and the acknowledged ones. */
function nextOf(firstNonce: number, row: NonceRow = { next_nonce: '0', acknowledged_nonces: [] }) {
  const acknowledged: ReadonlySet<number> = new Set(row.acknowledged_nonces.map(Number))
  let next = Math.max(Number(row.next_nonce), firstNonce)
  while (acknowledged.has(next)) next += 1
  return { next, acknowledged }
}

/** Reads the hot wallet's next nonce as it is now, and the acknowledged ones. */
export async function readNonce(db: Queryable, { network, hotWallet, firstNonce }: EvmChain) {
  const { rows } = await db.query<NonceRow>(
    'select next_nonce, acknowledged_nonces from evm_nonces where network = $1 and address = $2',
    [network, hotWallet.address],
  )
  return nextOf(firstNonce, rows[0])
}

/** Writes the hot wallet's next nonce. */
export async function writeNonce(tx: Transaction, chain: EvmChain, next: number): Promise<void> {
  await tx.query(
    `
    update evm_nonces
    set next_nonce = $3, acknowledged_nonces = array(select nonce from unnest(acknowledged_nonces) as nonce where nonce >= $3)
    where network = $1 and address = $2`,
    [chain.network, chain.hotWallet.address, next],
  )
}

/** Acknowledges the nonce of a transaction that was signed without this database: it does not block signing any more. */
export async function acknowledgeNonce(tx: Transaction, chain: EvmChain, nonce: number): Promise<void> {
  await lockNonce(tx, chain)
  await tx.query(
    `
    update evm_nonces set acknowledged_nonces = array_append(acknowledged_nonces, $3::bigint)
    where network = $1 and address = $2 and next_nonce <= $3`,
    [chain.network, chain.hotWallet.address, nonce],
  )
}

/** The nonces from `first` to `end`, without `end`. */
export const noncesBetween = (first: number, end: number): number[] =>
  Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index)
