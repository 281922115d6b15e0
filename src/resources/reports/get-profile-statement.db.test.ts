import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { makeBooks, randomOf } from '../../../test/book-history.ts'
import { SEED } from '../../../test/seed.ts'
import { fund, newCustomer, newProfile, ownTestService } from '../../../test/support.ts'
import { ASSETS } from '../../contract/assets/catalogue.ts'

interface Answer {
  from: string
  to: string
  items: Record<'asset' | 'type' | 'amount' | 'balance' | 'created_at' | 'transfer_id', string>[]
}

const service = await ownTestService()
const [customer, other] = [await newCustomer(service), await newCustomer(service)]
const holders = [customer, other].map(({ customer_id, profile_id }) => ({
  customer_id,
  profile_ids: [profile_id],
}))
await makeBooks(service.db, holders, 2_600, randomOf(SEED))

const URL = `/v2/profiles/${customer.profile_id}/statement`
const TIME = 'from=2024-03-01T12:00:00Z&to=2024-10-01'

async function statementOf(query: string) {
  const { status, body } = await customer.call<Answer>('GET', `${URL}?${query}`)
  expect(status).toBe(200)
  const of = (wanted: string) => body.items.filter(({ type }) => type === wanted)
  const closingOf = (asset: string) => of('CLOSING').find((line) => line.asset === asset)!.balance
  const balances = of('OPENING').map(({ asset, balance }) => {
    return { asset, opening: balance, closing: closingOf(asset) }
  })
  return { ...body, balances, entries: body.items.filter(({ type }) => !/^(OPEN|CLOS)ING$/.test(type)) }
}

const inForm = async (accept: string, query: string, url = URL) =>
  service.app.inject({
    method: 'GET',
    url: `${url}?${query}`,
    headers: { accept, authorization: `Bearer ${customer.token}` },
  })

/** The paths of the elements of a document, with the text of those without others. Throws where it is not well-formed. */
function elementsOf(xml: string): [path: string, text: string][] {
  const found: [string, string][] = []
  const open: string[] = []
  let text = ''
  const body = xml.replace(/^<\?xml version="1.0" encoding="UTF-8"\?>/, '')
  for (const [, end, name, , content] of body.matchAll(/<(\/?)(\w+)((?: \w+="[^"<>&]*")*)>|([^<>]+)/g)) {
    if (content !== undefined) {
      if (/&(?!#\d+;)/.test(content)) throw new Error(`not well-formed: ${content}`)
      text = content.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    } else if (end === '') {
      open.push(name!)
      text = ''
    } else {
      if (text.trim() !== '') found.push([open.join('/'), text])
      if (open.pop() !== name) throw new Error(`not well-formed: </${name}>`)
      text = ''
    }
  }
  expect(open).toEqual([])
  return found
}

describe('Get Profile Statement', () => {
  test(`it has every entry, and the balances before and after (TEST_SEED=${SEED})`, async () => {
    const all = await statementOf(TIME)
    const { rows } = await service.db.query<{
      asset: string
      opening: string
      closing: string
      entries: string
    }>(
      `select asset, coalesce(sum(amount) filter (where created_at < '2024-03-01 12:00+00'), 0)::float8::text as opening,
              sum(amount)::float8::text as closing, count(*) filter (where created_at >= '2024-03-01 12:00+00') as entries
       from entries where profile_id = $1 and created_at < '2024-10-01 00:00+00' group by asset order by asset`,
      [customer.profile_id],
    )
    const held = all.balances.filter(({ asset }) => rows.some((row) => row.asset === asset))
    expect(
      held.map(({ asset, opening, closing }) => {
        const entries = all.entries.filter((entry) => entry.asset === asset)
        expect(entries.at(-1)?.balance ?? opening).toBe(closing)
        return { asset, opening: Number(opening), closing: Number(closing), entries: entries.length }
      }),
    ).toEqual(
      rows.map(({ asset, opening, closing, entries }) => {
        return { asset, opening: Number(opening), closing: Number(closing), entries: Number(entries) }
      }),
    )
  })

  test('it ends now, and a time that has ended has the same statement for ever', async () => {
    const { to, ...before } = await statementOf('asset=USD')
    await fund(customer, '5')
    expect(await statementOf(`asset=USD&to=${to}`)).toMatchObject(before)
    const after = await statementOf('asset=USD&to=2200-01-01')
    expect(after.entries).toHaveLength(before.entries.length + 1)
  })

  test('an asset that was never held has a balance of zero', async () => {
    const profile = await newProfile(customer)
    const { body } = await customer.call('GET', `/v2/profiles/${profile}/statement?asset=EUR`)
    const lines = ['OPENING', 'CLOSING'].map((type) => ({ asset: 'EUR', type, balance: '0' }))
    expect(body).toMatchObject({ items: lines })
    expect(await inForm('application/xml', '', `/v2/profiles/${profile}/statement`)).toMatchObject({
      statusCode: 400,
    })
  })

  test('CSV has the same, with the balances before and after', async () => {
    // Three decimals get a fourth.
    const cell = (amount: string) => amount.replace(/\.\d{3}$/, '$&0')
    const all = await statementOf(TIME)
    const answer = await inForm('text/csv', TIME)
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8')
    const rows = parse<Record<string, string>>(answer.body, { bom: true, columns: true })
    expect(
      rows
        .filter(({ transfer_id }) => transfer_id !== '')
        .map(({ asset, amount, balance }) => ({ asset, amount, balance })),
    ).toEqual(
      all.entries.map(({ asset, amount, balance }) => ({
        asset,
        amount: cell(amount),
        balance: cell(balance),
      })),
    )
    for (const { asset, opening, closing } of all.balances) {
      const own = rows.filter((row) => row.asset === asset)
      expect(own[0]).toMatchObject({ type: 'OPENING', balance: cell(opening) })
      expect(own.at(-1)).toMatchObject({ type: 'CLOSING', balance: cell(closing) })
    }
  })

  test('XML is a bank statement of each fiat asset', async () => {
    const all = await statementOf(TIME)
    const answer = await inForm('application/xml', TIME)
    expect(answer.headers['content-type']).toBe('application/xml; charset=utf-8')
    const elements = elementsOf(answer.body)
    const textsOf = (path: string) => elements.filter(([at]) => at.endsWith(path)).map(([, text]) => text)
    const fiat = all.balances.filter(
      ({ asset }) => ASSETS.find(({ symbol }) => symbol === asset)!.kind === 'fiat',
    )
    expect(textsOf('Acct/Ccy')).toEqual(fiat.map(({ asset }) => asset))
    const unsigned = (amount: string) => amount.replace('-', '')
    expect(textsOf('Bal/Amt')).toEqual(fiat.flatMap(({ opening, closing }) => [opening, closing]))
    const entries = all.entries.filter(({ asset }) => fiat.some((balance) => balance.asset === asset))
    expect(entries.length).toBeGreaterThan(5)
    expect(textsOf('Ntry/Amt')).toEqual(entries.map(({ amount }) => unsigned(amount)))
    expect(textsOf('Ntry/AcctSvcrRef')).toEqual(
      entries.map(({ transfer_id }) => transfer_id.replaceAll('-', '')),
    )
    for (const reference of [
      ...textsOf('Refs/EndToEndId'),
      ...textsOf('Refs/AcctSvcrRef'),
      ...textsOf('Stmt/Id'),
    ])
      expect([...reference].length).toBeLessThanOrEqual(35)
    for (const query of ['asset=BTC', 'asset=USDP'])
      expect(await inForm('application/xml', query)).toMatchObject({ statusCode: 400 })
  })
})
