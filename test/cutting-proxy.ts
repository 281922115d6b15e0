import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

/**
 * A TCP proxy that resets connections: each one after it has passed back at most `bytesMax` bytes, drawn by `random`. Close
 * it at the end.
 */
export async function startCuttingProxy(target: string, bytesMax: number, random: () => number) {
  const { hostname, port } = new URL(target)
  const clients = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    const upstream = connect(Number(port), hostname)
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    let left = Math.ceil(random() * bytesMax)
    client.on('data', (chunk) => upstream.write(chunk))
    upstream.on('data', (chunk) => {
      left -= chunk.length
      if (left > 0) return void client.write(chunk)
      cuts++
      // The last bytes arrive before the connection is reset, as when a network breaks in the middle of an answer.
      client.write(chunk.subarray(0, chunk.length + left), () => {
        client.resetAndDestroy()
        upstream.destroy()
      })
    })
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
  }).listen(await freePort(), '127.0.0.1')
  await once(server, 'listening')
  const { port: own } = server.address() as AddressInfo
  const close = async () => {
    for (const client of clients) client.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  return {
    address: `http://127.0.0.1:${own}`,
    cuts: () => cuts,
    /** Ends all connections and refuses new ones until `resume`. */
    pause: close,
    async resume() {
      await once(server.listen(own, '127.0.0.1'), 'listening')
    },
    close,
  }
}
