import { BlockList, isIP } from 'node:net'
import type { Hex } from 'viem'
import { Keypair, Networks, StrKey } from '@stellar/stellar-base'
import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import {
  decimalsOf,
  findAsset,
  minimumDepositOf,
  NETWORKS,
  type CryptoNetwork,
} from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { bitcoinAdapter } from '../../chains/bitcoin/adapter.ts'
import { bitcoinRpc } from '../../chains/kit/json-rpc.ts'
import { onChainOf } from '../../chains/bitcoin/chain-of-mode.ts'
import { requireChainId, type Mode } from './chain-of-mode.ts'
import { isAddress as isSolanaAddress, type Address } from '@solana/addresses'
import { evmAdapter } from '../../chains/evm/adapter.ts'
import { tokensOf } from '../../chains/evm/chain.ts'
import { walletsOf } from '../../chains/evm/configured-wallets.ts'
import { depositKeysOf, type DepositKey } from '../../chains/evm/deposit-keys.ts'
import { signerClient } from '../../chains/evm/remote-signer.ts'
import { signerByFiles } from '../../chains/evm/signer-files.ts'
import { sweepTermsOf } from '../../chains/evm/sweeps/worth.ts'
import type { AreGiven } from './given-addresses.ts'
import { treasuryOf } from './marks.ts'
import type { NetworkAdapter } from './network.ts'
import { stellarAdapter } from '../../chains/stellar/adapter.ts'
import { DECIMALS, LEAST_FEE, type StellarConfig } from '../../chains/stellar/chain.ts'
import { accountIn } from '../../chains/stellar/envelope.ts'
import { horizon } from '../../chains/stellar/horizon.ts'
import {
  depthOf,
  eachSection,
  FEE_MARGIN,
  feesLossOf,
  GWEI_DECIMALS,
  limitsOutOfReach,
  oneNodeMaxOf,
  shallowOf,
  requireAmount,
  requireAmounts,
  type BitcoinSection,
  type Depth,
  type EvmSection,
  type Section,
  type SolanaSection,
  type StellarSection,
} from './network-sections.ts'
import { readSecret, type Secret } from './secrets.ts'
import { solanaAdapter } from '../../chains/solana/adapter.ts'
import { mintsOf, solanaSweepWorth } from '../../chains/solana/chain.ts'
import {
  depositKeyIn,
  depositKeysOf as solanaKeysOf,
  type DepositKey as SolanaDepositKey,
} from '../../chains/solana/deposit-keys.ts'
import { signerOfKey, watched, type SolanaSigner } from '../../chains/solana/keys.ts'
import { nonceAccounts } from '../../chains/solana/lanes.ts'
import { SIGNATURE_FEE } from '../../chains/solana/transaction.ts'

/** Connects the real networks of the networks file (network-sections.ts), with the secrets that its sections name. */

export interface Use {
  /** The process runs the worker: it signs for the hot wallet, and for deposit addresses. */
  signs: boolean
  /** Tells which deposit addresses Bursar gave out; without it, all in the database count. */
  areGiven?: AreGiven
}

export interface ConfiguredNetwork {
  adapter: NetworkAdapter
  confirmations: Depth
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
  /** The nodes by the field that names them, without the parts of a URL that may be secret. */
  nodes: { field: string; protocol: string; host: string; hostname: string }[]
  secretFiles: { field: string; path: string }[]
  /** Assets of which every deposit is credited, however small: `minimum_deposit` is 0. */
  withoutMinimum: string[]
  keys: OwnKeys & { former: readonly string[] }
  /** What large deposits lack of the default confirmations. */
  shallow?: string | undefined
  /** Limits that are too high to stop anything: each setting with its value, and the rule. */
  outOfReach: string[]
}

/** Tells the keys of a network from others, by what is on record. */
interface OwnKeys {
  /** Whether they gave out a deposit address. Absent where no address is given out. */
  gave?: (given: { address: string; derivation: string }) => boolean | Promise<boolean>
  /** Those of the wallets that were used, by the records, that are not among them. Absent where this process does not sign. */
  foreignWallets?: (wallets: readonly string[]) => string[]
}

/**
 * Reads the file and connects its networks: test networks in a sandbox, main networks in live mode. Throws an Error that names
 * the section and field that is wrong.
 */
export async function configuredNetworks(
  path: string,
  environment: Record<string, string | undefined>,
  db: Database,
  mode: Mode,
  use: Use = { signs: true },
): Promise<ReadonlyMap<CryptoNetwork, ConfiguredNetwork>> {
  const networks = new Map<CryptoNetwork, ConfiguredNetwork>()
  for await (const [network, section] of eachSection(path, mode)) {
    const { fee_margin = FEE_MARGIN, minimum_deposit = {} } = section
    const { depth: confirmations, depths } = depthOf(network, section, mode)
    const treasury = treasuryOf(network, section, mode)
    const given = readerOf(network, environment)
    const opening = { network, db, mode, given, ...use }
    const connected = await connect(opening, section, confirmations)
    for (const address of treasury.cold) {
      const refusal = connected.adapter.refusesDestination?.(address)
      if (refusal !== undefined) throw new Error(`${network}.cold_addresses: ${address}: ${refusal}`)
    }
    networks.set(network, {
      ...connected,
      adapter: {
        ...connected.adapter,
        confirmations,
        depths,
        treasury,
        ...(mode === 'live' && {
          [connected.hasSecondNode ? 'secondNodeAbove' : 'oneNodeMax']: oneNodeMaxOf(section),
        }),
        feeMargin: fee_margin,
        ...(section.adapter !== 'solana' &&
          section.adapter !== 'stellar' && { carriesNoMemo: true as const }),
        feesLoss: feesLossOf(network, section),
        minimumDeposit: (asset) => minimum_deposit[asset] ?? minimumDepositOf(asset, network),
        ...(mode === 'sandbox' && { paysDepositsOnly: true }),
      },
      confirmations,
      nodes: given.nodes,
      secretFiles: given.secretFiles,
      withoutMinimum: Object.entries(minimum_deposit).flatMap(([asset, amount]) =>
        requireAmount(`${network}.minimum_deposit`, amount, decimalsOf(asset)) === 0n ? [asset] : [],
      ),
      outOfReach: limitsOutOfReach(network, section),
      keys: { ...connected.keys, former: section.former_keys ?? [] },
      shallow: shallowOf(network, depths),
    })
  }
  return networks
}

const connect = (opening: Opening, section: Section, depth: Depth): Promise<ConnectedNetwork> =>
  section.adapter === 'evm'
    ? connectEvm(opening, section, depth)
    : section.adapter === 'stellar'
      ? connectStellar(opening, section)
      : section.adapter === 'solana'
        ? connectSolana(opening, section)
        : connectBitcoin(opening, section, depth as number)

/** Reads the secrets and nodes that a section names. Collects the files that held a secret, and the nodes. */
function readerOf(network: CryptoNetwork, environment: Record<string, string | undefined>) {
  const nodes: ConfiguredNetwork['nodes'] = []
  const secretFiles: ConfiguredNetwork['secretFiles'] = []

  /** The secret of a field. No message shows it. */
  async function secret(field: string, where: Secret): Promise<string> {
    if ('file' in where) secretFiles.push({ field, path: where.file })
    return readSecret(`${network}.${field}`, where, environment)
  }

  /** The URL of a node. Errors do not show the URL, which may contain a key or a password. */
  async function url(field: string, where: string | Secret): Promise<string> {
    const text = typeof where === 'string' ? where : await secret(field, where)
    const { protocol, host, hostname, username, password } = new URL(URL.canParse(text) ? text : 'none:')
    if (!/^https?:$/.test(protocol) || username || password)
      throw new Error(`${network}.${field} must be an http or https URL without a user and password in it`)
    nodes.push({ field, protocol, host, hostname })
    return text
  }
  return { nodes, secretFiles, secret, url }
}

interface Opening extends Use {
  network: CryptoNetwork
  db: Database
  mode: Mode
  given: ReturnType<typeof readerOf>
}

type ConnectedNetwork = Pick<
  ConfiguredNetwork,
  'adapter' | 'requireChain' | 'privateKeys' | 'depositPublicKey' | 'hasSecondNode' | 'isExperimental'
> & { keys: OwnKeys }

async function connectBitcoin(
  { network, db, mode, given }: Opening,
  { rpc_url, rpc_user, rpc_password, wallet, signing, fee_ceiling, first_height, own_node }: BitcoinSection,
  confirmations: number,
): Promise<ConnectedNetwork> {
  if (signing === 'psbt' && network === 'BITCOIN_CASH')
    throw new Error(
      `${network}.signing cannot be 'psbt': without segregated witness, signatures change the hash of a transaction`,
    )
  const node = {
    rpcUrl: await given.url('rpc_url', rpc_url),
    rpcUser: rpc_user,
    rpcPassword: await given.secret('rpc_password', rpc_password),
    wallet,
  }
  const { hostname } = given.nodes[0]!
  if (mode === 'live' && !own_node && !isPrivate(hostname))
    throw new Error(
      `${network}.rpc_url: ${hostname} is not in a private network, and its word alone refunds and credits: it must be a full node of ` +
        'your own, and own_node says so',
    )
  const adapter = bitcoinAdapter(
    network as Parameters<typeof bitcoinAdapter>[0],
    { ...node, signing, confirmations, feeCeiling: fee_ceiling, firstHeight: first_height },
    db,
  )
  const connected = onChainOf(mode, network, bitcoinRpc(node), adapter)
  // It checks the chain's work itself: to lie, it would have to be taken over, and the wallet is in it.
  // A sandbox may have given out simulated addresses before.
  const keys: OwnKeys =
    mode === 'live' ? { gave: ({ address }) => connected.adapter.isOwnAddress!(address) } : {}
  return { ...connected, privateKeys: [], depositPublicKey: undefined, hasSecondNode: true, keys }
}

async function connectStellar(opening: Opening, section: StellarSection): Promise<ConnectedNetwork> {
  const { network, db, mode, signs, given } = opening
  const { network_passphrase, hot_wallet_key, hot_wallet_address, issuers = {} } = section
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
  const isWatched = hot_wallet_address !== undefined && !signs
  if (hot_wallet_key === undefined && !isWatched) throw new Error(`${network}.hot_wallet_key is required`)
  const seed = isWatched ? undefined : await given.secret('hot_wallet_key', hot_wallet_key!)
  if (seed !== undefined && !StrKey.isValidEd25519SecretSeed(seed))
    throw new Error(`${network}.hot_wallet_key is no seed of Stellar (S...)`)
  const address = seed === undefined ? hot_wallet_address! : Keypair.fromSecret(seed).publicKey()
  if (!StrKey.isValidEd25519PublicKey(hot_wallet_address ?? address))
    throw new Error(`${network}.hot_wallet_address is no account of Stellar (G...)`)
  if (hot_wallet_address !== undefined && hot_wallet_address !== address)
    throw new Error(`${network}.hot_wallet_address is not the account of hot_wallet_key: ${address}`)
  if (parseAmount(section.fee_ceiling, DECIMALS)! < LEAST_FEE)
    throw new Error(
      `${network}.fee_ceiling must be at least ${formatAmount(LEAST_FEE, DECIMALS)}, the least that an operation costs`,
    )
  const horizonUrl = await given.url('rpc_url', section.rpc_url)
  const config: StellarConfig = {
    horizonUrl,
    verifyHorizonUrl: section.verify_rpc_url && (await given.url('verify_rpc_url', section.verify_rpc_url)),
    passphrase,
    hotWallet: seed === undefined ? { address } : { seed },
    lanes: section.lanes,
    feeCeiling: section.fee_ceiling,
    issuers,
    firstLedger: section.first_ledger,
  }
  return {
    adapter: stellarAdapter(config, db),
    requireChain: async () => void (await horizon(horizonUrl, passphrase).root()),
    privateKeys: seed === undefined ? [] : ['hot_wallet_key'],
    depositPublicKey: undefined,
    hasSecondNode: section.verify_rpc_url !== undefined,
    isExperimental: true,
    keys: {
      gave: (given) => !given.derivation.startsWith('muxed/') || accountIn(given.address).account === address,
    },
  }
}

async function connectSolana(opening: Opening, section: SolanaSection): Promise<ConnectedNetwork> {
  const { network, db, mode, signs, areGiven, given } = opening
  const { fee_ceiling, mints, verify_rpc_url, deposit_key, sweep_cost_max, sweep_minimum } = section
  at(`${network}.mints`, () => mintsOf(mints ?? {}))
  const sweepConfig = { sweepCostMax: sweep_cost_max, sweepMinimum: sweep_minimum }
  at(network, () => solanaSweepWorth(sweepConfig))
  if (requireAmount(`${network}.fee_ceiling`, fee_ceiling, decimalsOf('SOL')) <= SIGNATURE_FEE)
    throw new Error(`${network}.fee_ceiling must be above 0.000005, what the network takes for a signature`)
  const rpcUrl = await given.url('rpc_url', section.rpc_url)
  const verifyRpcUrl = verify_rpc_url && (await given.url('verify_rpc_url', verify_rpc_url))
  const hotWallet = await solanaWalletOf(opening, section)
  const depositKey = deposit_key && solanaDepositKeyOf(await given.secret('deposit_key', deposit_key), signs)
  const adapter = solanaAdapter(
    {
      ...{ rpcUrl, verifyRpcUrl, hotWallet, feeCeiling: fee_ceiling, lanes: section.lanes, mints, mode },
      ...{ depositKey, areGiven, ...sweepConfig },
    },
    db,
  )
  const words = depositKey && 'mnemonic' in depositKey ? solanaKeysOf(depositKey.mnemonic) : undefined
  const publicKey = words?.publicKey ?? (depositKey as { publicKey: Address } | undefined)?.publicKey
  return {
    adapter,
    requireChain: () => adapter.ready!(),
    privateKeys: [...(hotWallet.isWatched ? [] : ['hot_wallet_key']), ...(words ? ['deposit_key'] : [])],
    depositPublicKey: publicKey,
    hasSecondNode: verify_rpc_url !== undefined,
    keys: {
      // A process without the words takes no address that they have not vouched for.
      ...(words && { gave: (given) => words.derives(given) }),
      ...(signs && {
        foreignWallets: (used) =>
          used.some((one) => nonceAccounts({ hotWallet, lanes: 0 }).includes(one as Address))
            ? []
            : used.slice(0, 1),
      }),
    },
  }
}

function solanaDepositKeyOf(text: string, signs: boolean): SolanaDepositKey {
  let key: SolanaDepositKey | undefined
  at('SOLANA.deposit_key', () => {
    key = depositKeyIn(text)
    if (signs && 'publicKey' in key)
      throw new Error(
        'is a public one, with which nothing can be swept: enough only with BURSAR_WORKER=false',
      )
  })
  return key!
}

/** The hot wallet. A process that does not sign and has the address does not read the key. */
async function solanaWalletOf(
  { network, given, signs }: Opening,
  { hot_wallet_key, hot_wallet_address: named }: SolanaSection,
): Promise<SolanaSigner> {
  if (named !== undefined && !isSolanaAddress(named))
    throw new Error(`${network}.hot_wallet_address is no address: 32 bytes in base58`)
  if (named !== undefined && !signs) return watched(named)
  if (hot_wallet_key === undefined) {
    const why = named === undefined ? '' : ': without it only a process with BURSAR_WORKER=false can be'
    throw new Error(`${network}.hot_wallet_key is required${why}`)
  }
  const key = await given.secret('hot_wallet_key', hot_wallet_key)
  let wallet: SolanaSigner | undefined
  at(`${network}.hot_wallet_key`, () => (wallet = signerOfKey(key)))
  if (named !== undefined && named !== wallet!.address)
    throw new Error(`${network}.hot_wallet_address is not the address of hot_wallet_key: ${wallet!.address}`)
  return wallet!
}

async function connectEvm(
  opening: Opening,
  section: EvmSection,
  confirmations: Depth,
): Promise<ConnectedNetwork> {
  const { network, db, mode, signs, areGiven, given } = opening
  const { chain_id, deposit_key, tokens, verify_rpc_url, verify_above, sweep_fee_ceiling } = section
  if (verify_rpc_url === undefined && verify_above !== undefined)
    throw new Error(`${network}.verify_above needs verify_rpc_url`)
  requireAmounts(`${network}.verify_above`, network, verify_above ?? {})
  at(`${network}.tokens`, () => tokensOf(network, tokens ?? {}))
  if (sweep_fee_ceiling !== undefined)
    requireAmount(`${network}.sweep_fee_ceiling`, sweep_fee_ceiling, GWEI_DECIMALS)
  const sweepConfig = {
    sweepCostMax: section.sweep_cost_max,
    sweepFeeCeiling: sweep_fee_ceiling,
    sweepMinimum: section.sweep_minimum,
  }
  at(network, () => sweepTermsOf(network, tokensOf(network, tokens ?? {}), 0n, sweepConfig))
  at(`${network}.chain_id`, () => requireChainId(network, chain_id ?? NETWORKS[network].chainId!, mode))
  const rpcUrl = await given.url('rpc_url', section.rpc_url)
  const wallets = await walletsOf(opening, section)
  const depositKey =
    deposit_key &&
    depositKeyOf(`${network}.deposit_key`, await given.secret('deposit_key', deposit_key), signs)
  const keys = depositKey && depositKeysOf(depositKey)
  const { hotWallet, further, former, gasWallet } = wallets
  const all = [hotWallet, ...further, ...former, ...(gasWallet ? [gasWallet] : [])]
  const known = new Set<string>(all.map(({ address }) => address))
  const adapter = evmAdapter(
    network,
    {
      mode,
      rpcUrl,
      chainId: chain_id,
      hotWallet: wallets.hotWallet,
      furtherWallets: wallets.further,
      formerWallets: wallets.former,
      ...(wallets.gasWallet && { gasWallet: wallets.gasWallet }),
      ...(section.signer && {
        signer:
          'folder' in section.signer
            ? signerByFiles(section.signer.folder)
            : await signerClient(section.signer),
      }),
      depositKey,
      coldAddresses: treasuryOf(network, section, mode).cold as readonly Hex[],
      confirmations,
      maxFeePerGasCeiling: section.fee_ceiling,
      tokens,
      firstNonce: section.first_nonce,
      ...(areGiven && { areGiven }),
      maxInFlight: section.max_in_flight,
      ...sweepConfig,
      ...(verify_rpc_url !== undefined && {
        verify: { rpcUrl: await given.url('verify_rpc_url', verify_rpc_url), above: verify_above ?? {} },
      }),
    },
    db,
  )
  return {
    adapter,
    privateKeys: [...wallets.privateKeys, ...(keys?.canSign ? ['deposit_key'] : [])],
    depositPublicKey: keys?.publicKey,
    hasSecondNode: verify_rpc_url !== undefined,
    keys: {
      ...(keys && { gave: (given) => keys.derives(given) }),
      ...(signs && { foreignWallets: (used) => used.filter((one) => !known.has(one)) }),
    },
  }
}

function depositKeyOf(field: string, text: string, signs: boolean): DepositKey {
  const key = /\s/.test(text) ? { mnemonic: text } : { extendedKey: text }
  at(field, () => {
    if (!depositKeysOf(key).canSign && signs)
      throw new Error(
        'the deposit key is a public one, with which nothing can be swept: enough only with BURSAR_WORKER=false',
      )
  })
  return key
}

const PRIVATE_ADDRESSES = new BlockList()
for (const [address, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  PRIVATE_ADDRESSES.addSubnet(address, bits)
PRIVATE_ADDRESSES.addAddress('::1', 'ipv6')
PRIVATE_ADDRESSES.addSubnet('fc00::', 7, 'ipv6')
const PRIVATE_NAME = /^([^.]+|.*\.(internal|local|lan|home\.arpa|svc))$/

/** Whether the internet does not have this host: it is of this machine, a private network, a cluster or containers. */
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  const version = isIP(address)
  if (version === 0) return PRIVATE_NAME.test(hostname)
  return PRIVATE_ADDRESSES.check(address, version === 6 ? 'ipv6' : 'ipv4')
}

/** Puts the field's name before the message of an error. */
function at(field: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    throw new Error(`${field}: ${(error as Error).message}`)
  }
}
