import type { Mode } from '../../src/networks/chain-of-mode.ts'
import { checkedOnce } from '../../src/networks/genesis.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import { NodeFailure, NoSigningKey } from '../../src/networks/node-failure.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'

/** How far a node is: its newest block, when that was made (Unix time, seconds), and what the node says that it lacks. */
export interface NodeLook {
  height: number
  madeAt: number | undefined
  lacks?: string | undefined
}

/** A node, and the field of its section that names it. */
export interface NamedNode<Node> {
  field: string
  node: Node
}

/** The nodes of a field that names one or several. */
export const namedNodes = <Node>(
  field: string,
  urls: readonly string[],
  open: (url: string) => Node,
): NamedNode<Node>[] =>
  urls.map((url, index) => ({ field: urls.length === 1 ? field : `${field}[${index}]`, node: open(url) }))

/** No network here makes blocks this far apart: the node lacks the newest. */
const OLD_SECONDS = 300

/** Which nodes are silent or behind, for operators. The age of a block counts in live mode: test networks may rest. */
export async function behindOf<Node>(
  mode: Mode,
  nodes: readonly NamedNode<Node>[],
  look: (node: Node) => Promise<NodeLook>,
): Promise<Pick<NetworkStatus, 'behind'>> {
  const faults = await Promise.all(
    nodes.map(async ({ field, node }) => {
      const seen = await within(look(node)).catch((error: Error) => error)
      if (seen instanceof Error) return `${field}: ${seen.message}`
      const age = Math.floor(Date.now() / 1000) - (seen.madeAt ?? Infinity)
      const isOld = mode === 'live' && age > OLD_SECONDS
      const why = seen.lacks ?? (isOld ? `its newest block is ${age} seconds old` : undefined)
      return why === undefined ? [] : `${field} is at height ${seen.height}: ${why}`
    }),
  )
  const behind = faults.flat().join('; ')
  return behind === '' ? {} : { behind }
}

const ANSWER_MS_MAX = 3_000

/** The answer of a node for which others need not wait long. Throws a NodeFailure where it takes longer. */
export async function within<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const error = new NodeFailure(`the node does not answer within ${ANSWER_MS_MAX / 1000} s`)
    timer = setTimeout(() => reject(error), ANSWER_MS_MAX)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

// ---------------------------------------------------------------------------------------------- one of several

/** Members that ask no node: they answer while none does, and some of them at once. */
const ASK_NO_NODE = ['review', 'refusesDestination', 'readHash', 'newDepositAddress', 'endedTopUps']
const LOOK_EVERY_MS = 5_000
/** How long a node that failed is left. */
const REST_MS = 30_000
/** By time, and not by blocks: ten of them are two minutes on one network, and two seconds on another. */
const LAG_SECONDS = 30

/**
 * One adapter over one node or several: each call goes to the first that answers and is not behind the others. A call is one
 * node's from its beginning to its end, and fails with it: no decision mixes a nonce of one head with balances of another.
 * The next call goes to another node, whose head may be older by `LAG_SECONDS` at most. Before a node that failed is asked
 * again, its chain is checked: by then the same URL may lead to another node.
 */
export function overNodes(
  nodes: readonly {
    field: string
    adapter: NetworkAdapter
    look: () => Promise<NodeLook>
    markStale: () => void
  }[],
): NetworkAdapter {
  const restsUntil = new Map<unknown, number>()
  const leave = (one: unknown) => restsUntil.set(one, Date.now() + REST_MS)
  /** When the newest block was made that was used. A node that was never as far is behind, also once it is alone. */
  let [lookedAt, reached] = [0, 0]
  const check = checkedOnce(async () => {
    const rested = nodes.filter((one) => (restsUntil.get(one) ?? 0) <= Date.now())
    const asked = rested.length > 0 ? rested : nodes
    const looks = await Promise.all(
      asked.map(async (one) => {
        const failed = ({ message }: Error): Partial<NodeLook> => ({ lacks: message })
        const { madeAt = 0, lacks } = await within(one.look()).catch(failed)
        if (lacks !== undefined) leave(one)
        // A node that says it is in the future has no other taken for late.
        return { one, lacks, madeAt: lacks === undefined ? Math.min(madeAt, Date.now() / 1000) : -1 }
      }),
    )
    const best = Math.max(reached, ...looks.map(({ madeAt }) => madeAt))
    const first = looks.find(({ lacks, madeAt }) => lacks === undefined && madeAt + LAG_SECONDS >= best)
    const faults = looks.map(({ one, lacks = 'it is behind' }) => `${one.field}: ${lacks}`)
    if (first === undefined) throw new NodeFailure(`no node can be used: ${faults.join('; ')}`)
    reached = Math.max(reached, first.madeAt)
    return first.one
  })
  const call = async (name: keyof NetworkAdapter, asked: unknown[]) => {
    if (Date.now() - lookedAt > LOOK_EVERY_MS) {
      lookedAt = Date.now()
      check.markStale()
    }
    const one = nodes.length === 1 ? nodes[0]! : await check.get()
    try {
      return await (one.adapter[name] as (...asked: unknown[]) => unknown)(...asked)
    } catch (error) {
      if (isOfNode(error)) {
        one.markStale()
        check.markStale()
        if (!(error instanceof NoSigningKey)) leave(one)
      }
      throw error
    }
  }
  const members = Object.entries(nodes[0]!.adapter).map(([name, value]: [string, unknown]) =>
    typeof value !== 'function' || ASK_NO_NODE.includes(name)
      ? [name, value]
      : [name, (...asked: unknown[]) => call(name as keyof NetworkAdapter, asked)],
  )
  return Object.fromEntries(members) as NetworkAdapter
}

const isOfNode = (error: unknown): boolean =>
  error instanceof NodeFailure || (error instanceof AggregateError && error.errors.some(isOfNode))
