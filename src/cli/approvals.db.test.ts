/* The command line makes approvers as the schema's owner only, and decides with key files. A refusal changes nothing. */
import { generateKeyPairSync } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cose, isoCBOR } from '@simplewebauthn/server/helpers'
import { afterAll, expect, test } from 'vitest'
import { withdrawWithApproval } from '../../test/approvers.ts'
import { setPolicy } from '../../test/policies.ts'
import {
  actionsOfCommands,
  everyTable,
  MASTER_KEYS,
  newCustomer,
  outputOf,
  ROW_MACS,
  TEST_ORIGIN,
  ownTestService,
} from '../../test/support.ts'
import { createOperator } from '../access/operators/operators.ts'
import { insertPasskey, removePasskey } from '../access/operators/passkeys.ts'
import { transaction } from '../db/database.ts'
import { readClock } from '../db/ids.ts'
import { completeDocument } from '../governance/policy/policy-document.ts'
import { Policies } from '../governance/policy/policy.ts'
import { thumbprintOf, type ApproverKey } from '../governance/approvals/approval-statement.ts'
import { settleWithdrawals } from '../rails/payouts/settle-withdrawals.ts'
import { verify } from '../money/verify/verify.ts'
import { ownFolder } from '../../test/at-end.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const folder = await ownFolder()
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

/** Runs a command; `owner` gives it the address for the owner's role. */
const said = (
  args: string[],
  { owner = true, baseUrl = 'https://console.example.com' } = {},
): Promise<string> =>
  outputOf(args, {
    DATABASE_URL: service.url,
    BURSAR_BASE_URL: baseUrl,
    ...(owner && { BURSAR_MIGRATIONS_DATABASE_URL: service.ownerUrl }),
  })
const bursar = async <T = { id: string }>(...args: string[]) =>
  JSON.parse(await said([...args, '--json'])) as T

async function expectRefused(
  args: string[],
  message: RegExp,
  options: Parameters<typeof said>[1] = {},
): Promise<void> {
  const before = await everyTable(service.db)
  await expect(said(args, options)).rejects.toThrow(message)
  expect(await everyTable(service.db)).toEqual(before)
}

const of = () => ['--customer', customer.customer_id]
const file = (name: string) => join(folder, name)

async function add(name: string, ...options: string[]): Promise<{ id: string; key: string }> {
  await bursar('approvals', 'key', file(name))
  const { id } = await bursar(
    ...['approvers', 'add', ...of(), '--name', name, '--key', file(`${name}.pub`), ...options],
  )
  return { id, key: file(name) }
}

test('two people approve a withdrawal with key files, and it is paid', async () => {
  const [ada, bob] = [await add('Ada'), await add('Bob')]
  expect((await stat(ada.key)).mode & 0o777).toBe(0o600)
  const { id, approval_id } = await withdrawWithApproval(service, customer, TEST_ORIGIN)
  const shown = await said(['approvals', 'show', approval_id, ...of()])
  expect(shown).toContain('"amount": "10"')
  expect(shown).toContain('It is PENDING, 0 of 2.')
  const by = (one: typeof ada) => [...of(), '--approver', one.id, '--key', one.key]
  // What is signed is shown, and no private key.
  const text = await said(['approvals', 'approve', approval_id, ...by(ada)])
  expect(text).toContain('"decision": "APPROVE"')
  const { d } = JSON.parse(await readFile(ada.key, 'utf8')) as { d: string }
  expect(text).not.toContain(d)
  await expectRefused(['approvals', 'approve', approval_id, ...by(ada)], /approver_id exists/)
  await expectRefused(
    ['approvals', 'approve', approval_id, ...of(), '--approver', bob.id, '--key', ada.key],
    /signature is not by the approver's key/,
  )
  await expectRefused(
    ['approvals', 'approve', approval_id, ...of(), '--approver', bob.id, '--key', `${bob.key}.pub`],
    /no private key/,
  )
  expect(await bursar('approvals', 'approve', approval_id, ...by(bob))).toMatchObject({
    status: 'APPROVED',
    approvals: 2,
  })
  for (let round = 1; round <= 4; round++) {
    await service.db.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await settleWithdrawals(service.db, service.networks)
  }
  const { body } = await customer.call('GET', `/v2/transfer/transfers/${id}`)
  expect(body.status).toBe('COMPLETED')
  expect(await bursar('approvals', 'list', ...of(), '--status', 'APPROVED')).toMatchObject({
    approvals: [{ id: approval_id }],
  })
  expect(await said(['approvals', 'list', ...of(), '--status', 'USED'])).toBe('There are no approvals.')
})

test('a passkey is added with its credential and domain', async () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = publicKey.export({ format: 'jwk' })
  const addKey = async (name: string, key: object) => {
    await writeFile(file(name), JSON.stringify(key))
    return ['approvers', 'add', ...of(), '--name', name, '--key', file(name)]
  }
  const passkey = { ...jwk, credential_id: 'AQIDBA', rp_id: 'bursar.example.com' }
  const made = await bursar<{ key: object }>(...(await addKey('Passkey', passkey)))
  expect(made.key).toEqual(passkey)
  await expectRefused(await addKey('Again', jwk), /has this key already/)
  for (const [wrong, message] of [
    [{ rp_id: undefined }, /rp_id must be the passkey's domain/],
    [{ rp_id: 'https://bursar.example.com' }, /rp_id must be/],
    [{ rp_id: 'Bursar.example.com' }, /rp_id must be/],
    [{ rp_id: '' }, /rp_id must be/],
    [{ credential_id: undefined }, /credential_id must be/],
    [{ credential_id: 'AQ=' }, /credential_id must be/],
    [{ credential_id: 'A'.repeat(1_365) }, /credential_id must be/],
  ] as const)
    await expectRefused(await addKey('Wrong', { ...passkey, ...wrong }), message)
})

/** A passkey of a new operator with this key, in the form that authenticators give it (COSE). */
async function newPasskey(key: Map<number, number | Uint8Array>) {
  const operator = await createOperator(service.db, ROW_MACS, { name: 'Key holder', role: 'APPROVER' })
  const passkey = await transaction(service.db, (tx) =>
    insertPasskey(tx, ROW_MACS, {
      ...{ operator_id: operator.id, name: 'Laptop', credential_id: crypto.randomUUID(), signatures: 0 },
      ...{ public_key: Buffer.from(isoCBOR.encode(key)), transports: [] },
    }),
  )
  const named = ['approvers', 'add', ...of(), '--name', `Holder of ${passkey!.id}`]
  return { id: passkey!.id, operator, args: [...named, '--operator', operator.id, '--passkey', passkey!.id] }
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))
const { kty, alg, crv, x, y } = cose.COSEKEYS

test("an operator's passkey becomes the key of an approver", async () => {
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const ed25519 = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const known = [
    [
      p256,
      new Map<number, number | Uint8Array>([
        [kty, 2],
        [alg, -7],
        [crv, 1],
        [x, bytesOf(p256.x!)],
        [y, bytesOf(p256.y!)],
      ]),
    ],
    [
      ed25519,
      new Map<number, number | Uint8Array>([
        [kty, 1],
        [alg, -8],
        [crv, 6],
        [x, bytesOf(ed25519.x!)],
      ]),
    ],
  ] as const
  for (const [jwk, key] of known) {
    const { args } = await newPasskey(key)
    await expectRefused(args, /BURSAR_BASE_URL: passkeys belong to the host name/, {
      baseUrl: 'http://127.0.0.1:8080',
    })
    const text = await said([...args, '--role', 'ADMIN'])
    expect(text).toContain(`thumbprint ${thumbprintOf(jwk as unknown as ApproverKey)}`)
    const { approvers } = await bursar<{ approvers: { key: object; role: string }[] }>(
      'approvers',
      'list',
      ...of(),
    )
    expect(approvers.at(-1)).toMatchObject({ role: 'ADMIN', key: { ...jwk, rp_id: 'console.example.com' } })
    await expectRefused(args, /has this key already/)
  }
  // Removed, and put back in the database.
  const { id, operator, args } = await newPasskey(known[1][1])
  await transaction(service.db, (tx) => removePasskey(tx, operator, id, TEST_ORIGIN))
  await expectRefused(args, /has no passkey/)
  await service.owner.query('update operator_passkeys set removed_at = null where id = $1', [id])
  await expectRefused(args, /has ended/)
})

test('no passkey that somebody has put into the database, or of another kind, makes an approver', async () => {
  const rsa = new Map<number, number | Uint8Array>([
    [kty, 3],
    [alg, -257],
    [-1, new Uint8Array(256)],
    [-2, bytesOf('AQAB')],
  ])
  const { id, args } = await newPasskey(rsa)
  await expectRefused(args, /has a key that approvers cannot have/)
  await service.owner.query(`update operator_passkeys set credential_id = 'other' where id = $1`, [id])
  await expectRefused(args, /is not as Bursar wrote it/)
  await expectRefused([...args.slice(0, -1), customer.customer_id], /has no passkey/)
  await expectRefused(args.slice(0, -4), /name the key: --key/)
})

test('reject ends it', async () => {
  const eve = await add('Eve')
  const { approval_id } = await withdrawWithApproval(service, customer, TEST_ORIGIN)
  expect(
    await bursar('approvals', 'reject', approval_id, ...of(), '--approver', eve.id, '--key', eve.key),
  ).toMatchObject({ status: 'REJECTED' })
})

test('only the owner of the schema adds and revokes approvers', async () => {
  const { id, key } = await add('Grace')
  const another = ['approvers', 'add', ...of(), '--name', 'Mallory', '--key', `${key}.pub`]
  await expectRefused(another, /has this key already/)
  await expectRefused(another, /BURSAR_MIGRATIONS_DATABASE_URL/, { owner: false })
  await expectRefused(['approvers', 'revoke', id, ...of()], /BURSAR_MIGRATIONS_DATABASE_URL/, {
    owner: false,
  })
  await expectRefused(['approvers', 'add', ...of(), '--name', 'x', '--key', key], /private key/)
  await expectRefused(['approvers', 'revoke', crypto.randomUUID(), ...of()], /has no approver/)
  await expectRefused(['approvals', 'key', key], /EEXIST/)
  expect(await bursar('approvers', 'revoke', id, ...of())).toMatchObject({ id, changed: true })
  expect(await bursar('approvers', 'revoke', id, ...of())).toMatchObject({ id, changed: false })
  expect(await said(['approvers', 'list', ...of()])).toMatch(/Grace +APPROVER +REVOKED/)
})

test('where the policy says so, a new approver needs an approval', async () => {
  const heidi = await add('Heidi', '--role', 'ADMIN')
  await transaction(service.db, async (tx) =>
    new Policies(MASTER_KEYS).add(
      tx,
      customer.customer_id,
      completeDocument({ rules: [], changes: { subjects: ['APPROVERS'], approvals: 1, role: 'ADMIN' } }),
      await readClock(tx),
    ),
  )
  await bursar('approvals', 'key', file('Ivan'))
  const ivan = ['approvers', 'add', ...of(), '--name', 'Ivan', '--key', file('Ivan.pub')]
  await expect(said(ivan)).rejects.toThrow(/is PENDING with 0 of 1 approvers; nothing was changed/)
  const { approvals } = await bursar<{ approvals: { id: string }[] }>(
    ...['approvals', 'list', ...of(), '--status', 'PENDING'],
  )
  expect(approvals).toHaveLength(1)
  const [{ id }] = approvals as [{ id: string }]
  await expectRefused([...ivan, '--approval', id], /nothing was changed/)
  await bursar('approvals', 'approve', id, ...of(), '--approver', heidi.id, '--key', heidi.key)
  // Another change than the approved one.
  await expectRefused([...ivan, '--role', 'ADMIN', '--approval', id], /is of another change/)
  expect(await bursar(...ivan, '--approval', id)).toMatchObject({ name: 'Ivan', status: 'ACTIVE' })
  await expectRefused([...ivan, '--approval', id], /is USED/)
})

test('where the policy says so, credentials need an approval, but disabling them does not', async () => {
  const other = await newCustomer(service)
  const by = ['--customer', other.customer_id]
  const judy = file('Judy')
  await bursar('approvals', 'key', judy)
  const added = await bursar('approvers', 'add', ...by, '--name', 'Judy', '--key', `${judy}.pub`)
  await setPolicy(service.db, other.customer_id, {
    rules: [],
    changes: { subjects: ['CREDENTIALS'], approvals: 1 },
  })
  const commands = [
    ['client', 'create', ...by, '--scopes', 'funding:read_profile'],
    ['client', 'rotate', other.client_id],
    ['client', 'enable', other.client_id],
  ]
  await bursar('client', 'disable', other.client_id)
  await service.owner.query('update api_clients set disabled_at = null where id = $1', [other.client_id])
  for (const command of commands) {
    const clients = 'select id, secret_hash, disabled_at from api_clients order by id'
    const before = await service.db.query(clients)
    await expect(said(command)).rejects.toThrow(/is PENDING with 0 of 1 approvers; nothing was changed/)
    expect((await service.db.query(clients)).rows).toEqual(before.rows)
    const pending = await bursar<{ approvals: { id: string }[] }>(
      ...['approvals', 'list', ...by, '--status', 'PENDING'],
    )
    const [{ id }] = pending.approvals as [{ id: string }]
    await expectRefused([...command, '--approval', id], /nothing was changed/)
    await bursar('approvals', 'approve', id, ...by, '--approver', added.id, '--key', judy)
    await said([...command, '--approval', id])
    await expectRefused([...command, '--approval', id], /is USED/)
  }
})

test('the audit log names the user of the operating system for each decision and each change of an approver', async () => {
  const actions = ['approval.approve', 'approval.reject', 'approver.add', 'approver.revoke']
  expect(await actionsOfCommands(service.db)).toEqual(expect.arrayContaining(actions))
})
