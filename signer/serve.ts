import { once } from 'node:events'
import { chmod, readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { json } from 'node:stream/consumers'
import { BackEndFailure } from './back-end.ts'
import { readChange } from './journal-changes.ts'
import type { Listen } from './config.ts'
import { listenAlone } from './socket.ts'
import type { MoveRequest } from './family.ts'
import { Early, isRefusal } from './refused.ts'
import type { PaymentToJudge, SignRequest } from './rules.ts'
import type { Signer } from './service.ts'
import type { SignedStatement } from '../src/contract/approval.ts'

/** The bytes of a transaction, with those that it spends in Bitcoin's family. Nothing else is answered while they are read. */
const BODY_BYTES_MAX = 32 * 1024 * 1024
/** A batch of payments, each with its approvals of some kilobytes. */
const EVIDENCE_BYTES_MAX = 4 * 1024 * 1024

/**
 * Serves the signer at a unix socket, or over TLS to clients with a certificate of the configured authority. Throws an Error
 * where another process listens there.
 */
export async function serveSigner(signer: Signer, listen: Listen): Promise<Server> {
  const answer = (request: IncomingMessage, response: ServerResponse) => void reply(signer, request, response)
  if (typeof listen !== 'string') {
    const [cert, key, ca] = await Promise.all(
      [listen.certificate, listen.key, listen.client_ca].map((path) => readFile(path)),
    )
    const server = createTlsServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, answer)
    server.listen(listen.port, listen.host)
    await once(server, 'listening')
    return server
  }
  const server = createServer(answer)
  await listenAlone(listen, server)
  await chmod(listen, 0o660)
  return server
}

async function reply(signer: Signer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const send = (status: number, body: object) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  try {
    if (request.method === 'GET' && request.url === '/v1/status') {
      await signer.check([])
      return send(200, { wallets: await signer.status() })
    }
    if (request.method !== 'POST')
      return send(405, {
        refused: 'POST /v1/sign, /v1/move, /v1/addresses, /v1/check or /v1/journal, or GET /v1/status',
      })
    const length = Number(request.headers['content-length'] ?? BODY_BYTES_MAX + 1)
    if (length > BODY_BYTES_MAX)
      return send(413, { refused: `a request has ${BODY_BYTES_MAX} bytes at most` })
    const body = await json(request)
    const { unsigned } = Object(body) as { unsigned?: unknown }
    if (length - (typeof unsigned === 'string' ? unsigned.length : 0) > EVIDENCE_BYTES_MAX)
      return send(413, {
        refused: `a request has ${EVIDENCE_BYTES_MAX} bytes at most beside its transaction`,
      })
    if (request.url === '/v1/sign') return send(200, await signer.sign(body as SignRequest))
    if (request.url === '/v1/move') return send(200, await signer.move(body as MoveRequest))
    if (request.url === '/v1/addresses') {
      const { network, asked } = body as { network: string; asked: Parameters<Signer['addresses']>[1] }
      return send(200, { addresses: await signer.addresses(network, asked) })
    }
    if (request.url === '/v1/check') {
      const { payments } = body as { payments: PaymentToJudge[] }
      return send(200, { refused: await signer.check(payments) })
    }
    if (request.url === '/v1/journal') {
      const { change, approvals } = body as { change: unknown; approvals: SignedStatement[] }
      return send(200, { changed: true, ...(await signer.change(readChange(change), approvals)) })
    }
    return send(404, { refused: 'there is nothing at this path' })
  } catch (error) {
    // Nothing was signed. Only the message leaves.
    if (isRefusal(error))
      return send(409, { refused: error.message, ...(error instanceof Early && { early: true }) })
    if (error instanceof BackEndFailure) return send(503, { refused: error.message })
    send(500, { refused: error instanceof Error ? error.message : 'the signer failed' })
  }
}
