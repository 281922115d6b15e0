import { Type } from 'typebox'
import { Amount, Closed, Items, Text, TextOrNull, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { Refusal } from '../../contract/refusal.ts'
import { forAll, type Database } from '../../db/database.ts'
import type { Request } from '../../http/operation.ts'
import { operatorName } from '../../access/audit-log/actor-names.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import { bankReference } from '../../money/records/bank-wires.ts'
import { WireOrder } from '../../networks/bank/manual-wires.ts'
import { openScreeningOfCommand } from '../../rails/screening/open-screening.ts'
import {
  BankReference,
  Changed,
  EndedWire,
  listOpenWires,
  markWireFailed,
  markWireSent,
  OpenWire,
  readTakenWire,
  takeWire,
  type By,
} from '../../rails/wires/outgoing-wires.ts'
import {
  instructionsOf,
  readPayee,
  recordWireDeposit,
  recordWireReturn,
  sendWireBack,
} from '../../rails/wires/record-wires.ts'
import { operatorOperation, type OperatorContext } from '../operation.ts'

/**
 * Wires of a bank without an API, of all customers: what `bursar wire` does (docs/guides/live-without-a-bank-interface.md).
 * A wire's customer follows from its id or memo and not from the token.
 */

const Params = Closed({ id: Uuid('The wire: a transfer.') })
const RecordedWire = Type.Object({ transfer: Transfer, changed: Changed })

/** The reference as it is kept. Throws bad-request. */
function referenceOf(text: string): string {
  const found = bankReference(text)
  if (found === undefined)
    throw problem.badRequest(
      "bank_reference must have 1 to 64 letters, digits and / ? : ( ) . , ' + _ -",
      'bank_reference',
    )
  return found
}

/** Throws in a sandbox, whose simulated bank sends and receives wires itself. */
function requireLive({ mode }: OperatorContext['settings']): void {
  if (mode === 'sandbox')
    throw new Refusal('live mode only: the simulated bank of a sandbox sends and receives its wires itself')
}

/** The operator, by the name that people know; on the command line the user of the operating system. */
const byOf = async (db: Database, { origin }: Pick<Request, 'origin'>): Promise<By> => ({
  operator: origin.actor.type === 'OPERATOR' ? await operatorName(db, origin.actor.id) : origin.actor.id,
  origin,
})

/** What recording a wire takes, over all customers, and who records it. Throws in a sandbox. */
export async function recordingOf({ ledger, settings, ...request }: Asked) {
  requireLive(settings)
  const db = forAll(request.db)
  return { db, ledger, screening: await openScreeningOfCommand(db, settings), ...(await byOf(db, request)) }
}
type Asked = Pick<OperatorContext, 'db' | 'ledger' | 'settings'> & Pick<Request, 'origin'>

export const listWires = operatorOperation({
  method: 'GET',
  url: '/v2/operators/wires',
  scope: 'operators:read_wire',
  summary: 'List Open Wires',
  reply: Items(OpenWire),
  run: async ({ db, settings }) => ({
    items: settings.mode === 'sandbox' ? [] : await listOpenWires(forAll(db)),
  }),
})

export const getWire = operatorOperation({
  method: 'GET',
  url: '/v2/operators/wires/:id',
  scope: 'operators:read_wire',
  summary: 'Get Taken Wire',
  reply: WireOrder,
  params: Params,
  run({ params: { id }, db, settings }) {
    requireLive(settings)
    return readTakenWire(forAll(db), id)
  },
})

/** Whom a wire that arrived would credit: for the question before it is recorded. */
export const findWirePayee = operatorOperation({
  method: 'GET',
  url: '/v2/operators/wires/payee',
  scope: 'operators:read_wire',
  summary: 'Find Wire Payee',
  reply: Type.Object({
    customer: Type.String({ description: 'The name of the customer.' }),
    profile: Type.String({ description: 'The nickname of the profile.' }),
    owner: TextOrNull("The name of the money's owner."),
  }),
  query: Closed({ memo: Text(200, 'The memo of the wire.', 1) }),
  run: async ({ query: { memo }, db }) => readPayee(forAll(db), await instructionsOf(forAll(db), memo)),
})

/** Assigns a wire to the operator, who enters it at the bank. It cannot be cancelled any more. */
export const take = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/:id/take',
  scope: 'operators:write_wire',
  summary: 'Take Wire',
  reply: WireOrder,
  params: Params,
  async run({ params: { id }, db, settings, ...request }) {
    requireLive(settings)
    const screening = await openScreeningOfCommand(forAll(db), settings)
    return takeWire(forAll(db), id, await byOf(db, request), screening)
  },
})

export const markSent = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/:id/sent',
  scope: 'operators:write_wire',
  summary: 'Mark Wire Sent',
  reply: EndedWire,
  params: Params,
  body: Closed({ bank_reference: BankReference }),
  async run({ params: { id }, body, db, settings, ...request }) {
    requireLive(settings)
    return markWireSent(forAll(db), id, referenceOf(body.bank_reference), await byOf(db, request))
  },
})

export const markFailed = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/:id/failed',
  scope: 'operators:write_wire',
  summary: 'Mark Wire Failed',
  reply: EndedWire,
  params: Params,
  body: Closed({ reason: Text(200, 'The reason, which the client reads.', 1) }),
  async run({ params: { id }, body, db, settings, ...request }) {
    requireLive(settings)
    return markWireFailed(forAll(db), id, body.reason, await byOf(db, request))
  },
})

export const recordReturn = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/:id/return',
  scope: 'operators:write_wire',
  summary: 'Record Wire Return',
  reply: RecordedWire,
  params: Params,
  body: Closed({ amount: Amount('The amount that came back, in USD.'), bank_reference: BankReference }),
  async run({ params: { id }, body: { amount, bank_reference }, ...request }) {
    const recording = await recordingOf(request)
    const said = { transfer_id: id, amount, bank_reference: referenceOf(bank_reference) }
    return recordWireReturn(recording, { ...recording, ...said })
  },
})

export const recordDeposit = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/deposits',
  scope: 'operators:write_wire',
  summary: 'Record Wire Deposit',
  reply: RecordedWire,
  body: Closed({
    memo: Text(200, 'The memo of the wire: `memo_id` of the deposit instructions.', 1),
    amount: Amount('The amount, in USD.'),
    bank_reference: BankReference,
  }),
  async run({ body: { memo, amount, bank_reference }, ...request }) {
    const recording = await recordingOf(request)
    const said = { memo, amount, bank_reference: referenceOf(bank_reference) }
    return recordWireDeposit(recording, { ...recording, ...said })
  },
})

/** Records that a PENDING wire, which screening holds, was sent back to its sender. */
export const sendBack = operatorOperation({
  method: 'POST',
  url: '/v2/operators/wires/send-back',
  scope: 'operators:write_wire',
  summary: 'Send Wire Back',
  reply: RecordedWire,
  body: Closed({ bank_reference: BankReference }),
  async run({ body, db, settings, ...request }) {
    requireLive(settings)
    const bank_reference = referenceOf(body.bank_reference)
    return sendWireBack({ db: forAll(db) }, { bank_reference, ...(await byOf(db, request)) })
  },
})
