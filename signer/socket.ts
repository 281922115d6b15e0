import { once } from 'node:events'
import { lstat, rm } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'

/**
 * Listens at a unix socket, as the only process that does; the file of one that was killed is replaced. Throws an Error
 * where another process listens there, or the file is no socket.
 */
export async function listenAlone(path: string, server: Server = createServer()): Promise<Server> {
  if (await isAnswered(path)) throw new Error(`another process listens at ${path}`)
  const file = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file !== undefined && !file.isSocket()) throw new Error(`${path} is no socket`)
  await rm(path, { force: true })
  server.listen(path)
  await once(server, 'listening')
  return server
}

async function isAnswered(path: string): Promise<boolean> {
  const socket = createConnection(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ECONNREFUSED', 'ENOTSOCK'].includes(code)) return false
    throw error
  } finally {
    socket.destroy()
  }
}

/** For the commands, which do not see the families of chains. */
export { signerClient } from '../chains/kit/remote-signer.ts'
