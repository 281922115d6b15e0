import type { Hex } from 'viem'
import { getAddress } from 'viem/utils'
import { accountOf } from '../chains/evm/configured-wallets.ts'
import { depositKeyIn, depositKeysOf, type DepositKeys } from '../chains/evm/deposit-keys.ts'
import { disagreementOf, recipientOf } from '../chains/evm/signed-payment.ts'
import { parse, type EvmSigner, type EvmTransaction } from '../chains/evm/transaction.ts'
import type { MoveRequest, SignerFamily, SignerNetwork, UnsignedRead, Wallet } from './family.ts'
import { demand, requireDerived } from './refused.ts'

/** Most gas of a payment: a transfer to a contract takes far less. */
const GAS_MAX = 1_000_000n

export const evm: SignerFamily = {
  carriesMemo: false,
  feeUnit: 'wei',
  addressOf: (text) => getAddress(text),
  walletOf: (field, key) => localWallet(accountOf(field, key)),
  depositKeysOf(text) {
    const keys = depositKeysOf(depositKeyIn(text))
    if (!keys.isPrivate) throw new Error('it is a public key, with which nothing can be swept')
    return keys
  },
  read: (network, unsigned) => readTransaction(network, unsigned).read,
  disagreementOf,
  judgeMove,
}

/** The same question always gets the same bytes (RFC 6979), so no signature is kept. */
const localWallet = (signer: EvmSigner): Wallet => ({
  address: signer.address,
  sign: (unsigned) => signer.signTransaction(parse(unsigned)),
})

function readTransaction({ chainId }: SignerNetwork, unsigned: Hex) {
  const transaction = parse(unsigned)
  const { gas, maxFeePerGas, nonce } = transaction
  demand(transaction.chainId === chainId, `the chain id is ${transaction.chainId}, not ${chainId}`)
  demand(gas <= GAS_MAX, `it takes ${gas} gas, and ${GAS_MAX} at most is paid for`)
  return { transaction, read: { places: [nonce], fee: gas * maxFeePerGas, payments: 1 } }
}

/** What lies at an address goes to a wallet of the file. Gas goes to an address that the deposit key gives. */
function judgeMove(network: SignerNetwork, request: MoveRequest): { signer: Wallet; read: UnsignedRead } {
  const { network: name, wallet, address, derivation, unsigned } = request
  const keys = requireDerived(network, request) as DepositKeys
  const { transaction, read } = readTransaction(network, unsigned)
  const to = recipientOf(network.tokens, transaction)
  demand(to !== undefined, 'it is no transfer of an asset that is configured')
  if (getAddress(wallet) === address) {
    demand(network.wallets.has(to), `${to} is no wallet of ${name}: what lies at an address goes there`)
    return { signer: localWallet(keys.signerOf(address, derivation)!), read }
  }
  const { gasWallet } = network
  demand(gasWallet?.address === getAddress(wallet), `${wallet} is no gas_wallet of ${name}`)
  requireGasFor(address, to, transaction)
  return { signer: gasWallet, read }
}

function requireGasFor(address: string, to: Hex, { data }: EvmTransaction): void {
  demand(to === address && data === undefined, `the gas wallet pays gas to ${address}, and nothing else`)
}
