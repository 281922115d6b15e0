import type { Hex } from 'viem'
import { hexToBigInt, hexToNumber } from 'viem/utils'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { NodeError, says, type Block, type EvmNode } from './node.ts'
import type { EvmChain, Token } from './chain.ts'
import { checkedOnce, requireGenesis } from '../../src/networks/genesis.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'

/**
 * Checks that a node is on the configured chain: by its chain id, by the hash of its first block, which the database keeps
 * from the first answer on, and by the decimals of the tokens' contracts. The node is asked once, and again after a failure
 * or an answer that a node of another chain would give.
 */
export function chainIdentity(
  network: CryptoNetwork,
  chainId: number,
  node: EvmNode,
  tokens: ReadonlyMap<string, Token>,
  db: Database,
): Pick<EvmChain, 'ready' | 'markStale'> {
  async function requireChain(): Promise<void> {
    const [found, first] = await node.each<unknown>([['eth_chainId'], ['eth_getBlockByNumber', '0x0', false]])
    if (found instanceof NodeError) throw found
    if (hexToNumber(found as Hex) !== chainId)
      throw new NodeFailure(`the node of ${network} is on chain ${hexToNumber(found as Hex)}, not ${chainId}`)
    // Nodes that keep no old blocks have no answer.
    if (first === null || first instanceof NodeError) return
    await requireGenesis(db, network, (first as Block).hash)
  }

  const check = checkedOnce(() => requireChain().then(() => requireDecimals(network, node, tokens)))
  return { ready: () => check.get(), markStale: () => check.markStale() }
}

/**
 * Throws a NodeFailure where a token's contract has other decimals than the catalogue: amounts would be wrong by powers of
 * ten. Skips an address without code, which moves nothing: a test network has no contract of most tokens.
 */
async function requireDecimals(
  network: CryptoNetwork,
  node: EvmNode,
  tokens: ReadonlyMap<string, Token>,
): Promise<void> {
  const listed = [...tokens]
  const answers = await node.each<Hex>(
    listed.map(([, { address }]) => ['eth_call', { to: address, data: DECIMALS_CALL }, 'latest'] as const),
  )
  for (const [index, [asset, { address, decimals }]] of listed.entries()) {
    const answer = answers[index]!
    if (answer instanceof NodeError && !says(answer, 'reverted')) throw answer
    if (answer === '0x') continue
    const found = answer instanceof NodeError ? undefined : hexToBigInt(answer)
    if (found !== BigInt(decimals))
      throw new NodeFailure(
        `${network} is not used: the contract of ${asset} at ${address} ` +
          `${found === undefined ? 'does not tell its decimals' : `has ${found} decimals`}, and the catalogue has ${decimals}`,
      )
  }
}

/** decimals(), as ERC-20 has it. */
const DECIMALS_CALL = '0x313ce567'
