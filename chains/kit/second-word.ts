import { NodeFailure } from '../../src/networks/node-failure.ts'
import { PERSON_JUDGES } from '../../src/networks/one-node.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/**
 * What a second node says of the same transaction, after "the second node": undefined where it says the same; else why it
 * cannot tell yet, or what it says instead.
 */
export type SecondWord = { waits: string } | { differs: string } | undefined

/** Only a person or a changed configuration ends the wait for a second node that is not configured. */
const ALONE_RECHECK_MS = 60_000

/**
 * Why what a node says of a transaction's end is not believed yet; undefined where a second node says the same. By the false
 * word of a single node, a withdrawal would be paid and refunded, or paid twice. In a sandbox one node suffices. `says` is the
 * node's word, and `alone` what an operator does where there is no second node.
 */
export async function doubtOf<Node>(
  { second, mode }: { second: Node | undefined; mode: 'live' | 'sandbox' },
  says: string,
  ask: (second: Node) => Promise<SecondWord>,
  alone: string = PERSON_JUDGES,
): Promise<WaitingReason | undefined> {
  if (second === undefined)
    return mode === 'live'
      ? { code: 'UNRESOLVED', detail: `${says}; ${alone}`, recheckMs: ALONE_RECHECK_MS }
      : undefined
  const word = await ask(second).catch((error: unknown): SecondWord => {
    if (error instanceof NodeFailure) return { waits: `cannot tell: ${error.message}` }
    throw error
  })
  if (word === undefined) return undefined
  return 'waits' in word
    ? { code: 'SECOND_NODE', detail: `${says}, and the second node ${word.waits}` }
    : { code: 'NODES_DISAGREE', detail: `${says}, and the second node ${word.differs}` }
}
