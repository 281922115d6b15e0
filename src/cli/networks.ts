import { CRYPTO_NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Command } from 'commander'
import { transaction } from '../db/database.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
import { depthsText } from '../networks/network-sections.ts'
import { formerWalletsIn, networkReports, type NetworkReport } from '../rails/wallets/network-status.ts'
import type { Ask } from '../networks/marks.ts'
import type { LaneStatus, TakenBack } from '../networks/wallet-status.ts'
import { openNetworks } from '../rails/wallets/configured-networks.ts'
import { cancelForOperator } from '../rails/payouts/cancel-withdrawal.ts'
import { listOpenWithdrawals, OPEN_WITHDRAWALS_MAX } from '../rails/payouts/open-withdrawals.ts'
import { markWithdrawalPaid } from '../rails/payouts/mark-withdrawal-paid.ts'
import { resendWithdrawal } from '../rails/payouts/resend-withdrawal.ts'
import { resolveWithdrawal, type Resolution } from '../rails/payouts/resolve-withdrawal.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { openAcceptanceKey } from '../keys/acceptance-key.ts'
import { COMMON, textUpTo, transactionHash, uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group, oneOf } from './define.ts'
import { sealWithdrawal } from '../money/movements/accepted-withdrawals.ts'

const EVIDENCE_LENGTH_MAX = 1_000

/** Words of commands about a network. */
export const OF_NETWORK = {
  '--network <network>': ['network', oneOf(CRYPTO_NETWORKS)],
  '--tx-hash <hash>': ['transaction', transactionHash],
  '--asset <asset>': ['asset'],
  '--amount <amount>': ['amount, as a decimal number'],
} as const

const WORDS = {
  ...COMMON,
  ...OF_NETWORK,
  '<network>': ['name of its section in BURSAR_NETWORKS_FILE'],
  '<transfer_id>': ['withdrawal', uuid],
  '--outcome <outcome>': ['decision', ['paid', 'not-paid', 'sign-anew']],
  '--evidence <text>': [
    'for paid and not-paid: what you checked, and where; kept with the record',
    textUpTo(EVIDENCE_LENGTH_MAX),
  ],
  '--used-by <hash>': ['for sign-anew: the transaction with its nonce', transactionHash],
} as const

export function networkCommands(program: Command): void {
  const networks = group(program, ['networks', 'the configured real networks'], inDatabase, WORDS)
  networks.command('deposit-key <network>', {
    about: 'print the public key of a network, for the deposit_key of processes that only issue addresses',
    async run({ db, settings }, { network: name }) {
      const opened = await openNetworks(settings, db)
      const found = [...opened].find(([network]) => network === name)
      if (found === undefined) throw new Error(`there is no section ${name} in BURSAR_NETWORKS_FILE`)
      const { depositPublicKey } = found[1]
      if (depositPublicKey === undefined) throw new Error(`${name} has no deposit_key`)
      return { network: name, deposit_public_key: depositPublicKey }
    },
    says: ({ deposit_public_key }) => deposit_public_key,
  })
  networks.command('status', {
    about:
      'compare the holdings of each network with the custody in the ledger, and list payments in flight and waiting; exit code 1 when a network does not answer, is frozen, holds too little or has lost transactions',
    run: async ({ db, settings }) => ({
      networks: await networkReports(db, await openNetworks(settings, db)),
    }),
    says: ({ networks }) =>
      networks.length === 0
        ? 'No real network is configured: set BURSAR_NETWORKS_FILE.'
        : networks.map(describeNetwork).join('\n\n'),
    fails: ({ networks }) => networks.some(isWrong),
  })
  withdrawalCommands(program)
}

function withdrawalCommands(program: Command): void {
  const withdrawal = group(program, ['withdrawal', 'withdrawals that need a person'], inDatabase, WORDS)
  withdrawal.list('list [--customer <id>]', {
    about: `list the withdrawals that have not ended, oldest first, at most ${OPEN_WITHDRAWALS_MAX}: how far they are, and why they wait`,
    key: 'withdrawals',
    none: 'There are no open withdrawals.',
    run: ({ db }, { customer }) => listOpenWithdrawals(db, customer),
    columns: [
      ...(['transfer_id', 'created_at', '>amount', 'asset', 'network', 'state'] as const),
      ['waits since', ({ waiting_since }) => waiting_since],
      ['for', ({ waiting_detail }) => waiting_detail],
    ],
  })
  withdrawal.command('seal <transfer_id>', {
    about:
      'accept a withdrawal as it is now, so that it is signed: it waits because it differs from the accepted request',
    async run({ db, settings, origin, keys }, { transfer_id }) {
      const macs = new RowMacs(await keys(), undefined, await openAcceptanceKey(settings))
      return transaction(db, async (tx) => {
        const accepted = await sealWithdrawal(tx, macs, transfer_id)
        await recordNow(tx, accepted.customer_id, audited(origin, 'transfer.seal', transfer_id))
        return accepted
      })
    },
    says: ({ customer_id, profile_id, asset, amount, network, destination, memo }, { transfer_id }) =>
      `Withdrawal ${transfer_id} of customer ${customer_id}, profile ${profile_id}, is sealed:\n` +
      `it pays ${amount} ${asset} over ${network} to ${destination}${memo === null ? '' : `, memo ${memo}`}`,
    logs: 'sealed a withdrawal',
  })
  withdrawal.command('cancel <transfer_id>', {
    about:
      'cancel a withdrawal that is not signed: it becomes FAILED and its total is refunded, also for a frozen customer',
    run: ({ db, origin }, { transfer_id }) => cancelForOperator(db, transfer_id, origin),
    says: (_, { transfer_id }) =>
      `Withdrawal ${transfer_id} is cancelled, and its total is back on the profile.`,
    logs: 'cancelled a withdrawal',
  })
  withdrawal.command('mark-paid <transfer_id> --tx-hash <hash>', {
    about:
      'name the hot-wallet transaction that already paid a withdrawal, for example after restoring a backup; the worker waits for its confirmations and pays nothing more',
    run: async ({ db, networks, origin }, { transfer_id, tx_hash }) =>
      markWithdrawalPaid(db, await networks(), transfer_id, tx_hash, origin),
    says: ({ transfer_id, crypto_tx_hash, crypto_network }) =>
      `Withdrawal ${transfer_id} is paid by ${crypto_tx_hash} on ${crypto_network}.`,
    logs: 'marked a withdrawal as paid',
  })
  withdrawal.command('resend <transfer_id>', {
    about:
      'broadcast the stored transaction of a completed withdrawal again, after a reorganisation removed it; nothing is signed',
    run: async ({ db, networks, origin }, { transfer_id }) =>
      resendWithdrawal(db, await networks(), transfer_id, origin),
    says: ({ transfer_id, crypto_tx_hash, crypto_network }) =>
      `Transaction ${crypto_tx_hash} of withdrawal ${transfer_id} was broadcast again on ${crypto_network}.`,
    logs: 'resent the transaction of a withdrawal',
  })
  withdrawal.command('resolve <transfer_id> --outcome <outcome> [--evidence <text>] [--used-by <hash>]', {
    about:
      'decide a withdrawal whose outcome the network does not prove: paid completes it, not-paid refunds it; sign-anew, if the transaction of --used-by has used its nonce',
    async run({ db, networks, origin }, { transfer_id, evidence = '', ...given }) {
      const outcome = resolutionOf(given.outcome, evidence, given.used_by)
      return resolveWithdrawal(db, await networks(), transfer_id, { outcome, evidence, origin })
    },
    says: ({ transfer_id, status }) =>
      `Withdrawal ${transfer_id} is ${status}${status === 'PENDING' ? ', and is signed anew' : ''}.`,
    logs: 'resolved a withdrawal',
  })
}

function resolutionOf(
  outcome: 'paid' | 'not-paid' | 'sign-anew',
  evidence: string,
  usedBy: string | undefined,
): Resolution {
  if ((outcome === 'sign-anew') !== (usedBy !== undefined))
    throw new Error('sign-anew takes --used-by, and nothing else does')
  if ((outcome === 'sign-anew') === (evidence !== '')) throw new Error('paid and not-paid take --evidence')
  if (usedBy !== undefined) return { usedBy }
  return outcome === 'paid' ? 'PAID' : 'NOT_PAID'
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
    behind && `  A NODE IS BEHIND: ${behind}`,
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
