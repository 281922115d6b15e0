import { canonicalAddress } from '../contract/addresses/addresses.ts'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { PayoutNetwork } from './network.ts'

/** The payment that a withdrawal asks for, and the bytes that were signed for it. */
export interface SignedPayment {
  customer_id: string
  transfer_id: string
  network: PayoutNetwork
  asset: string
  /** A decimal string. */
  amount: string
  /** An address as the client sent it; for a wire, the bank's account number. */
  destination_address: string
  /** Absent where it is not known. */
  memo?: string | null
  raw_transaction: Buffer
  /** Of a wire: the recorded bank account that it pays. */
  payee?: unknown
}

export type PaymentOn = SignedPayment & { network: CryptoNetwork }

export const canonicalOf = ({ network, destination_address }: PaymentOn): string =>
  canonicalAddress(network, destination_address, { testNetworks: true }) ?? destination_address

/** What was signed differs from what was asked for; undefined where each pair is the same. */
export function differences(pairs: [name: string, signed: unknown, wanted: unknown][]): string | undefined {
  const wrong = pairs.filter(([, signed, wanted]) => signed !== wanted)
  if (wrong.length === 0) return undefined
  return `signed ${wrong.map(([name, signed, wanted]) => `${name} ${String(signed)} for ${String(wanted)}`).join(', ')}`
}

/** The difference that a comparison finds, or that the bytes cannot be read. */
export function unlessUnreadable(compare: () => string | undefined): string | undefined {
  try {
    return compare()
  } catch (error) {
    return `its bytes cannot be read: ${(error as Error).message.split('\n')[0]}`
  }
}
