import type { Command } from 'commander'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { openAcceptanceKey } from '../keys/acceptance-key.ts'
import { RowMacs } from '../audit/row-macs.ts'
import { acknowledgeTransaction, type Acknowledged } from '../rails/treasury/acknowledged.ts'
import {
  cancelTreasuryTransfer,
  orderConsolidation,
  orderTreasurySend,
  selectTreasuryTransfers,
  type Ordered,
} from '../rails/treasury/orders.ts'
import { confirmSend, planRefill, type PlannedRefill } from '../rails/treasury/refills.ts'
import { uuid } from './arguments.ts'
import { inDatabase, orBusy, type AtDatabase } from './command-line.ts'
import { define, type CommandOutput, type Subcommand } from './define.ts'
import { networkName, onNetwork, transactionHash } from './networks.ts'

const LIST_MAX = 1_000

export function treasuryCommands(program: Command): void {
  defineTransfers(define(program, 'treasury', 'transfers between hot wallets and cold storage'))
  defineWallet(define(program, 'wallet', 'the hot wallet of a network'))
}

interface SendOptions {
  network: CryptoNetwork
  asset: string
  amount: string
  to: string
  reference: string
}

function defineTransfers(treasury: Subcommand): void {
  define(
    treasury,
    'send',
    'order a transfer from the hot wallet to cold storage; the worker signs it after the withdrawals of customers. A repeat with the same reference changes nothing',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, as a decimal number; the network fee comes on top')
    .requiredOption('--to <address>', 'address in cold storage')
    .requiredOption('--reference <text>', 'your own id for the transfer; each is carried out once')
    .answer(onNetwork, async (at, { network, asset, amount, to, reference }: SendOptions) => {
      const send = { network, asset, amount, destination_address: to, reference }
      const { transfer, is_new } = await orderTreasurySend(await orderingAt(at), at.adapter, send)
      if (is_new) at.did('ordered a treasury transfer', { transfer_id: transfer.id, ...send })
      return answerOf({ transfer, is_new }, 'Already ordered')
    })
  defineAsked(treasury)
  define(treasury, 'list', `list treasury transfers and their status, newest first (${LIST_MAX} at most)`)
    .option('--network <network>', 'only transfers of this network', networkName)
    .list(inDatabase, {
      key: 'transfers',
      none: 'There are no treasury transfers.',
      read: ({ db }, { network }: { network?: CryptoNetwork }) =>
        selectTreasuryTransfers(db, network ?? null, LIST_MAX),
      columns: [
        ['created', ({ created_at }) => created_at],
        'id',
        ['reference', ({ reference }) => reference ?? '(consolidation)'],
        ['network', ({ crypto_network }) => crypto_network],
        ...(['>amount', 'asset'] as const),
        ['to', ({ destination_address }) => destination_address],
        'status',
        ['transaction', ({ crypto_tx_hash }) => crypto_tx_hash],
        ['waits', ({ waiting_detail }) => waiting_detail],
      ],
    })
  define(treasury, 'cancel', 'cancel a treasury transfer or consolidation that is not signed')
    .argument('<id>', 'treasury transfer', uuid)
    .answer(inDatabase, async ({ db, did, origin }, id: string) => {
      const busy = orBusy(`a worker is processing treasury transfer ${id}`)
      const { changed } = await cancelTreasuryTransfer(db, id, origin).catch(busy)
      if (changed) did('cancelled a treasury transfer', { transfer_id: id })
      return [{ id, changed }, `Treasury transfer ${id} is cancelled.`]
    })
}

/** What the marks of a network ask for: a send above the high mark, a refill below the low mark. */
function defineAsked(treasury: Subcommand): void {
  define(
    treasury,
    'confirm',
    'order the transfer to cold storage that is proposed while the hot wallet is above its high mark (bursar networks status)',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, at most the proposed one; the network fee comes on top')
    .answer(onNetwork, async (at, asked: Pick<SendOptions, 'network' | 'asset' | 'amount'>) => {
      const { transfer, is_new } = await confirmSend(await orderingAt(at), at.adapter, asked)
      if (is_new) at.did('confirmed a proposed treasury transfer', { transfer_id: transfer.id, ...asked })
      return answerOf({ transfer, is_new }, 'Already ordered')
    })
  define(
    treasury,
    'refill',
    'print the payment from cold storage that fills the hot wallet up to its target, with the unsigned transaction where the network has one; changes nothing',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--asset <asset>', 'asset')
    .option(
      '--amount <amount>',
      'amount (default: up to the target, while the hot wallet is below its low mark)',
    )
    .answer(onNetwork, async ({ db, adapter }, options: RefillOptions) => {
      const planned = await planRefill(db, adapter, options)
      return [planned, describeRefill(planned)]
    })
}

interface RefillOptions {
  network: CryptoNetwork
  asset: string
  amount?: string
}

function describeRefill({ network, asset, amount, from, to, unsigned, lacks }: PlannedRefill): string {
  const fields = Object.entries(unsigned ?? {}).map(([name, value]) => `  ${name}: ${value}`)
  return [
    `Refill of the hot wallet of ${network}: ${amount} ${asset}${from === undefined ? '' : ` from ${from}`} to ${to}`,
    ...(fields.length > 0
      ? ['Unsigned transaction:', ...fields]
      : [lacks ?? 'The wallet of cold storage makes the transaction.']),
  ].join('\n')
}

const orderingAt = async ({ db, settings, origin, keys }: AtDatabase) => ({
  db,
  macs: new RowMacs(await keys(), undefined, await openAcceptanceKey(settings)),
  origin,
})

function defineWallet(wallet: Subcommand): void {
  define(
    wallet,
    'consolidate',
    "order a transaction that merges the hot wallet's smallest coins (Bitcoin's family), or moves what a former hot wallet holds of an asset to the hot wallet (EVM); changes nothing while a consolidation is under way",
  )
    .requiredOption('--network <network>', 'network', networkName)
    .option(
      '--max-fee-rate <amount>',
      'highest fee rate, in coins for 1,000 virtual bytes, or gwei; the consolidation waits while fees are higher (default: the fee ceiling)',
    )
    .answer(onNetwork, async (at, options: { network: CryptoNetwork; maxFeeRate?: string }) => {
      const { network, maxFeeRate } = options
      const ordering = await orderingAt(at)
      const { transfer, is_new } = await orderConsolidation(ordering, at.adapter, network, maxFeeRate)
      if (is_new) at.did('ordered a consolidation', { transfer_id: transfer.id, network })
      return answerOf({ transfer, is_new }, 'A consolidation is under way')
    })
  define(
    wallet,
    'acknowledge',
    "confirm that a transaction made outside Bursar is the platform's own: it is posted as found on the chain, and no longer blocks the hot wallet",
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .option(
      '--not-a-withdrawal',
      'the transaction paid none of the withdrawals with its amount and address: they are still paid',
    )
    .answer(onNetwork, async ({ db, adapter, did, origin }, options: AcknowledgeOptions) => {
      const { network: crypto_network, txHash: crypto_tx_hash, notAWithdrawal = false } = options
      const asked = { paysNoWithdrawal: notAWithdrawal, origin }
      const said = await acknowledgeTransaction(db, adapter, crypto_network, crypto_tx_hash, asked)
      const { not_paid = [], ...posted } = said
      if (said.is_new) did('acknowledged a transaction', posted)
      if (not_paid.length > 0)
        did('declared that a transaction did not pay the withdrawals of its amount and address', {
          crypto_network,
          crypto_tx_hash,
          transfer_ids: not_paid,
        })
      return [said, describeAcknowledged(said)]
    })
}

interface AcknowledgeOptions {
  network: CryptoNetwork
  txHash: string
  notAWithdrawal?: boolean
}

function answerOf({ transfer, is_new }: Ordered, unlessNew: string): CommandOutput {
  const { id, amount, asset, crypto_network, destination_address, status } = transfer
  const what = `${amount} ${asset} over ${crypto_network} to ${destination_address}, ${status} (${id})`
  return [{ ...transfer, is_new }, `${is_new ? 'Ordered' : unlessNew}: ${what}`]
}

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
