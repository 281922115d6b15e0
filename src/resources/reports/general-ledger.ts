import { Type } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { AssetSymbol, Timestamp, Uuid } from '../../contract/fields.ts'
import { pageEnd, pageParameters } from '../../http/lists.ts'
import { inChart } from '../../money/books/chart.ts'
import { readEntries, readSums } from '../../money/books/book.ts'
import { Figure, OF_CUSTOMER, PERIOD, report, type AskedReport } from './report.ts'

type Asked = AskedReport<{ account?: string; asset?: string; profile_id?: string }>

/** The entries with the running balance of their account, as they are posted. */
async function* linesOf({ book, time, query: { account, asset, profile_id: profileId } }: Asked) {
  const balances = new Map<string, bigint>()
  const addTo = (of: { account: string; asset: string }, amount: string) => {
    const [key, decimals] = [`${of.asset} ${of.account}`, decimalsOf(of.asset)]
    const balance = (balances.get(key) ?? 0n) + parseStoredAmount(amount, decimals)
    balances.set(key, balance)
    return formatAmount(balance, decimals)
  }
  // A profile's entries have its balance.
  const before = profileId === undefined ? (await readSums(book, { ...time, to: time.from })).items : []
  for (const sums of before) addTo(sums, sums.closing)
  const entries = readEntries(book, { ...time, account, asset, profileId, withCounterAccounts: true })
  for await (const page of entries)
    yield page.map((entry) => ({
      ...entry,
      name: inChart(entry.account).name,
      balance: profileId === undefined ? addTo(entry, entry.amount) : entry.balance,
    }))
}

export const listGeneralLedger = report({
  url: '/v2/reports/general-ledger',
  summary: 'List General Ledger',
  description:
    'The entries of a time in the order of their posting, each with the balance of its account after it, and the accounts on the other side.',
  query: {
    ...PERIOD,
    account: Type.Optional(Type.String({ maxLength: 60, description: 'Only this account, such as `bank`.' })),
    asset: Type.Optional(AssetSymbol),
    profile_id: Type.Optional(Uuid('Only this profile.')),
    ...OF_CUSTOMER,
    ...{ limit: pageParameters.limit, page_cursor: pageParameters.page_cursor },
  },
  example: { query: { account: 'profile' } },
  line: {
    created_at: Timestamp('When it was posted.'),
    transfer_id: Uuid('The transfer, sweep or acknowledged transaction that it belongs to.'),
    event: Type.String({ description: 'CREATED, SETTLED, REFUNDED or SWEPT.' }),
    position: Type.Integer({ description: 'Its place within the event.' }),
    type: Type.Optional(Type.String({ description: 'The type of the transfer.' })),
    ref_id: Type.Optional(Type.String({ description: 'The ref_id of the transfer.' })),
    account: Type.String({ description: 'The account.' }),
    name: Type.String({ description: 'The account in words.' }),
    customer_id: Uuid('The customer, or the platform.'),
    profile_id: Type.Optional(Uuid('The profile, on a profile.')),
    asset: AssetSymbol,
    amount: Figure('Negative: taken from the account.'),
    balance: Figure('After it: of the account in the asset, or of the profile that the report is of.'),
    counter_accounts: Type.Array(Type.String(), { description: 'Other accounts of the event in the asset.' }),
  },
  more: { next_page_cursor: pageEnd.next_page_cursor },
  read: async (asked) => ({ lines: linesOf(asked) }),
})
