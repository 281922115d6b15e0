import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Type, type Static } from 'typebox'
import { Agent, request } from 'undici'
import { Closed } from '../../src/contract/fields.ts'
import type { SignedStatement, SigningEvidence } from '../../src/contract/approval.ts'
import type { Queryable } from '../../src/db/database.ts'
import { grouped } from '../../src/db/rows.ts'
import type { AskedWithdrawal, SignedTransaction, SignerAnswer } from '../../src/networks/network.ts'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'
import { SIGNER_RECHECK_MS, type WaitingReason } from '../../src/networks/waiting.ts'

/** The signer answers, and a wallet's key cannot be used now. Other wallets may have theirs elsewhere. */
class KeyFailure extends NodeFailure {}

const Path = Type.String({ minLength: 1 })
export const SignerSocket = Closed({ socket: Path })
export const SignerUrl = Closed({
  url: Type.String({ pattern: '^https://' }),
  ca: Path,
  certificate: Path,
  key: Path,
})
/** Where the signer process is: a unix socket, or TLS with a certificate for each side. Paths of files. */
export const SignerSection = Type.Union([SignerSocket, SignerUrl])
export type SignerAddress = Static<typeof SignerSection>

/** What is to be signed: unsigned bytes in hex, for a wallet. */
export interface Unsigned {
  wallet: string
  unsigned: string
}

/** A signed transaction in hex, and `head`: where the journal ends that has its line. */
type Answer = { signed: string; head: string } | { reason: WaitingReason }

export interface WalletStatus {
  network: string
  wallet: string
  /** By its journal; null until that is opened. */
  next_nonce: number | null
}

/** A deposit address, and how it was derived. */
export interface DepositPlace {
  address: string
  derivation: string
}

/** Has the keys of hot wallets, and is asked for each signature. */
export interface AskedSigner {
  /** `payments` are what the bytes pay, in their order; `journal_heads` where its journal has ended in earlier answers. */
  ask(
    network: string,
    what: Unsigned,
    evidence: { payments: readonly SigningEvidence[]; journal_heads: readonly string[] },
  ): Promise<Answer>
  /** Why it would refuse each of these payments; null where it would not. */
  check(network: string, evidence: readonly SigningEvidence[]): Promise<(string | null)[]>
  /** Why the key of a wallet could not be used a moment ago: until it can, the wallet takes no new withdrawal. */
  keyFailure(wallet: string): WaitingReason | undefined
  status?(): Promise<WalletStatus[]>
  /** The signed transaction, in hex, of a wallet between a deposit address and the platform's wallets. */
  move?(network: string, what: Unsigned, place: DepositPlace): Promise<string>
  /** Deposit addresses at paths, vouched for. */
  addresses?(network: string, asked: readonly object[]): Promise<object[]>
}

export interface SignerClient extends Required<AskedSigner> {
  /** Changes its journal, with the approvals of people. Throws an Error where it refuses. */
  change(change: object, approvals: readonly SignedStatement[]): Promise<{ signed?: string }>
}

const TIMEOUT_MS = 10_000
/** A key that failed is tried with new withdrawals after this time, where nothing else has tried it. */
const KEY_FAILURE_MS = 60_000

const dispatcherOf = async (address: SignerAddress) =>
  new Agent({
    connect:
      'socket' in address
        ? { socketPath: address.socket }
        : {
            ca: await readFile(address.ca),
            cert: await readFile(address.certificate),
            key: await readFile(address.key),
          },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })

/** Reads the files of a signer's address. */
export async function signerClient(address: SignerAddress): Promise<SignerClient> {
  const dispatcher = await dispatcherOf(address)
  const origin = 'socket' in address ? 'http://signer' : address.url.replace(/\/+$/, '')
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
  const keyFailures = new Map<string, { reason: WaitingReason; at: number }>()
  return {
    async ask(network, { wallet, unsigned }, evidence) {
      const reply = await call('/v1/sign', { network, wallet, unsigned, ...evidence })
      if (reply.status === 200) {
        keyFailures.delete(wallet)
        return reply.body as { signed: string; head: string }
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
    async move(network, what, { address, derivation }) {
      const { status, body } = await call('/v1/move', { network, ...what, address, derivation })
      // Where it has answered, the next move is asked for at once; a key that cannot be used takes as long again.
      const Failure = status === 503 ? NodeFailure : NodeRefusal
      if (status !== 200)
        throw new Failure(`the signer refuses a move of ${what.wallet}: ${String(body.refused)}`)
      return body.signed as string
    },
    async addresses(network, asked) {
      const { status, body } = await call('/v1/addresses', { network, asked })
      if (status !== 200) throw new NodeFailure(`the signer gives no address: ${String(body.refused)}`)
      return body.addresses as object[]
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

/** An answer that is not of the transaction is of no use, and must not hold up others. */
function whyNoAnswer(error: Error): SignerAnswer {
  const detail = error.message
  return error instanceof NodeFailure
    ? { reason: { code: 'SIGNER_DOWN', detail } }
    : {
        reason: {
          code: 'SIGNER_REFUSES',
          detail: `the signer's answer cannot be used: ${detail}`,
        },
      }
}

const indexOf = ({ crypto_tx_index = '0' }: AskedWithdrawal) => Number(crypto_tx_index)

/** The output that pays a withdrawal, and how many are paid, stay. */
const answerFor = ({ crypto_tx_index, payments }: AskedWithdrawal, answer: SignerAnswer): SignerAnswer =>
  'signed' in answer && crypto_tx_index !== undefined
    ? { signed: { ...answer.signed, crypto_tx_index, payments: payments! } }
    : answer

/** What the signer's journal ended with in its last answer for the network. */
async function journalHeads(db: Queryable, network: string): Promise<string[]> {
  const { rows } = await db.query<{ head: string }>(
    'select journal_head as head from wallet_checks where network = $1 and journal_head is not null',
    [network],
  )
  return rows.map(({ head }) => head)
}

/** Asks why the signer would refuse payments (`Payer.checkWithSigner`): it does where its journal never had one of the heads. */
export const checkBy =
  (signer: AskedSigner, network: string) =>
  async (db: Queryable, evidence: readonly SigningEvidence[]): Promise<(string | null)[]> => {
    const journal_heads = await journalHeads(db, network)
    const told = evidence.map((own) => ({ ...own, journal_heads }))
    return signer.check(network, told)
  }

/** What a family says of the bytes that a signer is asked for. */
export interface AskedBytes {
  unsignedIn(raw: Buffer): Promise<Unsigned>
  /** The signed transaction. Throws an Error where it is another one, or another key has signed it. */
  signedAs(what: Unsigned, signed: string): Promise<SignedTransaction>
}

/**
 * Asks the signer for each transaction, in this order. Where it does not answer, the others are not asked in this call; where a
 * wallet's key cannot be used, those of this wallet. The last head is kept. Of a transaction that pays many, all are asked about.
 */
export async function askSigner(
  db: Queryable,
  { network, signer, bytes }: { network: string; signer: AskedSigner; bytes: AskedBytes },
  asked: readonly AskedWithdrawal[],
): Promise<Map<AskedWithdrawal, SignerAnswer>> {
  const answers = new Map<AskedWithdrawal, SignerAnswer>()
  let down: SignerAnswer | undefined
  const keyless = new Map<string, SignerAnswer>()
  let journal_heads = await journalHeads(db, network)
  let isNewer = false
  const ask = async (what: Unsigned, payments: readonly SigningEvidence[]): Promise<SignerAnswer> => {
    const answer = await signer.ask(network, what, { payments, journal_heads })
    if ('reason' in answer) return answer
    const signed = await bytes.signedAs(what, answer.signed)
    assert(/^[0-9a-f]{32}$/.test(answer.head), 'it does not say where its journal ends')
    journal_heads = [answer.head]
    isNewer = true
    return { signed }
  }
  for (const together of grouped(asked, ({ raw_transaction }) => raw_transaction.toString('hex')).values()) {
    let wallet = ''
    const askOne = async () => {
      const what = await bytes.unsignedIn(together[0]!.raw_transaction)
      wallet = what.wallet
      const inOrder = together.toSorted((a, b) => indexOf(a) - indexOf(b))
      const payments = inOrder.map(({ evidence }) => evidence)
      return keyless.get(wallet) ?? ask(what, payments)
    }
    const answer =
      down ??
      (await askOne().catch((error: Error) => {
        const none = whyNoAnswer(error)
        if (error instanceof KeyFailure) keyless.set(wallet, none)
        else if (error instanceof NodeFailure) down = none
        return none
      }))
    for (const withdrawal of together) answers.set(withdrawal, answerFor(withdrawal, answer))
  }
  if (isNewer)
    await db.query(
      `
      insert into wallet_checks (network, journal_head, updated_at) values ($1, $2, clock_timestamp())
      on conflict (network) do update set journal_head = excluded.journal_head`,
      [network, journal_heads[0]],
    )
  return answers
}
