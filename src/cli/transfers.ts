import type { Command } from 'commander'
import { readTransfer, TransferStatus, TransferType, type Transfer } from '../money/ledger/transfer.ts'
import { listCustomerBalances } from '../resources/profiles/list-balances.ts'
import { selectLedgerEntries, selectPayout } from '../resources/transfers/transfer-history.ts'
import { findOwner } from '../money/records/transfer-owner.ts'
import { listTransfers } from '../resources/transfers/list-transfers.ts'
import { COMMON, uuid, wholeNumber } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'

interface TransferPage {
  items: Transfer[]
  next_page_cursor?: string
}

const LIST_MAX = 1_000
const LISTED = 20

const WORDS = {
  ...COMMON,
  '<transfer_id>': ['transfer', uuid],
  '--type <type>': ['transfers of this type', TransferType.enum],
  '--status <status>': ['transfers of this status', TransferStatus.enum],
  '--ref-id <ref_id>': ['the transfer with this ref_id'],
  '--limit <number>': [`most transfers (1 to ${LIST_MAX}, default: ${LISTED})`, wholeNumber(1, LIST_MAX)],
  '--profile <id>': ['only of this profile', uuid],
} as const

/** What the API shows a customer, for operators without its credentials. */
export function transferCommands(program: Command): void {
  const about = 'transfers of a customer: each movement of money'
  const transfer = group(program, ['transfer', about], inDatabase, WORDS)
  transfer.list(
    'list --customer <id> [--type <type>] [--status <status>] [--ref-id <ref_id>] [--limit <number>]',
    {
      about: 'list transfers of a customer, newest first',
      none: 'there are no such transfers',
      async run({ db }, { customer, type, status, ref_id, limit = LISTED }) {
        const filters = {
          ...(type !== undefined && { type: [type] }),
          ...(status !== undefined && { statuses: [status] }),
          ...(ref_id !== undefined && { ref_ids: [ref_id] }),
        }
        const items: Transfer[] = []
        for (let page_cursor: string | undefined; ;) {
          const query = { ...filters, limit: limit - items.length, ...(page_cursor && { page_cursor }) }
          const page = (await listTransfers.run({ db, customerId: customer, query } as never)) as TransferPage
          items.push(...page.items)
          page_cursor = page.next_page_cursor
          if (page_cursor === undefined || items.length === limit) return items
        }
      },
      columns: ['created_at', 'type', 'status', '>amount', 'asset', 'ref_id', 'id'],
    },
  )
  transfer.command('show <transfer_id>', {
    about: 'show a transfer with its ledger entries, its transactions, and why it waits',
    async run({ db }, { transfer_id: id }) {
      const owner = await findOwner(db, id)
      if (owner === undefined) throw new Error(`there is no transfer ${id}`)
      const transfer = await readTransfer(db, owner, id)
      const payout = await selectPayout(db, transfer)
      return { transfer, ...payout, entries: await selectLedgerEntries(db, owner, id) }
    },
    says: (shown) => JSON.stringify(shown, null, 2),
  })
  group(program, ['balance', 'balances of a customer'], inDatabase, WORDS).list(
    'list --customer <id> [--profile <id>]',
    {
      about: `list the balances of a customer's profiles, by profile and asset, at most ${LIST_MAX}`,
      key: 'balances',
      none: 'there are no balances',
      run: ({ db }, { customer, profile }) => listCustomerBalances(db, customer, profile, LIST_MAX),
      columns: ['profile_id', 'nickname', 'asset', '>available'],
    },
  )
}
