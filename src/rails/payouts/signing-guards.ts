import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import type { RowMacs } from '../../audit/row-macs.ts'
import { type OnObjection, signOnlyAccepted } from '../../audit/withdrawal-macs.ts'
import type { Screening } from '../screening/screening.ts'
import { signOnlyWhatSignerTakes } from './sign-only-what-signer-takes.ts'
import { signOnlyScreened } from '../screening/sign-only-screened.ts'

interface GuardOptions {
  macs: RowMacs
  screening: Screening | undefined
  /** Called for each withdrawal that differs from the one that was accepted. */
  onObjection?: OnObjection
}

/**
 * The guards in front of every signature; the first is asked first, and the next sees only what it lets pass. The order is a
 * security property: what was not accepted is never shown to the screening endpoint, nor signed on its ALLOW.
 */
const GUARDS: readonly ((adapter: NetworkAdapter, options: GuardOptions) => NetworkAdapter)[] = [
  (adapter, { macs, onObjection }) => signOnlyAccepted(adapter, macs, onObjection),
  (adapter, { screening }) => signOnlyScreened(adapter, screening),
  (adapter) => signOnlyWhatSignerTakes(adapter),
]

/** Puts all guards in front of an adapter. */
export const guarded = (adapter: NetworkAdapter, options: GuardOptions): NetworkAdapter =>
  GUARDS.reduceRight((inner, guard) => guard(inner, options), adapter)

/** Puts all guards in front of the adapters of all networks. */
export const guardedNetworks = (networks: Networks, options: GuardOptions): Networks =>
  new Map([...networks].map(([network, adapter]) => [network, guarded(adapter, options)]))
