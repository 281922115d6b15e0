import { createServer, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  extractBaseAddress,
  FeeBumpTransaction,
  Keypair,
  MuxedAccount,
  Networks,
  StrKey,
  TransactionBuilder,
  xdr,
  type Operation,
  type Transaction,
} from '@stellar/stellar-base'
import { formatAmount, parseAmount } from '../src/contract/assets/amount.ts'

/**
 * A MODEL of Stellar behind a server with the shape of Horizon. No node of Stellar runs in the tests, so those of the adapter
 * prove what they prove against this: signatures, sequence numbers, time bounds, fees and fee bumps, reserves, trustlines and the
 * results of failed transactions, over real XDR. Ledgers close when a test says so.
 */

const PASSPHRASE = Networks.TESTNET
const FEE = 100n
const RESERVE = 5_000_000n

interface Line {
  balance: bigint
  limit: bigint
  isAuthorized: boolean
}
interface Holder {
  sequence: bigint
  native: bigint
  lines: Map<string, Line>
  data: Record<string, string>
  /** Entries whose reserve another account holds. */
  sponsored: number
  /** Weights by key; without it, the account's own key signs. */
  signers?: Map<string, number>
}
interface Effect {
  type: string
  account: string
  [field: string]: string
}
interface Made {
  record: Record<string, unknown>
  inner: string
  outer: string
  touches: Set<string>
  token: bigint
  operations: { record: Record<string, unknown>; touches: Set<string>; effects: Effect[]; token: bigint }[]
}

const stroops = (amount: string) => parseAmount(amount, 7)!
const decimal = (units: bigint) => {
  const [whole, rest = ''] = formatAmount(units, 7).split('.')
  return `${whole}.${rest.padEnd(7, '0')}`
}
const numberOf = (address: string) =>
  StrKey.isValidMed25519PublicKey(address) ? MuxedAccount.fromAddress(address, '0').id() : undefined
const assetFields = (key: string) => {
  const [asset_code, asset_issuer] = key.split(':')
  return key === 'native'
    ? { asset_type: 'native' }
    : { asset_type: 'credit_alphanum12', asset_code, asset_issuer }
}

class Refused extends Error {
  readonly result: 'payment' | 'createAccount'
  readonly code: string
  constructor(result: 'payment' | 'createAccount', code: string) {
    super(code)
    this.result = result
    this.code = code
  }
}

export async function startStellarModel() {
  let accounts = new Map<string, Holder>()
  let queue: (Transaction | FeeBumpTransaction)[] = []
  const made: Made[] = []
  /** The operations that a ledger takes. */
  const capacity = { operations: 1000 }
  const clock = { ledger: 1000, closedAt: Math.floor(Date.now() / 1000) }
  /** What a lying, lagging or silent Horizon does instead of answering; undefined: it tells the truth. */
  let lie: (method: string, path: string) => { status: number; body: unknown } | undefined = () => undefined
  const requests: string[] = []

  const holder = (account: string): Holder => {
    const found = accounts.get(account)
    if (found === undefined) throw new Error(`no account ${account}`)
    return found
  }
  const lineOf = (who: Holder, key: string): Line | undefined =>
    key === 'native' ? undefined : who.lines.get(key)
  const minimumOf = (who: Holder) => BigInt(2 + who.lines.size - who.sponsored) * RESERVE

  function credit(account: string, key: string, units: bigint): void {
    const who = accounts.get(account)
    if (who === undefined) throw new Refused('payment', 'paymentNoDestination')
    if (key === 'native') return void (who.native += units)
    if (key.split(':')[1] === account) return
    const line = lineOf(who, key)
    if (line === undefined) throw new Refused('payment', 'paymentNoTrust')
    if (!line.isAuthorized) throw new Refused('payment', 'paymentNotAuthorized')
    if (line.balance + units > line.limit) throw new Refused('payment', 'paymentLineFull')
    line.balance += units
  }
  function debit(account: string, key: string, units: bigint): void {
    const who = holder(account)
    if (key.split(':')[1] === account) return
    if (key === 'native') {
      if (who.native - units < minimumOf(who)) throw new Refused('payment', 'paymentUnderfunded')
      who.native -= units
      return
    }
    const line = lineOf(who, key)
    if (line === undefined || line.balance < units) throw new Refused('payment', 'paymentUnderfunded')
    line.balance -= units
  }

  /** Makes one operation. Returns its record for Horizon, and its effects. */
  function make(one: Operation, source: string) {
    switch (one.type) {
      case 'payment': {
        const to = extractBaseAddress(one.destination)
        const key = one.asset.toString()
        debit(source, key, stroops(one.amount))
        try {
          credit(to, key, stroops(one.amount))
        } catch (error) {
          debit(source, key, -stroops(one.amount))
          throw error
        }
        const number = numberOf(one.destination)
        return {
          record: {
            type: 'payment',
            from: source,
            to,
            amount: one.amount,
            ...assetFields(key),
            ...(number && { to_muxed_id: number }),
          },
          touches: [source, to],
          effects: [
            { type: 'account_debited', account: source, amount: one.amount, ...assetFields(key) },
            { type: 'account_credited', account: to, amount: one.amount, ...assetFields(key) },
          ] as Effect[],
        }
      }
      case 'createAccount': {
        if (accounts.has(one.destination)) throw new Refused('createAccount', 'createAccountAlreadyExist')
        if (stroops(one.startingBalance) < 2n * RESERVE)
          throw new Refused('createAccount', 'createAccountLowReserve')
        debit(source, 'native', stroops(one.startingBalance))
        accounts.set(one.destination, newHolder(stroops(one.startingBalance)))
        return {
          record: {
            type: 'create_account',
            funder: source,
            account: one.destination,
            starting_balance: one.startingBalance,
          },
          touches: [source, one.destination],
          effects: [
            { type: 'account_created', account: one.destination, starting_balance: one.startingBalance },
            { type: 'account_debited', account: source, amount: one.startingBalance, asset_type: 'native' },
          ] as Effect[],
        }
      }
      case 'accountMerge': {
        const into = extractBaseAddress(one.destination)
        const amount = holder(source).native
        accounts.delete(source)
        holder(into).native += amount
        const number = numberOf(one.destination)
        return {
          record: { type: 'account_merge', account: source, into, ...(number && { into_muxed_id: number }) },
          touches: [source, into],
          effects: [
            { type: 'account_credited', account: into, amount: decimal(amount), asset_type: 'native' },
          ] as Effect[],
        }
      }
      case 'bumpSequence': {
        const who = holder(source)
        if (BigInt(one.bumpTo) > who.sequence) who.sequence = BigInt(one.bumpTo)
        return { record: { type: 'bump_sequence' }, touches: [source], effects: [] as Effect[] }
      }
      default:
        throw new Error(`the model has no ${one.type}`)
    }
  }
  const newHolder = (native: bigint): Holder => ({
    sequence: BigInt(clock.ledger) << 32n,
    native,
    lines: new Map(),
    data: {},
    sponsored: 0,
  })
  const copyOf = (of: Map<string, Holder>) =>
    new Map(
      [...of].map(([account, who]) => [
        account,
        { ...who, lines: new Map([...who.lines].map(([key, line]) => [key, { ...line }])) },
      ]),
    )

  const innerOf = (one: Transaction | FeeBumpTransaction) =>
    one instanceof FeeBumpTransaction ? one.innerTransaction : one
  const signersOf = (account: string) => accounts.get(account)?.signers ?? new Map([[account, 1]])
  const isSignedBy = (one: Transaction | FeeBumpTransaction, account: string) =>
    [...signersOf(account)].some(
      ([key, weight]) =>
        weight > 0 &&
        one.signatures.some((signature) =>
          Keypair.fromPublicKey(key).verify(one.hash(), signature.signature()),
        ),
    )

  /** Why a transaction cannot be in the ledger that closes at `at`; undefined where it can. */
  function whyNot(one: Transaction | FeeBumpTransaction, at: number): string | undefined {
    const inner = innerOf(one)
    const sources = [inner.source, ...inner.operations.map(({ source }) => source ?? inner.source)].map(
      (from) => extractBaseAddress(from),
    )
    if (one instanceof FeeBumpTransaction && !isSignedBy(one, one.feeSource)) return 'tx_bad_auth'
    if (!sources.every((source) => isSignedBy(inner, source))) return 'tx_bad_auth'
    const { minTime, maxTime } = inner.timeBounds ?? { minTime: '0', maxTime: '0' }
    if (at < Number(minTime)) return 'tx_too_early'
    if (maxTime !== '0' && at > Number(maxTime)) return 'tx_too_late'
    const who = accounts.get(extractBaseAddress(inner.source))
    if (who === undefined) return 'tx_no_source_account'
    if (BigInt(inner.sequence) !== who.sequence + 1n) return 'tx_bad_seq'
    const operations = BigInt(inner.operations.length) + (one instanceof FeeBumpTransaction ? 1n : 0n)
    if (BigInt(one.fee) < operations * FEE) return 'tx_insufficient_fee'
    const payer = accounts.get(
      one instanceof FeeBumpTransaction ? one.feeSource : extractBaseAddress(inner.source),
    )
    if (payer === undefined || payer.native < operations * FEE) return 'tx_insufficient_balance'
    return undefined
  }

  function apply(one: Transaction | FeeBumpTransaction, order: number): void {
    if (whyNot(one, clock.closedAt) !== undefined) return
    const inner = innerOf(one)
    const source = extractBaseAddress(inner.source)
    const isBump = one instanceof FeeBumpTransaction
    const payer = isBump ? one.feeSource : source
    const fee = (BigInt(inner.operations.length) + (isBump ? 1n : 0n)) * FEE
    holder(payer).native -= fee
    holder(source).sequence += 1n
    const before = copyOf(accounts)
    const token = (BigInt(clock.ledger) << 32n) | (BigInt(order) << 12n)
    const hashes = { inner: inner.hash().toString('hex'), outer: one.hash().toString('hex') }
    const operations: Made['operations'] = []
    // As the network does: the operations after one that fails are tried, too.
    const results: (Refused | undefined)[] = []
    for (const [index, operation] of inner.operations.entries()) {
      const from = extractBaseAddress(operation.source ?? inner.source)
      try {
        const { record, touches, effects } = make(operation, from)
        results.push(undefined)
        const id = token + BigInt(index) + 1n
        operations.push({
          token: id,
          touches: new Set(touches),
          effects,
          record: {
            id: String(id),
            paging_token: String(id),
            transaction_hash: hashes.outer,
            transaction_successful: true,
            source_account: from,
            ...record,
          },
        })
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        results.push(error)
      }
    }
    const failure = results.find((result) => result !== undefined)
    if (failure !== undefined) accounts = before
    const record = {
      id: hashes.outer,
      hash: hashes.outer,
      paging_token: String(token),
      successful: failure === undefined,
      ledger: clock.ledger,
      source_account: source,
      fee_account: payer,
      fee_charged: String(fee),
      envelope_xdr: one.toEnvelope().toXDR('base64'),
      result_xdr: resultOf(inner, isBump, fee, results),
      memo_type: inner.memo.type,
      ...(inner.memo.value !== null && {
        memo:
          inner.memo.type === 'hash'
            ? Buffer.from(inner.memo.value).toString('base64')
            : String(inner.memo.value),
      }),
    }
    made.push({
      ...hashes,
      record,
      token,
      touches: new Set([
        payer,
        source,
        ...operations.flatMap(({ touches }) => [...touches]),
        ...inner.operations.map((each) => extractBaseAddress(each.source ?? inner.source)),
      ]),
      operations: failure === undefined ? operations : [],
    })
  }

  function resultOf(
    inner: Transaction,
    isBump: boolean,
    fee: bigint,
    results: readonly (Refused | undefined)[],
  ): string {
    const feeCharged = xdr.Int64.fromString(String(fee))
    const operations = inner.operations.map(({ type }, index) => {
      const refused = results[index]
      const isPayment = refused === undefined ? type !== 'createAccount' : refused.result === 'payment'
      const [of, code] = isPayment
        ? [xdr.PaymentResult, refused?.code ?? 'paymentSuccess']
        : [xdr.CreateAccountResult, refused?.code ?? 'createAccountSuccess']
      const result = (of as never as Record<string, () => never>)[code]!()
      return xdr.OperationResult.opInner(
        isPayment ? xdr.OperationResultTr.payment(result) : xdr.OperationResultTr.createAccount(result),
      )
    })
    const failure = results.find((result) => result !== undefined)
    // The classes of XDR have static constructors by the names of their arms, which the types know one by one only.
    /* oxlint-disable typescript/no-explicit-any, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-assignment, typescript/no-unsafe-argument */
    const x = xdr as any
    const arm = failure === undefined ? 'txSuccess' : 'txFailed'
    if (!isBump)
      return new x.TransactionResult({
        feeCharged,
        result: x.TransactionResultResult[arm](operations),
        ext: new x.TransactionResultExt(0),
      }).toXDR('base64') as string
    const result = new x.InnerTransactionResult({
      feeCharged: xdr.Int64.fromString('0'),
      result: x.InnerTransactionResultResult[arm](operations),
      ext: new x.InnerTransactionResultExt(0),
    })
    const pair = new x.InnerTransactionResultPair({ transactionHash: inner.hash(), result })
    return new x.TransactionResult({
      feeCharged,
      result:
        x.TransactionResultResult[failure === undefined ? 'txFeeBumpInnerSuccess' : 'txFeeBumpInnerFailed'](
          pair,
        ),
      ext: new x.TransactionResultExt(0),
    }).toXDR('base64') as string
    /* oxlint-enable */
  }

  // -------------------------------------------------------------------------------------------- Horizon

  const NOT_FOUND = { status: 404, body: { title: 'Resource Missing' } }
  const pageOf = <T extends { token: bigint }>(
    all: T[],
    query: URLSearchParams,
    recordOf: (one: T) => unknown,
  ) => {
    const isDescending = query.get('order') === 'desc'
    const cursor = query.get('cursor')
    const after = all.filter(
      ({ token }) => cursor === null || (isDescending ? token < BigInt(cursor) : token > BigInt(cursor)),
    )
    const page = (isDescending ? after.toReversed() : after).slice(0, Number(query.get('limit') ?? '10'))
    return { status: 200, body: { _embedded: { records: page.map(recordOf) } } }
  }
  const accountRecord = (account: string, who: Holder) => ({
    signers: [...signersOf(account)].map(([key, weight]) => ({ key, weight })),
    thresholds: { low_threshold: 0, med_threshold: 0 },
    sequence: String(who.sequence),
    subentry_count: who.lines.size,
    num_sponsoring: 0,
    num_sponsored: who.sponsored,
    data: who.data,
    balances: [
      ...[...who.lines].map(([key, line]) => ({
        ...assetFields(key),
        balance: decimal(line.balance),
        limit: decimal(line.limit),
        buying_liabilities: '0.0000000',
        selling_liabilities: '0.0000000',
        is_authorized: line.isAuthorized,
      })),
      {
        asset_type: 'native',
        balance: decimal(who.native),
        buying_liabilities: '0.0000000',
        selling_liabilities: '0.0000000',
      },
    ],
  })

  function answer(method: string, url: URL, body: string): { status: number; body: unknown } {
    const [, kind = '', id = '', list] = url.pathname.split('/')
    if (method === 'POST' && kind === 'close') {
      close(Number(new URLSearchParams(url.search).get('seconds') ?? '5'))
      return { status: 200, body: {} }
    }
    if (method === 'POST' && kind === 'transactions_async') {
      const one = TransactionBuilder.fromXDR(new URLSearchParams(body).get('tx')!, PASSPHRASE)
      const hash = one.hash().toString('hex')
      if (made.some(({ outer }) => outer === hash))
        return { status: 400, body: { tx_status: 'ERROR', error_result_xdr: 'tx_bad_seq' } }
      if (queue.some((waiting) => waiting.hash().toString('hex') === hash))
        return { status: 409, body: { tx_status: 'DUPLICATE' } }
      const why = whyNot(one, clock.closedAt)
      if (why !== undefined) return { status: 400, body: { tx_status: 'ERROR', error_result_xdr: why } }
      const source = (each: Transaction | FeeBumpTransaction) => extractBaseAddress(innerOf(each).source)
      const before = queue.findIndex((waiting) => source(waiting) === source(one))
      // One transaction of an account waits; another takes its place for ten times the fee.
      if (before >= 0 && BigInt(one.fee) < 10n * BigInt(queue[before]!.fee))
        return { status: 503, body: { tx_status: 'TRY_AGAIN_LATER' } }
      if (before >= 0) queue.splice(before, 1)
      queue.push(one)
      return { status: 201, body: { tx_status: 'PENDING', hash } }
    }
    if (kind === '')
      return {
        status: 200,
        body: {
          network_passphrase: PASSPHRASE,
          history_latest_ledger: clock.ledger,
          history_latest_ledger_closed_at: new Date(clock.closedAt * 1000).toISOString(),
        },
      }
    if (kind === 'ledgers')
      return { status: 200, body: { _embedded: { records: [{ max_tx_set_size: capacity.operations }] } } }
    if (kind === 'fee_stats')
      return { status: 200, body: { last_ledger_base_fee: '100', fee_charged: { p50: '100' } } }
    if (kind === 'accounts' && list === undefined) {
      const who = accounts.get(id)
      return who === undefined ? NOT_FOUND : { status: 200, body: accountRecord(id, who) }
    }
    if (kind === 'accounts' && list === 'transactions')
      return pageOf(
        made.filter(
          ({ touches, record }) =>
            touches.has(id) &&
            (record.successful === true || url.searchParams.get('include_failed') === 'true'),
        ),
        url.searchParams,
        ({ record }) => record,
      )
    if (kind === 'accounts' && list === 'payments')
      return pageOf(
        made
          .flatMap((one) => one.operations.map((operation) => ({ ...operation, of: one })))
          .filter(({ touches, record }) => touches.has(id) && record.type !== 'bump_sequence'),
        url.searchParams,
        ({ record, of }) => ({ ...record, transaction: of.record }),
      )
    if (kind === 'transactions') {
      const found = made.find(({ inner, outer }) => inner === id || outer === id)
      if (found === undefined) return NOT_FOUND
      if (list === undefined) return { status: 200, body: { ...found.record, hash: id } }
      if (list === 'effects') {
        const effects = found.operations.flatMap(({ effects }) => effects)
        const paged = effects.map((effect, index) => ({ ...effect, token: BigInt(index + 1) }))
        return pageOf(paged, url.searchParams, ({ token, ...effect }) => ({
          ...effect,
          paging_token: String(token),
        }))
      }
      const records = found.operations.map(({ record }) => ({ ...record, transaction: found.record }))
      return { status: 200, body: { _embedded: { records } } }
    }
    if (kind === 'operations') {
      const found = made.flatMap(({ operations }) => operations).find(({ token }) => String(token) === id)
      return found === undefined
        ? NOT_FOUND
        : { status: 200, body: { _embedded: { records: found.effects } } }
    }
    return NOT_FOUND
  }

  function close(seconds = 5): void {
    clock.ledger += 1
    clock.closedAt += seconds
    let left = capacity.operations
    const waiting = queue.filter((one) => {
      const operations = innerOf(one).operations.length + (one instanceof FeeBumpTransaction ? 1 : 0)
      if (operations > left) return false
      left -= operations
      return true
    })
    queue = queue.filter((one) => !waiting.includes(one))
    for (const [order, one] of waiting.entries()) apply(one, order + 1)
  }

  const server = createServer((request: IncomingMessage, reply) => {
    void text(request).then((body) => {
      const [method, path] = [request.method!, request.url!]
      requests.push(`${method} ${path}`)
      const { status, body: said } = lie(method, path) ?? answer(method, new URL(path, 'http://model'), body)
      reply.writeHead(status, { 'content-type': 'application/json', 'latest-ledger': String(clock.ledger) })
      reply.end(JSON.stringify(said))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passphrase: PASSPHRASE,
    requests,
    clock,
    capacity,
    close,
    drop: () => void (queue = []),
    made: () => made,
    waiting: () => queue.length,
    lies(how: typeof lie | undefined) {
      lie = how ?? (() => undefined)
    },
    /** The truth that a lie may start from. */
    truth: (method: string, path: string) => answer(method, new URL(path, 'http://model'), ''),
    /** An account out of nothing. */
    open(account: string, xlm: string, lines: Record<string, string> = {}): Holder {
      const who = newHolder(stroops(xlm))
      for (const [key, balance] of Object.entries(lines))
        who.lines.set(key, { balance: stroops(balance), limit: 2n ** 62n, isAuthorized: true })
      accounts.set(account, who)
      return who
    },
    find: (account: string) => accounts.get(account),
    /** Hands a transaction over as anybody can, and closes a ledger. */
    submit(one: Transaction | FeeBumpTransaction): void {
      queue.push(one)
      close()
    },
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
export type StellarModel = Awaited<ReturnType<typeof startStellarModel>>
