import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

/**
 * A TCP proxy that resets connections: each one after it has passed back at most `bytesMax` bytes, drawn by `random`. Close
 * it at the end.
 */
export async function startCuttingProxy(target: string, bytesMax: number, random: () => number) {
  const { hostname, port } = new URL(target)
  let cuts = 0
  const server = createServer((client) => {
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
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    close: async () => void server.close(),
  }
}
