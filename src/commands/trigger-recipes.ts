import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { EventType } from '../contract/event-types.ts'
import type { Api } from './call-api.ts'
import { makeApproval } from './trigger-approvals.ts'
import { makeStatement } from './trigger-statements.ts'

/** Makes an event happen through the API, and returns the id of the record whose event it is. */
type Recipe = (api: Api) => Promise<string>

/** What a sandbox does at these destinations: docs/reference/magic-destinations.md. */
const REFUSED_ADDRESS = '0x6275727361722073616E64626F78203031000000'
const REFUSED_ACCOUNT = '900000000001'
const REJECTED_ACCOUNT = '900000000000'
const COMPLETED_LATER = '9000.01'
const FAILED_LATER = '9000.02'

const ADA = { first_name: 'Ada', last_name: 'Example' }
const newAddress = () => `0x${randomBytes(20).toString('hex')}`

/** A record that an operation created. */
interface Created {
  id: string
}

/** Deposits USD on the demo's profile, for the payments that follow. */
async function wire({ call, credentials }: Api, amount = '50'): Promise<string> {
  const { activity_id } = await call<{ activity_id: string }>(
    'POST',
    `/v2/sandbox/profiles/${credentials.profile_id}/deposit`,
    { asset: 'USD', amount },
  )
  return activity_id
}

/** Deposits USDP of a magic amount at a new deposit address. */
const depositPending =
  (amount: string): Recipe =>
  async ({ call, credentials: { profile_id } }) => {
    const { address } = await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
      profile_id,
      crypto_network: 'ETHEREUM',
    })
    const { activity_id } = await call<{ activity_id: string }>(
      'POST',
      `/v2/sandbox/profiles/${profile_id}/deposit`,
      { asset: 'USDP', amount, crypto_network: 'ETHEREUM', crypto_address: address },
    )
    return activity_id
  }

const withdraw =
  (destination: () => string): Recipe =>
  async (api) => {
    await wire(api)
    const { id } = await api.call<Created>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: api.credentials.profile_id,
      asset: 'USDP',
      balance_asset: 'USD',
      crypto_network: 'ETHEREUM',
      amount: '10',
      destination_address: destination(),
      ref_id: `trigger-${randomUUID()}`,
    })
    return id
  }

const bankAccount = async ({ call }: Api, account_number: string): Promise<string> => {
  const { id } = await call<Created>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { person_details: ADA },
    fiat_network_instructions: { wire: { account_number } },
  })
  return id
}

const bookAddress = async ({ call }: Api, change: object = {}): Promise<string> => {
  const { address } = await call<{ address: Created }>('PUT', '/v2/transfer/crypto-destination-address', {
    crypto_network: 'ETHEREUM',
    address: newAddress(),
    ...change,
  })
  return address.id
}

const withdrawByWire =
  (account: string): Recipe =>
  async (api) => {
    await wire(api)
    const { id } = await api.call<Created>('POST', '/v2/transfer/fiat-withdrawals', {
      profile_id: api.credentials.profile_id,
      asset: 'USD',
      fiat_account_id: await bankAccount(api, account),
      amount: '10',
      ref_id: `trigger-${randomUUID()}`,
    })
    return id
  }

/** Moves USD to a new profile, and returns the id of the transfer of this direction. */
const moveInternally =
  (type: 'INTERNAL_TRANSFER_DEBIT' | 'INTERNAL_TRANSFER_CREDIT'): Recipe =>
  async (api) => {
    const { call, credentials } = api
    await wire(api)
    const { id: to_profile_id } = await call<Created>('POST', '/v2/profiles', {
      nickname: `trigger ${randomUUID()}`,
    })
    const debit = await call<Created & { group_id: string }>('POST', '/v2/transfer/internal', {
      asset: 'USD',
      amount: '1',
      from_profile_id: credentials.profile_id,
      to_profile_id,
      ref_id: `trigger-${randomUUID()}`,
    })
    if (type === 'INTERNAL_TRANSFER_DEBIT') return debit.id
    const { items } = await call<{ items: Created[] }>(
      'GET',
      `/v2/transfer/transfers?profile_ids=${to_profile_id}&type=${type}`,
    )
    return items[0]!.id
  }

const orchestrate =
  (destination: () => string): Recipe =>
  async (api) => {
    await wire(api)
    const { id } = await api.call<Created>('POST', '/v2/orchestration/orchestrations', {
      ref_id: `trigger-${randomUUID()}`,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '20',
      source: { profile: { profile_id: api.credentials.profile_id } },
      destination: { crypto: { network: 'ETHEREUM', address: destination() } },
    })
    return id
  }

const newIdentity = async ({ call }: Api): Promise<string> => {
  const { id } = await call<Created>('POST', '/v2/identity/identities', {
    ref_id: `trigger-${randomUUID()}`,
    person_details: ADA,
  })
  return id
}

const verifyIdentity = ({ call }: Api, id: string, change: object) =>
  call('PUT', `/v2/identity/identities/${id}/sandbox-status`, change)

const changeIdentity =
  (change: object): Recipe =>
  async (api) => {
    const id = await newIdentity(api)
    await verifyIdentity(api, id, change)
    return id
  }

/** Changes the identity of a new account, whose status follows it. */
const changeAccount =
  (change: object): Recipe =>
  async (api) => {
    const identity_id = await newIdentity(api)
    const account = await api.call<Created>('POST', '/v2/identity/accounts', {
      account: { identity_id, type: 'BROKERAGE', ref_id: `trigger-${randomUUID()}` },
    })
    await verifyIdentity(api, identity_id, change)
    return account.id
  }

const DISABLED_MS_MAX = 30_000
const LOOK_EVERY_MS = 200

/**
 * Lets a webhook of its own deliver to this process, which answers 410. The webhook is removed afterwards. Throws when no
 * delivery arrives in time, as with a service on another machine.
 */
async function disableWebhook(api: Api): Promise<string> {
  const gone = createServer((_, response) => response.writeHead(410).end()).listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { webhook } = await api.call<{ webhook: Created }>('POST', '/v2/webhooks', {
    name: `trigger ${randomUUID()}`,
    url: `http://127.0.0.1:${(gone.address() as AddressInfo).port}/`,
    event_types: ['fiat_account.rejected'],
  })
  const path = `/v2/webhooks/${webhook.id}`
  try {
    await bankAccount(api, REJECTED_ACCOUNT)
    const deadline = performance.now() + DISABLED_MS_MAX
    while ((await api.call<{ status: string }>('GET', path)).status !== 'DISABLED') {
      if (performance.now() > deadline)
        throw new Error(
          `no delivery reached this process within ${DISABLED_MS_MAX / 1000} s: does a worker run here?`,
        )
      await pause(LOOK_EVERY_MS)
    }
  } finally {
    await api.call('DELETE', path)
    gone.close()
    gone.closeAllConnections()
  }
  return webhook.id
}

/** How to make each event happen. */
export const RECIPES: { [type in EventType]: Recipe } = {
  'transfer.crypto_deposit.pending': depositPending(COMPLETED_LATER),
  'transfer.crypto_deposit.failed': depositPending(FAILED_LATER),
  'transfer.crypto_deposit.completed': async ({ call, credentials }) => {
    const { activity_id } = await call<{ activity_id: string }>(
      'POST',
      `/v2/sandbox/profiles/${credentials.profile_id}/deposit`,
      { asset: 'USDP', amount: '10' },
    )
    return activity_id
  },
  'transfer.crypto_withdrawal.pending': withdraw(newAddress),
  'transfer.crypto_withdrawal.completed': withdraw(newAddress),
  'transfer.crypto_withdrawal.failed': withdraw(() => REFUSED_ADDRESS),
  'transfer.wire_deposit.pending': (api) => wire(api, COMPLETED_LATER),
  'transfer.wire_deposit.completed': (api) => wire(api),
  'transfer.wire_deposit.failed': (api) => wire(api, FAILED_LATER),
  'transfer.wire_withdrawal.pending': withdrawByWire('000987654321'),
  'transfer.wire_withdrawal.completed': withdrawByWire('000987654321'),
  'transfer.wire_withdrawal.failed': withdrawByWire(REFUSED_ACCOUNT),
  'transfer.internal_transfer_debit.completed': moveInternally('INTERNAL_TRANSFER_DEBIT'),
  'transfer.internal_transfer_credit.completed': moveInternally('INTERNAL_TRANSFER_CREDIT'),
  'orchestration.processing': orchestrate(newAddress),
  'orchestration.completed': orchestrate(newAddress),
  'orchestration.failed': orchestrate(() => REFUSED_ADDRESS),
  'identity.approved': changeIdentity({ status: 'APPROVED' }),
  'identity.denied': changeIdentity({ status: 'DENIED' }),
  'identity.disabled': changeIdentity({ user_disabled: true }),
  'account.approved': changeAccount({ status: 'APPROVED' }),
  'account.denied': changeAccount({ status: 'DENIED' }),
  'account.disabled': changeAccount({ user_disabled: true }),
  'fiat_account.approved': (api) => bankAccount(api, '000987654321'),
  'fiat_account.rejected': (api) => bankAccount(api, REJECTED_ACCOUNT),
  'crypto_destination_address.approved': (api) => bookAddress(api),
  'crypto_destination_address.rejected': (api) => bookAddress(api, { status: 'REJECTED' }),
  'statement.generated': makeStatement('statement.generated'),
  'statement.paid': makeStatement('statement.paid'),
  'transfer.paxos_transfer_credit.completed': makeStatement('transfer.paxos_transfer_credit.completed'),
  'transfer.paxos_transfer_debit.completed': makeStatement('transfer.paxos_transfer_debit.completed'),
  'approval.requested': makeApproval('approval.requested'),
  'approval.approved': makeApproval('approval.approved'),
  'approval.rejected': makeApproval('approval.rejected'),
  'approval.expired': makeApproval('approval.expired'),
  'webhook.disabled': disableWebhook,
}
