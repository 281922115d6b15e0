import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { JsonWebKey } from 'node:crypto'
import { define, offline, type Subcommand } from './define.ts'
import { EXIT, fail, stopSignal } from './exit.ts'
import { ownProcess } from './own-process.ts'
import type { Signer } from '../../signer/service.ts'

export function signerCommands(program: Command): void {
  const signer = define(
    program,
    'signer',
    'the process that has the keys of the hot wallets (docs/guides/signer.md)',
  )
  define(signer, 'start', 'sign what the configuration allows, until it is stopped; no database is used')
    .requiredOption('--config <file>', 'JSON file')
    .answer(offline, async (_, { config: path }: { config: string }) => {
      const { serveSigner } = await import('../../signer/serve.ts')
      const { config, journal, running } = await openSigner(path)
      const server = await serveSigner(running, config.listen)
      stopSignal().addEventListener('abort', () => {
        server.close(() => void journal.close().then(() => ownProcess().exit(EXIT.done), fail))
        server.closeAllConnections()
      })
      const wallets = await running.status()
      const lines = wallets.map(
        ({ network, wallet, next_nonce }) =>
          `  ${network} ${wallet}: ${next_nonce === null ? "not opened, see 'bursar signer open'" : `next nonce ${next_nonce}`}`,
      )
      return [{ ready: true, wallets }, ['The signer is ready.', ...lines].join('\n')]
    })
  defineSign(signer)
  defineChange(
    signer,
    'open',
    'begin a journal that is new, was lost, or was restored from a backup, at a nonce',
  )
  defineChange(signer, 'allow', 'allow transfers from before the journal began, which were not signed')
  defineChange(
    signer,
    'void',
    'allow a transfer to be signed anew: what was signed for it can never be mined',
  )
  defineChange(signer, 'fill', 'use up a nonce with a transaction of nothing, and print it')
}

/** The signer of a file, in this process. */
async function openSigner(path: string) {
  const [{ readSignerConfig }, { Journal }, { Signer }] = await Promise.all([
    import('../../signer/config.ts'),
    import('../../signer/journal.ts'),
    import('../../signer/service.ts'),
  ])
  const config = await readSignerConfig(path, ownProcess().env)
  const journal = await Journal.open(config.journal)
  return { config, journal, running: new Signer(config, journal) }
}

/** Works with the signer of a file, in this process. */
async function inSigner<T>(path: string, work: (signer: Signer) => Promise<T>): Promise<T> {
  const { journal, running } = await openSigner(path)
  try {
    return await work(running)
  } finally {
    await journal.close()
  }
}

/** Signing by hand: the requests and the answers are files. */
function defineSign(signer: Subcommand): void {
  define(
    signer,
    'sign',
    'show requests that were carried here as files; with --answers, sign what the configuration allows',
  )
    .argument('<request...>', "files of the worker's folder requests")
    .requiredOption('--config <file>', 'JSON file')
    .option('--answers <folder>', "where the answers are written, for the worker's folder answers")
    .list(offline, {
      key: 'requests',
      read: async (_, files: string[], options: { config: string; answers?: string }) => {
        const { answerRequest, readRequests } = await import('../../signer/by-hand.ts')
        const requests = await readRequests(files)
        const { answers } = options
        if (answers === undefined) return requests.map(({ shown }) => ({ ...shown, outcome: 'asked' }))
        return inSigner(options.config, async (running) => {
          const rows = []
          for (const request of requests) {
            const refused = await answerRequest(running, request, answers)
            if (refused !== undefined) ownProcess().exitCode = EXIT.failed
            const outcome = refused === undefined ? 'signed' : `refused: ${refused}`
            rows.push({ ...request.shown, outcome })
          }
          return rows
        })
      },
      columns: ['transfer_id', '>amount', 'asset', 'network', 'destination', 'wallet', '>nonce', 'outcome'],
    })
}

/** How long approvals count by default; the signer takes 24 hours at most, by its own clock. */
const VALID_MS = 23 * 3_600_000

interface ChangeOptions {
  network: string
  wallet?: string
  nonce?: string
  transfer?: string | string[]
  transfersFrom?: string
  gas?: string
  gasPrice?: string
  expires?: string
  key?: string
  approvals?: string
  socket?: string
  config?: string
}

/** A change of the journal: with `--key` it is approved, with `--socket` or `--config` it is made. */
function defineChange(
  signer: Subcommand,
  name: 'open' | 'allow' | 'void' | 'fill',
  description: string,
): void {
  const command = define(
    signer,
    name,
    `${description}; with --key, sign that you approve; with --socket or --config, do it`,
  ).requiredOption('--network <network>', 'network')
  if (name === 'allow') command.requiredOption('--transfer <id...>', 'transfers')
  else
    command.requiredOption('--wallet <address>', 'hot wallet').requiredOption(
      '--nonce <number>',
      {
        open: 'first nonce that nothing was signed with',
        void: 'nonce that another transaction has used',
        fill: 'nonce',
      }[name],
    )
  if (name === 'open')
    command.requiredOption(
      '--transfers-from <time>',
      'withdrawals from before are signed only if they are on record: when the journal was lost, or 1970-01-01T00:00:00.000Z for a new one',
    )
  if (name === 'void') command.requiredOption('--transfer <id>', 'transfer')
  if (name === 'fill')
    command
      .requiredOption('--gas-price <wei>', 'most wei for a unit of gas')
      .option('--gas <number>', 'gas; a rollup may take more for publishing', '21000')
  command
    .option(
      '--expires <time>',
      'when the approvals expire, as the first approver was told; by default in 23 hours',
    )
    .option('--key <file>', 'your key file')
    .option('--approvals <file>', 'what --key printed for each approver; /dev/stdin reads it from a pipe')
    .option('--socket <path>', "the signer's unix socket")
    .option('--config <file>', "the signer's JSON file, on its machine, while it does not run")
    .answer(offline, async (_, options: ChangeOptions) => {
      const [{ readChange, changeText }, { signStatement }, { signerClient }] = await Promise.all([
        import('../../signer/journal-changes.ts'),
        import('../governance/approvals/approval-statement.ts'),
        import('../../chains/evm/remote-signer.ts'),
      ])
      const { network, wallet, transfer, key, approvals: path, socket, config } = options
      const nonce = Number(options.nonce)
      const expires_at = options.expires ?? new Date(Date.now() + VALID_MS).toISOString()
      const change = readChange({
        ...{ kind: name.toUpperCase(), network, wallet, nonce, next_nonce: nonce, expires_at },
        ...{ transfer_id: transfer, transfer_ids: transfer },
        ...{
          transfers_from: options.transfersFrom,
          gas: Number(options.gas),
          max_fee_per_gas: options.gasPrice,
        },
      })
      if (key !== undefined) {
        const { jws } = signStatement(
          changeText(change),
          JSON.parse(await readFile(key, 'utf8')) as JsonWebKey,
        )
        return [{ statement: changeText(change), jws }, `--expires ${expires_at}\n${jws}`]
      }
      // Not in the command itself, which everybody on the machine can see.
      const given = path === undefined ? '' : await readFile(path, 'utf8')
      const approvals = (given.match(/[\w-]+\.[\w-]*\.[\w-]+/g) ?? []).map((jws) => ({ jws }))
      if (config === undefined && socket === undefined)
        throw new Error('give --key to approve it, or --socket or --config to do it')
      const { signed } =
        config === undefined
          ? await (await signerClient({ socket: socket! })).change(change, approvals)
          : await inSigner(config, (running) => running.change(change, approvals))
      const text = `The journal has it: ${changeText(change)}`
      return [
        { changed: true, change, ...(signed && { signed }) },
        signed === undefined ? text : `${text}\nBroadcast it with any node:\n${signed}`,
      ]
    })
}
