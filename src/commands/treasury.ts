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
import { logOperator, originOfCommand, uuid, withDatabase } from './command-line.ts'
import { transactionHash } from './networks.ts'
import { print, table } from './output.ts'

/** Most treasury transfers in a list. */
const LIST_MAX = 1_000

/** Defines `bursar treasury` and `bursar wallet`. */
export function treasuryCommands(program: Command): void {
  const treasury = program.command('treasury').description('transfers between hot wallets and cold storage')
  defineSend(treasury)
  defineList(treasury)
  defineCancel(treasury)
  const wallet = program.command('wallet').description('the hot wallet of a network')
  defineConsolidate(wallet)
  defineAcknowledge(wallet)
}

function defineSend(treasury: Command): void {
  treasury
    .command('send')
    .description(
      'order a transfer from the hot wallet to cold storage; the worker signs it after the withdrawals of customers. A repeat with the same reference changes nothing',
    )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, as a decimal number; the network fee comes on top')
    .requiredOption('--to <address>', 'address in cold storage')
    .requiredOption('--reference <text>', 'your own id for the transfer; each is carried out once')
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
          const { transfer, is_new } = await orderTreasurySend(
            { db: context.db, macs, origin: originOfCommand() },
            adapter,
            send,
          )
          if (is_new)
            logOperator(context.settings, 'ordered a treasury transfer', {
              transfer_id: transfer.id,
              ...send,
            })
          if (options.json) print({ ...transfer, is_new })
          else print(`${is_new ? 'Ordered' : 'Already ordered'}: ${describeTransfer(transfer)}`)
        }),
    )
}

function defineList(treasury: Command): void {
  treasury
    .command('list')
    .description(`list treasury transfers and their status, newest first (${LIST_MAX} at most)`)
    .option('--network <network>', 'only transfers of this network', networkName)
    .option('--json', 'print JSON')
    .action((options: { network?: CryptoNetwork; json?: true }) =>
      withDatabase(async (db) => {
        const transfers = await selectTreasuryTransfers(db, options.network ?? null, LIST_MAX)
        if (options.json) return print({ transfers })
        if (transfers.length === 0) return print('There are no treasury transfers.')
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
}

function defineCancel(treasury: Command): void {
  treasury
    .command('cancel')
    .description('cancel a treasury transfer or consolidation that is not signed')
    .argument('<id>', 'treasury transfer', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const { changed } = await cancelTreasuryTransfer(db, id, originOfCommand()).catch(
          (error: unknown) => {
            if (tookTooLong(error))
              throw new Error(`a worker is processing treasury transfer ${id}; try again`)
            throw error
          },
        )
        if (changed) logOperator(settings, 'cancelled a treasury transfer', { transfer_id: id })
        print(json ? { id, changed } : `Treasury transfer ${id} is cancelled.`)
      }),
    )
}

function defineConsolidate(wallet: Command): void {
  wallet
    .command('consolidate')
    .description(
      "order a transaction that merges the hot wallet's smallest coins (Bitcoin's family); changes nothing while a consolidation is under way",
    )
    .requiredOption('--network <network>', 'network', networkName)
    .option(
      '--max-fee-rate <amount>',
      'highest fee rate, in coins for 1,000 virtual bytes; the consolidation waits while fees are higher (default: the fee ceiling)',
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; maxFeeRate?: string; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const macs = new WithdrawalMacs(await openMasterKeys(settings))
        const { transfer, is_new } = await orderConsolidation(
          { db, macs, origin: originOfCommand() },
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
        else print(`${is_new ? 'Ordered' : 'A consolidation is under way'}: ${describeTransfer(transfer)}`)
      }),
    )
}

function defineAcknowledge(wallet: Command): void {
  wallet
    .command('acknowledge')
    .description(
      "confirm that a transaction made outside Bursar is the platform's own: it is posted as found on the chain, and no longer blocks the hot wallet",
    )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .option(
      '--not-a-withdrawal',
      'the transaction paid none of the withdrawals with its amount and address: they are still paid',
    )
    .option('--json', 'print JSON')
    .action((options: { network: CryptoNetwork; txHash: string; notAWithdrawal?: true; json?: true }) =>
      onNetwork(options.network, async ({ db, settings }, adapter) => {
        const said = await acknowledgeTransaction(db, adapter, options.network, options.txHash, {
          paysNoWithdrawal: options.notAWithdrawal === true,
          origin: originOfCommand(),
        })
        const { not_paid = [], ...posted } = said
        if (said.is_new) logOperator(settings, 'acknowledged a transaction', posted)
        if (not_paid.length > 0)
          logOperator(
            settings,
            'declared that a transaction did not pay the withdrawals of its amount and address',
            {
              crypto_network: options.network,
              crypto_tx_hash: options.txHash,
              transfer_ids: not_paid,
            },
          )
        print(options.json ? said : describeAcknowledged(said))
      }),
    )
}

/** Runs a command on a real network. Throws an Error when the networks file has no section for it. */
const onNetwork = (
  name: CryptoNetwork,
  work: (context: { db: Database; settings: Settings }, adapter: NetworkAdapter) => Promise<void>,
) =>
  withDatabase(async (db, settings) => {
    const configured = (await openNetworks(settings, db)).get(name)
    if (configured === undefined) throw new Error(`${name} has no section in BURSAR_NETWORKS_FILE`)
    await work({ db, settings }, configured.adapter)
  })

/** Parses the name of a network for commander. */
function networkName(text: string): CryptoNetwork {
  const found = CRYPTO_NETWORKS.find((known) => known === text.toUpperCase())
  if (found === undefined) throw new InvalidArgumentError(`must be one of ${CRYPTO_NETWORKS.join(', ')}.`)
  return found
}

const describeTransfer = ({
  id,
  amount,
  asset,
  crypto_network,
  destination_address,
  status,
}: TreasuryTransfer) =>
  `${amount} ${asset} over ${crypto_network} to ${destination_address}, ${status} (${id})`

function describeAcknowledged({
  crypto_tx_hash,
  crypto_network,
  moved = [],
  networkFee,
  is_new,
}: Acknowledged): string {
  if (!is_new) return `${crypto_tx_hash} was already acknowledged.`
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
