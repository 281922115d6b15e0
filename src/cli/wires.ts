import { InvalidArgumentError, type Command } from 'commander'
import { AMOUNT_LENGTH_MAX } from '../contract/fields.ts'
import { bankReference, findBankWireOf, type BankWire } from '../money/records/bank-wires.ts'
import { presentOf } from '../db/rows.ts'
import type { WireOrder } from '../networks/bank/manual-wires.ts'
import { ownerName, readTakenWire, WIRES_MAX } from '../rails/wires/outgoing-wires.ts'
import { readPayee, type RecordedWire } from '../rails/wires/record-wires.ts'
import {
  listWires,
  markFailed,
  markSent,
  recordDeposit,
  recordReturn,
  sendBack,
  take,
} from '../resources/operators/wires.ts'
import { SettingsError } from '../settings.ts'
import { group } from './define.ts'
import { textUpTo, uuid } from './arguments.ts'
import { asFailure, inDatabase, type AtDatabase } from './command-line.ts'
import { linesOf, readable } from './output.ts'
import { printError } from './own-process.ts'

const REASON_LENGTH_MAX = 200

const WORDS = {
  '<id>': ['wire: the id of its transfer', uuid],
  '--memo <memo>': ['memo of the wire: memo_id of the deposit instructions'],
  '--amount <amount>': ['amount in USD, as a decimal number', amount],
  '--bank-reference <reference>': ["the bank's reference of the wire", reference],
  '--reason <text>': ['reason, shown to the client', textUpTo(REASON_LENGTH_MAX)],
} as const

export function wireCommands(program: Command): void {
  const wire = group(
    program,
    ['wire', 'wires of a bank without an API: record incoming wires, send outgoing wires by hand'],
    inDatabase,
    WORDS,
  )
  wire.operation(
    'record-deposit --memo <memo> --amount <amount> --bank-reference <reference>',
    recordDeposit,
    {
      about: 'credit an incoming wire to the profile of its memo; each bank reference is credited once',
      says: describeCredit,
      logs: 'recorded a wire that arrived',
      logged: ofCredit,
    },
  )
  wire.operation('send-back --bank-reference <reference>', sendBack, {
    about:
      'record that a PENDING wire, which screening holds, was sent back to its sender: it becomes FAILED',
    says: ({ changed, transfer: { id, amount, asset } }, { bank_reference }) =>
      changed
        ? `Wire ${bank_reference} of ${amount} ${asset} is FAILED: ${id}.`
        : `Already recorded, nothing has changed: ${id} is FAILED.`,
    logs: 'recorded a wire that was sent back',
  })
  wire.operation('record-return <id> --amount <amount> --bank-reference <reference>', recordReturn, {
    about: 'credit a wire that the bank returned, in USD; its withdrawal stays COMPLETED',
    says: describeCredit,
    logs: 'recorded a wire that came back',
    logged: ofCredit,
  })
  wire.list('list', {
    about: `list the open wires, oldest first, at most ${WIRES_MAX}: READY to be taken, TAKEN (by which operator), or WAITING (for what)`,
    key: 'wires',
    none: 'There are no open wires.',
    run: async (at, given) => (await at.operate(listWires, given)).items,
    columns: [
      ...(['transfer_id', 'created_at', '>amount', 'asset', 'payee'] as const),
      ['account', ({ account_number }) => account_number],
      ...(['state', 'detail'] as const),
    ],
  })
  wire.command('take <id...>', {
    about:
      'assign wires to yourself and print the bank details; a taken wire has one operator and cannot be cancelled. Exit code 1 when a wire may not be sent',
    run: (at, { id }) => takeEach(at, id),
    says({ wires, refused }) {
      for (const { reason } of refused) printError(reason)
      return wires.map(describeOrder).join('\n\n')
    },
    fails: ({ refused }) => refused.length > 0,
  })
  wire.command('show <id>', {
    about: "print a taken wire again with its operator, and the bank's reference of a recorded one",
    async run({ db }, { id }): Promise<Partial<BankWire & WireOrder>> {
      const recorded = await findBankWireOf(db, id)
      const order = recorded === undefined ? await readTakenWire(db, id) : undefined
      return { ...presentOf(recorded ?? {}), ...order }
    },
    says: (shown) =>
      shown.taken_by !== undefined
        ? describeOrder(shown as WireOrder)
        : `bank reference: ${shown.bank_reference}, recorded by ${shown.recorded_by} at ${shown.recorded_at} (${shown.kind})`,
  })
  wire.operation('mark-sent <id> --bank-reference <reference>', markSent, {
    about: 'record that the bank sent a taken wire: it becomes COMPLETED',
    says: ({ changed, bank_reference }, { id }) =>
      `Wire ${id} is COMPLETED, bank reference ${bank_reference}.${changed ? '' : ' It was already marked.'}`,
    logs: 'marked a wire as sent',
  })
  wire.operation('mark-failed <id> --reason <text>', markFailed, {
    about: 'record that a taken wire was not paid and never will be: it becomes FAILED and is refunded',
    says: ({ changed, reason }, { id }) =>
      changed
        ? `Wire ${id} is FAILED, and its total is back on the profile.`
        : `Wire ${id} was already marked FAILED: ${reason}`,
    logs: 'marked a wire as failed',
  })
}

/** Takes wires one by one: those that were taken must be printed even when another one is refused. */
async function takeEach(at: AtDatabase, ids: string[]) {
  const wires: WireOrder[] = []
  const refused: { transfer_id: string; reason: string }[] = []
  for (const transfer_id of new Set(ids)) {
    try {
      wires.push(await at.operate(take, { id: transfer_id }))
      at.did('took a wire', { transfer_id })
    } catch (error) {
      if (error instanceof SettingsError) throw error
      refused.push({ transfer_id, reason: asFailure(error).message })
    }
  }
  return { wires, refused }
}

const ofCredit = ({ transfer: { id, customer_id, profile_id, amount, asset } }: RecordedWire) => ({
  ...{ transfer_id: id, customer_id, profile_id, amount, asset },
})

async function describeCredit({ transfer, changed }: RecordedWire, _: object, { db }: AtDatabase) {
  const { profile, owner, customer } = await readPayee(db, transfer)
  const { id, profile_id, amount, asset } = transfer
  const whom = readable(`profile ${profile_id} (${[profile, owner, customer].filter(Boolean).join(', ')})`)
  return changed
    ? `Credited ${amount} ${asset} to ${whom}: ${id}.`
    : `Already recorded, nothing has changed: ${amount} ${asset} to ${whom}, ${id}.`
}

/** The fields of a wire, for a person who types them into the bank's form. */
function describeOrder({ payee, ...order }: WireOrder): string {
  const { fiat_account_owner, fiat_network_instructions } = payee
  const fields: [string, string][] = [
    ['wire', order.transfer_id],
    ['amount', `${order.amount} ${order.asset}`],
    ['payee', ownerName(fiat_account_owner)],
    ...fieldsOf(fiat_network_instructions.wire),
    ['memo', order.memo ?? ''],
    ['taken', `by ${order.taken_by} at ${order.taken_at}`],
  ]
  return linesOf(fields.filter(([, value]) => value !== ''))
}

/** Lists every value of an object with its path. */
function fieldsOf(object: object, path = ''): [string, string][] {
  return Object.entries(object).flatMap(([name, value]: [string, unknown]): [string, string][] =>
    typeof value === 'object' && value !== null
      ? fieldsOf(value, `${path}${name}.`)
      : [[`${path}${name}`, String(value)]],
  )
}

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
