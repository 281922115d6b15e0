import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { at, NodeError, says, type Call, type EvmNode } from './node.ts'
import { balanceCall, type EvmChain } from './chain.ts'

export interface TransferToTry {
  asset: string
  recipient: Hex
  call: { from: Hex; to: Hex; value: Hex; data?: Hex | undefined; gas: Hex }
}

/** The result of trying a transfer: the answer of its call or the refusal, and the units that would arrive, if known. */
export interface Trial {
  answer: Hex | NodeError
  arrives?: bigint
}

interface SimulatedBlock {
  calls: { status: Hex; returnData: Hex; error?: { code: number; message: string } }[]
}

/** Nodes without eth_simulateV1: they are not asked for it again until the process restarts. */
const withoutSimulation = new WeakSet<EvmNode>()

/**
 * Has the node try transfers. For a token it reads the recipient's balance before and after, in one call (eth_simulateV1): a
 * token that takes a fee answers true and delivers less. A node without that method gives the answer alone (eth_call).
 * `others` are sent in the same request, and answered in their order.
 */
export async function tryTransfers(
  chain: EvmChain,
  block: bigint,
  moves: readonly TransferToTry[],
  others: readonly Call[],
): Promise<{ trials: Trial[]; answers: (Hex | NodeError)[] }> {
  const simulates = (move: TransferToTry) =>
    chain.tokens.has(move.asset) && !withoutSimulation.has(chain.node)
  const plainCall = ({ call }: TransferToTry): Call => ['eth_call', call, at(block)]
  const simulated = moves.map(simulates)
  const results = await chain.node.each<unknown>([
    ...moves.map((move, index) => (simulated[index] ? simulation(chain, move, block) : plainCall(move))),
    ...others,
  ])
  const trials = moves.map((_, index): Trial | undefined => {
    const answer = results[index]!
    if (!simulated[index]) return { answer: answer as Hex | NodeError }
    return answer instanceof NodeError ? undefined : trialOf(answer as SimulatedBlock[])
  })
  // An error of the simulation does not count: the answer to the call itself does.
  const again = moves.flatMap((move, index) => (trials[index] === undefined ? [{ move, index }] : []))
  if (again.some(({ index }) => isUnknownMethod(results[index] as NodeError)))
    withoutSimulation.add(chain.node)
  const calls = await chain.node.each<Hex>(again.map(({ move }) => plainCall(move)))
  for (const [place, { index }] of again.entries()) trials[index] = { answer: calls[place]! }
  return { trials: trials as Trial[], answers: results.slice(moves.length) as (Hex | NodeError)[] }
}

/** Three calls in one simulated block: the recipient's balance, the transfer, and the balance again. */
function simulation(chain: EvmChain, { asset, recipient, call }: TransferToTry, block: bigint): Call {
  const [, balance] = balanceCall(chain, asset, recipient, block)
  const { from, to, value, data, gas } = call
  const transfer = { from, to, value, gas, ...(data !== undefined && { input: data }) }
  const { to: token, data: input } = balance as { to: Hex; data: Hex }
  const read = { from, to: token, input }
  return ['eth_simulateV1', { blockStateCalls: [{ calls: [read, transfer, read] }] }, at(block)]
}

/** The trial in an answer; undefined where it is no simulation of three calls. */
function trialOf(blocks: SimulatedBlock[]): Trial | undefined {
  const [before, transfer, after] = blocks[0]?.calls ?? []
  if (before === undefined || transfer === undefined || after === undefined) return undefined
  if (hexToBigInt(transfer.status) !== 1n) {
    const error = new NodeError(
      'eth_simulateV1',
      transfer.error ?? { code: 3, message: 'execution reverted' },
    )
    // Only eth_call tells about a failure that is not the contract's.
    return says(error, 'reverted') ? { answer: error } : undefined
  }
  const held = [before, after].map(({ status, returnData }) =>
    hexToBigInt(status) === 1n && returnData !== '0x' ? hexToBigInt(returnData) : undefined,
  )
  const [held0, held1] = held
  if (held0 === undefined || held1 === undefined) return { answer: transfer.returnData }
  return { answer: transfer.returnData, arrives: held1 > held0 ? held1 - held0 : 0n }
}

const METHOD_NOT_FOUND = -32601

const isUnknownMethod = ({ code, message }: NodeError): boolean =>
  code === METHOD_NOT_FOUND || /method.*(not|un)|unsupported|unknown method/i.test(message)
