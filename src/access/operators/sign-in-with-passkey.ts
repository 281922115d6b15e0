import { isIP } from 'node:net'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { Type } from 'typebox'
import { Closed, Free, Text } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction } from '../../db/database.ts'
import { CHALLENGE_SECONDS, type Challenges } from './challenges.ts'
import { passkeyToWire, SessionSecret } from './fields.ts'
import { lockOperator, recordOperatorChange } from './operators.ts'
import { findPasskey, insertPasskey, listPasskeys, PASSKEYS_MAX, touchPasskey } from './passkeys.ts'
import { originOf, type SignIn } from './sign-in.ts'

/**
 * Passkeys (Web Authentication, level 3): an operator who has signed in adds them, and signs in with them afterwards. The
 * browser ties each to the host of BURSAR_BASE_URL, and the authenticator verifies the person.
 */

const bytesOf = (text: string) => new TextEncoder().encode(text)

// Loaded by the first request that needs it: the library takes 100 ms of a start.
const library = () => import('@simplewebauthn/server')

/** The answer of an authenticator, as `PublicKeyCredential.toJSON` makes it. The library checks all of it. */
const ResponseBody = Type.Unsafe<{ id: string; response: object }>(
  Type.Object({ id: Text(1_400, 'Id of the credential.', 1), response: Type.Object({}, Free) }, Free),
)

const SIGN_IN = 'sign in with a passkey'
/** Only the session that asked may answer: a challenge of another session adds no passkey here. */
const addingOf = (sessionId: string) => `add a passkey in session ${sessionId}`

export function addPasskeys(signIn: SignIn, challenges: Challenges, baseUrl: string): void {
  const { origin, hostname } = new URL(baseUrl)
  addRegistration(signIn, challenges, { origin, hostname })
  addSignIn(signIn, challenges, { origin, hostname })
}

interface Party {
  origin: string
  hostname: string
}

/** Throws bad-request for a base URL with an IP address: browsers make passkeys for host names only. */
function requireName({ hostname }: Party): void {
  if (isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0)
    throw problem.badRequest(
      `passkeys need a host name: BURSAR_BASE_URL names the address ${hostname}; at this machine, http://localhost:<port> will do`,
    )
}

const OptionsBody = Closed({ session_secret: SessionSecret })
const AddBody = Closed({
  session_secret: SessionSecret,
  name: Text(100, 'What the operator calls it, such as the device.', 1),
  response: ResponseBody,
})

function addRegistration(signIn: SignIn, challenges: Challenges, party: Party): void {
  signIn.post('/passkeys/options', OptionsBody, async ({ session_secret }, request) => {
    requireName(party)
    const { session, operator, known } = await transaction(signIn.db, async (tx) => {
      const found = await signIn.requireSession(tx, session_secret, request)
      return { ...found, known: await listPasskeys(tx, found.operator.id) }
    })
    const { generateRegistrationOptions } = await library()
    return generateRegistrationOptions({
      rpName: 'Bursar',
      rpID: party.hostname,
      userName: operator.name,
      userID: bytesOf(operator.id),
      challenge: bytesOf(challenges.make(addingOf(session.id))),
      timeout: CHALLENGE_SECONDS * 1000,
      attestationType: 'none',
      excludeCredentials: known.map(({ credential_id: id }) => ({ id })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    })
  })

  signIn.post('/passkeys', AddBody, async ({ session_secret, name, response }, request) => {
    requireName(party)
    const { verifyRegistrationResponse } = await library()
    return transaction(signIn.db, async (tx) => {
      const { session, operator } = await signIn.requireSession(tx, session_secret, request)
      const challenge = challengeIn(response.response, challenges, addingOf(session.id))
      const verified =
        challenge &&
        (await verifyRegistrationResponse({
          response: response as RegistrationResponseJSON,
          expectedChallenge: challenge.expected,
          expectedOrigin: party.origin,
          expectedRPID: party.hostname,
          requireUserVerification: true,
        }).catch(refused))
      // A second answer to the challenge adds nothing: its passkey is known by then.
      if (verified?.verified !== true)
        throw problem.badRequest(
          'response: the answer of the authenticator is refused; ask for new options',
          'response',
        )
      if ((await listPasskeys(tx, operator.id)).length >= PASSKEYS_MAX)
        throw problem.badRequest(`an operator has at most ${PASSKEYS_MAX} passkeys; remove one first`)
      const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential
      const passkey = await insertPasskey(tx, signIn.macs, {
        operator_id: operator.id,
        name,
        credential_id: id,
        public_key: Buffer.from(publicKey),
        signatures: counter,
        transports,
      })
      if (passkey === undefined) throw problem.badRequest('this passkey is known already')
      const subject = { type: 'passkey', id: passkey.id }
      await recordOperatorChange(tx, operator, 'passkey.create', {
        origin: originOf(operator, request),
        subject,
      })
      return { passkey: passkeyToWire(passkey) }
    })
  })
}

const SignInBody = Closed({ response: ResponseBody })

function addSignIn(signIn: SignIn, challenges: Challenges, party: Party): void {
  const refusal =
    'the passkey is unknown or removed, its answer is refused, or its operator is disabled; sign in another way'
  signIn.post('/sign-in/passkey/options', Closed({}), async () => {
    requireName(party)
    const { generateAuthenticationOptions } = await library()
    // The options name no passkey: the browser offers its own, and nobody learns which operators exist.
    return generateAuthenticationOptions({
      rpID: party.hostname,
      challenge: bytesOf(challenges.make(SIGN_IN)),
      timeout: CHALLENGE_SECONDS * 1000,
      userVerification: 'required',
    })
  })

  signIn.post('/sign-in/passkey', SignInBody, async ({ response }, request) => {
    requireName(party)
    const { verifyAuthenticationResponse } = await library()
    return signIn.open(request, { method: 'PASSKEY', refusal }, async (tx) => {
      const found = await findPasskey(tx, response.id)
      const operator = found && (await lockOperator(tx, found.operator_id))
      // Read again: the passkey may have been removed, or may have signed, before the operator was locked.
      const passkey = found && (await findPasskey(tx, response.id))
      if (passkey === undefined) return undefined
      const answer = response as AuthenticationResponseJSON
      const { userHandle } = answer.response
      const isItsOperators =
        userHandle === undefined || Buffer.from(userHandle, 'base64url').toString() === passkey.operator_id
      const challenge = challengeIn(answer.response, challenges, SIGN_IN)
      const verified =
        challenge &&
        (await verifyAuthenticationResponse({
          response: answer,
          expectedChallenge: challenge.expected,
          expectedOrigin: party.origin,
          expectedRPID: party.hostname,
          credential: {
            id: passkey.credential_id,
            publicKey: new Uint8Array(passkey.public_key),
            counter: Number(passkey.signatures),
            transports: passkey.transports,
          },
          requireUserVerification: true,
        }).catch(refused))
      const holds = isItsOperators && verified?.verified === true
      if (holds) await touchPasskey(tx, passkey.id, verified.authenticationInfo.newCounter)
      const restsOn = { table: 'operator_passkeys', row: passkey } as const
      return { operator, holds, restsOn, usedOnce: challenge?.answered, passkeyId: passkey.id }
    })
  })
}

/** The challenge that an authenticator answered; undefined unless this service made it for this purpose. */
function challengeIn(
  response: object,
  challenges: Challenges,
  purpose: string,
): { answered: string; expected: string } | undefined {
  const { clientDataJSON } = response as { clientDataJSON?: unknown }
  try {
    const text = Buffer.from(String(clientDataJSON), 'base64url').toString()
    const expected = String((JSON.parse(text) as { challenge?: unknown }).challenge)
    const answered = Buffer.from(expected, 'base64url').toString()
    return challenges.isValid(purpose, answered) ? { answered, expected } : undefined
  } catch {
    return undefined
  }
}

/** The library throws for an answer that it refuses. It calls no code of ours, so this hides no other error. */
const refused = () => undefined
