import { Type, type Static } from 'typebox'
import { readSecret, Secret } from '../src/networks/secrets.ts'
import { Closed } from '../src/contract/fields.ts'
import { BackEndFailure, walletOf, type BackEnd } from './back-end.ts'
import { evm } from './evm.ts'
import type { SignerFamily, Wallet } from './family.ts'
import { openKms } from './kms.ts'
import { openPkcs11 } from './pkcs11.ts'

const Text = Type.String({ minLength: 1 })

/** Where the key of a hot wallet is: one of `env`, `file`, and on EVM networks `pkcs11` and `kms`. */
export const WalletSection = Closed({
  /** What the key's address must be; on STELLAR the account that it signs for. */
  address: Type.Optional(Text),
  /** The private key: in hex, on SOLANA and STELLAR as in `hot_wallet_key` of the networks file, and an extended one in Bitcoin's family. */
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
  family: SignerFamily,
  field: string,
  section: WalletSection,
  environment: Record<string, string | undefined>,
): Promise<Wallet> {
  const { address, ...places } = section
  if (Object.keys(places).length !== 1) throw new Error(`${field} must have one of env, file, pkcs11 and kms`)
  const account = address && family.addressOf(address)
  const wallet = await walletAt(family, field, { ...places, account }, environment)
  if (account !== undefined && account !== wallet.address)
    throw new Error(`${field}.address is not the address of its key: ${wallet.address}`)
  return wallet
}

async function walletAt(
  family: SignerFamily,
  field: string,
  { pkcs11, kms, account, ...secret }: Omit<WalletSection, 'address'> & { account: string | undefined },
  environment: Record<string, string | undefined>,
): Promise<Wallet> {
  if ((pkcs11 ?? kms) !== undefined && family !== evm)
    throw new Error(`${field} must have env or file: other keys are for EVM networks`)
  if (pkcs11 !== undefined) {
    const pin = await readSecret(`${field}.pkcs11.pin`, pkcs11.pin, environment)
    return reached(`${field}.pkcs11`, openPkcs11(pkcs11, pin))
  }
  if (kms !== undefined) return reached(`${field}.kms`, openKms(kms))
  return family.walletOf(field, await readSecret(field, secret as Secret, environment), account)
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
