import { Type, type Static } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { problem } from '../../contract/problems.ts'
import type { Database } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import { nextCursor, pageOf, pageParameters, type PageRequest } from '../../http/lists.ts'
import { knownMoment } from '../../http/require-horizon.ts'
import { EVER, MICROS, microsOf, microsToTimestamp } from '../../http/time-bounds.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operation } from '../operation.ts'
import { camt053Of } from './camt053.ts'
import {
  readStatement,
  selectStatementBalances,
  selectStatementEntries,
  type StatementBalance,
  type StatementEntry,
  type StatementOf,
} from './read-statement.ts'

const BalanceOfStatement = NamedObject('BalanceOfStatement', {
  asset: AssetSymbol,
  opening: Amount('Balance at the beginning.'),
  closing: Amount('Balance at the end.'),
})
const EntryOfStatement = NamedObject('EntryOfStatement', {
  created_at: Timestamp('Time of the change.'),
  transfer_id: Uuid('Transfer that changed the balance.'),
  type: Type.String({ description: 'Type of the transfer.' }),
  event: Type.String({ description: 'CREATED, SETTLED, or REFUNDED: it failed, and the money came back.' }),
  asset: AssetSymbol,
  ref_id: Type.Optional(Type.String({ description: 'Of the transfer.' })),
  memo: Type.Optional(Type.String({ description: 'Of the transfer.' })),
  amount: Type.String({ description: 'Change of the balance: negative for a debit.' }),
  balance: Amount('Balance after the change.'),
})

const Params = Type.Object({ id: Uuid('Profile id.') })
const Query = Closed({
  from: Type.Optional(Timestamp('Beginning; without it, that of all time.')),
  to: Type.Optional(Timestamp('End, not included: now at the latest.')),
  asset: Type.Optional(AssetSymbol),
  limit: pageParameters.limit,
  page_cursor: pageParameters.page_cursor,
})

interface Asked {
  params: Static<typeof Params>
  query: Static<typeof Query>
  customerId: string
  db: Database
}

/** A statement as a bank sends it: asset after asset, each in the order of its entries. */
export const getProfileStatement = operation({
  method: 'GET',
  url: '/v2/profiles/:id/statement',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'Get Profile Statement',
  description:
    "A profile's balances at the beginning and the end of a time, and each change between, by asset and time. With `Accept: text/csv` all in one file; with `application/xml` a bank statement (camt.053.001.08) of the fiat assets: its amounts have at most 5 decimals, and its currencies are those of ISO 4217.",
  example: { params: { id: EXAMPLE.profile_id }, query: { asset: 'USD' } },
  params: Params,
  query: Query,
  reply: Type.Object({
    from: Timestamp('The beginning.'),
    to: Timestamp('The end: nothing can be added before it any more.'),
    balances: Type.Array(BalanceOfStatement, { description: 'By ticker.' }),
    entries: Type.Array(EntryOfStatement, { description: 'By ticker, the oldest first.' }),
    next_page_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
  }),
  problems: ['not-found'],
  async run(asked) {
    const { params, query, db } = asked
    const page = pageOf(`statement of ${params.id}`, query, [
      MICROS,
      /^[A-Z0-9]{1,16}$/,
      MICROS,
      /^\d{1,19}$/,
    ])
    const statement = await statementOf(asked, page.after)
    const balances = await selectStatementBalances(db, statement, query.asset)
    const { from, to } = statement
    return { from, to, balances, ...(await readPage(db, statement, balances, page)) }
  },
  forms: {
    'text/csv': async (asked) => {
      const statement = await statementOf(asked)
      const balances = await selectStatementBalances(asked.db, statement, asked.query.asset)
      return csvIn(COLUMNS, csvRows(asked.db, statement, balances), ['amount', 'balance'])
    },
    'application/xml': async (asked) => {
      const { asset } = asked.query
      const statement = await statementOf(asked)
      const balances = await selectStatementBalances(asked.db, statement, asset)
      const fiat = balances.filter((balance) => findAsset(balance.asset)?.kind === 'fiat')
      if (fiat.length === 0)
        throw problem.badRequest(
          `asset: a bank statement has fiat assets only, and ${asset ?? 'the profile has none'}${asset === undefined ? '' : ' is none'}; CSV has all`,
          'asset',
        )
      return camt053Of(statement, fiat, (ticker) => readStatement(asked.db, statement, ticker))
    },
  },
})

/** Checks what is asked. Later pages end where the first one did. */
async function statementOf({ params, query, customerId, db }: Asked, after?: string[]): Promise<StatementOf> {
  requireKnownAssets('asset', query.asset === undefined ? undefined : [query.asset])
  await requireProfile(db, customerId, params.id)
  const from = query.from === undefined ? EVER.from : Math.max(EVER.from, ceilingOf(query.from, 'from'))
  const wanted = query.to === undefined ? EVER.to : ceilingOf(query.to, 'to')
  if (wanted <= from) throw problem.badRequest('to must be after from', 'to')
  const to = after === undefined ? (await knownMoment(db, wanted - 1)).micros + 1 : Number(after[0])
  return {
    ...{ customerId, profileId: params.id },
    ...{ from: microsToTimestamp(Math.min(from, to)), to: microsToTimestamp(to) },
  }
}

/** The first whole microsecond that is not before a time. */
function ceilingOf(time: string, field: string): number {
  const { floor, exact } = microsOf(time, field)
  return exact ? floor : floor + 1
}

async function readPage(
  db: Database,
  statement: StatementOf,
  balances: readonly StatementBalance[],
  page: PageRequest,
) {
  const [, from, micros, version] = page.after ?? []
  const rows: StatementEntry[] = []
  for (const { asset } of balances) {
    if (rows.length > page.limit || (from !== undefined && asset < from)) continue
    const after =
      asset === from ? { created_at: microsToTimestamp(Number(micros)), version: version! } : undefined
    rows.push(...(await selectStatementEntries(db, statement, asset, after, page.limit + 1 - rows.length)))
  }
  const entries = rows.slice(0, page.limit)
  const last = entries.at(-1)
  if (rows.length <= page.limit || last === undefined) return { entries }
  const place = [momentAt(last.created_at).micros, last.version]
  const key = [momentAt(statement.to).micros, last.asset, ...place].map(String)
  return { entries, next_page_cursor: nextCursor(key, page) }
}

const COLUMNS = [
  ...['created_at', 'asset', 'type', 'event', 'amount', 'balance', 'ref_id', 'memo', 'transfer_id'],
] as const

async function* csvRows(
  db: Database,
  statement: StatementOf,
  balances: readonly StatementBalance[],
): AsyncGenerator<Partial<StatementEntry>[]> {
  for (const { asset, opening, closing } of balances) {
    yield [{ created_at: statement.from, asset, type: 'OPENING', balance: opening }]
    yield* readStatement(db, statement, asset)
    yield [{ created_at: statement.to, asset, type: 'CLOSING', balance: closing }]
  }
}
