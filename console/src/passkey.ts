import { sha256 } from './statement.ts'

/** Signing with a passkey that belongs to an approver. */

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')

export interface ApproverPasskey {
  id: string
  credential_id: string
  rp_id: string
}

/** Asks the person to sign a text with a passkey: its challenge is the SHA-256 of the text. Returns the body of the decision. */
export async function signText(
  text: string,
  { id: approver_id, credential_id, rp_id }: ApproverPasskey,
): Promise<object> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON({
    challenge: base64url(await sha256(text)),
    rpId: rp_id,
    allowCredentials: [{ id: credential_id, type: 'public-key' }],
    userVerification: 'required',
  })
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  const { response } = credential.toJSON() as AuthenticationResponseJSON
  return {
    approver_id,
    passkey: {
      authenticator_data: response.authenticatorData,
      client_data_json: response.clientDataJSON,
      signature: response.signature,
    },
  }
}
