import type { Address } from '@solana/addresses'
import { addressRefusal } from '../../src/contract/addresses/destination-rules.ts'
import type { Withdrawal } from '../../src/networks/network.ts'
import { deferred } from '../../src/networks/waiting.ts'
import { isTokenProgram, mintOf, readAccounts, tokenAccountOf, type Accounts } from './accounts.ts'
import { GAS_ASSET, lamportsText, NETWORK, onChain, type Facts, type SolanaChain } from './chain.ts'
import { associatedOf } from './instructions.ts'
import { nonceAccounts, walletsOf } from './lanes.ts'
import type { SolanaPayment } from './transaction.ts'

/** What the network says about destinations before anything is signed. */

/** A payment as it can be signed, or why it cannot. */
export type Plan =
  | { payment: SolanaPayment; rent: bigint }
  | { outcome: 'REFUSED'; why: string }
  | ReturnType<typeof deferred>

/** What is to be paid. The amount is absent where only the destination is asked about. */
type Wanted = Pick<Withdrawal, 'asset' | 'destination_address'> & { amount?: string; memo?: string | null }

const NO_MEMO_TEXT = 'Bursar'

/** Why an address is not paid, whatever its account: it is of the hot wallet, or the mint of a token. */
export function refusesDestination(
  chain: Pick<SolanaChain, 'hotWallet' | 'formerWallets' | 'mints' | 'lanes'>,
  address: string,
): string | undefined {
  if (walletsOf(chain).includes(address as Address))
    return 'it is the wallet that withdrawals are paid from, or were before'
  if (nonceAccounts(chain).some(({ account }) => account === address))
    return 'it is a nonce account of the wallet that withdrawals are paid from'
  const [token] = [...chain.mints].find(([, mint]) => mint === address) ?? []
  return token && `it is the mint of ${token}, which keeps what is sent to it`
}

/** Reads the destinations of withdrawals, and returns how each can be paid. */
export async function plansOf(chain: SolanaChain, facts: Facts, wanted: readonly Wanted[]): Promise<Plan[]> {
  const accounts = await readAccounts(
    chain.rpc,
    wanted.flatMap(({ asset, destination_address }) => {
      const to = destination_address as Address
      const token = facts.tokens.get(asset)
      return token === undefined ? [to] : [to, token.mint, associatedOf(to, token.mint, token.program)]
    }),
  )
  return wanted.map((destination) => planOf(chain, facts, accounts, destination))
}

const refused = (why: string) => ({ outcome: 'REFUSED', why }) as const

function planOf(chain: SolanaChain, facts: Facts, accounts: Accounts, wanted: Wanted): Plan {
  const { asset, amount, destination_address, memo = null } = wanted
  const to = destination_address as Address
  const why =
    addressRefusal(NETWORK, { address: to, asset }) ?? refusesDestination(chain, to) ?? faultOf(accounts, to)
  if (why !== undefined) return refused(why)
  const units = amount === undefined ? 1n : onChain(asset, amount)
  const from = chain.hotWallet.address
  if (asset === GAS_ASSET) {
    const has = accounts.get(to)?.lamports ?? 0n
    if (amount !== undefined && has + units < facts.rentOfWallet)
      return refused(
        `its account is empty, and must hold at least ${lamportsText(facts.rentOfWallet)} ${GAS_ASSET} for the network to keep it`,
      )
    return { payment: { from, to, units, memo }, rent: 0n }
  }
  const token = facts.tokens.get(asset)
  // The mint is read each time: its issuer can set a fee or a hook at any time.
  const mint = token && mintOf(accounts.get(token.mint))
  if (token === undefined || mint === undefined)
    return deferred({ code: 'TOKEN_REFUSES', detail: `the node of ${NETWORK} has no mint of ${asset}` })
  if (mint.hasHook)
    return deferred({
      code: 'TOKEN_REFUSES',
      detail: `each transfer of ${asset} calls a program of its issuer`,
    })
  if (mint.takesFee)
    return deferred({ code: 'TOKEN_DELIVERS_LESS', detail: `${asset} takes a fee from each transfer` })
  const target = accounts.get(associatedOf(to, token.mint, token.program))
  const account = tokenAccountOf(target)
  if (target !== undefined && isTokenProgram(target.owner) && account === undefined)
    return refused(`its account of ${asset} cannot be read`)
  // The owner of an associated account of Token can be changed: then somebody else would be paid.
  if (account !== undefined && account.owner !== to)
    return refused(`its account of ${asset} belongs to another`)
  if (account?.isFrozen) return refused(`its account of ${asset} is frozen by the issuer`)
  return {
    payment: {
      from,
      to,
      units,
      token: { mint: token.mint, program: token.program, decimals: token.decimals },
      memo: memo ?? (account?.requiresMemo ? NO_MEMO_TEXT : null),
      ...(account === undefined && { makesAccount: true }),
    },
    rent: account === undefined ? facts.rentOfToken(token.program) : 0n,
  }
}

/** Why nobody could spend what an address gets, as its account shows. */
function faultOf(accounts: Accounts, to: Address): string | undefined {
  const account = accounts.get(to)
  if (account === undefined) return undefined
  if (account.executable) return 'it is a program, which keeps what is sent to it'
  if (isTokenProgram(account.owner))
    return tokenAccountOf(account) === undefined
      ? 'it is a mint or another account of a token, which keeps what is sent to it'
      : "it is an account of a token: give its owner's address instead"
  return undefined
}
