/*
 * Invariants of bank statements (docs/guides/live-without-a-bank-interface.md):
 * 1. a line credits the profile whose memo it has, or nobody, and once: whatever a stranger writes in its text;
 * 2. a file that is refused changes nothing; one that is imported again changes nothing;
 * 3. the difference between the bank and the ledger is explained to zero.
 */
import { randomUUID } from 'node:crypto'
import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { ownFolder } from '../../../test/at-end.ts'
import { bai2Of, camtOf, mt940Of } from '../../../test/bank-statements.ts'
import { BANK, PAYEE_ACCOUNT } from '../../../test/bank.ts'
import { refusedWith } from '../../../test/matchers.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import { SEED } from '../../../test/seed.ts'
import {
  credit,
  everyTable,
  newCustomer,
  newProfile,
  outputOf,
  ownTestService,
} from '../../../test/support.ts'
import type { BankLine, BankStatement } from '../../rails/bank-statements/statement.ts'
import { withProposals } from '../../rails/bank-statements/match.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'

const BURSAR_BANK_FILE = join(await ownFolder(), 'bank.json')
await writeFile(BURSAR_BANK_FILE, JSON.stringify(BANK))
const service = await ownTestService({ BURSAR_MODE: 'live', BURSAR_BANK_FILE })
const customer = await newCustomer(service)
const operator = await newOperatorCaller(service, 'OPERATOR', { actFor: customer.customer_id })
const { rows: days } = await service.db.query<{ today: string }>(
  'select clock_timestamp()::date::text as today',
)
const { today } = days[0]!
const before = (count: number) => new Date(Date.parse(today) - count * 86_400_000).toISOString().slice(0, 10)

interface Candidate {
  kind: string
  is: string
}
interface Line {
  id: string
  amount: string
  state: string
  bank_reference: string
  candidates: Candidate[]
  transfer_id?: string
}
interface Reconciliation {
  bank: string
  ledger: string
  remainder: string
  explained: boolean
  items: { kind: string; amount: string; age_days: number; text?: string; transfer_id?: string }[]
}

/** The next statement of the account: each test adds to one history. */
const account = { opening: 10_000n, number: 0, day: 400 }
let count = 0
const ref = () => `BANK${String(++count).padStart(8, '0')}`
const line = (amount: bigint, text: string, more: Partial<BankLine> = {}): BankLine => ({
  ...{
    date: '',
    amount,
    text,
    reference: ref(),
    code: 'PMNT/RCDT/XBCT',
    is_reversal: false,
    is_return: false,
  },
  ...more,
})
function statement(lines: BankLine[], more: Partial<BankStatement> = {}): BankStatement {
  const { opening, number, day } = account
  const date = before(day - 1)
  const closing = lines.reduce((sum, { amount }) => sum + amount, opening)
  const dated = lines.map((own) => ({ ...own, date: own.date || date }))
  const base = { format: 'CAMT_053', account: '000123456789', currency: 'USD', id: `S${number + 1}` } as const
  return { ...base, number: number + 1, date, opening, closing, lines: dated, ...more }
}
type Imported = {
  changed: boolean
  account: string
  items: { is_new: boolean }[]
  matched: { kind: string; line_id: string }[]
}
/** Whether files are imported with the rule `exact`. */
let isExact = false
const send = (text: string) =>
  operator<Imported>('POST', '/v2/bank/statements', {
    ...{ file: Buffer.from(text).toString('base64'), exact: isExact },
  })
/** Imports lines as the next statement, with today's date where the rule looks at it. */
async function imported(
  lines: BankLine[],
  write: typeof camtOf = camtOf,
): Promise<Imported & { file: string }> {
  const next = statement(lines)
  const file = write([next])
  const { status, body } = await send(file)
  expect(status, JSON.stringify(body)).toBe(200)
  Object.assign(account, { opening: next.closing, number: next.number, day: account.day - 1 })
  return { ...body, file }
}
const listed = async (query = '') =>
  (await operator<{ items: Line[] }>('GET', `/v2/bank/lines${query}`)).body.items
const lineOf = async ({ reference }: BankLine) =>
  (await listed()).find(({ bank_reference }) => bank_reference === reference)!
const decide = (id: string, body: object = {}) =>
  operator<{ changed: boolean; kind: string; transfer_id: string }>(
    'POST',
    `/v2/bank/lines/${id}/match`,
    body,
  )
const reconciled = async (date = today) =>
  (await operator<Reconciliation>('GET', `/v2/reports/bank-reconciliation?date=${date}`)).body

async function newMemo(profile_id = customer.profile_id): Promise<string> {
  const made = await customer.call('POST', '/v2/transfer/fiat-deposit-instructions', {
    profile_id,
    fiat_network: 'WIRE',
  })
  return String(made.body.memo_id)
}
const balance = async (profile_id: string) =>
  (
    await service.db.query<{ sum: string }>(
      `select coalesce(trim_scale(sum(amount)), 0)::text as sum from entries where profile_id = $1 and asset = 'USD'`,
      [profile_id],
    )
  ).rows[0]!.sum
async function takenWire(amount: string, memo?: string): Promise<string> {
  await credit(service.ledger, customer, 'USD', amount)
  const { body: payee } = await customer.call('POST', '/v2/transfer/fiat-accounts', PAYEE_ACCOUNT)
  const { profile_id } = customer
  const { body } = await customer.call('POST', '/v2/transfer/fiat-withdrawals', {
    profile_id,
    asset: 'USD',
    fiat_account_id: payee.id,
    amount,
    memo,
  })
  await settleWithdrawals(service.db, service.networks)
  expect((await operator('POST', `/v2/operators/wires/${String(body.id)}/take`)).status).toBe(200)
  return String(body.id)
}
async function sentWire(amount: string): Promise<{ id: string; bank_reference: string }> {
  const [id, bank_reference] = [await takenWire(amount), ref()]
  expect((await operator('POST', `/v2/operators/wires/${id}/sent`, { bank_reference })).status).toBe(200)
  return { id, bank_reference }
}
const record = (memo: string, amount: string, bank_reference: string) =>
  operator('POST', '/v2/operators/wires/deposits', { memo, amount, bank_reference })

/** What was credited without the bank, by `credit`, is the ledger's alone. After each test, the rest is explained. */
afterEach(async () => {
  if (account.number === 0) return
  expect(await reconciled()).toMatchObject({ explained: true, remainder: '0' })
  isExact = false
})

describe('what strangers write', () => {
  test('a text with two memos, of two profiles, is ambiguous: nobody is credited without a person, and by none with the rule', async () => {
    isExact = true
    const other = await newProfile(customer)
    const [memo, second] = [await newMemo(), await newMemo(other)]
    const attack = line(500n, `invoice ${memo} and ${second}`, { date: today })
    await imported([attack])
    expect(await lineOf(attack)).toMatchObject({
      state: 'AMBIGUOUS',
      candidates: [{ kind: 'DEPOSIT' }, { kind: 'DEPOSIT' }],
    })
    expect(await decide((await lineOf(attack)).id)).toMatchObject(refusedWith(403, 'is ambiguous'))
    expect(await balance(other)).toBe('0')
    expect(await decide((await lineOf(attack)).id, { is: second })).toMatchObject({
      status: 200,
      body: { kind: 'DEPOSIT' },
    })
    expect(await balance(other)).toBe('5')
  })

  test('a memo within another word is none; banks break and space one', async () => {
    const memo = await newMemo()
    const hidden = line(100n, `X${memo} ${memo}9`)
    const spaced = line(
      200n,
      `ref ${memo.slice(0, 4)} ${memo.slice(4, 8)}-${memo.slice(8)} thanks`.toLowerCase(),
    )
    await imported([hidden, spaced])
    expect((await lineOf(hidden)).state).toBe('OPEN')
    expect(await lineOf(spaced)).toMatchObject({
      state: 'PROPOSED',
      candidates: [{ kind: 'DEPOSIT', is: memo }],
    })
  })

  test("an incoming text that names a wire's reference is no return; nor does it match a recorded wire", async () => {
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const wire = await sentWire('40')
    const known = ref()
    await record(memo, '40', known)
    const attack = line(4_000n, `RETURN /RTRN/ ${wire.bank_reference} ${known}`, {
      customer_reference: known,
    })
    await imported([attack])
    expect(await lineOf(attack)).toMatchObject({ state: 'OPEN', candidates: [] })
    expect(await balance(profile)).toBe('40')
  })

  test('a wire that was recorded with another of its references is ambiguous, with both, and the rule credits it not again', async () => {
    isExact = true
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    await record(memo, '12.5', ref())
    const again = line(1_250n, memo, { date: today })
    await imported([again])
    const { state, candidates, id } = await lineOf(again)
    expect({ state, kinds: candidates.map(({ kind }) => kind).sort() }).toEqual({
      state: 'AMBIGUOUS',
      kinds: ['DEPOSIT', 'RECORDED'],
    })
    const { is } = candidates.find(({ kind }) => kind === 'RECORDED')!
    expect(await decide(id, { is })).toMatchObject({
      status: 200,
      body: { kind: 'RECORDED', changed: true },
    })
    expect(await balance(profile)).toBe('12.5')
  })

  test('the rule reads only the lines of the file: a line in the database credits nobody, also for a person', async () => {
    isExact = true
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const { rows } = await service.db.query<{ id: string }>(
      `insert into bank_lines (position, ordinal, id, date, amount, bank_reference, text, code, is_reversal, is_return)
       values (1, 99, gen_random_uuid(), current_date, 1000, 'FORGED', $1, 'X', false, false) returning id`,
      [memo],
    )
    await imported([line(1n, 'interest')])
    expect(await decide(rows[0]!.id)).toMatchObject(refusedWith(403, 'no line of a bank statement'))
    // Below the lines that the statement's MAC counts there is no place, either.
    const below = service.db.query(
      `insert into bank_lines (position, ordinal, id, date, amount, bank_reference, text, code, is_reversal, is_return)
       values (1, 0, gen_random_uuid(), current_date, 1000, 'FORGED', $1, 'X', false, false)`,
      [memo],
    )
    await expect(below).rejects.toThrow('bank_lines_ordinal')
    expect(await balance(profile)).toBe('0')
  })

  test('the rule leaves MT940 and BAI2 to people: a stranger who breaks a line could make one', async () => {
    isExact = true
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const made = line(300n, memo, { date: today, code: 'NTRF' })
    expect((await imported([made], mt940Of)).matched).toEqual([])
    expect(await balance(profile)).toBe('0')
    expect(await lineOf(made)).toMatchObject({ state: 'PROPOSED' })
    account.number += 1
    const third = statement([line(300n, memo, { code: '195' })], { format: 'BAI2' })
    account.number -= 1
    delete third.number
    expect((await send(bai2Of([third]))).body).toMatchObject({ matched: [], changed: true })
    Object.assign(account, { opening: third.closing, day: account.day - 1 })
    expect(await balance(profile)).toBe('0')
  })

  test('the rule leaves to people what may be recorded already, taken back, or of several payments', async () => {
    isExact = true
    const isLeft = async (
      money: bigint,
      {
        before = async () => {},
        write = camtOf,
        more = [],
      }: {
        before?: (memo: string) => Promise<unknown>
        write?: typeof camtOf
        more?: BankLine[]
      },
    ) => {
      const profile = await newProfile(customer)
      const memo = await newMemo(profile)
      await before(memo)
      const had = await balance(profile)
      const own = line(money, memo, { date: today })
      expect((await imported([own, ...more], write)).matched).toEqual([])
      expect(await balance(profile)).toBe(had)
    }
    const within = (from: string, to: string) => (statements: readonly BankStatement[]) =>
      camtOf(statements).replace(from, to)
    await isLeft(98_001n, {
      before: (memo) =>
        operator('POST', '/v2/operators/wires/deposits', { memo, amount: '987.65', bank_reference: 'GROSS' }),
    })
    await isLeft(5511n, {
      before: (memo) =>
        service.db.query(
          `insert into bank_wires (asset, direction, bank_reference, kind, amount, transfer_id, memo_id, recorded_by, recorded_at)
           values ('USD', 'IN', 'TYPED', 'SENT_BACK', 55.11, gen_random_uuid(), $1, 'x', now())`,
          [memo],
        ),
    })
    await isLeft(77n, { more: [line(-77n, '', { date: today, is_reversal: true })] })
    await isLeft(310n, {
      write: within('</NtryDtls>', '<TxDtls><AddtlTxInf>x</AddtlTxInf></TxDtls></NtryDtls>'),
    })
    await isLeft(311n, { write: within('<NtryDtls>', '<NtryDtls><Btch><NbOfTxs>3</NbOfTxs></Btch>') })
    await isLeft(312n, {
      write: within(
        '<TxDtls>',
        '<TxDtls><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>RRTN</SubFmlyCd></Fmly></Domn></BkTxCd>',
      ),
    })
    isExact = false
  })

  test('a reference that the bank uses again credits nobody a second time, and hides no line', async () => {
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const [first, again] = [line(600n, memo), line(600n, memo)].map((own) => ({
      ...own,
      reference: 'DAILY1',
    }))
    await imported([first!])
    const id = async () =>
      (await listed('?state=OPEN')).find(({ bank_reference }) => bank_reference === 'DAILY1')!.id
    expect((await decide(await id())).status).toBe(200)
    expect((await imported([again!])).matched).toEqual([])
    expect(await decide(await id())).toMatchObject(refusedWith(403, 'has no proposal'))
    expect(await decide(await id(), { is: memo })).toMatchObject(
      refusedWith(403, 'another line is matched with this transfer'),
    )
    expect(await balance(profile)).toBe('6')
  })

  test("a customer's words of a wire, its memo and payee, rule no other wire out", async () => {
    const [attackers, other] = [await takenWire('91', 'WIRE TRANSFER'), await takenWire('91')]
    isExact = true
    const sent = line(-9_100n, 'OUTGOING WIRE TRANSFER GRACE HOPPER 000987654321', { date: today })
    expect((await imported([sent])).matched).toEqual([])
    const { state, candidates, id } = await lineOf(sent)
    expect(state).toBe('AMBIGUOUS')
    expect(candidates.map(({ is }) => is).sort()).toEqual([attackers, other].sort())
    expect((await decide(id, { is: other })).status).toBe(200)
    await operator('POST', `/v2/operators/wires/${attackers}/failed`, { reason: 'not sent' })
  })

  test('two people who decide at once, for two profiles: one is credited', async () => {
    const profiles = [await newProfile(customer), await newProfile(customer)]
    const memos = await Promise.all(profiles.map((profile) => newMemo(profile)))
    const rivals = line(700n, memos.join(' '))
    await imported([rivals])
    const { id } = await lineOf(rivals)
    const answers = await Promise.all(memos.map((memo) => decide(id, { is: memo })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403])
    expect((await Promise.all(profiles.map(balance))).sort()).toEqual(['0', '7'])
  })
})

describe('Import Bank Statement', () => {
  test('stores a statement once; the first one fixes the account', async () => {
    const {
      file,
      account: of,
      changed,
    } = await imported([
      line(100n, 'a'),
      line(-5n, 'fee'),
      line(-5n, 'fee', { reference: undefined as never }),
    ])
    expect({ of, changed }).toEqual({ of: '000123456789', changed: true })
    const stored = await everyTable(service.db)
    expect(await send(file)).toMatchObject({
      status: 200,
      body: { changed: false, items: [{ is_new: false }] },
    })
    expect(await everyTable(service.db)).toEqual(stored)
  })

  test('refuses with a reason, and stores nothing', async () => {
    const lines = [line(100n, 'x'), line(200n, 'y')]
    const cases: [string, string][] = [
      [
        camtOf([statement(lines, { account: '999' })]),
        'is of account "999": earlier statements are of account "000123456789"',
      ],
      [
        camtOf([statement(lines, { opening: account.opening + 1n, closing: account.opening + 301n })]),
        'a statement between them is missing',
      ],
      [camtOf([statement(lines, { number: account.number + 2 })]), 'a statement between them is missing'],
      [
        camtOf([statement(lines, { date: before(account.day), number: account.number })]),
        'overlaps the last one',
      ],
      [camtOf([statement(lines, { date: before(account.day + 3) })]), 'overlaps the last one'],
      [camtOf([statement(lines, { closing: 1n })]), 'do not make its closing balance'],
      [camtOf([statement(lines), statement(lines, { id: 'other' })]), 'overlaps the last one'],
      [camtOf([statement(lines)]).slice(0, -40), 'no well-formed XML'],
      ['nothing', 'unknown format'],
    ]
    const stored = await everyTable(service.db)
    for (const [file, why] of cases) expect(await send(file), why).toMatchObject(refusedWith(403, why))
    expect(await everyTable(service.db)).toEqual(stored)
  })

  test("the bank's reference counts for the first line that has it, and another one is named by its id", async () => {
    const same = { reference: 'SAME' }
    await imported([line(100n, 'x', same), line(200n, 'y', same), line(-5n, 'fee', same)])
    const references = (await listed('?state=OPEN')).filter(({ bank_reference }) => bank_reference === 'SAME')
    expect(references.map(({ amount }) => amount).sort()).toEqual(['-0.05', '1'])
  })

  test('two at once: one chain', async () => {
    const next = statement([line(100n, 'x')])
    const rival = { ...next, id: 'rival' }
    const answers = await Promise.all([send(camtOf([next])), send(camtOf([rival]))])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403])
    Object.assign(account, { opening: next.closing, number: next.number, day: account.day - 1 })
  })
})

describe('Match Bank Line', () => {
  test('a deposit by its proposal, once', async () => {
    const profile = await newProfile(customer)
    const made = line(2_500n, `invoice 7 ${await newMemo(profile)}`)
    await imported([made])
    const { id } = await lineOf(made)
    for (const changed of [true, false])
      expect(await decide(id)).toMatchObject({ status: 200, body: { kind: 'DEPOSIT', changed } })
    expect(await balance(profile)).toBe('25')
    expect(await lineOf(made)).toMatchObject({ state: 'MATCHED', kind: 'DEPOSIT', rule: 'PERSON' })
    expect(await decide(id, { is: await newMemo() })).toMatchObject(
      refusedWith(403, 'the line is matched with'),
    )
  })

  test('a taken wire of the same amount, by what the line names; two that are equal are ambiguous', async () => {
    const [first, second] = [await takenWire('33'), await takenWire('33')]
    const named = line(-3_300n, `out ${second.toUpperCase()}`)
    const unnamed = line(-3_300n, 'wire transfer')
    await imported([named, unnamed])
    expect(await lineOf(named)).toMatchObject({
      state: 'AMBIGUOUS',
      candidates: [{ kind: 'SENT', is: second }],
    })
    expect(await lineOf(unnamed)).toMatchObject({ state: 'AMBIGUOUS' })
    expect(await decide((await lineOf(named)).id, { is: second })).toMatchObject({
      status: 200,
      body: { kind: 'SENT' },
    })
    expect(await lineOf(unnamed)).toMatchObject({ state: 'PROPOSED', candidates: [{ is: first }] })
    expect(await decide((await lineOf(unnamed)).id)).toMatchObject({
      status: 200,
      body: { transfer_id: first },
    })
    const wrong = line(-3_301n, 'x')
    await imported([wrong])
    const third = await takenWire('34')
    expect(await decide((await lineOf(wrong)).id, { is: third })).toMatchObject(
      refusedWith(403, `wire ${third} is of 34`),
    )
  })

  test("a return by the bank's code and the wire's reference; one is credited once", async () => {
    const wire = await sentWire('20')
    const [back, again] = [1_900n, 100n].map((amount) =>
      line(amount, `RETURN OF ${wire.bank_reference}`, { is_return: true }),
    )
    await imported([back!])
    expect(await lineOf(back!)).toMatchObject({
      state: 'PROPOSED',
      candidates: [{ kind: 'RETURN', is: wire.id }],
    })
    for (const body of [{}, { is: wire.id }])
      expect(await decide((await lineOf(back!)).id, body)).toMatchObject({
        status: 200,
        body: { kind: 'RETURN' },
      })
    await imported([again!])
    expect((await lineOf(again!)).state).toBe('OPEN')
    expect(await decide((await lineOf(again!)).id, { is: wire.id })).toMatchObject(
      refusedWith(403, 'came back already'),
    )
  })

  test('what an operator has recorded is marked at import; so is what was recorded before a crash', async () => {
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const [wire, reference] = [await sentWire('7'), ref()]
    const sent = line(-700n, 'out', { reference: wire.bank_reference })
    const [killed, credited] = [line(800n, memo), line(900n, memo, { reference })]
    await record(memo, '9', reference)
    const { matched } = await imported([sent, killed, credited])
    expect(matched.map(({ kind }) => kind)).toEqual(['RECORDED', 'RECORDED'])
    // Recorded by the line, and killed before it was marked.
    await record(memo, '8', killed.reference!)
    expect(await decide((await lineOf(killed)).id)).toMatchObject({
      status: 200,
      body: { kind: 'RECORDED', changed: false },
    })
    expect(await balance(profile)).toBe('17')
  })

  test('a command that dies between the credit and the mark: the next one marks it, and credits nothing', async () => {
    const profile = await newProfile(customer)
    const wire = await takenWire('19')
    const [credited, sent] = [line(1_100n, await newMemo(profile)), line(-1_900n, `wire ${wire}`)]
    await imported([credited, sent])
    const role = new URL(service.url).username
    for (const own of [credited, sent]) {
      await service.owner.query(`revoke insert on bank_matches from "${role}"`)
      expect((await decide((await lineOf(own)).id)).status).toBe(500)
      await service.owner.query(`grant insert on bank_matches to "${role}"`)
      const { matched } = await imported([line(1n, 'interest')])
      expect(matched.map(({ kind }) => kind)).toEqual(['RECORDED'])
      expect(await lineOf(own)).toMatchObject({ state: 'MATCHED', kind: 'RECORDED', rule: 'REFERENCE' })
      expect(await balance(profile)).toBe('11')
    }
  })

  test('a person matches a wire that was recorded with another amount: the difference stays, and has its age', async () => {
    const memo = await newMemo()
    await record(memo, '52', ref())
    const typed = line(2_500n, 'transposed', { date: before(account.day - 1) })
    await imported([typed])
    const transfer_id = (
      await service.db.query<{ id: string }>(`select transfer_id as id from bank_wires where amount = 52`)
    ).rows[0]!.id
    expect(await decide((await lineOf(typed)).id, { is: transfer_id })).toMatchObject({
      status: 200,
      body: { kind: 'RECORDED' },
    })
    expect((await reconciled()).items).toContainEqual(
      expect.objectContaining({ kind: 'DIFFERS', amount: '-27', transfer_id, age_days: 0 }),
    )
  })

  test('a line that left credits nobody, and a transfer is one line', async () => {
    const memo = await newMemo()
    const [out, first, second] = [line(-100n, memo), line(100n, memo), line(100n, memo)]
    await imported([out, first, second])
    expect(await decide((await lineOf(out)).id, { is: memo })).toMatchObject(
      refusedWith(403, 'it credits nobody'),
    )
    const { body } = await decide((await lineOf(first)).id)
    expect(await decide((await lineOf(second)).id, { is: body.transfer_id })).toMatchObject(
      refusedWith(403, 'another line is matched'),
    )
  })
})

describe('Import Bank Statement with the rule exact', () => {
  test('is audited, credits a recent line with one memo, and ends a wire that its text names; without it nothing is credited', async () => {
    const profile = await newProfile(customer)
    const memo = await newMemo(profile)
    const wire = await takenWire('61')
    const lines = () => [line(1_000n, memo, { date: today }), line(2_000n, memo, { date: before(30) })]
    expect((await imported(lines())).matched).toEqual([])
    isExact = true
    const mine = lines()
    const other = line(-6_100n, 'a payment', { date: today })
    const named = line(-6_100n, `wire ${wire}`, { date: today })
    const { file, matched } = await imported([...mine, named])
    expect(matched.map(({ kind }) => kind)).toEqual(['DEPOSIT', 'SENT'])
    expect(await lineOf(mine[0]!)).toMatchObject({ rule: 'EXACT' })
    expect((await lineOf(mine[1]!)).state).toBe('PROPOSED')
    expect((await send(file)).body).toMatchObject({ changed: false, matched: [] })
    const unnamed = await takenWire('61')
    expect((await imported([other])).matched).toEqual([])
    expect(await lineOf(other)).toMatchObject({ state: 'PROPOSED', candidates: [{ is: unnamed }] })
    isExact = false
    expect((await imported(lines())).matched).toEqual([])
    expect(await balance(profile)).toBe('10')
    const { rows } = await service.db.query<{ action: string }>(
      `select distinct action from audit_log where action like 'bank\\_%' order by 1`,
    )
    expect(rows.map(({ action }) => action)).toEqual(['bank_line.match', 'bank_statement.import'])
  })
})

describe('Get Bank Reconciliation', () => {
  test('a fee is what only the bank has, a wire without a line what only the ledger has; each with its age', async () => {
    const fee = line(-150n, 'monthly fee', { date: before(account.day - 1), code: 'ACMT/MDOP/CHRG' })
    const age_days = account.day - 1
    await imported([fee])
    const memo = await newMemo()
    await record(memo, '71', ref())
    const { items, bank } = await reconciled()
    expect(items).toContainEqual(
      expect.objectContaining({ kind: 'ONLY_BANK', amount: '-1.5', text: 'monthly fee', age_days }),
    )
    expect(items).toContainEqual(expect.objectContaining({ kind: 'ONLY_LEDGER', amount: '-71', age_days: 0 }))
    expect(bank).toBe(
      `${account.opening / 100n}.${String(account.opening % 100n).padStart(2, '0')}`.replace(/\.?0+$/, ''),
    )
    expect(await operator('GET', '/v2/reports/bank-reconciliation?date=1999-01-01')).toMatchObject(
      refusedWith(403, 'no bank statement'),
    )
  })

  test('a random history is explained to zero at each of its dates', async () => {
    const steps = fc.sample(
      fc.record({
        kind: fc.constantFrom('deposit', 'recorded', 'fee', 'sent', 'taken', 'return'),
        cents: fc.bigInt(1n, 99_999n),
        decides: fc.boolean(),
      }),
      { numRuns: 18, seed: SEED },
    )
    const memo = await newMemo()
    for (const { kind, cents, decides } of steps) {
      const amount = `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
      const made = await (async () => {
        if (kind === 'fee') return line(-cents, 'fee')
        if (kind === 'deposit') return line(cents, memo)
        if (kind === 'taken') return line(-cents, `wire ${await takenWire(amount)}`)
        if (kind === 'recorded') {
          const own = line(cents, 'x')
          await record(memo, amount, own.reference!)
          return own
        }
        const wire = await sentWire(amount)
        return kind === 'sent'
          ? line(-cents, 'x', { reference: wire.bank_reference })
          : line(cents, wire.bank_reference, { is_return: true })
      })()
      await imported([made])
      if (decides) await decide((await lineOf(made)).id)
    }
    for (const date of [today, ...Array.from({ length: 5 }, (_, at) => before(account.day + at * 3))])
      expect(await reconciled(date), date).toMatchObject({ explained: true, remainder: '0' })
  }, 60_000)
})

describe('List Bank Lines', () => {
  test('has those of a state and of a date, and refuses a date that cannot be', async () => {
    const matched = await listed('?state=MATCHED')
    expect(new Set(matched.map(({ state }) => state))).toEqual(new Set(['MATCHED']))
    expect((await listed('?state=OPEN')).length).toBe((await listed()).length - matched.length)
    expect(await listed('?date=1999-01-01')).toEqual([])
    expect((await operator('GET', '/v2/bank/lines?date=0000-01-01')).status).toBe(400)
  })
})

test('the commands import, list, match and compare, each with its record', async () => {
  const memo = await newMemo()
  const lines = [line(123n, memo), line(-1n, 'fee')]
  const next = statement(lines)
  const file = join(await ownFolder(), 'statement.xml')
  await writeFile(file, camtOf([next]))
  const bursar = (...args: string[]) =>
    outputOf(['bank', ...args], { DATABASE_URL: service.url, BURSAR_MODE: 'live' })
  expect(await bursar('import', file)).toContain(`${next.date}: 2 lines\n0 lines are matched`)
  Object.assign(account, { opening: next.closing, number: next.number, day: account.day - 1 })
  expect(await bursar('import', file)).toBe('Imported before, nothing has changed.')
  const { id, date } = (await lineOf(lines[0]!)) as Line & { date: string }
  expect(await bursar('lines', '--state', 'OPEN', '--date', date)).toContain(`DEPOSIT ${memo}`)
  expect(await bursar('match', id)).toMatch(/^Line \S+ is transfer \S+ \(DEPOSIT\)\.$/)
  expect(await bursar('match', id)).toContain('It was already matched.')
  expect(await bursar('lines', '--state', 'MATCHED', '--date', date)).toContain('DEPOSIT')
  expect(await bursar('reconciliation')).toContain('Explained: nothing remains.')
  const exact = statement([line(124n, memo, { date: today })])
  await writeFile(file, camtOf([exact]))
  expect(await bursar('import', file, '--exact')).toContain('1 lines are matched')
  Object.assign(account, { opening: exact.closing, number: exact.number, day: account.day - 1 })
  await truncate(file, 17 * 2 ** 20)
  await expect(bursar('import', file)).rejects.toThrow('is larger than 16777216 bytes')
})

test('many wires of one amount do not stop the process', async () => {
  await service.db.query(
    `insert into bank_wires (asset, direction, bank_reference, kind, amount, transfer_id, recorded_by, recorded_at)
     select 'USD', 'OUT', 'SAME' || n, 'SENT', 7171, gen_random_uuid(), 'test', now() from generate_series(1, 400) n`,
  )
  const many = Array.from({ length: 400 }, (_, at) => ({
    ...{ ...line(0n, 'wire', { date: today }), amount: '-7171' },
    ...{ id: randomUUID(), position: 1, ordinal: at + 1, bank_reference: ref() },
  }))
  const began = performance.now()
  const proposals = await withProposals(service.db, many)
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(proposals.map(({ candidates }) => candidates.length)).toEqual(many.map(() => 20))
  expect(proposals.every(({ state }) => state === 'AMBIGUOUS')).toBe(true)
  const listed = line(-717_100n, 'wire')
  await imported([listed])
  const { candidates, state } = await lineOf(listed)
  expect([candidates.length, state]).toEqual([20, 'AMBIGUOUS'])
}, 300_000)

test('a large file has its place, and a larger one does not', async () => {
  const many = Array.from({ length: 10_000 }, (_, at) =>
    line(BigInt(at + 1), `payment ${at} ${'x'.repeat(100)}`),
  )
  await imported(many)
  expect((await operator('POST', '/v2/bank/statements', { file: 'A'.repeat(24 * 2 ** 20) })).status).toBe(413)
  expect((await decide(randomUUID(), { padding: 'x'.repeat(20_000) })).status).toBe(413)
}, 60_000)
