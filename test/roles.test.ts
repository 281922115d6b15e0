/* Roles (docs/reference/operators.md): what an operator may do follows from its role alone. */
import { expect, test } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { isReadScope, ROLES, scopesOfRole } from '../src/contract/roles.ts'
import { isWithoutOperations, OPERATOR_SCOPES, SCOPES } from '../src/contract/scopes.ts'

test('a VIEWER has the scope of every operation that reads, and of none that changes anything', () => {
  const scopes: readonly string[] = scopesOfRole('VIEWER', 'sandbox')
  for (const { method, url, scope, alternativeScope } of OPERATIONS) {
    const sufficient = [scope, alternativeScope].filter((one) => one != null)
    const allowed = sufficient.some((one) => scopes.includes(one) && (method === 'GET' || !isReadScope(one)))
    expect(allowed, `${method} ${url}`).toBe(method === 'GET' && scope !== null)
  }
})

test('an ADMIN has every scope of the mode that opens something, and the other roles have fewer', () => {
  expect(scopesOfRole('ADMIN', 'sandbox')).toEqual([
    // The scope over a whole sandbox is for programs.
    ...SCOPES.filter((scope) => !isWithoutOperations(scope) && scope !== 'sandbox:write_sandbox'),
    ...OPERATOR_SCOPES,
  ])
  expect(scopesOfRole('ADMIN', 'live')).not.toContain('transfer:write_sandbox_fiat_deposit')
  for (const role of ROLES.filter((one) => one !== 'ADMIN')) {
    const scopes = scopesOfRole(role, 'sandbox')
    expect(scopes).toEqual(expect.arrayContaining(scopesOfRole('VIEWER', 'sandbox')))
    expect(scopes).not.toContain('api_creds:rotate_credentials')
  }
  expect(scopesOfRole('APPROVER', 'sandbox')).not.toContain('transfer:write_crypto_withdrawal')
})

test('in live mode, an operator of one customer does not see the figures of the whole deployment', () => {
  for (const role of ROLES) {
    expect(scopesOfRole(role, 'live')).toContain('operators:read_network')
    expect(scopesOfRole(role, 'live', true)).not.toContain('operators:read_network')
    expect(scopesOfRole(role, 'live', true)).toContain('operators:read_session')
    // A sandbox's money is simulated.
    expect(scopesOfRole(role, 'sandbox', true)).toEqual(scopesOfRole(role, 'sandbox'))
  }
})

test('the scopes of operators begin with operators:, and no scope of an API client does', () => {
  expect(OPERATOR_SCOPES.filter((scope) => !scope.startsWith('operators:'))).toEqual([])
  expect(SCOPES.filter((scope) => scope.startsWith('operators:'))).toEqual([])
})
