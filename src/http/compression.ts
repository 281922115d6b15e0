import { pipeline, Readable } from 'node:stream'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

/** Shorter answers fit into a packet as they are. */
const BYTES_MIN = 1024
/** Levels as fast as the network is: higher ones cost more time than they save bytes. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }
const GZIP = { level: 4 }
/** Matches an Accept-Encoding that accepts an encoding with a weight above zero (RFC 9110, 12.5.3). */
const accepting = (name: string) => new RegExp(`(?:^|,) *${name} *(?:$|,|; *q=(?!0(?:\\.0*)? *(?:$|,)))`, 'i')
export const ACCEPTS_GZIP = accepting('gzip')
const ACCEPTS_BROTLI = accepting('br')

/**
 * Compresses the JSON of reads for clients that ask for it. The length of a compressed answer tells what of it an attacker
 * has guessed (BREACH), so none is compressed that shows a secret (no read does), or that the page of another site can have
 * a browser request (those carry a cookie).
 */
export function compressAnswers(app: FastifyInstance): void {
  app.addHook<unknown>('onSend', ({ method, headers }, reply, payload, done) => {
    const asked = String(headers['accept-encoding'])
    const isLong = typeof payload === 'string' ? payload.length >= BYTES_MIN : payload instanceof Readable
    const encoding = ACCEPTS_BROTLI.test(asked) ? 'br' : ACCEPTS_GZIP.test(asked) ? 'gzip' : undefined
    const isOpen = method === 'GET' && headers.cookie === undefined && !reply.hasHeader('content-encoding')
    if (!isLong || encoding === undefined || !isOpen || !/json/.test(String(reply.getHeader('content-type'))))
      return done(null, payload)
    reply.header('content-encoding', encoding)
    reply.header('vary', [reply.getHeader('vary') ?? [], 'accept-encoding'].flat().join(', '))
    if (typeof payload === 'string')
      return encoding === 'br' ? brotliCompress(payload, BROTLI, done) : gzip(payload, GZIP, done)
    // A part that fails destroys the stream, so that the client sees an answer that was cut off.
    const encoder = encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
    done(
      null,
      pipeline(payload as Readable, encoder, () => undefined),
    )
  })
}
