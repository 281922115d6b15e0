import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { Closed, Items, OneOf, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { ROLES } from '../../contract/roles.ts'
import type { OperatorScope } from '../../contract/scopes.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { hookOf } from '../../http/authenticate.ts'
import { ofOperators } from '../../http/openapi.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import type { Policies } from '../../governance/policy/policy.ts'
import { namesAll } from '../audit-log/actor-names.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { AdministeredOperator, administeredToWire } from './fields.ts'
import {
  disableOperator,
  enableOperator,
  listOperatorsOf,
  lockOperator,
  recordOperatorChange,
  setRole,
  type Operator,
} from './operators.ts'

/**
 * The operators of a customer, for its ADMINs (docs/reference/operators.md): their roles, and their access. The command line
 * alone creates operators, gives them ways to sign in, and changes those of the platform, who belong to no customer.
 */

export interface AdministrationOptions {
  db: Database
  rateLimit: RateLimit
  policies: Policies
  macs: RowMacs
}

const Params = Closed({ id: Uuid('Operator.') })
const PutOperatorBody = Closed(
  {
    role: Type.Optional(OneOf(ROLES, 'What the operator may do.')),
    status: Type.Optional(
      OneOf(['ACTIVE', 'DISABLED'], 'DISABLED: its sessions and access tokens end within a second.'),
    ),
  },
  { minProperties: 1 },
)
const PutOperatorReply = Type.Object({ operator: AdministeredOperator })

export function addAdministration(app: FastifyInstance, options: AdministrationOptions): void {
  const { db, rateLimit } = options
  const onRequest = (scope: OperatorScope) => hookOf(rateLimit.requireScope([scope]))

  app.get(
    '/v2/operators',
    {
      schema: ofOperators('List Operators', 'operators:read_operator', Items(AdministeredOperator)),
      onRequest: onRequest('operators:read_operator'),
    },
    async ({ caller }) => ({
      items: (await listOperatorsOf(db, caller.customerId, namesAll(caller.scopes))).map(administeredToWire),
    }),
  )

  app.put(
    '/v2/operators/:id',
    {
      schema: {
        ...ofOperators('Put Operator', 'operators:write_operator', PutOperatorReply),
        params: Params,
        querystring: ApprovalQuery,
        body: PutOperatorBody,
      },
      onRequest: onRequest('operators:write_operator'),
    },
    (request) => change(request, options),
  )
}

/**
 * Changes the role or the access of an operator. Where the policy requires approvers, more rights wait for them; disabling
 * never waits.
 */
async function change(
  { caller, params, query, body, id: request_id, ip }: FastifyRequest,
  { db, policies, macs }: AdministrationOptions,
): Promise<object> {
  const { id } = params as Static<typeof Params>
  const { approval_id } = query as Static<typeof ApprovalQuery>
  const values = body as Static<typeof PutOperatorBody>
  if (id === caller.actor.id) throw problem.forbidden('an operator does not change itself: ask another ADMIN')
  const customerId = caller.customerId
  const origin = { actor: caller.actor, request_id, ip }
  const work = async (tx: Transaction) => {
    await applyTo(tx, macs, await requireOperator(tx, customerId, id), values, origin)
    return { operator: administeredToWire(await requireOperator(tx, customerId, id)) }
  }
  if (values.role === undefined && values.status === 'DISABLED') return transaction(db, work)
  const asked = {
    subject: 'OPERATORS',
    customer_id: customerId,
    origin,
    operation: 'PUT /v2/operators/{id}',
    target: { type: 'operator', id },
    values,
    approval_id,
  } as const
  return withApprovedChange(db, policies, asked, work)
}

/** The operator, locked. Throws the 404 problem for an operator of another customer, or of the platform. */
async function requireOperator(tx: Transaction, customerId: string, id: string): Promise<Operator> {
  const operator = await lockOperator(tx, id)
  if (operator?.customer_id !== customerId) throw problem.notFound('operator', id)
  return operator
}

async function applyTo(
  tx: Transaction,
  macs: RowMacs,
  operator: Operator,
  { role, status }: Static<typeof PutOperatorBody>,
  origin: Parameters<typeof recordOperatorChange>[3]['origin'],
): Promise<void> {
  if (role !== undefined && role !== operator.role) {
    await setRole(tx, macs, operator, role, origin)
  }
  const isDisabled = operator.disabled_at !== null
  if (status === undefined || isDisabled === (status === 'DISABLED')) return
  // Read again, because a change of the role has sealed the operator anew.
  const now = (await lockOperator(tx, operator.id))!
  if (!isDisabled) return disableOperator(tx, now, origin)
  await enableOperator(tx, macs, now)
  await recordOperatorChange(tx, operator, 'operator.enable', { origin })
}
