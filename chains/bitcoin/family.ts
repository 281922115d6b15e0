import { BlockList, isIP } from 'node:net'
import { Type, type Static } from 'typebox'
import { outputScriptOf } from '../../src/contract/addresses/addresses.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { findAsset } from '../../src/contract/assets/catalogue.ts'
import { Closed } from '../../src/contract/fields.ts'
import type { ConnectedNetwork, Family, Opening, OwnKeys } from '../../src/networks/family.ts'
import { COUNTED, shared, type Depth } from '../../src/networks/section.ts'
import { Secret } from '../../src/networks/secrets.ts'
import type { PaymentOn } from '../../src/networks/signed-payment.ts'
import { bitcoinRpc } from '../kit/json-rpc.ts'
import { signerClient, SignerSection } from '../kit/remote-signer.ts'
import { bitcoinAdapter } from './adapter.ts'
import { requireWatchOnly } from './asked-bytes.ts'
import { onChainOf } from './chain-of-mode.ts'
import { decode } from './decode.ts'
import type { BitcoinNetwork } from './dialects.ts'
import { bitcoinWallet } from './wallet.ts'

const ADAPTER = 'bitcoin-core'
const BitcoinSection = Closed({
  adapter: Type.Literal(ADAPTER),
  /** `fee_ceiling` is the highest fee rate, in coins per 1,000 virtual bytes. */
  ...shared,
  rpc_user: Type.String({ minLength: 1 }),
  rpc_password: Secret,
  /** The node's wallet: the hot wallet. */
  wallet: Type.Optional(Type.String({ minLength: 1 })),
  /** The node's wallet has no private keys, and a person signs PSBTs; by default the wallet signs. */
  signing: Type.Optional(Type.Literal('psbt')),
  /** The same, and a process signs: it names its wallet by an address. */
  signer: Type.Optional(SignerSection),
  hot_wallet_address: Type.Optional(Type.String({ minLength: 1 })),
  /** The node at a public address is the operator's own: it checks the chain's work itself. */
  own_node: Type.Optional(Type.Literal(true)),
  /** An operator has reviewed what the wallet sent in blocks below this height. */
  first_height: Type.Optional(Type.Integer({ minimum: 0 })),
})
type BitcoinSection = Static<typeof BitcoinSection>

export const family: Family<BitcoinSection> = {
  section: BitcoinSection,
  adapter: ADAPTER,
  confirmationsAre: COUNTED,
  carriesMemo: false,
  disagreementOf,
  connect,
}

async function connect(
  { network, db, mode, withdrawals, given }: Opening,
  section: BitcoinSection,
  depth: Depth,
): Promise<ConnectedNetwork> {
  const { rpc_url, rpc_user, rpc_password, wallet, signing, fee_ceiling, first_height, own_node } = section
  const signer = await signerOf(network as BitcoinNetwork, section)
  const node = {
    rpcUrl: await given.url('rpc_url', rpc_url),
    rpcUser: rpc_user,
    rpcPassword: await given.secret('rpc_password', rpc_password),
    wallet,
  }
  const { hostname } = given.nodes[0]!
  if (mode === 'live' && !own_node && !isPrivate(hostname))
    throw new Error(
      `${network}.rpc_url: ${hostname} is not in a private network, and its word alone refunds and credits: it must be a full node of ` +
        'your own, and own_node says so',
    )
  const config = {
    ...{ withdrawals, ...node, signing, signer, confirmations: depth as number },
    ...{ feeCeiling: fee_ceiling, firstHeight: first_height },
  }
  const opened = [network as BitcoinNetwork, config, db] as const
  const requireWallet = () => requireWatchOnly(bitcoinWallet(...opened))
  const connected = onChainOf(mode, network, bitcoinRpc(node), bitcoinAdapter(...opened), requireWallet)
  // A sandbox may have given out simulated addresses before.
  const keys: OwnKeys =
    mode === 'live' ? { gave: ({ address }) => connected.adapter.isOwnAddress!(address) } : {}
  // The node checks the chain's work itself: to lie, it would have to be taken over, and the wallet is in it.
  return { ...connected, privateKeys: [], depositPublicKey: undefined, hasSecondNode: true, keys }
}

/** The signer process of a section. Throws an Error that names the field where the section cannot have one. */
async function signerOf(
  network: BitcoinNetwork,
  { signing, signer, hot_wallet_address: address }: BitcoinSection,
) {
  const given = signer === undefined ? "signing cannot be 'psbt'" : 'signer cannot be given'
  if (network === 'BITCOIN_CASH' && (signing ?? signer) !== undefined)
    throw new Error(
      `${network}.${given}: without segregated witness, signatures change the hash of a transaction`,
    )
  if (signer === undefined) return undefined
  if (signing !== undefined) throw new Error(`${network}.signing and signer exclude each other`)
  if (address === undefined || outputScriptOf(network, address) === undefined)
    throw new Error(`${network}.hot_wallet_address must be the address that 'bursar signer start' prints`)
  return { client: await signerClient(signer), address }
}

const PRIVATE_ADDRESSES = new BlockList()
for (const [address, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  PRIVATE_ADDRESSES.addSubnet(address, bits)
PRIVATE_ADDRESSES.addAddress('::1', 'ipv6')
PRIVATE_ADDRESSES.addSubnet('fc00::', 7, 'ipv6')
const PRIVATE_NAME = /^([^.]+|.*\.(internal|local|lan|home\.arpa|svc))$/

/** Whether the internet does not have this host: it is of this machine, a private network, a cluster or containers. */
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  const version = isIP(address)
  if (version === 0) return PRIVATE_NAME.test(hostname)
  return PRIVATE_ADDRESSES.check(address, version === 6 ? 'ipv6' : 'ipv4')
}

/** One output pays the withdrawal; others may pay others. */
function disagreementOf(payment: PaymentOn): string | undefined {
  const { network, asset, amount, destination_address } = payment
  const script = outputScriptOf(network, destination_address)
  const units = parseAmount(amount, findAsset(asset)!.networks[network]!.decimals)
  const pays = decode(payment.raw_transaction).outputs.some(
    (output) => output.amount === units && script !== undefined && Buffer.from(output.script).equals(script),
  )
  return pays
    ? undefined
    : `no output of the signed transaction pays ${amount} ${asset} to ${destination_address}`
}
