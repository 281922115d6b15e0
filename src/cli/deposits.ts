import { InvalidArgumentError, type Command } from 'commander'
import { resumeAfterReorganisation } from '../rails/deposits/deposit-reorganisations.ts'
import { selectUncredited, type ListedDeposit } from '../rails/deposits/incoming-transfers.ts'
import { creditSaidDeposit, rescanDeposits } from '../rails/deposits/recover-deposits.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { OF_NETWORK } from './networks.ts'

const LIST_MAX = 1_000

const WORDS = {
  ...OF_NETWORK,
  '--waiting': ['only deposits that are not credited'],
  '--reorganised': ['only credited deposits that a reorganisation removed'],
  '--unattributed': ['only sweeps without a known deposit'],
  '--address <address>': ['deposit address'],
  '--from <block>': ['first block', block],
  '--to <block>': ['last block', block],
  '--from-block <block>': [
    'scan from this block (default: the newest known block that is still in the chain)',
    block,
  ],
} as const

export function depositCommands(program: Command): void {
  const about = 'deposits over real networks, for an operator'
  const deposits = group(program, ['deposits', about], inDatabase, WORDS)
  deposits.command('list [--network <network>] [--waiting] [--reorganised] [--unattributed]', {
    about: `list uncredited deposits with the reason, credited deposits lost in a reorganisation, and sweeps without a known deposit (${LIST_MAX} at most)`,
    run: async ({ db }, { network, waiting, reorganised, unattributed }) => {
      const state = waiting ? 'WAITING' : reorganised ? 'REORGANISED' : unattributed ? 'UNATTRIBUTED' : null
      return { deposits: await selectUncredited(db, network ?? null, state, LIST_MAX) }
    },
    says: ({ deposits: listed }) =>
      listed.length === 0
        ? 'Every deposit that was found is credited.'
        : listed.map(describeDeposit).join('\n'),
  })
  deposits.command('rescan --network <network> --from <block> --to <block>', {
    about: 'scan blocks of a network again and credit missed deposits; no deposit is credited twice',
    run: async (at, { network, from, to }) =>
      rescanDeposits(await at.crediting(), network, await at.network(network), { from, to }, at.origin),
    says: ({ found, credited }) => `Found ${found} missed deposits, credited ${credited}.`,
    logs: 'read blocks for deposits again',
    logged: (result, { from, to }) => ({ ...result, from: String(from), to: String(to) }),
  })
  deposits.command('resume --network <network> [--from-block <block>]', {
    about: 'after a reorganisation: resume scanning and paying; the profiles of lost deposits stay frozen',
    async run(at, { network, from_block: fromBlock }) {
      const { db, origin } = at
      const said = { macs: await at.rowMacs(), origin, fromBlock }
      const cursor = await resumeAfterReorganisation(db, network, await at.network(network), said)
      return { network, cursor, gone: await selectUncredited(db, network, 'REORGANISED', LIST_MAX) }
    },
    says({ network, cursor, gone }) {
      const resumes = `${network} resumes${cursor === null ? '' : ` after block ${cursor.split(':')[0]!}`}.`
      const lost = gone.length === 0 ? [] : ['These credited deposits are gone:']
      return [resumes, ...lost, ...gone.map(describeDeposit)].join('\n')
    },
    logs: 'resumed a network after a reorganisation',
    logged: ({ network, cursor }) => ({ network, cursor }),
  })
  deposits.command(
    'credit --network <network> --tx-hash <hash> --address <address> --asset <asset> --amount <amount>',
    {
      about:
        'credit an internal transfer of a contract to a deposit address, which the scan of blocks does not see',
      run: async (at, { network, tx_hash: crypto_tx_hash, address, asset, amount }) => {
        const said = { address, asset, amount, crypto_tx_hash }
        return creditSaidDeposit(await at.crediting(), network, await at.network(network), said, at.origin)
      },
      says: ({ id, amount, asset, profile_id }) =>
        `Credited ${amount} ${asset} to profile ${profile_id}: ${id}.`,
      logs: 'credited a deposit',
      logged: ({ id }, given) => ({ transfer_id: id, ...given }),
    },
  )
}

function block(text: string): bigint {
  if (!/^[0-9]{1,12}$/.test(text)) throw new InvalidArgumentError('must be the number of a block.')
  return BigInt(text)
}

const describeDeposit = (deposit: ListedDeposit) =>
  `${deposit.found_at}  ${deposit.network}  ${deposit.amount} ${deposit.asset}  to ${deposit.address}  by ${deposit.crypto_tx_hash}: ` +
  (deposit.state === 'REORGANISED'
    ? 'CREDITED AND GONE'
    : deposit.state === 'UNATTRIBUTED'
      ? 'SWEPT, NO DEPOSIT FOUND'
      : (deposit.reason ?? 'about to be credited')) +
  (deposit.detail === null ? '' : ` (${deposit.detail})`)
