import { Buffer } from 'node:buffer'
import { p2wpkh } from '@scure/btc-signer/payment.js'
import { RawOldTx, RawOutput, RawTx } from '@scure/btc-signer/script.js'
import { sha256x2, signECDSA } from '@scure/btc-signer/utils.js'
import type { Hex } from 'viem'
import { HDKey } from 'viem/accounts'
import { txidOf, type ParsedTransaction } from '../chains/bitcoin/decode.ts'
import { sum } from '../chains/kit/units.ts'
import { addressOfScript, canonicalAddress, outputScriptOf } from '../src/contract/addresses/addresses.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import type { CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import type { SignerFamily, SignerNetwork, UnsignedRead, Wallet } from './family.ts'
import { demand, Refused } from './refused.ts'

/*
 * Wallets of native segregated witness, which their node only watches. Each address has a key of its own, which follows from the
 * wallet's extended key: those of branch 0 are given out, and those of branch 1 get the change.
 */

const CHANGE = 1
/** Nobody would find what lies at a higher one. */
const INDEX_MAX = 10_000_000
/** LITECOIN writes extended keys as BITCOIN does. */
const TEST_KEYS = { private: 0x04358394, public: 0x043587cf }
/** A PSBT has the transactions that made its coins, of up to 100 kB each. */
const HEX_MAX = 31 * 1024 * 1024
/** No node relays a transaction with more inputs, and no batch has more payments and change. */
const [INPUTS_MAX, OUTPUTS_MAX] = [1_500, 300]
/** What the worker writes; by the sequence, a transaction can be replaced (BIP 125). */
const [VERSION, SEQUENCE, LOCK_TIME, ALL] = [2, 0xffff_fffd, 0, 1]

type Account = Wallet & { keyAt(branch: number, index: number): HDKey }

type Input = ParsedTransaction['inputs'][number]
/** An output that a transaction spends, and its key. */
type Spent = Pick<Input, 'txid' | 'index'> & { amount: bigint; key: HDKey }

/** What a PSBT has for an input or output, by the first byte of the key (BIP 174). */
type Fields = ReadonlyMap<number, Buffer>
const [PREVIOUS, SIGHASH, INPUT_PATH, OUTPUT_PATH] = [0, 3, 6, 2]

export const bitcoin = (name: CryptoNetwork): SignerFamily => ({
  carriesMemo: false,
  paysMany: true,
  hexMax: HEX_MAX,
  feeUnit: 'satoshi',
  addressOf(text) {
    const script = outputScriptOf(name, text)
    if (script === undefined) throw new Error(`${text} is no address of ${name}`)
    // Test networks spell a script in several ways.
    return addressOfScript(name, script, canonicalAddress(name, text, { testNetworks: false }) === undefined)
  },
  walletOf: (field, key) => accountOf(name, field, key.trim()),
  depositKeysOf() {
    throw new Error("deposit addresses are the wallet's own: remove it")
  },
  read: readPsbt,
  disagreementOf({ raw_transaction, amount, destination_address }, _tokens, index) {
    const paid = psbtIn(raw_transaction).unsigned.outputs[index]
    const script = outputScriptOf(name, destination_address)
    const isPaid = script && paid?.amount === parseAmount(amount, 8) && isSame(paid!.script, script)
    return isPaid ? undefined : `output ${index} does not pay ${amount} to ${destination_address}`
  },
  judgeMove() {
    throw new Refused(`nothing is moved on ${name}: its wallet has the deposit addresses`)
  },
})

/** The wallet of an extended private key. It is named by its first address of change, which no customer is given. */
function accountOf(name: CryptoNetwork, field: string, text: string): Account {
  const isTest = text.startsWith('t')
  let root: HDKey | undefined
  try {
    root = HDKey.fromExtendedKey(text, isTest ? TEST_KEYS : undefined)
  } catch {}
  if (!root?.privateKey)
    throw new Error(`${field} is no extended private key (xprv, or tprv on a test network)`)
  const branches = [root.deriveChild(0), root.deriveChild(CHANGE)]
  const keyAt = (branch: number, index: number) => branches[branch]!.deriveChild(index)
  return {
    keyAt,
    address: addressOfScript(name, scriptOf(keyAt(CHANGE, 0)), isTest),
    descriptors: branches.map((_, branch) => `wpkh(${root.publicExtendedKey}/${branch}/*)`),
    sign: () => Promise.reject(new Error('only what was read is signed')),
  }
}

const scriptOf = (key: HDKey): Uint8Array => p2wpkh(key.publicKey!).script
const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.from(one).equals(other)
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** By their bytes: each payment of a transaction is compared with them. */
const psbts = new WeakMap<Buffer, ReturnType<typeof parsed>>()

function psbtIn(raw: Buffer) {
  const psbt = psbts.get(raw) ?? parsed(raw)
  psbts.set(raw, psbt)
  return psbt
}

/** Parses a PSBT. With the library, a thief's takes minutes: it checks each public key, also in fields that do not count. */
function parsed(raw: Buffer) {
  let at = 'psbt '.length
  const next = () => {
    const first = raw.readUInt8(at++)
    const bytes = first < 0xfd ? 0 : 2 ** (first - 0xfc)
    const length = bytes === 0 ? first : raw.readUIntLE(at, Math.min(bytes, 6))
    at += bytes + length
    return raw.subarray(at - length, at)
  }
  const fields = (): Fields => {
    const found = new Map<number, Buffer>()
    for (let key = next(); key.length > 0; key = next()) found.set(key[0]!, next())
    return found
  }
  const unsigned: ParsedTransaction = RawOldTx.decode(fields().get(0)!)
  return { unsigned, inputs: unsigned.inputs.map(fields), outputs: unsigned.outputs.map(fields) }
}

/** Reads a PSBT. What is signed is made of what was checked: no other field of it counts. */
function readPsbt(network: SignerNetwork, unsigned: Hex, wallet: string): UnsignedRead {
  const psbt = psbtIn(Buffer.from(unsigned.slice(2), 'hex'))
  const { version, lockTime, inputs, outputs } = psbt.unsigned
  const isPlain = version === VERSION && lockTime === LOCK_TIME
  demand(isPlain && inputs.every(({ sequence }) => sequence === SEQUENCE), 'it is not written as Bursar does')
  const isSmall = inputs.length <= INPUTS_MAX && outputs.length <= OUTPUTS_MAX
  demand(isSmall, `it has more than ${INPUTS_MAX} inputs or ${OUTPUTS_MAX} outputs`)
  const places = inputs.map(({ txid, index }) => `${hexOf(txid)}:${index}`)
  demand(new Set(places).size === places.length, 'it spends an output twice')
  const accounts = [...network.wallets.values()] as Account[]
  const own = accounts.filter(({ address }) => address === wallet)
  const spent = inputs.map((input, at) => spentBy(accounts, input, psbt.inputs[at]!))
  const changeKeys = outputs.map(({ script }, at) =>
    keyOf(own, psbt.outputs[at]!.get(OUTPUT_PATH), script, CHANGE),
  )
  const fee = sum(spent.map(({ amount }) => amount)) - sum(outputs.map(({ amount }) => amount))
  demand(fee >= 0n, 'it pays more than it spends')
  // What moves within the wallet may pay its change: the first output is always a payment.
  const payments = Math.max(1, changeKeys.lastIndexOf(undefined) + 1)
  return { places, fee, payments, signer: { address: wallet, sign: async () => signed(spent, outputs) } }
}

/** What an input spends, by the transaction that made it: the amount beside a script may be a lie (BIP 143). */
function spentBy(accounts: readonly Account[], { txid, index }: Input, fields: Fields): Spent {
  const name = `${hexOf(txid)}:${index}`
  const sighash = fields.get(SIGHASH)
  const isAll = sighash === undefined || isSame(sighash, Buffer.of(ALL, 0, 0, 0))
  demand(isAll, `${name} is to be signed with another sighash than ALL`)
  const bytes = fields.get(PREVIOUS)
  const previous: ParsedTransaction | undefined = bytes && RawTx.decode(bytes)
  const isThere = previous !== undefined && txidOf(previous) === hexOf(txid)
  demand(isThere, `the PSBT has not the transaction of ${name}`)
  const output = previous.outputs[index]
  const key = output && keyOf(accounts, fields.get(INPUT_PATH), output.script)
  demand(key !== undefined, `${name} is of no wallet of the signer`)
  return { txid, index, amount: output!.amount, key }
}

/** The key of a script, where a wallet has it at the path that the PSBT names. */
function keyOf(accounts: readonly Account[], path: Buffer | undefined, script: Uint8Array, only?: number) {
  if (path === undefined || path.length < 8) return undefined
  const [branch, index] = [path.readUInt32LE(path.length - 8), path.readUInt32LE(path.length - 4)]
  if (branch > CHANGE || branch !== (only ?? branch) || index > INDEX_MAX) return undefined
  return accounts.map((one) => one.keyAt(branch, index)).find((key) => isSame(scriptOf(key), script))
}

/** Signs all of it (BIP 143, sighash ALL). The library takes 15 s for 1,300 inputs: it hashes all of them for each. */
function signed(spent: readonly Spent[], outputs: ParsedTransaction['outputs']): Hex {
  const u32 = (number: number) => new Uint8Array(Uint32Array.of(number).buffer)
  const hash = (...parts: Uint8Array[]) => sha256x2(Buffer.concat(parts))
  const outpoints = spent.map(({ txid, index }) => Buffer.concat([Buffer.from(txid).reverse(), u32(index)]))
  const before = [u32(VERSION), hash(...outpoints), hash(...spent.map(() => u32(SEQUENCE)))]
  const paid = hash(...outputs.map((one) => RawOutput.encode(one)))
  const after = [u32(SEQUENCE), paid, u32(LOCK_TIME), u32(ALL)]
  const witnesses = spent.map(({ amount, key }, at) => {
    const code = Buffer.from(`1976a914${hexOf(key.pubKeyHash!)}88ac`, 'hex')
    const value = new Uint8Array(BigUint64Array.of(amount).buffer)
    const digest = hash(...before, outpoints[at]!, code, value, ...after)
    return [Buffer.concat([signECDSA(digest, key.privateKey!), Buffer.of(ALL)]), key.publicKey!]
  })
  const inputs = spent.map((one) => ({ ...one, finalScriptSig: new Uint8Array(), sequence: SEQUENCE }))
  const transaction = { version: VERSION, segwitFlag: true, inputs, outputs, witnesses, lockTime: LOCK_TIME }
  return `0x${hexOf(RawTx.encode(transaction))}`
}
