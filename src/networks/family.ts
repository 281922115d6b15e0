import type { TObject } from 'typebox'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import type { Mode } from './chain-of-mode.ts'
import type { AreGiven } from './given-addresses.ts'
import type { Treasury } from './marks.ts'
import type { NetworkAdapter } from './network.ts'
import type { Secret } from './secrets.ts'
import type { Depth, NodeUrls, Section } from './section.ts'
import type { PaymentOn } from './signed-payment.ts'
import type { WithdrawalReader } from './withdrawal-reader.ts'

/** A family of chains: what is asked of each of its networks without a node, and how one is connected. */
export interface Family<Own extends Section = Section> {
  section: TObject
  adapter: string
  /** Decimals of `fee_ceiling`; by default those of the network's own asset. */
  feeCeilingDecimals?: number
  /** What `confirmations` must be, for people, where the section's schema does not say it. */
  confirmationsAre?: string
  carriesMemo: boolean
  /**
   * How signed bytes differ from the payment that was asked for; undefined where they pay it. `tokens` are contracts by asset,
   * where they differ from the catalogue's. Throws an Error where the bytes cannot be read.
   */
  disagreementOf(payment: PaymentOn, tokens: Readonly<Record<string, string>> | undefined): string | undefined
  /** Connects a network. Throws an Error that names the section and the field that is wrong. */
  connect(opening: Opening, section: Own, depth: Depth): Promise<ConnectedNetwork>
}

/** The network whose section is opened, and how it is used. */
export interface Opening extends Use {
  network: CryptoNetwork
  db: Database
  mode: Mode
  treasury: Treasury
  given: GivenBySection
}

export interface Use {
  /** The process runs the worker: it signs for the hot wallet, and for deposit addresses. */
  signs: boolean
  withdrawals: WithdrawalReader
  /** Tells which deposit addresses Bursar gave out; without it, all in the database count. */
  areGiven?: AreGiven
}

/** Reads the secrets and nodes that a section names. */
export interface GivenBySection {
  /** The nodes by the field that names them, without the parts of a URL that may be secret. */
  nodes: { field: string; protocol: string; host: string; hostname: string }[]
  secretFiles: { field: string; path: string }[]
  /** The secret of a field. No message shows it. */
  secret(field: string, where: Secret): Promise<string>
  /** The URL of a node. Errors do not show the URL, which may contain a key or a password. */
  url(field: string, where: string | Secret): Promise<string>
  /** The URLs of one node or of several. */
  urls(field: string, where: NodeUrls): Promise<string[]>
}

export interface ConnectedNetwork {
  adapter: NetworkAdapter
  /** Throws WrongChain when the node is on a chain that the mode does not allow, NodeFailure when it does not answer. */
  requireChain?: () => Promise<void>
  /** Which fields gave this process a private key. The keys of the Bitcoin family are in its node's wallet. */
  privateKeys: string[]
  /** The public extended key that deposit addresses are derived from, where there is one. */
  depositPublicKey: string | undefined
  /** No test runs a node of the network: the adapter was tried against a model of its rules alone. */
  isExperimental?: true
  /** Whether more than one node's word counts: a second node's, or that of a full node of the operator's own. */
  hasSecondNode: boolean
  keys: OwnKeys
}

/** Tells the keys of a network from others, by what is on record. */
export interface OwnKeys {
  /** Whether they gave out a deposit address. Absent where no address is given out. */
  gave?: (given: { address: string; derivation: string }) => boolean | Promise<boolean>
  /** Addresses are derived from a key, which their records name. */
  areDerived?: true
  /** Finds wallets that were used, by the records, and are not among them. Absent where this process does not sign. */
  foreignWallets?: { find: () => Promise<string[]>; advice: string }
}
