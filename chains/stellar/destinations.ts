import type { Queryable } from '../../src/db/database.ts'
import { addressRefusal, memoRefusal } from '../../src/contract/addresses/destination-rules.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'
import { NodeRefusal } from '../../src/networks/node-failure.ts'
import { deferred, reasonOfFailure, refusedDestination } from '../../src/networks/waiting.ts'
import { balanceOf, findAccount, GAS_ASSET, stroops, type StellarChain } from './chain.ts'
import { accountIn } from './envelope.ts'
import type { Balance, StellarAccount } from './horizon.ts'

/** The largest amount on Stellar, which a trustline without a limit has. */
const UNITS_MAX = 2n ** 63n - 1n

export type NotSigned = Exclude<Signing, { outcome: 'SIGNED' }>
/** The account that is paid; undefined where it does not exist yet. */
export type Judged = { account: StellarAccount | undefined } | NotSigned

/** Whether the destination can take the payment now. One that cannot be asked about waits alone. */
export async function judge(
  tx: Queryable,
  chain: StellarChain,
  withdrawal: Withdrawal,
  wallet: StellarAccount,
  accounts: Map<string, Promise<StellarAccount | undefined>>,
): Promise<Judged> {
  const { asset, amount, destination_address, memo } = withdrawal
  const refused = (message: string): Judged => ({
    outcome: 'REFUSED',
    refusal: refusedDestination(withdrawal, message),
  })
  const destination = { address: destination_address, asset, ...(memo !== null && { memo }) }
  const rule = addressRefusal('STELLAR', destination) ?? refusesDestination(chain, destination_address)
  if (rule !== undefined) return refused(rule)
  const memoFault = memoRefusal('STELLAR', destination)
  if (memoFault !== undefined) return refused(`the memo ${memoFault}`)
  try {
    const { account: to, id } = accountIn(destination_address)
    if (to === chain.address && (await depositAddressesAmong(tx, [destination_address])).size === 0)
      return refused('it is of the wallet that withdrawals are paid from, and nobody has it')
    if (!accounts.has(to)) accounts.set(to, findAccount(chain, to))
    const account = await accounts.get(to)
    if (asset !== GAS_ASSET) {
      const own = balanceOf(wallet, chain.assets.get(asset)!)
      if (own?.is_authorized === false)
        return deferred({
          code: 'TOKEN_REFUSES',
          detail: `the issuer of ${asset} has revoked the hot wallet`,
        })
      const fault = tokenFault(chain, account, asset, to === chain.address ? 0n : stroops(amount))
      if (fault !== undefined) return refused(fault)
    }
    // SEP-29: MQ== is 1.
    if (account?.data['config.memo_required'] === 'MQ==' && memo === null && id === undefined)
      return refused('the receiver requires a memo (SEP-29), and the withdrawal has none')
    return { account }
  } catch (error) {
    if (!(error instanceof NodeRefusal)) throw error
    return deferred(reasonOfFailure(error))
  }
}

/** Why an account cannot take an amount of a token. */
export function tokenFault(
  chain: StellarChain,
  account: StellarAccount | undefined,
  asset: string,
  amount: bigint,
): string | undefined {
  if (account === undefined) return `the account does not exist, so it cannot hold ${asset}`
  const line = balanceOf(account, chain.assets.get(asset)!)
  if (line === undefined) return `the account has no trustline for ${asset}`
  if (line.is_authorized === false) return `the issuer of ${asset} has not authorised the account`
  return amount > roomOf(line) ? `the account's trustline has no room for that much ${asset}` : undefined
}

/** How much more of an asset an account can hold. */
export const roomOf = ({ limit, balance, buying_liabilities = '0' }: Balance): bigint =>
  (limit === undefined ? UNITS_MAX : stroops(limit)) - stroops(balance) - stroops(buying_liabilities)

/** Why an address is not paid. A muxed address of the hot wallet may be a customer's deposit address. */
export function refusesDestination(chain: StellarChain, address: string): string | undefined {
  if (address === chain.address) return 'it is the wallet that withdrawals are paid from'
  const { account } = accountIn(address)
  return account !== chain.address && chain.lanes.includes(account)
    ? 'it is an account of the wallet that withdrawals are paid from'
    : undefined
}
