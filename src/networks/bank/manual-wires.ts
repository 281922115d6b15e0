import { createHash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Amount, AssetSymbol, TextOrNull, Timestamp, Uuid } from '../../contract/fields.ts'
import type { BankAccount } from './bank-account.ts'
import type { NetworkAdapter, SignedTransaction } from '../network.ts'
import type { WaitingReason } from '../waiting.ts'

/**
 * Wires without an interface to a bank: an operator enters them at the bank, and records the outcome. In the adapter's terms, a
 * wire is signed when an operator takes it. From then on the wire may have been sent, so nothing cancels it.
 */

/** Why a wire waits until an operator takes it. */
const TO_TAKE: WaitingReason = { code: 'WIRE_TO_TAKE', detail: 'an operator must send it: bursar wire take' }

/** How often the worker looks at wires. Commands move them; the worker only keeps their reasons up to date. */
const POLL_MS = 30_000

interface WirePayee {
  fiat_account_owner: Record<string, unknown>
  fiat_network_instructions: {
    wire: { account_number?: string; routing_details?: { routing_number?: string } }
  }
}

/** A wire as it was shown to the operator who took it, kept as the withdrawal's bytes. */
export const WireOrder = Type.Object({
  transfer_id: Uuid('The wire: a transfer.'),
  customer_id: Uuid('Customer.'),
  asset: AssetSymbol,
  amount: Amount('Amount.'),
  memo: TextOrNull('Its memo.'),
  fiat_account_id: Uuid('The bank account that it pays.'),
  payee: Type.Unsafe<WirePayee>(
    Type.Object({}, { additionalProperties: true, description: 'That account, as the customer gave it.' }),
  ),
  taken_by: Type.String({ description: 'The operator who sends it.' }),
  taken_at: Timestamp('When it was taken.'),
})
export type WireOrder = Static<typeof WireOrder>

/** The bank of a live deployment without an interface to it. */
export const manualWires = (bankAccount: BankAccount): NetworkAdapter => ({
  ...wiresByHand,
  bankAccount,
  sign: async (_tx, wires) => wires.map(() => ({ outcome: 'DEFERRED', reason: TO_TAKE })),
})

/** Follows wires that operators send. Who signs them is up to the caller. */
export const wiresByHand = {
  pollMs: POLL_MS,
  review: () => ({ verdict: 'PASS' }),
  // The operator who took the wire sends it.
  broadcast: async (wires) => wires.map(() => ({ accepted: true })),
  checkStatus: async (wires) =>
    wires.map(({ raw_transaction }) => {
      const order = readOrder(raw_transaction)
      return { state: 'UNRESOLVED', reason: order === undefined ? OF_ANOTHER_BANK : takenBy(order) }
    }),
  missingOfAccount: ({ account_number, routing_details }) =>
    !account_number?.trim()
      ? 'account_number'
      : !routing_details?.routing_number?.trim()
        ? 'routing_details.routing_number'
        : undefined,
  acceptsAccount: async () => true,
} satisfies Omit<NetworkAdapter, 'sign'>

const OF_ANOTHER_BANK: WaitingReason = { code: 'SIGNED_ELSEWHERE', detail: 'it was signed for another bank' }
const takenBy = ({ taken_by, taken_at }: WireOrder): WaitingReason => ({
  code: 'WIRE_TAKEN',
  detail: `${taken_by} took it at ${taken_at} to send it: bursar wire mark-sent or mark-failed`,
})

/** Begins the bytes of an order. No simulated message begins with it. */
const MARK = 'wire '

/** The transaction of a wire that an operator takes: its order, and the hash of that. */
export function signedOrder(order: WireOrder): SignedTransaction {
  const raw_transaction = Buffer.from(MARK + JSON.stringify(order))
  return { raw_transaction, crypto_tx_hash: createHash('sha256').update(raw_transaction).digest('hex') }
}

/** The order in a withdrawal's bytes; undefined where no operator has taken it. Throws for bytes that cannot be read. */
export function readOrder(raw: Buffer | null): WireOrder | undefined {
  if (raw === null || !raw.subarray(0, MARK.length).equals(Buffer.from(MARK))) return undefined
  return JSON.parse(raw.subarray(MARK.length).toString()) as WireOrder
}
