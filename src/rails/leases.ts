/**
 * A lease outlives its process by this time at most: a worker renews it while it works. One that could not renew it loses
 * nothing: what it records must find each row as it was leased.
 */
export const LEASE_MS = 6_000
const RENEWALS_PER_LEASE = 3
/** For how long leases are renewed: a worker that takes longer hangs, and another goes on in its place. */
const RENEWED_MS_MAX = 60_000
/** Leases that are renewed at once, so that the pool has connections for the work itself. */
const AT_ONCE = 4

/**
 * Renews leases, also those that are added meanwhile, until the returned function is called. A lease ends before the work
 * does where it cannot be renewed, or where the work hangs.
 */
export function keepRenewing<T>(leases: T[], renew: (lease: T) => Promise<void>): () => Promise<void> {
  const until = performance.now() + RENEWED_MS_MAX
  let renewal: Promise<unknown> | undefined
  const timer = setInterval(() => {
    if (performance.now() > until) return clearInterval(timer)
    const due = leases.values()
    const renewDue = async () => {
      for (const lease of due) await renew(lease).catch(() => undefined)
    }
    renewal ??= Promise.all(Array.from({ length: AT_ONCE }, renewDue)).finally(() => (renewal = undefined))
  }, LEASE_MS / RENEWALS_PER_LEASE)
  return async () => {
    clearInterval(timer)
    await renewal
  }
}
