import { Type } from 'typebox'
import { formatAmount } from '../../contract/assets/amount.ts'
import { forAll, transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { Amount, AssetSymbol, Closed, Network, Timestamp, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { amountsAt, termsOf } from '../../money/movements/crypto-withdrawal.ts'
import { estimatedFee, scheduledFee } from '../../money/movements/withdrawal-fee.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'

/** Most unused and unexpired quotes of a customer. Used quotes do not count: each withdrawal costs a fee. */
export const OPEN_QUOTES_MAX = 1_000
const QUOTE_SECONDS = 300

const asked = {
  asset: AssetSymbol,
  crypto_network: Network,
  destination_address: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'Destination address.',
    examples: ['0x52908400098527886E0F7030069857D2E4169EE7'],
  }),
  amount: Type.Optional(Amount('Largest amount the quote is for. Exactly one of amount and total.')),
  total: Type.Optional(
    Amount('Largest total the quote is for, fee included. Exactly one of amount and total.'),
  ),
}

/**
 * Quotes a guaranteed withdrawal fee (API behaviour, Withdrawal fees), valid for five minutes and one
 * withdrawal. On a real network the fee is the node's estimate plus the network's margin; elsewhere, the scheduled
 * fee.
 */
export const quoteCryptoWithdrawalFee = operation({
  method: 'POST',
  url: '/v2/transfer/fees/crypto-withdrawal',
  scope: 'fee:write_crypto_withdrawal_fee',
  tag: 'Transfers',
  repeats: 'HARMLESS',
  summary: 'Create Crypto Withdrawal Fee',
  description:
    'Guarantees a fee for one withdrawal of at most this amount to this destination, until the quote expires.',
  body: Closed(asked),
  example: {
    bodies: {
      'USDP on Ethereum': {
        asset: 'USDP',
        crypto_network: 'ETHEREUM',
        destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
        amount: '25',
      },
    },
  },
  reply: Type.Object({
    id: Uuid('The fee_id for the withdrawal.'),
    fee: Amount('The guaranteed fee.'),
    expires_at: Timestamp('End of the guarantee.'),
    ...asked,
  }),
  problems: [
    'exceed-precision',
    'below-min-withdraw-limit',
    'exceed-max-withdraw-limit',
    'unsupported-address',
    'unsupported-network',
    'unavailable',
  ],
  async run({ body, customerId, origin, db, networks, askNodes, settings, rowMacs }) {
    const terms = termsOf(body, { networks, settings })
    const adapter = networks.get(body.crypto_network)!
    const asked = { route: terms, where: body, sandbox: settings.mode === 'sandbox' }
    const estimated = adapter.estimateFee && (await askNodes(() => estimatedFee(forAll(db), adapter, asked)))
    const { fee } = amountsAt(estimated ?? scheduledFee(terms), terms)
    const { field, minor } = terms.asked
    const quote = {
      asset: body.asset,
      crypto_network: body.crypto_network,
      destination_address: body.destination_address,
      fee: formatAmount(fee, terms.asset.decimals),
      [field]: formatAmount(minor, terms.asset.decimals),
    }
    const [made] = await transaction(db, async (tx) => {
      const now = await readClock(tx)
      const { rows } = await tx.query<{ id: string; expires_at: string }>(
        `
        insert into fee_quotes (customer_id, id, created_at, expires_at,
                                asset, crypto_network, destination_address, fee, amount, total)
        select $1::uuid, $2::uuid, $3::timestamptz, $3::timestamptz + make_interval(secs => $4),
               $5, $6, $7, $8::numeric, $9::numeric, $10::numeric
        where $11::integer > (select count(*)
                              from (select 1 from fee_quotes
                                    where customer_id = $1::uuid and transfer_id is null and expires_at > $3::timestamptz
                                    limit $11::integer) open)
        returning id, expires_at`,
        [
          customerId,
          newId(now),
          now.text,
          QUOTE_SECONDS,
          quote.asset,
          quote.crypto_network,
          quote.destination_address,
          quote.fee,
          quote.amount,
          quote.total,
          OPEN_QUOTES_MAX,
        ],
      )
      if (rows[0] !== undefined) {
        await rowMacs.seal(tx, 'fee_quotes', customerId, rows[0].id)
        recordChanges(tx, customerId, now, [audited(origin, 'fee_quote.create', rows[0].id)])
      }
      return rows
    })
    if (made === undefined)
      throw problem.tooManyRequests(
        `the customer has ${OPEN_QUOTES_MAX} unused fee quotes; use them, or wait until they expire`,
        QUOTE_SECONDS,
      )
    return { ...made, ...quote }
  },
})
