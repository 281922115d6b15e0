import { InvalidArgumentError, Option, type Command } from 'commander'
import { tookTooLong, transaction } from '../db/database.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { sealWithdrawal, WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import { formerWalletsIn, networkReports, type NetworkReport } from '../networks/network-status.ts'
import type { TakenBack } from '../networks/network.ts'
import { openNetworks } from '../serve.ts'
import { cancelForOperator } from '../settlement/cancel-withdrawal.ts'
import { listOpenWithdrawals, OPEN_WITHDRAWALS_MAX } from '../settlement/open-withdrawals.ts'
import { markWithdrawalPaid } from '../settlement/mark-withdrawal-paid.ts'
import { resendWithdrawal } from '../settlement/resend-withdrawal.ts'
import { resolveWithdrawal } from '../settlement/resolve-withdrawal.ts'
import { logOperator, originOfCommand, requireCustomer, uuid, withDatabase } from './command-line.ts'
import { EXIT } from './exit.ts'
import { print, table } from './output.ts'
import { audited, recordNow } from '../records/audited.ts'

/** Defines `bursar networks` and `bursar withdrawal`. */
export function networkCommands(program: Command): void {
  const networks = program.command('networks').description('the configured real networks')
  defineDepositKey(networks)
  defineStatus(networks)
  const withdrawal = program.command('withdrawal').description('withdrawals that need a person')
  defineList(withdrawal)
  defineSeal(withdrawal)
  defineCancel(withdrawal)
  defineMarkPaid(withdrawal)
  defineResend(withdrawal)
  defineResolve(withdrawal)
}

function defineDepositKey(networks: Command): void {
  networks
    .command('deposit-key')
    .description(
      'print the extended public key of a network, for the deposit_key of processes that only issue addresses',
    )
    .argument('<network>', 'name of its section in BURSAR_NETWORKS_FILE')
    .option('--json', 'print JSON')
    .action((name: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const opened = await openNetworks(settings, db)
        const found = [...opened].find(([network]) => network === name)
        if (found === undefined) throw new Error(`there is no section ${name} in BURSAR_NETWORKS_FILE`)
        const { depositPublicKey } = found[1]
        if (depositPublicKey === undefined) throw new Error(`${name} has no deposit_key`)
        print(json ? { network: name, deposit_public_key: depositPublicKey } : depositPublicKey)
      }),
    )
}

function defineStatus(networks: Command): void {
  networks
    .command('status')
    .description(
      'compare the holdings of each network with the custody in the ledger, and list payments in flight and waiting; exit code 1 when a network does not answer, is frozen, holds too little or has lost transactions',
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const reports = await networkReports(db, await openNetworks(settings, db))
        if (json) print({ networks: reports })
        else if (reports.length === 0) print('No real network is configured: set BURSAR_NETWORKS_FILE.')
        else print(reports.map(describeNetwork).join('\n\n'))
        if (reports.some(isWrong)) process.exitCode = EXIT.failed
      }),
    )
}

function defineList(withdrawal: Command): void {
  withdrawal
    .command('list')
    .description(
      `list the withdrawals that have not ended, oldest first, at most ${OPEN_WITHDRAWALS_MAX}: how far they are, and why they wait`,
    )
    .option('--customer <id>', 'only of this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ customer, json }: { customer?: string; json?: true }) =>
      withDatabase(async (db) => {
        if (customer !== undefined) await requireCustomer(db, customer)
        const withdrawals = await listOpenWithdrawals(db, customer)
        if (json) print({ withdrawals })
        else if (withdrawals.length === 0) print('There are no open withdrawals.')
        else
          print(
            table(
              ['transfer_id', 'created_at', '>amount', 'asset', 'network', 'state', 'waits since', 'for'],
              withdrawals.map((one) => [
                ...[one.transfer_id, one.created_at, one.amount, one.asset, one.network, one.state],
                ...[one.waiting_since, one.waiting_detail],
              ]),
            ),
          )
      }),
    )
}

function defineSeal(withdrawal: Command): void {
  withdrawal
    .command('seal')
    .description(
      'accept a withdrawal as it is now, so that it is signed: it waits because it differs from the accepted request',
    )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const macs = new WithdrawalMacs(await openMasterKeys(settings))
        const sealed = await transaction(db, async (tx) => {
          const accepted = await sealWithdrawal(tx, macs, id)
          await recordNow(tx, accepted.customer_id, audited(originOfCommand(), 'transfer.seal', id))
          return accepted
        })
        logOperator(settings, 'sealed a withdrawal', { transfer_id: id, customer_id: sealed.customer_id })
        if (json) return print(sealed)
        const { customer_id, profile_id, asset, amount, network, destination, memo } = sealed
        print(`Withdrawal ${id} of customer ${customer_id}, profile ${profile_id}, is sealed:`)
        print(
          `it pays ${amount} ${asset} over ${network} to ${destination}${memo === null ? '' : `, memo ${memo}`}`,
        )
      }),
    )
}

function defineCancel(withdrawal: Command): void {
  withdrawal
    .command('cancel')
    .description(
      'cancel a withdrawal that is not signed: it becomes FAILED and its total is refunded, also for a frozen customer',
    )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const cancelled = await cancelForOperator(db, id, originOfCommand()).catch((error: unknown) => {
          if (tookTooLong(error)) throw new Error(`a worker is processing withdrawal ${id}; try again`)
          throw error
        })
        if (cancelled.changed) logOperator(settings, 'cancelled a withdrawal', { ...cancelled })
        print(json ? cancelled : `Withdrawal ${id} is cancelled, and its total is back on the profile.`)
      }),
    )
}

function defineMarkPaid(withdrawal: Command): void {
  withdrawal
    .command('mark-paid')
    .description(
      'name the hot-wallet transaction that already paid a withdrawal, for example after restoring a backup; the worker waits for its confirmations and pays nothing more',
    )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .option('--json', 'print JSON')
    .action((id: string, { txHash, json }: { txHash: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const real = await openNetworks(settings, db)
        const adapters = new Map([...real].map(([network, { adapter }]) => [network, adapter]))
        const marked = await markWithdrawalPaid(db, adapters, id, txHash, originOfCommand())
        logOperator(settings, 'marked a withdrawal as paid', { transfer_id: id, crypto_tx_hash: txHash })
        print(
          json ? marked : `Withdrawal ${id} is paid by ${marked.crypto_tx_hash} on ${marked.crypto_network}.`,
        )
      }),
    )
}

function defineResend(withdrawal: Command): void {
  withdrawal
    .command('resend')
    .description(
      'broadcast the stored transaction of a completed withdrawal again, after a reorganisation removed it; nothing is signed',
    )
    .argument('<transfer_id>', 'withdrawal', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const real = await openNetworks(settings, db)
        const adapters = new Map([...real].map(([network, { adapter }]) => [network, adapter]))
        const resent = await resendWithdrawal(db, adapters, id, originOfCommand())
        logOperator(settings, 'resent the transaction of a withdrawal', { ...resent })
        print(
          json
            ? resent
            : `Transaction ${resent.crypto_tx_hash} of withdrawal ${id} was broadcast again on ${resent.crypto_network}.`,
        )
      }),
    )
}

function defineResolve(withdrawal: Command): void {
  withdrawal
    .command('resolve')
    .description(
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
      evidenceText,
    )
    .option('--used-by <hash>', 'for sign-anew: the transaction with its nonce', transactionHash)
    .option('--json', 'print JSON')
    .action((id: string, { outcome, evidence = '', usedBy = '', json }: Resolving) =>
      withDatabase(async (db, settings) => {
        const real = await openNetworks(settings, db)
        const adapters = new Map([...real].map(([network, { adapter }]) => [network, adapter]))
        if ((outcome === 'sign-anew') !== (usedBy !== ''))
          throw new Error('sign-anew takes --used-by, and nothing else does')
        if ((outcome === 'sign-anew') === (evidence !== ''))
          throw new Error('paid and not-paid take --evidence')
        const decision = outcome === 'sign-anew' ? { usedBy } : outcome === 'paid' ? 'PAID' : 'NOT_PAID'
        const resolved = await resolveWithdrawal(db, adapters, id, decision, evidence, originOfCommand())
        logOperator(settings, 'resolved a withdrawal', {
          transfer_id: id,
          outcome,
          evidence,
          used_by: usedBy,
        })
        const next = resolved.status === 'PENDING' ? ', and is signed anew' : ''
        print(json ? resolved : `Withdrawal ${id} is ${resolved.status}${next}.`)
      }),
    )
}

interface Resolving {
  outcome: 'paid' | 'not-paid' | 'sign-anew'
  evidence?: string
  usedBy?: string
  json?: true
}

const EVIDENCE_MAX = 1_000

/** Parses the evidence for an operator's decision for commander. */
function evidenceText(text: string): string {
  if (text.trim() === '' || text.length > EVIDENCE_MAX)
    throw new InvalidArgumentError(`must be 1 to ${EVIDENCE_MAX} characters.`)
  return text
}

/** Parses a transaction hash, of Bitcoin's or of Ethereum's family, for commander. */
export function transactionHash(text: string): string {
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError('must be 64 hexadecimal digits.')
  return text.toLowerCase()
}

const isWrong = ({ reachable, below_low_mark, frozen, custody, taken_back }: NetworkReport) =>
  !reachable ||
  below_low_mark ||
  frozen.length > 0 ||
  taken_back.length > 0 ||
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

function describeNetwork(report: NetworkReport): string {
  const { crypto_network, reachable, error, height, confirmations, custody, in_flight, waiting } = report
  const flights = Object.entries(in_flight).map(([state, count]) => `${count} ${state}`)
  return [
    `${crypto_network}: ${reachable ? `at height ${height}, ${typeof confirmations === 'number' ? `${confirmations} confirmations` : `confirmed when ${confirmations}`}` : `NOT REACHABLE: ${error}`}`,
    ...custody.map(
      ({ asset, held, hot_wallet, in_custody, in_cold, difference, short }) =>
        `  ${asset}: holds ${held}${hot_wallet === undefined ? '' : ` (the hot wallet ${hot_wallet})`}, in custody ${in_custody}${in_cold === undefined ? '' : `, in cold storage ${in_cold}`}, difference ${difference}${short ? ': TOO LITTLE' : ''}`,
    ),
    ...formerWalletsIn(report).map(
      ({ address, held, asset }) => `  former hot wallet ${address}: ${held} ${asset}`,
    ),
    ...report.fees.map(
      ({ asset, collected, paid }) => `  fees in ${asset}: collected ${collected}, paid ${paid}`,
    ),
    ...(report.below_low_mark ? ['  THE HOT WALLET IS BELOW ITS LOW MARK'] : []),
    ...report.frozen.map(({ reason, detail, since }) => `  FROZEN since ${since} (${reason}): ${detail}`),
    ...report.taken_back.slice(0, TAKEN_BACK_SHOWN).map(describeTakenBack),
    ...(report.taken_back.length > TAKEN_BACK_SHOWN
      ? [`  and ${report.taken_back.length - TAKEN_BACK_SHOWN} more transactions`]
      : []),
    `  in flight: ${flights.length === 0 ? 'nothing' : flights.join(', ')}`,
    ...waiting.map(
      ({ code, detail, count, since }) => `  ${count} waiting since ${since}: ${code}: ${detail}`,
    ),
    ...report.uncredited.map(
      ({ reason, count, since }) => `  ${count} deposits not credited since ${since}: ${reason}`,
    ),
  ].join('\n')
}
