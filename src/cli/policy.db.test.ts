/* The command line checks, sets and shows policies. A refusal changes nothing, and a damaged version is no way around approvers. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addTestApprover, decideAs } from '../../test/approvers.ts'
import {
  everyTable,
  MASTER_KEY,
  MASTER_KEYS,
  newCustomer,
  outputOf,
  type TestCustomer,
  sharedTestService,
} from '../../test/support.ts'
import { ownFolder } from '../../test/at-end.ts'

const NEW_KEY = 'f0e1d2c3b4a5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff'

const service = await sharedTestService()
const folder = await ownFolder()

const said = (args: string[], environment: Record<string, string> = {}): Promise<string> =>
  outputOf(['policy', ...args], { DATABASE_URL: service.url, BURSAR_DATA_DIR: folder, ...environment })
const bursar = async (...args: string[]) => JSON.parse(await said([...args, '--json'])) as object

async function expectRefused(args: string[], message: RegExp | string, environment = {}): Promise<void> {
  const before = await everyTable(service.db)
  await expect(said(args, environment)).rejects.toThrow(message)
  expect(await everyTable(service.db)).toEqual(before)
}

async function written(policy: unknown, name = 'policy.json'): Promise<string> {
  await writeFile(join(folder, name), typeof policy === 'string' ? policy : JSON.stringify(policy))
  return join(folder, name)
}

const setting = async ({ customer_id }: TestCustomer, policy: unknown, ...options: string[]) => [
  ...['set', '--customer', customer_id, '--file', await written(policy), ...options],
]

/** Adds a version that allows everything, as a stolen role of the service could. */
const damage = ({ customer_id }: TestCustomer) =>
  service.db.query(
    `insert into policies (customer_id, version, document, mac, created_at)
     select customer_id, version + 1, '{"rules":[]}', mac, created_at
     from policies where customer_id = $1
     order by version desc limit 1`,
    [customer_id],
  )

const records = async ({ customer_id }: TestCustomer) =>
  (
    await service.db.query<{ actor_type: string; changes: unknown }>(
      "select actor_type, changes from audit_log where customer_id = $1 and action = 'policy.set' order by position",
      [customer_id],
    )
  ).rows

const BLOCK = { id: 'no-btc', action: 'BLOCK', match: { assets: ['BTC'] } }

test('a policy is set and shown, and the same file again changes nothing', async () => {
  const customer = await newCustomer(service)
  const of = ['--customer', customer.customer_id]
  expect(await said(['show', ...of])).toBe('There is no policy.')
  expect(await bursar('show', ...of)).toMatchObject({ version: 0, policy: { rules: [] } })
  const set = await setting(customer, { rules: [BLOCK] })
  expect(await bursar(...set)).toMatchObject({ version: 1, changed: true })
  expect(await bursar(...set)).toMatchObject({ version: 1, changed: false })
  expect(await said(set)).toBe('Version 1 is this policy already: nothing was changed.')
  const open = await setting(customer, { rules: [] })
  expect(await said(open)).toMatch(/^Version 2 counts since \S+Z\.$/)
  expect(await bursar('show', ...of)).toMatchObject({ version: 2, trusted: true, policy: { rules: [] } })
  expect(await said(['show', ...of, '--version', '1'])).toMatch(/^Version 1, since \S+Z\.\n{\n.*"no-btc"/s)
  // Other tests have customers with policies in this database.
  const shown = {
    ...{ customer_id: customer.customer_id, version: 2, rules: 0, trusted: true },
    master_key_id: MASTER_KEYS.current.id,
  }
  const all = expect.arrayContaining([expect.objectContaining(shown)]) as unknown
  expect(await bursar('show')).toMatchObject({ policies: all })
  expect((await customer.call('GET', '/v2/policy')).body).toMatchObject({ version: 2, rules: [] })
  expect(await records(customer)).toEqual([
    { actor_type: 'COMMAND_LINE', changes: { before: { rules: [] }, after: { rules: [BLOCK] } } },
    { actor_type: 'COMMAND_LINE', changes: { before: { rules: [BLOCK] }, after: { rules: [] } } },
  ])
  // After a change of the master key, the same file makes the policy again with the new key.
  const environment = { BURSAR_MASTER_KEY: `${NEW_KEY},${MASTER_KEY}` }
  expect(await said(open, environment)).toMatch(/^Version 3 /)
  expect(await said(['show'], { BURSAR_MASTER_KEY: NEW_KEY })).toMatch(/ yes$/)
})

test('a faulty file, customer, version or key is refused with its rule', async () => {
  const customer = await newCustomer(service)
  const faults: [unknown, RegExp][] = [
    ['{', /policy\.json: .*JSON/],
    ['[]', /policy\.json: the file must be an object/],
    [{}, /policy\.json: rules is required/],
    ['{"rules":[],"rules":[]}', /policy\.json: rules is given more than once/],
    [{ rules: [], version: 1 }, /policy\.json: version is not a known field/],
    [{ rules: [{ action: 'BLOK' }] }, /rules\.0\.action must be one of ALLOW, BLOCK, APPROVE/],
    [{ rules: [{ action: 'APPROVE' }] }, /rules\.0\.approvals is required for the action APPROVE/],
    [{ rules: [{ action: 'BLOCK', match: { assets: ['NOPE'] } }] }, /rules\.0\.match\.assets/],
    [{ rules: [BLOCK, BLOCK] }, /rules: each rule must have an id of its own/],
    [' '.repeat(64 * 1024 + 1), /policy\.json: the file must have at most 65536 bytes/],
  ]
  for (const [policy, message] of faults) {
    await expectRefused(await setting(customer, policy), message)
    await expect(said(['check', join(folder, 'policy.json')])).rejects.toThrow(message)
  }
  await writeFile(join(folder, 'latin'), Buffer.from('{"rules":[{"description":"\xfc"}]}', 'latin1'))
  await expectRefused(['check', join(folder, 'latin')], 'the file is not UTF-8')
  await expectRefused(['check', join(folder, 'missing')], /ENOENT/)
  const stranger = { customer_id: crypto.randomUUID() } as TestCustomer
  await expectRefused(await setting(stranger, { rules: [] }), /there is no customer/)
  await expectRefused(['show', '--customer', stranger.customer_id], /there is no customer/)
  await expectRefused(['show', '--version', '1'], /--version: name the customer/)
  await expectRefused(['show', '--customer', customer.customer_id, '--version', '7'], /has no version 7/)
  await expectRefused(['show', '--customer', customer.customer_id, '--version', '0'], /from 1 to 2147483647/)
  await expectRefused(await setting(customer, { rules: [] }), /none is configured/, { BURSAR_MASTER_KEY: '' })
  await expectRefused(await setting(customer, { rules: [] }, '--approval', crypto.randomUUID()), /approval/)
})

test('a file is checked without a database', async () => {
  const file = await written({ rules: [{ action: 'BLOCK' }] })
  const none = { DATABASE_URL: 'postgres://127.0.0.1:1/none', BURSAR_MASTER_KEY: '' }
  expect(await said(['check', file], none)).toBe(`${file} is a valid policy with 1 rule.`)
  expect(JSON.parse(await said(['check', file, '--json'], none))).toMatchObject({
    valid: true,
    policy: { rules: [{ id: expect.stringMatching(/^rule-/) as string, action: 'BLOCK' }] },
  })
})

const idIn = (error: unknown) => /approval (\S+) is PENDING with 0 of 1/.exec((error as Error).message)![1]!

const approve = async ({ customer_id }: TestCustomer, id: string) =>
  decideAs(service.db, customer_id, id, await addTestApprover(service.owner, customer_id))

const GUARDED = { rules: [BLOCK], changes: { subjects: ['POLICY'], approvals: 1 } }

test('a policy that requires approval is set after it', async () => {
  const customer = await newCustomer(service)
  await said(await setting(customer, GUARDED))
  const open = await setting(customer, { rules: [] })
  const id = idIn(await said(open).catch((error: unknown) => error))
  await expectRefused([...open, '--approval', id], 'run the same command with --approval')
  await approve(customer, id)
  const other = await setting(customer, { rules: [{ action: 'ALLOW' }] })
  await expectRefused([...other, '--approval', id], /another change/)
  await setting(customer, { rules: [] })
  expect(await said([...open, '--approval', id])).toMatch(/^Version 2 /)
  expect(await records(customer)).toHaveLength(2)
})

test('a version that cannot be trusted is replaced on purpose only, and named', async () => {
  const customer = await newCustomer(service)
  const set = await setting(customer, { rules: [BLOCK] })
  await said(set)
  await damage(customer)
  expect(await said(['show', '--customer', customer.customer_id])).toMatch(
    /\nIt cannot be trusted: its MAC does not match: /,
  )
  await expectRefused(set, /version 2 of the policy cannot be trusted.* --replace-untrusted to replace it$/)
  const told = /^Version 3 .*\nIt replaces version 2, which could not be trusted: its MAC does not match: /
  expect(await said([...set, '--replace-untrusted'])).toMatch(told)
  const untrusted = { version: 2, objection: expect.stringMatching(/^its MAC does not match/) as string }
  expect((await records(customer))[1]).toEqual({
    actor_type: 'COMMAND_LINE',
    changes: { before: { rules: [BLOCK], untrusted }, after: { rules: [BLOCK] } },
  })
  expect((await customer.call('GET', '/v2/policy')).body).toMatchObject({ version: 3, rules: [BLOCK] })
  // A version that can be trusted needs no option, and the option does no harm.
  expect(await bursar(...(await setting(customer, { rules: [] })), '--replace-untrusted')).not.toHaveProperty(
    'replaced_untrusted',
  )
  // A lost key: nothing can be trusted, and the new key makes the policy again.
  await expectRefused(set, /needs master key/, { BURSAR_MASTER_KEY: NEW_KEY })
  const made = await said([...set, '--replace-untrusted', '--json'], { BURSAR_MASTER_KEY: NEW_KEY })
  expect(JSON.parse(made)).toMatchObject({ version: 5, replaced_untrusted: { version: 4 } })
})

test('damaging versions is no way around the approvers', async () => {
  const customer = await newCustomer(service)
  await said(await setting(customer, GUARDED))
  // More than are read at a time.
  for (let count = 1; count <= 25; count++) await damage(customer)
  const open = await setting(customer, { rules: [] }, '--replace-untrusted')
  const id = idIn(await said(open).catch((error: unknown) => error))
  await expectRefused([...open, '--approval', id], /approval-|PENDING with 0 of 1/)
  await approve(customer, id)
  // What was approved is a replacement: the same file without the option is another change.
  await expectRefused((await setting(customer, { rules: [] })).concat('--approval', id), /another change/)
  expect(await bursar(...open, '--approval', id)).toMatchObject({
    version: 27,
    replaced_untrusted: { version: 26 },
  })
})

test('a command that has ended leaves no listener in its process', async () => {
  const { customer_id } = await newCustomer(service)
  const before = process.listenerCount('exit')
  await bursar('show', '--customer', customer_id)
  expect(process.listenerCount('exit')).toBe(before)
})
