import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ACCEPTS_GZIP } from './compression.ts'

interface KeptText {
  etag: string
  gzipped: Buffer
}

/**
 * Makes the handler for a large text that changes rarely or never; `cacheControl` says which. The handler compresses the
 * text once, and answers 304 to a client that has the text (RFC 9110, 13.1.2). Writing the API document for each request
 * took 100 ms of CPU.
 */
export function keptText(
  read: () => Promise<string>,
  type: string,
  cacheControl = 'no-cache',
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  let kept: Promise<KeptText> | undefined
  let source: string | undefined
  return async (request, reply) => {
    const text = await read()
    if (kept === undefined || source !== text) {
      source = text
      kept = keep(text)
    }
    const { etag, gzipped } = await kept
    reply.type(type).headers({ etag, 'cache-control': cacheControl, vary: 'accept-encoding' })
    if (request.headers['if-none-match']?.includes(etag)) return reply.status(304).send()
    return ACCEPTS_GZIP.test(request.headers['accept-encoding'] ?? '')
      ? reply.header('content-encoding', 'gzip').send(gzipped)
      : reply.send(text)
  }
}

async function keep(text: string): Promise<KeptText> {
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 22)
  return { etag: `W/"${digest}"`, gzipped: await promisify(gzip)(text) }
}
