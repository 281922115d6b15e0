import { InvalidArgumentError, type Command } from 'commander'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import { tookTooLong, type Database } from '../db/database.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import type { TreasuryTransfer } from '../records/treasury.ts'
import { WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import type { NetworkAdapter } from '../networks/network.ts'
import { openNetworks } from '../serve.ts'
import type { Settings } from '../settings.ts'
import {
  acknowledgeTransaction,
  cancelTreasuryTransfer,
  orderConsolidation,
  orderTreasurySend,
  selectTreasuryTransfers,
  type Acknowledged,
} from '../settlement/treasury.ts'
import { logOperator, uuid, withDatabase } from './command-line.ts'
import { transactionHash } from './networks.ts'
import { print, table } from './output.ts'

/** Most treasury transfers that are listed. */
const LIST_MAX = 1_000

/** `bursar treasury` and `bursar wallet`. */
export function treasuryCommands(program: Command): void {
  const treasury = program.command('treasury').description('moves between hot wallets and cold storage')

  treasury
    .command('send')
    .description(
      'order an amount to be moved from the hot wallet to cold storage: the worker signs it, behind what customers withdraw; repeated with the same reference it changes nothing',
    )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, as a decimal number; the network fee comes on top')
    .requiredOption('--to <address>', 'address in cold storage')
    .requiredOption('--reference <text>', 'your own name for it, under which it is done once')
    .option('--json', 'print JSON')
    .action(
      (options: {
        network: CryptoNetwork
        asset: string
        amount: string
        to: string
        reference: string
        json?: true
      }) =>
        onNetwork(options.network, async (context, adapter) => {
          const { network, asset, amount, to: destination_address, reference } = options
          const macs = new WithdrawalMacs(await openMasterKeys(context.settings))
          const send = { network, asset, amount, destination_address, reference }
          const { transfer, is_new } = await orderTreasurySend({ db: context.db, macs }, adapter, send)
          if (is_new)
            logOperator(context.settings, 'ordered a treasury transfer', {
              transfer_id: transfer.id,
              ...send,
            })
          if (options.json) print({ ...transfer, is_new })
          else print(`${is_new ? 'Ordered' : 'It was ordered before'}: ${textOf(transfer)}`)
        }),
    )

  treasury
    .command('list')
    .description(`what was ordered and how far it is, the newest first (${LIST_MAX} at most)`)
    .option('--network <network>', 'only of this network', networkName)
    .option('--json', 'print JSON')
    .action((options: { network?: CryptoNetwork; json?: true }) =>
      withDatabase(async (db) => {
        const transfers = await selectTreasuryTransfers(db, options.network ?? null, LIST_MAX)
        if (options.json) return print({ transfers })
        if (transfers.length === 0) return print('Nothing was ordered.')
        const columns = [
          'created',
          'id',
          'reference',
          'network',
          '>amount',
          'asset',
          'to',
          'status',
          'transaction',
          'waits',
        ]
        print(
          table(
            columns,
            transfers.map((one) => [
              one.created_at,
              one.id,
              one.reference ?? '(consolidation)',
              one.crypto_network,
              one.amount,
              one.asset,
              one.destination_address,
              one.status,
              one.crypto_tx_hash,
              one.waiting_detail,
            ]),
          ),
        )
      }),
    )

  treasury
    .command('cancel')
    .description('cancel a treasury transfer or consolidation that is not signed')
    .argument('<id>', 'treasury transfer', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const { changed } = await cancelTreasuryTransfer(db, id).catch((error: unknown) => {
          if (tookTooLong(error))
            throw new Error(`a worker holds treasury transfer ${id} just now; try again`)
          throw error
        })
        if (changed) logOperator(settings, 'cancelled a treasury transfer', { transfer_id: id })
        print(json ? { id, changed } : `Treasury transfer ${id} is cancelled.`)
      }),
    )

  const wallet = program.command('wallet').description('the hot wallet of a network')

  wallet
    .command('consolidate')
    .description(
      "merge the hot wallet's smallest coins into one (Bitcoin's family): the worker signs it; while one is under way, it changes nothing",
    )
    .requiredOption('--network <network>', 'network', networkName)
    .option(
      '--max-fee-rate <amount>',
      'most to pay, in coins for 1,000 virtual bytes; above it the consolidation waits (default: the fee ceiling)',
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; maxFeeRate?: string; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const macs = new WithdrawalMacs(await openMasterKeys(settings))
        const { transfer, is_new } = await orderConsolidation(
          { db, macs },
          adapter,
          options.network,
          options.maxFeeRate,
        )
        if (is_new)
          logOperator(settings, 'ordered a consolidation', {
            transfer_id: transfer.id,
            network: options.network,
          })
        if (options.json) print({ ...transfer, is_new })
        else print(`${is_new ? 'Ordered' : 'One is under way'}: ${textOf(transfer)}`)
      }),
    )

  wallet
    .command('acknowledge')
    .description(
      "say that a transaction made outside of Bursar is the platform's own: it is posted as the chain tells it, and does not hold up the hot wallet any more",
    )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .option(
      '--not-a-withdrawal',
      'it has paid none of the withdrawals that ask for its amount and address: these are paid beside it',
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; txHash: string; notAWithdrawal?: true; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const said = await acknowledgeTransaction(db, adapter, options.network, options.txHash, {
          paysNoWithdrawal: options.notAWithdrawal === true,
        })
        const { not_paid = [], ...posted } = said
        if (said.is_new) logOperator(settings, 'acknowledged a transaction', posted)
        if (not_paid.length > 0)
          logOperator(
            settings,
            'said that a transaction has not paid withdrawals of its amount and address',
            {
              crypto_network: options.network,
              crypto_tx_hash: options.txHash,
              transfer_ids: not_paid,
            },
          )
        print(options.json ? said : acknowledgedText(said))
      }),
    )
}

/** Runs a command on a real network of the file. Throws an Error when it has no section there. */
const onNetwork = (
  name: CryptoNetwork,
  work: (context: { db: Database; settings: Settings }, adapter: NetworkAdapter) => Promise<void>,
) =>
  withDatabase(async (db, settings) => {
    const configured = (await openNetworks(settings, db)).get(name)
    if (configured === undefined) throw new Error(`${name} has no section in BURSAR_NETWORKS_FILE`)
    await work({ db, settings }, configured.adapter)
  })

/** Reads the name of a network. For commander. */
function networkName(text: string): CryptoNetwork {
  const found = CRYPTO_NETWORKS.find((known) => known === text.toUpperCase())
  if (found === undefined) throw new InvalidArgumentError(`must be one of ${CRYPTO_NETWORKS.join(', ')}.`)
  return found
}

const textOf = ({ id, amount, asset, crypto_network, destination_address, status }: TreasuryTransfer) =>
  `${amount} ${asset} over ${crypto_network} to ${destination_address}, ${status} (${id})`

function acknowledgedText({
  crypto_tx_hash,
  crypto_network,
  moved = [],
  networkFee,
  is_new,
}: Acknowledged): string {
  if (!is_new) return `${crypto_tx_hash} was acknowledged before.`
  const what = [
    ...moved.map(({ asset, amount }) =>
      amount.startsWith('-')
        ? `${amount.slice(1)} ${asset} to cold storage`
        : `${amount} ${asset} from cold storage`,
    ),
    ...(networkFee === undefined ? [] : [`a fee of ${networkFee.amount} ${networkFee.asset}`]),
  ]
  return `${crypto_tx_hash} of ${crypto_network} is posted: ${what.join(', ')}.`
}
