import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'

/** Time limit to receive a request: a scraper needs milliseconds. */
const RECEIVE_MS_MAX = 5_000
const CONNECTIONS_MAX = 100

export interface MetricsServer {
  address: string
  close(): Promise<void>
}

/** Serves the metrics at /metrics, on a separate port that need not be open to clients of the API. */
export async function serveMetrics(
  registry: Registry,
  { host, port }: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer(
    { requestTimeout: RECEIVE_MS_MAX, headersTimeout: RECEIVE_MS_MAX },
    (request, response) => {
      if (request.url?.split('?')[0] !== '/metrics' || request.method !== 'GET')
        return void response.writeHead(404).end()
      registry.metrics().then(
        (text) => response.setHeader('content-type', registry.contentType).end(text),
        (error: unknown) => response.writeHead(500).end(String(error)),
      )
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  const { address, family, port: listening } = server.address() as AddressInfo
  return {
    address: `http://${family === 'IPv6' ? `[${address}]` : address}:${listening}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
