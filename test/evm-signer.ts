import { createPrivateKey, sign } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { serializeTransaction, type Hex } from 'viem'
import { newPrivateKey, publicPartOf, signStatement } from '../src/governance/approvals/approval-statement.ts'
import { atEnd, ownFolder } from './at-end.ts'
import { readSignerConfig } from '../signer/config.ts'
import { changeText, readChange } from '../signer/journal-changes.ts'
import { Journal } from '../signer/journal.ts'
import type { PaymentToJudge } from '../signer/rules.ts'
import { Signer } from '../signer/service.ts'

/** A signer for ETHEREUM without a process: its network's section, the keys by the names of variables, and its clock. */
export async function ownEvmSigner(
  section: object,
  { keys = {}, now }: { keys?: Record<string, string>; now?: () => Date } = {},
) {
  const folder = await ownFolder()
  const path = join(folder, 'signer.json')
  const acceptance = newPrivateKey()
  const accepts = createPrivateKey({ key: acceptance, format: 'jwk' })
  const approvers = [newPrivateKey(), newPrivateKey()]
  await writeFile(
    path,
    JSON.stringify({
      ...{ listen: join(folder, 's'), journal: join(folder, 'journal'), stop_file: join(folder, 'stop') },
      ...{ approvers: approvers.map((key) => publicPartOf(key)), approvals: [], journal_approvals: 1 },
      acceptance_keys: [publicPartOf(acceptance)],
      networks: { ETHEREUM: { wallets: [{ env: 'HOT' }], fee_max: '0.005', ...section } },
    }),
  )
  const hot = (keys.HOT as Hex | undefined) ?? generatePrivateKey()
  const config = await readSignerConfig(path, { ...keys, HOT: hot })
  const journal = await Journal.open(config.journal, config.networks)
  atEnd(() => journal.close())
  const signer = new Signer(config, journal, now)
  const wallet = privateKeyToAccount(hot).address
  let count = 0
  return {
    signer,
    wallet,
    /** Changes its journal by so many people. */
    async change(change: object, people = 1) {
      const expires_at = new Date((now?.() ?? new Date()).getTime() + 3_600_000).toISOString()
      const read = readChange({ network: 'ETHEREUM', ...change, expires_at })
      const signed = approvers.slice(0, people).map((key) => signStatement(changeText(read), key))
      await signer.change(read, signed)
    },
    /** A payment that a process with an acceptance key has accepted. */
    payment({
      customer = 'c1',
      asset = 'ETH',
      amount = '1',
      to,
    }: Partial<Payment> & { to: Hex }): PaymentToJudge {
      const id = `019b0000-0000-7000-8000-${String(count++).padStart(12, '0')}`
      const accepted = JSON.stringify([customer, id, 'p', asset, amount, 'ETHEREUM', to, null])
      const signature = sign(null, Buffer.from(accepted), accepts).toString('base64url')
      return { network: 'ETHEREUM', accepted, signature, decisions: [] }
    },
    /** Signs a payment of wei with a nonce. */
    sign(payment: PaymentToJudge, nonce: number, to: Hex, value: bigint) {
      const fees = { gas: 21_000n, maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n }
      const unsigned = serializeTransaction({ type: 'eip1559', chainId: 1, nonce, to, value, ...fees })
      return signer.sign({ network: payment.network, wallet, unsigned, payments: [payment] })
    },
  }
}

interface Payment {
  customer: string
  asset: string
  amount: string
  to: Hex
}
