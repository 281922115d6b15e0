import { Type, type Static } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { problem } from '../../contract/problems.ts'
import type { Database } from '../../db/database.ts'
import { completeUntil, earlierOf } from '../../money/books/book.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operation } from '../operation.ts'
import { reported, reportPeriod, ReportTime } from './book.ts'
import { camt053Of } from './camt053.ts'
import {
  readStatement,
  selectStatementBalances,
  type StatementBalance,
  type StatementEntry,
  type StatementOf,
} from './read-statement.ts'

/** Most entries in JSON. Files have all. */
const ENTRIES_MAX = 1_000

const Params = Type.Object({ id: Uuid('Profile id.') })
const Query = Closed({
  from: ReportTime('The beginning; without it, that of all time.'),
  to: ReportTime('The end, not included: now at the latest.'),
  asset: Type.Optional(AssetSymbol),
})
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
  amount: Type.String({ description: 'Change of the balance: negative for a debit.' }),
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
  params: Params,
  query: Query,
  reply: Type.Object({
    from: Timestamp('The beginning.'),
    to: Timestamp('The end: nothing can be added before it any more.'),
    balances: Type.Array(BalanceOfStatement, { description: 'By ticker.' }),
    entries: Type.Array(EntryOfStatement, { description: 'By ticker, the oldest first.' }),
  }),
  problems: ['not-found'],
  async run(asked) {
    const [statement, balances] = await read(asked)
    const entries: StatementEntry[] = []
    for (const { asset } of balances)
      for await (const page of readStatement(statement, asset)) {
        entries.push(...page)
        if (entries.length > ENTRIES_MAX)
          throw problem.badRequest(`from: more than ${ENTRIES_MAX} entries; CSV has all`, 'from')
      }
    return { from: statement.from, to: statement.to, balances, entries }
  },
  forms: {
    'text/csv': async (asked) => csvIn(COLUMNS, csvRows(...(await read(asked))), ['amount', 'balance']),
    async 'application/xml'(asked) {
      const [statement, balances] = await read(asked)
      const fiat = balances.filter(({ asset }) => findAsset(asset)!.kind === 'fiat')
      if (fiat.length === 0)
        throw problem.badRequest('asset: a bank statement has fiat assets only; CSV has all', 'asset')
      return camt053Of(statement, fiat, (asset) => readStatement(statement, asset))
    },
  },
})

async function read({
  params,
  query,
  customerId,
  db,
}: {
  params: Static<typeof Params>
  query: Static<typeof Query>
  customerId: string
  db: Database
}): Promise<[StatementOf, StatementBalance[]]> {
  requireKnownAssets('asset', query.asset === undefined ? undefined : [query.asset])
  await requireProfile(db, customerId, params.id)
  const asked = reportPeriod(query)
  const to = await reported(completeUntil({ db, customerId }, asked.to))
  const time = { from: earlierOf(asked.from, to).text, to: to.text }
  const statement = { db, customerId, profileId: params.id, ...time }
  return [statement, await selectStatementBalances(statement, query.asset)]
}

async function* csvRows(statement: StatementOf, balances: StatementBalance[]) {
  for (const { asset, opening, closing } of balances) {
    yield [{ created_at: statement.from, asset, type: 'OPENING', balance: opening }]
    yield* readStatement(statement, asset)
    yield [{ created_at: statement.to, asset, type: 'CLOSING', balance: closing }]
  }
}
