import { Option, type Command } from 'commander'
import { pageOf, EVER } from '../http/lists.ts'
import { readTransfer, transferToWire, TransferStatus, TransferType } from '../ledger/transfer.ts'
import { listCustomerBalances } from '../profiles/list-balances.ts'
import { selectLedgerEntries, selectPayout } from '../records/transfer-history.ts'
import { findOwner } from '../records/treasury.ts'
import { selectTransfers } from '../transfers/list-transfers.ts'
import { requireCustomer, uuid, wholeNumber, withDatabase } from './command-line.ts'
import { print, table } from './output.ts'

/** Most records in a list. */
const LIST_MAX = 1_000

/** Defines `bursar transfer` and `bursar balance`: what the API shows a customer, for operators without its credentials. */
export function transferCommands(program: Command): void {
  const transfer = program.command('transfer').description('transfers of a customer: each movement of money')
  defineList(transfer)
  defineShow(transfer)
  defineBalances(program.command('balance').description('balances of a customer'))
}

interface ListOptions {
  customer: string
  type?: (typeof TransferType)['enum'][number]
  status?: (typeof TransferStatus)['enum'][number]
  refId?: string
  limit: number
  json?: true
}

function defineList(transfer: Command): void {
  transfer
    .command('list')
    .description('list transfers of a customer, newest first')
    .requiredOption('--customer <id>', 'customer', uuid)
    .addOption(new Option('--type <type>', 'transfers of this type').choices(TransferType.enum))
    .addOption(new Option('--status <status>', 'transfers of this status').choices(TransferStatus.enum))
    .option('--ref-id <ref_id>', 'the transfer with this ref_id')
    .option('--limit <number>', `most transfers (1 to ${LIST_MAX})`, wholeNumber(1, LIST_MAX), 20)
    .option('--json', 'print JSON, one line for each transfer')
    .action(({ customer, type, status, refId, limit, json }: ListOptions) =>
      withDatabase(async (db) => {
        await requireCustomer(db, customer)
        const filters = {
          ...(type !== undefined && { type: [type] }),
          ...(status !== undefined && { statuses: [status] }),
          ...(refId !== undefined && { ref_ids: [refId] }),
        }
        const rows = await selectTransfers(db, customer, filters, pageOf('transfers', { limit }), [
          EVER,
          EVER,
        ])
        const transfers = rows.slice(0, limit).map(transferToWire)
        if (json) for (const one of transfers) print(one)
        else if (transfers.length === 0) print('there are no such transfers')
        else
          print(
            table(
              ['created_at', 'type', 'status', '>amount', 'asset', 'ref_id', 'id'],
              transfers.map((one) => [
                ...[one.created_at, one.type, one.status, one.amount, one.asset, one.ref_id, one.id],
              ]),
            ),
          )
      }),
    )
}

function defineShow(transfer: Command): void {
  transfer
    .command('show')
    .description('show a transfer with its ledger entries, its transactions, and why it waits')
    .argument('<transfer_id>', 'transfer', uuid)
    .option('--json', 'print JSON on one line')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        const owner = await findOwner(db, id)
        if (owner === undefined) throw new Error(`there is no transfer ${id}`)
        const shown = {
          transfer: await readTransfer(db, owner, id),
          ...(await selectPayout(db, owner, id)),
          entries: await selectLedgerEntries(db, owner, id),
        }
        print(json ? shown : JSON.stringify(shown, null, 2))
      }),
    )
}

function defineBalances(balance: Command): void {
  balance
    .command('list')
    .description(`list the balances of a customer's profiles, by profile and asset, at most ${LIST_MAX}`)
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--profile <id>', 'only of this profile', uuid)
    .option('--json', 'print JSON')
    .action(({ customer, profile, json }: { customer: string; profile?: string; json?: true }) =>
      withDatabase(async (db) => {
        await requireCustomer(db, customer)
        const balances = await listCustomerBalances(db, customer, profile, LIST_MAX)
        if (json) print({ balances })
        else if (balances.length === 0) print('there are no balances')
        else
          print(
            table(
              ['profile_id', 'nickname', 'asset', '>available'],
              balances.map(({ profile_id, nickname, asset, available }) => [
                ...[profile_id, nickname, asset, available],
              ]),
            ),
          )
      }),
    )
}
