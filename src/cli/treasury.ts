import type { Command } from 'commander'
import { openAcceptanceKey } from '../keys/acceptance-key.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
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
import { inDatabase, type AtDatabase } from './command-line.ts'
import { group } from './define.ts'
import { OF_NETWORK } from './networks.ts'

const LIST_MAX = 1_000

const WORDS = {
  ...OF_NETWORK,
  '<id>': ['treasury transfer', uuid],
  '--to <address>': ['address in cold storage'],
  '--reference <text>': ['your own id for the transfer; each is carried out once'],
  '--max-fee-rate <amount>': [
    'highest fee rate, in coins for 1,000 virtual bytes, or gwei; the consolidation waits while fees are higher (default: the fee ceiling)',
  ],
  '--not-a-withdrawal': [
    'the transaction paid none of the withdrawals with its amount and address: they are still paid',
  ],
} as const

export function treasuryCommands(program: Command): void {
  const about = 'transfers between hot wallets and cold storage'
  const treasury = group(program, ['treasury', about], inDatabase, WORDS)
  treasury.command(
    'send --network <network> --asset <asset> --amount <amount> --to <address> --reference <text>',
    {
      about:
        'order a transfer from the hot wallet to cold storage, the network fee on top; the worker signs it after the withdrawals of customers. A repeat with the same reference changes nothing',
      run: async (at, { to: destination_address, ...asked }) =>
        shownOf(
          await orderTreasurySend(await orderingAt(at), await at.network(asked.network), {
            ...asked,
            destination_address,
          }),
        ),
      says: (ordered) => describe(ordered, 'Already ordered'),
      logs: 'ordered a treasury transfer',
      logged: ofOrder,
    },
  )
  treasury.command('confirm --network <network> --asset <asset> --amount <amount>', {
    about:
      'order the transfer to cold storage that is proposed while the hot wallet is above its high mark (bursar networks status), of at most the proposed amount',
    run: async (at, asked) =>
      shownOf(await confirmSend(await orderingAt(at), await at.network(asked.network), asked)),
    says: (ordered) => describe(ordered, 'Already ordered'),
    logs: 'confirmed a proposed treasury transfer',
    logged: ofOrder,
  })
  treasury.command('refill --network <network> --asset <asset> [--amount <amount>]', {
    about:
      'print the payment from cold storage that fills the hot wallet, below its low mark up to its target or by --amount, with the unsigned transaction where the network has one; changes nothing',
    run: async ({ db, network }, asked) => planRefill(db, await network(asked.network), asked),
    says: describeRefill,
  })
  treasury.list('list [--network <network>]', {
    about: `list treasury transfers and their status, newest first (${LIST_MAX} at most)`,
    key: 'transfers',
    none: 'There are no treasury transfers.',
    run: ({ db }, { network }) => selectTreasuryTransfers(db, network ?? null, LIST_MAX),
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
  treasury.command('cancel <id>', {
    about: 'cancel a treasury transfer or consolidation that is not signed',
    run: async ({ db, origin }, { id }) => ({
      id,
      changed: (await cancelTreasuryTransfer(db, id, origin)).changed,
    }),
    says: ({ id }) => `Treasury transfer ${id} is cancelled.`,
    logs: 'cancelled a treasury transfer',
    logged: ({ id }) => ({ transfer_id: id }),
  })
  walletCommands(program)
}

function walletCommands(program: Command): void {
  const wallet = group(program, ['wallet', 'the hot wallet of a network'], inDatabase, WORDS)
  wallet.command('consolidate --network <network> [--max-fee-rate <amount>]', {
    about:
      "order a transaction that merges the hot wallet's smallest coins (Bitcoin's family), or moves what a former hot wallet holds of an asset to the hot wallet (EVM); changes nothing while a consolidation is under way",
    run: async (at, { network, max_fee_rate }) =>
      shownOf(
        await orderConsolidation(await orderingAt(at), await at.network(network), network, max_fee_rate),
      ),
    says: (ordered) => describe(ordered, 'A consolidation is under way'),
    logs: 'ordered a consolidation',
    logged: ofOrder,
  })
  wallet.command('acknowledge --network <network> --tx-hash <hash> [--not-a-withdrawal]', {
    about:
      "confirm that a transaction made outside Bursar is the platform's own: it is posted as found on the chain, and no longer blocks the hot wallet",
    async run({ db, network: open, did, origin }, { network, tx_hash, not_a_withdrawal = false }) {
      const asked = { paysNoWithdrawal: not_a_withdrawal, origin }
      const said = await acknowledgeTransaction(db, await open(network), network, tx_hash, asked)
      const { not_paid: transfer_ids = [], crypto_network, crypto_tx_hash } = said
      if (transfer_ids.length > 0)
        did('declared that a transaction did not pay the withdrawals of its amount and address', {
          ...{ crypto_network, crypto_tx_hash, transfer_ids },
        })
      return said
    },
    says: describeAcknowledged,
    logs: 'acknowledged a transaction',
    logged: ({ not_paid: _, ...posted }) => posted,
  })
}

const orderingAt = async ({ db, settings, origin, keys }: AtDatabase) => ({
  db,
  macs: new RowMacs(await keys(), undefined, await openAcceptanceKey(settings)),
  origin,
})

const shownOf = ({ transfer, is_new }: Ordered) => ({ ...transfer, is_new })
type Shown = ReturnType<typeof shownOf>

const ofOrder = ({ id }: Shown, given: object) => ({ transfer_id: id, ...given })

const describe = (
  { id, amount, asset, crypto_network, destination_address, status, is_new }: Shown,
  unlessNew: string,
) =>
  `${is_new ? 'Ordered' : unlessNew}: ${amount} ${asset} over ${crypto_network} to ${destination_address}, ${status} (${id})`

function describeRefill({ network, asset, amount, from, to, unsigned, lacks }: PlannedRefill): string {
  const fields = Object.entries(unsigned ?? {}).map(([name, value]) => `  ${name}: ${value}`)
  return [
    `Refill of the hot wallet of ${network}: ${amount} ${asset}${from === undefined ? '' : ` from ${from}`} to ${to}`,
    ...(fields.length > 0
      ? ['Unsigned transaction:', ...fields]
      : [lacks ?? 'The wallet of cold storage makes the transaction.']),
  ].join('\n')
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
