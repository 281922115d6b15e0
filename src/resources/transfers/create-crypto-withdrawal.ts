import { LRUCache } from 'lru-cache'
import { Type, type Static } from 'typebox'
import { parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Origin } from '../../contract/actor.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import {
  Amount,
  AssetSymbol,
  Closed,
  DryRunQuery,
  Free,
  Metadata,
  Network,
  RefId,
  Text,
  Uuid,
} from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { Problem, problem } from '../../contract/problems.ts'
import {
  networkCost,
  quotedFee,
  requireFeeCovers,
  scheduledFee,
} from '../../money/movements/withdrawal-fee.ts'
import { inUnitsOf } from '../../money/ledger/conversion.ts'
import { FEE_QUOTES } from '../../money/records/fee-quotes.ts'
import { change, need } from '../../money/records/need.ts'
import type { Movement } from '../../money/movements/decision.ts'
import type { Ledger } from '../../money/movements/queue.ts'
import { needsOf, takeOwnCustody } from '../../money/movements/paid-in-limit.ts'
import {
  amountsAt,
  cryptoWithdrawal,
  termsOf,
  type Amounts,
  type Destinations,
  type WithdrawalTerms,
} from '../../money/movements/crypto-withdrawal.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { forAll, type Queryable } from '../../db/database.ts'
import { pricesIn } from '../../rails/context.ts'
import { memoRefusal } from '../../contract/addresses/destination-rules.ts'
import type { Networks } from '../../networks/network.ts'

const Name = Text(200, 'Name.', 1)

export const CreateCryptoWithdrawalBody = Closed({
  profile_id: Uuid('Profile to withdraw from.'),
  destination_address: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'Destination address.',
    examples: ['0x52908400098527886E0F7030069857D2E4169EE7'],
  }),
  asset: AssetSymbol,
  crypto_network: Network,
  ref_id: Type.Optional(RefId),
  identity_id: Type.Optional(Uuid('Identity of the user making the withdrawal.')),
  account_id: Type.Optional(Uuid('Account of the identity making the withdrawal.')),
  balance_asset: Type.Optional(
    Type.String({
      maxLength: 16,
      description:
        'Balance to debit: USD (one to one) for a platform-issued stablecoin; otherwise the asset itself.',
      examples: ['USD'],
    }),
  ),
  metadata: Type.Optional(Metadata),
  fee_id: Type.Optional(Uuid('Id of a guaranteed fee, from POST /v2/transfer/fees/crypto-withdrawal.')),
  amount: Type.Optional(Amount('Amount to withdraw. Exactly one of amount and total.')),
  total: Type.Optional(Amount('Total to withdraw, fee included. Exactly one of amount and total.')),
  beneficiary: Type.Optional(
    Type.Object(
      {
        person_details: Type.Optional(Type.Object({ first_name: Name, last_name: Name })),
        institution_details: Type.Optional(Type.Object({ name: Name })),
      },
      {
        ...Free,
        description: 'Beneficiary information. Other members are kept as they are, 8 KiB at most in all.',
      },
    ),
  ),
  memo: Type.Optional(Text(256, 'Memo to send. STELLAR: text, `id:<number>` or `hash:<64 hex digits>`.')),
})
type CreateCryptoWithdrawalBody = Static<typeof CreateCryptoWithdrawalBody>

export const createCryptoWithdrawal = operation({
  method: 'POST',
  url: '/v2/transfer/crypto-withdrawals',
  scope: 'transfer:write_crypto_withdrawal',
  tag: 'Transfers',
  takesMoney: true,
  summary: 'Create Crypto Withdrawal',
  description:
    'Moves crypto from a profile balance to an external address. The transfer is PENDING; its total is debited immediately.',
  query: DryRunQuery,
  body: CreateCryptoWithdrawalBody,
  example: {
    bodies: {
      'USDP on Ethereum, paid from USD': {
        profile_id: EXAMPLE.profile_id,
        asset: 'USDP',
        balance_asset: 'USD',
        crypto_network: 'ETHEREUM',
        amount: '25',
        destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
        ref_id: 'payout-2026-0001',
        metadata: { order: '1041' },
      },
      'USDG on Solana, the fee included': {
        profile_id: EXAMPLE.profile_id,
        asset: 'USDG',
        crypto_network: 'SOLANA',
        total: '12.5',
        destination_address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
        ref_id: 'payout-2026-0002',
        beneficiary: { person_details: { first_name: 'Ada', last_name: 'Example' } },
      },
      'A magic destination of the sandbox: the withdrawal fails and the money returns': {
        profile_id: EXAMPLE.profile_id,
        asset: 'USDG',
        crypto_network: 'ETHEREUM',
        amount: '10',
        destination_address: '0x6275727361722073616E64626F78203031000000',
        ref_id: 'payout-2026-0003',
      },
    },
  },
  reply: Transfer,
  problems: [
    'exceed-precision',
    'below-min-withdraw-limit',
    'exceed-max-withdraw-limit',
    'unsupported-address',
    'unsupported-network',
    'not-found',
    'policy-refused',
    'insufficient-funds',
    'expired',
    'identity-verification-required',
    'disabled',
    'already-exists',
    'unavailable',
  ],
  async run({
    query: { dry_run },
    body,
    customerId,
    origin,
    requireCaller,
    db,
    ledger,
    networks,
    askNodes,
    settings,
  }) {
    const checked = checkWithdrawal(body, { networks, settings })
    const prices = await pricesIn({ db, settings })
    const context = { networks, prices, origin, requireCaller }
    if (checked.needsEstimate) {
      // The balance is read only after a recent refusal for funds, because reading it would delay every withdrawal.
      const wasShort = shortLately.has(balanceOf(checked))
      const short = wasShort ? await surelyShort(db, customerId, [checked]) : NOTHING_SHORT
      if (short.has(checked)) return refuseShort(ledger, customerId, checked, context)
      await askNodes(() => requireEstimatedFee(forAll(db), checked, { networks, settings }))
    }
    const movement = movementOf(customerId, checked, { ...context, dryRun: dry_run })
    const submitted = ledger.submit(customerId, movement)
    if (checked.needsEstimate)
      submitted.catch((error: unknown) => {
        if (error instanceof Problem && error.slug === 'insufficient-funds')
          shortLately.set(balanceOf(checked), true)
      })
    return (await submitted).transfer
  },
})

/** A request that passed every check which needs no records. */
export interface CheckedWithdrawal {
  body: CreateCryptoWithdrawalBody
  terms: WithdrawalTerms
  /** The balance to debit. */
  balanceAsset: string
  /** The amounts at the scheduled fee. Undefined for a `total` with a fee quote, because the quote decides the fee. */
  scheduled: Amounts | undefined
  /** Whether `requireEstimatedFee` must be called: the network is real and there is no quote. */
  needsEstimate: boolean
}

/**
 * Checks everything that needs no records (API behaviour, Order of checks). Throws bad-request, unsupported-network,
 * unsupported-address, exceed-precision, below-min-withdraw-limit, exceed-max-withdraw-limit or unavailable.
 */
export function checkWithdrawal(
  body: CreateCryptoWithdrawalBody,
  { networks, settings }: Destinations,
): CheckedWithdrawal {
  const terms = termsOf(body, { networks, settings })
  requireMemo(body, networks)
  const balanceAsset = balanceAssetOf(body, terms)
  requireBalancePrecision(terms, balanceAsset)
  // The guaranteed fee is known once the quote is read. Until then only an `amount` can be checked against the
  // limits.
  const quoted = body.fee_id !== undefined
  const scheduled =
    quoted && terms.asked.field === 'total' ? undefined : amountsAt(scheduledFee(terms), terms)
  // A quote was already estimated for this destination.
  const needsEstimate = !quoted && networks.get(body.crypto_network)!.estimateFee !== undefined
  return { body, terms, balanceAsset, scheduled, needsEstimate }
}

/**
 * Throws bad-request when the scheduled fee does not cover the network's own cost. It runs before the ledger's
 * transaction, which must not wait for a node.
 */
export async function requireEstimatedFee(
  db: Queryable,
  { body, terms }: CheckedWithdrawal,
  { networks, settings }: Destinations,
): Promise<void> {
  const asked = { route: terms, where: body, sandbox: settings.mode === 'sandbox' }
  const cost = await networkCost(db, networks, asked)
  requireFeeCovers(cost, terms, body)
}

/** For this long after a balance could not pay, withdrawals read it before they ask a node for an estimate. */
const SHORT_MS = 60_000
const SHORT_MAX = 10_000
const shortLately = new LRUCache<string, true>({ max: SHORT_MAX, ttl: SHORT_MS })
const NOTHING_SHORT: ReadonlySet<CheckedWithdrawal> = new Set()

const balanceOf = ({ body, balanceAsset }: CheckedWithdrawal) => `${body.profile_id} ${balanceAsset}`

/** Returns the withdrawals that need a node's estimate, and that their balance cannot pay now, even alone. */
export async function surelyShort(
  db: Queryable,
  customerId: string,
  checked: readonly CheckedWithdrawal[],
): Promise<ReadonlySet<CheckedWithdrawal>> {
  const asked = checked.filter(({ needsEstimate, scheduled }) => needsEstimate && scheduled !== undefined)
  if (asked.length === 0) return NOTHING_SHORT
  const { rows } = await db.query<{ profile_id: string; asset: string; available: string }>(
    'select profile_id, asset, available from balances where customer_id = $1 and profile_id = any ($2::uuid[])',
    [customerId, [...new Set(asked.map(({ body }) => body.profile_id))]],
  )
  const available = new Map(
    rows.map((row) => [
      `${row.profile_id} ${row.asset}`,
      parseStoredAmount(row.available, decimalsOf(row.asset)),
    ]),
  )
  return new Set(
    asked.filter((paid) => {
      const needed = inUnitsOf(paid.balanceAsset, paid.scheduled!.total, paid.terms.asset.symbol)
      return needed !== undefined && (available.get(balanceOf(paid)) ?? 0n) < needed
    }),
  )
}

/**
 * Refuses a withdrawal that its balance cannot pay, with the problem of the first check that fails. It decides the withdrawal
 * as a dry run, and asks no node for an estimate. Throws unavailable if the balance can pay by now.
 */
export async function refuseShort(
  ledger: Ledger,
  customerId: string,
  checked: CheckedWithdrawal,
  context: MovementContext,
): Promise<never> {
  await ledger.submit(customerId, movementOf(customerId, checked, { ...context, dryRun: true }))
  throw problem.unavailable('the balance changed in between; nothing was moved; try again')
}

interface MovementContext {
  networks: Networks
  prices: UsdPrices
  origin: Origin
  requireCaller: () => void
  dryRun?: boolean | undefined
}

export function movementOf(
  customerId: string,
  { body, terms, balanceAsset, scheduled }: CheckedWithdrawal,
  { networks, prices, origin, requireCaller, dryRun }: MovementContext,
): Movement {
  const quoted = body.fee_id !== undefined
  const { profile_id, identity_id, account_id, asset, crypto_network, destination_address } = body
  return {
    ref_id: body.ref_id,
    payment: {
      type: 'CRYPTO_WITHDRAWAL',
      ...{ profile_id, identity_id, account_id, asset, crypto_network, destination: destination_address },
    },
    origin,
    requireCaller,
    dryRun,
    balances: [{ profile_id, asset: balanceAsset }],
    needs: [...(quoted ? [need(FEE_QUOTES, body.fee_id!)] : []), ...needsOf(networks, body)],
    decide(view) {
      const amounts = quoted ? amountsAt(quotedFee(body, terms, view), terms) : scheduled!
      const taken = takeOwnCustody(view, networks, body, amounts.amount)
      const decision = cryptoWithdrawal(customerId, body, { terms, amounts, balanceAsset, view, prices })
      const used = quoted ? [change(FEE_QUOTES, { id: body.fee_id!, transfer_id: decision.transfer.id })] : []
      return { ...decision, changes: [...used, ...taken] }
    },
  }
}

/** Throws bad-request for a memo that would not arrive or would name nobody: the receiver may need it to credit the payment. */
function requireMemo(
  { memo, crypto_network, destination_address }: CreateCryptoWithdrawalBody,
  networks: Networks,
): void {
  const destination = { address: destination_address, memo }
  const refusal = memoRefusal(crypto_network, destination, networks.get(crypto_network))
  if (refusal !== undefined) throw problem.badRequest(`memo ${refusal}`, 'memo')
}

/** Returns the balance to debit. Only a platform stablecoin may be paid from another balance, and only from USD. */
function balanceAssetOf(body: CreateCryptoWithdrawalBody, { asset }: WithdrawalTerms): string {
  const balanceAsset = body.balance_asset ?? asset.symbol
  if (balanceAsset !== asset.symbol && !(balanceAsset === 'USD' && asset.platformStablecoin)) {
    const allowed = asset.platformStablecoin ? `${asset.symbol} or USD` : asset.symbol
    throw problem.badRequest(
      `balance_asset must be ${allowed} for a withdrawal of ${asset.symbol}`,
      'balance_asset',
    )
  }
  return balanceAsset
}

/** The debited amount must be representable in the balance's asset: USD has cents. Fees are whole cents. */
function requireBalancePrecision({ asset, asked }: WithdrawalTerms, balanceAsset: string): void {
  if (inUnitsOf(balanceAsset, asked.minor, asset.symbol) !== undefined) return
  throw problem.exceedPrecision(asked.field, { asset: balanceAsset, decimals: decimalsOf(balanceAsset) })
}
