import { NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { readOrder } from './bank/manual-wires.ts'
import { familyOf } from './families.ts'
import { canonicalOf, differences, unlessUnreadable, type SignedPayment } from './signed-payment.ts'

/** Token contracts by network and asset, where they differ from the catalogue's: on test networks. */
export type TokenAddresses = ReadonlyMap<CryptoNetwork, Readonly<Record<string, string>>>

/**
 * Compares signed bytes with their withdrawal. Returns the difference, or undefined where the bytes pay the
 * withdrawal's amount to its destination. Asks no node. A transaction may pay others as well, where a family's do.
 */
export async function disagreementOf(
  payment: SignedPayment,
  tokens: TokenAddresses,
): Promise<string | undefined> {
  const { raw_transaction: raw, network } = payment
  if (raw[0] === OPENING_BRACE) return unlessUnreadable(() => simulated(payment))
  if (network === 'WIRE') return unlessUnreadable(() => wire(payment))
  const family = await familyOf(NETWORKS[network].family).catch((error: Error) => error)
  return unlessUnreadable(() => {
    if (family instanceof Error) throw family
    return family.disagreementOf({ ...payment, network }, tokens.get(network))
  })
}

/** A transaction of a simulated network is JSON. */
const OPENING_BRACE = 0x7b

function simulated(payment: SignedPayment): string | undefined {
  const signed = JSON.parse(payment.raw_transaction.toString()) as Record<string, unknown>
  const { network, destination_address: to } = payment
  const wanted = {
    ...payment,
    destination_address: network === 'WIRE' ? to : canonicalOf({ ...payment, network }),
  }
  const fields = ['customer_id', 'transfer_id', 'network', 'asset', 'amount', 'destination_address'] as const
  return differences(fields.map((name) => [name, signed[name], wanted[name]]))
}

/** Compares a wire with the order that its operator was shown. */
function wire({ raw_transaction, payee, ...payment }: SignedPayment): string | undefined {
  const order = readOrder(raw_transaction)
  if (order === undefined) return 'its bytes are no message of a known bank'
  return differences([
    ...(['customer_id', 'transfer_id', 'asset', 'amount'] as const).map(
      (name): [string, unknown, unknown] => [name, order[name], payment[name]],
    ),
    ['memo', order.memo, payment.memo ?? null],
    ['payee', JSON.stringify(order.payee), JSON.stringify(payee)],
  ])
}
