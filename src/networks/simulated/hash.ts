import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import { NETWORKS } from '../../contract/assets/catalogue.ts'
import type { PayoutNetwork } from '../network.ts'

/** Formats the hash like the network: 0x and hex on EVM, a base58 signature of 64 bytes on Solana, hex elsewhere. */
export function formatHash(network: PayoutNetwork, raw: Buffer): string {
  const family = network === 'WIRE' ? undefined : NETWORKS[network].family
  if (family === 'solana') return base58.encode(createHash('sha512').update(raw).digest())
  const hex = createHash('sha256').update(raw).digest('hex')
  return family === 'evm' ? `0x${hex}` : hex
}
