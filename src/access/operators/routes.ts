import type { FastifyInstance } from 'fastify'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { addAdministration, type AdministrationOptions } from './administration.ts'
import { Challenges } from './challenges.ts'
import { addOwnSignIns, type OwnSignInOptions } from './own-sign-ins.ts'
import { addOpenId, openIdProvider } from './sign-in-with-openid.ts'
import { addPasskeys } from './sign-in-with-passkey.ts'
import { addAccessTokens, addLinks, SignIn, type SignInOptions } from './sign-in.ts'

export function signInRoutes(
  app: FastifyInstance,
  {
    masterKeys,
    baseUrl,
    ...options
  }: SignInOptions & OwnSignInOptions & AdministrationOptions & { masterKeys: MasterKeys; baseUrl: string },
): void {
  const signIn = new SignIn(app, options)
  const challenges = new Challenges(masterKeys)
  addLinks(signIn)
  addPasskeys(signIn, challenges, baseUrl)
  const provider = openIdProvider(options.settings, baseUrl)
  if (provider !== undefined) addOpenId(signIn, challenges, provider)
  addAccessTokens(signIn)
  addOwnSignIns(app, options)
  addAdministration(app, options)
}
