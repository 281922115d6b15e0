import { createPrivateKey, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signerClient } from '../chains/kit/remote-signer.ts'
import { readSignerConfig } from '../signer/config.ts'
import { changeText, readChange } from '../signer/journal-changes.ts'
import { Journal } from '../signer/journal.ts'
import { serveSigner } from '../signer/serve.ts'
import { Signer } from '../signer/service.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import type { CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { transaction } from '../src/db/database.ts'
import { newPrivateKey, publicPartOf, signStatement } from '../src/governance/approvals/approval-statement.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { sealWithdrawal } from '../src/money/movements/accepted-withdrawals.ts'
import { atEnd, ownFolder } from './at-end.ts'
import { order } from './payouts-on.ts'
import { MASTER_KEYS, type TestCustomer, type TestService } from './support.ts'

/* A signer process of a test's own, in the test's process, and withdrawals that it takes for accepted. */

const approver = newPrivateKey()
/** The private key of the processes that accept withdrawals. */
export const acceptance = newPrivateKey()
const acceptanceKey = createPrivateKey({ key: acceptance, format: 'jwk' })

/** Starts the signer of a network's section, whose journal is open for the wallet. */
export async function ownSigner(
  network: CryptoNetwork,
  wallet: string,
  section: object,
  environment: Record<string, string>,
) {
  const folder = await ownFolder()
  const path = (name: string) => join(folder, name)
  const file = {
    ...{ listen: path('s'), journal: path('journal'), stop_file: path('stop') },
    ...{ acceptance_keys: [publicPartOf(acceptance)], approvers: [publicPartOf(approver)] },
    ...{ approvals: [], journal_approvals: 1, networks: { [network]: section } },
  }
  await writeFile(path('signer.json'), JSON.stringify(file))
  const config = await readSignerConfig(path('signer.json'), environment)
  const journal = await Journal.open(config.journal, config.networks)
  const server = await serveSigner(new Signer(config, journal), config.listen)
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
    await journal.close()
  })
  const client = await signerClient({ socket: path('s') })
  /** Changes its journal for the wallet, as its approver. */
  const change = async (asked: object) => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const read = readChange({ network, wallet, ...asked, expires_at })
    await client.change(read, [signStatement(changeText(read), approver)])
  }
  await change({ kind: 'OPEN', next_nonce: 0, transfers_from: new Date(0).toISOString() })
  return { client, change, path }
}

/** Orders a withdrawal that a process with an acceptance key, or another one, has accepted. */
export async function accept(
  service: Pick<TestService, 'db' | 'ledger'>,
  customer: TestCustomer,
  payment: Parameters<typeof order>[2],
  key: KeyObject = acceptanceKey,
): Promise<Transfer> {
  const made = await order(service, customer, payment)
  await transaction(service.db, (tx) => sealWithdrawal(tx, new RowMacs(MASTER_KEYS, undefined, key), made.id))
  return made
}
