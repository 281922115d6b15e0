// Makes the channel accounts of STELLAR that are missing (docs/guides/networks-stellar.md), sponsored by the hot wallet:
//   STELLAR_SEED=S... node ops/stellar-channels.mjs <horizon> [lanes] [passphrase]
// STELLAR_ACCOUNT=G... is the hot wallet's account where the seed is another signer's.
// Afterwards: bursar wallet acknowledge --network STELLAR --tx-hash <hash>
import { createHmac } from 'node:crypto'
import { Account, Keypair, Networks, Operation, TransactionBuilder } from '@stellar/stellar-base'

const [horizon, lanes = '8', networkPassphrase = Networks.TESTNET] = process.argv.slice(2)
const hotWallet = Keypair.fromSecret(process.env.STELLAR_SEED ?? '')
const source = process.env.STELLAR_ACCOUNT ?? hotWallet.publicKey()
/** @returns {Promise<{ sequence: string } | undefined>} */
const ask = async (path) => {
  const reply = await fetch(horizon + path)
  if (reply.ok) return /** @type {{ sequence: string }} */ (await reply.json())
  if (reply.status === 404) return undefined
  throw new Error(`${path}: ${reply.status}`)
}
const wallet = await ask(`/accounts/${source}`)
if (wallet === undefined) throw new Error(`the account ${source} does not exist`)
const built = new TransactionBuilder(new Account(source, wallet.sequence), {
  fee: '10000',
  networkPassphrase,
})
/** A transaction has twenty signatures at most. */
const MADE_MAX = 19
const missing = []
const accounts = []
for (let index = 1; index <= Number(lanes); index++) {
  // As chains/stellar/envelope.ts derives them.
  const seed = createHmac('sha256', hotWallet.rawSecretKey()).update(`bursar channel ${index}`).digest()
  const key = Keypair.fromRawEd25519Seed(seed)
  const destination = key.publicKey()
  accounts.push(destination)
  if (missing.length === MADE_MAX || (await ask(`/accounts/${destination}`)) !== undefined) continue
  missing.push(key)
  built.addOperation(Operation.beginSponsoringFutureReserves({ sponsoredId: destination }))
  built.addOperation(Operation.createAccount({ destination, startingBalance: '0' }))
  built.addOperation(Operation.endSponsoringFutureReserves({ source: destination }))
}
// Of another signer's account, others may use the numbers.
if (source === hotWallet.publicKey()) accounts.push(source)
console.log(`with a signer process: "lane_accounts": ${JSON.stringify(accounts)}`)
if (missing.length === 0) console.log('no channel account is missing')
else {
  const transaction = built.setTimeout(120).build()
  transaction.sign(hotWallet, ...missing)
  const body = new URLSearchParams({ tx: transaction.toXDR() })
  const reply = await fetch(`${horizon}/transactions`, { method: 'POST', body })
  const answer = await reply.text()
  if (!reply.ok) throw new Error(answer)
  if (missing.length === MADE_MAX) console.log('run this again: more may be missing')
  console.log(`made ${missing.length} accounts: ${transaction.hash().toString('hex')}`)
}
