import type { Hex } from 'viem'
import { NETWORKS, type CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { Mode } from '../../src/networks/chain-of-mode.ts'
import type { ConnectedNetwork, Family, Opening } from '../../src/networks/family.ts'
import { COUNTED, naming, requireAmount, requireAmounts, type Depth } from '../../src/networks/section.ts'
import { evmAdapter } from './adapter.ts'
import { tokensOf } from './chain.ts'
import { walletsOf } from './configured-wallets.ts'
import { depositKeyIn, depositKeysOf, type DepositKey } from './deposit-keys.ts'
import { signerClient, type SignerClient } from '../kit/remote-signer.ts'
import { ADAPTER, EvmSection } from './section.ts'
import { disagreementOf } from './signed-payment.ts'
import { signerByFiles } from './signer-files.ts'
import { sweepTermsOf } from './sweeps/worth.ts'
import { usedWallets } from './nonces.ts'

/** Decimals of wei in gwei. */
const GWEI_DECIMALS = 9

export const family: Family<EvmSection> = {
  section: EvmSection,
  adapter: ADAPTER,
  feeCeilingDecimals: GWEI_DECIMALS,
  confirmationsAre: `${COUNTED}, 'safe' or 'finalized'`,
  carriesMemo: false,
  disagreementOf,
  connect,
}

async function connect(
  opening: Opening,
  section: EvmSection,
  confirmations: Depth,
): Promise<ConnectedNetwork> {
  const { network, db, mode, signs, withdrawals, areGiven, given } = opening
  const { chain_id, deposit_key, tokens, verify_rpc_url, verify_above, sweep_fee_ceiling } = section
  if (verify_rpc_url === undefined && verify_above !== undefined)
    throw new Error(`${network}.verify_above needs verify_rpc_url`)
  requireAmounts(`${network}.verify_above`, network, verify_above ?? {})
  const known = naming(`${network}.tokens`, () => tokensOf(network, tokens ?? {}))
  if (sweep_fee_ceiling !== undefined)
    requireAmount(`${network}.sweep_fee_ceiling`, sweep_fee_ceiling, GWEI_DECIMALS)
  const sweepConfig = {
    sweepCostMax: section.sweep_cost_max,
    sweepFeeCeiling: sweep_fee_ceiling,
    sweepMinimum: section.sweep_minimum,
  }
  naming(network, () => sweepTermsOf(network, known, 0n, sweepConfig))
  naming(`${network}.chain_id`, () => requireChainId(network, chain_id ?? NETWORKS[network].chainId!, mode))
  const [rpcUrl = '', ...otherRpcUrls] = await given.urls('rpc_url', section.rpc_url)
  const seconds = verify_rpc_url && (await given.urls('verify_rpc_url', verify_rpc_url))
  const { signer } = section
  const client = signer === undefined || 'folder' in signer ? undefined : await signerClient(signer)
  const { privateKeys, hotWallet, further, former, gasWallet } = await walletsOf(opening, section, client)
  const depositKey =
    deposit_key &&
    depositKeyOf(`${network}.deposit_key`, await given.secret('deposit_key', deposit_key), signs, client)
  const keys = depositKey && depositKeysOf(depositKey)
  const wallets = [hotWallet, ...further, ...former, ...(gasWallet ? [gasWallet] : [])]
  const own = new Set<string>(wallets.map(({ address }) => address))
  const adapter = evmAdapter(
    network,
    {
      ...{ withdrawals, mode, rpcUrl, chainId: chain_id, confirmations, tokens, depositKey, ...sweepConfig },
      ...{ hotWallet, furtherWallets: further, formerWallets: former, ...(gasWallet && { gasWallet }) },
      ...(signer && { signer: 'folder' in signer ? signerByFiles(signer.folder) : client! }),
      coldAddresses: opening.treasury.cold as readonly Hex[],
      maxFeePerGasCeiling: section.fee_ceiling,
      firstNonce: section.first_nonce,
      ...(areGiven && { areGiven }),
      maxInFlight: section.max_in_flight,
      otherRpcUrls,
      ...(seconds && {
        verify: { rpcUrl: seconds, quorum: section.verify_quorum, above: verify_above ?? {} },
      }),
    },
    db,
  )
  return {
    adapter,
    privateKeys: [...privateKeys, ...(keys?.isPrivate ? ['deposit_key'] : [])],
    depositPublicKey: keys?.publicKey,
    hasSecondNode: verify_rpc_url !== undefined,
    keys: {
      ...(keys && { gave: (given) => keys.derives(given), areDerived: true }),
      ...(signs && {
        foreignWallets: {
          find: async () => (await usedWallets(db, network)).filter((address) => !own.has(address)),
          advice:
            'configure it as hot wallet, further hot wallet or gas wallet, or, out of use, in former_hot_wallets',
        },
      }),
    },
  }
}

const depositKeyOf = (field: string, text: string, signs: boolean, client?: SignerClient): DepositKey =>
  naming(field, () => {
    const key = depositKeyIn(text)
    const { isPrivate } = depositKeysOf(key)
    if (isPrivate && client !== undefined)
      throw new Error(
        "the private deposit key is the signer's: give the public one, as 'bursar networks deposit-key' prints it",
      )
    if (!isPrivate && signs && client === undefined)
      throw new Error(
        'the deposit key is a public one, with which nothing can be swept: enough only with BURSAR_WORKER=false',
      )
    return key
  })

const MAIN_CHAIN_IDS: ReadonlyMap<number, string> = new Map(
  Object.entries(NETWORKS).flatMap(([name, { chainId }]) => (chainId === undefined ? [] : [[chainId, name]])),
)

/** Throws an Error when the mode does not allow this chain id. */
function requireChainId(network: CryptoNetwork, chainId: number, mode: Mode): void {
  const { chainId: main, testChainId } = NETWORKS[network]
  if (mode === 'live' && chainId !== main)
    throw new Error(`${chainId} is not the main network of ${network} (${main}), which live mode needs`)
  const named = MAIN_CHAIN_IDS.get(chainId)
  if (mode === 'sandbox' && named !== undefined)
    throw new Error(
      `${chainId} is the main network of ${named}, and a sandbox's money is invented: use a test network's chain id (of ${network}: ${testChainId})`,
    )
}
