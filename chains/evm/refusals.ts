import type { Hex } from 'viem'
import { walletsOf, type EvmChain } from './chain.ts'

/** Why an address is not paid: money sent there goes nowhere, is lost, or comes back less the gas. */
export function refusesDestination(
  chain: Pick<EvmChain, 'lanes' | 'gasWallet' | 'formerWallets' | 'tokens'>,
  address: string,
): string | undefined {
  const isIt = (named: string) => named.toLowerCase() === address.toLowerCase()
  if (walletsOf(chain).some((wallet) => isIt(wallet.address)))
    return 'it is the wallet that withdrawals are paid from'
  const [token] = [...chain.tokens].find(([, token]) => isIt(token.address)) ?? []
  return token && `it is the contract of ${token}, which keeps what is sent to it`
}

export const WOULD_REVERT = 'the network would revert a transfer to the destination address'

export const takesTooMuch = (most: bigint) =>
  `a transfer to it takes more than ${most} gas, the most that is paid`

/** Whether a call answered the boolean false. An account without code, and a token without a return value, answer 0x. */
export const isFalse = (answer: Hex) => /^0x0{64}$/.test(answer)
