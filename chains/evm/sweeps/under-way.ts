import type { Hex } from 'viem'
import type { Database } from '../../../src/db/database.ts'
import type { EvmChain } from '../chain.ts'
import type { Sent } from '../transaction.ts'

/** Most transactions under way that one call follows. */
const UNDER_WAY_MAX = 1_000

/** A sweep or top-up that is under way, with the derivation of its address's key. */
export interface Sweep extends Sent {
  customer_id: string
  id: string
  address: Hex
  derivation: string
  kind: 'TOP_UP' | 'SWEEP'
  asset: string
  state: 'SIGNED' | 'BROADCAST'
  stuck: boolean
  /** The network has said before that the transaction can never be mined. */
  lost: boolean
}

/** The sweeps and top-ups that are under way, or only those in state SIGNED, the oldest first. */
export async function selectUnderWay(db: Database, chain: EvmChain, only?: 'SIGNED'): Promise<Sweep[]> {
  const { rows } = await db.query<Sweep>(
    `
    select s.customer_id, s.id, s.address, s.kind, s.asset, s.state, s.raw_transaction, s.crypto_tx_hash, s.replaced,
           s.lost_since is not null as lost, s.signed_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000) as stuck,
           (select d.derivation from deposit_addresses d
            where d.customer_id = s.customer_id and d.address = s.address limit 1) as derivation
    from evm_sweeps s
    where s.network = $1 and s.state in ('SIGNED', 'BROADCAST') and ($3::text is null or s.state = $3)
    order by s.signed_at
    limit ${UNDER_WAY_MAX}`,
    [chain.network, chain.stuckAfterMs, only],
  )
  return rows
}

/** Sets the state, unless another worker has changed the state or the bytes since they were read. */
export async function setState(db: Database, one: Sweep, state: 'SIGNED' | 'BROADCAST'): Promise<boolean> {
  const { rowCount } = await db.query(
    `update evm_sweeps set state = $5, lost_since = null
     where customer_id = $1 and id = $2 and state = $3 and crypto_tx_hash = $4`,
    [one.customer_id, one.id, one.state, one.crypto_tx_hash, state],
  )
  return rowCount === 1
}
