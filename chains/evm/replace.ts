import type { Buffer } from 'node:buffer'
import type { Hex } from 'viem'
import { getAddress, hexToBigInt } from 'viem/utils'
import { walletAt, type EvmChain } from './chain.ts'
import { larger } from '../kit/units.ts'
import { aboveCeiling, feeMax, feesNow, type Fees } from './fees.ts'
import { parse, signed, signerAddressOf, type EvmSigner } from './transaction.ts'
import type { BroadcastWithdrawal, SignedTransaction } from '../../src/networks/network.ts'

/** Signs the same payments again with the same nonces and higher fees, where their fees are below the current ones. */
export async function replace(
  chain: EvmChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<(SignedTransaction | undefined)[]> {
  await chain.ready()
  const fees = await feesNow(chain)
  const replacements: (SignedTransaction | undefined)[] = []
  for (const { raw_transaction } of withdrawals) {
    const wallet = walletAt(chain, await signerAddressOf(raw_transaction))
    const bumped = wallet && (await replacement(chain, fees, wallet, raw_transaction))
    replacements.push(wallet && (await affordable(chain, wallet.address, bumped)))
  }
  return replacements
}

/**
 * The replacement, if the signer's balance covers it; else undefined. Nodes refuse other replacements, and the earlier
 * transaction stays valid.
 */
export async function affordable(
  { node }: EvmChain,
  address: Hex,
  bumped: SignedTransaction | undefined,
): Promise<SignedTransaction | undefined> {
  if (bumped === undefined) return undefined
  const transaction = parse(bumped.raw_transaction)
  const balance = hexToBigInt(await node.call<Hex>('eth_getBalance', address, 'latest'))
  return balance >= transaction.value + feeMax(transaction) ? bumped : undefined
}

/**
 * Builds the same transaction with the same nonce and higher fees. Undefined when the old fees are still sufficient, or
 * when the higher fees would exceed the ceiling, or this process lacks the key. With `fromValue`, the higher cost of gas
 * is deducted from the amount moved. Nodes replace a transaction for 10 % higher fees, some for 12.5 %.
 */
export async function replacement(
  chain: EvmChain,
  fees: Fees,
  signer: EvmSigner,
  raw: Buffer,
  { fromValue = false }: { fromValue?: boolean } = {},
): Promise<SignedTransaction | undefined> {
  const old = parse(raw)
  const isLow = old.maxFeePerGas < fees.current || old.maxPriorityFeePerGas < fees.tip
  if (signer.isWatched || !isLow || aboveCeiling(fees, chain) !== undefined) return undefined
  const maxPriorityFeePerGas = larger(fees.tip, raised(old.maxPriorityFeePerGas))
  const maxFeePerGas = larger(larger(fees.offer, raised(old.maxFeePerGas)), maxPriorityFeePerGas)
  if (maxFeePerGas > chain.feeCeiling) return undefined
  // Another wallet's signature on the same nonce would be another payment.
  if ((await signerAddressOf(raw)) !== getAddress(signer.address)) return undefined
  const value = fromValue ? old.value - old.gas * (maxFeePerGas - old.maxFeePerGas) : old.value
  if (value < 0n) return undefined
  return signed(signer, { ...old, value, maxFeePerGas, maxPriorityFeePerGas })
}

/** At least an eighth more. */
const raised = (fee: bigint) => fee + fee / 8n + 1n
