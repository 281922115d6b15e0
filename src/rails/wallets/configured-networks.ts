import type { Logger } from 'pino'
import { WrongChain } from '../../networks/chain-of-mode.ts'
import { formerWalletsIn, networkReports, type NetworkReport } from './network-status.ts'
import { configuredTokens, depthsText } from '../../networks/network-sections.ts'
import type { ConfiguredNetwork } from '../../networks/open-networks.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { failed, ok, warn, warnings, type Finding, type WarningRule } from '../../finding.ts'
import { isHere } from '../../http/transport-security.ts'
import { openMasterKeys } from '../../keys/master-keys.ts'
import { checkOtherReaders } from '../../keys/readers.ts'
import { checkSecretFile } from '../../keys/secret-file.ts'
import { givenBy } from '../../money/records/deposit-address.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { blame, type Settings } from '../../settings.ts'
import { foreignKeys } from './keys-on-record.ts'
import { withdrawalReader } from '../payouts/withdrawal-reader.ts'

type Opened = ReadonlyMap<CryptoNetwork, ConfiguredNetwork>

/** Opens the networks of BURSAR_NETWORKS_FILE. Throws `SettingsError` for an invalid file. */
export async function openNetworks(settings: Settings, db: Database): Promise<Opened> {
  if (settings.networksFile === undefined) return new Map()
  // The code that signs and asks nodes takes a quarter of a second to load.
  const { configuredNetworks } = await import('../../networks/open-networks.ts')
  return configuredNetworks(settings.networksFile, settings.environment, db, settings.mode, {
    signs: settings.worker,
    withdrawals: withdrawalReader,
    // The master key is read when it is needed: a command that only asks a node needs none.
    areGiven: async (deposits, places) =>
      givenBy(new RowMacs(await openMasterKeys(settings)))(deposits, places),
  }).catch(blame('BURSAR_NETWORKS_FILE'))
}

/**
 * Throws `SettingsError` for a node on a chain of the other mode, and for keys that are not those of the records. An
 * unreachable node is checked again before its first use.
 */
export async function requireChains(networks: Opened, db: Database, log: Logger): Promise<void> {
  for (const [network, { requireChain, isExperimental }] of networks) {
    if (isExperimental) log.warn(`the adapter of ${network} is experimental: try it on a test network first`)
    try {
      await requireChain?.()
    } catch (error) {
      if (error instanceof WrongChain) blame('BURSAR_NETWORKS_FILE')(error)
      log.warn({ err: error }, `cannot check which chain the node of ${network} is on: it did not answer`)
    }
  }
  const { foreign, notCompared } = await foreignKeys(db, networks)
  for (const [network, err] of notCompared)
    log.warn({ err }, `cannot check whether the keys of ${network} are those of the records`)
  if (foreign[0] !== undefined) blame('BURSAR_NETWORKS_FILE')(new Error(foreign[0]))
}

/** Whether the configured networks answer and hold what they should, and whether their settings are safe. */
export async function checkNetworks(db: Database | undefined, settings: Settings): Promise<Finding[]> {
  const { networksFile, mode } = settings
  if (networksFile === undefined)
    return mode === 'sandbox'
      ? [ok('all networks are simulated')]
      : [
          warn(
            'no network is configured: crypto withdrawals are refused',
            'configure networks in BURSAR_NETWORKS_FILE (docs/guides/networks.md)',
          ),
        ]
  if (db === undefined) {
    await configuredTokens(networksFile)
    const says = `${networksFile} is valid JSON; its networks cannot be checked without the database`
    return [warn(says, 'fix the database first')]
  }
  const opened = await openNetworks(settings, db)
  const { foreign, notCompared } = await foreignKeys(db, opened)
  const found = [
    ...foreign.map((says) => failed(says, 'nothing starts with other keys (docs/guides/networks.md)')),
    ...[...notCompared].map(([network, { message }]) =>
      warn(
        `${network}: its keys are not compared with the records: ${message}`,
        'start its node, and repeat',
      ),
    ),
    ...(await networkReports(db, opened)).map(judgeNetwork),
  ]
  if (mode === 'sandbox') return found
  const unsafe: Finding[] = []
  for (const opening of opened) unsafe.push(...(await checkSafety(...opening)))
  const keys = [...opened].flatMap(([name, { privateKeys }]) => checkPlaceOfKeys(name, privateKeys, settings))
  const files = [...opened.values()].flatMap(({ secretFiles, privateKeys }) =>
    secretFiles.filter(({ field }) => privateKeys.includes(field)).map(({ path }) => path),
  )
  return [
    ...found,
    ...unsafe,
    ...keys,
    ...(await checkOtherReaders('BURSAR_NETWORKS_FILE', networksFile, files)),
  ]
}

/** Warns of settings in the networks file that work but put real money at risk. */
async function checkSafety(name: CryptoNetwork, network: ConfiguredNetwork): Promise<Finding[]> {
  const { hasSecondNode, nodes, secretFiles, withoutMinimum, outOfReach, shallow } = network
  const unwitnessed = 'nothing is refunded and no large deposit is credited: one node is no witness'
  const advice = 'name a node of another operator in verify_rpc_url (docs/guides/networks.md)'
  const readable: Finding[] = []
  for (const { field, path } of secretFiles)
    for (const { says, advice } of await checkSecretFile(path))
      readable.push(warn(`${name}: ${says}, which holds ${field}`, advice!))
  const twice = nodes.flatMap(({ field, host }, index) => {
    const first = nodes.find((node) => node.host === host)!
    return field.startsWith('verify_rpc_url') && nodes.indexOf(first) < index ? [[field, first.field]] : []
  })
  return [
    ...(hasSecondNode ? [] : [failed(`${name}: no second node is configured: ${unwitnessed}`, advice)]),
    ...twice.map(([field, first]) =>
      failed(`${name}: ${field} has the same host as ${first}, so it confirms nothing`, advice),
    ),
    ...warnings(
      ...nodes.map(({ field, protocol, hostname }): WarningRule => [
        protocol === 'http:' && !isHere(hostname),
        `${name}: ${field} is on another machine and uses http: its answers can be forged on the way`,
        `use https in ${field}`,
      ]),
    ),
    ...readable,
    ...warnings(
      [
        shallow !== undefined,
        `${name}: ${shallow}`,
        'remove confirmations, or make it a list by from_usd (docs/guides/networks.md)',
      ],
      [
        withoutMinimum.length > 0,
        `${name}: deposits of ${withoutMinimum.join(', ')} have no minimum: sweeping a small deposit can cost more than its amount`,
        'remove minimum_deposit, or set it above 0 (docs/guides/networks.md)',
      ],
      [
        outOfReach.length > 0,
        `${name}: limits so high that they have no effect: ${outOfReach.join('; ')}`,
        'lower them, or remove them (docs/guides/networks.md)',
      ],
    ),
  ]
}

/**
 * Warns of private keys in a process that clients can reach. Only an unreachable worker process should hold them. Every
 * process serves requests; one that listens on this machine only counts as unreachable.
 */
function checkPlaceOfKeys(name: CryptoNetwork, privateKeys: string[], { worker, host }: Settings): Finding[] {
  const what = `${name}: this process holds the private ${privateKeys.join(' and ')}`
  const hasKeys = privateKeys.length > 0
  return warnings(
    [
      hasKeys && worker && !isHere(host),
      `${what}, and serves requests at ${host}`,
      'serve requests from processes with BURSAR_WORKER=false and no keys; let the worker listen on 127.0.0.1 (docs/guides/networks.md)',
    ],
    [
      hasKeys && !worker,
      `${what}, and runs no worker`,
      'configure hot_wallet_address and a public deposit_key instead (docs/guides/networks.md)',
    ],
  )
}

/** A signer process answers within seconds: after this long, a person must look. */
const ASKED_SECONDS = 300

export function judgeNetwork(report: NetworkReport): Finding {
  const { crypto_network: name, reachable, error, height, custody, taken_back } = report
  const locked = report.waiting.find(({ code }) => code === 'WALLET_LOCKED')
  if (!reachable)
    return failed(`${name}: ${error}`, `start its node, or correct its section of BURSAR_NETWORKS_FILE`)
  if (report.behind !== undefined)
    return failed(
      `${name}: ${report.behind}`,
      'wait until each node has its whole chain, or look why it does not go on',
    )
  const missing = custody.find(({ short }) => short)
  if (missing !== undefined)
    return failed(
      `${name}: holds ${missing.difference.slice(1)} ${missing.asset} less than the custody in the ledger`,
      'bursar networks status; send the missing amount to the hot wallet',
    )
  if (taken_back.length > 0)
    return warn(
      `${name}: a reorganisation removed ${taken_back.length} confirmed transactions`,
      'bursar networks status; the worker broadcasts them again',
    )
  if (locked !== undefined)
    return warn(
      `${name}: ${locked.count} withdrawals wait because the wallet is locked`,
      'a person must unlock it with its passphrase (docs/guides/networks-bitcoin.md)',
    )
  const { signer, asked } = report
  if (signer?.reachable === false)
    return failed(`${name}: ${signer.error}`, 'start the signer process (docs/guides/signer.md)')
  if (asked !== undefined && asked.oldest_seconds >= ASKED_SECONDS)
    return warn(
      `${name}: ${asked.count} withdrawals wait for the signer process, the first for ${asked.oldest_seconds} seconds`,
      'bursar networks status; allow them, or open its journal (docs/guides/signer.md)',
    )
  const [ask] = report.asks
  if (ask?.kind === 'REFILL')
    return warn(
      `${name}: the hot wallet is below its low mark: ${ask.amount} ${ask.asset} fill it up`,
      `bursar treasury refill --network ${name} --asset ${ask.asset}`,
    )
  const blocked = report.lanes.find((lane) => lane.blocked !== undefined)
  if (blocked !== undefined)
    return warn(
      `${name}: lane ${blocked.lane} signs nothing: ${blocked.blocked!.detail}`,
      'bursar networks status',
    )
  if (ask !== undefined)
    return warn(
      `${name}: the hot wallet is above its high mark: ${ask.amount} ${ask.asset} should go to cold storage`,
      `bursar treasury confirm --network ${name} --asset ${ask.asset} --amount ${ask.amount}`,
    )
  const refill = report.refills.find(({ detail }) => detail !== null)
  if (refill !== undefined)
    return warn(
      `${name}: refill ${refill.crypto_tx_hash} is not posted: ${refill.detail}`,
      `bursar wallet acknowledge --network ${name} --tx-hash ${refill.crypto_tx_hash}`,
    )
  const surplus = custody.find(({ unexplained }) => unexplained !== undefined)
  if (surplus !== undefined)
    return warn(
      `${name}: holds ${surplus.unexplained!} ${surplus.asset} that no deposit explains and nobody has acknowledged`,
      `bursar wallet acknowledge --network ${name} --tx-hash <hash of the transaction that brought it>`,
    )
  const former = formerWalletsIn(report).map(
    ({ address, held, asset }) => `${address} holds ${held} ${asset}`,
  )
  const left = former.length === 0 ? '' : `; of the former hot wallets, ${former.join(', ')}`
  const experimental = report.experimental ? '; its adapter is experimental' : ''
  const depths = report.confirmations_by_value
  const deposits = depths ? `; deposits need ${depthsText(depths)} confirmations` : ''
  return ok(`${name}: the node answers, at height ${height}${deposits}${left}${experimental}`)
}
