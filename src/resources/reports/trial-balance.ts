import { Type } from 'typebox'
import { AssetSymbol, OneOf, Uuid } from '../../contract/fields.ts'
import { inChart } from '../../money/books/chart.ts'
import { readProfileSums, readSums, type AccountSums } from '../../money/books/book.ts'
import { Figure, OF_CUSTOMER, report, UNTIL, type AskedReport } from './report.ts'

const SUMS = {
  asset: AssetSymbol,
  opening: Figure('At the beginning.'),
  debit: Figure('What was taken in the time.'),
  credit: Figure('What was added in the time.'),
  closing: Figure('At the end: the opening, less the debit, plus the credit.'),
}
const LINE = {
  account: Type.String({ description: 'The account of the ledger.', examples: ['bank'] }),
  name: Type.String({ description: 'The account in words.', examples: ['Bank account'] }),
  kind: OneOf(['ASSET', 'LIABILITY', 'INCOME', 'EXPENSE', 'CLEARING'], 'Its place in the chart of accounts.'),
  customer_id: Type.Optional(Uuid('By profile: the customer.')),
  profile_id: Type.Optional(Uuid('By profile: the profile.')),
  ...SUMS,
}
const QUERY = { ...UNTIL, asset: Type.Optional(AssetSymbol), ...OF_CUSTOMER }
type Asked = AskedReport<{ asset?: string }>

/** Reads the sums of the accounts, in the asset that is asked for. */
async function sumsOf({ book, time, query: { asset } }: Asked) {
  const { items, sums } = await readSums(book, time)
  const isAsked = (line: { asset: string }) => asset === undefined || line.asset === asset
  return { items: items.filter(isAsked).map(inWords), sums: sums.filter(isAsked) }
}

const inWords = (sums: AccountSums) => ({ ...sums, ...inChart(sums.account) })
const isOfPlatform = ({ account }: AccountSums) => account !== 'profile'

/** The lines of accounts, each profile's for itself. */
async function* linesByProfile({ book, time, query: { asset } }: Asked, items: AccountSums[]) {
  yield items.filter(isOfPlatform)
  for await (const page of readProfileSums(book, { ...time, asset }))
    yield page.map((sums) => inWords({ ...sums, account: 'profile' }))
}

export const getTrialBalance = report({
  url: '/v2/reports/trial-balance',
  summary: 'Get Trial Balance',
  description:
    "Each account of the ledger by asset, as of a moment: of the customer's entries, and for an operator of the deployment of all entries. Negative: what the platform has, such as money at its bank. A moment before the last closed day is answered the same for ever.",
  query: { ...QUERY, by: Type.Optional(OneOf(['profile'], 'A line for each profile.')) },
  line: LINE,
  more: {
    sums: Type.Array(Type.Object(SUMS), { description: 'All accounts of an asset together: zero.' }),
    balanced: Type.Boolean({ description: 'Whether each sum is zero.' }),
  },
  async read(asked) {
    const { items, sums } = await sumsOf(asked)
    const balanced = sums.every(({ opening, closing }) => opening === '0' && closing === '0')
    const lines = asked.query.by === undefined ? [items] : linesByProfile(asked, items)
    return { lines, sums, balanced }
  },
})

export const listAccountsOfPlatform = report({
  url: '/v2/reports/accounts',
  summary: 'List Platform Accounts',
  description:
    "Each account that is no profile's over a time: the bank, wallets, fees, network fees, rewards, what is under way.",
  query: QUERY,
  line: LINE,
  read: async (asked) => ({ lines: [(await sumsOf(asked)).items.filter(isOfPlatform)] }),
})
