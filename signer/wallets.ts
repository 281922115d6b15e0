import { Type, type Static } from 'typebox'
import { getAddress } from 'viem/utils'
import { accountOf } from '../chains/evm/configured-wallets.ts'
import { readSecret, Secret } from '../src/networks/secrets.ts'
import { Closed } from '../src/contract/fields.ts'
import { BackEndFailure, walletOf, type BackEnd, type Wallet } from './back-end.ts'
import { openKms } from './kms.ts'
import { openPkcs11 } from './pkcs11.ts'

const Text = Type.String({ minLength: 1 })

/** Where the key of a hot wallet is: one of `env`, `file`, `pkcs11` and `kms`. */
export const WalletSection = Closed({
  /** What the key's address must be. */
  address: Type.Optional(Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })),
  /** The private key, in hex. */
  env: Type.Optional(Text),
  file: Type.Optional(Text),
  pkcs11: Type.Optional(
    Closed({
      module: Text,
      token: Text,
      id: Type.String({ pattern: '^([0-9a-f]{2})+$' }),
      pin: Secret,
      environment: Type.Optional(Type.Record(Type.String(), Type.String())),
    }),
  ),
  kms: Type.Optional(Closed({ key_id: Text, region: Text, endpoint: Type.Optional(Text) })),
})

type WalletSection = Static<typeof WalletSection>

/**
 * The wallet of a section of the signer's file. A key in a device or service is asked for its public key, and for a
 * signature. Throws an Error that names the field.
 */
export async function openWallet(
  field: string,
  section: WalletSection,
  environment: Record<string, string | undefined>,
): Promise<Wallet> {
  const { address, ...places } = section
  if (Object.keys(places).length !== 1) throw new Error(`${field} must have one of env, file, pkcs11 and kms`)
  const wallet = await walletAt(field, places, environment)
  if (address !== undefined && getAddress(address) !== wallet.address)
    throw new Error(`${field}.address is not the address of its key: ${wallet.address}`)
  return wallet
}

async function walletAt(
  field: string,
  { pkcs11, kms, ...secret }: Omit<WalletSection, 'address'>,
  environment: Record<string, string | undefined>,
): Promise<Wallet> {
  if (pkcs11 !== undefined) {
    const pin = await readSecret(`${field}.pkcs11.pin`, pkcs11.pin, environment)
    return reached(`${field}.pkcs11`, openPkcs11(pkcs11, pin))
  }
  if (kms !== undefined) return reached(`${field}.kms`, openKms(kms))
  const account = accountOf(field, await readSecret(field, secret as Secret, environment))
  // The same question always gets the same bytes (RFC 6979), so none are kept.
  return { address: account.address, signTransaction: (transaction) => account.signTransaction(transaction) }
}

/** Throws an Error that names the field where the key cannot be used. */
async function reached(field: string, opening: Promise<BackEnd>): Promise<Wallet> {
  try {
    return await walletOf(await opening)
  } catch (error) {
    if (!(error instanceof BackEndFailure)) throw error
    throw new Error(`${field}: ${error.message}`, { cause: error })
  }
}
