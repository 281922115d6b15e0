import { readFile, writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { RowMacs } from '../audit/row-macs.ts'
import {
  exportPsbt,
  importPsbts,
  listPsbts,
  replacePsbt,
  type ByHand,
} from '../rails/payouts/sign-by-hand.ts'
import { define, type Subcommand } from './define.ts'
import { networkName, onNetwork, transactionHash, type AtNetwork } from './networks.ts'

export function psbtCommands(program: Command): void {
  const psbt = define(
    program,
    'psbt',
    "payments of Bitcoin's family that a person signs (docs/guides/signing-by-hand.md)",
  )
  ofNetwork(psbt, 'list', 'list the PSBTs that wait to be signed, the oldest first').list(onNetwork, {
    key: 'psbts',
    none: 'No PSBT waits to be signed.',
    read: ({ db, adapter }: AtNetwork, { network }: OfNetwork) => listPsbts({ db, adapter, network }),
    columns: [
      'id',
      '>payments',
      '>amount',
      '>fee',
      ['>waits for seconds', ({ waits_seconds }) => waits_seconds],
    ],
  })
  ofNetwork(
    psbt,
    'export',
    'print a PSBT in base64, or write it to a file, for a person or a hardware wallet to sign',
  )
    .argument('<id>', 'hash of its transaction', transactionHash)
    .option('--out <file>', 'file to write it to, in binary')
    .answer(onNetwork, async (at: AtNetwork, id: string, { network, out }: OfNetwork & { out?: string }) => {
      const text = await exportPsbt(await byHandAt(at, network), id)
      at.did('exported a PSBT', { crypto_network: network, crypto_tx_hash: id })
      if (out === undefined) return [{ id, psbt: text }, text]
      await writeFile(out, Buffer.from(text, 'base64'), { mode: 0o600 })
      return [{ id, file: out }, `PSBT ${id} is in ${out}.`]
    })
  ofNetwork(
    psbt,
    'import',
    'record a PSBT that was signed; the worker broadcasts it. Give those of several signers together',
  )
    .argument('<file...>', 'signed PSBTs of one transaction, in binary or base64')
    .answer(onNetwork, async (at: AtNetwork, files: string[], { network }: OfNetwork) => {
      const psbts = await Promise.all(files.map(readPsbt))
      const imported = await importPsbts(await byHandAt(at, network), psbts)
      const { id, payments, changed } = imported
      if (changed) at.did('imported a signed PSBT', { crypto_network: network, crypto_tx_hash: id })
      return [
        imported,
        changed ? `${id} is signed, and pays ${payments} withdrawals.` : `${id} was already signed.`,
      ]
    })
  ofNetwork(psbt, 'replace', 'ask for the same payments at the current fee: another PSBT of the same coins')
    .argument('<id>', 'hash of the transaction, signed or not', transactionHash)
    .answer(onNetwork, async (at: AtNetwork, replaced: string, { network }: OfNetwork) => {
      const id = await replacePsbt(await byHandAt(at, network), replaced)
      at.did('asked for a replacement', { crypto_network: network, crypto_tx_hash: replaced, by: id })
      return [
        { id, replaces: replaced },
        `PSBT ${id} pays the same with a higher fee; only one of the two can be mined.`,
      ]
    })
}

interface OfNetwork {
  network: CryptoNetwork
}

const ofNetwork = (psbt: Subcommand, name: string, description: string): Subcommand =>
  define(psbt, name, description).requiredOption('--network <network>', 'network', networkName)

const byHandAt = async (
  { db, adapter, keys, origin }: AtNetwork,
  network: CryptoNetwork,
): Promise<ByHand> => ({
  db,
  network,
  adapter,
  macs: new RowMacs(await keys()),
  origin,
})

/** A PSBT in base64: its file is in base64, too, or in binary. */
async function readPsbt(file: string): Promise<string> {
  const bytes = await readFile(file)
  return bytes.subarray(0, 4).toString('latin1') === 'psbt'
    ? bytes.toString('base64')
    : bytes.toString('latin1').trim()
}
