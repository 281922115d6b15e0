import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { Refusal } from '../../contract/refusal.ts'
import type { Database } from '../../db/database.ts'
import { eachAlone } from '../../db/each-alone.ts'
import { lookAt } from '../wallets/look.ts'
import type { NetworkAdapter, Networks, Refill } from '../../networks/network.ts'
import type { BroughtOnChain } from '../../networks/moved-on-chain.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { forgetOldRefills, forgetRefill, keepRefillDetail, selectRefills } from './found-refills.ts'
import { postRefill, type Acknowledged } from './acknowledged.ts'
import { orderTreasurySend, type Ordered, type Ordering } from './orders.ts'

const LOOP = originOfLoop('refills')

/**
 * Posts the refills that scans have found, as `wallet acknowledge` does: each once, with its confirmations, by the word of both
 * nodes, and only where nobody but cold storage has paid. What cannot be posted keeps the reason, for a person. Throws the
 * failures of nodes after the other networks.
 */
export async function postRefills(
  db: Database,
  networks: Networks,
  posted: (refill: Acknowledged) => void,
): Promise<void> {
  const real = [...networks].flatMap(([network, adapter]): [CryptoNetwork, NetworkAdapter][] =>
    network === 'WIRE' || (adapter.treasury?.cold.length ?? 0) === 0 ? [] : [[network, adapter]],
  )
  await eachAlone(
    real,
    ([network]) => `refills of ${network}`,
    async ([network, adapter]) => {
      if (adapter.broughtBy === undefined) return
      await forgetOldRefills(db, network)
      for (const { crypto_tx_hash: hash, is_posted } of await selectRefills(db, network))
        try {
          if (is_posted) {
            await forgetRefill(db, network, hash)
            continue
          }
          const brought = await adapter.broughtBy(db, hash)
          requireRefill(brought, adapter.treasury!.cold)
          const refill = await postRefill(db, network, hash, brought, LOOP)
          if (refill.is_new) posted(refill)
        } catch (error) {
          await keepRefillDetail(db, network, hash, (error as Error).message)
          if (error instanceof NodeFailure) throw error
        }
    },
  )
}

/** Throws a Refusal unless all that was moved came in from these addresses. */
function requireRefill({ from, moved, networkFee }: BroughtOnChain, addresses: readonly string[]): void {
  const other = from.find((address) => !addresses.includes(address))
  if (other !== undefined) throw new Refusal(`${other} paid, which is not in cold_addresses`)
  if (networkFee !== undefined || moved.some(({ amount }) => amount.startsWith('-')))
    throw new Refusal('the hot wallet has paid, too')
}

/**
 * Orders a proposed send to cold storage, of the amount that a person confirms. Two people who confirm the same proposal order
 * one transfer. Throws a Refusal where nothing is proposed, or less.
 */
export async function confirmSend(
  ordering: Ordering,
  adapter: NetworkAdapter,
  { network, asset, amount }: { network: CryptoNetwork; asset: string; amount: string },
): Promise<Ordered> {
  if (adapter.status === undefined) throw new Refusal(`${network} is no real network here`)
  // Before the look: what is ordered in between has this reference, too.
  const { rows } = await ordering.db.query<{ count: string }>(
    `select count(*) from transfers
     where customer_id = $1 and type = 'TREASURY_SEND' and crypto_network = $2 and asset = $3`,
    [PLATFORM_ID, network, asset],
  )
  const { asks } = await lookAt(ordering.db, network, adapter)
  const ask = asks.find((order) => order.kind === 'SEND' && order.asset === asset)
  if (ask === undefined) throw new Refusal(`nothing of ${asset} is proposed to be sent on ${network}`)
  const decimals = decimalsOf(asset)
  const minor = parseAmount(amount, decimals)
  if (minor === undefined || minor > parseAmount(ask.amount, decimals)!)
    throw new Refusal(`amount: ${ask.amount} ${asset} at most is proposed to be sent on ${network}`)
  const reference = `proposed ${network} ${asset} ${rows[0]!.count}`
  return orderTreasurySend(ordering, adapter, {
    ...{ network, asset, amount, reference },
    destination_address: ask.to!,
  })
}

/** A payment from cold storage to the hot wallet, which only the keys of cold storage sign. */
export interface PlannedRefill extends Refill {
  network: CryptoNetwork
  asset: string
  amount: string
}

/**
 * Plans a refill: up to the target, or of the amount. Throws a Refusal where nothing is asked for, or the node cannot say.
 */
export async function planRefill(
  db: Database,
  adapter: NetworkAdapter,
  { network, asset, amount }: { network: CryptoNetwork; asset: string; amount?: string },
): Promise<PlannedRefill> {
  const decimals = findAsset(asset)?.networks[network]?.decimals
  if (decimals === undefined) throw new Refusal(`asset ${asset} is not on ${network}`)
  if (adapter.refill === undefined) throw new Refusal(`${network} is no real network here`)
  const asks = amount === undefined ? (await lookAt(db, network, adapter)).asks : []
  const asked = amount ?? asks.find((order) => order.kind === 'REFILL' && order.asset === asset)?.amount
  if (asked === undefined)
    throw new Refusal(`the hot wallet of ${network} is not below a low_mark of ${asset}: name an --amount`)
  if ((parseAmount(asked, decimals) ?? 0n) === 0n)
    throw new Refusal(`amount must be above 0, with at most ${decimals} decimals`)
  const planned = await adapter.refill(asset, asked, adapter.treasury?.cold ?? [])
  return { network, asset, amount: asked, ...planned }
}
