import { InvalidArgumentError, Option, type Command } from 'commander'
import { momentAt, type Moment } from '../db/ids.ts'
import { EVER, microsOf, microsToTimestamp } from '../http/lists.ts'
import { readLedgerBalances } from '../money/ledger/account-balances.ts'
import { readTransfer, TransferStatus, TransferType, type Transfer } from '../money/ledger/transfer.ts'
import { listCustomerBalances } from '../resources/profiles/list-balances.ts'
import { selectLedgerEntries, selectPayout } from '../resources/transfers/transfer-history.ts'
import { findOwner } from '../money/records/treasury.ts'
import { readTransfers } from '../resources/transfers/list-transfers.ts'
import { uuid, wholeNumber } from './arguments.ts'
import { inDatabase, onNodes } from './command-line.ts'
import { define, type Subcommand } from './define.ts'
import { tableOf } from './table.ts'

const LIST_MAX = 1_000

/** What the API shows a customer, for operators without its credentials. */
export function transferCommands(program: Command): void {
  const transfer = define(program, 'transfer', 'transfers of a customer: each movement of money')
  defineList(transfer)
  define(transfer, 'show', 'show a transfer with its ledger entries, its transactions, and why it waits')
    .argument('<transfer_id>', 'transfer', uuid)
    .answer(inDatabase, async ({ db }, id: string) => {
      const owner = await findOwner(db, id)
      if (owner === undefined) throw new Error(`there is no transfer ${id}`)
      const transfer = await readTransfer(db, owner, id)
      const shown = {
        transfer,
        ...(await selectPayout(db, transfer)),
        entries: await selectLedgerEntries(db, owner, id),
      }
      return [shown, JSON.stringify(shown, null, 2)]
    })
  define(
    define(program, 'balance', 'balances of a customer'),
    'list',
    `list the balances of a customer's profiles, by profile and asset, at most ${LIST_MAX}`,
  )
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--profile <id>', 'only of this profile', uuid)
    .list(inDatabase, {
      key: 'balances',
      none: 'there are no balances',
      read: ({ db }, { customer, profile }: { customer: string; profile?: string }) =>
        listCustomerBalances(db, customer, profile, LIST_MAX),
      columns: ['profile_id', 'nickname', 'asset', '>available'],
    })
  defineLedger(define(program, 'ledger', 'the accounts of the ledger: of the platform, and of all profiles'))
}

function defineLedger(ledger: Subcommand): void {
  define(
    ledger,
    'balances',
    'opening, debit, credit and closing of each account, and their sums; negative: what the platform has. Reads every entry',
  )
    .option('--from <time>', 'beginning of the time, such as 2026-01-01 (default: all time)', moment)
    .option('--to <time>', 'its end, not included (default: now)', moment)
    .option('--at <time>', 'balances at this moment: as --to', moment)
    .option('--customer <id>', 'only the entries of this customer', uuid)
    .answer(
      onNodes(inDatabase),
      async ({ nodes }, given: Record<'from' | 'to' | 'at', Moment | undefined> & { customer?: string }) => {
        const { from = momentOf(EVER.from), at = momentOf(EVER.to), to = at, customer } = given
        const read = await readLedgerBalances(nodes, { from, to }, customer)
        const columns = ['account', 'asset', '>opening', '>debit', '>credit', '>closing'] as const
        const rows = [...read.items, ...read.sums]
        return [read, `From ${read.from} to before ${read.to}\n${tableOf(rows, columns, undefined)}`]
      },
    )
}

const momentOf = (micros: number) => momentAt(microsToTimestamp(micros))

/** Reads a day, which begins at 00:00 UTC, or an RFC 3339 time. */
function moment(text: string): Moment {
  try {
    return momentOf(microsOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text, 'it').floor)
  } catch {
    throw new InvalidArgumentError('must be a day, such as 2026-01-31, or an RFC 3339 time.')
  }
}

interface ListOptions {
  customer: string
  type?: (typeof TransferType)['enum'][number]
  status?: (typeof TransferStatus)['enum'][number]
  refId?: string
  limit: number
}

function defineList(transfer: Subcommand): void {
  define(transfer, 'list', 'list transfers of a customer, newest first')
    .requiredOption('--customer <id>', 'customer', uuid)
    .addOption(new Option('--type <type>', 'transfers of this type').choices(TransferType.enum))
    .addOption(new Option('--status <status>', 'transfers of this status').choices(TransferStatus.enum))
    .option('--ref-id <ref_id>', 'the transfer with this ref_id')
    .option('--limit <number>', `most transfers (1 to ${LIST_MAX})`, wholeNumber(1, LIST_MAX), 20)
    .list(inDatabase, {
      none: 'there are no such transfers',
      read: async ({ db }, { customer, type, status, refId, limit }: ListOptions) => {
        const filters = {
          ...(type !== undefined && { type: [type] }),
          ...(status !== undefined && { statuses: [status] }),
          ...(refId !== undefined && { ref_ids: [refId] }),
        }
        const items: Transfer[] = []
        for (let page_cursor: string | undefined; ;) {
          const query = { ...filters, limit: limit - items.length, ...(page_cursor && { page_cursor }) }
          const page = await readTransfers(db, customer, query)
          items.push(...page.items)
          page_cursor = page.next_page_cursor
          if (page_cursor === undefined || items.length === limit) return items
        }
      },
      columns: ['created_at', 'type', 'status', '>amount', 'asset', 'ref_id', 'id'],
    })
}
