import type { NetworkFacts } from '../contract/assets/catalogue.ts'
import type { Family } from './family.ts'

type Name = NetworkFacts['family']

/** The families of chains. Each is loaded once a network of it is configured, or its bytes are read. */
const FAMILIES: Readonly<Record<Name, () => Promise<{ family: Family }>>> = {
  bitcoin: () => import('../../chains/bitcoin/family.ts'),
  evm: () => import('../../chains/evm/family.ts'),
  solana: () => import('../../chains/solana/family.ts'),
  stellar: () => import('../../chains/stellar/family.ts'),
}

/** The family with this name in the catalogue. */
export const familyOf = async (name: Name): Promise<Family> => (await FAMILIES[name]()).family
