import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import {
  formatTransaction,
  recoverTransactionAddress,
  serializeTransaction,
  type Hex,
  type RpcTransaction,
} from 'viem'
import {
  bytesToHex,
  encodeFunctionData,
  getAddress,
  hexToBigInt,
  hexToNumber,
  keccak256,
  parseAbi,
  parseTransaction,
  toHex,
} from 'viem/utils'
import { ASSETS, type CryptoNetwork } from '../../assets/catalogue.ts'
import { formatAmount, parseAmount } from '../../assets/amount.ts'
import {
  at,
  NodeError,
  says,
  type Block,
  type Call,
  type EvmNode,
  type Finality,
  type Log,
  type Receipt,
} from './node.ts'
import type { NetworkFee, SignedTransaction } from '../network.ts'

/** A transaction to be signed (EIP-1559). Amounts in wei. */
export interface EvmTransaction {
  type: 'eip1559'
  chainId: number
  nonce: number
  to: Hex
  value: bigint
  data?: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** Who signs for an address. A viem account is one; a remote signer or a KMS can stand in. */
export interface EvmSigner {
  address: Hex
  /** The signed transaction, serialized as it is broadcast. */
  signTransaction(transaction: EvmTransaction): Promise<Hex>
}

/** An ERC-20 contract, and how many decimals its amounts have. */
export interface Token {
  address: Hex
  decimals: number
}

/** When sweeping a deposit address is worth its network fee (`evm-sweep-worth.ts`). */
export interface SweepTerms {
  /** The most that a sweep may cost of what it moves, in ten-thousandths of a percent. */
  costMax: bigint
  /** The most that is offered for a unit of gas, in wei. */
  feeCeiling: bigint
  /** By asset, in units of the chain: from this amount on it is swept at any cost. */
  minimum: ReadonlyMap<string, bigint>
}

/** A network as the adapter's parts share it. */
export interface EvmChain {
  network: CryptoNetwork
  node: EvmNode
  chainId: number
  gasAsset: string
  /** By asset. */
  tokens: ReadonlyMap<string, Token>
  hotWallet: EvmSigner
  confirmations: Finality
  /** Most that is offered for a unit of gas, in wei. */
  feeCeiling: bigint
  stuckAfterMs: number
  /** How long a withdrawal waits for the hot wallet before no younger one is paid from it. */
  reserveAfterMs?: number | undefined
  /** When a deposit address is worth sweeping. */
  sweeps: SweepTerms
  /** What the hot wallet made before this nonce is known to be somebody else's. */
  firstNonce: number
  /** Most of the hot wallet's transactions that are signed and not mined. */
  maxInFlight: number
  /** Throws unless the node is of the chain that it should be. Before anything is signed, read or broadcast. */
  ready(): Promise<void>
  /** Has `ready` ask again: a node of another chain would answer so. */
  markStale(): void
  /** The second node, and from which amount on, in minor units of the asset, it must agree. */
  verify?: { node: EvmNode; above: (asset: string) => bigint }
}

/** The tokens of a network: the catalogue's, at the addresses given where they differ (on test networks they do). */
export function tokensOf(network: CryptoNetwork, addresses: Record<string, string>): Map<string, Token> {
  const tokens = new Map<string, Token>()
  for (const { symbol, networks } of ASSETS) {
    const { contractAddress, decimals } = networks[network] ?? {}
    const address = addresses[symbol] ?? contractAddress
    if (contractAddress === undefined || address === undefined) continue
    tokens.set(symbol, { address: getAddress(address), decimals: decimals! })
  }
  for (const asset of Object.keys(addresses)) {
    if (!tokens.has(asset)) throw new Error(`${asset} is no token of ${network} in the catalogue`)
  }
  return tokens
}

const ERC20 = parseAbi([
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
])
/** keccak256('Transfer(address,address,uint256)'). */
export const TRANSFER_TOPIC = keccak256(toHex('Transfer(address,address,uint256)'))

/** An address as a log's topic. */
const topicOf = (address: Hex): Hex => `0x${'0'.repeat(24)}${address.slice(2).toLowerCase()}`
/** The address in a log's topic, with its checksum. */
export const addressIn = (topic: Hex): Hex => getAddress(`0x${topic.slice(-40)}`)

/** What moves `amount` of an asset, in its units on the chain, to an address. */
export function transferOf(
  { tokens }: EvmChain,
  asset: string,
  to: Hex,
  amount: bigint,
): Pick<EvmTransaction, 'to' | 'value' | 'data'> {
  const token = tokens.get(asset)
  if (token === undefined) return { to, value: amount }
  const data = encodeFunctionData({ abi: ERC20, functionName: 'transfer', args: [to, amount] })
  return { to: token.address, value: 0n, data }
}

/** Of wei, on every EVM network. */
const NATIVE_DECIMALS = 18

/** Decimals of an asset on this chain. */
export const decimalsOn = (
  { tokens, gasAsset }: Pick<EvmChain, 'tokens' | 'gasAsset'>,
  asset: string,
): number => {
  if (asset === gasAsset) return NATIVE_DECIMALS
  const token = tokens.get(asset)
  assert(token !== undefined, `${asset} is not on the network`)
  return token.decimals
}

/** A decimal string in the asset's units on this chain, exactly: what it cannot represent is never withdrawn. */
export function onChain(chain: EvmChain, asset: string, amount: string): bigint {
  const units = parseAmount(amount, decimalsOn(chain, asset))
  assert(units !== undefined, `${amount} ${asset} does not fit its decimals on ${chain.network}`)
  return units
}

/** Units of the chain as a decimal string. */
export const offChain = (chain: EvmChain, asset: string, units: bigint): string =>
  formatAmount(units, decimalsOn(chain, asset))

export const isNative = ({ tokens }: EvmChain, asset: string) => !tokens.has(asset)

/** The call that reads what an address holds at a block. */
export function balanceCall({ tokens }: EvmChain, asset: string, address: Hex, block: bigint): Call {
  const token = tokens.get(asset)
  if (token === undefined) return ['eth_getBalance', address, at(block)]
  const data = encodeFunctionData({ abi: ERC20, functionName: 'balanceOf', args: [address] })
  return ['eth_call', { to: token.address, data }, at(block)]
}

/** Balances of (address, asset), in order, all as of one block. A contract that answers nothing holds nothing. */
export async function balancesAt(
  chain: EvmChain,
  block: bigint,
  places: readonly { address: Hex; asset: string }[],
): Promise<bigint[]> {
  const answers = await chain.node.all<Hex>(
    places.map(({ address, asset }) => balanceCall(chain, asset, address, block)),
  )
  return answers.map((answer) => (answer === '0x' ? 0n : hexToBigInt(answer)))
}

// ---------------------------------------------------------------------------------------------- fees

/** What gas costs now, and what is to be offered for it. In wei. */
export interface Fees {
  /** Paid to the chain and to whoever makes the block: what a transaction costs that is made now. */
  current: bigint
  tip: bigint
  /** Room for the base fee to double, within the ceiling. */
  offer: bigint
}

export async function feesNow({ node, feeCeiling }: EvmChain): Promise<Fees> {
  const [block, suggested] = await node.all<unknown>([
    ['eth_getBlockByNumber', 'latest', false],
    ['eth_maxPriorityFeePerGas'],
  ])
  const base = hexToBigInt((block as Block).baseFeePerGas ?? '0x0')
  const tip = hexToBigInt(suggested as Hex)
  return { current: base + tip, tip, offer: smaller(2n * base + tip, feeCeiling) }
}

/** Why nothing can be signed at these fees. */
export const tooDear = ({ current }: Fees, { feeCeiling }: EvmChain): string | undefined =>
  current > feeCeiling
    ? `gas costs ${formatAmount(current, GWEI)} gwei, the ceiling is ${formatAmount(feeCeiling, GWEI)}`
    : undefined

const GWEI = 9
const smaller = (a: bigint, b: bigint) => (a < b ? a : b)
const larger = (a: bigint, b: bigint) => (a > b ? a : b)

/** What a plain transfer to an account without code takes, exactly. */
export const PLAIN_GAS = 21_000n
/** Room above the estimate for what runs code: storage may have changed when it is made. */
export const gasWithRoom = (estimate: bigint) => (estimate === PLAIN_GAS ? estimate : (estimate * 6n) / 5n)

/** What a transaction can cost at most, beside its value. */
export const feeMax = ({ gas, maxFeePerGas }: Pick<EvmTransaction, 'gas' | 'maxFeePerGas'>) =>
  gas * maxFeePerGas

/** The contract that chains of the OP stack have from their beginning, and others do not. */
const GAS_PRICE_ORACLE = '0x420000000000000000000000000000000000000F'
const ORACLE_ABI = parseAbi(['function getL1FeeUpperBound(uint256 unsignedTxSize) view returns (uint256)'])
/** Bytes of a token's transfer before it is signed, with room; one of the native asset has fewer. */
const TRANSFER_BYTES = 200n

/** Most that publishing a transfer to another chain costs beside its gas, doubled for a rise. Nothing on most chains. */
export async function publishingFee({ node }: EvmChain): Promise<bigint> {
  const data = encodeFunctionData({ abi: ORACLE_ABI, args: [TRANSFER_BYTES] })
  const answer = await node.call<Hex>('eth_call', { to: GAS_PRICE_ORACLE, data }, 'latest')
  return answer === '0x' ? 0n : 2n * hexToBigInt(answer)
}

/** What one has really cost. */
export function feePaid(chain: EvmChain, { gasUsed, effectiveGasPrice, l1Fee }: Receipt): NetworkFee {
  const paid = hexToBigInt(gasUsed) * hexToBigInt(effectiveGasPrice) + hexToBigInt(l1Fee ?? '0x0')
  return { asset: chain.gasAsset, amount: offChain(chain, chain.gasAsset, paid) }
}

// ---------------------------------------------------------------------------------------------- signed bytes

/** Signs, and holds what came back against what was asked: a signer may be another machine. */
export async function signed(signer: EvmSigner, transaction: EvmTransaction): Promise<SignedTransaction> {
  const raw = await signer.signTransaction(transaction)
  const back = parse(raw)
  for (const key of ['chainId', 'nonce', 'value', 'gas', 'maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
    assert(back[key] === transaction[key], `the signer changed the ${key}`)
  }
  assert(getAddress(back.to) === getAddress(transaction.to), 'the signer changed the recipient')
  assert((back.data ?? '0x') === (transaction.data ?? '0x'), 'the signer changed the call')
  return { raw_transaction: Buffer.from(raw.slice(2), 'hex'), crypto_tx_hash: keccak256(raw) }
}

const EIP_1559 = 0x02

/** Whether bytes are a transaction of ours: a network that was simulated before has others. */
export const isOurs = (raw: Buffer) => raw[0] === EIP_1559

/** What signed bytes say. What is zero stands in no field of viem's. */
export function parse(raw: Buffer | Hex): EvmTransaction {
  const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(
    (typeof raw === 'string' ? raw : bytesToHex(raw)) as `0x02${string}`,
  )
  return {
    type: 'eip1559',
    chainId,
    nonce: nonce ?? 0,
    to: to!,
    value: value ?? 0n,
    ...(data !== undefined && { data }),
    gas: gas ?? 0n,
    maxFeePerGas: maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n,
  }
}

// ---------------------------------------------------------------------------------------------- on their way

/** A signed transaction that is kept, and may have been broadcast. */
export interface Sent extends SignedTransaction {
  /** The hashes of those that it replaced, with the same nonce. */
  replaced: string[]
}

const hashesOf = ({ crypto_tx_hash, replaced }: Sent) => [crypto_tx_hash, ...replaced]

/** Why a node does not take a transaction now. */
export interface NotTaken {
  reason: string
  /** Its fees are too low for now: `replacement` sees to that. */
  isTooCheap: boolean
}

/**
 * The hot wallet's transaction of this hash, as it was signed; undefined where there is none of Bursar's kind, or it was
 * reverted.
 */
export async function fetchSigned(
  { node, hotWallet }: EvmChain,
  hash: Hex,
): Promise<SignedTransaction | undefined> {
  const [found, receipt] = [
    await node.call<RpcTransaction | null>('eth_getTransactionByHash', hash),
    await node.call<Receipt | null>('eth_getTransactionReceipt', hash),
  ]
  const isGood = receipt === null || hexToBigInt(receipt.status) === 1n
  if (found === null || !isGood || getAddress(found.from) !== getAddress(hotWallet.address)) return undefined
  const transaction = formatTransaction(found)
  if (transaction.type !== 'eip1559') return undefined
  const { chainId, nonce, to, value, input, gas, maxFeePerGas, maxPriorityFeePerGas, accessList } =
    transaction
  const raw = serializeTransaction(
    { chainId, nonce, to, value, data: input, gas, maxFeePerGas, maxPriorityFeePerGas, accessList },
    transaction,
  )
  assert(keccak256(raw) === hash, `the node tells of ${hash} what is not signed`)
  return { raw_transaction: Buffer.from(raw.slice(2), 'hex'), crypto_tx_hash: hash }
}

/**
 * Broadcasts kept bytes; gives for each why the node does not take it, or undefined. One that the node has, or has
 * made, is taken.
 */
export async function send(chain: EvmChain, sent: readonly Sent[]): Promise<(NotTaken | undefined)[]> {
  const inOrder = [...sent].sort((a, b) => parse(a.raw_transaction).nonce - parse(b.raw_transaction).nonce)
  const answers = await chain.node.each<Hex>(
    inOrder.map(({ raw_transaction }) => ['eth_sendRawTransaction', bytesToHex(raw_transaction)] as const),
  )
  const refused = new Map(
    inOrder.flatMap((one, index) => {
      const answer = answers[index]
      if (!(answer instanceof NodeError) || says(answer, 'known')) return []
      const { nonce } = parse(one.raw_transaction)
      const reason = `the node does not take nonce ${nonce} yet: ${answer.message}`
      return [[one, { reason, isTooCheap: says(answer, 'feeTooLow') }] as const]
    }),
  )
  // 'Nonce too low' is said of what is made already, and of what can never be made: only looking tells.
  const there = await whereKnown(chain, [...refused.keys()])
  return sent.map((one) => (there.has(one) ? undefined : refused.get(one)))
}

/** Those of which the node knows some bytes, theirs or replaced ones. */
async function whereKnown(chain: EvmChain, sent: readonly Sent[]): Promise<Set<Sent>> {
  const owners = sent.flatMap((one) => hashesOf(one).map((hash) => [one, hash] as const))
  const seen = await chain.node.all<object | null>(
    owners.map(([, hash]) => ['eth_getTransactionByHash', hash] as const),
  )
  return new Set(owners.filter((_, index) => seen[index] !== null).map(([one]) => one))
}

/**
 * The same transaction with the same nonce for higher fees, where the old ones are below what is paid now; undefined
 * where they are not, or where more would be above the ceiling. `fromValue`: what is
 * paid more for gas is moved less. Nodes replace what offers 10 % more, some 12.5 %.
 */
export async function replacement(
  chain: EvmChain,
  fees: Fees,
  signer: EvmSigner,
  raw: Buffer,
  { fromValue = false }: { fromValue?: boolean } = {},
): Promise<SignedTransaction | undefined> {
  const old = parse(raw)
  const isLow = old.maxFeePerGas < fees.current || old.maxPriorityFeePerGas < fees.tip
  if (!isLow || tooDear(fees, chain) !== undefined) return undefined
  const maxPriorityFeePerGas = larger(fees.tip, raised(old.maxPriorityFeePerGas))
  const maxFeePerGas = larger(larger(fees.offer, raised(old.maxFeePerGas)), maxPriorityFeePerGas)
  if (maxFeePerGas > chain.feeCeiling) return undefined
  // Another wallet's signature on the same nonce would be another payment.
  const serializedTransaction = bytesToHex(raw) as `0x02${string}`
  if ((await recoverTransactionAddress({ serializedTransaction })) !== getAddress(signer.address))
    return undefined
  const value = fromValue ? old.value - old.gas * (maxFeePerGas - old.maxFeePerGas) : old.value
  if (value < 0n) return undefined
  return signed(signer, { ...old, value, maxFeePerGas, maxPriorityFeePerGas })
}

/** At least an eighth more. */
const raised = (fee: bigint) => fee + fee / 8n + 1n

/** A token's own word on a transfer: its log, and the amount in it, in units of the chain. */
export interface LoggedTransfer {
  log: Log
  amount: bigint
}

/**
 * The log of a signed transfer(to, amount): from the sender to the recipient, by the token's contract. Of several, the one
 * of the signed amount. Undefined where the receipt has none.
 */
export function loggedTransfer(
  { to, data = '0x' }: EvmTransaction,
  receipt: Receipt,
): LoggedTransfer | undefined {
  const [from, recipient] = [topicOf(receipt.from), `0x${data.slice(10, 74)}`]
  const logs = receipt.logs.flatMap((log): LoggedTransfer[] => {
    const [event, sender, into] = log.topics
    const isIts =
      getAddress(log.address) === getAddress(to) &&
      event === TRANSFER_TOPIC &&
      sender === from &&
      into === recipient
    return isIts ? [{ log, amount: hexToBigInt(log.data) }] : []
  })
  return logs.find(({ amount }) => amount === amountIn(data)) ?? logs[0]
}

/** The amount in the call of transfer(address,uint256): its second word. */
export const amountIn = (data: Hex): bigint => hexToBigInt(`0x${data.slice(74, 138)}`)

export const logIndexOf = ({ logIndex }: Log): string => String(hexToNumber(logIndex))
