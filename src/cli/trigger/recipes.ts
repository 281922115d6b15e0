import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { EventType } from '../../contract/event-types.ts'
import { until, type Api } from '../call-api.ts'
import { makeApproval } from './approvals.ts'
import { makeStatement } from './statements.ts'
import { PROFILE, run, type RecipeStep } from './steps.ts'

/** Makes an event happen, and returns the id of the record whose event it is. */
type Recipe = (api: Api, type: EventType) => Promise<string>

const ID = { id: 'id' }
const ACTIVITY = { id: 'activity_id' }
const ADA = { first_name: 'Ada', last_name: 'Example' }

const deposit = (body: object): RecipeStep => [
  'POST /v2/sandbox/profiles/{profile_id}/deposit',
  body,
  ACTIVITY,
]
const wire = (amount: string) => deposit({ asset: 'USD', amount })
const USD = wire('50')
const IDENTITY: RecipeStep = [
  'POST /v2/identity/identities',
  { ref_id: '{ref}', person_details: ADA },
  { id: 'id', identity: 'id' },
]
const ACCOUNT: RecipeStep = [
  'POST /v2/identity/accounts',
  { account: { identity_id: '{identity}', type: 'BROKERAGE', ref_id: '{ref}' } },
  ID,
]
const verify = (change: object): RecipeStep => [
  'PUT /v2/identity/identities/{identity}/sandbox-status',
  change,
  {},
]
const bankAccount = (account_number: string): RecipeStep => [
  'POST /v2/transfer/fiat-accounts',
  { fiat_account_owner: { person_details: ADA }, fiat_network_instructions: { wire: { account_number } } },
  { id: 'id', bank: 'id' },
]
const bookAddress = (change: object): RecipeStep => [
  'PUT /v2/transfer/crypto-destination-address',
  { crypto_network: 'ETHEREUM', address: '{address}', ...change },
  { id: 'address.id' },
]
const depositToAddress = (amount: string): RecipeStep[] => [
  [
    'POST /v2/transfer/deposit-addresses',
    { profile_id: '{profile_id}', crypto_network: 'ETHEREUM' },
    { deposit_address: 'address' },
  ],
  deposit({ asset: 'USDP', amount, crypto_network: 'ETHEREUM', crypto_address: '{deposit_address}' }),
]
const withdraw = (destination_address: string): RecipeStep[] => [
  USD,
  [
    'POST /v2/transfer/crypto-withdrawals',
    {
      ...{ profile_id: '{profile_id}', asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM' },
      ...{ amount: '10', destination_address, ref_id: '{ref}' },
    },
    ID,
  ],
]
const withdrawByWire = (account: string): RecipeStep[] => [
  USD,
  bankAccount(account),
  [
    'POST /v2/transfer/fiat-withdrawals',
    {
      ...{ profile_id: '{profile_id}', asset: 'USD', fiat_account_id: '{bank}' },
      ...{ amount: '10', ref_id: '{ref}' },
    },
    ID,
  ],
]
const MOVE: RecipeStep[] = [
  USD,
  PROFILE,
  [
    'POST /v2/transfer/internal',
    {
      ...{ asset: 'USD', amount: '1', ref_id: '{ref}' },
      ...{ from_profile_id: '{profile_id}', to_profile_id: '{to}' },
    },
    ID,
  ],
]
const FIND_CREDIT: RecipeStep = [
  'GET /v2/transfer/transfers?profile_ids={to}&type=INTERNAL_TRANSFER_CREDIT',
  undefined,
  { id: 'items.0.id' },
]
const orchestrate = (address: string): RecipeStep[] => [
  USD,
  [
    'POST /v2/orchestration/orchestrations',
    {
      ...{ ref_id: '{ref}', source_asset: 'USD', destination_asset: 'USDP', source_amount: '20' },
      source: { profile: { profile_id: '{profile_id}' } },
      destination: { crypto: { network: 'ETHEREUM', address } },
    },
    ID,
  ],
]

/** What a sandbox does at these destinations: docs/reference/magic-destinations.md. */
const REFUSED_ADDRESS = '0x6275727361722073616E64626F78203031000000'
const REFUSED_ACCOUNT = '900000000001'
const REJECTED_ACCOUNT = '900000000000'
const COMPLETED_LATER = '9000.01'
const FAILED_LATER = '9000.02'
const ADDRESS = '{address}'
const BANK_ACCOUNT = '000987654321'

const DISABLED_MS_MAX = 30_000

/**
 * Creates a webhook that delivers to this process, which answers 410. The webhook is removed afterwards. Throws when no
 * delivery arrives in time, as with a service on another machine.
 */
async function disableWebhook(api: Api): Promise<string> {
  const gone = createServer((_, response) => response.writeHead(410).end()).listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}/`
  const body = { name: '{ref}', url, event_types: ['fiat_account.rejected'] }
  const { webhook } = await run(api, [['POST /v2/webhooks', body, { webhook: 'webhook.id' }]])
  const path = `/v2/webhooks/${webhook}`
  try {
    await run(api, [bankAccount(REJECTED_ACCOUNT)])
    const read = async () =>
      (await api.call<{ status: string }>('GET', path)).status === 'DISABLED' ? true : undefined
    if ((await until(DISABLED_MS_MAX, read)) === undefined)
      throw new Error(
        `no delivery reached this process within ${DISABLED_MS_MAX / 1000} s: does a worker run here?`,
      )
  } finally {
    await api.call('DELETE', path)
    gone.close()
    gone.closeAllConnections()
  }
  return webhook!
}

/** How to make each event happen: by calls of the API alone, or by a function. */
const HOW: { [type in EventType]: readonly RecipeStep[] | Recipe } = {
  'transfer.crypto_deposit.pending': depositToAddress(COMPLETED_LATER),
  'transfer.crypto_deposit.failed': depositToAddress(FAILED_LATER),
  'transfer.crypto_deposit.completed': [deposit({ asset: 'USDP', amount: '10' })],
  'transfer.crypto_withdrawal.pending': withdraw(ADDRESS),
  'transfer.crypto_withdrawal.completed': withdraw(ADDRESS),
  'transfer.crypto_withdrawal.failed': withdraw(REFUSED_ADDRESS),
  'transfer.wire_deposit.pending': [wire(COMPLETED_LATER)],
  'transfer.wire_deposit.completed': [USD],
  'transfer.wire_deposit.failed': [wire(FAILED_LATER)],
  'transfer.wire_withdrawal.pending': withdrawByWire(BANK_ACCOUNT),
  'transfer.wire_withdrawal.completed': withdrawByWire(BANK_ACCOUNT),
  'transfer.wire_withdrawal.failed': withdrawByWire(REFUSED_ACCOUNT),
  'transfer.internal_transfer_debit.completed': MOVE,
  'transfer.internal_transfer_credit.completed': [...MOVE, FIND_CREDIT],
  'orchestration.processing': orchestrate(ADDRESS),
  'orchestration.completed': orchestrate(ADDRESS),
  'orchestration.failed': orchestrate(REFUSED_ADDRESS),
  'identity.approved': [IDENTITY, verify({ status: 'APPROVED' })],
  'identity.denied': [IDENTITY, verify({ status: 'DENIED' })],
  'identity.disabled': [IDENTITY, verify({ user_disabled: true })],
  'account.approved': [IDENTITY, ACCOUNT, verify({ status: 'APPROVED' })],
  'account.denied': [IDENTITY, ACCOUNT, verify({ status: 'DENIED' })],
  'account.disabled': [IDENTITY, ACCOUNT, verify({ user_disabled: true })],
  'fiat_account.approved': [bankAccount(BANK_ACCOUNT)],
  'fiat_account.rejected': [bankAccount(REJECTED_ACCOUNT)],
  'crypto_destination_address.approved': [bookAddress({})],
  'crypto_destination_address.rejected': [bookAddress({ status: 'REJECTED' })],
  'statement.generated': makeStatement,
  'statement.paid': makeStatement,
  'transfer.paxos_transfer_credit.completed': makeStatement,
  'transfer.paxos_transfer_debit.completed': makeStatement,
  'approval.requested': makeApproval,
  'approval.approved': makeApproval,
  'approval.rejected': makeApproval,
  'approval.expired': makeApproval,
  'webhook.disabled': disableWebhook,
}

/** Makes an event of a type happen, and returns the id of the record whose event it is. */
export async function makeEvent(api: Api, type: EventType): Promise<string> {
  const how = HOW[type]
  return typeof how === 'function' ? how(api, type) : (await run(api, how)).id!
}
