import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import { decimalsOf, findAsset, NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { canonicalAddress } from '../contract/addresses/addresses.ts'
import type { NetworkStatus } from './wallet-status.ts'

/**
 * Hot, warm and cold: what the hot wallet should hold of each asset, and what people are asked to do where it holds less or
 * more. Nothing here moves money: a refill is signed by the keys of cold storage, and a send is ordered by a person.
 */

/** What the hot wallet should hold of an asset. Decimal strings. */
interface Marks {
  /** Below it, a refill up to the target is asked for. */
  low?: string
  /** Absent: the low mark. */
  target?: string
  /** Above it, a send of what is above the target is proposed. */
  high?: string
}

/** By asset, the marks; and the addresses of cold storage, the first of which gets what is sent there. */
export interface Treasury {
  marks: Readonly<Record<string, Marks>>
  cold: readonly string[]
}

export interface Ask {
  kind: 'REFILL' | 'SEND'
  asset: string
  /** A decimal string. */
  amount: string
  /** Of a send: the address in cold storage. */
  to?: string
}

type Amounts = string | Record<string, string>

/** The fields of a section that say it. */
interface MarkFields {
  low_mark?: Amounts | undefined
  target?: Amounts | undefined
  high_mark?: Amounts | undefined
  cold_addresses?: readonly string[] | undefined
}

/**
 * The marks of a section. An amount without an asset is of the network's own. Throws an Error that names the field unless
 * the marks rise, and belong to assets and addresses of the network.
 */
export function treasuryOf(
  network: CryptoNetwork,
  { low_mark = {}, target = {}, high_mark = {}, cold_addresses = [] }: MarkFields,
  mode: 'sandbox' | 'live',
): Treasury {
  const { gasAsset } = NETWORKS[network]
  const marks: Record<string, Marks> = {}
  for (const [name, field, value] of [
    ['low', 'low_mark', low_mark],
    ['target', 'target', target],
    ['high', 'high_mark', high_mark],
  ] as const)
    for (const [asset, amount] of Object.entries(typeof value === 'string' ? { [gasAsset]: value } : value)) {
      const where = `${network}.${field}${typeof value === 'string' ? '' : `.${asset}`}`
      const decimals = findAsset(asset)?.networks[network]?.decimals
      if (decimals === undefined) throw new Error(`${where} is no asset of ${network}`)
      if (parseAmount(amount, decimals) === undefined)
        throw new Error(`${where} has more than ${decimals} decimals`)
      marks[asset] = { ...marks[asset], [name]: amount }
    }
  const cold = cold_addresses.map((address) => {
    const canonical = canonicalAddress(network, address, { testNetworks: mode === 'sandbox' })
    if (canonical === undefined)
      throw new Error(`${network}.cold_addresses: ${address} is no address of ${network}`)
    return canonical
  })
  for (const [asset, { low = '0', target: aim = low, high }] of Object.entries(marks)) {
    const minorOf = (amount: string) => parseAmount(amount, decimalsOf(asset))!
    if (minorOf(aim) < minorOf(low)) throw new Error(`${network}.target is below low_mark for ${asset}`)
    if (high === undefined) continue
    if (marks[asset]!.target === undefined || cold.length === 0)
      throw new Error(`${network}.high_mark needs target and cold_addresses for ${asset}`)
    if (minorOf(high) <= minorOf(aim))
      throw new Error(`${network}.high_mark must be above target for ${asset}`)
  }
  return { marks, cold }
}

/**
 * What is asked for, by what the hot wallet holds. `leaving` are the sends to cold storage that have not ended, in minor
 * units by asset, read before the status: what has left meanwhile is deducted twice then, and never proposed twice.
 */
export function asksOf(
  network: CryptoNetwork,
  { marks, cold }: Treasury,
  { held, hotWallet = held, lanes = [] }: Pick<NetworkStatus, 'held' | 'hotWallet' | 'lanes'>,
  leaving: ReadonlyMap<string, bigint>,
): Ask[] {
  return Object.entries(marks).flatMap(([asset, { low = '0', target = low, high }]): Ask[] => {
    const decimals = decimalsOf(asset)
    const minorOf = (text = '0') => parseAmount(text, decimals)!
    const has = minorOf(hotWallet[asset])
    if (has < minorOf(low))
      return [{ kind: 'REFILL', asset, amount: formatAmount(minorOf(target) - has, decimals) }]
    const left = has - (leaving.get(asset) ?? 0n)
    if (high === undefined || left <= minorOf(high)) return []
    // One wallet pays a transfer.
    const fullest = lanes.map((lane) => minorOf(lane.held?.[asset])).reduce(larger, 0n)
    const above = left - minorOf(target)
    const amount = lanes.length > 0 && fullest < above ? fullest : above
    // With fewer decimals on the chain than in the ledger, the rest stays.
    const unit = 10n ** BigInt(decimals - findAsset(asset)!.networks[network]!.decimals)
    return [{ kind: 'SEND', asset, amount: formatAmount(amount - (amount % unit), decimals), to: cold[0]! }]
  })
}

const larger = (a: bigint, b: bigint) => (a > b ? a : b)
