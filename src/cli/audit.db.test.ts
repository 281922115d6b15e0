import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { asAdmin, BASE_URL, credit, newCustomer, runBursar, ownTestService } from '../../test/support.ts'
import { readAnchors } from './audit.ts'
import { ownFolder } from '../../test/at-end.ts'

const service = await ownTestService()
const folder = await ownFolder()

const audit = (...args: string[]) =>
  runBursar(['audit', ...args], {
    DATABASE_URL: service.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_BASE_URL: BASE_URL,
  })

test('a chain is exported, verified against the export, and named when it was changed', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '10')
  const exported = await audit('head', '--json')
  expect(exported.code).toBe(0)
  const file = join(folder, 'heads.json')
  await writeFile(file, exported.stdout)
  const whole = await audit('verify', '--head', file, '--json')
  expect(whole.code).toBe(0)
  expect(JSON.parse(whole.stdout)).toMatchObject({ clean: true, faults: [] })

  const listed = await audit(
    'list',
    '--customer',
    customer.customer_id,
    '--action',
    'transfer.create',
    '--json',
  )
  const [record] = listed.stdout.trim().split('\n')
  expect(JSON.parse(record!)).toMatchObject({ action: 'transfer.create', outcome: 'DONE' })
  expect((await audit('list')).code).toBe(0)

  await asAdmin(
    `update audit_log set actor_id = 'x' where customer_id = '${customer.customer_id}'`,
    service.url,
  )
  const changed = await audit('verify', '--customer', customer.customer_id)
  expect(changed.code).toBe(1)
  expect(changed.stdout).toContain(`${customer.customer_id}: record `)
  expect(changed.stdout).toContain('1 chains were changed')
})

test('a file without heads, or with a malformed head, is refused by name', () => {
  const head = { customer_id: crypto.randomUUID(), position: 3, hash: 'ab'.repeat(32) }
  expect(readAnchors(`{"heads":[${JSON.stringify(head)}]}`, 'f')).toEqual([head])
  const log = `not JSON\n{"msg":"other"}\n{"msg":"audit heads","heads":[${JSON.stringify(head)}]}\n`
  expect(readAnchors(log, 'f')).toEqual([head])
  expect(() => readAnchors('{}', 'f.json')).toThrow(
    'f.json has no heads: bursar audit head --json writes them',
  )
  for (const wrong of [{ customer_id: 'me' }, { position: '3' }, { position: 0.5 }, { hash: 'ab' }])
    expect(() => readAnchors(JSON.stringify({ heads: [{ ...head, ...wrong }] }), 'f.json')).toThrow(
      'f.json has a malformed head',
    )
})

test('usage errors name the option', async () => {
  const wrong = await audit('list', '--action', 'nothing.done')
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('must be an action')
  expect((await audit('list', '--limit', '0')).stderr).toContain('from 1 to 1000')
  expect((await audit('verify', '--customer', 'me')).stderr).toContain('must be a UUID')
  const missing = await audit('verify', '--head', join(folder, 'nothing.json'))
  expect(missing.code).toBe(1)
})
