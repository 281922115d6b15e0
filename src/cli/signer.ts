import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { JsonWebKey } from 'node:crypto'
import { group, offline, type Given } from './define.ts'
import { EXIT, fail, stopSignal } from './exit.ts'
import { print } from './output.ts'
import { ownProcess } from './own-process.ts'
import type { Signer } from '../../signer/service.ts'

/** How long approvals count by default; the signer takes 24 hours at most, by its own clock. */
const VALID_MS = 23 * 3_600_000
const GAS = '21000'

const WORDS = {
  '<request>': ["files of the worker's folder requests"],
  '--config <file>': ["the signer's JSON file, on its machine; to change the journal, while it does not run"],
  '--answers <folder>': ["where the answers are written, for the worker's folder answers"],
  '--network <network>': ['network'],
  '--wallet <address>': ['hot wallet'],
  '--nonce <number>': [
    'to open, the first nonce that nothing was signed with; for void, the nonce that another transaction has used',
  ],
  '--transfer <id>': ['transfer; for void, in the order of the nonces'],
  '--asset <asset>': ['asset that may go there'],
  '--address <address>': ['destination'],
  '--remove': ['they are not named any more'],
  '--after <head>': ['what the worker has seen of the journal that was lost, as the signer refuses it'],
  '--transfers-from <time>': [
    'withdrawals from before are signed only if they are on record: when the journal was lost, or 1970-01-01T00:00:00.000Z for a new one',
  ],
  '--gas-price <wei>': ['most wei for a unit of gas'],
  '--gas <number>': [`gas; a rollup may take more for publishing (default: ${GAS})`],
  '--expires <time>': ['when the approvals expire, as the first approver was told; by default in 23 hours'],
  '--key <file>': ['your key file'],
  '--approvals <file>': ['what --key printed for each approver; /dev/stdin reads it from a pipe'],
  '--socket <path>': ["the signer's unix socket"],
} as const

/** What every change of the journal takes: with `--key` it is approved, with `--socket` or `--config` it is made. */
const CHANGED = '[--expires <time>] [--key <file>] [--approvals <file>] [--socket <path>] [--config <file>]'
/** The changes: what each takes besides, and what it does. */
const CHANGES = {
  'open --network <network> --wallet <address> --nonce <number> --transfers-from <time> [--after <head...>]':
    'begin a journal that is new, was lost, or was restored from a backup, at a nonce',
  'allow --network <network> --transfer <id...>':
    'allow transfers from before the journal began, which were not signed',
  'destination --network <network> --asset <asset> --address <address...> [--remove]':
    'name destinations that larger amounts of an asset may go to, once their cooling time has passed',
  'void --network <network> --wallet <address> --nonce <number...> --transfer <id...>':
    'allow transfers to be signed anew: what was signed for them can never be mined',
  'fill --network <network> --wallet <address> --nonce <number> --gas-price <wei> [--gas <number>]':
    'sign an empty transfer of the wallet to itself, which uses up the nonce, and print it',
}

export function signerCommands(program: Command): void {
  const about = 'the process that has the keys of the hot wallets (docs/guides/signer.md)'
  const signer = group(program, ['signer', about], offline, WORDS)
  signer.command('start --config <file>', {
    about: 'sign what the configuration allows, until it is stopped; no database is used',
    async run(_, { config: path }) {
      const { serveSigner } = await import('../../signer/serve.ts')
      const { config, journal, running } = await openSigner(path)
      const server = await serveSigner(running, config.listen)
      stopSignal().addEventListener('abort', () => {
        server.close(() => void journal.close().then(() => ownProcess().exit(EXIT.done), fail))
        server.closeAllConnections()
      })
      const refuses = await running.check([]).then(() => undefined, messageOf)
      const deposit_keys = [...config.networks].flatMap(([network, { depositKeys }]) =>
        depositKeys === undefined ? [] : { network, public_key: depositKeys.publicKey },
      )
      const descriptors = [...config.networks].flatMap(([network, { wallets }]) =>
        [...wallets.values()].flatMap(({ address: wallet, descriptors: its = [] }) =>
          its.map((descriptor) => ({ network, wallet, descriptor })),
        ),
      )
      return { ready: true, wallets: await running.status(), deposit_keys, descriptors, refuses }
    },
    says({ wallets, deposit_keys, descriptors, refuses }) {
      const lines = wallets.map(
        ({ network, wallet, next_nonce }) =>
          `  ${network} ${wallet}: ${next_nonce === null ? "not opened, see 'bursar signer open'" : `next nonce ${next_nonce}`}`,
      )
      const keys = deposit_keys.map(({ network, public_key }) => `  ${network} deposit_key: ${public_key}`)
      const state = refuses ? `The signer signs nothing: ${refuses}` : 'The signer is ready.'
      const watched = descriptors.map(({ wallet, descriptor }) => `  ${wallet}: ${descriptor}`)
      return [state, ...lines, ...keys, ...watched].join('\n')
    },
  })
  signer.list('sign <request...> --config <file> [--answers <folder>]', {
    about:
      'show requests that were carried here as files; with --answers, sign what the configuration allows',
    key: 'requests',
    run: (_, { request, config, answers }) => showOrSign(request, config, answers),
    columns: ['transfer_id', '>amount', 'asset', 'network', 'destination', 'wallet', '>nonce', 'outcome'],
  })
  for (const [usage, about] of Object.entries(CHANGES))
    signer.command(`${usage} ${CHANGED}`, {
      about: `${about}; with --key, sign that you approve; with --socket or --config, do it`,
      run: (_, given) => approveOrMake(usage.split(' ')[0]!, given),
    })
}

const messageOf = (error: Error) => error.message

/** The signer of a file, in this process. */
async function openSigner(path: string) {
  const [{ readSignerConfig }, { Journal }, { Signer }] = await Promise.all([
    import('../../signer/config.ts'),
    import('../../signer/journal.ts'),
    import('../../signer/service.ts'),
  ])
  const config = await readSignerConfig(path, ownProcess().env)
  const journal = await Journal.open(config.journal, config.networks)
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
async function showOrSign(files: string[], config: string, answers: string | undefined) {
  const { answerRequest, readRequests } = await import('../../signer/by-hand.ts')
  const requests = await readRequests(files)
  if (answers === undefined) return requests.map(({ shown }) => ({ ...shown, outcome: 'asked' }))
  return inSigner(config, async (running) => {
    const rows = []
    for (const request of requests) {
      const refused = await answerRequest(running, request, answers)
      if (refused !== undefined) ownProcess().exitCode = EXIT.failed
      const outcome = refused === undefined ? 'signed' : `refused: ${refused}`
      rows.push({ ...request.shown, outcome })
    }
    return rows
  })
}

type ChangeOptions = Given<typeof WORDS, typeof CHANGED> & {
  network?: string
  wallet?: string
  nonce?: string | string[]
  transfer?: string[]
  address?: string[]
  after?: string[]
  transfers_from?: string
  gas?: string
  gas_price?: string
}

/** Signs that the owner of a key approves a change of the journal, or makes the change. */
async function approveOrMake(kind: string, { json, ...options }: ChangeOptions): Promise<void> {
  const [{ readChange, changeText }, { signStatement }, { signerClient }] = await Promise.all([
    import('../../signer/journal-changes.ts'),
    import('../governance/approvals/approval-statement.ts'),
    import('../../signer/socket.ts'),
  ])
  const { gas = GAS, key, approvals: path, socket, config } = options
  // On SOLANA a hash stands for it, on STELLAR an account and its number.
  const nonces = [options.nonce ?? []].flat().map((one) => (/^\d{1,15}$/.test(one) ? Number(one) : one))
  const expires_at = options.expires ?? new Date(Date.now() + VALID_MS).toISOString()
  const change = readChange({
    ...{ ...options, kind: kind.toUpperCase(), expires_at },
    ...{ transfer_ids: options.transfer, destinations: options.address },
    ...{ nonces, nonce: nonces[0], next_nonce: nonces[0] },
    ...{ gas: Number(gas), max_fee_per_gas: options.gas_price },
  })
  const statement = changeText(change)
  if (key !== undefined) {
    const { jws } = signStatement(statement, JSON.parse(await readFile(key, 'utf8')) as JsonWebKey)
    return print(json ? { statement, jws } : `--expires ${expires_at}\n${jws}`)
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
  const broadcast = signed === undefined ? '' : `\nBroadcast it with any node:\n${signed}`
  print(
    json
      ? { changed: true, change, ...(signed && { signed }) }
      : `The journal has it: ${statement}${broadcast}`,
  )
}
