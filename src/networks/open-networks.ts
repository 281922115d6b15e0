import { decimalsOf, minimumDepositOf, NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import type { Mode } from './chain-of-mode.ts'
import { familyOf } from './families.ts'
import type { ConnectedNetwork, GivenBySection, Use } from './family.ts'
import { treasuryOf } from './marks.ts'
import {
  depthOf,
  eachSection,
  FEE_MARGIN,
  feesLossOf,
  limitsOutOfReach,
  shallowOf,
} from './network-sections.ts'
import { oneNodeMaxOf } from './one-node.ts'
import { readSecret } from './secrets.ts'
import { requireAmount, type Depth } from './section.ts'

/** Connects the real networks of the networks file (network-sections.ts), with the secrets that its sections name. */

/** Most nodes of a list. */
const NODES_MAX = 5

export interface ConfiguredNetwork extends ConnectedNetwork, Pick<GivenBySection, 'nodes' | 'secretFiles'> {
  confirmations: Depth
  /** Assets of which every deposit is credited, however small: `minimum_deposit` is 0. */
  withoutMinimum: string[]
  keys: ConnectedNetwork['keys'] & { former: readonly string[] }
  /** What large deposits lack of the default confirmations. */
  shallow?: string | undefined
  /** Limits that are too high to stop anything: each setting with its value, and the rule. */
  outOfReach: string[]
}

/**
 * Reads the file and connects its networks: test networks in a sandbox, main networks in live mode. Throws an Error that
 * names the section and field that is wrong.
 */
export async function configuredNetworks(
  path: string,
  environment: Record<string, string | undefined>,
  db: Database,
  mode: Mode,
  use: Use,
): Promise<ReadonlyMap<CryptoNetwork, ConfiguredNetwork>> {
  const networks = new Map<CryptoNetwork, ConfiguredNetwork>()
  for await (const [network, section] of eachSection(path, mode)) {
    const { fee_margin = FEE_MARGIN, minimum_deposit = {} } = section
    const { depth: confirmations, depths } = depthOf(network, section, mode)
    const treasury = treasuryOf(network, section, mode)
    const given = readerOf(network, environment)
    const family = await familyOf(NETWORKS[network].family)
    const connected = await family.connect(
      { network, db, mode, treasury, given, ...use },
      section,
      confirmations,
    )
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
        ...(!family.carriesMemo && { carriesNoMemo: true }),
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

function readerOf(network: CryptoNetwork, environment: Record<string, string | undefined>): GivenBySection {
  const nodes: GivenBySection['nodes'] = []
  const secretFiles: GivenBySection['secretFiles'] = []
  const secret: GivenBySection['secret'] = async (field, where) => {
    if ('file' in where) secretFiles.push({ field, path: where.file })
    return readSecret(`${network}.${field}`, where, environment)
  }
  const url: GivenBySection['url'] = async (field, where) => {
    const text = typeof where === 'string' ? where : await secret(field, where)
    const { protocol, host, hostname, username, password } = new URL(URL.canParse(text) ? text : 'none:')
    if (!/^https?:$/.test(protocol) || username || password)
      throw new Error(`${network}.${field} must be an http or https URL without a user and password in it`)
    nodes.push({ field, protocol, host, hostname })
    return text
  }
  const urls: GivenBySection['urls'] = async (field, where) => {
    if (!Array.isArray(where)) return [await url(field, where)]
    if (where.length === 0 || where.length > NODES_MAX)
      throw new Error(`${network}.${field} must be one node, or a list of 1 to ${NODES_MAX}`)
    const found: string[] = []
    for (const [index, one] of where.entries()) found.push(await url(`${field}[${index}]`, one))
    if (new Set(found).size < found.length) throw new Error(`${network}.${field} names a node twice`)
    return found
  }
  return { nodes, secretFiles, secret, url, urls }
}
