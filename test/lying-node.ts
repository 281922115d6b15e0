/* A proxy in front of a node that passes the node's answers on, except for those that a test replaces. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Call {
  id: number
  method: string
  params: unknown[]
}
/** A node's answer to a call. */
export interface Answer {
  id?: number
  result?: unknown
  error?: { code: number; message: string }
}

export async function startLyingNode(rpcUrl: string) {
  const state: {
    /** Returns a false answer to a call, or undefined to keep the true one. */
    lie: (call: Call, answer: Answer) => Answer | undefined | Promise<Answer | undefined>
    /** Largest reply in bytes. A larger one becomes HTTP 413. */
    bytesMax: number
    /** Number of requests so far. */
    requests: number
  } = { lie: () => undefined, bytesMax: Infinity, requests: 0 }
  const server = createServer((request, reply) => {
    void (async () => {
      state.requests += 1
      const body = await text(request)
      const { authorization } = request.headers
      const forwarded = await fetch(request.url === '/' ? rpcUrl : new URL(request.url!, rpcUrl), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
        body,
      })
      const asked = JSON.parse(body) as Call | Call[]
      const calls = [asked].flat()
      const answers = [await forwarded.json()].flat() as Answer[]
      const told: object[] = []
      for (const answer of answers) {
        const call = calls.find(({ id }) => id === answer.id)!
        const lie = await state.lie(call, answer)
        told.push(lie === undefined ? answer : { jsonrpc: '2.0', id: answer.id, ...lie })
      }
      const sent = JSON.stringify(Array.isArray(asked) ? told : told[0])
      if (sent.length > state.bytesMax) return reply.writeHead(413).end()
      return reply.writeHead(200, { 'content-type': 'application/json' }).end(sent)
    })().catch(() => reply.writeHead(502).end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(state, {
    rpcUrl: `http://127.0.0.1:${port}`,
    tellTheTruth: () => Object.assign(state, { lie: () => undefined, bytesMax: Infinity }),
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}
