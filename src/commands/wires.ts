import { InvalidArgumentError, type Command } from 'commander'
import { AMOUNT_LENGTH_MAX } from '../contract/fields.ts'
import { tookTooLong, type Database } from '../db/database.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { Ledger } from '../movements/queue.ts'
import { bankReference } from '../records/bank-wires.ts'
import { WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import type { WireOrder } from '../networks/manual-wires.ts'
import type { Settings } from '../settings.ts'
import {
  listOpenWires,
  markWireFailed,
  markWireSent,
  ownerName,
  readTakenWire,
  takeWire,
  WIRES_MAX,
} from '../settlement/outgoing-wires.ts'
import { recordWireDeposit, recordWireReturn, type RecordedWire } from '../settlement/record-wires.ts'
import { EXIT, logOperator, operatorName, uuid, withDatabase } from './command-line.ts'
import { print, table } from './output.ts'

const REASON_LENGTH_MAX = 200

/** `bursar wire`. */
export function wireCommands(program: Command): void {
  const wire = program
    .command('wire')
    .description('wires of a bank without an interface: what a person records, and what a person sends')

  incomingCommands(wire)

  wire
    .command('list')
    .description(
      `the wires that have not ended, oldest first, at most ${WIRES_MAX}: READY to be taken, TAKEN by whom, or WAITING and why`,
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const wires = await listOpenWires(db)
        if (json) return print({ wires })
        if (wires.length === 0) return print('No wire waits.')
        const columns = [
          'transfer_id',
          'created_at',
          '>amount',
          'asset',
          'payee',
          'account',
          'state',
          'detail',
        ]
        print(
          table(
            columns,
            wires.map((one) => [
              ...[one.transfer_id, one.created_at, one.amount, one.asset],
              ...[printable(one.payee), printable(one.account_number), one.state, one.detail],
            ]),
          ),
        )
      }),
    )

  wire
    .command('take')
    .description(
      'take wires to send them: each is given to one operator, with what to type into the bank, and cannot be cancelled from then on; exit code 1 where one may not be sent',
    )
    .argument('<transfer_id...>', 'wires', uuids)
    .option('--json', 'print JSON')
    .action((ids: string[], { json }: { json?: true }) =>
      inLiveMode(async (db, settings) => {
        const macs = new WithdrawalMacs(await openMasterKeys(settings))
        const wires: WireOrder[] = []
        const refused: { transfer_id: string; reason: string }[] = []
        for (const transfer_id of new Set(ids)) {
          try {
            wires.push(await busy(transfer_id, takeWire(db, macs, transfer_id, operatorName())))
            logOperator(settings, 'took a wire', { transfer_id })
          } catch (error) {
            // Those that are taken must be shown, whatever becomes of the others.
            refused.push({ transfer_id, reason: (error as Error).message })
          }
        }
        if (json) print({ wires, refused })
        else {
          if (wires.length > 0) print(wires.map(describeOrder).join('\n\n'))
          for (const { reason } of refused) console.error(reason)
        }
        if (refused.length > 0) process.exitCode = EXIT.failed
      }),
    )

  wire
    .command('show')
    .description('show a wire again that was taken, and by whom')
    .argument('<transfer_id>', 'wire', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        const order = await readTakenWire(db, id)
        print(json ? order : describeOrder(order))
      }),
    )

  wire
    .command('mark-sent')
    .description('say that the bank has sent a wire that was taken: it is COMPLETED')
    .argument('<transfer_id>', 'wire', uuid)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the wire", reference)
    .option('--json', 'print JSON')
    .action((id: string, options: { bankReference: string; json?: true }) =>
      inLiveMode(async (db, settings) => {
        const ended = await busy(id, markWireSent(db, id, options.bankReference, operatorName()))
        if (ended.changed) logOperator(settings, 'marked a wire as sent', { ...ended })
        const when = ended.changed ? '' : ' It was marked so before.'
        print(options.json ? ended : `Wire ${id} is COMPLETED, as ${ended.bank_reference}.${when}`)
      }),
    )

  wire
    .command('mark-failed')
    .description('say that a wire that was taken was not paid, and never will be: it is FAILED and refunded')
    .argument('<transfer_id>', 'wire', uuid)
    .requiredOption('--reason <text>', 'why; the client reads it', reason)
    .option('--json', 'print JSON')
    .action((id: string, options: { reason: string; json?: true }) =>
      inLiveMode(async (db, settings) => {
        const ended = await busy(id, markWireFailed(db, id, options.reason, operatorName()))
        if (ended.changed) logOperator(settings, 'marked a wire as failed', { ...ended })
        const text = ended.changed
          ? `Wire ${id} is FAILED, and its total is back on the profile.`
          : `Wire ${id} was marked FAILED before: ${ended.reason}`
        print(options.json ? ended : text)
      }),
    )
}

function incomingCommands(wire: Command): void {
  const record = async (
    settings: Settings,
    json: true | undefined,
    did: string,
    { transfer, changed }: RecordedWire,
  ): Promise<void> => {
    const { id, customer_id, profile_id, amount, asset } = transfer
    if (changed) logOperator(settings, did, { transfer_id: id, customer_id, profile_id, amount, asset })
    const text = changed
      ? `Credited ${amount} ${asset} to profile ${profile_id}: ${id}.`
      : `It was recorded before, and nothing has changed: ${amount} ${asset} to profile ${profile_id}, ${id}.`
    print(json ? { changed, transfer } : text)
  }

  wire
    .command('record-deposit')
    .description(
      "credit a wire that arrived to the profile of its memo, once for each reference of the bank's",
    )
    .requiredOption('--memo <memo>', 'memo of the wire: memo_id of the deposit instructions')
    .requiredOption('--amount <amount>', 'amount in USD, as a decimal number', amount)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the wire", reference)
    .option('--json', 'print JSON')
    .action((options: { memo: string; amount: string; bankReference: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const { memo, amount, bankReference: bank_reference } = options
        const said = { memo, amount, bank_reference, operator: operatorName() }
        const recorded = await withLedger(db, (ledger) => recordWireDeposit({ db, ledger }, said))
        await record(settings, options.json, 'recorded a wire that arrived', recorded)
      }),
    )

  wire
    .command('record-return')
    .description('credit a wire that was sent and came back, in USD; the withdrawal stays COMPLETED')
    .argument('<transfer_id>', 'the wire that was sent', uuid)
    .requiredOption('--amount <amount>', 'what came back, in USD', amount)
    .requiredOption('--bank-reference <reference>', "the bank's reference of the return", reference)
    .option('--json', 'print JSON')
    .action((transfer_id: string, options: { amount: string; bankReference: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const { amount, bankReference: bank_reference } = options
        const said = { transfer_id, amount, bank_reference, operator: operatorName() }
        const recorded = await withLedger(db, (ledger) => recordWireReturn({ db, ledger }, said))
        await record(settings, options.json, 'recorded a wire that came back', recorded)
      }),
    )
}

/** For commands about wires that a person sends: the sandbox's bank sends its own. */
const inLiveMode = (work: (db: Database, settings: Settings) => Promise<void>): Promise<void> =>
  withDatabase((db, settings) => {
    if (settings.mode === 'sandbox')
      throw new Error("a sandbox's bank is simulated and sends its wires: this is for BURSAR_MODE=live")
    return work(db, settings)
  })

async function withLedger<T>(db: Database, work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const ledger = new Ledger(db)
  try {
    return await work(ledger)
  } finally {
    await ledger.drain()
  }
}

/** Says what a time-out of the database means here. */
const busy = <T>(id: string, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (tookTooLong(error)) throw new Error(`wire ${id} is being worked on just now; try again`)
    throw error
  })

/** A wire as a person types it into the bank. */
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

/** What a client wrote, for a terminal: it must not move the cursor, begin a line or turn digits around. */
const printable = (text: string) => text.replace(UNPRINTABLE, '\ufffd')

/** Every value of an object with the path to it. */
function fieldsOf(object: object, path = ''): [string, string][] {
  return Object.entries(object).flatMap(([name, value]: [string, unknown]): [string, string][] =>
    typeof value === 'object' && value !== null
      ? fieldsOf(value, `${path}${name}.`)
      : [[`${path}${name}`, String(value)]],
  )
}

/** Commander gives each of several arguments with those before it. */
const uuids = (text: string, before: string[] = []): string[] => [...before, uuid(text)]

function reference(text: string): string {
  const found = bankReference(text)
  if (found === undefined)
    throw new InvalidArgumentError("must have 1 to 64 letters, digits and / ? : ( ) . , ' + _ -.")
  return found
}

function amount(text: string): string {
  if (text.length > AMOUNT_LENGTH_MAX || !/^[0-9]*\.?[0-9]{1,2}$/.test(text))
    throw new InvalidArgumentError('must be an amount with at most two decimals, as 250.00.')
  return text
}

function reason(text: string): string {
  if (text.trim() === '' || text.length > REASON_LENGTH_MAX)
    throw new InvalidArgumentError(`must have 1 to ${REASON_LENGTH_MAX} characters.`)
  return text.trim()
}
