import { Type } from 'typebox'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { Wire } from '../../contract/bank-wire.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { AMOUNT_LENGTH_MAX, Closed, OneOf, RefId, Text, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { deposit, type DepositPlace } from '../../money/movements/deposit.ts'
import { magicDeposit } from '../../networks/simulated/magic-amounts.ts'
import { announceSimulatedWire } from './announce-simulated-wire.ts'
import { requireDepositable, requireNoRefId } from './deposit-limit.ts'

const InitiateFiatDepositBody = Closed({
  amount: Type.String({
    maxLength: AMOUNT_LENGTH_MAX,
    pattern: '^[0-9]*\\.?[0-9]{1,2}$',
    inWords: 'must be a decimal number with at most two decimals, such as 25.5',
    description: 'Amount to deposit, with at most two decimals.',
    examples: ['250.00'],
  }),
  asset: OneOf(['USD'], 'Only USD is supported.'),
  memo_id: Text(100, 'The memo_id of deposit instructions, which determines the profile to credit.', 1),
  ref_id: Type.Optional(RefId),
  fiat_network_instructions: Closed({ wire: Wire }),
  fiat_account_owner: Type.Optional(
    Type.Object({
      institution_details: Type.Optional(Type.Object({ name: Type.Optional(Text(200, 'Name.')) })),
    }),
  ),
})

export const initiateFiatDeposit = operation({
  method: 'POST',
  url: '/v2/sandbox/fiat-deposits',
  scope: 'transfer:write_sandbox_fiat_deposit',
  tag: 'Sandbox',
  summary: 'Initiate Sandbox Fiat Deposit',
  description:
    'Simulates an incoming wire. The balance is credited before the answer, except for magic amounts. Exists in sandbox mode only.',
  sandboxOnly: true,
  body: InitiateFiatDepositBody,
  example: {
    bodies: {
      'A wire from a company': {
        amount: '250.00',
        asset: 'USD',
        memo_id: EXAMPLE.memo_id,
        fiat_network_instructions: {
          wire: {
            account_number: '000123456789',
            routing_details: {
              routing_number_type: 'ABA',
              routing_number: '021000021',
              bank_name: 'First Example Bank',
            },
          },
        },
        fiat_account_owner: { institution_details: { name: 'Example Ltd' } },
      },
    },
  },
  reply: Closed({}),
  replyHeaders: Closed({ 'Bursar-Transfer-Id': Uuid('The transfer that the wire became.') }),
  problems: ['not-found', 'already-exists', 'unavailable'],
  async run({ body: { amount, asset, memo_id, ref_id }, customerId, origin, db, ledger, answerWith }) {
    const minor = parseAmount(amount, decimalsOf(asset))!
    requireDepositable(minor, decimalsOf(asset))
    const { rows } = await db.query<InstructionsOfMemo>({
      name: 'instructions by memo',
      text: `
        select id, profile_id, identity_id, account_id, metadata
        from fiat_deposit_instructions
        where customer_id = $1 and memo_id = $2`,
      values: [customerId, memo_id],
    })
    const [place] = rows
    if (place === undefined) throw problem.notFound('memo_id', memo_id)
    const outcome = magicDeposit(formatAmount(minor, decimalsOf(asset)))
    if (outcome !== undefined) {
      requireNoRefId(ref_id)
      const wire = { profile_id: place.profile_id, asset, minor, place, memo: memo_id }
      const id = await announceSimulatedWire(db, customerId, wire, outcome, origin)
      answerWith({ 'bursar-transfer-id': id })
      return {}
    }
    const { transfer } = await ledger.submit(
      customerId,
      deposit(
        customerId,
        {
          profile_id: place.profile_id,
          type: 'WIRE_DEPOSIT',
          asset,
          minor,
          arrivedAt: 'bank',
          place,
          record: { memo: memo_id, ...(ref_id !== undefined && { ref_id }) },
        },
        origin,
      ),
    )
    answerWith({ 'bursar-transfer-id': transfer.id })
    return {}
  },
})

type InstructionsOfMemo = DepositPlace & { profile_id: string }
