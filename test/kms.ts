import { secp256k1 } from '@noble/curves/secp256k1.js'
import { createHash, createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { freePort } from './free-port.ts'

const REGION = 'eu-central-1'
const ALIAS = 'alias/ethereum-hot'
const CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'AKIDTEST',
  AWS_SECRET_ACCESS_KEY: 'secret',
  // It warns of Node 20 otherwise, which its versions of 2027 no longer run on.
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
}

/** What a stand-in does with a request to sign, beside signing. */
type Fault = 'throttled' | 'hangs' | 'another digest' | 'no signature'

export const newKey = (namedCurve = 'secp256k1') => generateKeyPairSync('ec', { namedCurve })

/**
 * A stand-in for AWS KMS with one key: it takes only requests that are signed with its credentials (SigV4), answers as KMS does,
 * and really signs, with a random k and a high s every other time. The credentials are in the environment until it stops.
 */
export async function startKms() {
  const requests: string[] = []
  let key = newKey()
  let fault: Fault | undefined
  const mended = new EventEmitter()
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const operation = String(request.headers['x-amz-target']).replace('TrentService.', '')
      requests.push(operation)
      if (operation === 'Sign' && fault === 'hangs') await once(mended, 'mended')
      const { status = 200, ...answer } = reply(key, fault, operation, request, body)
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' })
      response.end(JSON.stringify(answer))
    })
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const port = await listen(await freePort())
  const before = Object.fromEntries(Object.keys(CREDENTIALS).map((name) => [name, process.env[name]]))
  Object.assign(process.env, CREDENTIALS)
  const down = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    requests,
    environment: CREDENTIALS,
    section: { kms: { key_id: ALIAS, region: REGION, endpoint: `http://127.0.0.1:${port}` } },
    /** What hangs is answered once the fault has ended. */
    fail(next?: Fault) {
      fault = next
      if (next === undefined) mended.emit('mended')
    },
    /** The alias names another key from now on. */
    point(to = newKey()) {
      const old = key
      key = to
      return old
    },
    down,
    up: () => listen(port),
    async stop() {
      for (const [name, value] of Object.entries(before))
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      if (server.listening) await down()
    },
  }
}
export type Kms = Awaited<ReturnType<typeof startKms>>

type Answer = { status?: number } & Record<string, unknown>

const refusal = (type: string, message: string): Answer => ({ status: 400, __type: type, message })

function reply(
  { publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject },
  fault: Fault | undefined,
  operation: string,
  request: IncomingMessage,
  body: string,
): Answer {
  if (request.headers.authorization !== authorizationOf(request, body))
    return refusal('InvalidSignatureException', 'The request signature we calculated does not match')
  const { KeyId, Message, MessageType, SigningAlgorithm } = JSON.parse(body) as Record<string, string>
  if (KeyId !== ALIAS) return refusal('NotFoundException', `Alias ${KeyId} is not found.`)
  const { crv, d } = privateKey.export({ format: 'jwk' })
  if (operation === 'GetPublicKey')
    return {
      KeyId,
      KeySpec: crv === 'secp256k1' ? 'ECC_SECG_P256K1' : 'ECC_NIST_P256',
      PublicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    }
  if (operation !== 'Sign' || MessageType !== 'DIGEST' || SigningAlgorithm !== 'ECDSA_SHA_256')
    return refusal('ValidationException', 'this stand-in only signs digests by ECDSA_SHA_256')
  if (fault === 'throttled') return refusal('ThrottlingException', 'Rate exceeded')
  const digest = Buffer.from(fault === 'another digest' ? 'A'.repeat(43) : Message!, 'base64')
  if (digest.length !== 32) return refusal('ValidationException', 'Digest is invalid length')
  const signature = secp256k1.sign(digest, Buffer.from(d!, 'base64url'), {
    ...{ prehash: false, lowS: false, extraEntropy: true, format: 'der' },
  })
  const Signature = Buffer.from(fault === 'no signature' ? [48, 0] : signature).toString('base64')
  return { KeyId, Signature, SigningAlgorithm }
}

/** The header with which a request is authorized, by AWS's Signature Version 4. */
function authorizationOf({ headers, method, url }: IncomingMessage, body: string): string {
  const [, signed = ''] = /SignedHeaders=([^,]*)/.exec(headers.authorization ?? '') ?? []
  const time = String(headers['x-amz-date'])
  const scope = `${time.slice(0, 8)}/${REGION}/kms/aws4_request`
  const hash = (data: string) => createHash('sha256').update(data).digest('hex')
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest()
  const canonical = [
    ...[method, url, ''],
    ...signed.split(';').map((name) => `${name}:${String(headers[name])}`),
    ...['', signed, hash(body)],
  ].join('\n')
  const secret = `AWS4${CREDENTIALS.AWS_SECRET_ACCESS_KEY}`
  const signature = hmac(
    scope.split('/').reduce<string | Buffer>((key, part) => hmac(key, part), secret),
    ['AWS4-HMAC-SHA256', time, scope, hash(canonical)].join('\n'),
  ).toString('hex')
  return `AWS4-HMAC-SHA256 Credential=${CREDENTIALS.AWS_ACCESS_KEY_ID}/${scope}, SignedHeaders=${signed}, Signature=${signature}`
}
