import type { Hex } from 'viem'
import type { SignerConfig } from './config.ts'
import type { Journal } from './journal.ts'
import { foresee, judge, require, requireNoConflict, type PaymentToJudge, type SignRequest } from './rules.ts'
import { lineOf, requireApproved, type JournalChange } from './journal-changes.ts'
import type { SignedStatement } from '../contract/approval.ts'

/** What the signer says of a wallet. */
export interface WalletStatus {
  network: string
  wallet: string
  /** Null until its journal is opened. */
  next_nonce: number | null
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

  /** The signed transaction. Throws Refused with the rule that forbids it. */
  sign(request: SignRequest): Promise<Hex> {
    return this.#alone(async () => {
      const { line, transaction, network } = judge(this.#config, this.#journal, request, new Date())
      // A line that another process wrote may not be on the disk yet.
      await this.#journal.keep(this.#journal.has(line) ? undefined : line)
      requireNoConflict(this.#journal, line)
      require(this.#journal.signedFor(line.transfer_id) !== undefined, 'the journal does not have it')
      return network.wallets.get(line.wallet as Hex)!.signTransaction(transaction)
    })
  }

  /** Why each of these payments would be refused, before bytes of it are asked for; null where it would not be. */
  check(payments: readonly PaymentToJudge[]): Promise<(string | null)[]> {
    return this.#alone(async () => foresee(this.#config, this.#journal, payments, new Date()))
  }

  /**
   * Changes the journal by the approval of people. Returns the signed transaction of a FILL. Throws Refused without enough
   * approvals, or where the journal contradicts it.
   */
  change(change: JournalChange, approvals: readonly SignedStatement[]): Promise<{ signed?: Hex }> {
    return this.#alone(async () => {
      const now = new Date()
      requireApproved(this.#config, change, approvals, now)
      const { wallets, feeMax, chainId } = this.#config.networks.get(change.network) ?? {}
      const wallet = wallets?.get(change.wallet as Hex)
      require(wallet !== undefined, `${change.wallet} is no wallet of ${change.network}`)
      const line = lineOf(change, now)
      requireNoConflict(this.#journal, line)
      if (line.kind === 'FILL')
        require(BigInt(line.fee) <= feeMax!, `it may cost ${line.fee} wei, above fee_max`)
      await this.#journal.keep(this.#journal.has(line) ? undefined : line)
      if (change.kind !== 'FILL') return {}
      const maxFeePerGas = BigInt(change.max_fee_per_gas)
      return {
        signed: await wallet.signTransaction({
          ...{ type: 'eip1559', chainId: chainId!, nonce: change.nonce, to: wallet.address, value: 0n },
          ...{ gas: BigInt(change.gas), maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas },
        }),
      }
    })
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
