import { readApproverKey, type ApproverKey } from '../../governance/approvals/approval-statement.ts'
import type { Passkey } from './passkeys.ts'

/**
 * Returns an approver's key from an operator's passkey. `rpId` is the host to which the browser tied the passkey. Throws an
 * Error for a key that approvers cannot have.
 */
export async function approverKeyOf(
  { id, credential_id, public_key }: Pick<Passkey, 'id' | 'credential_id' | 'public_key'>,
  rpId: string,
): Promise<ApproverKey> {
  const { cose, decodeCredentialPublicKey } = await import('@simplewebauthn/server/helpers')
  const key = decodeCredentialPublicKey(new Uint8Array(public_key))
  const { crv, x, y } = cose.COSEKEYS
  const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('base64url')
  const passkey = { credential_id, rp_id: rpId }
  if (cose.isCOSEPublicKeyOKP(key) && key.get(crv) === cose.COSECRV.ED25519)
    return readApproverKey({ kty: 'OKP', crv: 'Ed25519', x: text(key.get(x)), ...passkey })
  if (cose.isCOSEPublicKeyEC2(key) && key.get(crv) === cose.COSECRV.P256)
    return readApproverKey({ kty: 'EC', crv: 'P-256', x: text(key.get(x)), y: text(key.get(y)), ...passkey })
  throw new Error(`passkey ${id} has a key that approvers cannot have: add one of Ed25519 or P-256`)
}
