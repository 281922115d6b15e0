import type { DepositVerdict } from '../../src/networks/found-deposits.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { PERSON_JUDGES } from '../../src/networks/one-node.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { namedNodes, within, type NamedNode } from './nodes.ts'

/** Where second nodes are, and how many of them must agree: by default all. */
export interface SecondNodes {
  rpcUrl: string | readonly string[]
  quorum?: number | undefined
}

/** The second nodes, and how many of them must say the same as the first. */
export interface Witnesses<Node> {
  nodes: readonly NamedNode<Node>[]
  quorum: number
}

const FIELD = 'verify_rpc_url'

export function witnessesOf<Node>(
  { rpcUrl, quorum }: SecondNodes,
  open: (url: string) => Node,
): Witnesses<Node> {
  const nodes = namedNodes(FIELD, [rpcUrl].flat(), open)
  return { nodes, quorum: quorum ?? nodes.length }
}

/**
 * What second nodes say of the same transaction, after the name of the node: undefined where they say the same; else why it
 * cannot tell yet, or what it says instead.
 */
export type SecondWord = { waits: string; differs?: never } | { differs: string; waits?: never } | undefined
export type Question<Node> = (node: Node, field: string) => Promise<SecondWord>

/**
 * What the second nodes say together, with their names. Money leaves by what they agree on, so one contradiction is never
 * outvoted; who is behind or does not answer has no vote, and is not waited for long where the others suffice.
 */
export async function wordOf<Node>(
  { nodes, quorum }: Witnesses<Node>,
  ask: Question<Node>,
): Promise<SecondWord> {
  const words = await Promise.all(
    nodes.map(async ({ node, field }) => {
      const asked = quorum < nodes.length ? within(ask(node, field)) : ask(node, field)
      const word = await asked.catch((error: unknown): SecondWord => {
        if (error instanceof NodeFailure) return { waits: `cannot tell: ${error.message}` }
        throw error
      })
      const name = field === FIELD ? 'the second node' : `the node of ${field}`
      return word === undefined ? [] : { ...word, says: `${name} ${word.waits ?? word.differs}` }
    }),
  )
  const others = words.flat()
  const against = others.find(({ differs }) => differs !== undefined)
  if (against !== undefined) return { differs: against.says }
  const agreed = nodes.length - others.length
  return agreed >= quorum ? undefined : { waits: others.map(({ says }) => says).join(', and ') }
}

/** For an operator's command. Throws an Error unless second nodes say the same. */
export function requireWord(hash: string, word: SecondWord): void {
  if (word !== undefined) throw new Error(`${hash}: ${word.waits ?? word.differs}`)
}

/** What a deposit's second nodes say of it. */
export const verdictOf = (word: SecondWord): DepositVerdict =>
  word === undefined
    ? { verdict: 'AGREES' }
    : word.waits === undefined
      ? { verdict: 'DISAGREES', detail: word.differs }
      : { verdict: 'WAITS', detail: word.waits, secondNode: true }

/** Only a person or a changed configuration ends the wait for a second node that is not configured. */
const ALONE_RECHECK_MS = 60_000

/**
 * Why what a node says of a transaction's end is not believed yet; undefined where second nodes say the same. By the false
 * word of a single node, a withdrawal would be paid and refunded, or paid twice. In a sandbox one node suffices. `says` is the
 * node's word, and `alone` what an operator does where there is no second node.
 */
export async function doubtOf<Node>(
  { second, mode }: { second: Witnesses<Node> | undefined; mode: 'live' | 'sandbox' },
  says: string,
  ask: Question<Node>,
  alone: string = PERSON_JUDGES,
): Promise<WaitingReason | undefined> {
  if (second === undefined)
    return mode === 'live'
      ? { code: 'UNRESOLVED', detail: `${says}; ${alone}`, recheckMs: ALONE_RECHECK_MS }
      : undefined
  const word = await wordOf(second, ask)
  if (word === undefined) return undefined
  const code = word.waits === undefined ? 'NODES_DISAGREE' : 'SECOND_NODE'
  return { code, detail: `${says}, and ${word.waits ?? word.differs}` }
}
