import { Type, type Static } from 'typebox'
import { Closed } from '../../src/contract/fields.ts'
import { ByAmount, Confirmations, Decimal, manyNodes, shared, sweeping } from '../../src/networks/section.ts'
import { Secret } from '../../src/networks/secrets.ts'
import { SignerSocket, SignerUrl } from '../kit/remote-signer.ts'

const Address = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })
const WALLET = { address: Address, key: Type.Optional(Secret) }
const Wallets = Type.Array(Closed(WALLET), { maxItems: 20 })
/** `closed`: an operator has looked at all that the wallet has sent. */
const FormerWallets = Type.Array(Closed({ ...WALLET, closed: Type.Optional(Type.Boolean()) }), {
  maxItems: 20,
})
export const ADAPTER = 'evm'
/** The section of an EVM network. */
export const EvmSection = Closed({
  adapter: Type.Literal(ADAPTER),
  /** `fee_ceiling` is the most for a unit of gas, in gwei. */
  ...shared,
  /** A number, or a tag of the network's own finality, where its node has it. */
  confirmations: Type.Optional(
    Type.Union([Confirmations, ByAmount, Type.Literal('safe'), Type.Literal('finalized')]),
  ),
  /** The chain id of a sandbox's test network; by default the catalogue's. */
  chain_id: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The hot wallet's private key, in hex. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's address. With it, a process without the worker does not read the key. */
  hot_wallet_address: Type.Optional(Address),
  /** The process that has the keys of the hot wallets: their addresses are given instead. */
  signer: Type.Optional(
    Type.Union([
      SignerSocket,
      /** It has no network: requests and answers are carried as files. */
      Closed({ folder: Type.String({ minLength: 1 }) }),
      SignerUrl,
    ]),
  ),
  /** With a signer: the wallet that pays gas for sweeping. It pays no withdrawal. */
  gas_wallet_address: Type.Optional(Address),
  /** Its private key, in hex, where the signer has no network. */
  gas_wallet_key: Type.Optional(Secret),
  /** Wallets that pay beside it, each with its own nonces. A process with the worker needs their keys. */
  further_hot_wallets: Type.Optional(Wallets),
  /** Wallets that paid before these: what they hold is in custody. With a key, their stuck transactions are replaced. */
  former_hot_wallets: Type.Optional(FormerWallets),
  /**
   * The mnemonic or extended key that deposit addresses are derived from; without it the network has none. A public
   * extended key suffices for a process without the worker.
   */
  deposit_key: Type.Optional(Secret),
  /** Most transactions of each hot wallet that are signed and not mined at a time. */
  max_in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
  /** Contract addresses by asset, for test networks; by default the catalogue's. */
  tokens: Type.Optional(Type.Record(Type.String(), Address)),
  /** An operator has reviewed the hot wallet's transactions before this nonce: none paid an open withdrawal. */
  first_nonce: Type.Optional(Type.Integer({ minimum: 0 })),
  ...sweeping,
  /** The most that a sweep offers for a unit of gas, in gwei; by default the fee_ceiling. */
  sweep_fee_ceiling: Type.Optional(Decimal),
  ...manyNodes,
  /** The amount of an asset from which second nodes are asked; every amount, where an asset is not named. */
  verify_above: Type.Optional(Type.Record(Type.String(), Decimal)),
})
export type EvmSection = Static<typeof EvmSection>
