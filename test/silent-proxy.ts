import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * A TCP proxy that can fall silent: it then accepts connections and bytes and answers nothing, like a machine that has lost
 * its power. Connections from before `speak` stay silent for ever. New ones work after `speak`, as when a standby has taken
 * over the address. Close the proxy at the end.
 */
export async function startSilentProxy(target: string) {
  const { hostname, port } = new URL(target)
  const clients = new Set<Socket>()
  const upstreams = new Set<Socket>()
  let isSilent = false
  const server = createServer((client) => {
    clients.add(client)
    client.on('error', () => undefined).on('close', () => clients.delete(client))
    if (isSilent) return
    const upstream = connect(Number(port), hostname)
    upstreams.add(upstream)
    client.on('data', (chunk) => void upstream.write(chunk)).on('close', () => upstream.destroy())
    upstream.on('data', (chunk) => void client.write(chunk)).on('error', () => undefined)
    upstream.on('close', () => {
      // The machine that is gone closes nothing.
      if (upstreams.delete(upstream)) client.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    /** The target's address with the proxy in it. */
    address: Object.assign(new URL(target), { host }).href,
    fallSilent() {
      isSilent = true
      const gone = [...upstreams]
      upstreams.clear()
      for (const upstream of gone) upstream.destroy()
    },
    speak: () => void (isSilent = false),
    async close() {
      for (const client of clients) client.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
