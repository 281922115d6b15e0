import type { Hex } from 'viem'
import type { KeptSignatures } from './back-end.ts'
import type { SignerConfig } from './config.ts'
import type { Journal, OpenLine, SignLine, VoidLine } from './journal.ts'
import { foresee, judge, Refused, type PaymentToJudge, type SignRequest } from './rules.ts'
import { requireApproved, type JournalChange } from './journal-changes.ts'
import type { SignedStatement } from '../contract/approval.ts'

/** What the signer says of a wallet. */
export interface WalletStatus {
  network: string
  wallet: string
  next_nonce: number
}

/** Signs what its rules allow, one request after the other, and writes each to its journal before it signs. */
export class Signer {
  readonly #config: SignerConfig
  readonly #journal: Journal
  #turn: Promise<unknown> = Promise.resolve()

  constructor(config: SignerConfig, journal: Journal) {
    this.#config = config
    this.#journal = journal
  }

  /**
   * The signed transaction. Throws Refused with the rule that forbids it, and BackEndFailure where the key cannot be used now: the
   * journal has its line by then, and the same question is signed later.
   */
  async sign(request: SignRequest): Promise<Hex> {
    const { line, transaction, network } = await this.#alone(async () => {
      const allowed = judge(this.#config, this.#journal, request, new Date())
      const { line } = allowed
      const before = this.#journal.signedAt(line)
      if (before === undefined || BigInt(before.fee) < BigInt(line.fee)) {
        await this.#journal.append(line)
        // Another signer may have appended a line for the nonce or the transfer first.
        const kept = this.#journal.signedAt(line)
        if (kept?.transfer_id !== line.transfer_id || kept.fee !== line.fee)
          throw new Refused(
            this.#journal.conflictOf(line) ?? 'the journal does not have it: it was moved or cut',
          )
      }
      return allowed
    })
    // Outside the turn: a device may take seconds, and other wallets do not wait for it.
    return network.wallets
      .get(line.wallet as Hex)!
      .signTransaction(transaction, this.#signaturesOf(line, request))
  }

  #signaturesOf({ network, wallet }: SignLine, request: SignRequest): KeptSignatures {
    const signatureOf = (digest: Hex) => this.#journal.signatureOf({ network, wallet, digest })
    return {
      find: (digest) => this.#alone(async () => signatureOf(digest)),
      keep: (digest, signature) =>
        this.#alone(async () => {
          // Everything may have been stopped while the device was asked.
          const { line } = judge(this.#config, this.#journal, request, new Date())
          const { at } = line
          await this.#journal.append({ kind: 'SIGNATURE', at, network, wallet, digest, signature })
          return signatureOf(digest)!
        }),
    }
  }

  /** Why each of these payments would be refused, before bytes of it are asked for; null where it would not be. */
  check(payments: readonly PaymentToJudge[]): Promise<(string | null)[]> {
    return this.#alone(async () => foresee(this.#config, this.#journal, payments, new Date()))
  }

  /** Opens a lost journal at a nonce, or voids what was signed for a transfer. Throws Refused without enough approvals. */
  change(change: JournalChange, approvals: readonly SignedStatement[]): Promise<void> {
    return this.#alone(async () => {
      requireApproved(this.#config, change, approvals)
      const line: OpenLine | VoidLine = { ...change, at: new Date().toISOString() }
      await this.#journal.append(line)
    })
  }

  status(): Promise<WalletStatus[]> {
    return this.#alone(async () =>
      [...this.#config.networks].flatMap(([network, { wallets }]) =>
        [...wallets.keys()].map((wallet) => ({
          network,
          wallet,
          next_nonce: this.#journal.nextNonce({ network, wallet }),
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
