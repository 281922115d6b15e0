import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

/** How a request is lost: it never arrives, its answer is lost, or the answer is cut off in the middle. */
export type Loss = 'REQUEST' | 'ANSWER' | 'REST_OF_ANSWER'

/** A TCP proxy before an HTTP server, which loses requests on demand. Close it at the end. */
export async function startLossyProxy(target: string) {
  const { hostname, port } = new URL(target)
  let plan: { loss: Loss; start: string; left: number } | undefined
  let lost = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    let losing: Loss | undefined
    client.on('data', (chunk) => {
      if (plan !== undefined && plan.left > 0 && chunk.toString('latin1').startsWith(plan.start)) {
        plan.left--
        lost++
        losing = plan.loss
      }
      if (losing === 'REQUEST') end()
      else upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (losing === 'ANSWER') end()
      else if (losing === 'REST_OF_ANSWER') client.write(chunk.subarray(0, chunk.length - 10), end)
      else client.write(chunk)
    })
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Loses the next requests that begin with this text (`POST /v2/...`). */
    lose(loss: Loss, start: string, times = 1) {
      plan = { loss, start, left: times }
      lost = 0
    },
    lost: () => lost,
    close: async () => void server.close(),
  }
}
