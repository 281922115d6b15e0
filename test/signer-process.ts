import { createPrivateKey, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signerClient } from '../chains/kit/remote-signer.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import type { CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { transaction } from '../src/db/database.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { sealWithdrawal } from '../src/money/movements/accepted-withdrawals.ts'
import { atEnd, ownFolder } from './at-end.ts'
import { order } from './payouts-on.ts'
import { MASTER_KEYS, type TestCustomer, type TestService } from './support.ts'
import { newPrivateKey, publicPartOf, signStatement } from '../src/governance/approvals/approval-statement.ts'
import { readSignerConfig } from '../signer/config.ts'
import { changeText, readChange } from '../signer/journal-changes.ts'
import { Journal } from '../signer/journal.ts'
import { serveSigner } from '../signer/serve.ts'
import { Signer } from '../signer/service.ts'

const approver = newPrivateKey()
/** The key of the processes that accept withdrawals. */
export const acceptance = newPrivateKey()
export const acceptanceKey = createPrivateKey({ key: acceptance, format: 'jwk' })

/** A signer in this process, with its files in a folder. Its one approver has opened the wallets of these sections. */
export async function startSigner(folder: string, networks: object, environment: Record<string, string>) {
  const path = (name: string) => join(folder, name)
  const file = {
    ...{ listen: path('s'), journal: path('journal'), stop_file: path('stop') },
    ...{ acceptance_keys: [publicPartOf(acceptance)], approvers: [publicPartOf(approver)] },
    ...{ approvals: [], journal_approvals: 1, networks },
  }
  await writeFile(path('signer.json'), JSON.stringify(file))
  const config = await readSignerConfig(path('signer.json'), environment)
  const journal = await Journal.open(config.journal, config.networks)
  const server = await serveSigner(new Signer(config, journal), config.listen)
  const client = await signerClient({ socket: path('s') })
  /** Changes its journal. */
  const change = async (asked: object) => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const read = readChange({ ...asked, expires_at })
    await client.change(read, [signStatement(changeText(read), approver)])
  }
  const open = { kind: 'OPEN', next_nonce: 0, transfers_from: new Date(0).toISOString() }
  const wallets = [...config.networks].flatMap(([network, { wallets: its }]) =>
    [...its.values()].map((wallet) => ({ network, ...wallet })),
  )
  for (const { network, address: wallet } of wallets) await change({ ...open, network, wallet })
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await journal.close()
  }
  return { client, change, wallets, socket: path('s'), stop }
}

/** A signer of one network, whose changes are of one wallet. It ends with the test. */
export async function ownSigner(
  network: CryptoNetwork,
  wallet: string,
  section: object,
  environment: Record<string, string>,
) {
  const folder = await ownFolder()
  const { client, change, stop } = await startSigner(folder, { [network]: section }, environment)
  atEnd(stop)
  return {
    client,
    change: (asked: object) => change({ network, wallet, ...asked }),
    path: (name: string) => join(folder, name),
  }
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
