import type { Hex } from 'viem'
import { serializeTransaction } from 'viem/utils'

import type { SignerConfig } from './config.ts'
import type { Journal } from './journal.ts'
import {
  foresee,
  judge,
  requireNoConflict,
  steadyClock,
  type Foreseen,
  type PaymentToJudge,
  type SignRequest,
} from './rules.ts'
import type { AskedAddress } from '../chains/solana/deposit-keys.ts'
import type { KeptSignatures, MoveRequest } from './family.ts'
import { judgeMove } from './moves.ts'
import { demand } from './refused.ts'
import { linesOf, requireApproved, type JournalChange } from './journal-changes.ts'
import type { WalletStatus } from '../chains/kit/remote-signer.ts'
import type { SignedStatement } from '../src/contract/approval.ts'

/** Signs what its rules allow, one request after the other, and writes each to its journal before it signs. */
export class Signer {
  readonly #config: SignerConfig
  readonly #journal: Journal
  /** By transfer, what was foreseen and is not signed yet. */
  readonly #foreseen = new Map<string, Foreseen>()
  #turn: Promise<unknown> = Promise.resolve()
  readonly #now: () => Date

  constructor(config: SignerConfig, journal: Journal, now = steadyClock(journal)) {
    this.#config = config
    this.#journal = journal
    this.#now = now
  }

  /**
   * The signed transaction, and the journal's head. Throws Refused with the rule that forbids it, and BackEndFailure where the
   * key cannot be used now: the journal has its line by then, and the same question is signed later.
   */
  async sign(request: SignRequest): Promise<{ signed: Hex; head: string }> {
    const { lines, wallet, head } = await this.#alone(async () => {
      const allowed = judge(this.#config, this.#journal, request, this.#now())
      // A line that another process wrote may not be on the disk yet.
      await this.#journal.keep(...allowed.lines.filter((line) => !this.#journal.has(line)))
      for (const line of allowed.lines) {
        requireNoConflict(this.#journal, line)
        demand(this.#journal.signedFor(line.transfer_id) !== undefined, 'the journal does not have it')
      }
      return { ...allowed, head: this.#journal.head }
    })
    // Everything may be stopped while the device is asked.
    const recheck = () => void judge(this.#config, this.#journal, request, this.#now())
    // Outside the turn: a device may take seconds, and other wallets do not wait for it.
    return { signed: await wallet.sign(request.unsigned, this.#signaturesOf(lines[0]!, recheck)), head }
  }

  /** A signed move between a deposit address and the platform's wallets. Throws as `sign` does. */
  async move(request: MoveRequest): Promise<{ signed: Hex }> {
    const { line, signer } = await this.#alone(async () => {
      const allowed = judgeMove(this.#config, this.#journal, request, this.#now())
      await this.#journal.keep(allowed.line)
      return allowed
    })
    const kept = this.#signaturesOf(line, () => undefined)
    return { signed: await signer.sign(request.unsigned, kept) }
  }

  /** Deposit addresses at paths, vouched for. Throws Refused where the network's follow from a public key. */
  async addresses(network: string, asked: readonly AskedAddress[]): Promise<object[]> {
    const isNumber = (one: number) => Number.isInteger(one) && one >= 0 && one < 2 ** 31
    const areRead =
      asked.length <= 500 && asked.every(({ path }) => path.length === 2 && path.every(isNumber))
    demand(areRead, 'at most 500 addresses are given out at a time, each at a path of two numbers')
    const answers = await this.#config.networks.get(network)?.depositKeys?.answersTo?.(asked)
    demand(answers !== undefined, `no address of ${network} is given out here`)
    return answers
  }

  #signaturesOf(place: { network: string; wallet: string }, recheck: () => void): KeptSignatures {
    const { network, wallet } = place
    const signatureOf = (digest: Hex) => this.#journal.signatureOf({ network, wallet, digest })
    return {
      find: (digest) => this.#alone(async () => signatureOf(digest)),
      keep: (digest, signature) =>
        this.#alone(async () => {
          recheck()
          const at = this.#now().toISOString()
          await this.#journal.keep({ kind: 'SIGNATURE', at, network, wallet, digest, signature })
          return signatureOf(digest)!
        }),
    }
  }

  /**
   * Why each of these payments would be refused, before bytes of it are asked for; null where it would not be. Those count
   * in the windows of the next ones for a minute, in which they may be asked for. Throws Refused while the clock is doubted.
   */
  check(payments: readonly PaymentToJudge[]): Promise<(string | null)[]> {
    return this.#alone(async () =>
      foresee(this.#config, this.#journal, payments, this.#foreseen, this.#now()),
    )
  }

  /**
   * Changes the journal by the approval of people, once: a repeat changes nothing. Returns the signed transaction of a FILL.
   * Throws Refused without enough approvals, or where the journal contradicts it.
   */
  async change(change: JournalChange, approvals: readonly SignedStatement[]): Promise<{ signed?: Hex }> {
    const { wallets, feeMax, chainId } = this.#config.networks.get(change.network) ?? {}
    const wallet = 'wallet' in change ? wallets?.get(change.wallet) : undefined
    await this.#alone(async () => {
      const now = this.#now()
      const approving = requireApproved(this.#config, change, approvals, now)
      demand(wallets !== undefined, `${change.network} is not configured`)
      if ('wallet' in change)
        demand(wallet !== undefined, `${change.wallet} is no wallet of ${change.network}`)
      const lines = linesOf(change, approving, now)
      for (const line of lines) {
        if (!this.#journal.has(line)) requireNoConflict(this.#journal, line)
        if (line.kind === 'FILL') {
          demand(chainId! > 0, `${change.network} has no nonces that can be filled`)
          demand(BigInt(line.fee) <= feeMax!, `it may cost ${line.fee} wei, above fee_max`)
        }
      }
      await this.#journal.keep(...lines.filter((line) => !this.#journal.has(line)))
    })
    if (change.kind !== 'FILL') return {}
    const { address } = wallet!
    const maxFeePerGas = BigInt(change.max_fee_per_gas)
    const unsigned = serializeTransaction({
      ...{ type: 'eip1559', chainId: chainId!, nonce: change.nonce, to: address as Hex, value: 0n },
      ...{ gas: BigInt(change.gas), maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas },
    })
    const signed = await wallet!.sign(
      unsigned,
      this.#signaturesOf(change, () => undefined),
    )
    return { signed }
  }

  status(): Promise<WalletStatus[]> {
    return this.#alone(async () =>
      [...this.#config.networks].flatMap(([network, { wallets }]) =>
        [...wallets.keys()].map((wallet) => ({
          network,
          wallet,
          next_nonce: this.#journal.nextNonce({ network, wallet }) ?? null,
        })),
      ),
    )
  }

  /** One request at a time: what is judged by the journal is in it before the next one is judged. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(async () => {
      await this.#journal.refresh()
      return work()
    })
    this.#turn = mine.catch(() => undefined)
    return mine
  }
}
