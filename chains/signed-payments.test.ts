import { Keypair, Memo, TransactionBuilder } from '@stellar/stellar-base'
import { randomBytes, randomUUID } from 'node:crypto'
import type { Address } from '@solana/addresses'
import { RawTx } from '@scure/btc-signer/script.js'
import { encodeFunctionData, erc20Abi, serializeTransaction, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { findAsset, type CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { addressFromBytes, outputScriptOf } from '../src/contract/addresses/addresses.ts'
import { TOKEN } from './solana/instructions.ts'
import { signerOfSeed } from './solana/keys.ts'
import {
  instructionsOf,
  parse,
  parsePayment,
  signAgain,
  signBriefly,
  signPayments,
  type SolanaPayment,
} from './solana/transaction.ts'
import type { SignedPayment } from '../src/networks/signed-payment.ts'
import { disagreementOf } from '../src/networks/signed-payments.ts'
import { innerOf, muxed, writePayments as signStellar } from './stellar/envelope.ts'

const account = privateKeyToAccount(generatePrivateKey())
const HERE = addressFromBytes('ETHEREUM', randomBytes(32)) as Hex
const THERE = addressFromBytes('ETHEREUM', randomBytes(32)) as Hex
const USDP = findAsset('USDP')!.networks.ETHEREUM!

async function signedEvm(move: { to: Hex; value?: bigint; data?: Hex }): Promise<Buffer> {
  const fees = { gas: 21_000n, maxFeePerGas: 2n, maxPriorityFeePerGas: 1n }
  const raw = await account.signTransaction(
    { type: 'eip1559', chainId: 1, nonce: 0, ...fees, ...move },
    { serializer: serializeTransaction },
  )
  return Buffer.from(raw.slice(2), 'hex')
}
const transferTo = (to: Hex, units: bigint): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, units] })

const paymentOf = (
  changes: Partial<SignedPayment> & Pick<SignedPayment, 'raw_transaction'>,
): SignedPayment => ({
  customer_id: randomUUID(),
  transfer_id: randomUUID(),
  network: 'ETHEREUM',
  asset: 'ETH',
  amount: '0.5',
  destination_address: HERE,
  ...changes,
})
const says = (payment: SignedPayment, tokens = new Map()) => disagreementOf(payment, tokens)

describe('on an EVM network', () => {
  const half = 5n * 10n ** 17n
  test('a payment of the native asset matches an address in either case', async () => {
    const raw_transaction = await signedEvm({ to: HERE, value: half })
    expect(await says(paymentOf({ raw_transaction }))).toBeUndefined()
    const lowerCase = HERE.toLowerCase()
    expect(await says(paymentOf({ raw_transaction, destination_address: lowerCase }))).toBeUndefined()
    expect(await says(paymentOf({ raw_transaction, amount: '0.50' }))).toBeUndefined()
  })

  test('another recipient, amount or data is reported', async () => {
    const elsewhere = await signedEvm({ to: THERE, value: half })
    expect(await says(paymentOf({ raw_transaction: elsewhere }))).toBe(`signed to ${THERE} for ${HERE}`)
    const more = await signedEvm({ to: HERE, value: half + 1n })
    expect(await says(paymentOf({ raw_transaction: more }))).toBe(`signed value ${half + 1n} for ${half}`)
    const call = await signedEvm({ to: HERE, value: half, data: '0x01' })
    expect(await says(paymentOf({ raw_transaction: call }))).toBe('signed data 0x01 for none')
    expect(await says(paymentOf({ raw_transaction: Buffer.from('00', 'hex') }))).toMatch(
      /no transaction of Bursar/,
    )
    expect(await says(paymentOf({ raw_transaction: Buffer.from('02ff', 'hex') }))).toMatch(/cannot be read/)
  })

  test('a payment of a token must match its contract, recipient and amount', async () => {
    const contract = USDP.contractAddress as Hex
    const units = 25n * 10n ** BigInt(USDP.decimals)
    const usdp = (raw_transaction: Buffer) => paymentOf({ raw_transaction, asset: 'USDP', amount: '25' })
    const good = await signedEvm({ to: contract, data: transferTo(HERE, units) })
    expect(await says(usdp(good))).toBeUndefined()
    for (const [move, told] of [
      [{ to: contract, data: transferTo(THERE, units) }, /^signed recipient/],
      [{ to: contract, data: transferTo(HERE, units * 2n) }, /^signed amount/],
      [{ to: THERE, data: transferTo(HERE, units) }, /^signed contract/],
      [{ to: contract, value: 1n, data: transferTo(HERE, units) }, /^signed value 1 for 0$/],
      [{ to: HERE, value: units }, /cannot be read/],
      [
        {
          to: contract,
          data: encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [HERE, units] }),
        },
        /cannot be read/,
      ],
    ] as const)
      expect(await says(usdp(await signedEvm(move)))).toMatch(told)
    // On a test network the token has another contract.
    const there = await signedEvm({ to: THERE, data: transferTo(HERE, units) })
    expect(await says(usdp(there), new Map([['ETHEREUM', { USDP: THERE }]]))).toBeUndefined()
    expect(await says(usdp(good), new Map([['ETHEREUM', { USDP: THERE }]]))).toMatch(/^signed contract/)
  })
})

describe('on the Bitcoin family one output pays, and further outputs do not matter:', () => {
  const signedBitcoin = (network: CryptoNetwork, outputs: [address: string, amount: bigint][]): Buffer =>
    Buffer.from(
      RawTx.encode({
        version: 2,
        segwitFlag: false,
        inputs: [{ txid: randomBytes(32), index: 0, finalScriptSig: new Uint8Array(), sequence: 0 }],
        outputs: outputs.map(([address, amount]) => ({ amount, script: outputScriptOf(network, address)! })),
        witnesses: [],
        lockTime: 0,
      }),
    )

  test.each<[CryptoNetwork, string, string[]]>([
    ['BITCOIN', 'BTC', ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2']],
    ['LITECOIN', 'LTC', [addressFromBytes('LITECOIN', randomBytes(32))]],
    ['BITCOIN_CASH', 'BCH', [addressFromBytes('BITCOIN_CASH', randomBytes(32))]],
  ])('%s', async (network, asset, addresses) => {
    for (const destination_address of addresses) {
      const other = addressFromBytes(network, randomBytes(32))
      const payment = (outputs: [string, bigint][]) =>
        paymentOf({
          raw_transaction: signedBitcoin(network, outputs),
          network,
          asset,
          amount: '0.25',
          destination_address,
        })
      const units = 25_000_000n
      expect(
        await says(
          payment([
            [other, 7n],
            [destination_address, units],
          ]),
        ),
      ).toBeUndefined()
      expect(await says(payment([[destination_address, units - 1n]]))).toMatch(/^no output/)
      expect(await says(payment([[other, units]]))).toMatch(/^no output of the signed transaction pays 0.25/)
    }
  })
})

describe('on SOLANA', () => {
  const hotWallet = signerOfSeed(randomBytes(32))
  const [here, there, nonceAccount] = [1, 2, 3].map(() => signerOfSeed(randomBytes(32)).address) as [
    Address,
    Address,
    Address,
  ]
  const mint = findAsset('USDC')!.networks.SOLANA!.contractAddress as Address
  const token = { mint, program: TOKEN, decimals: 6 }
  const terms = {
    nonceAccount,
    nonce: signerOfSeed(randomBytes(32)).address,
    unitLimit: 50_000,
    unitPrice: 7n,
  }
  const signed = (payment: Partial<SolanaPayment>) =>
    signPayments(
      hotWallet,
      [{ from: hotWallet.address, to: here, units: 500_000n, memo: null, ...payment }],
      terms,
    ).raw_transaction
  const asked = (raw_transaction: Buffer, changes: Partial<SignedPayment> = {}) =>
    says(
      paymentOf({ raw_transaction, network: 'SOLANA', asset: 'USDC', destination_address: here, ...changes }),
    )

  test('a payment of SOL or of a token must match in recipient, amount, mint and memo', async () => {
    const native = { asset: 'SOL', amount: '0.0005' }
    expect(await asked(signed({}), native)).toBeUndefined()
    expect(await asked(signed({ to: there }), native)).toBe(`signed recipient ${there} for ${here}`)
    expect(await asked(signed({ units: 500_001n }), native)).toBe('signed amount 500001 for 500000')
    for (const makesAccount of [true, false]) {
      expect(await asked(signed({ token, makesAccount }))).toBeUndefined()
      expect(await asked(signed({ token, makesAccount, to: there }))).toMatch(/^signed recipient /)
    }
    expect(await asked(signed({ token: { ...token, mint: there } }))).toMatch(
      `signed mint ${there} for ${mint}`,
    )
    expect(await asked(signed({}))).toMatch(`signed mint none for ${mint}`)
    expect(await asked(signed({ token, memo: '12' }), { memo: '12' })).toBeUndefined()
    expect(await asked(signed({ token, memo: '12' }), { memo: '13' })).toBe('signed memo 12 for 13')
    expect(await asked(signed({ token }), { memo: '13' })).toBe('signed memo null for 13')
    // An account that requires any memo gets one.
    expect(await asked(signed({ token, memo: 'Bursar' }), { memo: null })).toBeUndefined()
  })

  test('a payment is signed again with nothing but another price', async () => {
    for (const payment of [{}, { token, makesAccount: true, memo: '12' }, { token }]) {
      const first = signed(payment)
      const again = signAgain(hotWallet, first, 9n).raw_transaction
      expect(parsePayment(again)).toEqual({ ...parsePayment(first), unitPrice: 9n })
      expect(parse(again)).toMatchObject({ isSigned: true, accounts: parse(first).accounts })
      expect(signAgain(hotWallet, again, 7n).raw_transaction).toEqual(first)
    }
  })

  test('bytes that do more than one payment cannot be read as one', async () => {
    const brief = signBriefly(
      hotWallet,
      instructionsOf({ from: hotWallet.address, to: here, units: 1n, memo: null }),
      terms.nonce,
    )
    expect(await asked(brief.raw_transaction)).toMatch(/cannot be read: it uses no durable nonce/)
    expect(await asked(Buffer.of(1, 2, 3))).toMatch(/cannot be read/)
  })
})

describe('on STELLAR', () => {
  const hotWallet = Keypair.random()
  const to = muxed(Keypair.random().publicKey(), '7')
  const [issuer] = findAsset('PYUSD')!.networks.STELLAR!.contractAddress!.split('-').slice(1)
  const { raw_transaction } = signStellar(
    {
      lane: hotWallet.publicKey(),
      sequence: 1n,
      maxTime: 1n,
      memo: 'id:42',
      payments: [{ destination: to, asset: `PYUSD:${issuer}`, amount: '1.5', creates: false }],
    },
    { source: hotWallet.publicKey(), fee: 100n, passphrase: 'Test' },
    { signer: hotWallet, laneKey: undefined },
  )
  const payment = (changes: Partial<SignedPayment> = {}) =>
    paymentOf({
      raw_transaction,
      network: 'STELLAR',
      asset: 'PYUSD',
      amount: '1.50',
      destination_address: to,
      memo: 'id:42',
      ...changes,
    })

  test('destination with its number, asset with its issuer, amount and memo are compared', async () => {
    expect(await says(payment())).toBeUndefined()
    expect(await says(payment({ amount: '1.6' }))).toBe('signed amount 15000000 for 16000000')
    expect(await says(payment({ memo: null }))).toBe('signed memo id:42 for null')
    expect(await says(payment({ asset: 'XLM' }))).toContain('for native')
    // Text that reads as an id, and a hash.
    const inner = innerOf(raw_transaction.toString('base64'), 'Test')
    const carrying = (memo: Memo) =>
      Buffer.from(TransactionBuilder.cloneFrom(inner, { fee: inner.fee, memo }).build().toEnvelope().toXDR())
    const texts = { raw_transaction: carrying(Memo.text('id:42')) }
    expect(await says(payment(texts))).toBe('signed memo text:id:42 for id:42')
    const hash = '0f'.repeat(32)
    const hashes = { raw_transaction: carrying(Memo.hash(hash)) }
    expect(await says(payment({ ...hashes, memo: `hash:${hash}` }))).toBeUndefined()
    expect(await says(payment({ ...hashes, memo: `hash:${'1f'.repeat(32)}` }))).toContain(
      'signed memo hash:0f',
    )
    const other = muxed(Keypair.random().publicKey(), '7')
    expect(await says(payment({ destination_address: other }))).toContain(`for ${other}`)
    const issuers = new Map([['STELLAR' as const, { PYUSD: hotWallet.publicKey() }]])
    expect(await says(payment(), issuers)).toContain(`for PYUSD:${hotWallet.publicKey()}`)
    expect(await says(payment({ raw_transaction: Buffer.from('00', 'hex') }))).toContain('cannot be read')
  })
})
