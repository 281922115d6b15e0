import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

// Receivers of webhooks.

export interface Received {
  headers: Record<string, string>
  body: string
  at: number
}

export type Answering = (received: Received, response: ServerResponse, request: IncomingMessage) => void

/** A receiver that keeps what it gets. It answers 204 unless a test says otherwise. */
export async function startReceiver(answer: Answering = (_, response) => response.writeHead(204).end()) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const one = { headers: request.headers as Record<string, string>, body, at: performance.now() }
      received.push(one)
      answer(one, response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook?a=1`, port, received, ids: () => received.map(idOf) }
}

export const idOf = ({ headers }: Received) => headers['webhook-id']!
