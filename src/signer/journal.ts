import { open, readFile, truncate, type FileHandle } from 'node:fs/promises'
import type { Hex } from 'viem'

/**
 * The signer's own record of what it has signed: a file to which lines of JSON are appended. A line is on the disk before the
 * signature leaves, so that a crash repeats the same signature or none. Several signers may share a file: the first line of a
 * nonce or transfer counts for all of them, and later ones that contradict it are void.
 */

/** A nonce of a wallet, and the payment that it is used for. Amounts in units of the chain, as decimal strings. */
export interface SignLine {
  kind: 'SIGN'
  at: string
  network: string
  wallet: string
  nonce: number
  transfer_id: string
  asset: string
  units: string
  /** The most that it costs, in the network's own asset. */
  fee: string
}

/** By the approval of people, the journal begins at this nonce: it was lost, or restored from a backup. */
export interface OpenLine {
  kind: 'OPEN'
  at: string
  network: string
  wallet: string
  next_nonce: number
}

/** By the approval of people, what was signed for a transfer can never be mined: it may be signed anew, with another nonce. */
export interface VoidLine {
  kind: 'VOID'
  at: string
  network: string
  wallet: string
  nonce: number
  transfer_id: string
}

/**
 * The signature of a key that would sign the same question with other bytes the next time. It is on the disk before it leaves,
 * and the first of a digest counts.
 */
export interface SignatureLine {
  kind: 'SIGNATURE'
  at: string
  network: string
  wallet: string
  digest: string
  signature: Hex
}

/** What a signature lets out, in units of the chain: its amount, and its fee in the network's own asset. */
interface Left {
  at: string
  network: string
  asset: string
  units: bigint
  fee: bigint
}

/** A replacement of the same nonce lets out what it costs more, and no second amount. */
const leftBy = ({ at, network, asset, units, fee }: SignLine, before: SignLine | undefined): Left => ({
  at,
  network,
  asset,
  units: before === undefined ? BigInt(units) : 0n,
  fee: before === undefined ? BigInt(fee) : larger(BigInt(fee) - BigInt(before.fee), 0n),
})

const larger = (a: bigint, b: bigint) => (a > b ? a : b)

export type JournalLine = SignLine | OpenLine | VoidLine | SignatureLine

/** What is on record of a wallet. */
interface Wallet {
  next: number
  byNonce: Map<number, SignLine>
  signatures: Map<string, Hex>
}

/** The last line of a transfer that counts, and whether it is void. */
interface OfTransfer {
  line: SignLine
  isVoid: boolean
}

const walletKey = ({ network, wallet }: Pick<JournalLine, 'network' | 'wallet'>) => `${network} ${wallet}`

/** Each line is an object of JSON. */
const OPENING_BRACE = 0x7b

export class Journal {
  readonly #path: string
  readonly #file: FileHandle
  #read = 0
  #isBroken = false
  readonly #wallets = new Map<string, Wallet>()
  readonly #transfers = new Map<string, OfTransfer>()
  /** What has left by lines that count, oldest first. */
  readonly #left: Left[] = []

  private constructor(path: string, file: FileHandle) {
    this.#path = path
    this.#file = file
  }

  /**
   * Opens the journal, which is made if it is not there. A last line without an end was not answered, and is cut off. Throws an
   * Error for a line or a file that is none.
   */
  static async open(path: string): Promise<Journal> {
    const file = await open(path, 'a+', 0o600)
    const bytes = await readFile(path)
    const end = bytes.lastIndexOf(0x0a) + 1
    if (end < bytes.length) {
      if (bytes[end] !== OPENING_BRACE) throw new Error(`${path} is no journal of a signer`)
      await truncate(path, end)
    }
    const journal = new Journal(path, file)
    await journal.refresh()
    return journal
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  /** Reads what was appended since the last call, by this process or another. */
  async refresh(): Promise<void> {
    if (this.#isBroken)
      throw new Error(`the journal ${this.#path} could not be written: start the signer again`)
    const { size } = await this.#file.stat()
    if (size < this.#read)
      throw new Error(`the journal ${this.#path} was cut while the signer ran: start it again`)
    if (size === this.#read) return
    const { buffer, bytesRead } = await this.#file.read(
      Buffer.alloc(size - this.#read),
      0,
      size - this.#read,
      this.#read,
    )
    const end = buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1
    for (const text of buffer.subarray(0, end).toString().split('\n')) if (text !== '') this.#applyText(text)
    this.#read += end
  }

  #applyText(text: string): void {
    try {
      this.#apply(JSON.parse(text) as JournalLine)
    } catch {
      throw new Error(
        `the journal ${this.#path} has a line that cannot be read: restore it from its backup, and open it`,
      )
    }
  }

  #apply(line: JournalLine): void {
    const wallet = this.#walletOf(line)
    const before = 'transfer_id' in line ? this.#transfers.get(line.transfer_id) : undefined
    switch (line.kind) {
      case 'OPEN':
        wallet.next = Math.max(wallet.next, line.next_nonce)
        return
      case 'VOID':
        if (before?.line.nonce === line.nonce && walletKey(before.line) === walletKey(line))
          before.isVoid = true
        return
      case 'SIGNATURE':
        if (!wallet.signatures.has(line.digest)) wallet.signatures.set(line.digest, line.signature)
        return
      case 'SIGN':
        if (this.conflictOf(line) !== undefined) return
        this.#left.push(leftBy(line, wallet.byNonce.get(line.nonce)))
        wallet.next = Math.max(wallet.next, line.nonce + 1)
        wallet.byNonce.set(line.nonce, line)
        this.#transfers.set(line.transfer_id, { line, isVoid: false })
    }
  }

  #walletOf(of: Pick<JournalLine, 'network' | 'wallet'>): Wallet {
    const known: Wallet = this.#wallets.get(walletKey(of)) ?? {
      next: 0,
      byNonce: new Map(),
      signatures: new Map(),
    }
    this.#wallets.set(walletKey(of), known)
    return known
  }

  /** The next nonce of a wallet: that of the first transaction which is not on record. */
  nextNonce(of: Pick<SignLine, 'network' | 'wallet'>): number {
    return this.#walletOf(of).next
  }

  /** Why this transaction must not be signed beside what is on record; undefined where it may. */
  conflictOf(line: Omit<SignLine, 'at' | 'kind'>): string | undefined {
    const { nonce, transfer_id } = line
    const { next, byNonce } = this.#walletOf(line)
    const taken = byNonce.get(nonce)
    if (taken !== undefined && taken.transfer_id !== transfer_id)
      return `nonce ${nonce} was used for transfer ${taken.transfer_id}`
    if (taken === undefined && nonce < next)
      return `nonce ${nonce} was used before, and the journal does not say what for`
    if (nonce > next)
      return (
        `the journal ends at nonce ${next}, and nonce ${nonce} is asked for: it was lost or restored, or another signer ` +
        `has a journal of its own`
      )
    const before = this.#transfers.get(transfer_id)
    if (before === undefined || before.isVoid) return undefined
    const isSame = before.line.nonce === nonce && walletKey(before.line) === walletKey(line)
    if (!isSame)
      return `transfer ${transfer_id} was signed with nonce ${before.line.nonce} of ${before.line.wallet}`
    const isItsPayment = before.line.asset === line.asset && before.line.units === line.units
    return isItsPayment ? undefined : `transfer ${transfer_id} was signed with another amount`
  }

  /** What was signed for a transfer, and is not void. */
  signedFor(transferId: string): SignLine | undefined {
    const of = this.#transfers.get(transferId)
    return of === undefined || of.isVoid ? undefined : of.line
  }

  /** What is on record of a nonce. */
  signedAt(of: Pick<SignLine, 'network' | 'wallet' | 'nonce'>): SignLine | undefined {
    return this.#walletOf(of).byNonce.get(of.nonce)
  }

  /** The signature of a digest that is kept. */
  signatureOf(of: Pick<SignatureLine, 'network' | 'wallet' | 'digest'>): Hex | undefined {
    return this.#walletOf(of).signatures.get(of.digest)
  }

  /** What has left a network since this time. */
  leftSince(network: string, at: string): Left[] {
    return this.#left.filter((one) => one.network === network && one.at >= at)
  }

  /** Appends a line, and returns once it is on the disk. */
  async append(line: JournalLine): Promise<void> {
    if (this.#isBroken)
      throw new Error(`the journal ${this.#path} could not be written: start the signer again`)
    // Until it is known to be on the disk, nothing more is signed: half a line may be there, which a start cuts off.
    this.#isBroken = true
    await this.#file.appendFile(`${JSON.stringify(line)}\n`)
    await this.#file.datasync()
    this.#isBroken = false
    await this.refresh()
  }
}
