/*
 * A node of SOLANA for tests: the real runtime with its programs (litesvm) behind the JSON-RPC that a node has.
 *
 * What the runtime lacks is made up for here: a pool of transactions that wait for a block, blocks, finality, signatures by
 * account, whether a transaction's block hash or durable nonce is live, and that a transaction on a durable nonce moves the nonce
 * to the hash of the block before, also where it fails (litesvm moves it to a hash of the old value, or not at all).
 *
 * Blocks are made by `mine` alone, or by the request `test_mine` of another process.
 */
import type * as litesvm from 'litesvm'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { base58 } from '@scure/base'
import { getAddressDecoder, type Address } from '@solana/addresses'
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit'
import { signerOfSeed, type SolanaSigner } from '../chains/solana/keys.ts'
import {
  associatedOf,
  createAssociated,
  SYSTEM,
  TOKEN,
  TOKEN_2022,
  transferSol,
} from '../chains/solana/instructions.ts'
import { signBriefly } from '../chains/solana/transaction.ts'
import type { Instruction } from '@solana/kit'
import { AccountRole } from '@solana/kit'

type Runtime = typeof litesvm
type Svm = InstanceType<Runtime['LiteSVM']>

/** The runtime; undefined where this platform has no package of it, or an older one without copies of its state. */
export const runtime: Runtime | undefined = await import('litesvm').then(
  (loaded) => ('fromBytes' in loaded.LiteSVM ? loaded : undefined),
  () => undefined,
)

interface Made {
  signature: string
  slot: bigint
  raw: Buffer
  err: unknown
  fee: bigint
  accounts: Address[]
  before: bigint[]
  after: bigint[]
  tokensBefore: TokenBalance[]
  tokensAfter: TokenBalance[]
}
interface TokenBalance {
  accountIndex: number
  mint: string
  owner: string
  uiTokenAmount: { amount: string }
}

type Account = ReturnType<Svm['getAccount']>
/** What an account was from the end of a block on. */
interface Version {
  block: number
  account: Account
}

const RECENT_BLOCKS = 150

/** Answers a call instead of the node, or lets it answer: `next` is the node's own answer. */
export type Interceptor = (method: string, params: unknown[], next: () => unknown) => unknown

const decode = (bytes: Uint8Array): Address => getAddressDecoder().decode(bytes)

function read(raw: Uint8Array) {
  const transaction = getTransactionDecoder().decode(raw)
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
  if (message.version !== 'legacy' && message.version !== 0) throw new Error('unknown version')
  const accounts = [...message.staticAccounts] as Address[]
  const signature = transaction.signatures[accounts[0]!]
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header
  const writable = accounts.filter((_, index) =>
    index < numSignerAccounts
      ? index < numSignerAccounts - numReadonlySignerAccounts
      : index < accounts.length - numReadonlyNonSignerAccounts,
  )
  return { transaction, message, accounts, writable, signature: signature ? base58.encode(signature) : '' }
}

export class SolanaNode {
  rpcUrl = ''
  readonly genesis = base58.encode(randomBytes(32))
  /** The price of a unit in recent blocks, in millionths of a lamport. */
  unitPrice = 1_000n
  /** How many blocks must follow before one is final. */
  depth = 0
  intercept: Interceptor | undefined
  calls: string[] = []
  /** Sent, and in no block. */
  pool = new Map<string, Buffer>()
  made: Made[] = []
  svm: Svm
  /** The slots of the blocks. */
  private blocks: bigint[] = []
  /** Of the accounts that were written since the first block. A copy of the whole state for each block took most of the time. */
  private versions = new Map<Address, Version[]>()
  private hashes: string[] = []
  /** By slot, the hash of the block before: the one that moves nonces. */
  private parents = new Map<bigint, string>()
  private server = createServer()
  readonly bank: SolanaSigner = signerOfSeed(randomBytes(32))

  constructor({ LiteSVM }: Runtime) {
    this.svm = new LiteSVM().withBlockhashCheck(false).withTransactionHistory(0n)
    this.svm.setAccount({
      address: this.bank.address,
      programAddress: SYSTEM,
      data: new Uint8Array(),
      executable: false,
      lamports: 1_000_000_000_000_000n,
      space: 0n,
    } as never)
    this.hashes.push(this.svm.latestBlockhash())
    this.keepBlock()
  }

  static async start(): Promise<SolanaNode> {
    const node = new SolanaNode(runtime!)
    node.server.on('request', (request, reply) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        void node.answer(JSON.parse(Buffer.concat(chunks).toString()) as Call).then((answer) => {
          reply.setHeader('content-type', 'application/json')
          reply.end(
            JSON.stringify(answer, (_, value: unknown) =>
              typeof value === 'bigint' ? Number(value) : value,
            ),
          )
        })
      })
    })
    node.server.listen(0, '127.0.0.1')
    await once(node.server, 'listening')
    node.rpcUrl = `http://127.0.0.1:${(node.server.address() as AddressInfo).port}`
    return node
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }

  // -------------------------------------------------------------------------------------------- blocks

  get slot(): bigint {
    return this.svm.getClock().slot
  }

  private keepBlock(): void {
    this.blocks.push(this.slot)
  }

  /** The newest final block. */
  private final(): number {
    return Math.max(0, this.blocks.length - 1 - this.depth)
  }

  /** An account as it was at the end of a block. */
  private accountIn(block: number, address: Address): Account {
    const versions = this.versions.get(address)
    return versions?.findLast((version) => version.block <= block)?.account ?? this.svm.getAccount(address)
  }

  /** Makes a change, and keeps what these accounts are before and after it. */
  private writing<T>(accounts: readonly Address[], write: () => T): T {
    for (const address of accounts)
      if (!this.versions.has(address))
        this.versions.set(address, [{ block: 0, account: this.svm.getAccount(address) }])
    const done = write()
    for (const address of accounts)
      this.versions.get(address)!.push({ block: this.blocks.length, account: this.svm.getAccount(address) })
    return done
  }

  /** Makes blocks of what waits in the pool. */
  mine(blocks = 1): void {
    for (let made = 0; made < blocks; made++) {
      this.svm.warpToSlot(this.slot + 1n)
      this.parents.set(this.slot, this.svm.latestBlockhash())
      for (const [signature, raw] of this.pool) {
        this.pool.delete(signature)
        this.execute(signature, raw)
      }
      this.nextHash()
      this.keepBlock()
    }
  }

  private nextHash(): void {
    this.svm.expireBlockhash()
    this.hashes.push(this.svm.latestBlockhash())
    if (this.hashes.length > RECENT_BLOCKS * 20) this.hashes.shift()
  }

  /** All hashes of blocks are too old: what has one of them can never be made. */
  forgetHashes(): void {
    this.hashes = []
    this.nextHash()
  }

  /** Everything after a snapshot did not happen; what was made since is gone from the pool, too. */
  snapshot() {
    const [state, made, hashes, blocks] = [
      this.svm.toBytes(),
      [...this.made],
      [...this.hashes],
      [...this.blocks],
    ]
    return () => {
      this.svm = runtime!.LiteSVM.fromBytes(state).withBlockhashCheck(false).withTransactionHistory(0n)
      this.made = [...made]
      this.hashes = [...hashes]
      this.blocks = [...blocks]
      for (const [address, versions] of this.versions)
        this.versions.set(
          address,
          versions.filter(({ block }) => block < blocks.length),
        )
      this.pool.clear()
    }
  }

  /** Answers getMultipleAccounts with the accounts as they are now, also later. */
  snapshotOfAccounts() {
    const [block, { slot }] = [this.blocks.length - 1, this]
    return (params: unknown[]) => {
      const value = (params[0] as Address[]).map((one) => shownAccount(this.accountIn(block, one), Infinity))
      return { context: { slot }, value }
    }
  }

  /** The nonce account whose value a transaction uses; undefined where it has a block's hash. */
  private nonceAccountOf(raw: Uint8Array): Address | undefined {
    const { message, accounts } = read(raw)
    const [first] = message.instructions
    if (first === undefined || accounts[first.programAddressIndex] !== SYSTEM) return undefined
    const data = Buffer.from(first.data ?? [])
    return data.length === 4 && data.readUInt32LE() === 4 ? accounts[first.accountIndices![0]!] : undefined
  }

  private isLive(raw: Uint8Array): boolean {
    const { message } = read(raw)
    const nonceAccount = this.nonceAccountOf(raw)
    if (nonceAccount === undefined) return this.hashes.includes(message.lifetimeToken)
    const account = this.svm.getAccount(nonceAccount)
    return account.exists && base58.encode(account.data.slice(40, 72)) === message.lifetimeToken
  }

  private execute(signature: string, raw: Buffer): void {
    if (!this.isLive(raw) || this.made.some((one) => one.signature === signature)) return
    const { transaction, accounts, writable } = read(raw)
    const before = this.balances(accounts)
    const result = this.writing(writable, () => this.svm.sendTransaction(transaction))
    const isFailed = result instanceof runtime!.FailedTransactionMetadata
    const err = isFailed ? errorOf(result.err()) : null
    // Refused before it was run: no block has it.
    if (
      isFailed &&
      (typeof err !== 'object' ||
        err === null ||
        !('InstructionError' in err || 'InsufficientFundsForRent' in err))
    )
      return
    const nonceAccount = this.nonceAccountOf(raw)
    if (nonceAccount !== undefined) this.moveNonce(nonceAccount)
    const after = this.balances(accounts)
    this.made.push({
      signature,
      slot: this.slot,
      raw,
      err,
      fee: isFailed ? before.lamports[0]! - after.lamports[0]! : feeOf(raw),
      accounts,
      before: before.lamports,
      after: after.lamports,
      tokensBefore: before.tokens,
      tokensAfter: after.tokens,
    })
  }

  private moveNonce(address: Address): void {
    const account = this.svm.getAccount(address)
    if (!account.exists) return
    const data = new Uint8Array(account.data)
    const hash = createHash('sha256')
      .update('DURABLE_NONCE')
      .update(base58.decode(this.svm.latestBlockhash()))
    data.set(hash.digest(), 40)
    this.writing([address], () => this.svm.setAccount({ ...account, data }))
  }

  private balances(accounts: Address[]) {
    const tokens: TokenBalance[] = []
    const lamports = accounts.map((address, accountIndex) => {
      const account = this.svm.getAccount(address)
      if (!account.exists) return 0n
      const token = tokenIn(account.programAddress, account.data)
      if (token !== undefined)
        tokens.push({
          ...{ accountIndex, mint: token.mint, owner: token.owner },
          uiTokenAmount: { amount: String(token.units) },
        })
      return account.lamports
    })
    return { lamports, tokens }
  }

  // -------------------------------------------------------------------------------------------- a party outside

  /** Sends instructions of the bank, or of another wallet, in a block of their own. Throws where they fail. */
  run(instructions: Instruction[], signer: SolanaSigner = this.bank): string {
    const { raw_transaction, crypto_tx_hash } = signBriefly(signer, instructions, this.svm.latestBlockhash())
    const waiting = new Map(this.pool)
    this.pool = new Map([[crypto_tx_hash, raw_transaction]])
    this.mine()
    this.pool = waiting
    const made = this.made.find(({ signature }) => signature === crypto_tx_hash)
    if (made === undefined || made.err !== null)
      throw new Error(`not made: ${JSON.stringify(made?.err ?? 'refused')}`)
    return crypto_tx_hash
  }

  /** Gives an address SOL, in lamports. */
  give(to: Address, lamports: bigint): string {
    return this.run([transferSol(this.bank.address, to, lamports)])
  }

  /** Makes a mint of the bank, with these extensions (type and length before each), at an address or at any. */
  makeMint(
    program: Address,
    decimals: number,
    extensions: Buffer = Buffer.alloc(0),
    mint: Address = decode(randomBytes(32)),
  ): Address {
    const base = Buffer.alloc(82)
    base.writeUInt32LE(1, 0)
    Buffer.from(base58.decode(this.bank.address)).copy(base, 4)
    base[44] = decimals
    base[45] = 1
    base.writeUInt32LE(1, 46)
    Buffer.from(base58.decode(this.bank.address)).copy(base, 50)
    const data =
      extensions.length === 0 ? base : Buffer.concat([base, Buffer.alloc(83), Buffer.of(1), extensions])
    this.put(mint, program, data)
    return mint
  }

  /** Writes an account as it stands. */
  put(address: Address, owner: Address, data: Uint8Array): void {
    const lamports = this.svm.minimumBalanceForRentExemption(BigInt(data.length))
    const account = {
      address,
      programAddress: owner,
      data: new Uint8Array(data),
      executable: false,
      lamports,
      space: BigInt(data.length),
    }
    this.writing([address], () => this.svm.setAccount(account as never))
    this.keepBlock()
  }

  /** Mints units of a token to a wallet's account, which is made where it is missing. */
  mint(program: Address, mint: Address, to: Address, units: bigint): string {
    const account = associatedOf(to, mint, program)
    const data = Buffer.alloc(9)
    data[0] = 7
    data.writeBigUInt64LE(units, 1)
    return this.run([
      createAssociated(program, { payer: this.bank.address, account, owner: to, mint }),
      {
        programAddress: program,
        accounts: [
          { address: mint, role: AccountRole.WRITABLE },
          { address: account, role: AccountRole.WRITABLE },
          { address: this.bank.address, role: AccountRole.READONLY_SIGNER },
        ],
        data,
      },
    ])
  }

  /** Makes a wallet's account of a token, at the bank's cost. */
  open(program: Address, mint: Address, owner: Address): Address {
    const account = associatedOf(owner, mint, program)
    this.run([createAssociated(program, { payer: this.bank.address, account, owner, mint })])
    return owner
  }

  /** Freezes a wallet's account of a token. */
  freeze(program: Address, mint: Address, wallet: Address): void {
    this.run([
      {
        programAddress: program,
        accounts: [
          { address: associatedOf(wallet, mint, program), role: AccountRole.WRITABLE },
          { address: mint, role: AccountRole.READONLY },
          { address: this.bank.address, role: AccountRole.READONLY_SIGNER },
        ],
        data: Buffer.of(10),
      },
    ])
  }

  lamportsOf(address: Address): bigint {
    return (this.svm.getBalance(address) as bigint | null) ?? 0n
  }

  unitsOf(program: Address, mint: Address, wallet: Address): bigint {
    const account = this.svm.getAccount(associatedOf(wallet, mint, program))
    return account.exists ? tokenIn(account.programAddress, account.data)!.units : 0n
  }

  // -------------------------------------------------------------------------------------------- JSON-RPC

  private async answer(asked: Call | Call[]): Promise<unknown> {
    if (Array.isArray(asked)) return Promise.all(asked.map((one) => this.answer(one)))
    const { id, method, params = [] } = asked
    this.calls.push(method)
    try {
      const next = () => this.call(method, params)
      const told = await this.intercept?.(method, params, next)
      // Null is an answer, too.
      const result = told === undefined ? next() : told
      return { jsonrpc: '2.0', id, result: result === undefined ? null : result }
    } catch (error) {
      return {
        jsonrpc: '2.0',
        id,
        error: { code: -32_000, ...(error as object), message: (error as Error).message },
      }
    }
  }

  private call(method: string, params: unknown[]): unknown {
    const context = { slot: this.blocks[this.final()]! }
    switch (method) {
      case 'test_mine':
        this.mine()
        return null
      case 'getGenesisHash':
        return this.genesis
      case 'getSlot':
        return context.slot
      case 'getMinimumBalanceForRentExemption':
        return this.svm.minimumBalanceForRentExemption(BigInt(params[0] as number))
      case 'getRecentPrioritizationFees':
        return [{ slot: this.slot, prioritizationFee: this.unitPrice }]
      case 'getLatestBlockhash':
        return {
          context,
          value: { blockhash: this.hashes.at(-1), lastValidBlockHeight: Number(this.slot) + 150 },
        }
      case 'isBlockhashValid':
        return { context, value: this.hashes.includes(params[0] as string) }
      case 'getMultipleAccounts': {
        const length = (params[1] as { dataSlice?: { length: number } }).dataSlice?.length ?? Infinity
        const final = (params[0] as Address[]).map((one) => this.accountIn(this.final(), one))
        return { context, value: final.map((account) => shownAccount(account, length)) }
      }
      case 'getBlocks': {
        const [first, last] = params as [number, number]
        const slots = this.made.map(({ slot }) => slot).filter((slot) => slot >= first && slot <= last)
        return [...new Set(slots)].filter((slot) => slot <= context.slot)
      }
      case 'getBlocksWithLimit': {
        const [first, limit] = params as [number, number]
        const slots = [...new Set(this.blocks)].filter((slot) => slot >= first && slot <= context.slot)
        return slots.slice(0, limit)
      }
      case 'getBlock': {
        const wanted = BigInt(params[0] as number)
        const slots = [...new Set(this.blocks)]
        return {
          parentSlot: slots[slots.indexOf(wanted) - 1] ?? 0n,
          previousBlockhash: this.parents.get(wanted),
          transactions: this.made.filter(({ slot }) => slot === wanted).map(listedOf),
        }
      }
      case 'getSignatureStatuses':
        return {
          context,
          value: (params[0] as string[]).map((signature) => {
            const made = this.made.find((one) => one.signature === signature)
            if (made === undefined) return null
            const isFinal = made.slot <= context.slot
            return { slot: made.slot, err: made.err, confirmationStatus: isFinal ? 'finalized' : 'confirmed' }
          }),
        }
      case 'getTransaction': {
        const made = this.made.find((one) => one.signature === params[0] && one.slot <= context.slot)
        if (made === undefined) return null
        return shownOf(made)
      }
      case 'getSignaturesForAddress': {
        const {
          until,
          before,
          limit = 1000,
        } = (params[1] ?? {}) as { until?: string; before?: string; limit?: number }
        let all = this.made.filter(
          ({ accounts, slot }) => accounts.includes(params[0] as Address) && slot <= context.slot,
        )
        all = [...all].reverse()
        if (before !== undefined) all = all.slice(all.findIndex(({ signature }) => signature === before) + 1)
        const end = all.findIndex(({ signature }) => signature === until)
        return (end < 0 ? all : all.slice(0, end))
          .slice(0, limit)
          .map(({ signature, err, slot }) => ({ signature, err, slot, confirmationStatus: 'finalized' }))
      }
      case 'sendTransaction': {
        const raw = Buffer.from(params[0] as string, 'base64')
        const { signature } = read(raw)
        if (!this.made.some((one) => one.signature === signature)) this.pool.set(signature, raw)
        return signature
      }
      case 'simulateTransaction': {
        const { transaction } = read(Buffer.from(params[0] as string, 'base64'))
        this.svm.withSigverify(false)
        const result = this.svm.simulateTransaction(transaction)
        this.svm.withSigverify(true)
        const isFailed = result instanceof runtime!.FailedTransactionMetadata
        const meta = result.meta()
        return {
          context,
          value: { err: isFailed ? errorOf(result.err()) : null, unitsConsumed: meta.computeUnitsConsumed() },
        }
      }
      default:
        throw new Error(`${method} is not known to the node of the tests`)
    }
  }
}

/** A transaction in a block: its accounts, and no instructions. */
const listedOf = (made: Made) => {
  const { message } = read(made.raw)
  const accountKeys = made.accounts.map((pubkey, index) => ({
    pubkey,
    signer: index < message.header.numSignerAccounts,
  }))
  return { ...shownOf(made), transaction: { signatures: [made.signature], accountKeys } }
}

const shownOf = (made: Made) => ({
  slot: made.slot,
  transaction: [made.raw.toString('base64'), 'base64'],
  meta: {
    err: made.err,
    fee: made.fee,
    preBalances: made.before,
    postBalances: made.after,
    preTokenBalances: made.tokensBefore,
    postTokenBalances: made.tokensAfter,
    loadedAddresses: { writable: [], readonly: [] },
  },
})

interface Call {
  id: unknown
  method: string
  params?: unknown[]
}

function shownAccount(account: Account, length: number) {
  if (!account.exists || (account.lamports as bigint) === 0n) return null
  const data = Buffer.from(account.data).subarray(0, length)
  return {
    lamports: account.lamports,
    owner: account.programAddress,
    executable: account.executable,
    data: [data.toString('base64'), 'base64'],
  }
}

function tokenIn(
  program: Address,
  data: Uint8Array,
): { mint: string; owner: string; units: bigint } | undefined {
  if ((program !== TOKEN && program !== TOKEN_2022) || data.length < 165) return undefined
  if (data.length > 165 && data[165] !== 2) return undefined
  const [mint, wallet] = [data.slice(0, 32), data.slice(32, 64)].map((bytes) => base58.encode(bytes))
  return { mint: mint!, owner: wallet!, units: Buffer.from(data).readBigUInt64LE(64) }
}

/** An error of the runtime as a node writes it. */
function errorOf(err: unknown): unknown {
  const text = `error ${String(err)}`
  if (typeof err !== 'object' || err === null) return text
  if ('index' in err && 'err' in err) {
    const inner = (err as { err(): unknown }).err()
    const code = (inner as { code?: number }).code
    return { InstructionError: [err.index, code === undefined ? String(inner) : { Custom: code }] }
  }
  if ('accountIndex' in err)
    return { InsufficientFundsForRent: { account_index: (err as { accountIndex: number }).accountIndex } }
  return text
}

/** The fee of a transaction that was made: for its signatures and its compute units. */
function feeOf(raw: Uint8Array): bigint {
  const { message, accounts } = read(raw)
  let [limit, price] = [200_000n, 0n]
  for (const { programAddressIndex, data } of message.instructions) {
    if (accounts[programAddressIndex] !== 'ComputeBudget111111111111111111111111111111') continue
    const bytes = Buffer.from(data ?? [])
    if (bytes[0] === 2) limit = BigInt(bytes.readUInt32LE(1))
    if (bytes[0] === 3) price = bytes.readBigUInt64LE(1)
  }
  return 5_000n * BigInt(message.header.numSignerAccounts) + (limit * price + 999_999n) / 1_000_000n
}
