import type { BroadcastAnswer, BroadcastWithdrawal, NetworkAdapter, PaymentStatus } from '../network.ts'
import { isSimulatedPayment } from './adapter.ts'

/**
 * Adapts a real network that was simulated before. Withdrawals signed for the simulation continue there and never reach
 * the node. Without a simulation, in live mode, they wait with the reason SIGNED_ELSEWHERE. New withdrawals are signed for
 * the real network.
 */
export function routeBySigner(real: NetworkAdapter, simulation: NetworkAdapter | undefined): NetworkAdapter {
  const unavailable = {
    broadcast: async (old: BroadcastWithdrawal[]) =>
      old.map((): BroadcastAnswer => ({
        accepted: false,
        reason: { code: 'SIGNED_ELSEWHERE', detail: 'it was signed for a simulated network' },
      })),
    checkStatus: async (old: BroadcastWithdrawal[]) => old.map((): PaymentStatus => ({ state: 'UNKNOWN' })),
    replace: async (old: BroadcastWithdrawal[]) => old.map(() => undefined),
  }
  const former = simulation ?? unavailable
  return {
    ...real,
    broadcast: (withdrawals) =>
      askBySigner(
        withdrawals,
        (simulated) => former.broadcast(simulated),
        (others) => real.broadcast(others),
      ),
    checkStatus: (withdrawals) =>
      askBySigner(
        withdrawals,
        (simulated) => former.checkStatus(simulated),
        (others) => real.checkStatus(others),
      ),
    ...(real.replace !== undefined && {
      replace: (tx, withdrawals) =>
        askBySigner(withdrawals, unavailable.replace, (others) => real.replace!(tx, others)),
    }),
  }
}

/** Asks the simulation for its withdrawals and the real network for the others. Returns the answers in their order. */
async function askBySigner<T>(
  withdrawals: BroadcastWithdrawal[],
  askSimulation: (simulated: BroadcastWithdrawal[]) => Promise<T[]>,
  askReal: (others: BroadcastWithdrawal[]) => Promise<T[]>,
): Promise<T[]> {
  const simulated = withdrawals.filter(isSimulatedPayment)
  if (simulated.length === 0) return askReal(withdrawals)
  const others = withdrawals.filter((withdrawal) => !isSimulatedPayment(withdrawal))
  const answers = new Map<BroadcastWithdrawal, T>()
  const record = (asked: BroadcastWithdrawal[], received: T[]) =>
    asked.forEach((withdrawal, index) => answers.set(withdrawal, received[index]!))
  record(simulated, await askSimulation(simulated))
  if (others.length > 0) record(others, await askReal(others))
  return withdrawals.map((withdrawal) => answers.get(withdrawal)!)
}
