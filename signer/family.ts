import type { Hex } from 'viem'
import type { AskedAddress } from '../chains/solana/deposit-keys.ts'
import type { PaymentOn } from '../src/networks/signed-payment.ts'
import type { Token } from '../chains/evm/chain.ts'
import type { CryptoNetwork } from '../src/contract/assets/catalogue.ts'

/** The signatures of a wallet that the journal keeps, by their digests: r, s and the recovery bit, in 65 bytes. */
export interface KeptSignatures {
  find(digest: Hex): Promise<Hex | undefined>
  /** Keeps a signature on the disk. Returns the one that counts: another signer may have kept one first. */
  keep(digest: Hex, signature: Hex): Promise<Hex>
}

/** A wallet that signs. */
export interface Wallet {
  address: string
  /** The public descriptors of Bitcoin's family, of its addresses and its change: what its node watches. */
  descriptors?: readonly string[]
  /**
   * The signed transaction of unsigned bytes. `kept` has the signatures that must not be made twice. Throws BackEndFailure
   * where the key cannot be used now.
   */
  sign(unsigned: Hex, kept: KeptSignatures): Promise<Hex>
}

/** What unsigned bytes use up and pay, and the most that they cost in units of the network's own asset. */
export interface UnsignedRead {
  /**
   * What no two transactions of the chain can both use: the number of the transaction, or each of its inputs. Where the family
   * has neither, the hash of the bytes: a transfer is signed as these alone.
   */
  places: readonly (number | string)[]
  fee: bigint
  /** How many payments there are, beside what goes back to the wallet. */
  payments: number
  /** Who signs what was read, where more than the wallet's one key is needed. */
  signer?: Wallet
}

/** A move between a deposit address and the platform's wallets, as a worker asks for it. */
export interface MoveRequest {
  network: string
  /** Who signs: the address itself or the gas wallet; on SOLANA the hot wallet, which pays the fee, and the address. */
  wallet: string
  address: string
  /** How the address was derived; empty for an account that the hot wallet makes for itself. */
  derivation: string
  unsigned: Hex
}

/** The keys of deposit addresses. */
export interface DepositKeys {
  /** What processes without the private key are given. */
  publicKey: string
  derives(place: { address: string; derivation: string }): boolean
  /** On networks whose addresses follow from private keys alone: those at paths, vouched for. */
  answersTo?(asked: readonly AskedAddress[]): Promise<object[]>
}

/** What a family of chains tells the signer of its addresses, keys and bytes. */
export interface SignerFamily {
  carriesMemo: boolean
  /**
   * A transaction pays many, and others may be signed for a place of it that are not mined. A transfer keeps its first place:
   * all that is signed for it has that place, so that the chain takes one of it.
   */
  paysMany?: true
  /** What was signed can end unmade, and its place stays free: the transfer is signed there again. */
  placesStay?: true
  /** The most digits of a question's bytes in hex, where they are more than a transaction. */
  hexMax?: number
  /** The unit of fees, for people. */
  feeUnit: string
  /** An address in the spelling that is compared. Throws an Error for none. */
  addressOf(text: string): string
  /**
   * The wallet of a private key; on STELLAR of `address`, where it is given: the key may be another signer's of that account.
   * Throws an Error that names the field, and shows no key.
   */
  walletOf(field: string, key: string, address?: string): Wallet
  /** Throws an Error where the text is no private key. */
  depositKeysOf(text: string): DepositKeys
  /** Reads unsigned bytes that a wallet is asked to sign. Throws Refused where they are not of this chain. */
  read(network: SignerNetwork, unsigned: Hex, wallet: string): UnsignedRead
  /** Why bytes do not pay what was accepted, as payment `index` of them; undefined where they do. */
  disagreementOf(
    payment: PaymentOn,
    tokens: Readonly<Record<string, string>>,
    index: number,
  ): string | undefined
  /** Judges what a move does, and returns who signs it. Throws Refused with the rule that it breaks. */
  judgeMove(network: SignerNetwork, request: MoveRequest): { signer: Wallet; read: UnsignedRead }
}

/** One network, as the signer's rules read it. Units are those of the chain. */
export interface SignerNetwork {
  network: CryptoNetwork
  family: SignerFamily
  /** Of EVM networks; otherwise 0. */
  chainId: number
  /** Of EVM networks: the contracts by asset. */
  tokens: ReadonlyMap<string, Token>
  /** Contracts, mints or issuers by asset. */
  tokenAddresses: Readonly<Record<string, string>>
  wallets: ReadonlyMap<string, Wallet>
  feeMax: bigint
  depositKeys: DepositKeys | undefined
  gasWallet: Wallet | undefined
  windows: {
    asset: string
    periodMs: number
    units?: bigint | undefined
    payments?: number | undefined
    per?: 'customer' | 'destination' | undefined
  }[]
  destinations: { asset: string; from: bigint; required: number; coolingMs: number }[]
  treasuryDestinations: ReadonlySet<string>
}
