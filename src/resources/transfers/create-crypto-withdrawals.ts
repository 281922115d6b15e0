import { setImmediate as turn } from 'node:timers/promises'
import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, RefId } from '../../contract/fields.ts'
import { ProblemBody } from '../../contract/problem-body.ts'
import { Problem, problem } from '../../contract/problems.ts'
import { forAll } from '../../db/database.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import { operation } from '../operation.ts'
import { pricesIn } from '../../rails/context.ts'
import {
  checkWithdrawal,
  CreateCryptoWithdrawalBody,
  movementOf,
  refuseShort,
  requireEstimatedFee,
  surelyShort,
  type CheckedWithdrawal,
} from './create-crypto-withdrawal.ts'

/** Most withdrawals of one request: two batches of the ledger. */
const WITHDRAWALS_MAX = 1_000
/**
 * How many withdrawals are checked before other requests get their turn. At most as many ask a node for an estimate at
 * the same time.
 */
const CHECKED_AT_ONCE = 64

/** Does `work` for each item, and gives other requests their turn in between. */
async function yieldingMap<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = []
  for (let next = 0; next < items.length; next += CHECKED_AT_ONCE) {
    results.push(...(await Promise.allSettled(items.slice(next, next + CHECKED_AT_ONCE).map(work))))
    await turn()
  }
  return results
}

/** One withdrawal. Its ref_id is required, so that the whole request can be repeated. */
export const WithdrawalOfMany = Closed({ ...CreateCryptoWithdrawalBody.properties, ref_id: RefId })

const CreateCryptoWithdrawalsBody = Closed({
  withdrawals: Type.Array(WithdrawalOfMany, {
    minItems: 1,
    maxItems: WITHDRAWALS_MAX,
    oneByOne: true,
    description: 'The withdrawals, each as Create Crypto Withdrawal takes it, with a ref_id of its own.',
  }),
})

const CreateCryptoWithdrawalsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      transfer: Type.Optional(Transfer),
      problem: Type.Optional(ProblemBody),
    }),
    {
      description:
        'The answers, in the order of the withdrawals: the transfer, or the problem that a request of this withdrawal alone would get. Exactly one of the two.',
    },
  ),
})

export const createCryptoWithdrawals = operation({
  method: 'POST',
  url: '/v2/transfer/crypto-withdrawals/bulk',
  scope: 'transfer:write_crypto_withdrawal',
  tag: 'Transfers',
  takesMoney: true,
  repeats: 'each withdrawal has its own ref_id',
  summary: 'Create Crypto Withdrawals',
  description:
    'Makes 1 to 1,000 withdrawals, one after the other, and answers each with its transfer or its problem. Repeating the whole request is safe.',
  body: CreateCryptoWithdrawalsBody,
  example: {
    bodies: {
      'Two withdrawals, the second one below the minimum': {
        withdrawals: [
          {
            profile_id: EXAMPLE.profile_id,
            asset: 'USDP',
            balance_asset: 'USD',
            crypto_network: 'ETHEREUM',
            amount: '3',
            destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
            ref_id: 'payroll-2026-01-0001',
          },
          {
            profile_id: EXAMPLE.profile_id,
            asset: 'USDG',
            crypto_network: 'SOLANA',
            amount: '0.001',
            destination_address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
            ref_id: 'payroll-2026-01-0002',
          },
        ],
      },
    },
  },
  reply: CreateCryptoWithdrawalsReply,
  async run({
    body,
    customerId,
    origin,
    requireCaller,
    problemOf,
    asker,
    db,
    ledger,
    networks,
    askNodes,
    settings,
  }) {
    /** Runs the checks that need no records, as for a single withdrawal. */
    const check = async (item: (typeof body.withdrawals)[number] | Problem): Promise<CheckedWithdrawal> => {
      // The validator puts a problem in the place of an item that breaks the schema.
      if (item instanceof Problem) throw item
      return checkWithdrawal(item, { networks, settings })
    }
    const checked = await yieldingMap(body.withdrawals, check)
    // One read of the balances: no node is asked about a withdrawal that they surely cannot pay.
    const short = await surelyShort(
      db,
      customerId,
      checked.flatMap((check) => (check.status === 'fulfilled' ? [check.value] : [])),
    )
    const checks = await yieldingMap(checked, async (check) => {
      if (check.status === 'rejected') throw check.reason
      if (check.value.needsEstimate && !short.has(check.value))
        await askNodes(() => requireEstimatedFee(forAll(db), check.value, { networks, settings }))
      return check.value
    })
    if (asker.destroyed) throw problem.unavailable('the client disconnected; nothing was moved')
    const prices = await pricesIn({ db, settings })

    // Submitted together, so that the withdrawals share the ledger's batches, which decide them in this order.
    const context = { networks, prices, origin, requireCaller }
    const moves = checks.map((check) => {
      if (check.status === 'rejected') return Promise.reject(check.reason as Error)
      return short.has(check.value)
        ? refuseShort(ledger, customerId, check.value, context)
        : ledger.submit(customerId, movementOf(customerId, check.value, context))
    })
    const outcomes = await Promise.allSettled(moves)
    return {
      items: outcomes.map((outcome, index) =>
        outcome.status === 'fulfilled'
          ? { transfer: outcome.value.transfer }
          : { problem: problemOf!(outcome.reason, body.withdrawals[index]) },
      ),
    }
  },
})
