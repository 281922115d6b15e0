import type { Hex } from 'viem'
import { decodeFunctionData, getAddress, parseAbi } from 'viem/utils'
import { parseAmount } from '../contract/assets/amount.ts'
import { findAsset, NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Address } from '@solana/addresses'
import { canonicalAddress, outputScriptOf } from '../contract/addresses/addresses.ts'
import { isOurs, parse } from '../../chains/evm/transaction.ts'
import { decode } from '../../chains/bitcoin/decode.ts'
import { readOrder } from './bank/manual-wires.ts'
import type { PayoutNetwork } from './network.ts'
import { associatedOf } from '../../chains/solana/instructions.ts'
import { parsePayment } from '../../chains/solana/transaction.ts'
import { paymentIn } from '../../chains/stellar/envelope.ts'

/** The payment that a withdrawal asks for, and the bytes that were signed for it. */
export interface SignedPayment {
  customer_id: string
  transfer_id: string
  network: PayoutNetwork
  asset: string
  /** A decimal string. */
  amount: string
  /** An address as the client sent it; for a wire, the bank's account number. */
  destination_address: string
  /** Absent where it is not known. */
  memo?: string | null
  raw_transaction: Buffer
  /** Of a wire: the recorded bank account that it pays. */
  payee?: unknown
}

/** Token contracts by network and asset, where they differ from the catalogue's: on test networks. */
export type TokenAddresses = ReadonlyMap<CryptoNetwork, Readonly<Record<string, string>>>

/**
 * Compares signed bytes with their withdrawal. Returns the difference, or undefined where the bytes pay the
 * withdrawal's amount to its destination. Asks no node. A transaction of the Bitcoin family may pay others as well.
 */
export function disagreementOf(payment: SignedPayment, tokens: TokenAddresses): string | undefined {
  const { raw_transaction: raw, network } = payment
  try {
    if (raw[0] === OPENING_BRACE) return simulated(payment)
    if (network === 'WIRE') return wire(payment)
    const { family } = NETWORKS[network]
    if (family === 'evm') return evm(payment, network, tokens)
    if (family === 'bitcoin') return bitcoin(payment, network)
    if (family === 'solana') return solana(payment, network, tokens)
    if (family === 'stellar') return stellar(payment, tokens)
    return `its bytes are no transaction of ${network}`
  } catch (error) {
    return `its bytes cannot be read: ${(error as Error).message.split('\n')[0]}`
  }
}

/** A transaction of a simulated network is JSON. */
const OPENING_BRACE = 0x7b

function simulated(payment: SignedPayment): string | undefined {
  const signed = JSON.parse(payment.raw_transaction.toString()) as Record<string, unknown>
  const { network } = payment
  const destination = network === 'WIRE' ? payment.destination_address : canonical(payment, network)
  const wanted = { ...payment, destination_address: destination }
  const fields = ['customer_id', 'transfer_id', 'network', 'asset', 'amount', 'destination_address'] as const
  const wrong = fields.filter((name) => signed[name] !== wanted[name])
  return wrong.length === 0
    ? undefined
    : `signed ${wrong.map((name) => `${name} ${String(signed[name])} for ${wanted[name]}`).join(', ')}`
}

/** Compares a wire with the order that its operator was shown. */
function wire({ raw_transaction, payee, ...payment }: SignedPayment): string | undefined {
  const order = readOrder(raw_transaction)
  if (order === undefined) return 'its bytes are no message of a known bank'
  const shown = JSON.stringify(order.payee)
  return differences([
    ...(['customer_id', 'transfer_id', 'asset', 'amount'] as const).map(
      (name): [string, unknown, unknown] => [name, order[name], payment[name]],
    ),
    ['memo', order.memo, payment.memo ?? null],
    ['payee', shown, JSON.stringify(payee)],
  ])
}

const canonical = ({ destination_address }: SignedPayment, network: CryptoNetwork): string =>
  canonicalAddress(network, destination_address, { testNetworks: true }) ?? destination_address

const ERC20 = parseAbi(['function transfer(address to, uint256 amount) returns (bool)'])

function evm(payment: SignedPayment, network: CryptoNetwork, tokens: TokenAddresses): string | undefined {
  const { raw_transaction, asset, amount } = payment
  if (!isOurs(raw_transaction)) return 'its bytes are no transaction of Bursar (EIP-1559)'
  const { to, value, data } = parse(raw_transaction)
  const { contractAddress, decimals } = findAsset(asset)!.networks[network]!
  const units = parseAmount(amount, decimals)
  const token = tokens.get(network)?.[asset] ?? contractAddress
  const wanted = canonical(payment, network)
  if (token === undefined)
    return differences([
      ['to', getAddress(to), wanted],
      ['value', value, units],
      ['data', data ?? 'none', 'none'],
    ])
  const [recipient, moved] = decodeFunctionData({ abi: ERC20, data: data ?? '0x' }).args as [Hex, bigint]
  return differences([
    ['contract', getAddress(to), getAddress(token)],
    ['value', value, 0n],
    ['recipient', getAddress(recipient), wanted],
    ['amount', moved, units],
  ])
}

function stellar({ raw_transaction, asset, amount, ...payment }: SignedPayment, tokens: TokenAddresses) {
  const paid = paymentIn(raw_transaction)
  const [code, issuer] = findAsset(asset)!.networks.STELLAR!.contractAddress?.split('-') ?? []
  const decimals = findAsset(asset)!.networks.STELLAR!.decimals
  return differences([
    [
      'asset',
      paid.asset,
      code === undefined ? 'native' : `${code}:${tokens.get('STELLAR')?.[asset] ?? issuer}`,
    ],
    ['amount', parseAmount(paid.amount, decimals), parseAmount(amount, decimals)],
    ['destination', paid.destination, payment.destination_address],
    ['memo', paid.memo ?? null, payment.memo ?? null],
  ])
}

function solana(payment: SignedPayment, network: CryptoNetwork, tokens: TokenAddresses): string | undefined {
  const { raw_transaction, asset, amount, memo } = payment
  const { target, units, mint, program, decimals, madeFor, memo: signedMemo } = parsePayment(raw_transaction)
  const facts = findAsset(asset)!.networks[network]!
  const token = tokens.get(network)?.[asset] ?? facts.contractAddress
  const wanted = canonical(payment, network) as Address
  const account = token === undefined ? wanted : associatedOf(wanted, token as Address, program)
  return differences([
    ['mint', mint ?? 'none', token ?? 'none'],
    ['recipient', target, account],
    ['amount', units, parseAmount(amount, facts.decimals)],
    ['decimals', decimals, facts.decimals],
    ['account made for', madeFor ?? wanted, wanted],
    // Without one, the recipient's account may have required any.
    ['memo', memo == null ? memo : signedMemo, memo],
  ])
}

function differences(pairs: [name: string, signed: unknown, wanted: unknown][]): string | undefined {
  const wrong = pairs.filter(([, signed, wanted]) => signed !== wanted)
  if (wrong.length === 0) return undefined
  return `signed ${wrong.map(([name, signed, wanted]) => `${name} ${String(signed)} for ${String(wanted)}`).join(', ')}`
}

function bitcoin(payment: SignedPayment, network: CryptoNetwork): string | undefined {
  const { asset, amount, destination_address } = payment
  const script = outputScriptOf(network, destination_address)
  const units = parseAmount(amount, findAsset(asset)!.networks[network]!.decimals)
  const pays = decode(payment.raw_transaction).outputs.some(
    (output) => output.amount === units && script !== undefined && Buffer.from(output.script).equals(script),
  )
  return pays
    ? undefined
    : `no output of the signed transaction pays ${amount} ${asset} to ${destination_address}`
}
