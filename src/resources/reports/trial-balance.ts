import { Type } from 'typebox'
import { AssetSymbol, OneOf, Uuid } from '../../contract/fields.ts'
import { inChart } from '../../money/books/chart.ts'
import { readProfileSums, readSums, type AccountSums } from '../../money/books/sums.ts'
import { Figure, OF_CUSTOMER, report, UNTIL, type AskedReport } from './report.ts'

const FIGURES = {
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
  asset: AssetSymbol,
  ...FIGURES,
}
const QUERY = { ...UNTIL, asset: Type.Optional(AssetSymbol), ...OF_CUSTOMER }

/** Reads the sums of the accounts, in the asset that is asked for. */
async function sumsOf({ book, time, query }: AskedReport<{ asset?: string }>) {
  const { items, sums } = await readSums(book, time)
  const isAsked = ({ asset }: { asset: string }) => query.asset === undefined || asset === query.asset
  return { items: items.filter(isAsked), sums: sums.filter(isAsked) }
}

/** The lines of accounts, and those of profiles, each for itself, where they are asked for. */
async function* linesOf(items: AccountSums[], profiles?: ReturnType<typeof readProfileSums>) {
  yield items.map((sums) => ({ ...sums, ...inChart(sums.account) }))
  for await (const page of profiles ?? [])
    yield page.map((sums) => ({ ...sums, account: 'profile', ...inChart('profile') }))
}

const isOfPlatform = ({ account }: AccountSums) => account !== 'profile'

export const getTrialBalance = report({
  path: 'trial-balance',
  summary: 'Get Trial Balance',
  description:
    "Each account of the ledger by asset, as of a moment: of the customer's entries, and for an operator of the deployment of all entries. Negative: what the platform has, such as money at its bank. A moment before the last closed day is answered the same for ever.",
  query: {
    ...QUERY,
    by: Type.Optional(OneOf(['profile'], 'A line for each profile, in place of all profiles together.')),
  },
  line: LINE,
  numbers: Object.keys(FIGURES),
  more: {
    sums: Type.Array(Type.Object({ asset: AssetSymbol, ...FIGURES }), {
      description: 'All accounts together, by asset: zero, as each entry has its counter-entry.',
    }),
    balanced: Type.Boolean({ description: 'Whether each sum is zero.' }),
  },
  async read(asked) {
    const { items, sums } = await sumsOf(asked)
    const balanced = sums.every(({ opening, closing }) => opening === '0' && closing === '0')
    const { book, time, query } = asked
    const lines =
      query.by === undefined
        ? linesOf(items)
        : linesOf(items.filter(isOfPlatform), readProfileSums(book, { ...time, asset: query.asset }))
    return { lines, more: { sums, balanced } }
  },
})

export const listAccountsOfPlatform = report({
  path: 'accounts',
  summary: 'List Platform Accounts',
  description:
    "Each account that is no profile's over a time: the bank, wallets, fees, network fees, rewards, what is under way.",
  query: QUERY,
  line: LINE,
  numbers: Object.keys(FIGURES),
  read: async (asked) => ({ lines: linesOf((await sumsOf(asked)).items.filter(isOfPlatform)) }),
})
