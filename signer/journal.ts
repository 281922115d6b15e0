import { hash } from 'node:crypto'
import { open, stat, truncate, type FileHandle } from 'node:fs/promises'
import type { Server } from 'node:net'
import { dirname } from 'node:path'
import type { Hex } from 'viem'
import { millisOfId } from '../src/db/ids.ts'
import { SIGNED_WITH_NONCE } from '../src/networks/waiting.ts'
import type { SignerConfig } from './config.ts'
import type {
  DestinationLine,
  JournalLine,
  Judged,
  Line,
  NonceLine,
  SignLine,
  SignatureLine,
  VoidLine,
} from './journal-lines.ts'
import { listenAlone } from './socket.ts'
import { Window, type Leaving } from './windows.ts'

/**
 * The signer's own record of what it has signed: a file to which lines of JSON are appended. A line is on the disk before
 * the signature leaves, so that a crash repeats the same signature or none. One process writes it. Where two do all the
 * same, the first line of a nonce or transfer counts, and later ones that contradict it are void.
 */

const NO_PAYMENT = { asset: '', units: 0, customer: undefined, destination: undefined }

/** A replacement of the same nonce lets out what it costs more, and no second amount. */
export function leftBy(line: NonceLine, before: NonceLine | undefined): Leaving {
  const more = BigInt(line.fee) - BigInt(before?.fee ?? 0)
  const isPayment = line.kind === 'SIGN' && before?.kind !== 'SIGN'
  const { asset, units, customer, destination } = isPayment ? line : NO_PAYMENT
  return { asset, units: BigInt(units), fee: more > 0n ? more : 0n, customer, destination }
}

interface Wallet {
  /** Undefined until people have opened it: a new journal cannot be told from one that was lost. */
  next?: number
  byNonce: Map<number | string, NonceLine>
  signatures: Map<string, Hex>
}

interface Named {
  network: string
  asset: string
  destination: string
}
const destinationKey = ({ network, asset, destination }: Named) => `${network} ${asset} ${destination}`
const walletKey = ({ network, wallet }: Pick<SignLine, 'network' | 'wallet'>) => `${network} ${wallet}`

const isShared = (line: NonceLine): boolean => line.kind === 'SIGN' && line.shared === true

/** Each line is an object of JSON. */
const OPENING_BRACE = 0x7b
/** As much is read at a time. */
const CHUNK_BYTES = 1024 * 1024

export class Journal {
  readonly #path: string
  readonly #file: FileHandle
  readonly #lock: Server
  #read = 0
  #isBroken = false
  readonly #wallets = new Map<string, Wallet>()
  /** The last line of a transfer that counts, or the word of people that it may be signed. */
  readonly #transfers = new Map<string, SignLine | VoidLine>()
  /** Transfers that may be signed, though they are from before. */
  readonly #allowed = new Set<string>()
  /** By network, asset and address. */
  readonly #named = new Map<string, DestinationLine[]>()
  /** By these and the SHA-256 of what people have approved: it names them no more. */
  readonly #takenBack = new Set<string>()
  /** The SHA-256 of what people have approved. */
  readonly #changes = new Set<string>()
  /** By network, the time from which on transfers are signed that are not on record. */
  readonly #transfersFrom = new Map<string, string>()
  /** By network. */
  readonly windows: ReadonlyMap<string, Window[]>
  /** Every head that it has had, and those that people have opened it after. */
  readonly #heads = new Set<string>()
  /** Names the last line and all before it: the hash of the head before and the line. */
  head = ''
  /** The latest time of a line, in milliseconds. */
  newest = 0

  private constructor(path: string, file: FileHandle, lock: Server, networks: SignerConfig['networks']) {
    this.windows = new Map(
      [...networks].map(([name, network]) => [name, network.windows.map((one) => new Window(network, one))]),
    )
    this.#path = path
    this.#file = file
    this.#lock = lock
  }

  /**
   * Opens the journal, which is made if it is not there, for the windows of these networks. A last line without an end was not
   * answered, and is cut off. Throws an Error for a line or a file that is none, and where another process has it open.
   */
  static async open(path: string, networks: SignerConfig['networks']): Promise<Journal> {
    const lock = await listenAlone(`${path}.lock`)
    const file = await open(path, 'a+', 0o600)
    const journal = new Journal(path, file, lock, networks)
    try {
      // A new file is lost with its folder's entry.
      const folder = await open(dirname(path))
      await folder.sync()
      await folder.close()
      await journal.refresh()
      await journal.#cutHalfLine()
      return journal
    } catch (error) {
      await journal.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
    this.#lock.close()
  }

  /** Reads what was appended since the last call, by this process or another. */
  async refresh(): Promise<void> {
    if (this.#isBroken)
      throw new Error(`the journal ${this.#path} could not be written: start the signer again`)
    const [{ size, ino }, named] = await Promise.all([this.#file.stat(), stat(this.#path)])
    if (named.ino !== ino)
      throw new Error(`the journal ${this.#path} was replaced while the signer ran: start it again`)
    if (size < this.#read)
      throw new Error(`the journal ${this.#path} was cut while the signer ran: start it again`)
    while (this.#read < size) {
      const length = Math.min(size - this.#read, CHUNK_BYTES)
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(length), 0, length, this.#read)
      const end = buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1
      if (end === 0) return
      for (const text of buffer.subarray(0, end).toString().split('\n'))
        if (text !== '') this.#applyText(text)
      this.#read += end
    }
  }

  /** Cuts off what follows the last whole line. */
  async #cutHalfLine(): Promise<void> {
    const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(1), 0, 1, this.#read)
    if (bytesRead === 0) return
    if (buffer[0] !== OPENING_BRACE) throw new Error(`${this.#path} is no journal of a signer`)
    await truncate(this.#path, this.#read)
  }

  #applyText(text: string): void {
    try {
      const line = JSON.parse(text) as JournalLine
      this.#apply(line)
      this.head = hash('sha256', this.head + text).slice(0, 32)
      this.#heads.add(this.head)
      if (Date.parse(line.at) > this.newest) this.newest = Date.parse(line.at)
    } catch {
      throw new Error(
        `the journal ${this.#path} has a line that cannot be read: restore it from its backup, and open it`,
      )
    }
  }

  #apply(line: JournalLine): void {
    if (line.kind === 'SIGNATURE') {
      const { signatures } = this.#walletOf(line)
      if (!signatures.has(line.digest)) signatures.set(line.digest, line.signature)
      return
    }
    if (line.kind === 'MOVE') return this.#count(line, { asset: '', units: 0n, fee: BigInt(line.fee) })
    // A signed nonce counts, also where the line that opened the journal is gone.
    if (line.kind === 'SIGN' || line.kind === 'FILL') this.#walletOf(line).next ??= Number(line.nonce) || 0
    if (this.#isApplied(line) || this.conflictOf(line) !== undefined) return
    if (line.kind !== 'SIGN' && line.change !== undefined) this.#changes.add(line.change)
    if (line.kind === 'DESTINATION') {
      for (const destination of line.destinations) {
        const key = destinationKey({ ...line, destination })
        const named = this.#named.get(key) ?? []
        const approved = `${key} ${line.change!.split('/')[0]}`
        // What was taken back is not named again by fewer of the same approvals.
        if (line.remove)
          for (const { change } of named) this.#takenBack.add(`${key} ${change!.split('/')[0]}`)
        if (!this.#takenBack.has(approved)) this.#named.set(key, line.remove ? [] : [...named, line])
      }
      return
    }
    if (line.kind === 'ALLOW') return line.transfer_ids.forEach((id) => this.#allowed.add(id))
    const wallet = this.#walletOf(line)
    if (line.kind === 'OPEN') {
      const { network } = line
      wallet.next = Math.max(wallet.next ?? 0, line.next_nonce)
      const before = this.#transfersFrom.get(network) ?? ''
      if (line.transfers_from > before) this.#transfersFrom.set(network, line.transfers_from)
      line.after?.forEach((head) => this.#heads.add(head))
      // Transfers that were allowed before may have been signed in lines that are lost.
      this.#allowed.clear()
      for (const [id, known] of this.#transfers)
        if (known.kind === 'VOID' && known.network === network) this.#transfers.delete(id)
      return
    }
    const before = line.kind === 'VOID' ? undefined : this.signedBefore(line)
    if (line.kind !== 'FILL') this.#transfers.set(line.transfer_id, line)
    if (line.kind === 'VOID') return
    this.#count(line, leftBy(line, before))
    if (isShared(line)) return
    if (typeof line.nonce === 'number') wallet.next = Math.max(wallet.next ?? 0, line.nonce + 1)
    wallet.byNonce.set(line.nonce, line)
  }

  #count({ network, at }: Line, left: Leaving): void {
    this.windows.get(network)?.forEach((window) => window.add(Date.parse(at), left))
  }

  #isApplied(line: Judged): boolean {
    return line.kind !== 'SIGN' && line.change !== undefined && this.#changes.has(line.change)
  }

  #walletOf(place: Pick<SignLine, 'network' | 'wallet'>): Wallet {
    const known: Wallet = this.#wallets.get(walletKey(place)) ?? { byNonce: new Map(), signatures: new Map() }
    this.#wallets.set(walletKey(place), known)
    return known
  }

  /** Why a question is refused whose asker has seen these heads: this must be the journal that had them. */
  objectionToHeads(heads: readonly string[]): string | undefined {
    const lost = heads.filter((head) => !this.#heads.has(head)).join(' ')
    if (lost === '') return undefined
    return `its journal lacks lines that the worker has seen: another signer has answered, or it was lost or restored. Let one signer answer, or begin it after them: 'bursar signer open --after ${lost}'`
  }

  /** The next nonce of a wallet: that of the first transaction which is not on record. Undefined until it is opened. */
  nextNonce(place: Pick<SignLine, 'network' | 'wallet'>): number | undefined {
    return this.#walletOf(place).next
  }

  /** Why a line contradicts what is on record; undefined where it does not. */
  conflictOf(line: Judged): string | undefined {
    if (line.kind === 'OPEN' || line.kind === 'DESTINATION') return undefined
    if (line.kind === 'ALLOW') {
      const signed = line.transfer_ids.find((id) => this.#transfers.has(id))
      return signed && this.signedAs(signed)
    }
    const before = line.kind === 'FILL' ? undefined : this.#transfers.get(line.transfer_id)
    const isOther =
      before?.kind === 'SIGN' && (before.nonce !== line.nonce || walletKey(before) !== walletKey(line))
    if (isOther) return this.signedAs(before.transfer_id)
    if (line.kind === 'VOID')
      return before === undefined
        ? `transfer ${line.transfer_id} was not signed on this journal: 'bursar signer allow' allows it`
        : undefined
    const conflict = this.#conflictOfNonce(line)
    if (conflict !== undefined || line.kind === 'FILL' || before?.kind !== 'SIGN') return conflict
    const isItsPayment = before.asset === line.asset && before.units === line.units
    return isItsPayment ? undefined : `transfer ${line.transfer_id} was signed with another amount`
  }

  /** What a transfer was signed with, which must be on record. */
  signedAs(transferId: string): string {
    const { nonce, wallet } = this.#transfers.get(transferId)!
    return `transfer ${transferId} ${SIGNED_WITH_NONCE} ${nonce} of ${wallet}`
  }

  #conflictOfNonce(line: NonceLine): string | undefined {
    const { nonce, wallet } = line
    const { next, byNonce } = this.#walletOf(line)
    if (next === undefined)
      return `the journal is new or was lost: 'bursar signer open' begins ${wallet} in it`
    if (typeof nonce === 'number' && nonce > next)
      return `the journal ends at nonce ${next}, and nonce ${nonce} is asked for: it was lost or restored, or another signer has a journal of its own`
    // One of a nonce is mined at most: to fill it can but keep what was signed with it from being paid.
    if (line.kind === 'FILL' || isShared(line)) return undefined
    const taken = byNonce.get(nonce)
    if (taken === undefined)
      return typeof nonce === 'number' && nonce < next
        ? `nonce ${nonce} was used before, and the journal does not say what for`
        : undefined
    if (taken.kind === 'FILL') return `nonce ${nonce} was used for nothing, by its approvers`
    return taken.transfer_id === line.transfer_id
      ? undefined
      : `nonce ${nonce} was used for transfer ${taken.transfer_id}`
  }

  /** Why a transfer that is not on record must not be signed: it may have been, before the journal began. */
  objectionTo(network: string, transferId: string): string | undefined {
    const from = this.#transfersFrom.get(network)
    const isKnown = this.#transfers.has(transferId) || this.#allowed.has(transferId)
    if (from === undefined || isKnown || millisOfId(transferId) >= Date.parse(from)) return undefined
    return `transfer ${transferId} is from before ${from}, and may have been signed on a journal that was lost: 'bursar signer allow' allows it`
  }

  /** Since when a destination is named by so many people; undefined where it is not. */
  named(destination: Named, required: number): string | undefined {
    const lines = this.#named.get(destinationKey(destination)) ?? []
    return lines.find(({ approvals }) => approvals >= required)?.at
  }

  /** What was signed for a transfer, and is not void. */
  signedFor(transferId: string): SignLine | undefined {
    const last = this.#transfers.get(transferId)
    return last?.kind === 'SIGN' ? last : undefined
  }

  /** What was signed before in place of a line: of both, the chain takes one. */
  signedBefore(line: NonceLine): NonceLine | undefined {
    return line.kind === 'SIGN' && isShared(line)
      ? this.signedFor(line.transfer_id)
      : this.#walletOf(line).byNonce.get(line.nonce)
  }

  /** Whether the journal says this already: the change was applied, or the nonce was used for this at no lower fee. */
  has(line: Judged): boolean {
    if (this.#isApplied(line)) return true
    if (line.kind !== 'SIGN' && line.kind !== 'FILL') return false
    const before = this.signedBefore(line)
    return before?.kind === line.kind && BigInt(before.fee) >= BigInt(line.fee)
  }

  signatureOf(place: Pick<SignatureLine, 'network' | 'wallet' | 'digest'>): Hex | undefined {
    return this.#walletOf(place).signatures.get(place.digest)
  }

  /** Appends lines, and returns once they are on the disk; without one, once all that was read is. */
  async keep(...lines: JournalLine[]): Promise<void> {
    if (this.#isBroken)
      throw new Error(`the journal ${this.#path} could not be written: start the signer again`)
    // Until it is known to be on the disk, nothing more is signed: half a line may be there, which a start cuts off.
    this.#isBroken = true
    await this.#file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    await this.#file.datasync()
    this.#isBroken = false
    await this.refresh()
  }
}
