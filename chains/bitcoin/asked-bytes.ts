import type { Queryable } from '../../src/db/database.ts'
import { WrongChain } from '../../src/networks/chain-of-mode.ts'
import type { AskedWithdrawal, SignerAnswer } from '../../src/networks/network.ts'
import { NodeRefusal } from '../../src/networks/node-failure.ts'
import { askSigner as askProcess, type AskedBytes } from '../kit/remote-signer.ts'
import { decode } from './decode.ts'
import { askPerson, filled, requireWhole } from './psbt.ts'
import { isAboutScripts } from './reject-reasons.ts'
import { mempoolRejection } from './sign-batch.ts'
import { isOwnAddress, signerAddress, type BitcoinWallet } from './wallet.ts'

/** What a signer process is asked for: PSBTs of a wallet that the node only watches. */

/**
 * Looks for what became of each transaction that is asked for, also where somebody else has broadcast it, and asks the signer
 * process, where there is one, for the others.
 */
export async function askSigner(
  db: Queryable,
  wallet: BitcoinWallet,
  asked: readonly AskedWithdrawal[],
): Promise<SignerAnswer[]> {
  const found = await askPerson(db, wallet, asked)
  const { signer, network } = wallet
  if (signer === undefined) return found
  const bytes: AskedBytes = {
    async unsignedIn(raw) {
      const psbt = await filled(wallet, raw).catch((error: unknown) => {
        // What the node says of one transaction stops no other.
        throw error instanceof NodeRefusal ? new Error(error.message) : error
      })
      return { wallet: signer.address, unsigned: `0x${Buffer.from(psbt, 'base64').toString('hex')}` }
    },
    async signedAs({ unsigned }, signed) {
      const [raw_transaction, asked] = [signed, unsigned].map((hex) => Buffer.from(hex.slice(2), 'hex'))
      const { txid } = decode(asked!)
      requireWhole(raw_transaction!, txid)
      const rejection = await mempoolRejection(wallet, raw_transaction!)
      // Anything else may change: what is signed is kept, and broadcast again.
      if (rejection !== undefined && isAboutScripts(rejection)) throw new Error(rejection)
      return { raw_transaction: raw_transaction!, crypto_tx_hash: txid }
    },
  }
  const isWaiting = (answer: SignerAnswer) => 'reason' in answer && answer.reason.code === 'WAITING_SIGNATURE'
  const waiting = asked.filter((_, index) => isWaiting(found[index]!))
  const answers = await askProcess(db, { network, signer: signer.client, bytes }, waiting)
  return asked.map((one, index) => answers.get(one) ?? found[index]!)
}

/** Throws WrongChain where the node's wallet has keys, or is not the signer's. Without a signer, there is nothing to ask. */
export async function requireWatchOnly(wallet: BitcoinWallet): Promise<void> {
  const { rpc, signer, network } = wallet
  if (signer === undefined) return
  const { private_keys_enabled } = await rpc.call<{ private_keys_enabled: boolean }>('getwalletinfo')
  const says = (fault: string) => new WrongChain(`the node's wallet of ${network} ${fault}`)
  if (private_keys_enabled !== false)
    throw says('has private keys, and a signer has them: give it one without')
  const address = await signerAddress(wallet)
  if (!(await isOwnAddress(wallet, address)))
    throw says(`does not watch ${address}: import the descriptors that 'bursar signer start' prints`)
}
