import { signerClient } from '../chains/evm/remote-signer.ts'
import type { SignedStatement } from '../src/contract/approval.ts'
import { readSignerConfig, type SignerConfig } from './config.ts'
import { Journal } from './journal.ts'
import type { JournalChange } from './journal-changes.ts'
import { Signer } from './service.ts'

/** A signer in this process. While it is open, no other process can have its journal. */
export interface OpenSigner {
  config: SignerConfig
  journal: Journal
  running: Signer
}

/** Opens the signer of a configuration file. Throws an Error that names the field and the rule. */
export async function openSigner(
  path: string,
  environment: Record<string, string | undefined>,
): Promise<OpenSigner> {
  const config = await readSignerConfig(path, environment)
  const journal = await Journal.open(config.journal)
  return { config, journal, running: new Signer(config, journal) }
}

/** Works with the signer of a file, and closes its journal. */
export async function inSigner<T>(
  path: string,
  environment: Record<string, string | undefined>,
  work: (signer: Signer) => Promise<T>,
): Promise<T> {
  const { journal, running } = await openSigner(path, environment)
  try {
    return await work(running)
  } finally {
    await journal.close()
  }
}

/** Asks the signer that listens at a socket for a change of its journal. Throws an Error where it refuses. */
export async function changeOver(
  socket: string,
  change: JournalChange,
  approvals: readonly SignedStatement[],
): Promise<{ signed?: string }> {
  return (await signerClient({ socket })).change(change, approvals)
}
