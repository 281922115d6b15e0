import { Account, Asset, Keypair, Operation, TransactionBuilder } from '@stellar/stellar-base'
import { conformance, type World } from '../../test/conformance.ts'
import { startStellarModel } from '../../test/stellar-model.ts'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { stellarAdapter } from './adapter.ts'
import { DECIMALS, type StellarConfig } from './chain.ts'
import { laneKeys } from './envelope.ts'
import { withdrawalReader, readerOfWithdrawals } from '../../src/rails/payouts/withdrawal-reader.ts'

const LANES = 3

/** A model of the network's rules. */
async function start(): Promise<World> {
  const model = await startStellarModel()
  const issuer = Keypair.random().publicKey()
  const token = `PYUSD:${issuer}`
  const keyOf = (asset: string) => (asset === 'XLM' ? Asset.native() : new Asset('PYUSD', issuer))
  const hotWallet = Keypair.random()
  const config: StellarConfig = {
    horizonUrl: model.url,
    verifyHorizonUrl: model.url,
    passphrase: model.passphrase,
    hotWallet: { seed: hotWallet.secret() },
    lanes: LANES,
    feeCeiling: '0.01',
    withdrawals: withdrawalReader,
    issuers: { PYUSD: issuer },
    pollMs: 10,
  }
  const wallet = model.open(hotWallet.publicKey(), '200', { [token]: '200' })
  for (const key of laneKeys(hotWallet, LANES)) model.open(key.publicKey(), '0').sponsored = 2
  const payer = Keypair.random()
  model.open(payer.publicKey(), '100000', { [token]: '100000' })
  const pay = (from: Keypair, destination: string, asset: Asset, amount: string) => {
    const source = new Account(from.publicKey(), String(model.find(from.publicKey())!.sequence))
    const one = new TransactionBuilder(source, { fee: '1000', networkPassphrase: model.passphrase })
      .addOperation(Operation.payment({ destination, asset, amount }))
      .setTimeout(0)
      .build()
    one.sign(from)
    model.submit(one)
    return one.hash().toString('hex')
  }
  const balanceOf = (account: string, asset: string) => {
    const found = model.find(account)!
    return asset === 'XLM' ? found.native : found.lines.get(token)!.balance
  }
  const opened = parseAmount('1', DECIMALS)!
  return {
    network: 'STELLAR',
    assets: ['XLM', 'PYUSD'],
    tokens: new Map([['STELLAR', config.issuers!]]),
    depth: 1,
    open: (db, { reserveAfterMs } = {}) =>
      stellarAdapter({ ...config, withdrawals: readerOfWithdrawals(reserveAfterMs) }, db),
    async somebody() {
      const account = Keypair.random().publicKey()
      model.open(account, '1', { [token]: '0' })
      return account
    },
    arrived: async (address, asset) =>
      formatAmount(balanceOf(address, asset) - (asset === 'XLM' ? opened : 0n), DECIMALS),
    async mine(blocks = 1) {
      for (let ledger = 1; ledger <= blocks; ledger++) model.close()
    },
    async drop() {
      model.drop()
      // What a node has got it may have forgotten after some ledgers.
      model.close(20)
    },
    pay: async (address, asset, amount) => void pay(payer, address, keyOf(asset), amount),
    async refill(asset, amount) {
      const units = parseAmount(amount, DECIMALS)!
      if (asset === 'XLM') wallet.native += units
      else wallet.lines.get(token)!.balance += units
    },
    byHand: async (to, amount) => pay(hotWallet, to, Asset.native(), amount),
    stop: () => model.stop(),
  }
}

conformance(start, {
  takeBack: 'a closed ledger is final',
  tooDear: 'the model takes the least fee that there is',
  sweeps: "deposit addresses are the hot wallet's own account",
})
