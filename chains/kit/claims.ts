import type { PaidWithdrawal } from '../../src/networks/network.ts'

/** Why a transaction that an operator names has not paid a withdrawal; one with its nonce leaves it to be signed anew. */
export const doesNotPay = (
  { transfer_id, amount, asset, destination_address }: PaidWithdrawal,
  hash: string,
  isItsNonce: boolean,
) =>
  new Error(
    `${hash} does not pay ${amount} ${asset} to ${destination_address}` +
      (isItsNonce
        ? `, and has its nonce: the worker signs it anew, or 'bursar withdrawal resolve ${transfer_id} --outcome sign-anew ` +
          `--used-by ${hash}' does`
        : ''),
  )
