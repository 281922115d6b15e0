import type { DepositKeys, MoveRequest, SignerNetwork } from './family.ts'

/** The signer refuses a request. The message names the rule. */
export class Refused extends Error {}
/** It may allow the request in a moment: transactions before it are asked for by another worker. */
export class Early extends Refused {}
/** Whether a request is at fault: it breaks a rule, or cannot be read. */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof Refused || error instanceof SyntaxError || error instanceof TypeError

/** Throws Refused unless the rule holds. */
export function demand(isAllowed: boolean, rule: string): asserts isAllowed {
  if (!isAllowed) throw new Refused(rule)
}

/** Throws Refused where a transaction may cost more than one may. */
export function demandFee({ feeMax, family }: SignerNetwork, fee: bigint): void {
  demand(fee <= feeMax, `it may cost ${fee} ${family.feeUnit}, above fee_max`)
}

/** The most digits of a transaction in hex: what is larger takes seconds to read, in which nothing else is answered. */
const HEX_MAX = 131_072

/** Throws Refused for bytes that are no text: of a list, other bytes could be checked than are signed. */
export function requireHex(unsigned: unknown, most = HEX_MAX): void {
  const isText = typeof unsigned === 'string' && unsigned.length <= most
  demand(isText && /^0x([0-9a-f]{2})+$/i.test(unsigned), `the bytes are not in hex of ${most} digits at most`)
}

/** A fingerprint, and the steps of a path. */
const DERIVATION = /^[0-9a-f]{8}(\/\d{1,10}){1,8}$/

/** The deposit keys of a network. Throws Refused unless they give the address of a move. */
export function requireDerived({ depositKeys }: SignerNetwork, request: MoveRequest): DepositKeys {
  const { network, address, derivation } = request
  demand(depositKeys !== undefined, `${network} has no deposit_key`)
  demand(typeof address === 'string' && DERIVATION.test(derivation), 'the deposit address cannot be read')
  demand(depositKeys.derives({ address, derivation }), `the deposit_key does not give ${address}`)
  return depositKeys
}
