import type { Hex } from 'viem'
import type { Refusal, Withdrawal } from '../network.ts'

/** The refusal of a withdrawal whose destination the network does not pay. */
export const refusalOf = (
  { destination_address }: Pick<Withdrawal, 'destination_address'>,
  message: string,
): Refusal => ({
  status_details: { invalid_destination_address: { message, destination_address } },
})

export const WOULD_REVERT = 'the network would revert a transfer to the destination address'

export const takesTooMuch = (most: bigint) =>
  `a transfer to it takes more than ${most} gas, the most that is paid`

/** Whether a call answered the boolean false. An account without code, and a token without a return value, answer 0x. */
export const isFalse = (answer: Hex) => /^0x0{64}$/.test(answer)
