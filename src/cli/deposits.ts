import { InvalidArgumentError, type Command } from 'commander'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { resumeAfterReorganisation } from '../rails/deposits/deposit-reorganisations.ts'
import { selectUncredited, type ListedDeposit } from '../rails/deposits/incoming-transfers.ts'
import { creditSaidDeposit, rescanDeposits } from '../rails/deposits/recover-deposits.ts'
import { crediting, inDatabase, type CreditingContext } from './command-line.ts'
import { define, type Subcommand, type OpenContext } from './define.ts'
import { networkName, onNetwork, transactionHash, type AtNetwork } from './networks.ts'

const LIST_MAX = 1_000

export function depositCommands(program: Command): void {
  const deposits = define(program, 'deposits', 'deposits over real networks, for an operator')
  define(
    deposits,
    'list',
    `list uncredited deposits with the reason, credited deposits lost in a reorganisation, and sweeps without a known deposit (${LIST_MAX} at most)`,
  )
    .option('--network <network>', 'only of this network', networkName)
    .option('--waiting', 'only deposits that are not credited')
    .option('--reorganised', 'only credited deposits that a reorganisation removed')
    .option('--unattributed', 'only sweeps without a known deposit')
    .answer(inDatabase, async ({ db }, options: ListOptions) => {
      const listed = await selectUncredited(db, options.network ?? null, stateOf(options), LIST_MAX)
      const text = listed.map(describeDeposit).join('\n')
      return [{ deposits: listed }, text === '' ? 'Every deposit that was found is credited.' : text]
    })
  defineRescan(deposits)
  define(
    deposits,
    'credit',
    'credit an internal transfer of a contract to a deposit address, which the scan of blocks does not see',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--tx-hash <hash>', 'transaction', transactionHash)
    .requiredOption('--address <address>', 'deposit address')
    .requiredOption('--asset <asset>', 'asset')
    .requiredOption('--amount <amount>', 'amount, as a decimal number')
    .answer(toCredit, async ({ adapter, ...context }, options: CreditOptions) => {
      const { network, address, asset, amount, txHash: crypto_tx_hash } = options
      const said = { address, asset, amount, crypto_tx_hash }
      const transfer = await creditSaidDeposit(context, network, adapter, said, context.origin)
      const { id, profile_id } = transfer
      context.did('credited a deposit', { transfer_id: id, ...said })
      return [transfer, `Credited ${transfer.amount} ${asset} to profile ${profile_id}: ${id}.`]
    })
}

function defineRescan(deposits: Subcommand): void {
  define(
    deposits,
    'rescan',
    'scan blocks of a network again and credit missed deposits; no deposit is credited twice',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .requiredOption('--from <block>', 'first block', block)
    .requiredOption('--to <block>', 'last block', block)
    .answer(toCredit, async ({ adapter, ...context }, options: RescanOptions) => {
      const { network, from, to } = options
      const result = await rescanDeposits(context, network, adapter, options, context.origin)
      const blocks = { from: String(from), to: String(to) }
      context.did('read blocks for deposits again', { ...result, ...blocks })
      return [result, `Found ${result.found} missed deposits, credited ${result.credited}.`]
    })
  define(
    deposits,
    'resume',
    'after a reorganisation: resume scanning and paying; the profiles of lost deposits stay frozen',
  )
    .requiredOption('--network <network>', 'network', networkName)
    .option(
      '--from-block <block>',
      'scan from this block (default: the newest known block that is still in the chain)',
      block,
    )
    .answer(toCredit, async (at, { network, fromBlock }: { network: CryptoNetwork; fromBlock?: bigint }) => {
      const { db, adapter, origin } = at
      const macs = await at.rowMacs()
      const cursor = await resumeAfterReorganisation(db, network, adapter, { macs, origin, fromBlock })
      at.did('resumed a network after a reorganisation', { network, cursor })
      const gone = await selectUncredited(db, network, 'REORGANISED', LIST_MAX)
      const resumes = `${network} resumes${cursor === null ? '' : ` after block ${cursor.split(':')[0]!}`}.`
      const lost = gone.length === 0 ? [] : ['These credited deposits are gone:']
      return [{ network, cursor, gone }, [resumes, ...lost, ...gone.map(describeDeposit)].join('\n')]
    })
}

/** Opens a network, a ledger and screening for a command that credits deposits. */
const toCredit: OpenContext<AtNetwork & CreditingContext, { network: CryptoNetwork }> = (work, options) =>
  onNetwork((at) => crediting(at, work), options)

interface ListOptions {
  network?: CryptoNetwork
  waiting?: true
  reorganised?: true
  unattributed?: true
}

interface CreditOptions {
  network: CryptoNetwork
  txHash: string
  address: string
  asset: string
  amount: string
}

interface RescanOptions {
  network: CryptoNetwork
  from: bigint
  to: bigint
}

function stateOf({ waiting, reorganised, unattributed }: ListOptions): ListedDeposit['state'] | null {
  if (waiting) return 'WAITING'
  if (reorganised) return 'REORGANISED'
  return unattributed ? 'UNATTRIBUTED' : null
}

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
