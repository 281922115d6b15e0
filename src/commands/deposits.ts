import { InvalidArgumentError, type Command } from 'commander'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { Ledger } from '../movements/queue.ts'
import { WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import type { NetworkAdapter } from '../networks/network.ts'
import { openNetworks } from '../serve.ts'
import { openScreeningOfCommand } from '../screening/open-screening.ts'
import type { Screening } from '../screening/screening.ts'
import type { Settings } from '../settings.ts'
import { resumeAfterReorganisation } from '../settlement/deposit-reorganisations.ts'
import { selectUncredited, type ListedDeposit } from '../settlement/incoming-transfers.ts'
import { creditSaidDeposit, rescanDeposits } from '../settlement/recover-deposits.ts'
import { logOperator, openRowMacs, originOfCommand, withDatabase } from './command-line.ts'
import { print } from './output.ts'
import { transactionHash } from './networks.ts'

/** Most deposits in a list. */
const LIST_MAX = 1_000

/** Defines `bursar deposits`. */
export function depositCommands(program: Command): void {
  const deposits = program.command('deposits').description('deposits over real networks, for an operator')
  defineList(deposits)
  defineRescan(deposits)
  defineResume(deposits)
  defineCredit(deposits)
}

function defineList(deposits: Command): void {
  deposits
    .command('list')
    .description(
      `list uncredited deposits with the reason, credited deposits lost in a reorganisation, and sweeps without a known deposit (${LIST_MAX} at most)`,
    )
    .option('--network <network>', 'only of this network', network)
    .option('--waiting', 'only deposits that are not credited')
    .option('--reorganised', 'only credited deposits that a reorganisation removed')
    .option('--unattributed', 'only sweeps without a known deposit')
    .option('--json', 'print JSON')
    .action((options: ListOptions) =>
      withDatabase(async (db) => {
        const state = stateOf(options)
        const listed = await selectUncredited(db, options.network ?? null, state, LIST_MAX)
        if (options.json) print({ deposits: listed })
        else
          print(
            listed.length === 0
              ? 'Every deposit that was found is credited.'
              : listed.map(describeDeposit).join('\n'),
          )
      }),
    )
}

function defineRescan(deposits: Command): void {
  deposits
    .command('rescan')
    .description('scan blocks of a network again and credit missed deposits; no deposit is credited twice')
    .requiredOption('--network <network>', 'network', network)
    .requiredOption('--from <block>', 'first block', block)
    .requiredOption('--to <block>', 'last block', block)
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; from: bigint; to: bigint; json?: true }) =>
      onNetwork(options.network, async (context, adapter) => {
        const result = await rescanDeposits(context, options.network, adapter, options, originOfCommand())
        const { found, credited } = result
        logOperator(context.settings, 'read blocks for deposits again', { ...result, ...blocksOf(options) })
        print(options.json ? result : `Found ${found} missed deposits, credited ${credited}.`)
      }),
    )
}

function defineResume(deposits: Command): void {
  deposits
    .command('resume')
    .description(
      'after a reorganisation: resume scanning and paying; the profiles of lost deposits stay frozen',
    )
    .requiredOption('--network <network>', 'network', network)
    .option(
      '--from-block <block>',
      'scan from this block (default: the newest known block that is still in the chain)',
      block,
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; fromBlock?: bigint; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const cursor = await resumeAfterReorganisation(
          db,
          options.network,
          adapter,
          await openRowMacs(settings),
          originOfCommand(),
          options.fromBlock,
        )
        logOperator(settings, 'resumed a network after a reorganisation', {
          network: options.network,
          cursor,
        })
        const gone = await selectUncredited(db, options.network, 'REORGANISED', LIST_MAX)
        if (options.json) return print({ network: options.network, cursor, gone })
        print(`${options.network} resumes${cursor === null ? '' : ` after block ${cursor.split(':')[0]!}`}.`)
        if (gone.length > 0)
          print(['These credited deposits are gone:', ...gone.map(describeDeposit)].join('\n'))
      }),
    )
}

function defineCredit(deposits: Command): void {
  deposits
    .command('credit')
    .description(
      'credit an internal transfer of a contract to a deposit address, which the scan of blocks does not see',
    )
    .requiredOption('--network <network>', 'network', network)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .requiredOption('--address <address>', 'deposit address')
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, as a decimal number')
    .option('--json', 'print JSON')
    .action(
      (options: {
        network: CryptoNetwork
        txHash: string
        address: string
        asset: string
        amount: string
        json?: true
      }) =>
        onNetwork(options.network, async (context, adapter) => {
          const { address, asset, amount, txHash: crypto_tx_hash } = options
          const said = { address, asset, amount, crypto_tx_hash }
          const transfer = await creditSaidDeposit(context, options.network, adapter, said, originOfCommand())
          logOperator(context.settings, 'credited a deposit', { transfer_id: transfer.id, ...said })
          print(
            options.json
              ? transfer
              : `Credited ${transfer.amount} ${asset} to profile ${transfer.profile_id}: ${transfer.id}.`,
          )
        }),
    )
}

/** The blocks of a rescan as text, because JSON has no bigint. */
const blocksOf = ({ from, to }: { from: bigint; to: bigint }) => ({ from: String(from), to: String(to) })

interface ListOptions {
  network?: CryptoNetwork
  waiting?: true
  reorganised?: true
  unattributed?: true
  json?: true
}

function stateOf({ waiting, reorganised, unattributed }: ListOptions): ListedDeposit['state'] | null {
  if (waiting) return 'WAITING'
  if (reorganised) return 'REORGANISED'
  return unattributed ? 'UNATTRIBUTED' : null
}

/** Runs a command on a real network. Throws an Error when the networks file has no section for it. */
const onNetwork = (
  name: CryptoNetwork,
  work: (
    context: { db: Database; ledger: Ledger; settings: Settings; screening: Screening | undefined },
    adapter: NetworkAdapter,
  ) => Promise<void>,
) =>
  withDatabase(async (db, settings) => {
    const configured = (await openNetworks(settings, db)).get(name)
    if (configured === undefined) throw new Error(`${name} has no section in BURSAR_NETWORKS_FILE`)
    const screening = await openScreeningOfCommand(db, settings)
    const ledger = new Ledger(db, { macs: new WithdrawalMacs(await openMasterKeys(settings)) })
    try {
      await work({ db, ledger, settings, screening }, configured.adapter)
    } finally {
      await ledger.drain()
    }
  })

/** Parses the name of a network for commander. */
function network(text: string): CryptoNetwork {
  const found = CRYPTO_NETWORKS.find((known) => known === text.toUpperCase())
  if (found === undefined) throw new InvalidArgumentError(`must be one of ${CRYPTO_NETWORKS.join(', ')}.`)
  return found
}

/** Parses the number of a block for commander. */
function block(text: string): bigint {
  if (!/^[0-9]{1,12}$/.test(text)) throw new InvalidArgumentError('must be the number of a block.')
  return BigInt(text)
}

const describeDeposit = (one: ListedDeposit) =>
  `${one.found_at}  ${one.network}  ${one.amount} ${one.asset}  to ${one.address}  by ${one.crypto_tx_hash}: ` +
  (one.state === 'REORGANISED'
    ? 'CREDITED AND GONE'
    : one.state === 'UNATTRIBUTED'
      ? 'SWEPT, NO DEPOSIT FOUND'
      : (one.reason ?? 'about to be credited')) +
  (one.detail === null ? '' : ` (${one.detail})`)
