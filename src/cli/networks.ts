import { InvalidArgumentError, Option, type Command } from 'commander'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { transaction } from '../db/database.ts'
import { RowMacs } from '../audit/row-macs.ts'
import { sealWithdrawal } from '../audit/withdrawal-macs.ts'
import { depthsText } from '../networks/network-sections.ts'
import { formerWalletsIn, networkReports, type NetworkReport } from '../rails/wallets/network-status.ts'
import type { Ask } from '../networks/marks.ts'
import type { NetworkAdapter } from '../networks/network.ts'
import type { LaneStatus, TakenBack } from '../networks/wallet-status.ts'
import { openNetworks } from '../rails/wallets/configured-networks.ts'
import { cancelForOperator } from '../rails/payouts/cancel-withdrawal.ts'
import { listOpenWithdrawals, OPEN_WITHDRAWALS_MAX } from '../rails/payouts/open-withdrawals.ts'
import { markWithdrawalPaid } from '../rails/payouts/mark-withdrawal-paid.ts'
import { resendWithdrawal } from '../rails/payouts/resend-withdrawal.ts'
import { resolveWithdrawal } from '../rails/payouts/resolve-withdrawal.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { openAcceptanceKey } from '../keys/acceptance-key.ts'
import { textUpTo, uuid } from './arguments.ts'
import { inDatabase, orBusy, withDatabase, type AtDatabase } from './command-line.ts'
import { define, type Subcommand, type OpenContext, oneOf } from './define.ts'
import { EXIT } from './exit.ts'
import { ownProcess } from './own-process.ts'

export function networkCommands(program: Command): void {
  const networks = define(program, 'networks', 'the configured real networks')
  define(
    networks,
    'deposit-key',
    'print the public key of a network, for the deposit_key of processes that only issue addresses',
  )
    .argument('<network>', 'name of its section in BURSAR_NETWORKS_FILE')
    .answer(inDatabase, async ({ db, settings }, name: string) => {
      const opened = await openNetworks(settings, db)
      const found = [...opened].find(([network]) => network === name)
      if (found === undefined) throw new Error(`there is no section ${name} in BURSAR_NETWORKS_FILE`)
      const { depositPublicKey } = found[1]
      if (depositPublicKey === undefined) throw new Error(`${name} has no deposit_key`)
      return [{ network: name, deposit_public_key: depositPublicKey }, depositPublicKey]
    })
  define(
    networks,
    'status',
    'compare the holdings of each network with the custody in the ledger, and list payments in flight and waiting; exit code 1 when a network does not answer, is frozen, holds too little or has lost transactions',
  ).answer(inDatabase, async ({ db, settings }) => {
    const reports = await networkReports(db, await openNetworks(settings, db))
    if (reports.some(isWrong)) ownProcess().exitCode = EXIT.failed
    const none = 'No real network is configured: set BURSAR_NETWORKS_FILE.'
    return [{ networks: reports }, reports.length === 0 ? none : reports.map(describeNetwork).join('\n\n')]
  })
  const withdrawal = define(program, 'withdrawal', 'withdrawals that need a person')
  defineOpen(withdrawal)
  defineSent(withdrawal)
  defineResolve(withdrawal)
}

function defineOpen(withdrawal: Subcommand): void {
  define(
    withdrawal,
    'list',
    `list the withdrawals that have not ended, oldest first, at most ${OPEN_WITHDRAWALS_MAX}: how far they are, and why they wait`,
  )
    .option('--customer <id>', 'only of this customer', uuid)
    .list(inDatabase, {
      key: 'withdrawals',
      none: 'There are no open withdrawals.',
      read: ({ db }, { customer }: { customer?: string }) => listOpenWithdrawals(db, customer),
      columns: [
        ...(['transfer_id', 'created_at', '>amount', 'asset', 'network', 'state'] as const),
        ['waits since', ({ waiting_since }) => waiting_since],
        ['for', ({ waiting_detail }) => waiting_detail],
      ],
    })
  define(
    withdrawal,
    'seal',
    'accept a withdrawal as it is now, so that it is signed: it waits because it differs from the accepted request',
  )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .answer(inDatabase, async ({ db, settings, did, origin, keys }, id: string) => {
      const macs = new RowMacs(await keys(), undefined, await openAcceptanceKey(settings))
      const sealed = await transaction(db, async (tx) => {
        const accepted = await sealWithdrawal(tx, macs, id)
        await recordNow(tx, accepted.customer_id, audited(origin, 'transfer.seal', id))
        return accepted
      })
      const { customer_id, profile_id, asset, amount, network, destination, memo } = sealed
      did('sealed a withdrawal', { transfer_id: id, customer_id })
      return [
        sealed,
        `Withdrawal ${id} of customer ${customer_id}, profile ${profile_id}, is sealed:\n` +
          `it pays ${amount} ${asset} over ${network} to ${destination}${memo === null ? '' : `, memo ${memo}`}`,
      ]
    })
  define(
    withdrawal,
    'cancel',
    'cancel a withdrawal that is not signed: it becomes FAILED and its total is refunded, also for a frozen customer',
  )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .answer(inDatabase, async ({ db, did, origin }, id: string) => {
      const busy = orBusy(`a worker is processing withdrawal ${id}`)
      const cancelled = await cancelForOperator(db, id, origin).catch(busy)
      if (cancelled.changed) did('cancelled a withdrawal', { ...cancelled })
      return [cancelled, `Withdrawal ${id} is cancelled, and its total is back on the profile.`]
    })
}

function defineSent(withdrawal: Subcommand): void {
  define(
    withdrawal,
    'mark-paid',
    'name the hot-wallet transaction that already paid a withdrawal, for example after restoring a backup; the worker waits for its confirmations and pays nothing more',
  )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .answer(onNetworks, async ({ db, adapters, did, origin }, id: string, { txHash }: { txHash: string }) => {
      const marked = await markWithdrawalPaid(db, adapters, id, txHash, origin)
      did('marked a withdrawal as paid', { transfer_id: id, crypto_tx_hash: txHash })
      return [marked, `Withdrawal ${id} is paid by ${marked.crypto_tx_hash} on ${marked.crypto_network}.`]
    })
  define(
    withdrawal,
    'resend',
    'broadcast the stored transaction of a completed withdrawal again, after a reorganisation removed it; nothing is signed',
  )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .answer(onNetworks, async ({ db, adapters, did, origin }, id: string) => {
      const resent = await resendWithdrawal(db, adapters, id, origin)
      did('resent the transaction of a withdrawal', { ...resent })
      const { crypto_tx_hash, crypto_network } = resent
      return [
        resent,
        `Transaction ${crypto_tx_hash} of withdrawal ${id} was broadcast again on ${crypto_network}.`,
      ]
    })
}

const EVIDENCE_LENGTH_MAX = 1_000

function defineResolve(withdrawal: Subcommand): void {
  define(
    withdrawal,
    'resolve',
    'decide a withdrawal whose outcome the network does not prove: paid completes it, not-paid refunds it; sign-anew, if the transaction of --used-by has used its nonce',
  )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .addOption(
      new Option('--outcome <outcome>', 'decision')
        .choices(['paid', 'not-paid', 'sign-anew'])
        .makeOptionMandatory(),
    )
    .option(
      '--evidence <text>',
      'for paid and not-paid: what you checked, and where; kept with the record',
      textUpTo(EVIDENCE_LENGTH_MAX),
    )
    .option('--used-by <hash>', 'for sign-anew: the transaction with its nonce', transactionHash)
    .answer(onNetworks, async ({ db, adapters, did, origin }, id: string, options: Resolving) => {
      const { outcome, evidence = '', usedBy = '' } = options
      if ((outcome === 'sign-anew') !== (usedBy !== ''))
        throw new Error('sign-anew takes --used-by, and nothing else does')
      if ((outcome === 'sign-anew') === (evidence !== ''))
        throw new Error('paid and not-paid take --evidence')
      const decision = outcome === 'sign-anew' ? { usedBy } : outcome === 'paid' ? 'PAID' : 'NOT_PAID'
      const resolved = await resolveWithdrawal(db, adapters, id, { outcome: decision, evidence, origin })
      did('resolved a withdrawal', { transfer_id: id, outcome, evidence, used_by: usedBy })
      const next = resolved.status === 'PENDING' ? ', and is signed anew' : ''
      return [resolved, `Withdrawal ${id} is ${resolved.status}${next}.`]
    })
}

interface Resolving {
  outcome: 'paid' | 'not-paid' | 'sign-anew'
  evidence?: string
  usedBy?: string
}

const onNetworks: OpenContext<AtDatabase & { adapters: Map<CryptoNetwork, NetworkAdapter> }> = (work) =>
  withDatabase({}, async (at) => {
    const real = await openNetworks(at.settings, at.db)
    await work({ ...at, adapters: new Map([...real].map(([network, { adapter }]) => [network, adapter])) })
  })

/** A real network as a command works with it. */
export type AtNetwork = AtDatabase & { adapter: NetworkAdapter }

/** Opens the database and one real network for a command. Throws an Error when the networks file has no section for it. */
export const onNetwork: OpenContext<AtNetwork, { network: CryptoNetwork }> = (work, { network }) =>
  withDatabase({}, async (at) => {
    const configured = (await openNetworks(at.settings, at.db)).get(network)
    if (configured === undefined) throw new Error(`${network} has no section in BURSAR_NETWORKS_FILE`)
    await work({ ...at, adapter: configured.adapter })
  })

export const networkName = oneOf(CRYPTO_NETWORKS)

/** Parses the transaction hash of a Bitcoin-family or EVM network for commander. */
export function transactionHash(text: string): string {
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError('must be 64 hexadecimal digits.')
  return text.toLowerCase()
}

const isWrong = ({ reachable, below_low_mark, frozen, custody, lanes, signer, taken_back }: NetworkReport) =>
  !reachable ||
  signer?.reachable === false ||
  below_low_mark ||
  frozen.length > 0 ||
  taken_back.length > 0 ||
  lanes.some(({ blocked }) => blocked !== undefined) ||
  custody.some(({ short }) => short)

/** One line about a transaction that a reorganisation removed, and what happens next. */
function describeTakenBack({ nonce, crypto_tx_hash, transfer_id, top_up, refunded }: TakenBack): string {
  const what =
    transfer_id !== undefined
      ? `withdrawal ${transfer_id}`
      : top_up !== undefined
        ? `gas for ${top_up}`
        : 'unknown to Bursar'
  const next =
    refunded === true
      ? 'refunded, not broadcast again'
      : crypto_tx_hash === undefined
        ? 'no stored transaction to broadcast'
        : 'the worker broadcasts it again'
  return `  NO LONGER IN THE CHAIN: nonce ${nonce} (${what}): ${next}`
}

/** Most lost transactions that are listed. */
const TAKEN_BACK_SHOWN = 10

function describeLane({ lane, held = {}, in_flight, journal, blocked }: LaneStatus): string {
  const amounts = Object.entries(held).flatMap(([asset, amount]) =>
    amount === '0' ? [] : `${amount} ${asset}`,
  )
  const parts = [
    ...amounts,
    `${in_flight} in flight`,
    journal && `the signer's next nonce ${journal.next_nonce}${describeAhead(journal)}`,
    blocked && `BLOCKED: ${blocked.detail}`,
  ]
  return `  lane ${lane}: ${parts.filter(Boolean).join(', ')}`
}

const describeAhead = ({ ahead }: NonNullable<LaneStatus['journal']>) =>
  ahead === 0 ? '' : ahead > 0 ? `, ${ahead} AHEAD of the database` : `, ${-ahead} behind the database`

const describeAsk = (network: CryptoNetwork, { kind, asset, amount, to }: Ask) =>
  kind === 'REFILL'
    ? `  THE HOT WALLET IS BELOW ITS LOW MARK: ${amount} ${asset} fill it up (bursar treasury refill --network ${network} --asset ${asset})`
    : `  above the high mark: send ${amount} ${asset} to ${to} (bursar treasury confirm --network ${network} --asset ${asset} --amount ${amount})`

const describeStuck = ({ transfer_id, crypto_tx_hash, seconds }: NonNullable<NetworkReport['stuck']>) =>
  `  STUCK: withdrawal ${transfer_id} is in no block ${Math.floor(seconds / 60)} min after it was signed: ${crypto_tx_hash}`

function describeNetwork(report: NetworkReport): string {
  const { crypto_network, reachable, error, height, confirmations, custody, in_flight, waiting } = report
  const { behind, confirmations_by_value: depths, signer } = report
  const flights = Object.entries(in_flight).map(([state, count]) => `${count} ${state}`)
  const lines = [
    `${crypto_network}: ${reachable ? `at height ${height}, ${typeof confirmations === 'number' ? `${confirmations} confirmations` : `confirmed when ${confirmations}`}` : `NOT REACHABLE: ${error}`}`,
    behind && `  THE NODE IS BEHIND: ${behind}`,
    depths && `  deposits need ${depthsText(depths)} confirmations`,
    report.experimental && '  its adapter is EXPERIMENTAL: try it on a test network first',
    ...custody.map(
      ({ asset, held, hot_wallet, in_custody, in_cold, difference, short, unexplained }) =>
        `  ${asset}: holds ${held}${hot_wallet === undefined ? '' : ` (the hot wallet ${hot_wallet})`}, in custody ${in_custody}${in_cold === undefined ? '' : `, in cold storage ${in_cold}`}, difference ${difference}${short ? ': TOO LITTLE' : unexplained === undefined ? '' : `: ${unexplained} NOT ACKNOWLEDGED`}`,
    ),
    ...formerWalletsIn(report).map(
      ({ address, held, asset }) => `  former hot wallet ${address}: ${held} ${asset}`,
    ),
    ...report.lanes.map(describeLane),
    signer && `  signer: ${signer.reachable ? 'answers' : `DOWN: ${signer.error}`}`,
    ...report.fees.map(
      ({ asset, collected, paid }) => `  fees in ${asset}: collected ${collected}, paid ${paid}`,
    ),
    ...report.asks.map((ask) => describeAsk(crypto_network, ask)),
    ...report.refills.map(
      ({ crypto_tx_hash, since, detail }) =>
        `  refill ${crypto_tx_hash} is not posted since ${since}: ${detail ?? 'it was just found'}`,
    ),
    ...report.frozen.map(({ reason, detail, since }) => `  FROZEN since ${since} (${reason}): ${detail}`),
    ...report.taken_back.slice(0, TAKEN_BACK_SHOWN).map(describeTakenBack),
    report.taken_back.length > TAKEN_BACK_SHOWN &&
      `  and ${report.taken_back.length - TAKEN_BACK_SHOWN} more transactions`,
    `  in flight: ${flights.length === 0 ? 'nothing' : flights.join(', ')}`,
    report.stuck && describeStuck(report.stuck),
    report.asked && `  the first ASKED has waited ${report.asked.oldest_seconds} s for the signer`,
    ...waiting.map(
      ({ code, detail, count, since }) => `  ${count} waiting since ${since}: ${code}: ${detail}`,
    ),
    ...report.uncredited.map(
      ({ reason, count, since }) => `  ${count} deposits not credited since ${since}: ${reason}`,
    ),
  ]
  return lines.filter(Boolean).join('\n')
}
