/*
 * Invariants of wires to fiat accounts:
 * 1. a wire is paid exactly once or not at all, and every attempt sends the same bytes;
 * 2. a wire ends with the outcome of its account number; a refused wire gives back its total;
 * 3. a ref_id is used once, and a refused request changes nothing.
 * settle-withdrawals.slow.test.ts shows that this holds wherever the worker fails.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import {
  credit,
  entriesOf,
  everyTable,
  newCustomer,
  type TestCustomer,
  newHolder,
  ownTestService,
  newProfile,
} from '../../../test/support.ts'
import { availableOf, readTransfer } from '../../../test/payouts.ts'
import { settle as settleAll } from '../../../test/work-off.ts'
import type { FiatAccount } from '../../money/records/fiat-account.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import {
  MAGIC_OUTCOMES,
  magicAccountNumber,
  type MagicOutcome,
} from '../../networks/simulated/magic-addresses.ts'
import type { Networks } from '../../networks/network.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { NOBODY, A_UUID, A_TIME } from '../../../test/matchers.ts'

const ACCOUNTS = '/v2/transfer/fiat-accounts'
const WITHDRAWALS = '/v2/transfer/fiat-withdrawals'
const A_TEXT = expect.any(String) as string

const PERSON = { person_details: { first_name: 'Ada', last_name: 'Lovelace' } }
const WIRE = {
  account_number: '000987654321',
  fiat_account_owner_address: { country: 'GB', city: 'London', po_box: '7' },
  routing_details: {
    routing_number_type: 'ABA',
    routing_number: '021000021',
    bank_name: 'First Example Bank',
    bank_address: { country: 'US' },
    branch: 'Main Street',
  },
  intermediary: { bank_name: 'Second Example Bank' },
}

// Approval holds last until `settle` ends them.
const service = await ownTestService({ BURSAR_SIMULATED_HOLD_MS: '3600000' })
const customer = await newCustomer(service)
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

async function newFiatAccount(
  by: TestCustomer,
  account_number = WIRE.account_number,
  changes: object = {},
): Promise<FiatAccount> {
  const answer = await by.call<FiatAccount>('POST', ACCOUNTS, {
    fiat_account_owner: PERSON,
    fiat_network_instructions: { wire: { ...WIRE, account_number } },
    ...changes,
  })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

/** Creates a profile with 100 USD. */
async function newFundedProfile(): Promise<string> {
  const profile_id = await newProfile(customer)
  await credit(service.ledger, { ...customer, profile_id }, 'USD', '100')
  return profile_id
}

const available = (profile_id: string) => availableOf({ ...customer, profile_id })

async function withdrawn(body: object): Promise<Transfer> {
  const answer = await customer.call<Transfer>('POST', WITHDRAWALS, { asset: 'USD', ...body })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

const read = (transfer: Transfer) => readTransfer(customer, transfer)

/** More worker rounds than any wire needs. */
const ROUNDS = 8
const settle = (networks: Networks = service.networks) => settleAll({ db: service.db, networks }, ROUNDS)

/** Reads the wires that have left the bank for this transfer. */
async function wiresOf({ id }: Transfer) {
  const { rows } = await service.db.query<{ crypto_network: string; raw_transaction: Buffer }>(
    `select crypto_network, raw_transaction from simulated_chain
     where convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id' = $1`,
    [id],
  )
  return rows.map(({ crypto_network, raw_transaction }) => {
    const { asset, amount, destination_address, memo } = JSON.parse(raw_transaction.toString()) as Transfer
    return { network: crypto_network, asset, amount, account_number: destination_address, memo }
  })
}

// ---------------------------------------------------------------------------------------------- withdrawals

// ---------------------------------------------------------------------------------------------- account numbers

describe('Create Fiat Withdrawal', () => {
  describe('a withdrawal', () => {
    test.each(['amount', 'total'])('by %s is PENDING, then COMPLETED', async (field) => {
      const profile_id = await newFundedProfile()
      const { id: fiat_account_id } = await newFiatAccount(customer)
      const said = {
        ...(await newHolder(customer)),
        ref_id: randomUUID(),
        memo: 'invoice 17',
        metadata: { order: '17' },
      }
      const created = await withdrawn({ profile_id, fiat_account_id, [field]: '40.10', ...said })
      expect(created).toEqual({
        id: A_UUID,
        customer_id: customer.customer_id,
        profile_id,
        type: 'WIRE_WITHDRAWAL',
        direction: 'DEBIT',
        status: 'PENDING',
        asset: 'USD',
        balance_asset: 'USD',
        amount: '40.1',
        fee: '0',
        total: '40.1',
        fiat_account_id,
        ...said,
        created_at: A_TIME,
        updated_at: created.created_at,
      })
      expect(await read(created)).toEqual(created)
      expect(await available(profile_id)).toBe('59.9')
      const debited = ['CREATED profile USD -40.1', 'CREATED in_flight:WIRE USD 40.1']
      expect(await entriesOf(service.db, created.id)).toEqual(debited)

      await settle()
      const paid = await read(created)
      expect(paid).toEqual({ ...created, status: 'COMPLETED', updated_at: A_TIME })
      expect(paid.updated_at > created.updated_at).toBe(true)
      expect(await available(profile_id)).toBe('59.9')
      expect(await entriesOf(service.db, created.id)).toEqual([
        ...debited,
        'SETTLED in_flight:WIRE USD -40.1',
        'SETTLED bank USD 40.1',
      ])
      expect(await wiresOf(created)).toEqual([
        {
          network: 'WIRE',
          asset: 'USD',
          amount: '40.1',
          account_number: WIRE.account_number,
          memo: 'invoice 17',
        },
      ])
    })

    test('of the minimum, and of the whole remaining balance, is paid', async () => {
      const profile_id = await newFundedProfile()
      // A bank account needs no further details.
      const { id: fiat_account_id } = await newFiatAccount(customer, undefined, {
        fiat_network_instructions: { wire: {} },
      })
      const least = await withdrawn({ profile_id, fiat_account_id, amount: '.01' })
      const rest = await withdrawn({ profile_id, fiat_account_id, total: '99.990' })
      expect([least.amount, rest.amount, await available(profile_id)]).toEqual(['0.01', '99.99', '0'])
      await settle()
      for (const one of [least, rest]) {
        expect((await read(one)).status).toBe('COMPLETED')
        expect(await wiresOf(one)).toMatchObject([{ amount: one.amount }])
      }
    })

    test('with a ref_id that is taken is answered with its record, also of many at once', async () => {
      const profile_id = await newFundedProfile()
      const { id: fiat_account_id } = await newFiatAccount(customer)
      const ref_id = randomUUID()
      const order = (n: number) =>
        customer.call<Transfer & { meta: unknown }>('POST', WITHDRAWALS, {
          profile_id,
          asset: 'USD',
          fiat_account_id: n % 3 === 0 ? NOBODY : fiat_account_id,
          amount: String(n),
          ref_id,
        })
      // A repeat is answered before further refusals.
      const first = await order(10)
      const before = await everyTable(service.db)
      const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => order(n + 1)))
      for (const { status, body } of answers) {
        expect({ status, meta: body.meta }).toMatchObject({ status: 409, meta: { existing: first.body } })
      }
      expect(await everyTable(service.db)).toEqual(before)
    })
  })

  describe('a wire to the account number of', () => {
    /** Sends 40 of a profile's 100 USD to the account number of this outcome. */
    async function wiredTo(outcome: MagicOutcome): Promise<Transfer> {
      const { id: fiat_account_id, status } = await newFiatAccount(customer, magicAccountNumber(outcome))
      expect(status).toBe('APPROVED')
      return withdrawn({ profile_id: await newFundedProfile(), fiat_account_id, amount: '40' })
    }

    /** Requires that the wire was sent and completed once. */
    async function requirePaid(created: Transfer): Promise<void> {
      expect(await read(created)).toEqual({ ...created, status: 'COMPLETED', updated_at: A_TIME })
      expect(await wiresOf(created)).toMatchObject([{ network: 'WIRE', amount: '40' }])
      expect(await available(created.profile_id)).toBe('60')
      expect(await entriesOf(service.db, created.id)).toContain('SETTLED bank USD 40')
    }

    /** Requires that the wire was never sent, and that the profile has its money back. */
    async function requireRefused(created: Transfer, why: Partial<Transfer>): Promise<void> {
      expect(await read(created)).toEqual({ ...created, status: 'FAILED', updated_at: A_TIME, ...why })
      expect(await wiresOf(created)).toEqual([])
      expect(await available(created.profile_id)).toBe('100')
      expect(await entriesOf(service.db, created.id)).toEqual([
        'CREATED profile USD -40',
        'CREATED in_flight:WIRE USD 40',
        'REFUNDED profile USD 40',
        'REFUNDED in_flight:WIRE USD -40',
      ])
    }

    test('INVALID_DESTINATION_ADDRESS fails, and the total is given back', async () => {
      const created = await wiredTo('INVALID_DESTINATION_ADDRESS')
      await settle()
      const destination_address = magicAccountNumber('INVALID_DESTINATION_ADDRESS')!
      await requireRefused(created, {
        status_details: { invalid_destination_address: { message: A_TEXT, destination_address } },
      })
    })

    test('CUSTOMER_REJECTED fails unsigned, and the total is given back', async () => {
      const created = await wiredTo('CUSTOMER_REJECTED')
      await settle()
      await requireRefused(created, { secondary_status: { name: 'CUSTOMER_REJECTED', detail: A_TEXT } })
    })

    test('PENDING_CUSTOMER_APPROVAL is held, and paid when the hold is over', async () => {
      const created = await wiredTo('PENDING_CUSTOMER_APPROVAL')
      for (let round = 1; round <= 3; round++) await settleWithdrawals(service.db, service.networks)
      expect(await read(created)).toEqual({
        ...created,
        secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL', detail: A_TEXT },
        status_details: { pending_customer_approval: { message: A_TEXT } },
        updated_at: A_TIME,
      })
      expect(await wiresOf(created)).toEqual([])
      await settle()
      await requirePaid(created)
    })

    test('DROPPED_ONCE is sent again with the same bytes, and paid once', async () => {
      const created = await wiredTo('DROPPED_ONCE')
      const bank = service.networks.get('WIRE')!
      const sent: Buffer[] = []
      const watched: typeof bank = {
        ...bank,
        broadcast(withdrawals) {
          sent.push(...withdrawals.map(({ raw_transaction }) => raw_transaction))
          return bank.broadcast(withdrawals)
        },
      }
      await settle(new Map([['WIRE', watched]]))
      expect(sent).toHaveLength(2)
      expect(sent[1]).toEqual(sent[0])
      await requirePaid(created)
    })

    test('NEVER_CONFIRMS is sent once, and stays PENDING', async () => {
      const created = await wiredTo('NEVER_CONFIRMS')
      await settle()
      expect(await read(created)).toEqual(created)
      expect(await wiresOf(created)).toMatchObject([{ network: 'WIRE', amount: '40' }])
      expect(await available(created.profile_id)).toBe('60')
    })

    test('the other outcomes have no account number', () => {
      const others: MagicOutcome[] = [
        'STALE_FEE_QUOTE',
        'MISSING_TRUSTLINE',
        'MAX_RENT_EXCEEDED',
        'TRAVEL_RULE_REJECTED',
        'TRAVEL_RULE_INFO_REQUESTED',
      ]
      expect(MAGIC_OUTCOMES.filter((outcome) => magicAccountNumber(outcome) === undefined)).toEqual(others)
    })
  })
})
