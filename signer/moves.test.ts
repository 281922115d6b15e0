import { randomUUID } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { encodeFunctionData, parseAbi, parseEther, serializeTransaction, toHex, type Hex } from 'viem'
import { expect, test } from 'vitest'
import { depositKeysOf } from '../chains/evm/deposit-keys.ts'
import { signerOf, type EvmTransaction } from '../chains/evm/transaction.ts'
import { ownEvmSigner } from '../test/evm-signer.ts'

const GWEI = 10n ** 9n
const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
const TOKEN = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const ABI = parseAbi([
  'function transfer(address to, uint256 amount)',
  'function approve(address to, uint256 amount)',
])
const [hot, gas] = [generatePrivateKey(), generatePrivateKey()]
const [hotWallet, gasWallet] = [hot, gas].map((key) => privateKeyToAccount(key).address) as [Hex, Hex]
const placeOf = ({ address, derivation }: { address: string; derivation?: string }) =>
  [address as Hex, derivation!] as const
const keys = depositKeysOf({ mnemonic: WORDS })
const [address, derivation] = placeOf(keys.newAddress(randomUUID()))
const stranger = privateKeyToAccount(generatePrivateKey()).address

/** A signer of which 0.01 ETH of fees may leave in a day. */
async function ownSigner() {
  const section = {
    ...{ tokens: { USDG: TOKEN }, deposit_key: { env: 'WORDS' }, gas_wallet: { env: 'GAS' } },
    windows: [{ asset: 'ETH', period_seconds: 86_400, amount: '0.01' }],
  }
  const { signer } = await ownEvmSigner(section, { keys: { HOT: hot, GAS: gas, WORDS } })
  return (
    changes: Partial<EvmTransaction> = {},
    wallet: string = address,
    place = { address, derivation },
  ) => {
    const transaction: EvmTransaction = {
      ...{ type: 'eip1559', chainId: 1, nonce: 0, to: hotWallet, value: 5n, gas: 21_000n },
      ...{ maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI, ...changes },
    }
    return signer.move({ network: 'ETHEREUM', wallet, ...place, unsigned: serializeTransaction(transaction) })
  }
}

const call = (functionName: 'transfer' | 'approve', to: Hex) => ({
  ...{ to: TOKEN as Hex, value: 0n },
  data: encodeFunctionData({ abi: ABI, functionName, args: [to, 7n] }),
})

test('a sweep goes from an address that the deposit key gives to a hot wallet, and nowhere else', async () => {
  const move = await ownSigner()
  for (const sweep of [{}, call('transfer', hotWallet)])
    expect(await signerOf((await move(sweep)).signed as `0x02${string}`)).toBe(address)
  for (const to of [stranger, gasWallet, address]) {
    await expect(move({ to })).rejects.toThrow(/is no wallet of ETHEREUM: what lies at an address goes there/)
    await expect(move(call('transfer', to))).rejects.toThrow(/is no wallet of ETHEREUM/)
  }
  const [own, path] = placeOf(
    depositKeysOf({ mnemonic: `${'abandon '.repeat(11)}about` }).newAddress(randomUUID()),
  )
  const other = { address: own, derivation: path }
  for (const place of [other, { address: stranger, derivation }, { address, derivation: other.derivation }])
    await expect(move({}, place.address, place)).rejects.toThrow(/the deposit_key does not give/)
  await expect(move({}, address, { address, derivation: '' })).rejects.toThrow('cannot be read')
})

test('nothing but a plain transfer of a configured asset is moved', async () => {
  const move = await ownSigner()
  const no = 'it is no transfer of an asset that is configured'
  const plain = call('transfer', hotWallet)
  await expect(move(call('approve', hotWallet))).rejects.toThrow(no)
  await expect(move({ ...plain, to: hotWallet })).rejects.toThrow(no)
  await expect(move({ ...plain, value: 1n })).rejects.toThrow(no)
  await expect(move({ ...plain, data: `${plain.data}00` })).rejects.toThrow(no)
  await expect(move({ ...plain, data: ('0x' + plain.data.slice(2, 74)) as Hex })).rejects.toThrow(no)
  await expect(move({ chainId: 5 })).rejects.toThrow('the chain id is 5, not 1')
})

test('the gas wallet pays gas to an address that the deposit key gives, and a hot wallet moves nothing', async () => {
  const move = await ownSigner()
  const { signed } = await move({ to: address }, gasWallet)
  expect(await signerOf(signed as `0x02${string}`)).toBe(gasWallet)
  for (const to of [stranger, hotWallet])
    await expect(move({ to }, gasWallet)).rejects.toThrow(/the gas wallet pays gas to .*, and nothing else/)
  await expect(move(call('transfer', address), gasWallet)).rejects.toThrow(/and nothing else/)
  for (const wallet of [hotWallet, stranger])
    await expect(move({ to: address }, wallet)).rejects.toThrow(/is no gas_wallet of ETHEREUM/)
})

test('what moves cost counts in the windows, each time that it is asked for', async () => {
  const move = await ownSigner()
  await expect(move({ maxFeePerGas: 300n * GWEI })).rejects.toThrow(/above fee_max/)
  // 0.0021 ETH each.
  for (let asked = 1; asked <= 4; asked++) await move()
  await expect(move()).rejects.toThrow('more ETH would leave than its window of 86400 s allows')
  await expect(move({ to: address }, gasWallet)).rejects.toThrow(/more ETH would leave/)
})

test('bytes that are no text are not signed: what is checked of a list would not be what is signed', async () => {
  const section = {
    tokens: { USDG: TOKEN },
    windows: ['ETH', 'USDG'].map((asset) => ({ asset, period_seconds: 3_600, amount: '1' })),
  }
  const own = await ownEvmSigner(section)
  await own.change({
    kind: 'OPEN',
    wallet: own.wallet,
    next_nonce: 0,
    transfers_from: new Date(0).toISOString(),
  })
  const payment = own.payment({ asset: 'USDG', amount: '1', to: hotWallet })
  const pays = encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [hotWallet, 1_000_000n] })
  // As a whole, it pays the stranger 2 ETH. From its 24th byte on, it pays the token: 'length' is a zero there, and 256 as a whole.
  const bytesOf = (...hex: string[]) => [...Buffer.from(hex.join(''), 'hex')]
  const unsigned = [
    ...bytesOf('02f8a5', '90', '01'.padStart(32, '0'), '8001', '85', '02f88c0180', '826000'),
    ...bytesOf('94', stranger.slice(2), '94', toHex(parseEther('2') >> 48n, { size: 14 }).slice(2)),
    ...Array.from({ length: 4 }, () => 'length'),
    ...bytesOf('b85c', '94', TOKEN.slice(2), '80', 'b844', pays.slice(2), '80'),
  ] as unknown as Hex
  const signed = own.signer.sign({
    ...{ network: 'ETHEREUM', wallet: own.wallet, unsigned },
    payments: [payment],
  })
  await expect(signed).rejects.toThrow('the bytes are not in hex')
})
