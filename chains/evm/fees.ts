import type { Hex } from 'viem'
import { encodeFunctionData, hexToBigInt, parseAbi } from 'viem/utils'
import { formatAmount } from '../../src/contract/assets/amount.ts'
import { offChain, type EvmChain } from './chain.ts'
import { smaller } from '../kit/units.ts'
import type { Block, Receipt } from './node.ts'
import { parse, type EvmTransaction } from './transaction.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'

/** The price of gas now, and the offer for new transactions. In wei for a unit of gas. */
export interface Fees {
  /** The base fee of the newest block. That of the next differs by an eighth at most. */
  base: bigint
  /** The base fee of the newest block and the tip: the price of a transaction that is mined now. */
  current: bigint
  /** The part that goes to the block's producer. */
  tip: bigint
  /** The current price with room for the base fee to double, within the ceiling. */
  offer: bigint
}

export async function feesNow({ node, feeCeiling }: EvmChain): Promise<Fees> {
  const [block, suggested] = await node.all<unknown>([
    ['eth_getBlockByNumber', 'latest', false],
    ['eth_maxPriorityFeePerGas'],
  ])
  const base = hexToBigInt((block as Block).baseFeePerGas ?? '0x0')
  const tip = hexToBigInt(suggested as Hex)
  return { base, current: base + tip, tip, offer: smaller(2n * base + tip, feeCeiling) }
}

/** Whether a transaction's fee is so low that no block can have it now. */
export const isBelowBaseFee = (raw: Buffer, base: bigint): boolean => parse(raw).maxFeePerGas < base

/** The reason why nothing can be signed at these fees; undefined where they are within the ceiling. */
export const aboveCeiling = ({ current }: Fees, { feeCeiling }: EvmChain): string | undefined =>
  current > feeCeiling
    ? `gas costs ${formatAmount(current, GWEI)} gwei, the ceiling is ${formatAmount(feeCeiling, GWEI)}`
    : undefined

/** Decimals of wei in gwei. */
export const GWEI = 9

/** Gas of a plain transfer to an account without code, exactly. */
export const PLAIN_GAS = 21_000n
/** Gas of a token's transfer to an address without a balance, for the catalogue's token contracts. */
export const TOKEN_GAS = 65_000n

/** Adds a fifth to the estimate of a call that runs code: storage may have changed when it is mined. */
export const gasWithRoom = (estimate: bigint) => (estimate === PLAIN_GAS ? estimate : (estimate * 6n) / 5n)

/** The highest cost of a transaction, without its value. */
export const feeMax = ({ gas, maxFeePerGas }: Pick<EvmTransaction, 'gas' | 'maxFeePerGas'>) =>
  gas * maxFeePerGas

/** The contract that every chain of the OP stack has from its first block on, and no other chain. */
const GAS_PRICE_ORACLE = '0x420000000000000000000000000000000000000F'
const ORACLE_ABI = parseAbi(['function getL1FeeUpperBound(uint256 unsignedTxSize) view returns (uint256)'])
/** Bytes of an unsigned token transfer, with room; a transfer of the native asset has fewer. */
const TRANSFER_BYTES = 200n

/**
 * Reads the highest fee for publishing a transfer to another chain, in wei, in addition to its gas. It is doubled because
 * that fee may rise. 0 on chains that publish nothing.
 */
export async function publishingFee({ node }: EvmChain): Promise<bigint> {
  const data = encodeFunctionData({ abi: ORACLE_ABI, args: [TRANSFER_BYTES] })
  const answer = await node.call<Hex>('eth_call', { to: GAS_PRICE_ORACLE, data }, 'latest')
  return answer === '0x' ? 0n : 2n * hexToBigInt(answer)
}

export function feePaid(chain: EvmChain, { gasUsed, effectiveGasPrice, l1Fee }: Receipt): NetworkFee {
  const paid = hexToBigInt(gasUsed) * hexToBigInt(effectiveGasPrice) + hexToBigInt(l1Fee ?? '0x0')
  return { asset: chain.gasAsset, amount: offChain(chain, chain.gasAsset, paid) }
}
