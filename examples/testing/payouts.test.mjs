// A suite for node:test (`node --test`) against a sandbox. CREDENTIALS names the sandbox's credentials file.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { BursarProblem, createClient } from '@bursar/client'

const clientOf = ({ base_url, client_id, client_secret }) =>
  createClient({ baseUrl: base_url, clientId: client_id, clientSecret: client_secret })
const sandbox = clientOf(JSON.parse(readFileSync(process.env.CREDENTIALS, 'utf8')))

let bursar, profile_id
before(async () => {
  // A customer of its own: other suites do not see its records.
  const customer = await sandbox.post('/v2/sandbox/customers', { body: { name: 'node suite' } })
  bursar = clientOf(customer)
  profile_id = customer.profile_id
  const path = { id: profile_id }
  await bursar.post('/v2/sandbox/profiles/{id}/deposit', {
    params: { path },
    body: { asset: 'USD', amount: '100' },
  })
})

const payout = (ref_id, destination_address = '0x52908400098527886E0F7030069857D2E4169EE7') => ({
  body: {
    ...{ profile_id, asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM', amount: '10' },
    ...{ destination_address, ref_id },
  },
})
const availableUsd = async () =>
  (
    await bursar.get('/v2/profiles/{id}/balances/{asset}', {
      params: { path: { id: profile_id, asset: 'USD' } },
    })
  ).available

test('a payout is paid', async () => {
  const transfer = await bursar.post('/v2/transfer/crypto-withdrawals', payout('paid'))
  assert.equal((await bursar.waitFor(transfer, { everyMs: 50 })).status, 'COMPLETED')
})

test('a payout to a refused address comes back', async () => {
  const before = await availableUsd()
  const refused = '0x6275727361722073616E64626F78203031000000' // INVALID_DESTINATION_ADDRESS
  const transfer = await bursar.post('/v2/transfer/crypto-withdrawals', payout('refused', refused))
  assert.equal((await bursar.waitFor(transfer, { everyMs: 50 })).status, 'FAILED')
  assert.equal(await availableUsd(), before)
})

test('a payout beyond the balance is refused, and nothing changes', async () => {
  const { body } = payout('poor')
  await assert.rejects(
    bursar.post('/v2/transfer/crypto-withdrawals', { body: { ...body, amount: '5000' } }),
    (error) => error instanceof BursarProblem && error.is('insufficient-funds'),
  )
})

test('a payout whose answer is lost is paid once', async () => {
  await bursar.get('/v2/profiles', { headers: { 'Bursar-Fail-Next': '503, lost-answer' } })
  await bursar.post('/v2/transfer/crypto-withdrawals', payout('once'))
  const { items } = await bursar.get('/v2/transfer/transfers', { params: { query: { ref_ids: ['once'] } } })
  assert.equal(items.length, 1)
})

test('a quoted fee holds for a while', async () => {
  const { profile_id: _, balance_asset, ref_id, ...asked } = payout('late').body
  const quote = await bursar.post('/v2/transfer/fees/crypto-withdrawal', { body: asked })
  await sandbox.post('/v2/sandbox/clock', { body: { advance: 'PT1H' } })
  const late = { body: { ...payout('late').body, fee_id: quote.id } }
  await assert.rejects(bursar.post('/v2/transfer/crypto-withdrawals', late), BursarProblem)
})
