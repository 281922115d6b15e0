import { Type } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { problem } from '../../contract/problems.ts'
import type { Database } from '../../db/database.ts'
import { readEntries, type BookEntry } from '../../money/books/read-entries.ts'
import { readProfileSums } from '../../money/books/sums.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operation } from '../operation.ts'
import { camt053Of, type Statement } from './camt053.ts'
import { Figure, finalPeriod, ITS_TIME, PERIOD } from './report.ts'

/** Most entries in JSON. Files have all. */
const ENTRIES_MAX = 1_000

const BalanceOfStatement = NamedObject('BalanceOfStatement', {
  asset: AssetSymbol,
  opening: Amount('Balance at the beginning.'),
  closing: Amount('Balance at the end.'),
})
const EntryOfStatement = NamedObject('EntryOfStatement', {
  created_at: Timestamp('Time of the change.'),
  transfer_id: Uuid('Transfer that changed the balance.'),
  type: Type.String({ description: 'Type of the transfer.' }),
  event: Type.String({ description: 'CREATED, or REFUNDED: the money came back.' }),
  asset: AssetSymbol,
  ref_id: Type.Optional(Type.String({ description: 'Of the transfer.' })),
  memo: Type.Optional(Type.String({ description: 'Of the transfer.' })),
  amount: Figure('Change of the balance: negative for a debit.'),
  balance: Amount('Balance after the change.'),
})
const COLUMNS = 'created_at asset type event amount balance ref_id memo transfer_id'.split(' ')

/** A statement as a bank sends it: asset after asset, each in the order of its entries. */
export const getProfileStatement = operation({
  method: 'GET',
  url: '/v2/profiles/:id/statement',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'Get Profile Statement',
  description: `A profile's balances at the beginning and the end of a time, and each change between, by asset and time: at most ${ENTRIES_MAX} changes, or all with \`Accept: text/csv\`. With \`application/xml\` a bank statement (camt.053.001.08) of the fiat assets: its amounts have at most 5 decimals, and its currencies are those of ISO 4217.`,
  example: { params: { id: EXAMPLE.profile_id }, query: { asset: 'USD' } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  query: Closed({ ...PERIOD, asset: Type.Optional(AssetSymbol) }),
  reply: Type.Object({
    ...ITS_TIME,
    balances: Type.Array(BalanceOfStatement, { description: 'By ticker.' }),
    entries: Type.Array(EntryOfStatement, { description: 'By ticker, the oldest first.' }),
  }),
  problems: ['not-found'],
  async run(asked) {
    const { from, to, balances, entriesOf } = await read(asked)
    const entries: BookEntry[] = []
    for (const { asset } of balances)
      for await (const page of entriesOf(asset)) {
        entries.push(...page)
        if (entries.length > ENTRIES_MAX)
          throw problem.badRequest(`from: more than ${ENTRIES_MAX} entries; CSV has all`, 'from')
      }
    return { from, to, balances: [...balances], entries: entries as Required<BookEntry>[] }
  },
  forms: {
    'text/csv': async (asked) => csvIn(COLUMNS, csvRows(await read(asked)), ['amount', 'balance']),
    async 'application/xml'(asked) {
      const statement = await read(asked)
      const fiat = statement.balances.filter(({ asset }) => findAsset(asset)!.kind === 'fiat')
      if (fiat.length === 0)
        throw problem.badRequest('asset: a bank statement has fiat assets only; CSV has all', 'asset')
      return camt053Of({ ...statement, balances: fiat })
    },
  },
})

interface Asked {
  params: { id: string }
  query: { asset?: string }
  customerId: string
  db: Database
}

/** Reads the balances of a profile, by ticker: of those that it held, or of the asset that is asked for. */
async function read({ params, query, customerId, db }: Asked): Promise<Statement> {
  const { asset } = query
  requireKnownAssets('asset', asset === undefined ? undefined : [asset])
  await requireProfile(db, customerId, params.id)
  const book = { db, customerId }
  const time = await finalPeriod(book, query)
  const of = { ...time, profileId: params.id.toLowerCase() }
  const balances: Statement['balances'][number][] = []
  for await (const page of readProfileSums(book, { ...of, asset })) balances.push(...page)
  if (asset !== undefined && balances.length === 0) balances.push({ asset, opening: '0', closing: '0' })
  balances.sort((a, b) => (a.asset < b.asset ? -1 : 1))
  const entriesOf = (own: string) => readEntries(book, { ...of, asset: own })
  return { profileId: of.profileId, from: time.from.text, to: time.to.text, balances, entriesOf }
}

async function* csvRows({ from, to, balances, entriesOf }: Statement) {
  for (const { asset, opening, closing } of balances) {
    yield [{ created_at: from, asset, type: 'OPENING', balance: opening }]
    yield* entriesOf(asset)
    yield [{ created_at: to, asset, type: 'CLOSING', balance: closing }]
  }
}
