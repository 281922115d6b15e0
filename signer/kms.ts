import { once } from 'node:events'
import { BACK_END_MS_MAX, BackEndFailure, type BackEnd } from './back-end.ts'

export interface KmsKey {
  /** Its id, its ARN, or an alias with its prefix. */
  key_id: string
  region: string
  /** Another address of KMS: that of a VPC endpoint. */
  endpoint?: string
}

/** A key in AWS KMS, with the credentials that AWS's library finds in the environment of the process or its machine. */
export async function openKms(
  { key_id: KeyId, region, endpoint }: KmsKey,
  msMax = BACK_END_MS_MAX,
): Promise<BackEnd> {
  const { GetPublicKeyCommand, KMSClient, SignCommand } = await kmsLibrary()
  const client = new KMSClient({ region, ...(endpoint !== undefined && { endpoint }) })
  const name = `AWS KMS, key ${KeyId}`
  const within = async <T>(ask: (options: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> => {
    const abortSignal = AbortSignal.timeout(msMax)
    // The library gets credentials, too, which may hang and cannot be aborted.
    const tooLong = once(abortSignal, 'abort').then(() => Promise.reject(new Error('too long')))
    try {
      return await Promise.race([ask({ abortSignal }), tooLong])
    } catch (error) {
      const { name: kind, message, code } = error as Error & { code?: string }
      const why = abortSignal.aborted ? `no answer within ${msMax / 1000} s` : `${kind}: ${message || code}`
      throw new BackEndFailure(`${name}: ${why}`, { cause: error })
    }
  }
  return {
    name,
    format: 'der',
    async publicKey() {
      const { PublicKey } = await within((options) =>
        client.send(new GetPublicKeyCommand({ KeyId }), options),
      )
      return PublicKey ?? new Uint8Array()
    },
    async sign(digest) {
      const question = {
        KeyId,
        Message: digest,
        MessageType: 'DIGEST',
        SigningAlgorithm: 'ECDSA_SHA_256',
      } as const
      const { Signature } = await within((options) => client.send(new SignCommand(question), options))
      return Signature ?? new Uint8Array()
    },
  }
}

/** The library has 18 MB, so only those who use it install it. */
async function kmsLibrary() {
  try {
    return await import('@aws-sdk/client-kms')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('a key in AWS KMS needs its package: npm install @aws-sdk/client-kms', { cause: error })
  }
}
