import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type * as OpenId from 'openid-client'
import { Closed, Text } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { blame, SettingsError, type Settings } from '../../settings.ts'
import type { Challenges } from './challenges.ts'
import { lockOperatorOf, type OpenIdAccount } from './operators.ts'
import { unauthorized, type SignIn } from './sign-in.ts'

/**
 * Sign-in through an OpenID provider (OpenID Connect Core 1.0, 3.1): the authorization code flow with PKCE, state and
 * nonce. A subject of the provider signs in only if the command line has bound that subject to an operator.
 */

// Loaded by the first request that needs it.
const library = () => import('openid-client')

/** The time limit of each request to the provider, in seconds. */
const PROVIDER_SECONDS_MAX = 5
/** Pause after the provider did not answer. Without it, every anonymous request could cause a call. */
const SILENT_MS = 2_000
const PURPOSE = 'sign in with OpenID'

interface Provider {
  issuer: string
  redirectUri: string
  /** Reads the provider's metadata, once. Throws the 503 problem while the provider does not answer. */
  configuration: () => Promise<OpenId.Configuration>
}

/** The configured provider; undefined without one. Throws `SettingsError` for settings that do not fit together. */
export function openIdProvider(settings: Settings, baseUrl: string): Provider | undefined {
  const { openidIssuer: issuer, openidClientId: clientId, openidClientSecretFile: path } = settings
  if (issuer === undefined && (clientId !== undefined || path !== undefined))
    throw new SettingsError('BURSAR_OPENID_ISSUER: needed with the other settings of OpenID')
  if (issuer === undefined) return undefined
  if (clientId === undefined)
    throw new SettingsError('BURSAR_OPENID_CLIENT_ID: needed with BURSAR_OPENID_ISSUER')
  if (settings.mode === 'live' && !issuer.startsWith('https:'))
    throw new SettingsError('BURSAR_OPENID_ISSUER: live mode needs an address that begins with https://')
  const secret = path === undefined ? undefined : readSecret(path)
  let reading: Promise<OpenId.Configuration> | undefined
  let silentUntil = 0
  return {
    issuer,
    redirectUri: `${baseUrl}/sign-in/openid`,
    async configuration() {
      if (performance.now() < silentUntil) throw silent()
      reading ??= discover(issuer, clientId, secret)
      return reading.catch((error: unknown) => {
        reading = undefined
        silentUntil = performance.now() + SILENT_MS
        throw silent(error)
      })
    },
  }
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    return blame('BURSAR_OPENID_CLIENT_SECRET_FILE')(error as Error)
  }
}

async function discover(
  issuer: string,
  clientId: string,
  secret: string | undefined,
): Promise<OpenId.Configuration> {
  const openid = await library()
  const configuration = await openid.discovery(
    new URL(issuer),
    clientId,
    undefined,
    secret === undefined ? openid.None() : openid.ClientSecretPost(secret),
    {
      timeout: PROVIDER_SECONDS_MAX,
      // In live mode, `openIdProvider` has refused an issuer without TLS.
      ...(issuer.startsWith('http:') && { execute: [openid.allowInsecureRequests] }),
    },
  )
  // Also checks the signature of the ID token. By default the library relies on the TLS connection to the provider.
  openid.enableNonRepudiationChecks(configuration)
  return configuration
}

const silent = (cause?: unknown) =>
  problem.unavailable('the OpenID provider does not answer; try again, or sign in another way', cause)

/**
 * Derives the state, the nonce and the PKCE verifier from an attempt. Only the browser that began the attempt has it, so an
 * answer that an attacker obtained for itself signs nobody else in.
 */
function partsOf(attempt: string) {
  const part = (name: string) => createHash('sha256').update(`${name} ${attempt}`).digest('base64url')
  return { state: part('state'), nonce: part('nonce'), verifier: part('verifier') }
}

const AnswerBody = Closed({
  attempt: Text(300, 'The attempt, from the start.', 1),
  query: Text(8_000, 'What follows the ? in the address to which the provider returned the browser.', 1),
})

export function addOpenId(signIn: SignIn, challenges: Challenges, provider: Provider): void {
  signIn.post('/sign-in/openid/start', Closed({}), async () => {
    const [openid, configuration] = [await library(), await provider.configuration()]
    const attempt = challenges.make(PURPOSE)
    const { state, nonce, verifier } = partsOf(attempt)
    const authorizationUrl = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: provider.redirectUri,
      scope: 'openid',
      state,
      nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return { authorization_url: authorizationUrl.href, attempt }
  })

  signIn.post('/sign-in/openid', AnswerBody, async ({ attempt, query }, request) => {
    const account = challenges.isValid(PURPOSE, attempt)
      ? await accountOf(provider, attempt, query)
      : undefined
    if (account === undefined) {
      signIn.countFailure(request, 'OPENID')
      throw unauthorized(REFUSAL)
    }
    return signIn.open(request, { method: 'OPENID', refusal: REFUSAL }, async (tx) => {
      const operator = await lockOperatorOf(tx, account)
      return { operator, holds: operator !== undefined, usedOnce: attempt }
    })
  })
}

const REFUSAL =
  "the provider's answer is refused, was used, or is of an account that no enabled operator has; begin again"

/** The account that the provider vouches for; undefined for an answer that is refused. */
async function accountOf(
  provider: Provider,
  attempt: string,
  query: string,
): Promise<OpenIdAccount | undefined> {
  const [openid, configuration] = [await library(), await provider.configuration()]
  const { state, nonce, verifier } = partsOf(attempt)
  const address = new URL(provider.redirectUri)
  address.search = query
  try {
    const answer = await openid.authorizationCodeGrant(configuration, address, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    })
    const claims = answer.claims()
    return claims && { issuer: provider.issuer, subject: claims.sub }
  } catch (error) {
    if (isOfAnswer(openid, error)) return undefined
    throw silent(error)
  }
}

/** Whether the provider answered with a wrong answer. Every other error counts as no answer. */
const isOfAnswer = (openid: typeof OpenId, error: unknown): boolean =>
  error instanceof openid.AuthorizationResponseError ||
  error instanceof openid.ResponseBodyError ||
  error instanceof openid.WWWAuthenticateChallengeError ||
  (error instanceof openid.ClientError && error.code !== 'OAUTH_TIMEOUT')
