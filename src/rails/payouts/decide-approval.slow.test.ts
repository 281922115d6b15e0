/*
 * Nothing is signed before enough different approvers have signed the withdrawal as it is paid, none of them its initiator.
 * The attackers have the service's database role, or all of a process of the service with its master key. Neither can
 * approve: only keys count that the schema's owner wrote, and the signer checks every signature again.
 */
import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  addTestApprover,
  decideAs,
  insertDecision,
  statementOf,
  withdrawWithApproval,
  type TestApprover,
  type Waiting,
} from '../../../test/approvers.ts'
import {
  credit,
  MASTER_KEYS,
  newCustomer,
  startTestService,
  TEST_ORIGIN,
  withdraw as order,
  type TestCustomer,
  type TestService,
} from '../../../test/support.ts'
import { availableOf, readTransfer, standingOf } from '../../../test/payouts.ts'
import { settle as settleAll } from '../../../test/work-off.ts'
import type { Origin } from '../../contract/actor.ts'
import type { SignedStatement } from '../../contract/approval.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'
import type { ApprovalRequirement } from '../../governance/approvals/approved-withdrawal.ts'
import { transaction } from '../../db/database.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { macOfWithdrawal } from '../../audit/withdrawal-macs.ts'
import type { Networks } from '../../networks/network.ts'
import { challengeOf, newPrivateKey, signStatement } from '../../governance/approvals/approval-statement.ts'
import { verify } from '../../money/verify/verify.ts'
import { cancelWithdrawal } from './cancel-withdrawal.ts'
import { decideApproval, readApproval } from './decide-approval.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'
import type { ApprovalDecision } from '../../contract/approval.ts'
import { signOnlyAccepted } from './sign-only-accepted.ts'
import { readAccepted, sealWithdrawal } from '../../money/movements/accepted-withdrawals.ts'

const macs = new RowMacs(MASTER_KEYS)
const INITIATOR = randomUUID()
const ORIGIN: Origin = { actor: { type: 'API_CLIENT', id: INITIATOR } }
let service: TestService
let customer: TestCustomer
let ada: TestApprover
let bob: TestApprover
let eve: TestApprover
beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  ada = await approver()
  bob = await approver()
  eve = await approver()
})
afterAll(() => service.close())

const approver = (changes: Parameters<typeof addTestApprover>[2] = {}) =>
  addTestApprover(service.owner, customer.customer_id, changes)

const withdraw = (rule: Partial<ApprovalRequirement> = {}) =>
  withdrawWithApproval(service, customer, ORIGIN, rule)

const checked = (): Networks =>
  new Map([...service.networks].map(([network, adapter]) => [network, signOnlyAccepted(adapter, macs)]))

const settle = () => settleAll({ db: service.db, networks: checked() })
const read = (id: string) => standingOf(service.db, id)
const available = () => availableOf(customer)

const statement = ({ approval_id }: Waiting, decision?: ApprovalDecision) =>
  statementOf(service.db, customer.customer_id, approval_id, decision)
const decide = ({ approval_id }: Waiting, by: TestApprover, decision?: ApprovalDecision) =>
  decideAs(service.db, customer.customer_id, approval_id, by, decision)
const requestOf = ({ approval_id }: Waiting) => ({
  ...{ customerId: customer.customer_id, id: approval_id, origin: ORIGIN },
})
/** Writes a decision as the service's role, past the operation. */
const insert = ({ approval_id }: Waiting, approver_id: string, signed: object) =>
  insertDecision(service.db, customer.customer_id, approval_id, approver_id, signed)

async function expectHeld(one: Waiting, code = 'AWAITING_APPROVAL', detail = /approvers have approved it/) {
  await settle()
  expect(await read(one.id)).toEqual({
    status: 'PENDING',
    waiting_code: code,
    waiting_detail: expect.stringMatching(detail) as string,
    on_chain: 0,
  })
}
const requireClean = async () => expect((await verify(service.db, { macs })).disagreements).toEqual([])

test('a withdrawal is signed after enough approvers have signed it, and not before', async () => {
  const before = await available()
  const one = await withdraw()
  expect(await readTransfer(customer, one)).toMatchObject({
    status: 'PENDING',
    secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL' },
    status_details: {
      pending_customer_approval: { approval_id: one.approval_id, required: 2, role: 'APPROVER' },
    },
  })
  // Its total was credited before, and is taken.
  expect(await available()).toBe(before)
  await expectHeld(one, 'AWAITING_APPROVAL', /^0 of 2 approvers have approved it$/)
  expect(await decide(one, ada)).toMatchObject({ status: 'PENDING', approvals: 1 })
  await expectHeld(one, 'AWAITING_APPROVAL', /^1 of 2 approvers have approved it$/)
  expect(await decide(one, bob)).toMatchObject({ status: 'APPROVED', approvals: 2 })
  expect(await readTransfer(customer, one)).not.toHaveProperty('secondary_status')
  expect(await readTransfer(customer, one)).not.toHaveProperty('status_details')
  await settle()
  expect(await read(one.id)).toMatchObject({ status: 'COMPLETED', on_chain: 1 })
  await requireClean()
})

test("a decision before the worker's first look leaves the withdrawal due", async () => {
  const one = await withdraw()
  await decide(one, ada)
  await settleWithdrawals(service.db, checked())
  expect(await read(one.id)).toMatchObject({ waiting_detail: '1 of 2 approvers have approved it' })
  await decide(one, bob)
  await settle()
  expect(await read(one.id)).toMatchObject({ status: 'COMPLETED', on_chain: 1 })
})

test('waiting costs no polling, and delays no later withdrawal of the profile', async () => {
  const one = await withdraw()
  await settleWithdrawals(service.db, checked())
  const { rows } = await service.db.query<{ seconds: string }>(
    'select extract(epoch from due_at - clock_timestamp()) as seconds from outgoing_transfers where transfer_id = $1',
    [one.id],
  )
  expect(Number(rows[0]!.seconds)).toBeGreaterThan(3500)
  await credit(service.ledger, customer, 'USD', '20')
  const later = await order(customer)
  const alone: Networks = new Map(
    [...checked()].map(([network, adapter]) => [network, { ...adapter, signsAlone: true }]),
  )
  for (let round = 1; round <= 3; round++) {
    await service.db.query(
      `update outgoing_transfers set due_at = (select clock_timestamp()) where transfer_id = $1`,
      [later.id],
    )
    await settleWithdrawals(service.db, alone)
  }
  expect(await read(later.id)).toMatchObject({ status: 'COMPLETED' })
  expect(await read(one.id)).toMatchObject({ status: 'PENDING', on_chain: 0 })
})

describe('a withdrawal is refunded to the last unit', () => {
  const failed = async (one: Waiting, status: string, before: string, detail: RegExp) => {
    expect(await readTransfer(customer, one)).toMatchObject({
      status: 'FAILED',
      secondary_status: { name: 'CUSTOMER_REJECTED', detail: expect.stringMatching(detail) as string },
    })
    expect((await readApproval(service.db, customer.customer_id, one.approval_id)).approval.status).toBe(
      status,
    )
    expect(Number(await available())).toBe(Number(before) + 11)
    await settle()
    expect(await read(one.id)).toMatchObject({ status: 'FAILED', on_chain: 0 })
    await requireClean()
  }

  test('after one no, also when another has approved', async () => {
    const before = await available()
    const one = await withdraw()
    await decide(one, ada)
    expect(await decide(one, bob, 'REJECT')).toMatchObject({ status: 'REJECTED' })
    await failed(one, 'REJECTED', before, /an approver rejected it/)
    await expect(decide(one, eve)).rejects.toMatchObject({ slug: 'approval-ended' })
  })

  test('at the deadline', async () => {
    const before = await available()
    const one = await withdraw({ deadline_seconds: 0 })
    await expect(decide(one, ada)).rejects.toMatchObject({ slug: 'approval-ended' })
    await settle()
    await failed(one, 'EXPIRED', before, /was not approved by/)
  })

  test('when the client cancels it', async () => {
    const before = await available()
    const one = await withdraw()
    await settle()
    await cancelWithdrawal(service.db, { ...customer, transfer_id: one.id }, 'client', TEST_ORIGIN)
    await failed(one, 'CANCELLED', before, /client cancelled/)
    await expect(decide(one, ada)).rejects.toMatchObject({ slug: 'approval-ended' })
  })
})

describe('the operation refuses', () => {
  test('an approver of another role, a revoked one, the initiator, and an unknown one', async () => {
    const one = await withdraw({ role: 'TREASURY' })
    await expect(decide(one, ada)).rejects.toMatchObject({ slug: 'forbidden' })
    const two = await withdraw()
    const initiator = await approver({ client_id: INITIATOR })
    await expect(decide(two, initiator)).rejects.toMatchObject({
      slug: 'forbidden',
      detail: `approver ${initiator.id} cannot decide: the initiator cannot decide, nor who made its credential`,
    })
    await expect(decide(two, { ...ada, id: randomUUID() })).rejects.toMatchObject({ slug: 'forbidden' })
    const gone = await approver()
    await service.owner.query(
      `update approvers set status = 'REVOKED', revoked_at = (select clock_timestamp()) where id = $1`,
      [gone.id],
    )
    await expect(decide(two, gone)).rejects.toMatchObject({ slug: 'forbidden' })
  })

  test('a second approval of a person, also with another key, and takes a no after a yes', async () => {
    const one = await withdraw()
    const [first, second] = [await approver({ name: 'Grace' }), await approver({ name: ' grace ' })]
    await decide(one, first)
    await expect(decide(one, first)).rejects.toMatchObject({ slug: 'already-exists' })
    await expect(decide(one, second)).rejects.toMatchObject({ slug: 'forbidden' })
    expect(await decide(one, first, 'REJECT')).toMatchObject({ status: 'REJECTED' })
  })

  test('another text, another key, and the text of another decision', async () => {
    const one = await withdraw()
    const other = await withdraw()
    const send = (text: string, by: TestApprover) =>
      decideApproval(service.db, requestOf(one), {
        approver_id: ada.id,
        decision: 'APPROVE',
        signed: signStatement(text, by.jwk),
      })
    await expect(send(await statement(other), ada)).rejects.toMatchObject({ slug: 'bad-request' })
    await expect(send(await statement(one, 'REJECT'), ada)).rejects.toMatchObject({ slug: 'bad-request' })
    await expect(send(await statement(one), bob)).rejects.toMatchObject({ slug: 'bad-request' })
    expect(
      (await readApproval(service.db, customer.customer_id, one.approval_id)).approval.decisions,
    ).toEqual([])
  })
})

describe("the signer refuses, though the service's role wrote it past the operation,", () => {
  const attacks: [string, (one: Waiting) => Promise<unknown>, RegExp][] = [
    [
      'a forged signature',
      async (one) => {
        const forger = newPrivateKey()
        for (const { id } of [ada, bob]) await insert(one, id, signStatement(await statement(one), forger))
      },
      /signature is not by the approver's key/,
    ],
    [
      'an approval of another transfer',
      async (one) => {
        const other = await withdraw()
        for (const by of [ada, bob]) await insert(one, by.id, signStatement(await statement(other), by.jwk))
      },
      /another statement is signed/,
    ],
    [
      'a no as a yes',
      async (one) => {
        for (const by of [ada, bob])
          await insert(one, by.id, signStatement(await statement(one, 'REJECT'), by.jwk))
      },
      /another statement is signed/,
    ],
    [
      'an altered amount',
      async (one) => {
        for (const by of [ada, bob]) {
          const text = (await statement(one)).replace('"amount":"10"', '"amount":"1"')
          await insert(one, by.id, signStatement(text, by.jwk))
        }
      },
      /another statement is signed/,
    ],
    [
      'an approval under newer rules',
      async (one) => {
        for (const by of [ada, bob]) {
          const text = (await statement(one)).replace('"policy_version":3', '"policy_version":4')
          await insert(one, by.id, signStatement(text, by.jwk))
        }
      },
      /policy version/,
    ],
    [
      'the initiator',
      async (one) => {
        const initiator = await approver({ client_id: INITIATOR })
        for (const by of [ada, initiator])
          await insert(one, by.id, signStatement(await statement(one), by.jwk))
      },
      /the initiator cannot decide/,
    ],
    [
      'two approvals of one person with two keys',
      async (one) => {
        const operator_id = randomUUID()
        for (const by of [await approver({ operator_id }), await approver({ operator_id })])
          await insert(one, by.id, signStatement(await statement(one), by.jwk))
      },
      /the same person has approved already/,
    ],
    [
      'an approval twice',
      async (one) => {
        for (const by of [ada, ada]) await insert(one, by.id, signStatement(await statement(one), by.jwk))
      },
      /the same person has approved already/,
    ],
    [
      'a revoked approver',
      async (one) => {
        const gone = await approver()
        for (const by of [ada, gone]) await decide(one, by)
        await service.owner.query(
          `update approvers set status = 'REVOKED', revoked_at = (select clock_timestamp()) where id = $1`,
          [gone.id],
        )
      },
      /the approver is revoked/,
    ],
    [
      'an approver of another customer',
      async (one) => {
        const other = await newCustomer(service)
        const foreign = await addTestApprover(service.owner, other.customer_id)
        for (const by of [ada, foreign]) await insert(one, by.id, signStatement(await statement(one), by.jwk))
      },
      /there is no such approver/,
    ],
    [
      'a JWS without algorithm',
      async (one) => {
        const part = (text: string) => Buffer.from(text).toString('base64url')
        const jws = `${part('{"alg":"none","typ":"bursar-approval+jws"}')}.${part(await statement(one))}.`
        for (const { id } of [ada, bob]) await insert(one, id, { jws })
      },
      /must have the alg EdDSA/,
    ],
    [
      'a signature that cannot be read',
      async (one) => {
        for (const { id } of [ada, bob]) await insert(one, id, { passkey: 1 })
      },
      /is no passkey|cannot be read/,
    ],
    [
      'a status of APPROVED',
      (one) => service.db.query(`update approvals set status = 'APPROVED' where id = $1`, [one.approval_id]),
      /^0 of 2/,
    ],
  ]

  test.each(attacks)('%s', async (_name, attack, detail) => {
    const one = await withdraw()
    await attack(one)
    await expectHeld(one, 'AWAITING_APPROVAL', detail)
    await requireClean()
    // Neither does it keep the real approvers from deciding.
    const left = [await approver(), await approver()]
    for (const by of left) await decide(one, by).catch(() => undefined)
    await settle()
    expect(await read(one.id)).toMatchObject({ status: 'COMPLETED', on_chain: 1 })
  })

  test('an approver that the role makes, changes or revives', async () => {
    const denied = { code: '42501' }
    const db = service.db
    await expect(db.query(`update approvers set key = key`)).rejects.toMatchObject(denied)
    await expect(db.query(`update approvers set status = 'ACTIVE'`)).rejects.toMatchObject(denied)
    await expect(db.query('delete from approvers')).rejects.toMatchObject(denied)
    await expect(
      db.query(
        `insert into approvers (customer_id, id, created_at, name, role, key, thumbprint, status)
         values ($1, $2, clock_timestamp(), 'Mallory', 'ADMIN', '{}', 'x', 'ACTIVE')`,
        [customer.customer_id, randomUUID()],
      ),
    ).rejects.toMatchObject(denied)
  })

  test.each([
    ['removes', 'delete from approvals where id = $1'],
    ['lowers', 'update approvals set required = 1 where id = $1'],
    [
      'gives away',
      `update approvals set transfer_id = null, change = '{}', change_digest = 'x' where id = $1`,
    ],
    ['gives another initiator to', `update approvals set initiator_id = 'x' where id = $1`],
    ['moves the deadline of', `update approvals set deadline = '2100-01-01' where id = $1`],
  ])('a requirement: it may not, and a superuser who %s it has no MAC', async (_name, sql) => {
    const one = await withdraw()
    await decide(one, ada)
    await expect(service.db.query(sql, [one.approval_id])).rejects.toMatchObject({ code: '42501' })
    await service.owner.query(sql, [one.approval_id])
    await settle()
    expect(await read(one.id)).toMatchObject({ status: 'PENDING', on_chain: 0 })
    expect((await verify(service.db, { macs })).disagreements).toContainEqual(
      expect.objectContaining({ rule: 'every withdrawal matches its MAC' }),
    )
    await service.owner.query(`delete from approvals where id = $1`, [one.approval_id])
    await transaction(service.db, (tx) => sealWithdrawal(tx, macs, one.id))
    await cancelWithdrawal(service.db, { ...customer, transfer_id: one.id }, 'client', TEST_ORIGIN)
  })
})

describe('a stolen process, with the master key, cannot use approvals for', () => {
  const seal = async (id: string) => {
    const [accepted] = await readAccepted(service.db, customer.customer_id, [id])
    await service.db.query('update transfers set mac = $2 where id = $1', [
      id,
      macOfWithdrawal(macs, accepted!),
    ])
  }
  const ELSEWHERE = addressFromBytes('ETHEREUM', Buffer.alloc(32, 7))

  test.each([
    ['another destination', `destination_address = '${ELSEWHERE}'`],
    ['another amount', 'amount = 9'],
    ['another asset', `asset = 'USDG'`],
    ['another network', `crypto_network = 'POLYGON_POS'`],
    ['another memo', `memo = 'another'`],
  ])('%s', async (_name, change) => {
    const one = await withdraw()
    await decide(one, ada)
    await decide(one, bob)
    // Beyond what the service's role may do; the MAC is right.
    await service.owner.query(`update transfers set ${change} where id = $1`, [one.id])
    await seal(one.id)
    await expectHeld(one, 'AWAITING_APPROVAL', /another statement is signed/)
  })
})

test('an approver signs with P-256, too', async () => {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'jwk',
  })
  const one = await withdraw()
  await decide(one, await approver({ jwk }))
  await decide(one, ada)
  await settle()
  expect(await read(one.id)).toMatchObject({ status: 'COMPLETED' })
})

describe('an approver with a passkey', () => {
  const RP_ID = 'bursar.example.com'
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let passkey: TestApprover
  beforeAll(async () => {
    const jwk = { ...pair.privateKey.export({ format: 'jwk' }), credential_id: 'AQIDBA', rp_id: RP_ID }
    passkey = await approver({ jwk })
  })

  const PRESENT_AND_VERIFIED = 0x05
  /** Makes the assertion of an authenticator over a text (Web Authentication, 6.3.3). */
  function assertion(
    text: string,
    { rp_id = RP_ID, flags = PRESENT_AND_VERIFIED, key = pair.privateKey, ...changes }: AssertionChanges = {},
  ) {
    const challenge = challengeOf(text)
    const clientData = { type: 'webauthn.get', challenge, origin: `https://${RP_ID}`, crossOrigin: false }
    const client = Buffer.from(JSON.stringify({ ...clientData, ...changes }))
    const counter = Buffer.alloc(4)
    const data = Buffer.concat([sha256(rp_id), Buffer.from([flags]), counter])
    const signature = sign('sha256', Buffer.concat([data, sha256(client)]), key)
    return {
      passkey: {
        authenticator_data: data.toString('base64url'),
        client_data_json: client.toString('base64url'),
        signature: signature.toString('base64url'),
      },
    }
  }
  interface AssertionChanges {
    rp_id?: string
    flags?: number
    key?: KeyObject
    origin?: string
    type?: string
    crossOrigin?: boolean
  }
  const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()
  const send = (one: Waiting, signed: SignedStatement) =>
    decideApproval(service.db, requestOf(one), { approver_id: passkey.id, decision: 'APPROVE', signed })

  test('approves with an assertion over the statement', async () => {
    const one = await withdraw()
    await decide(one, ada)
    expect(await send(one, assertion(await statement(one)))).toMatchObject({ status: 'APPROVED' })
    await settle()
    expect(await read(one.id)).toMatchObject({ status: 'COMPLETED', on_chain: 1 })
  })

  test('rejects with an assertion over the rejection only', async () => {
    const one = await withdraw()
    const [yes, no] = [await statement(one), await statement(one, 'REJECT')]
    const reject = (text: string) =>
      decideApproval(service.db, requestOf(one), {
        approver_id: passkey.id,
        decision: 'REJECT',
        signed: assertion(text),
      })
    await expect(reject(yes)).rejects.toMatchObject({ slug: 'bad-request' })
    expect(await reject(no)).toMatchObject({ status: 'REJECTED' })
  })

  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const WRONG: [string, (text: string, other: string) => SignedStatement, RegExp][] = [
    ['of another withdrawal', (_text, other) => assertion(other), /another statement is signed/],
    [
      'of another decision',
      (text) => assertion(text.replace('APPROVE', 'REJECT')),
      /another statement is signed/,
    ],
    ['for another rp_id', (text) => assertion(text, { rp_id: 'other.example.com' }), /for another domain/],
    ['for another origin', (text) => assertion(text, { origin: 'https://evil.example' }), /another origin/],
    [
      'for an origin that ends alike',
      (text) => assertion(text, { origin: `https://evil${RP_ID}` }),
      /another origin/,
    ],
    ['in the frame of another page', (text) => assertion(text, { crossOrigin: true }), /another origin/],
    ['without verifying its user', (text) => assertion(text, { flags: 0x01 }), /did not verify its user/],
    ['without its user present', (text) => assertion(text, { flags: 0x04 }), /did not verify its user/],
    ['of a registration', (text) => assertion(text, { type: 'webauthn.create' }), /made no assertion/],
    ["by another passkey's key", (text) => assertion(text, { key: stranger }), /not by the approver's key/],
    ['made by a key file', (text) => signStatement(text, passkey.jwk), /passkey, which makes no JWS/],
  ]
  test.each(WRONG)('is refused by the operation and by the signer: %s', async (_name, make, detail) => {
    const one = await withdraw()
    const signed = make(await statement(one), await statement(await withdraw()))
    await expect(send(one, signed)).rejects.toMatchObject({
      slug: 'bad-request',
      detail: expect.stringMatching(detail) as string,
    })
    await decide(one, ada)
    await insert(one, passkey.id, signed)
    await expectHeld(one, 'AWAITING_APPROVAL', detail)
    expect(await send(one, assertion(await statement(one)))).toMatchObject({ status: 'APPROVED' })
    await settle()
    expect(await read(one.id)).toMatchObject({ status: 'COMPLETED', on_chain: 1 })
  })
})
