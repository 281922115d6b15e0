import { originOfLoop } from '../../contract/actor.ts'
import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Database, Transaction } from '../../db/database.ts'
import { momentAt, type Moment } from '../../db/ids.ts'
import { onPlatform, onProfile } from '../../money/ledger/entries.ts'
import type { Movement } from '../../money/movements/decision.ts'
import { decideCredit, type Deposit } from '../../money/movements/deposit.ts'
import { post } from '../../money/movements/post.ts'
import { generateStatements } from '../../resources/statements/generate-statements.ts'
import { payStatements } from '../../resources/statements/pay-statements.ts'
import { lastPeriod, type Period } from '../../resources/statements/period.ts'
import { listRewardRates, setRewardRate } from '../../resources/statements/reward-rates.ts'

/** The demo customer's three months of history: what it held, and the rates that it was rewarded at. */

/** The three months of a customer that was made in the first of them. */
export const monthsFrom = (created_at: string): Period[] =>
  [-1, -2, -3].map((earlier) => lastPeriod(created_at, earlier))

/** The three months that ended last, the oldest first. */
export const lastMonths = (now: Moment): Period[] => [2, 1, 0].map((earlier) => lastPeriod(now.text, earlier))

export const firstMoment = ([first]: Period[]): Moment => momentAt(`${first!.name}-01T09:00:00.000000Z`)

const ASSET = 'USDG'
/** The ledger's account that the deposits come from. */
const SIMULATED = 'simulated:INK'
/** Month, day and time, amount. */
const DEPOSITS: [month: number, time: string, amount: string][] = [
  [0, '01T09:30:00.250000', '25000'],
  [0, '12T15:05:41.118203', '12500.5'],
  [1, '03T11:20:09.004417', '8000'],
  [1, '20T23:59:59.999999', '4321.123456'],
  [2, '09T08:12:30.771000', '15000'],
]
const RATES: [month: number, day: string, rate: string][] = [
  [0, '01', '0.0376'],
  [1, '16', '0.041'],
]

/** Posts the backdated deposits as the ledger would have, and sets the reward rates unless there are any. */
export async function makeHistory(
  tx: Transaction,
  { customer_id, profile_id }: { customer_id: string; profile_id: string },
  months: Period[],
): Promise<void> {
  for (const [month, time, amount] of DEPOSITS)
    await depositAt(tx, { customer_id, profile_id }, momentAt(`${months[month]!.name}-${time}Z`), amount)
  // Skip this if another process was first.
  const rates = await listRewardRates(tx)
  if (rates.some(({ effective_from }) => effective_from <= months[0]!.start.slice(0, 10))) return
  for (const [month, day, rate] of RATES)
    await setRewardRate(tx, `${months[month]!.name}-${day}`, rate, originOfLoop('demo'))
}

/** Posts a backdated deposit of the reward asset, as the ledger would have. */
async function depositAt(
  tx: Transaction,
  { customer_id, profile_id }: { customer_id: string; profile_id: string },
  at: Moment,
  amount: string,
): Promise<void> {
  const arrived: Deposit = {
    profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset: ASSET,
    minor: parseAmount(amount, decimalsOf(ASSET))!,
    arrivedAt: SIMULATED,
    place: undefined,
    record: { crypto_network: 'INK', notional_value: amount },
  }
  await postAt(tx, { customer_id, profile_id }, at, (view) => decideCredit(customer_id, arrived, view))
}

async function postAt(
  tx: Transaction,
  { customer_id, profile_id }: { customer_id: string; profile_id: string },
  at: Moment,
  decide: Movement['decide'],
): Promise<void> {
  const movement = { origin: originOfLoop('demo'), balances: [{ profile_id, asset: ASSET }], decide }
  const { outcomes } = await post(tx, customer_id, [movement], { at })
  for (const outcome of outcomes) if ('refusal' in outcome) throw outcome.refusal
}

/** Returns the deposit of `makeEarlierHolding` to where it came from. */
const returnAt = (
  tx: Transaction,
  holder: { customer_id: string; profile_id: string },
  at: Moment,
): Promise<void> =>
  postAt(tx, holder, at, ({ now, newId }) => {
    const minor = parseAmount(EARLIER_AMOUNT, decimalsOf(ASSET))!
    return {
      transfer: {
        ...{ id: newId(), ...holder, type: 'PAXOS_TRANSFER_DEBIT', direction: 'DEBIT', status: 'COMPLETED' },
        ...{ asset: ASSET, balance_asset: ASSET, amount: EARLIER_AMOUNT, fee: '0', total: EARLIER_AMOUNT },
        ...{ created_at: now.text, updated_at: now.text },
      },
      entries: [onProfile(holder.profile_id, ASSET, -minor), onPlatform(SIMULATED, ASSET, minor)],
    }
  })

/** What `makeEarlierHolding` deposits. */
const EARLIER_AMOUNT = '10000'

/** When the holding of `makeEarlierHolding` leaves. It leaves in its own month: statements of later months may exist already. */
const LEAVES = '20T09:00:00.000000Z'

/**
 * Invents a holding on a new profile from the beginning of a month until its 20th, and the reward rate of that month where there
 * is none. The month's statement then owes a reward.
 */
export async function makeEarlierHolding(
  tx: Transaction,
  holder: { customer_id: string; profile_id: string },
  period: Period,
): Promise<void> {
  await depositAt(tx, holder, firstMoment([period]), EARLIER_AMOUNT)
  await returnAt(tx, holder, momentAt(`${period.name}-${LEAVES}`))
  const rates = await listRewardRates(tx)
  if (rates.some(({ effective_from }) => effective_from <= period.start.slice(0, 10))) return
  await setRewardRate(tx, period.start.slice(0, 10), RATES[0]![2], originOfLoop('demo'))
}

/** Generates the months' statements, then pays all but the last. Existing statements stay as they are. */
export async function makeStatements(db: Database, customerId: string, months: Period[]): Promise<void> {
  for (const period of months) await generateStatements(db, period, customerId)
  for (const period of months.slice(0, -1))
    await payStatements(db, { period, customerId, origin: originOfLoop('demo') })
}
