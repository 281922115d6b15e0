import { InvalidArgumentError, type Command } from 'commander'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { Ledger } from '../movements/queue.ts'
import type { NetworkAdapter } from '../networks/network.ts'
import { openNetworks } from '../serve.ts'
import type { Settings } from '../settings.ts'
import { resumeAfterReorganisation } from '../settlement/deposit-reorganisations.ts'
import { selectUncredited, type ListedDeposit } from '../settlement/incoming-transfers.ts'
import { creditSaidDeposit, rescanDeposits } from '../settlement/recover-deposits.ts'
import { logOperator, withDatabase } from './command-line.ts'
import { print } from './output.ts'
import { transactionHash } from './networks.ts'

/** Most deposits that are listed. */
const LIST_MAX = 1_000

/** `bursar deposits`. */
export function depositCommands(program: Command): void {
  const deposits = program.command('deposits').description('deposits over real networks, for an operator')

  deposits
    .command('list')
    .description(
      `the deposits that are not credited, and why, those that a reorganisation took back, and what was swept and no deposit was found for (${LIST_MAX} at most)`,
    )
    .option('--network <network>', 'only of this network', network)
    .option('--waiting', 'only those that are not credited')
    .option('--reorganised', 'only those that were credited and are gone')
    .option('--unattributed', 'only what was swept and no deposit was found for')
    .option('--json', 'print JSON')
    .action((options: ListOptions) =>
      withDatabase(async (db) => {
        const state = stateOf(options)
        const listed = await selectUncredited(db, options.network ?? null, state, LIST_MAX)
        if (options.json) print({ deposits: listed })
        else
          print(
            listed.length === 0 ? 'Every deposit that was found is credited.' : listed.map(textOf).join('\n'),
          )
      }),
    )

  deposits
    .command('rescan')
    .description('read blocks of a network again, and credit what was missed in them; credits nothing twice')
    .requiredOption('--network <network>', 'network', network)
    .requiredOption('--from <block>', 'first block', block)
    .requiredOption('--to <block>', 'last block', block)
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; from: bigint; to: bigint; json?: true }) =>
      onNetwork(options.network, async (context, adapter) => {
        const result = await rescanDeposits(context, options.network, adapter, options.from, options.to)
        const { found, credited } = result
        logOperator(context.settings, 'read blocks for deposits again', { ...result, ...blocksOf(options) })
        print(options.json ? result : `Found ${found} deposits that were missed, credited ${credited}.`)
      }),
    )

  deposits
    .command('resume')
    .description(
      'after a reorganisation: go on with reading and paying; the profiles of lost deposits stay frozen',
    )
    .requiredOption('--network <network>', 'network', network)
    .option(
      '--from-block <block>',
      'read from this block on, instead of the newest one that is known and still there',
      block,
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; fromBlock?: bigint; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const cursor = await resumeAfterReorganisation(db, options.network, adapter, options.fromBlock)
        logOperator(settings, 'let a network go on after a reorganisation', {
          network: options.network,
          cursor,
        })
        const gone = await selectUncredited(db, options.network, 'REORGANISED', LIST_MAX)
        if (options.json) return print({ network: options.network, cursor, gone })
        print(`${options.network} goes on${cursor === null ? '' : ` behind block ${cursor.split(':')[0]!}`}.`)
        if (gone.length > 0)
          print(['These deposits were credited and are gone:', ...gone.map(textOf)].join('\n'))
      }),
    )

  deposits
    .command('credit')
    .description(
      'credit what a contract has paid to a deposit address while it ran, which reading does not see',
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
          const transfer = await creditSaidDeposit(context, options.network, adapter, said)
          logOperator(context.settings, 'credited a deposit', { transfer_id: transfer.id, ...said })
          print(
            options.json
              ? transfer
              : `Credited ${transfer.amount} ${asset} to profile ${transfer.profile_id}: ${transfer.id}.`,
          )
        }),
    )
}

/** The blocks of a rescan, as text: JSON has no bigint. */
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

/** Runs a command on a real network of the file. Throws an Error when it has no section there. */
const onNetwork = (
  name: CryptoNetwork,
  work: (
    context: { db: Database; ledger: Ledger; settings: Settings },
    adapter: NetworkAdapter,
  ) => Promise<void>,
) =>
  withDatabase(async (db, settings) => {
    const configured = (await openNetworks(settings, db)).get(name)
    if (configured === undefined) throw new Error(`${name} has no section in BURSAR_NETWORKS_FILE`)
    const ledger = new Ledger(db)
    try {
      await work({ db, ledger, settings }, configured.adapter)
    } finally {
      await ledger.drain()
    }
  })

/** Reads the name of a network. For commander. */
function network(text: string): CryptoNetwork {
  const found = CRYPTO_NETWORKS.find((known) => known === text.toUpperCase())
  if (found === undefined) throw new InvalidArgumentError(`must be one of ${CRYPTO_NETWORKS.join(', ')}.`)
  return found
}

/** Reads the number of a block. For commander. */
function block(text: string): bigint {
  if (!/^[0-9]{1,12}$/.test(text)) throw new InvalidArgumentError('must be the number of a block.')
  return BigInt(text)
}

const textOf = (one: ListedDeposit) =>
  `${one.found_at}  ${one.network}  ${one.amount} ${one.asset}  to ${one.address}  by ${one.crypto_tx_hash}: ` +
  (one.state === 'REORGANISED'
    ? 'CREDITED AND GONE'
    : one.state === 'UNATTRIBUTED'
      ? 'SWEPT, NO DEPOSIT FOUND'
      : (one.reason ?? 'about to be credited')) +
  (one.detail === null ? '' : ` (${one.detail})`)
