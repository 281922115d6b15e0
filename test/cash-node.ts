import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { RawOldTx } from '@scure/btc-signer/script.js'
import { addressFromBytes, outputScriptOf } from '../src/contract/addresses/addresses.ts'
import { decimalOf } from '../chains/bitcoin/amounts.ts'

/** A coin with tokens begins so in the bytes of its transaction: prefix, category, an amount of 1 (CashTokens, CHIP-2022-02). */
const withToken = (script: Uint8Array, category = randomBytes(32)): Uint8Array =>
  Buffer.concat([Buffer.of(0xef), category, Buffer.of(0x10, 0x01), script])

const doubleHash = (bytes: Uint8Array): string =>
  createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest().reverse().toString('hex')

interface Output {
  address: string
  amount: bigint
  hasToken: boolean
}
interface Made {
  txid: string
  hex: string
  inputs: string[]
  outputs: Output[]
  /** Of its block. */
  height: number
}

const METHOD_NOT_FOUND = { code: -32601, message: 'Method not found' }
const UNKNOWN = { code: -5, message: 'Invalid or non-wallet transaction id' }
class Refused extends Error {
  error: object

  constructor(error: object) {
    super()
    this.error = error
  }
}

/**
 * The wallet of Bitcoin Cash Node 28.0.1, as far as reading deposits asks it: the fields of each answer are those that it has, so there
 * is no `blockheight`. Any other method is refused as unknown. Every transaction is mined at once.
 */
export async function startCashNode() {
  const own: string[] = []
  const made: Made[] = []
  let height = 100
  const blockAt = (number: number) => doubleHash(Buffer.from(`block ${number}`))
  const newAddress = () => addressFromBytes('BITCOIN_CASH', randomBytes(32))
  const isSpent = (txid: string, vout: number) =>
    made.some(({ inputs }) => inputs.includes(`${txid}:${vout}`))
  const coin = (amount: bigint) => Number(decimalOf(amount))
  const outputAt = (outpoint: string) => {
    const [txid, vout] = outpoint.split(':')
    return made.find((one) => one.txid === txid)?.outputs[Number(vout)]
  }
  const ownAmount = (outputs: (Output | undefined)[]) =>
    outputs.reduce((sum, one) => sum + (one && own.includes(one.address) ? one.amount : 0n), 0n)

  /** Mines a transaction in a block of its own. */
  function mine(outputs: { address: string; amount: bigint; hasToken?: boolean }[], inputs: string[] = []) {
    const bytes = RawOldTx.encode({
      version: 2,
      inputs: (inputs.length > 0 ? inputs : [`${randomBytes(32).toString('hex')}:0`]).map((outpoint) => ({
        txid: Buffer.from(outpoint.split(':')[0]!, 'hex'),
        index: Number(outpoint.split(':')[1]),
        finalScriptSig: new Uint8Array(),
        sequence: 0xffff_ffff,
      })),
      outputs: outputs.map(({ address, amount, hasToken }) => {
        const script = outputScriptOf('BITCOIN_CASH', address)!
        return { amount, script: hasToken === true ? withToken(script) : script }
      }),
      lockTime: 0,
    })
    const txid = doubleHash(bytes)
    height += 1
    const whole = outputs.map((output) => ({ hasToken: false, ...output }))
    made.push({ txid, hex: Buffer.from(bytes).toString('hex'), inputs, outputs: whole, height })
    return txid
  }

  const unspent = () =>
    made.flatMap((one) =>
      one.outputs.flatMap((output, vout) =>
        own.includes(output.address) && !isSpent(one.txid, vout) ? [{ ...one, ...output, vout }] : [],
      ),
    )
  const standing = (one: Made) => ({
    confirmations: height - one.height + 1,
    blockhash: blockAt(one.height),
    blockindex: 1,
    blocktime: 1_700_000_000 + one.height,
    txid: one.txid,
    walletconflicts: [],
    time: 1_700_000_000 + one.height,
    timereceived: 1_700_000_000 + one.height,
  })
  const feeOf = ({ inputs, outputs }: Made) =>
    inputs.length === 0
      ? undefined
      : outputs.reduce((sum, { amount }) => sum + amount, 0n) - ownAmount(inputs.map(outputAt))
  const entriesOf = (one: Made) => {
    const fee = feeOf(one)
    return one.outputs.flatMap(({ address, amount }, vout) => [
      ...(fee === undefined
        ? []
        : [{ address, category: 'send', amount: coin(-amount), vout, fee: coin(fee), abandoned: false }]),
      ...(own.includes(address)
        ? [{ address, category: 'receive', amount: coin(amount), label: '', vout }]
        : []),
    ])
  }
  const walletTransaction = (txid: unknown) => {
    const one = made.find((other) => other.txid === txid)
    if (one === undefined) throw new Refused(UNKNOWN)
    return one
  }

  const methods: Record<string, (...params: never[]) => unknown> = {
    getblockcount: () => height,
    getblockchaininfo: () => ({
      chain: 'regtest',
      blocks: height,
      headers: height,
      initialblockdownload: false,
    }),
    getnewaddress: () => own[own.push(newAddress()) - 1],
    getbalance: () => coin(ownAmount(unspent())),
    listsinceblock: (block: string, depth: number) => ({
      transactions: made
        .filter((one) => block === '' || blockAt(one.height) !== block)
        .flatMap((one) => entriesOf(one).map((entry) => ({ ...entry, ...standing(one) }))),
      removed: [],
      lastblock: blockAt(height - depth + 1),
    }),
    getblockheader: (hash: string) => {
      const number = Array.from({ length: height + 1 }, (_, one) => one).find((one) => blockAt(one) === hash)
      if (number === undefined) throw new Refused({ code: -5, message: 'Block not found' })
      return {
        hash,
        confirmations: height - number + 1,
        height: number,
        previousblockhash: blockAt(number - 1),
      }
    },
    gettransaction: (txid: string) => {
      const one = walletTransaction(txid)
      const fee = feeOf(one)
      const net = ownAmount(one.outputs) - ownAmount(one.inputs.map(outputAt))
      const amounts = { amount: coin(net - (fee ?? 0n)), ...(fee !== undefined && { fee: coin(fee) }) }
      return { ...amounts, ...standing(one), details: entriesOf(one), hex: one.hex }
    },
    gettxout: (txid: string, vout: number) => (isSpent(txid, vout) ? null : { confirmations: 1 }),
    // Coins with tokens are left out, unless the options ask for them.
    listunspent: (...[, , , , options]: [number, number, string[], boolean, Record<string, boolean>?]) =>
      unspent()
        .filter(({ hasToken }) =>
          hasToken ? (options?.tokensOnly ?? options?.includeTokens) === true : options?.tokensOnly !== true,
        )
        .map(({ txid, vout, address, amount, hasToken, ...one }) => ({
          ...{ txid, vout, address, label: '' },
          scriptPubKey: Buffer.from(outputScriptOf('BITCOIN_CASH', address)!).toString('hex'),
          amount: coin(amount),
          ...(hasToken && { tokenData: { category: '00', amount: '1' } }),
          ...{ confirmations: height - one.height + 1, spendable: true, solvable: true, safe: true },
        })),
  }
  const answer = ({ id, method, params = [] }: { id: unknown; method: string; params?: never[] }) => {
    try {
      const asked = methods[method]
      if (asked === undefined) throw new Refused(METHOD_NOT_FOUND)
      return { id, result: asked(...params), error: null }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      return { id, result: null, error: error.error }
    }
  }
  const server = createServer((request, reply) => {
    void text(request).then((body) => {
      const calls = JSON.parse(body) as Parameters<typeof answer>[0] | Parameters<typeof answer>[0][]
      reply.end(JSON.stringify(Array.isArray(calls) ? calls.map(answer) : answer(calls)))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    config: {
      rpcUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      rpcUser: 'bursar',
      rpcPassword: 'secret',
    },
    newAddress,
    mine,
    /** Mines empty blocks. */
    bury: (blocks: number) => void (height += blocks),
    stop: () => server.close(),
  }
}
