import type { Node, Nodes } from './nodes.ts'
import { Refreshed, type OnFailure } from './refreshed.ts'

/** A value for each node, about the node's customers. A node that hangs delays no other. */
export class RefreshedOfNodes<T> {
  readonly #nodes: Nodes
  readonly #partOf: (node: Node) => Refreshed<T>
  #listed: readonly Node[] = []
  #parts = new Map<string, Refreshed<T>>()
  #timer: NodeJS.Timeout | undefined

  constructor(nodes: Nodes, first: T, read: (node: Node) => Promise<T>, onFailure: OnFailure) {
    this.#nodes = nodes
    this.#partOf = (node) => new Refreshed(first, () => read(node), onFailure)
  }

  /** The parts of the nodes that have customers now, by their names. */
  get parts(): ReadonlyMap<string, Refreshed<T>> {
    const nodes = this.#nodes.list()
    if (nodes !== this.#listed) {
      const partOf = (node: Node) => this.#parts.get(node.name) ?? this.#partOf(node)
      this.#parts = new Map(nodes.map((node) => [node.name, partOf(node)]))
      this.#listed = nodes
    }
    return this.#parts
  }

  /** The part of a customer's node. */
  of(customerId: string): Refreshed<T> {
    return this.parts.get(this.#nodes.nameOf(customerId))!
  }

  follow(everyMs: number): void {
    this.#timer = setInterval(() => {
      for (const part of this.parts.values()) void part.again()
    }, everyMs).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    for (const part of this.#parts.values()) await part.stop()
  }
}
