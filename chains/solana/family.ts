import { isAddress, type Address } from '@solana/addresses'
import { Type, type Static } from 'typebox'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import { Closed } from '../../src/contract/fields.ts'
import type { ConnectedNetwork, Family, Opening } from '../../src/networks/family.ts'
import { naming, requireAmount, secondNodes, shared, sweeping } from '../../src/networks/section.ts'
import { Secret } from '../../src/networks/secrets.ts'
import { hotWalletOf } from '../kit/hot-wallet-key.ts'
import { signerClient, SignerSection } from '../kit/remote-signer.ts'
import { solanaAdapter } from './adapter.ts'
import { GAS_ASSET, mintsOf, NETWORK, solanaSweepWorth } from './chain.ts'
import { depositKeyIn, depositKeysOf, type DepositKey } from './deposit-keys.ts'
import { remote, signerOfKey, watched } from './keys.ts'
import { nonceAccounts, usedLanes } from './lanes.ts'
import { disagreementOf } from './signed-payment.ts'
import { SIGNATURE_FEE } from './transaction.ts'

const ADAPTER = 'solana'
const ADDRESS = '^[1-9A-HJ-NP-Za-km-z]{32,44}$'
const SolanaSection = Closed({
  adapter: Type.Literal(ADAPTER),
  /** `fee_ceiling` is the most that a payment costs, in SOL. The rent of a recipient's account for a token comes on top. */
  ...shared,
  /** Nothing less is ever confirmed: finalized slots are never dropped. */
  confirmations: Type.Literal('finalized'),
  /** The hot wallet's private key: 32 or 64 bytes in base58, or the JSON array that solana-keygen writes. */
  hot_wallet_key: Type.Optional(Secret),
  /** The hot wallet's address. With it, a process without the worker does not read the key. */
  hot_wallet_address: Type.Optional(Type.String({ pattern: ADDRESS })),
  /** Addresses that paid before, with whatever key. */
  former_hot_wallets: Type.Optional(Type.Array(Type.String({ pattern: ADDRESS }), { maxItems: 10 })),
  /** The process that has the keys: the hot wallet's address and the public deposit_key are given instead. */
  signer: Type.Optional(SignerSection),
  /** The least that a payment offers, in SOL: nodes do not know what blocks are sold for. */
  fee_floor: Type.Optional(Type.String()),
  /** Nonce accounts of the hot wallet: as many payments are under way at a time. */
  lanes: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
  ...secondNodes,
  /**
   * The mnemonic that deposit addresses are derived from; without it the network has none. The public key that
   * `bursar networks deposit-key` prints suffices for a process without the worker.
   */
  deposit_key: Type.Optional(Secret),
  ...sweeping,
  /** Mints by asset, for test networks; by default the catalogue's. */
  mints: Type.Optional(Type.Record(Type.String(), Type.String({ pattern: ADDRESS }))),
})
type SolanaSection = Static<typeof SolanaSection>

export const family: Family<SolanaSection> = {
  section: SolanaSection,
  adapter: ADAPTER,
  confirmationsAre: "'finalized': the network drops no finalized slot, and may drop any other",
  carriesMemo: true,
  disagreementOf,
  connect,
}

async function connect(opening: Opening, section: SolanaSection): Promise<ConnectedNetwork> {
  const { network, db, mode, signs, withdrawals, areGiven, given } = opening
  const { fee_ceiling, fee_floor, mints, verify_rpc_url, deposit_key, sweep_cost_max, sweep_minimum } =
    section
  naming(`${network}.mints`, () => mintsOf(mints ?? {}))
  const sweepConfig = { sweepCostMax: sweep_cost_max, sweepMinimum: sweep_minimum }
  naming(network, () => solanaSweepWorth(sweepConfig))
  if (requireAmount(`${network}.fee_ceiling`, fee_ceiling, decimalsOf(GAS_ASSET)) <= SIGNATURE_FEE)
    throw new Error(`${network}.fee_ceiling must be above 0.000005, what the network takes for a signature`)
  if (fee_floor !== undefined) requireFloor(network, fee_floor, fee_ceiling)
  const rpcUrl = await given.url('rpc_url', section.rpc_url)
  const verifyRpcUrl = verify_rpc_url && (await given.urls('verify_rpc_url', verify_rpc_url))
  const signer = section.signer && (await signerClient(section.signer))
  const hotWallet = await hotWalletOf(opening, section, {
    watch(address) {
      if (!isAddress(address))
        throw new Error(`${network}.hot_wallet_address is no address: 32 bytes in base58`)
      return signer === undefined ? watched(address) : remote(address)
    },
    open: (field, key) => naming(field, () => signerOfKey(key)),
  })
  const formerWallets = formerOf(section, hotWallet.address)
  const depositKey =
    deposit_key &&
    depositKeyOf(await given.secret('deposit_key', deposit_key), signs, section.signer !== undefined)
  const adapter = solanaAdapter(
    {
      ...{
        rpcUrl,
        verifyRpcUrl,
        verifyQuorum: section.verify_quorum,
        hotWallet,
        formerWallets,
        feeCeiling: fee_ceiling,
        feeFloor: fee_floor,
        lanes: section.lanes,
        mints,
        mode,
      },
      ...{ withdrawals, depositKey, areGiven, signer, ...sweepConfig },
    },
    db,
  )
  const words = depositKey && 'mnemonic' in depositKey ? depositKeysOf(depositKey.mnemonic) : undefined
  const publicKey = words?.publicKey ?? (depositKey as { publicKey: Address } | undefined)?.publicKey
  return {
    adapter,
    requireChain: () => adapter.ready!(),
    privateKeys: [
      ...(hotWallet.isWatched || hotWallet.isRemote ? [] : ['hot_wallet_key']),
      ...(words ? ['deposit_key'] : []),
    ],
    depositPublicKey: publicKey,
    hasSecondNode: verify_rpc_url !== undefined,
    keys: {
      // A process without the words takes no address that they have not vouched for.
      ...(words && { gave: (given) => words.derives(given), areDerived: true }),
      ...(signs && {
        foreignWallets: {
          async find() {
            const used = await usedLanes(db)
            const own = nonceAccounts({ hotWallet, formerWallets, lanes: 0 }).map(({ account }) => account)
            return used.filter((account) => !own.includes(account)).slice(0, 1)
          },
          advice: 'name the wallet that made it in former_hot_wallets, or this account in former_keys',
        },
      }),
    },
  }
}

/** Throws an Error for what is no address, the hot wallet's, or there twice. */
const formerOf = ({ former_hot_wallets = [] }: SolanaSection, hotWallet: Address): Address[] =>
  former_hot_wallets.map((wallet, index) => {
    if (!isAddress(wallet) || [hotWallet, ...former_hot_wallets.slice(0, index)].includes(wallet))
      throw new Error(
        `${NETWORK}.former_hot_wallets.${index} must be an address, not the hot wallet's, and none before it`,
      )
    return wallet
  })

function requireFloor(network: string, floor: string, ceiling: string): void {
  const decimals = decimalsOf(GAS_ASSET)
  const least = requireAmount(`${network}.fee_floor`, floor, decimals)
  if (least < SIGNATURE_FEE || least > parseAmount(ceiling, decimals)!)
    throw new Error(`${network}.fee_floor must be 0.000005 at least, and no more than fee_ceiling`)
}

const depositKeyOf = (text: string, signs: boolean, isRemote: boolean): DepositKey =>
  naming('SOLANA.deposit_key', () => {
    const key = depositKeyIn(text)
    if (isRemote && 'mnemonic' in key)
      throw new Error("is the signer's: give the public one, which 'bursar signer start' prints")
    if (signs && !isRemote && 'publicKey' in key)
      throw new Error(
        'is a public one, with which nothing can be swept: enough only with BURSAR_WORKER=false',
      )
    return key
  })
