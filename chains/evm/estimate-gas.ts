import type { Hex } from 'viem'
import { hexToBigInt, numberToHex } from 'viem/utils'
import { isNative, offChain, onChain, transferOf, type EvmChain } from './chain.ts'
import { feeMax, gasWithRoom, type Fees } from './fees.ts'
import { gasLimits, priceFieldsOf, type GasLimit } from './gas.ts'
import type { HotWalletReservation } from './hot-wallet.ts'
import { at, NodeError, says } from './node.ts'
import { isFalse, takesTooMuch, WOULD_REVERT } from './refusals.ts'
import { tryTransfers, type TransferToTry, type Trial } from './simulation.ts'
import { deferred, refusedDestination } from '../../src/networks/waiting.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'

/** With how much gas a withdrawal is signed, or the reason why it is refused or deferred. */
export type Estimate = { gas: bigint } | Exclude<Signing, { outcome: 'SIGNED' }>

/** The questions to the node about withdrawals: at which block, at which price, within which gas limits. */
interface Questions {
  chain: EvmChain
  block: bigint
  fees: Fees
  limitOf: (withdrawal: { asset: string }) => GasLimit
}

/**
 * Has the node try each withdrawal and estimate its gas. Ask only for withdrawals that the hot wallet can pay: of
 * others, the node says that they would revert.
 */
export async function estimateGas(
  chain: EvmChain,
  { block, spendable }: Pick<HotWalletReservation, 'block' | 'spendable'>,
  fees: Fees,
  withdrawals: Withdrawal[],
): Promise<Map<Withdrawal, Estimate>> {
  if (withdrawals.length === 0) return new Map()
  const limitOf = await gasLimits(chain, block, withdrawals)
  const questions: Questions = { chain, block, fees, limitOf }
  const { trials, gas } = await askNode(questions, spendable.get(chain.gasAsset)!, withdrawals)
  const results = withdrawals.map((withdrawal, index) =>
    resultOf(chain, withdrawal, limitOf(withdrawal), trials[index]!, gas[index]!),
  )
  const faulty = await faultyTokens(
    questions,
    withdrawals.filter((_, index) => results[index] === 'REVERTS' || results[index] === 'TAKES_TOO_MUCH'),
  )
  return new Map(
    withdrawals.map((withdrawal, index) => {
      const [result, trial] = [results[index]!, trials[index]!]
      return [
        withdrawal,
        estimateOf(chain, withdrawal, { result, trial, limit: limitOf(withdrawal), faulty }),
      ]
    }),
  )
}

/** The transfer of a withdrawal to an address, within its gas limit. */
function moveTo({ chain, limitOf }: Questions, withdrawal: Withdrawal, to: Hex): TransferToTry['call'] {
  const { asset, amount } = withdrawal
  const { value, ...call } = transferOf(chain, asset, to, onChain(chain, asset, amount))
  const gas = numberToHex(limitOf(withdrawal).most)
  return { from: chain.hotWallet.address, ...call, value: numberToHex(value), gas }
}

/** Tries each withdrawal's transfer and estimates its gas. `spendableGas` is the hot wallet's gas asset, in wei. */
async function askNode(
  questions: Questions,
  spendableGas: bigint,
  withdrawals: Withdrawal[],
): Promise<{ trials: Trial[]; gas: (Hex | NodeError)[] }> {
  const { chain, block, fees, limitOf } = questions
  const moves = withdrawals.map((withdrawal): TransferToTry => {
    const recipient = withdrawal.destination_address as Hex
    return { asset: withdrawal.asset, recipient, call: moveTo(questions, withdrawal, recipient) }
  })
  const price = priceFieldsOf(fees)
  // A token may refuse by returning false instead of reverting. A token with a transfer fee delivers less than was sent.
  const { trials, answers: gas } = await tryTransfers(
    chain,
    block,
    moves,
    moves.map(({ call }) => ['eth_estimateGas', { ...call, ...price }, at(block)] as const),
  )
  // With a price, a node gives a call no more gas than the wallet can pay. Too little gas says nothing about the destination.
  const canPayLimit = (withdrawal: Withdrawal) => {
    const { asset, amount } = withdrawal
    const value = isNative(chain, asset) ? onChain(chain, asset, amount) : 0n
    return spendableGas >= value + feeMax({ gas: limitOf(withdrawal).most, maxFeePerGas: fees.offer })
  }
  const unclear = withdrawals.flatMap((withdrawal, index) => {
    const answer = gas[index]!
    return answer instanceof NodeError && !says(answer, 'reverted') && !canPayLimit(withdrawal) ? [index] : []
  })
  const unpriced = await chain.node.each<Hex>(
    unclear.map((index) => ['eth_estimateGas', moves[index]!.call, at(block)] as const),
  )
  for (const [place, index] of unclear.entries()) gas[index] = unpriced[place]!
  return { trials, gas }
}

/** The gas that a transfer takes, or why there is none: the transfer fails, or the node could not tell. */
type Result = bigint | 'REVERTS' | 'TAKES_TOO_MUCH' | NodeError

function resultOf(
  chain: EvmChain,
  { asset }: Withdrawal,
  limit: GasLimit,
  { answer }: Trial,
  estimate: Hex | NodeError,
): Result {
  const errors = [estimate, answer].filter((answer) => answer instanceof NodeError)
  const ranOut = errors.find((error) => says(error, 'outOfGas'))
  const [error] = errors
  // Where the node cannot estimate even a plain transfer, the limit itself may be too low.
  if (ranOut !== undefined && isNative(chain, asset) && !limit.isMeasured) return ranOut
  if (ranOut !== undefined) return 'TAKES_TOO_MUCH'
  if (error !== undefined) return says(error, 'reverted') ? 'REVERTS' : error
  if (isFalse(answer as Hex)) return 'REVERTS'
  const needed = gasWithRoom(hexToBigInt(estimate as Hex))
  return needed < limit.most ? needed : limit.most
}

/**
 * The failed token withdrawals whose token also refuses a transfer to the hot wallet itself: the token is paused, or has
 * blocked the wallet. Its refusal says nothing about the destination.
 */
async function faultyTokens(questions: Questions, failed: Withdrawal[]): Promise<ReadonlySet<Withdrawal>> {
  const { chain, block } = questions
  const ofTokens = failed.filter(({ asset }) => !isNative(chain, asset))
  const answers = await chain.node.each<Hex>(
    ofTokens.map((withdrawal) => {
      return ['eth_call', moveTo(questions, withdrawal, chain.hotWallet.address), at(block)] as const
    }),
  )
  return new Set(
    ofTokens.filter((_, index) => {
      const answer = answers[index]!
      return answer instanceof NodeError || isFalse(answer)
    }),
  )
}

function estimateOf(
  chain: EvmChain,
  withdrawal: Withdrawal,
  {
    result,
    trial,
    limit,
    faulty,
  }: { result: Result; trial: Trial; limit: GasLimit; faulty: ReadonlySet<Withdrawal> },
): Estimate {
  if (result instanceof NodeError)
    return deferred({ code: 'NODE_REFUSED', detail: `the node cannot estimate it: ${result.message}` })
  if (typeof result === 'bigint') {
    const loss = lossOf(chain, withdrawal, trial)
    return loss === undefined ? { gas: result } : deferred({ code: 'TOKEN_DELIVERS_LESS', detail: loss })
  }
  if (faulty.has(withdrawal)) {
    const detail = `${withdrawal.asset} refuses every transfer of the hot wallet`
    return deferred({ code: 'TOKEN_REFUSES', detail })
  }
  const why = result === 'TAKES_TOO_MUCH' ? takesTooMuch(limit.most) : WOULD_REVERT
  return { outcome: 'REFUSED', refusal: refusedDestination(withdrawal, why) }
}

/** Why a token's transfer is not paid: the customer would get less than the withdrawal's amount. */
function lossOf(chain: EvmChain, { asset, amount }: Withdrawal, { arrives }: Trial): string | undefined {
  if (arrives === undefined || arrives >= onChain(chain, asset, amount)) return undefined
  return `${asset} would deliver ${offChain(chain, asset, arrives)} of ${amount}: it takes a fee from transfers`
}
