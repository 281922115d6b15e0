import { InvalidArgumentError, type Command } from 'commander'
import { AMOUNT_LENGTH_MAX } from '../contract/fields.ts'
import { bankReference, findBankWireOf } from '../money/records/bank-wires.ts'
import { presentOf } from '../db/rows.ts'
import type { WireOrder } from '../networks/bank/manual-wires.ts'
import { openScreeningOfCommand } from '../rails/screening/open-screening.ts'
import {
  listOpenWires,
  markWireFailed,
  markWireSent,
  ownerName,
  readTakenWire,
  takeWire,
  WIRES_MAX,
  type By,
} from '../rails/wires/outgoing-wires.ts'
import {
  readPayee,
  recordWireDeposit,
  recordWireReturn,
  sendWireBack,
  type RecordedWire,
} from '../rails/wires/record-wires.ts'
import { define, type OpenContext } from './define.ts'
import { textUpTo, uuid } from './arguments.ts'
import {
  crediting,
  inDatabase,
  operatorName,
  orBusy,
  withDatabase,
  type AtDatabase,
  type CreditingContext,
} from './command-line.ts'
import { EXIT } from './exit.ts'
import { ownProcess, printError } from './own-process.ts'

const REASON_LENGTH_MAX = 200

export function wireCommands(program: Command): void {
  const wire = define(
    program,
    'wire',
    'wires of a bank without an API: record incoming wires, send outgoing wires by hand',
  )
  defineIncoming(wire)
  define(
    wire,
    'list',
    `list the open wires, oldest first, at most ${WIRES_MAX}: READY to be taken, TAKEN (by which operator), or WAITING (for what)`,
  ).list(inDatabase, {
    key: 'wires',
    none: 'There are no open wires.',
    read: ({ db }) => listOpenWires(db),
    columns: [
      ...(['transfer_id', 'created_at', '>amount', 'asset'] as const),
      ['payee', ({ payee }) => printable(payee)],
      ['account', (one) => printable(one.account_number)],
      ...(['state', 'detail'] as const),
    ],
  })
  defineTake(wire)
  define(
    wire,
    'show',
    "print a taken wire again with its operator, and the bank's reference of a recorded one",
  )
    .argument('<transfer_id>', 'wire', uuid)
    .answer(inDatabase, async ({ db }, id: string) => {
      const recorded = await findBankWireOf(db, id)
      const order = recorded === undefined ? await readTakenWire(db, id) : undefined
      const text = [
        order && describeOrder(order),
        recorded &&
          `bank reference: ${recorded.bank_reference}, recorded by ${recorded.recorded_by} at ${recorded.recorded_at} (${recorded.kind})`,
      ]
      return [{ ...presentOf(recorded ?? {}), ...order }, text.filter(Boolean).join('\n')]
    })
  defineMarks(wire)
}

function defineTake(wire: Command): void {
  define(
    wire,
    'take',
    'assign wires to yourself and print the bank details; a taken wire has one operator and cannot be cancelled. Exit code 1 when a wire may not be sent',
  )
    .argument('<transfer_id...>', 'wires', uuids)
    .answer(inLiveMode, async (at, ids: string[], { json }: { json?: true }) => {
      const { db, settings, did } = at
      const screening = await openScreeningOfCommand(db, settings)
      const wires: WireOrder[] = []
      const refused: { transfer_id: string; reason: string }[] = []
      for (const transfer_id of new Set(ids)) {
        try {
          const taking = takeWire(db, transfer_id, by(at), screening)
          wires.push(await withBusyError(transfer_id, taking))
          did('took a wire', { transfer_id })
        } catch (error) {
          // The wires that were taken must be printed even when another wire is refused.
          refused.push({ transfer_id, reason: (error as Error).message })
        }
      }
      if (refused.length > 0) ownProcess().exitCode = EXIT.failed
      if (!json) for (const { reason } of refused) printError(reason)
      if (json || wires.length > 0) return [{ wires, refused }, wires.map(describeOrder).join('\n\n')]
    })
}

function defineMarks(wire: Command): void {
  define(wire, 'mark-sent', 'record that the bank sent a taken wire: it becomes COMPLETED')
    .argument('<transfer_id>', 'wire', uuid)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the wire", reference)
    .answer(inLiveMode, async (at, id: string, options: { bankReference: string }) => {
      const ended = await withBusyError(id, markWireSent(at.db, id, options.bankReference, by(at)))
      if (ended.changed) at.did('marked a wire as sent', { ...ended })
      const when = ended.changed ? '' : ' It was already marked.'
      return [ended, `Wire ${id} is COMPLETED, bank reference ${ended.bank_reference}.${when}`]
    })
  define(
    wire,
    'mark-failed',
    'record that a taken wire was not paid and never will be: it becomes FAILED and is refunded',
  )
    .argument('<transfer_id>', 'wire', uuid)
    .requiredOption('--reason <text>', 'reason, shown to the client', textUpTo(REASON_LENGTH_MAX))
    .answer(inLiveMode, async (at, id: string, { reason }: { reason: string }) => {
      const ended = await withBusyError(id, markWireFailed(at.db, id, reason, by(at)))
      if (ended.changed) at.did('marked a wire as failed', { ...ended })
      const text = ended.changed
        ? `Wire ${id} is FAILED, and its total is back on the profile.`
        : `Wire ${id} was already marked FAILED: ${ended.reason}`
      return [ended, text]
    })
}

const recorded = async ({ db, did }: AtDatabase, what: string, { transfer, changed }: RecordedWire) => {
  const { profile, owner, customer } = await readPayee(db, transfer)
  const { id, customer_id, profile_id, amount, asset } = transfer
  const whom = printable(`profile ${profile_id} (${[profile, owner, customer].filter(Boolean).join(', ')})`)
  if (changed) did(what, { transfer_id: id, customer_id, profile_id, amount, asset })
  const text = changed
    ? `Credited ${amount} ${asset} to ${whom}: ${id}.`
    : `Already recorded, nothing has changed: ${amount} ${asset} to ${whom}, ${id}.`
  return [{ changed, transfer }, text] as const
}

function defineIncoming(wire: Command): void {
  define(
    wire,
    'record-deposit',
    'credit an incoming wire to the profile of its memo; each bank reference is credited once',
  )
    .requiredOption('--memo <memo>', 'memo of the wire: memo_id of the deposit instructions')
    .requiredOption('--amount <amount>', 'amount in USD, as a decimal number', amount)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the wire", reference)
    .answer(toCredit, async (at, options: { memo: string; amount: string; bankReference: string }) => {
      const { memo, amount, bankReference: bank_reference } = options
      const said = { memo, amount, bank_reference, ...by(at) }
      return recorded(at, 'recorded a wire that arrived', await recordWireDeposit(at, said))
    })

  define(
    wire,
    'send-back',
    'record that a PENDING wire, which screening holds, was sent back to its sender: it becomes FAILED',
  )
    .requiredOption(
      '--bank-reference <reference>',
      "the bank's reference of the wire that arrived",
      reference,
    )
    .answer(inDatabase, async (at, { bankReference: bank_reference }: { bankReference: string }) => {
      const sent = await sendWireBack(at, { bank_reference, ...by(at) })
      const { id, customer_id, amount, asset } = sent.transfer
      const transfer = { transfer_id: id, customer_id, bank_reference }
      if (sent.changed) at.did('recorded a wire that was sent back', transfer)
      const text = sent.changed
        ? `Wire ${bank_reference} of ${amount} ${asset} is FAILED: ${id}.`
        : `Already recorded, nothing has changed: ${id} is FAILED.`
      return [sent, text]
    })

  define(
    wire,
    'record-return',
    'credit a wire that the bank returned, in USD; its withdrawal stays COMPLETED',
  )
    .argument('<transfer_id>', 'the outgoing wire', uuid)
    .requiredOption('--amount <amount>', 'returned amount, in USD', amount)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the return", reference)
    .answer(toCredit, async (at, transfer_id: string, options: { amount: string; bankReference: string }) => {
      const { amount, bankReference: bank_reference } = options
      const said = { transfer_id, amount, bank_reference, ...by(at) }
      return recorded(at, 'recorded a wire that came back', await recordWireReturn(at, said))
    })
}

/** Opens the database, a ledger and screening for a command that credits wires. */
const toCredit: OpenContext<AtDatabase & CreditingContext> = (work) =>
  withDatabase({}, (at) => crediting(at, work))

/** Opens the database for a command about manually sent wires. Throws in sandbox mode, where the simulated bank sends them. */
const inLiveMode: OpenContext<AtDatabase> = (work) =>
  withDatabase({}, (at) => {
    if (at.settings.mode === 'sandbox')
      throw new Error('live mode only: the simulated bank of a sandbox sends its wires itself')
    return work(at)
  })

const by = ({ origin }: AtDatabase): By => ({ operator: operatorName(), origin })

/** Turns a lock time-out into an error that names the wire. */
const withBusyError = <T>(id: string, work: Promise<T>): Promise<T> =>
  work.catch(orBusy(`wire ${id} is being processed`))

/** The fields of a wire, for a person who types them into the bank's form. */
function describeOrder({ payee, ...order }: WireOrder): string {
  const { fiat_account_owner, fiat_network_instructions } = payee
  const lines: [string, string][] = [
    ['wire', order.transfer_id],
    ['amount', `${order.amount} ${order.asset}`],
    ['payee', ownerName(fiat_account_owner)],
    ...fieldsOf(fiat_network_instructions.wire),
    ['memo', order.memo ?? ''],
    ['taken', `by ${order.taken_by} at ${order.taken_at}`],
  ]
  const width = Math.max(...lines.map(([name]) => name.length)) + 1
  return lines
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${`${printable(name)}:`.padEnd(width)} ${printable(value)}`)
    .join('\n')
}

/** Control characters, and those that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Makes a client's text safe for a terminal: it cannot move the cursor, start a line or reverse digits. */
const printable = (text: string) => text.replace(UNPRINTABLE, '\ufffd')

/** Lists every value of an object with its path. */
function fieldsOf(object: object, path = ''): [string, string][] {
  return Object.entries(object).flatMap(([name, value]: [string, unknown]): [string, string][] =>
    typeof value === 'object' && value !== null
      ? fieldsOf(value, `${path}${name}.`)
      : [[`${path}${name}`, String(value)]],
  )
}

/** Parses several UUIDs: commander passes each argument with the values before it. */
const uuids = (text: string, before: string[] = []): string[] => [...before, uuid(text)]

function reference(text: string): string {
  const found = bankReference(text)
  if (found === undefined)
    throw new InvalidArgumentError("must have 1 to 64 letters, digits and / ? : ( ) . , ' + _ -.")
  return found
}

function amount(text: string): string {
  if (text.length > AMOUNT_LENGTH_MAX || !/^[0-9]*\.?[0-9]{1,2}$/.test(text))
    throw new InvalidArgumentError('must be an amount with at most two decimals, such as 250.00.')
  return text
}
