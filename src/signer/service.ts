import type { Hex } from 'viem'
import type { SignerConfig } from './config.ts'
import { PLAIN_GAS } from '../chains/evm/fees.ts'
import type { Journal } from './journal.ts'
import { foresee, judge, require, requireNoConflict, type PaymentToJudge, type SignRequest } from './rules.ts'
import { requireApproved, type JournalChange } from './journal-changes.ts'
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
      const before = this.#journal.signedAt(line)
      const isNew = before === undefined || BigInt(before.fee) < BigInt(line.fee)
      // A line that another process wrote may not be on the disk yet.
      await this.#journal.keep(isNew ? line : undefined)
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
      const { expires_at: _, ...of } = change
      const at = now.toISOString()
      if (of.kind !== 'FILL') {
        requireNoConflict(this.#journal, { ...of, at })
        await this.#journal.keep({ ...of, at })
        return {}
      }
      const { max_fee_per_gas, ...line } = of
      const maxFeePerGas = BigInt(max_fee_per_gas)
      const fee = PLAIN_GAS * maxFeePerGas
      require(fee <= feeMax!, `it may cost ${fee} wei, above fee_max`)
      requireNoConflict(this.#journal, { ...line, at, fee: String(fee) })
      await this.#journal.keep({ ...line, at, fee: String(fee) })
      return {
        signed: await wallet.signTransaction({
          ...{ type: 'eip1559', chainId: chainId!, nonce: line.nonce, to: wallet.address, value: 0n },
          ...{ gas: PLAIN_GAS, maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas },
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
