/*
 * Invariants of the status of an account and of its identity (API behaviour, Accounts):
 * 1. an identity with a flag is DISABLED, otherwise it has its own status. An account with a flag is DISABLED,
 *    otherwise it has the summary status of its primary identity (holders.test.ts);
 * 2. nothing is withdrawn for an account or identity that is not APPROVED, and the attempt changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  everyTable,
  fund,
  newCustomer,
  TEST_ORIGIN,
  withdrawalOf,
  sharedTestService,
} from '../../../test/support.ts'
import type { Account } from '../../money/records/account.ts'
import { setAccountDisabled } from './set-account-disabled.ts'
import { refusedWith } from '../../../test/matchers.ts'

const ACCOUNTS = '/v2/identity/accounts'
const IDENTITIES = '/v2/identity/identities'
const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const STATUSES = ['PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED'] as const

const service = await sharedTestService()
const customer = await newCustomer(service)
const { body: account } = await customer.call<Account & { profile_id: string }>('POST', ACCOUNTS, {
  account: { identity_id: await newIdentity() },
  create_profile: true,
})

async function newIdentity(): Promise<string> {
  const institution_details = { name: 'Acme' }
  const { body } = await customer.call<{ id: string }>('POST', IDENTITIES, {
    ref_id: randomUUID(),
    institution_details,
  })
  return body.id
}

interface State {
  status?: (typeof STATUSES)[number]
  user_disabled?: boolean
  admin_disabled?: boolean
}
const ENABLED = { user_disabled: false, admin_disabled: false }

/** Sets the identity's state like the sandbox, and the account's flags like the command line. */
async function set(identity: State, flags: Omit<State, 'status'>): Promise<void> {
  const answer = await customer.call('PUT', `${IDENTITIES}/${account.identity_id}/sandbox-status`, identity)
  expect(answer.status).toBe(200)
  await setAccountDisabled(service.db, account.id, flags, TEST_ORIGIN)
}

const readAccount = async () => (await customer.call<Account>('GET', `${ACCOUNTS}/${account.id}`)).body

describe('summary_status', () => {
  // holders.test.ts has every state.
  test.each<[identity: State, account: State, status: State['status']]>([
    ...STATUSES.map((status) => [{ status }, {}, status] as [State, State, typeof status]),
    [{ user_disabled: true }, {}, 'DISABLED'],
    [{ admin_disabled: true }, {}, 'DISABLED'],
    [{}, { user_disabled: true }, 'DISABLED'],
    [{}, { admin_disabled: true }, 'DISABLED'],
  ])('of an identity that is %j and an account that is %j is %s', async (identity, account, status) => {
    await set({ status: 'APPROVED', ...ENABLED, ...identity }, { ...ENABLED, ...account })
    const read = await readAccount()
    expect(read).toMatchObject({ ...ENABLED, ...account, summary_status: status })
    expect((await customer.call('GET', ACCOUNTS)).body.items).toEqual([read])
    const { body } = await customer.call('GET', `${IDENTITIES}/${read.identity_id}`)
    expect(body).toMatchObject({
      ...identity,
      summary_status: Object.keys(account).length > 0 ? 'APPROVED' : status,
    })
  })

  test("advances the account's updated_at, after a change of the identity and of the account", async () => {
    await set({ status: 'APPROVED', ...ENABLED }, ENABLED)
    const moments = [(await readAccount()).updated_at]
    await set({ status: 'ERROR' }, {})
    moments.push((await readAccount()).updated_at)
    await setAccountDisabled(service.db, account.id, { user_disabled: true }, TEST_ORIGIN)
    moments.push((await readAccount()).updated_at)
    expect([...new Set(moments)].sort()).toEqual(moments)
    expect((await readAccount()).created_at).toBe(account.created_at)
  })
})

describe('setAccountDisabled', () => {
  test('returns the changed account; a flag that is set already changes nothing', async () => {
    await set({ status: 'PENDING', ...ENABLED }, ENABLED)
    for (const flags of [
      { admin_disabled: true },
      { user_disabled: true },
      { admin_disabled: false },
      { user_disabled: false, admin_disabled: true },
      ENABLED,
    ]) {
      const before = await readAccount()
      const changed = await setAccountDisabled(service.db, account.id, flags, TEST_ORIGIN)
      expect(changed).toMatchObject(flags)
      expect(changed).toEqual(await readAccount())
      expect(changed!.updated_at > before.updated_at).toBe(true)
      const tables = await everyTable(service.db)
      expect(await setAccountDisabled(service.db, account.id, flags, TEST_ORIGIN)).toEqual(changed)
      expect(await everyTable(service.db)).toEqual(tables)
    }
  })

  test('returns undefined for an unknown account', async () => {
    const before = await everyTable(service.db)
    expect(
      await setAccountDisabled(service.db, randomUUID(), { admin_disabled: true }, TEST_ORIGIN),
    ).toBeUndefined()
    expect(await everyTable(service.db)).toEqual(before)
  })
})

describe('a withdrawal', () => {
  beforeAll(async () => {
    await fund(customer, '10000')
    await fund(customer, '10000', account.profile_id)
  })

  /** The three ways in which a movement refers to the account or its identity. */
  const WAYS = {
    'naming the account': () => ({ account_id: account.id }),
    'naming the identity': () => ({ identity_id: account.identity_id }),
    "from the account's profile": () => ({ profile_id: account.profile_id }),
  }
  type Way = keyof typeof WAYS
  /** The request field that refers to the identity. */
  const REF_PATHS = {
    'naming the account': 'account_id',
    'naming the identity': 'identity_id',
    "from the account's profile": 'profile_id',
  }
  const EVERY_WAY = Object.keys(WAYS) as Way[]

  const OPEN: [identity: State, flags: State][] = [[{ status: 'APPROVED' }, {}]]
  const BARRED: [identity: State, flags: State, summary: string, ways: Way[]][] = [
    [{ status: 'PENDING' }, {}, 'PENDING', EVERY_WAY],
    [{ status: 'ERROR' }, {}, 'ERROR', EVERY_WAY],
    [{ status: 'DENIED' }, {}, 'DENIED', EVERY_WAY],
    [{ status: 'DISABLED' }, {}, 'DISABLED', EVERY_WAY],
    [{ user_disabled: true }, {}, 'DISABLED', EVERY_WAY],
    [{ admin_disabled: true }, {}, 'DISABLED', EVERY_WAY],
    // The account's flags concern only the account: its identity may still withdraw otherwise.
    [{}, { user_disabled: true }, 'DISABLED', ['naming the account', "from the account's profile"]],
    [{}, { admin_disabled: true }, 'DISABLED', ['naming the account', "from the account's profile"]],
  ]
  const setAll = (identity: State, flags: State) =>
    set({ status: 'APPROVED', ...ENABLED, ...identity }, { ...ENABLED, ...flags })

  test.each(OPEN)('is accepted for an identity that is %j', async (identity, flags) => {
    await setAll(identity, flags)
    for (const way of EVERY_WAY) {
      const body = withdrawalOf(customer, WAYS[way]())
      expect(await customer.call('POST', WITHDRAWALS, body), way).toMatchObject({
        status: 200,
        body: { status: 'PENDING', ...WAYS[way]() },
      })
    }
  })

  test.each(BARRED)(
    'is refused for an identity that is %j and an account that is %j',
    async (identity, flags, status, ways) => {
      await setAll(identity, flags)
      for (const way of EVERY_WAY) {
        const before = await everyTable(service.db)
        const answer = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer, WAYS[way]()))
        if (!ways.includes(way)) {
          expect(answer.status, way).toBe(200)
          continue
        }
        const id = way === 'naming the identity' ? account.identity_id : account.id
        const unverified = {
          ref_path: REF_PATHS[way],
          identity_id: account.identity_id,
          current_status: status,
        }
        const [slug, meta] =
          status === 'DISABLED'
            ? ['disabled', { id, status }]
            : ['identity-verification-required', unverified]
        expect(answer, way).toMatchObject({
          status: 403,
          body: { type: expect.stringMatching(new RegExp(`/problems/${slug}$`)) as string, meta },
        })
        expect(await everyTable(service.db), way).toEqual(before)
      }
      // After the flags are cleared, withdrawals are allowed again.
      await setAll({}, {})
      for (const way of EVERY_WAY) {
        const answer = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer, WAYS[way]()))
        expect(answer.status, way).toBe(200)
      }
    },
  )

  test('for an account and an identity is refused unless the identity is primary or a member of the account', async () => {
    await setAll({}, {})
    const [stranger, member] = [await newIdentity(), await newIdentity()]
    for (const id of [stranger, member])
      await customer.call('PUT', `${IDENTITIES}/${id}/sandbox-status`, { status: 'APPROVED' })
    const shared = await customer.call<{ id: string }>('POST', ACCOUNTS, {
      account: {
        identity_id: account.identity_id,
        members: [{ identity_id: member, roles: ['AUTHORIZED_USER'] }],
      },
    })
    const account_id = shared.body.id
    const withdraw = (identity_id: string) =>
      customer.call('POST', WITHDRAWALS, withdrawalOf(customer, { account_id, identity_id }))
    const before = await everyTable(service.db)
    expect(await withdraw(stranger)).toMatchObject(
      refusedWith(400, `account_id ${account_id} does not belong to identity_id ${stranger}`),
    )
    expect(await everyTable(service.db)).toEqual(before)
    for (const identity_id of [account.identity_id, member])
      expect((await withdraw(identity_id)).status).toBe(200)
  })

  test('that is unrelated to the account is not affected by its status', async () => {
    await setAll({ status: 'DENIED' }, { admin_disabled: true })
    expect((await customer.call('POST', WITHDRAWALS, withdrawalOf(customer))).status).toBe(200)
  })
})
