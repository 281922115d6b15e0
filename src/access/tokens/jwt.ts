import { errors, jwtVerify, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult } from 'jose'
import { invalidToken } from '../../http/authenticate.ts'
import { uuidsOf } from '../../http/lists.ts'

/** Verifies a signed token. Throws the 401 problem, whose cause is for the log: the answer tells nobody how to forge one. */
export const verifyJwt = (
  token: string,
  keyOf: JWTVerifyGetKey,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> =>
  jwtVerify(token, keyOf, { ...options, algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'] }).catch(
    (error: unknown) => {
      if (error instanceof errors.JWTExpired) throw invalidToken('the access token has expired')
      if (error instanceof errors.JOSEError) throw invalidToken('the access token is not valid here', error)
      throw error
    },
  )

/** The scopes in a token's claim: text, or a list. */
export const scopesIn = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim : [claim]).flatMap((part) =>
    typeof part === 'string' ? part.split(' ').filter((name) => name !== '') : [],
  )

/** The id of the customer in a token's claim; undefined for anything else. */
export const customerIn = (claim: unknown): string | undefined =>
  typeof claim === 'string' ? uuidsOf([claim.toLowerCase()])![0] : undefined
