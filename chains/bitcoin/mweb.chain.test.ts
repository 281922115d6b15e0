/*
 * LITECOIN with its extension block (MWEB). A payment out of it is an output of the block's last transaction, which the node lists in
 * categories of its own.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BitcoinNode, HAS_LITECOIND } from '../../test/bitcoin-node.ts'
import type { Database } from '../../src/db/database.ts'
import { bitcoinAdapter } from './adapter.ts'
import { outpointOf } from './decode.ts'
import { valueOf } from './replace.ts'
import { bitcoinWallet } from './wallet.ts'
import { bitcoinRpc } from '../kit/json-rpc.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

/** The first block with an extension, which needs a payment into it. */
const FIRST_BLOCK = 432

describe.skipIf(!HAS_LITECOIND)('over a Litecoin node with MWEB', () => {
  let node: BitcoinNode
  beforeAll(async () => {
    node = await BitcoinNode.start({ path: 'litecoind', options: [] })
  })
  afterAll(() => node?.stop())

  test('a payment out of the extension block is a deposit, at its confirmations', async () => {
    // The chain is read for deposits: nothing asks the database about payments of others.
    const adapter = bitcoinAdapter(
      'LITECOIN',
      { ...node.config, confirmations: 2, feeCeiling: '0.01', withdrawals: withdrawalReader },
      undefined as unknown as Database,
    )
    await node.mine(FIRST_BLOCK - 1 - Number(await node.miner.call<string>('getblockcount')))
    await node.miner.call('createwallet', 'private')
    const extension = bitcoinRpc({ ...node.owner, wallet: 'private' })
    await node.pay(node.miner, { [await extension.call<string>('getnewaddress', '', 'mweb')]: '5' })
    await node.mine(1)
    const { address } = (await adapter.newDepositAddress('LITECOIN'))('')
    const { cursor } = await adapter.scanDeposits(null)
    await node.pay(extension, { [address]: '2' })
    await node.mine(1)
    const deposit = { address, asset: 'LTC', amount: '2' }
    expect((await adapter.seeDeposits!(cursor)).seen).toMatchObject([deposit])
    expect((await adapter.scanDeposits(cursor)).found).toEqual([])
    await node.mine(1)
    expect((await adapter.scanDeposits(cursor)).found).toMatchObject([deposit])
    // With the depth of live mode it can be spent, too.
    await node.mine(4)
    expect((await adapter.scanDeposits(cursor)).found).toMatchObject([deposit])
    expect((await adapter.status()).held).toEqual({ LTC: '2' })
    // What spends it can be replaced: the fee is known.
    const coin = (await node.bursar.call<{ txid: string; vout: string }[]>('listunspent'))[0]!
    const config = { ...node.config, confirmations: 2, feeCeiling: '0.01', withdrawals: withdrawalReader }
    const wallet = bitcoinWallet('LITECOIN', config, undefined as unknown as Database)
    expect(await valueOf(wallet, [outpointOf(coin)])).toBe(200_000_000n)
  })
})
