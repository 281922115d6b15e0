/** The sentence on top of a transfer, for each state that its history can show, and the text for its customer. */
import { describe, expect, test } from 'vitest'
import type { Network, Transfer, TransferHistory } from '../src/records.ts'
import {
  isLate,
  needsPerson,
  stateOf,
  textForCustomer,
  usualOf,
  type Known,
} from '../src/pages/transfer-state.ts'

const HASH = `0x${'ab'.repeat(32)}`
const ADDRESS = '0x52908400098527886E0F7030069857D2E4169EE7'
const now = Date.parse('2026-11-28T03:30:00Z')

const transfer: Transfer = {
  id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
  customer_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e01',
  profile_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e02',
  type: 'CRYPTO_WITHDRAWAL',
  direction: 'DEBIT',
  status: 'PENDING',
  asset: 'USDP',
  amount: '25',
  fee: '1',
  total: '26',
  crypto_network: 'ETHEREUM',
  destination_address: ADDRESS,
  ref_id: 'payout-7',
  created_at: '2026-11-28T03:20:00.000000Z',
  updated_at: '2026-11-28T03:20:00.000000Z',
}
const deposited = { type: 'CRYPTO_DEPOSIT', direction: 'CREDIT' } as const
const wire = { type: 'WIRE_WITHDRAWAL', crypto_network: undefined } as const
const sent = {
  crypto_tx_hash: HASH,
  state: 'BROADCAST',
  signed_at: '2026-11-28T03:20:30.000000Z',
  broadcast_at: '2026-11-28T03:21:00.000000Z',
} as const
const needs = (members: Partial<Network>) => ({ crypto_network: 'ETHEREUM', ...members }) as Network

/** What a case changes. A wire has no network. */
interface Shown extends Partial<Omit<TransferHistory, 'transfer'>> {
  transfer?: Partial<Omit<Transfer, 'crypto_network'>> & {
    crypto_network?: Transfer['crypto_network'] | undefined
  }
}
const historyOf = ({ transfer: changed, ...rest }: Shown = {}): TransferHistory => ({
  transfer: { ...transfer, ...changed },
  entries: [],
  transactions: [],
  ...rest,
})
const told = (shown: Shown, known: Partial<Known> = {}) => stateOf(historyOf(shown), { now, ...known })
const waits = (code: string, detail = 'why', since?: string) => ({
  waiting: { code, detail, ...(since !== undefined && { since }) },
})

const approvalOf = (status: 'PENDING' | 'APPROVED'): Shown => ({
  transfer: {
    secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL', detail: 'it waits for approvers' },
    status_details: { pending_customer_approval: { message: 'it waits', approval_id: 'any' } },
  },
  approval: {
    id: 'any',
    customer_id: transfer.customer_id,
    subject: { type: 'transfer', id: transfer.id },
    status,
    approvals: 1,
    required: 2,
    role: 'APPROVER',
    policy_version: 1,
    initiator: { type: 'API_CLIENT', id: 'any' },
    decisions: [],
    created_at: '2026-11-28T03:25:00.000000Z',
    deadline: '2026-11-29T03:25:00.000000Z',
  },
})

const refunded = {
  event: 'REFUNDED',
  position: 1,
  account: 'profile',
  asset: 'USDP',
  amount: '26',
  created_at: '2026-11-28T03:22:00.000000Z',
} as const

describe('a withdrawal that is under way', () => {
  test.each<[string, Shown, string]>([
    ['nothing has happened yet', {}, 'Requested 10 minutes ago. It is signed and sent next.'],
    ['a wire', { transfer: wire }, 'Requested 10 minutes ago. It goes to the bank next.'],
    [
      'approvers are asked',
      approvalOf('PENDING'),
      'It waits for approval, asked for 5 minutes ago: 1 of 2 of role approver have approved. With enough approvals by 29 Nov 2026, 03:25:00 UTC, it is signed and sent.',
    ],
    [
      'approvers are asked, as the worker says, too',
      { ...approvalOf('PENDING'), ...waits('AWAITING_APPROVAL') },
      'It waits for approval, asked for 5 minutes ago: 1 of 2 of role approver have approved. With enough approvals by 29 Nov 2026, 03:25:00 UTC, it is signed and sent.',
    ],
    ['approved', approvalOf('APPROVED'), 'Approved. It is signed and sent next.'],
    [
      'frozen while approvers are asked',
      {
        ...approvalOf('PENDING'),
        ...waits('FROZEN', 'the profile is frozen', '2026-11-28T03:24:00.000000Z'),
      },
      'Held since 28 Nov 2026, 03:24:00 UTC: the profile is frozen. It goes on when the freeze is lifted.',
    ],
    [
      'held by the sandbox',
      {
        transfer: {
          secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL', detail: 'it waits for the customer' },
          status_details: { pending_customer_approval: { message: 'it waits for the customer' } },
        },
      },
      'Held, requested 10 minutes ago: it waits for the customer. The sandbox simulates this hold, and ends it by itself.',
    ],
    [
      'held for the travel rule',
      { transfer: { secondary_status: { name: 'TRAVEL_RULE_INFO_REQUESTED', detail: 'asked' } } },
      'Held, requested 10 minutes ago: asked. It goes on when that is done.',
    ],
    ['no node answers', waits('NODE_DOWN'), 'It waits: why. It is tried again by itself.'],
    ['only an operator can tell', waits('UNRESOLVED'), 'It waits: why. An operator must look at it.'],
    [
      'the hot wallet is short',
      waits('HOT_WALLET_SHORT', 'it has 3 of 26 USDP'),
      'It waits: it has 3 of 26 USDP. It goes on when the hot wallet is filled.',
    ],
    [
      'a wire that nobody has taken',
      { transfer: wire, ...waits('WIRE_TO_TAKE', 'an operator must send it: bursar wire take') },
      'It waits: an operator must send it. It goes on when an operator takes and sends it.',
    ],
    [
      'a person is to sign it',
      {
        transactions: [{ crypto_tx_hash: HASH, state: 'SIGNED', signed_at: '2026-11-28T03:20:30Z' }],
        ...waits('WAITING_SIGNATURE', 'PSBT waits'),
      },
      'Prepared 9 minutes ago, and not signed: PSBT waits. It goes on when a person has signed it.',
    ],
    [
      'signed',
      { transactions: [{ crypto_tx_hash: HASH, state: 'SIGNED', signed_at: '2026-11-28T03:29:50Z' }] },
      'Signed 10 seconds ago; Ethereum has not accepted it yet. It is broadcast next.',
    ],
    [
      'signed, and refused by the node',
      {
        transactions: [{ crypto_tx_hash: HASH, state: 'SIGNED', signed_at: '2026-11-28T03:29:50Z' }],
        ...waits('NODE_REFUSED', 'the node does not accept it yet'),
      },
      'Signed 10 seconds ago; Ethereum has not accepted it yet. It waits: the node does not accept it yet. An operator must look at it.',
    ],
    [
      'sent',
      { transactions: [sent] },
      'Sent 9 minutes ago; Ethereum has not confirmed it yet. It is completed when it is final.',
    ],
    [
      'sent again for a higher fee',
      {
        transactions: [
          { ...sent, state: 'REPLACED', crypto_tx_hash: '0x01', broadcast_at: '2026-11-28T03:10:00Z' },
          sent,
        ],
      },
      'Sent 9 minutes ago; Ethereum has not confirmed it yet. It is completed when it is final.',
    ],
    [
      'confirmed in part',
      { transactions: [{ ...sent, confirmations: 3, confirmations_needed: 12 }] },
      'Sent 9 minutes ago; Ethereum has confirmed 3 of 12 blocks. It is completed when it is final.',
    ],
    [
      'in a block, where the node decides',
      { transactions: [{ ...sent, confirmations: 3 }] },
      'Sent 9 minutes ago; Ethereum has it in a block, with 3 confirmations; its node says when it is final. It is completed when it is final.',
    ],
    [
      'two nodes disagree',
      { transactions: [sent], ...waits('NODES_DISAGREE', 'the second node says something else') },
      'Sent 9 minutes ago; Ethereum has not confirmed it yet. It waits: the second node says something else. An operator must look at it.',
    ],
  ])('%s', (_, shown, sentence) => {
    expect(told(shown)).toBe(sentence)
  })

  test('what is usual, and what the network needs', () => {
    expect(
      told(
        { transactions: [sent] },
        { network: needs({ confirmations: 12 }), usual: { seconds: 190, slowestSeconds: 400 } },
      ),
    ).toBe(
      'Sent 9 minutes ago; Ethereum has not confirmed it yet (12 blocks are needed). Usually 3 minutes in all. It is completed when it is final.',
    )
    expect(told({ transactions: [sent] }, { network: needs({ finality: 'FINALIZED' }) })).toContain(
      'it is final when the chain says finalized',
    )
  })
})

describe('other transfers', () => {
  const end = { updated_at: '2026-11-28T03:21:30.000000Z' }
  test.each<[string, Shown, string]>([
    [
      'a paid withdrawal',
      { transfer: { status: 'COMPLETED', crypto_tx_hash: HASH, ...end } },
      'Paid on 28 Nov 2026, 03:21:30 UTC, 90.0 s after the request, in transaction 0xababab…ababab on Ethereum.',
    ],
    [
      'a paid wire',
      { transfer: { ...wire, status: 'COMPLETED', ...end } },
      'Paid on 28 Nov 2026, 03:21:30 UTC, 90.0 s after the request.',
    ],
    [
      'an internal transfer',
      { transfer: { type: 'INTERNAL_TRANSFER_DEBIT', crypto_network: undefined, status: 'COMPLETED' } },
      'Moved on 28 Nov 2026, 03:20:00 UTC.',
    ],
    [
      'a credited deposit',
      { transfer: { ...deposited, status: 'COMPLETED', crypto_tx_hash: HASH, ...end } },
      'Credited on 28 Nov 2026, 03:21:30 UTC, 90.0 s after it was seen, in transaction 0xababab…ababab on Ethereum.',
    ],
    [
      'a deposit that was seen',
      { transfer: deposited },
      'Seen 10 minutes ago on Ethereum, and not credited yet. It is credited when it is final.',
    ],
    [
      'a wire that is held',
      { transfer: { ...deposited, type: 'WIRE_DEPOSIT', crypto_network: undefined } },
      'Held since 28 Nov 2026, 03:20:00 UTC, and not credited yet. It is credited or sent back by a decision.',
    ],
    [
      'a deposit whose block is gone',
      { transfer: { ...deposited, status: 'FAILED', ...end } },
      'Failed on 28 Nov 2026, 03:21:30 UTC. Nothing was credited.',
    ],
    [
      'a refused withdrawal',
      {
        transfer: {
          status: 'FAILED',
          status_details: { stale_fee_quote: { message: 'the network fee rose above the fee quoted' } },
          ...end,
        },
        entries: [refunded],
      },
      'Failed on 28 Nov 2026, 03:21:30 UTC: the network fee rose above the fee quoted. The money went back on 28 Nov 2026, 03:22:00 UTC.',
    ],
    [
      'a cancelled withdrawal',
      {
        transfer: {
          status: 'FAILED',
          secondary_status: { name: 'CUSTOMER_REJECTED', detail: 'the client cancelled it' },
          ...end,
        },
        entries: [refunded],
      },
      'Failed on 28 Nov 2026, 03:21:30 UTC: the client cancelled it. The money went back on 28 Nov 2026, 03:22:00 UTC.',
    ],
  ])('%s', (_, shown, sentence) => {
    expect(told(shown, { usual: undefined })).toBe(sentence)
  })
})

describe('the text for the customer', () => {
  const lines = (shown: Shown) => textForCustomer(historyOf(shown)).split('\n')

  test('has amount, destination, state, transaction and reference', () => {
    expect(lines({ transactions: [{ ...sent, confirmations: 3, confirmations_needed: 12 }] })).toEqual([
      'Crypto withdrawal of 25 USDP',
      `To: ${ADDRESS}`,
      'Network: Ethereum',
      'State: sent on 28 Nov 2026, 03:21:00 UTC, waiting for confirmations: 3 of 12',
      `Transaction: ${HASH}`,
      'Reference: payout-7',
    ])
  })

  test('has nothing internal: no reason, no screening, no hash before the payment is sent', () => {
    const { secondary_status } = approvalOf('PENDING').transfer!
    const text = lines({
      transfer: { secondary_status: secondary_status! },
      transactions: [{ crypto_tx_hash: HASH, state: 'SIGNED' }],
      ...waits('SCREENING', 'the screening asks for a person'),
    })
    expect(text).toContain(
      'State: in progress since 28 Nov 2026, 03:20:00 UTC, signed: it may be sent already',
    )
    expect(text.join()).not.toMatch(/screening|approv|0xabab/)
  })

  test('a wire that a person has taken is neither sent nor not sent', () => {
    const text = lines({ transfer: { type: 'WIRE_WITHDRAWAL' }, ...waits('WIRE_TAKEN') })
    expect(text).toContain('State: in progress since 28 Nov 2026, 03:20:00 UTC, being sent at the bank')
  })

  test('a payment that is signed again for a higher fee was sent before, and may be paid', () => {
    const text = lines({
      transactions: [
        { ...sent, state: 'REPLACED' },
        { crypto_tx_hash: '0xcdcd', state: 'SIGNED' },
      ],
    })
    expect(text).toContain('State: sent on 28 Nov 2026, 03:21:00 UTC, waiting for confirmations')
    expect(text).toContain(`Transaction: ${HASH}`)
  })

  test.each<[string, Shown, string]>([
    ['completed', { transfer: { status: 'COMPLETED' } }, 'completed on 28 Nov 2026, 03:20:00 UTC'],
    [
      'refunded',
      { transfer: { status: 'FAILED' }, entries: [refunded] },
      'not carried out; the money went back on 28 Nov 2026, 03:22:00 UTC',
    ],
    ['not credited', { transfer: { ...deposited, status: 'FAILED' } }, 'not credited'],
    ['seen', { transfer: deposited }, 'seen on 28 Nov 2026, 03:20:00 UTC, not credited yet'],
    ['sent', { transactions: [sent] }, 'sent on 28 Nov 2026, 03:21:00 UTC, waiting for confirmations'],
  ])('%s', (_, shown, state) => {
    expect(lines(shown)).toContain(`State: ${state}`)
  })
})

describe('what is usual', () => {
  const took = (seconds: number, members: Partial<Transfer> = {}): Transfer => ({
    ...transfer,
    status: 'COMPLETED',
    updated_at: new Date(Date.parse(transfer.created_at) + seconds * 1_000).toISOString(),
    ...members,
  })

  test('is the middle of the completed ones of the same kind', () => {
    const completed = [took(30), took(600), took(60), took(1), took(9_000, { crypto_network: 'BASE' })]
    expect(usualOf(completed, transfer)).toEqual({ seconds: 60, slowestSeconds: 600 })
    expect(usualOf(completed, { type: 'WIRE_WITHDRAWAL' })).toBeUndefined()
  })

  test('a transfer is late when it waits for longer than each of them; for 10 minutes where none is known', () => {
    const at = (seconds: number) => Date.parse(transfer.created_at) + seconds * 1_000
    expect(isLate(transfer, [took(30), took(600)], at(599))).toBe(false)
    expect(isLate(transfer, [took(30), took(600)], at(601))).toBe(true)
    expect(isLate(transfer, [took(30, { crypto_network: 'BASE' })], at(599))).toBe(false)
    expect(isLate(transfer, [took(30, { crypto_network: 'BASE' })], at(601))).toBe(true)
  })

  test('a reason that passes by itself needs no person, nor does an approval', () => {
    expect(['NODE_DOWN', 'NEXT_TRANSACTION', 'AWAITING_APPROVAL'].filter(needsPerson)).toEqual([])
    expect(needsPerson('HOT_WALLET_SHORT')).toBe(true)
  })
})
