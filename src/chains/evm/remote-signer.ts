import { readFile } from 'node:fs/promises'
import assert from 'node:assert/strict'
import type { TransactionSerialized } from 'viem'
import { Agent, request } from 'undici'
import type { SigningEvidence } from '../../contract/approval.ts'
import type { AskedWithdrawal, SignerAnswer } from '../network.ts'
import { NodeFailure } from '../node-failure.ts'
import { SIGNER_RECHECK_MS } from '../waiting.ts'
import { parse, signedAs, signerAddressOf, signerOf, unsignedOf } from './transaction.ts'

/** Where the signer process is: a unix socket, or TLS with a certificate for each side. Paths of files. */
export type SignerAddress = { socket: string } | { url: string; ca: string; certificate: string; key: string }

/** Asks the signer process. */
export interface SignerClient {
  ask(network: string, asked: AskedWithdrawal): Promise<SignerAnswer>
  /** Why it would refuse each of these payments; null where it would not. */
  check(network: string, evidence: readonly SigningEvidence[]): Promise<(string | null)[]>
  /** Changes its journal, with the approvals of people. Throws an Error where it refuses. */
  change(change: object, approvals: readonly { jws: string }[]): Promise<void>
  /** The next nonce of each of its wallets, by its journal. */
  status(): Promise<{ network: string; wallet: string; next_nonce: number }[]>
}

const TIMEOUT_MS = 10_000

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
  return {
    async ask(network, { raw_transaction, evidence }) {
      const wallet = await signerAddressOf(raw_transaction)
      const unsigned = unsignedOf(raw_transaction)
      const reply = await call('/v1/sign', { network, wallet, unsigned, ...evidence })
      if (reply.status === 200) {
        const raw = reply.body.signed as TransactionSerialized
        assert((await signerOf(raw)) === wallet, `it is not signed by ${wallet}`)
        return { signed: signedAs({ address: wallet }, parse(unsigned), raw) }
      }
      const detail = `the signer refuses it: ${String(reply.body.refused)}`
      return { reason: { code: 'SIGNER_REFUSES', detail, recheckMs: SIGNER_RECHECK_MS } }
    },
    async check(network, evidence) {
      const { status, body } = await call('/v1/check', {
        payments: evidence.map((one) => ({ network, ...one })),
      })
      if (status !== 200) throw new NodeFailure(`the signer cannot judge: ${String(body.refused)}`)
      return body.refused as (string | null)[]
    },
    async change(change, approvals) {
      const { status, body } = await call('/v1/journal', { change, approvals })
      if (status !== 200) throw new Error(`the signer refuses it: ${String(body.refused)}`)
    },
    async status() {
      const { body } = await call('/v1/status')
      return body.wallets as { network: string; wallet: string; next_nonce: number }[]
    },
  }
}

/** An answer that is not of the transaction is of no use, and must not hold up others. */
function whyNoAnswer(error: Error): SignerAnswer {
  const detail = error.message
  return error instanceof NodeFailure
    ? { reason: { code: 'SIGNER_DOWN', detail } }
    : { reason: { code: 'SIGNER_REFUSES', detail: `the signer's answer cannot be used: ${detail}` } }
}

/**
 * Asks the signer for each withdrawal, in the order of the nonces: its journal has no gaps. Where it does not answer, the others
 * are not asked in this call.
 */
export async function askSigner(
  network: string,
  client: SignerClient,
  asked: readonly AskedWithdrawal[],
): Promise<SignerAnswer[]> {
  const nonceOf = (one: AskedWithdrawal) => parse(one.raw_transaction).nonce
  const answers = new Map<AskedWithdrawal, SignerAnswer>()
  let down: SignerAnswer | undefined
  for (const one of [...asked].sort((a, b) => nonceOf(a) - nonceOf(b))) {
    const answer = down ?? (await client.ask(network, one).catch(whyNoAnswer))
    if ('reason' in answer && answer.reason.code === 'SIGNER_DOWN') down = answer
    answers.set(one, answer)
  }
  return asked.map((one) => answers.get(one)!)
}
