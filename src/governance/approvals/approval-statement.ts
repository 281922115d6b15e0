import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import type { Actor } from '../../contract/actor.ts'
import type { ApprovalDecision, SignedStatement } from '../../contract/approval.ts'

/**
 * The statement that an approver signs, and its signatures (API behaviour, Approvals). A statement is a JSON text whose
 * members have a fixed order, so whoever checks a signature can rebuild the same text from the records. Nothing here reads
 * a clock or the database.
 */

/** The payment of a withdrawal, as its approvers sign it. */
interface ApprovedPayment {
  profile_id: string
  network: string
  asset: string
  /** A decimal string without trailing zeros. */
  amount: string
  /** The address as the client sent it; of a wire, the bank account with its owner and instructions. */
  destination: unknown
  memo: string | null
}

/** What approvers decide about: a withdrawal, or a change of a record. */
type ApprovalSubject =
  | { type: 'transfer'; id: string; payment: ApprovedPayment }
  | { type: string; id: string; operation: string; digest: string }

export interface StatementOf {
  approval_id: string
  customer_id: string
  subject: ApprovalSubject
  required: number
  role: string
  rule_id: string | null
  policy_version: number
  initiator: Actor
  /** RFC 3339, as the database writes it. */
  deadline: string
}

export function statementText(decision: ApprovalDecision, of: StatementOf): string {
  const { approval_id, customer_id, subject, required, role, rule_id, policy_version, initiator, deadline } =
    of
  return JSON.stringify({
    statement: 'bursar-approval/v1',
    decision,
    approval_id,
    customer_id,
    subject: subjectOf(subject),
    required,
    role,
    rule_id,
    policy_version,
    initiator: { type: initiator.type, id: initiator.id },
    deadline,
  })
}

function subjectOf(subject: ApprovalSubject): object {
  if ('digest' in subject) {
    const { type, id, operation, digest } = subject
    return { type, id, operation, digest }
  }
  const { profile_id, network, asset, amount, destination, memo } = subject.payment
  const { type, id } = subject
  return { type, id, profile_id, network, asset, amount, destination, memo }
}

// ---------------------------------------------------------------------------------------------- keys

/** An approver's public key: Ed25519 or P-256, and for a passkey its credential (RFC 7517, 8037). */
export interface ApproverKey {
  kty: 'OKP' | 'EC'
  crv: 'Ed25519' | 'P-256'
  x: string
  y?: string
  /** For a passkey only: the credential, and the domain that its signatures are for. */
  credential_id?: string
  rp_id?: string
}

const ALGORITHMS = { Ed25519: 'EdDSA', 'P-256': 'ES256' } as const

/** Longest id of a credential, in base64url: 1023 bytes (Web Authentication, 4). */
const CREDENTIAL_ID_LENGTH_MAX = 1_364

/**
 * Reads a public key, with the credential_id and rp_id of a passkey. Throws an Error that names the fault for any other key,
 * and for a private one.
 */
export function readApproverKey(jwk: JsonWebKey | Record<string, unknown>): ApproverKey {
  const { kty, crv, x, y, d } = jwk
  if (d !== undefined) throw new Error('the key is a private key: give the public one, without d')
  const known =
    (kty === 'OKP' && crv === 'Ed25519') || (kty === 'EC' && crv === 'P-256' && typeof y === 'string')
  if (!known || typeof x !== 'string')
    throw new Error('the key must be a JWK of Ed25519 (kty OKP) or P-256 (kty EC)')
  try {
    createPublicKey({ key: jwk, format: 'jwk' })
  } catch (cause) {
    throw new Error('the key is not a point of its curve', { cause })
  }
  const passkey = passkeyOf(jwk)
  return kty === 'OKP'
    ? { kty, crv: 'Ed25519', x, ...passkey }
    : { kty: 'EC', crv: 'P-256', x, y: y as string, ...passkey }
}

/** The credential and domain of a passkey's key; empty for a key from a key file. Throws an Error for a wrong one. */
function passkeyOf({ credential_id, rp_id }: Record<string, unknown>): Partial<ApproverKey> {
  if (credential_id === undefined && rp_id === undefined) return {}
  if (
    typeof credential_id !== 'string' ||
    !/^[A-Za-z0-9_-]+$/.test(credential_id) ||
    credential_id.length > CREDENTIAL_ID_LENGTH_MAX
  )
    throw new Error("credential_id must be the id of the passkey's credential in base64url, beside its rp_id")
  if (
    typeof rp_id !== 'string' ||
    !URL.canParse(`https://${rp_id}/`) ||
    new URL(`https://${rp_id}`).host !== rp_id
  )
    throw new Error("rp_id must be the passkey's domain in lower case, beside its credential_id")
  return { credential_id, rp_id }
}

/** Returns the thumbprint of a key, by which equal keys are found (RFC 7638). */
export function thumbprintOf({ kty, crv, x, y }: ApproverKey): string {
  const text = y === undefined ? JSON.stringify({ crv, kty, x }) : JSON.stringify({ crv, kty, x, y })
  return createHash('sha256').update(text).digest('base64url')
}

/** A new key pair for a key file: Ed25519, as a private JWK. */
export const newPrivateKey = (): JsonWebKey =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })

/** Returns the public part of a private JWK. Throws an Error for a key that cannot sign. */
export function publicPartOf(privateJwk: JsonWebKey): ApproverKey {
  const { d: _, ...rest } = privateJwk
  if (typeof privateJwk.d !== 'string') throw new Error('the key file has no private key (d)')
  return readApproverKey(rest)
}

// ---------------------------------------------------------------------------------------------- signatures

/** A passkey's assertion over a statement (Web Authentication, 5.2.2). Each member is base64url. */
type PasskeyAssertion = Extract<SignedStatement, { passkey: unknown }>['passkey']

const JWS_TYPE = 'bursar-approval+jws'

/** Signs a text with a private key, as a compact JWS. Throws an Error for a key that cannot sign. */
export function signStatement(text: string, privateJwk: JsonWebKey): { jws: string } {
  const { crv } = publicPartOf(privateJwk)
  const header = base64url(JSON.stringify({ alg: ALGORITHMS[crv], typ: JWS_TYPE }))
  const signed = `${header}.${base64url(text)}`
  const key = createPrivateKey({ key: privateJwk, format: 'jwk' })
  const signature =
    crv === 'Ed25519'
      ? sign(null, Buffer.from(signed), key)
      : sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return { jws: `${signed}.${signature.toString('base64url')}` }
}

/** The challenge that a passkey signs for a text: its SHA-256, in base64url. */
export const challengeOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/**
 * Returns the objection to a signature over exactly this text by this key; undefined for a valid signature. Never throws:
 * a signature that cannot be read is an objection.
 */
export function objectionToSignature(
  text: string,
  signed: SignedStatement,
  key: ApproverKey,
): string | undefined {
  try {
    if ('jws' in signed) {
      if (key.credential_id !== undefined) return "the approver's key is a passkey, which makes no JWS"
      return objectionToJws(text, signed.jws, key)
    }
    return objectionToAssertion(text, signed.passkey, key)
  } catch {
    return 'the signature cannot be read'
  }
}

function objectionToJws(text: string, jws: string, key: ApproverKey): string | undefined {
  const [header = '', payload = '', signature = '', ...rest] = jws.split('.')
  if (rest.length > 0) return 'the JWS does not have three parts'
  const { alg, typ, crit } = JSON.parse(fromBase64url(header).toString()) as Record<string, unknown>
  // The key determines the algorithm; the header must not choose another.
  if (alg !== ALGORITHMS[key.crv]) return `the JWS must have the alg ${ALGORITHMS[key.crv]}`
  if (typ !== JWS_TYPE) return `the JWS must have the typ ${JWS_TYPE}`
  if (crit !== undefined) return 'the JWS has critical extensions'
  if (fromBase64url(payload).toString() !== text)
    return 'another statement is signed: it is for another approval, decision, payment or policy version'
  const publicKey = publicKeyOf(key)
  const isRight = isSignature(`${header}.${payload}`, fromBase64url(signature), publicKey, key, 'ieee-p1363')
  return isRight ? undefined : "the signature is not by the approver's key"
}

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04

function objectionToAssertion(
  text: string,
  { authenticator_data, client_data_json, signature }: PasskeyAssertion,
  key: ApproverKey,
): string | undefined {
  if (key.credential_id === undefined || key.rp_id === undefined) return "the approver's key is no passkey"
  const clientData = fromBase64url(client_data_json)
  const authenticatorData = fromBase64url(authenticator_data)
  const { type, challenge, origin, crossOrigin } = JSON.parse(clientData.toString()) as Record<
    string,
    unknown
  >
  if (type !== 'webauthn.get') return 'the passkey made no assertion'
  if (challenge !== challengeOf(text))
    return 'another statement is signed: it is for another approval, decision, payment or policy version'
  const host = URL.canParse(String(origin)) ? new URL(String(origin)).hostname : ''
  if (crossOrigin === true || (host !== key.rp_id && !host.endsWith(`.${key.rp_id}`)))
    return `the passkey signed for another origin than ${key.rp_id}`
  const rpIdHash = createHash('sha256').update(key.rp_id).digest()
  if (!authenticatorData.subarray(0, 32).equals(rpIdHash)) return 'the passkey signed for another domain'
  const flags = authenticatorData[32] ?? 0
  if ((flags & USER_PRESENT) === 0 || (flags & USER_VERIFIED) === 0)
    return 'the passkey did not verify its user'
  const signed = Buffer.concat([authenticatorData, createHash('sha256').update(clientData).digest()])
  return isSignature(signed, fromBase64url(signature), publicKeyOf(key), key, 'der')
    ? undefined
    : "the signature is not by the approver's key"
}

const publicKeyOf = ({ kty, crv, x, y }: ApproverKey): KeyObject =>
  createPublicKey({ key: { kty, crv, x, ...(y !== undefined && { y }) }, format: 'jwk' })

function isSignature(
  signed: string | Buffer,
  signature: Buffer,
  key: KeyObject,
  { crv }: ApproverKey,
  dsaEncoding: 'der' | 'ieee-p1363',
): boolean {
  const bytes = Buffer.from(signed as string)
  return crv === 'Ed25519'
    ? verify(null, bytes, key, signature)
    : verify('sha256', bytes, { key, dsaEncoding }, signature)
}

const base64url = (text: string) => Buffer.from(text).toString('base64url')

/** Throws unless the text is the one encoding of its bytes, so that a signature has one spelling. */
function fromBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) throw new Error('not base64url')
  return bytes
}
