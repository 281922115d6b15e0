import type { Opening } from '../../src/networks/family.ts'
import type { Secret } from '../../src/networks/secrets.ts'

/** The fields of a section that name its hot wallet. */
interface HotWalletFields {
  hot_wallet_key?: Secret
  hot_wallet_address?: string
  signer?: object
}

/**
 * The hot wallet of a section. A process that does not sign and has the address does not read the key. `watch` and `open`
 * read an address and a key, and throw an Error that names the field and shows no key. Where `open` is given an address, it may
 * return a wallet of that address which another key signs for.
 */
export async function hotWalletOf<Wallet extends { address: string }>(
  { network, given, signs }: Pick<Opening, 'network' | 'given' | 'signs'>,
  { hot_wallet_key, hot_wallet_address, signer }: HotWalletFields,
  {
    watch,
    open,
  }: {
    watch: (address: string) => Wallet
    open: (field: string, key: string, watched: Wallet | undefined) => Wallet
  },
): Promise<Wallet> {
  const field = `${network}.hot_wallet_key`
  const watched = hot_wallet_address === undefined ? undefined : watch(hot_wallet_address)
  if (signer !== undefined && (hot_wallet_key !== undefined || watched === undefined))
    throw new Error(
      `${network}.hot_wallet_address is given instead of hot_wallet_key where a signer has the key`,
    )
  if (watched !== undefined && (!signs || signer !== undefined)) return watched
  if (hot_wallet_key === undefined) {
    const why = watched === undefined ? '' : ': without it only a process with BURSAR_WORKER=false can be'
    throw new Error(`${field} is required${why}`)
  }
  const wallet = open(field, await given.secret('hot_wallet_key', hot_wallet_key), watched)
  if (watched !== undefined && watched.address !== wallet.address)
    throw new Error(`${network}.hot_wallet_address is not the address of hot_wallet_key: ${wallet.address}`)
  return wallet
}
