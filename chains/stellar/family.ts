import { Keypair, Networks, StrKey } from '@stellar/stellar-base'
import { Type, type Static } from 'typebox'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { findAsset } from '../../src/contract/assets/catalogue.ts'
import { Closed } from '../../src/contract/fields.ts'
import type { ConnectedNetwork, Family, Opening } from '../../src/networks/family.ts'
import { secondNode, shared } from '../../src/networks/section.ts'
import { Secret } from '../../src/networks/secrets.ts'
import { hotWalletOf } from '../kit/hot-wallet-key.ts'
import { signerClient, SignerSection } from '../kit/remote-signer.ts'
import { stellarAdapter } from './adapter.ts'
import { DECIMALS, LEAST_FEE, openChain, requireReady, type StellarConfig } from './chain.ts'
import { accountIn } from './envelope.ts'
import { disagreementOf } from './signed-payment.ts'

const ADAPTER = 'stellar'
const ACCOUNT = '^G[A-Z2-7]{55}$'
const StellarSection = Closed({
  adapter: Type.Literal(ADAPTER),
  /** `fee_ceiling` is the most that one operation costs, in XLM. */
  ...shared,
  /** A ledger is final when it is closed. */
  confirmations: Type.Optional(Type.Literal(1)),
  ...secondNode,
  /** The passphrase of a sandbox's network; by default the test network's. */
  network_passphrase: Type.Optional(Type.String({ minLength: 1 })),
  /** The seed (S...) that signs for the hot wallet: its own, or that of another signer of `hot_wallet_address`. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's account. With it, a process without the worker does not read the seed. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: ACCOUNT })),
  /** The process that has the seed: the account is given instead, and the accounts that number its transactions. */
  signer: Type.Optional(SignerSection),
  lane_accounts: Type.Optional(Type.Array(Type.String({ pattern: ACCOUNT }), { minItems: 1, maxItems: 101 })),
  /** How many channel accounts number transactions, beside the hot wallet. */
  lanes: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  /** By asset, the issuer on a test network; by default the catalogue's. */
  issuers: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: ACCOUNT }))),
  /** An operator has reviewed what the wallet sent in ledgers below this one. */
  first_ledger: Type.Optional(Type.Integer({ minimum: 0 })),
})
type StellarSection = Static<typeof StellarSection>

export const family: Family<StellarSection> = {
  section: StellarSection,
  adapter: ADAPTER,
  carriesMemo: true,
  disagreementOf,
  connect,
}

async function connect(opening: Opening, section: StellarSection): Promise<ConnectedNetwork> {
  const { network, db, mode, withdrawals, given } = opening
  const { network_passphrase, issuers = {} } = section
  const passphrase = network_passphrase ?? (mode === 'live' ? Networks.PUBLIC : Networks.TESTNET)
  if ((passphrase === String(Networks.PUBLIC)) !== (mode === 'live'))
    throw new Error(
      `${network}.network_passphrase must ${mode === 'live' ? 'be that' : 'not be'} of the public network in ${mode === 'live' ? 'live mode' : 'a sandbox'}`,
    )
  for (const asset of Object.keys(issuers))
    if (findAsset(asset)?.networks[network]?.contractAddress === undefined)
      throw new Error(`${network}.issuers.${asset} is no token of ${network}`)
  if (mode === 'live' && Object.keys(issuers).length > 0)
    throw new Error(`${network}.issuers are for test networks: live mode takes the catalogue's`)
  const { address, seed } = await hotWalletOf<{ address: string; seed?: string }>(opening, section, {
    watch(account) {
      if (!StrKey.isValidEd25519PublicKey(account))
        throw new Error(`${network}.hot_wallet_address is no account of Stellar (G...)`)
      return { address: account }
    },
    open(field, key, watched) {
      if (!StrKey.isValidEd25519SecretSeed(key)) throw new Error(`${field} is no seed of Stellar (S...)`)
      // Another signer of the account, once its own key is out of use.
      return { address: watched?.address ?? Keypair.fromSecret(key).publicKey(), seed: key }
    },
  })
  if (parseAmount(section.fee_ceiling, DECIMALS)! < LEAST_FEE)
    throw new Error(
      `${network}.fee_ceiling must be at least ${formatAmount(LEAST_FEE, DECIMALS)}, the least that an operation costs`,
    )
  const isOwnKey = seed === undefined || Keypair.fromSecret(seed).publicKey() === address
  if (!isOwnKey && section.lanes === 0)
    throw new Error(`${network}.lanes must be 1 at least where hot_wallet_key is another signer's`)
  const { signer, lane_accounts } = section
  const isWhole = (signer === undefined) === (lane_accounts === undefined)
  if (!isWhole || (signer !== undefined && section.lanes !== undefined))
    throw new Error(`${network}.lane_accounts is given instead of lanes where a signer has the key`)
  for (const account of lane_accounts ?? [])
    if (!StrKey.isValidEd25519PublicKey(account))
      throw new Error(`${network}.lane_accounts: ${account} is no account of Stellar (G...)`)
  const config: StellarConfig = {
    horizonUrl: await given.url('rpc_url', section.rpc_url),
    verifyHorizonUrl: section.verify_rpc_url && (await given.url('verify_rpc_url', section.verify_rpc_url)),
    passphrase,
    hotWallet: { address, ...(seed !== undefined && { seed }) },
    lanes: section.lanes,
    signer: signer && { asked: await signerClient(signer), lanes: lane_accounts! },
    feeCeiling: section.fee_ceiling,
    issuers,
    withdrawals,
    firstLedger: section.first_ledger,
  }
  const chain = openChain(config)
  return {
    adapter: stellarAdapter(config, db),
    requireChain: () => requireReady(chain),
    privateKeys: seed === undefined ? [] : ['hot_wallet_key'],
    depositPublicKey: undefined,
    hasSecondNode: section.verify_rpc_url !== undefined,
    isExperimental: true,
    keys: {
      gave: (given) => !given.derivation.startsWith('muxed/') || accountIn(given.address).account === address,
    },
  }
}
