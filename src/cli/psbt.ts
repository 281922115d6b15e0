import { readFile, writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
import {
  exportPsbt,
  importPsbts,
  listPsbts,
  replacePsbt,
  type ByHand,
} from '../rails/payouts/sign-by-hand.ts'
import { readHash } from '../rails/payouts/read-hash.ts'
import { transactionHash } from './arguments.ts'
import { inDatabase, type AtDatabase } from './command-line.ts'
import { group } from './define.ts'
import { OF_NETWORK } from './networks.ts'

const WORDS = {
  ...OF_NETWORK,
  '<id>': ['hash of its transaction', transactionHash],
  '<file>': ['signed PSBTs of one transaction, in binary or base64'],
  '--out <file>': ['file to write it to, in binary'],
} as const

export function psbtCommands(program: Command): void {
  const about = "payments of Bitcoin's family that a person signs (docs/guides/signing-by-hand.md)"
  const psbt = group(program, ['psbt', about], inDatabase, WORDS)
  psbt.list('list --network <network>', {
    about: 'list the PSBTs that wait to be signed, the oldest first',
    key: 'psbts',
    none: 'No PSBT waits to be signed.',
    run: async (at, { network }) => listPsbts({ db: at.db, adapter: await at.network(network), network }),
    columns: [
      ...(['id', '>payments', '>amount', '>fee'] as const),
      ['>waits for seconds', ({ waits_seconds }) => waits_seconds],
    ],
  })
  psbt.command('export <id> --network <network> [--out <file>]', {
    about: 'print a PSBT in base64, or write it to a file, for a person or a hardware wallet to sign',
    async run(at, { id: typed, network, out }) {
      const byHand = await byHandAt(at, network)
      const id = readHash(network, byHand.adapter, typed)
      const psbt = await exportPsbt(byHand, id)
      if (out === undefined) return { id, psbt }
      await writeFile(out, Buffer.from(psbt, 'base64'), { mode: 0o600 })
      return { id, file: out }
    },
    says: ({ id, psbt, file }) => psbt ?? `PSBT ${id} is in ${file}.`,
    logs: 'exported a PSBT',
    logged: ({ id }, { network }) => onNetwork(network, id),
  })
  psbt.command('import <file...> --network <network>', {
    about: 'record a PSBT that was signed; the worker broadcasts it. Give those of several signers together',
    run: async (at, { file, network }) =>
      importPsbts(await byHandAt(at, network), await Promise.all(file.map(readPsbt))),
    says: ({ id, payments, changed }) =>
      changed ? `${id} is signed, and pays ${payments} withdrawals.` : `${id} was already signed.`,
    logs: 'imported a signed PSBT',
    logged: ({ id }, { network }) => onNetwork(network, id),
  })
  psbt.command('replace <id> --network <network>', {
    about: 'ask for the same payments at the current fee: another PSBT of the same coins',
    async run(at, { id: typed, network }) {
      const byHand = await byHandAt(at, network)
      const replaces = readHash(network, byHand.adapter, typed)
      return { id: await replacePsbt(byHand, replaces), replaces }
    },
    says: ({ id }) => `PSBT ${id} pays the same with a higher fee; only one of the two can be mined.`,
    logs: 'asked for a replacement',
    logged: ({ id, replaces }, { network }) => ({ ...onNetwork(network, replaces), by: id }),
  })
}

const onNetwork = (crypto_network: CryptoNetwork, crypto_tx_hash: string) => ({
  crypto_network,
  crypto_tx_hash,
})

const byHandAt = async (at: AtDatabase, network: CryptoNetwork): Promise<ByHand> => ({
  ...{ db: at.db, network, adapter: await at.network(network), origin: at.origin },
  macs: new RowMacs(await at.keys()),
})

/** A PSBT in base64: its file is in base64, too, or in binary. */
async function readPsbt(file: string): Promise<string> {
  const bytes = await readFile(file)
  return bytes.subarray(0, 4).toString('latin1') === 'psbt'
    ? bytes.toString('base64')
    : bytes.toString('latin1').trim()
}
