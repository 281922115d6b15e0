import { readFile } from 'node:fs/promises'
import assert from 'node:assert/strict'
import type { Hex, TransactionSerialized } from 'viem'
import { serializeTransaction } from 'viem/utils'
import { Agent, request } from 'undici'
import type { Queryable } from '../../src/db/database.ts'
import type { SignedStatement, SigningEvidence } from '../../src/contract/approval.ts'
import type { AskedWithdrawal, SignerAnswer } from '../../src/networks/network.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { SIGNER_RECHECK_MS, type WaitingReason } from '../../src/networks/waiting.ts'
import type { DepositPlace } from './deposit-keys.ts'
import {
  parse,
  signedAs,
  signerAddressOf,
  signerOf,
  unsignedOf,
  type EvmSigner,
  type EvmTransaction,
} from './transaction.ts'

/** The signer answers, and a wallet's key cannot be used now. Other wallets may have theirs elsewhere. */
class KeyFailure extends NodeFailure {}

/** Where the signer process is: a unix socket, or TLS with a certificate for each side. Paths of files. */
export type SignerAddress = { socket: string } | { url: string; ca: string; certificate: string; key: string }

/** `head`: where the journal ended that has the signature's line. */
type JournalAnswer = SignerAnswer & { head?: string }

export interface WalletStatus {
  network: string
  wallet: string
  /** By its journal; null until that is opened. */
  next_nonce: number | null
}

/** Has the keys of hot wallets, and is asked for each signature. */
export interface AskedSigner {
  ask(network: string, asked: AskedWithdrawal): Promise<JournalAnswer>
  /** Why it would refuse each of these payments; null where it would not. */
  check(network: string, evidence: readonly SigningEvidence[]): Promise<(string | null)[]>
  /** Why the key of a wallet could not be used a moment ago: until it can, the wallet takes no new withdrawal. */
  keyFailure(wallet: Hex): WaitingReason | undefined
  status?(): Promise<WalletStatus[]>
  /** The signed transaction of a wallet between a deposit address and the platform's wallets. */
  move?(network: string, wallet: Hex, place: DepositPlace, transaction: EvmTransaction): Promise<Hex>
}

/** Signs what moves between a deposit address and the platform's wallets, by a signer process that does. */
export const remoteMover = (
  network: string,
  signer: AskedSigner,
  wallet: Hex,
  place: DepositPlace,
): EvmSigner => ({
  address: wallet,
  signTransaction: (transaction) => signer.move!(network, wallet, place, transaction),
})

export interface SignerClient extends Required<AskedSigner> {
  /** Changes its journal, with the approvals of people. Throws an Error where it refuses. */
  change(change: object, approvals: readonly SignedStatement[]): Promise<{ signed?: string }>
}

const TIMEOUT_MS = 10_000
/** A key that failed is tried with new withdrawals after this time, where nothing else has tried it. */
const KEY_FAILURE_MS = 60_000

/** Reads the files of a signer's address. */
export async function signerClient(address: SignerAddress): Promise<SignerClient> {
  const isSocket = 'socket' in address
  const dispatcher = new Agent({
    connect: isSocket
      ? { socketPath: address.socket }
      : {
          ca: await readFile(address.ca),
          cert: await readFile(address.certificate),
          key: await readFile(address.key),
        },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  const origin = isSocket ? 'http://signer' : address.url.replace(/\/+$/, '')
  const call = async (path: string, body?: object) => {
    try {
      const reply = await request(`${origin}${path}`, {
        dispatcher,
        ...(body && {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      })
      return { status: reply.statusCode, body: (await reply.body.json()) as Record<string, unknown> }
    } catch (error) {
      throw new NodeFailure(`the signer does not answer: ${(error as Error).message}`)
    }
  }
  const keyFailures = new Map<Hex, { reason: WaitingReason; at: number }>()
  return {
    async ask(network, { raw_transaction, evidence }) {
      const wallet = await signerAddressOf(raw_transaction)
      const unsigned = unsignedOf(raw_transaction)
      const reply = await call('/v1/sign', { network, wallet, unsigned, ...evidence })
      if (reply.status === 200) {
        keyFailures.delete(wallet)
        return await signedAnswer(wallet, unsigned, reply.body)
      }
      if (reply.status === 503) {
        const detail = `the signer cannot use the key of ${wallet}: ${String(reply.body.refused)}`
        keyFailures.set(wallet, { reason: { code: 'SIGNER_DOWN', detail }, at: performance.now() })
        throw new KeyFailure(detail)
      }
      const detail = `the signer refuses it: ${String(reply.body.refused)}`
      const later = reply.body.early === true ? {} : { recheckMs: SIGNER_RECHECK_MS }
      return { reason: { code: 'SIGNER_REFUSES', detail, ...later } }
    },
    async check(network, evidence) {
      const { status, body } = await call('/v1/check', {
        payments: evidence.map((payment) => ({ network, ...payment })),
      })
      if (status !== 200) throw new NodeFailure(`the signer cannot judge: ${String(body.refused)}`)
      return body.refused as (string | null)[]
    },
    async change(change, approvals) {
      const { status, body } = await call('/v1/journal', { change, approvals })
      if (status !== 200) throw new Error(`the signer refuses it: ${String(body.refused)}`)
      return body
    },
    async move(network, wallet, { address, derivation }, transaction) {
      const unsigned = serializeTransaction(transaction)
      const { status, body } = await call('/v1/move', { network, wallet, address, derivation, unsigned })
      if (status !== 200)
        throw new NodeFailure(`the signer refuses a move of ${wallet}: ${String(body.refused)}`)
      requireSignedBy(wallet, await signerOf(body.signed as TransactionSerialized))
      return body.signed as Hex
    },
    keyFailure(wallet) {
      const { reason, at: failedAt = -Infinity } = keyFailures.get(wallet) ?? {}
      return performance.now() - failedAt < KEY_FAILURE_MS ? reason : undefined
    },
    async status() {
      const { status, body } = await call('/v1/status')
      if (status !== 200) throw new NodeFailure(`the signer signs nothing: ${String(body.refused)}`)
      return body.wallets as WalletStatus[]
    },
  }
}

const requireSignedBy = (wallet: Hex, signer: Hex) =>
  assert(signer === wallet, `it is not signed by ${wallet}`)

/** A signed answer. Throws an AssertionError where it is of another transaction, by another key, or without a journal. */
export async function signedAnswer(wallet: Hex, unsigned: Hex, answer: object): Promise<JournalAnswer> {
  const { signed, head = '' } = answer as { signed: TransactionSerialized; head?: string }
  requireSignedBy(wallet, await signerOf(signed))
  assert(/^[0-9a-f]{32}$/.test(head), 'it does not say where its journal ends')
  return { signed: signedAs({ address: wallet }, parse(unsigned), signed), head }
}

/** An answer that is not of the transaction is of no use, and must not hold up others. */
function whyNoAnswer(error: Error): SignerAnswer {
  const detail = error.message
  return error instanceof NodeFailure
    ? { reason: { code: 'SIGNER_DOWN', detail } }
    : { reason: { code: 'SIGNER_REFUSES', detail: `the signer's answer cannot be used: ${detail}` } }
}

interface Asking {
  network: string
  lanes: readonly { address: string }[]
  signer?: AskedSigner
}

/** What the signer's journal ended with in its last answers for the hot wallets. */
async function journalHeads(db: Queryable, { network, lanes }: Asking): Promise<string[]> {
  const { rows } = await db.query<{ head: string }>(
    'select journal_head as head from evm_nonces where network = $1 and address = any ($2) and journal_head is not null',
    [network, lanes.map(({ address }) => address)],
  )
  return rows.map(({ head }) => head)
}

/** What the signer is told of payments: it refuses them where its journal never had one of the heads. */
export async function told(db: Queryable, asking: Asking, evidence: readonly SigningEvidence[]) {
  const journal_heads = await journalHeads(db, asking)
  return evidence.map((own) => ({ ...own, journal_heads }))
}

/**
 * Asks the signer for each withdrawal, in the order of the nonces: its journal has no gaps. Where it does not answer, the
 * others are not asked in this call; where a wallet's key cannot be used, those of this wallet. The last head is kept.
 */
export async function askSigner(
  db: Queryable,
  asking: Asking,
  asked: readonly AskedWithdrawal[],
): Promise<SignerAnswer[]> {
  const nonceOf = (withdrawal: AskedWithdrawal) => parse(withdrawal.raw_transaction).nonce
  const answers = new Map<AskedWithdrawal, SignerAnswer>()
  let down: SignerAnswer | undefined
  const keyless = new Map<Hex, SignerAnswer>()
  let journal_heads = await journalHeads(db, asking)
  let last: Hex | undefined
  for (const withdrawal of [...asked].sort((a, b) => nonceOf(a) - nonceOf(b))) {
    const wallet = await signerAddressOf(withdrawal.raw_transaction)
    const evidence = { ...withdrawal.evidence, journal_heads }
    const answer: JournalAnswer =
      down ??
      keyless.get(wallet) ??
      (await asking.signer!.ask(asking.network, { ...withdrawal, evidence }).catch((error: Error) => {
        const none = whyNoAnswer(error)
        if (error instanceof KeyFailure) keyless.set(wallet, none)
        else if (error instanceof NodeFailure) down = none
        return none
      }))
    if (answer.head !== undefined) [last, journal_heads] = [wallet, [answer.head]]
    answers.set(withdrawal, answer)
  }
  const kept = [asking.network, last, journal_heads[0]]
  if (last !== undefined)
    await db.query('update evm_nonces set journal_head = $3 where network = $1 and address = $2', kept)
  return asked.map((withdrawal) => answers.get(withdrawal)!)
}
