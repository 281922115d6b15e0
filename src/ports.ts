import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Draws a port below those that systems give to outgoing connections, so that none takes it while its server restarts. */
export const drawPort = (): number => randomInt(20_000, 30_000)

/** Listens on the port until what it returns is called. Throws where the port or the host is refused. */
export async function holdPort(port: number, host: string): Promise<() => Promise<void>> {
  const server = createServer().unref()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  return () => new Promise((resolve) => server.close(() => resolve()))
}

/** Listens on a free port, like `holdPort`. */
export async function holdFreePort(host: string): Promise<{ port: number; release: () => Promise<void> }> {
  const port = drawPort()
  try {
    return { port, release: await holdPort(port, host) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return holdFreePort(host)
  }
}
