import type { NetworkFacts } from '../contract/assets/catalogue.ts'
import type { Family } from './family.ts'

type Name = NetworkFacts['family']

/** The families of chains. Each is loaded once a network of it is configured, or its bytes are read; without its line, never. */
const FAMILIES: Readonly<Partial<Record<Name, () => Promise<{ family: Family }>>>> = {
  bitcoin: () => import('../../chains/bitcoin/family.ts'),
  evm: () => import('../../chains/evm/family.ts'),
  solana: () => import('../../chains/solana/family.ts'),
  stellar: () => import('../../chains/stellar/family.ts'),
}

/** The family with this name in the catalogue. Throws an Error where the program does not have it. */
export async function familyOf(name: Name): Promise<Family> {
  const loaded = await FAMILIES[name]?.()
  if (loaded === undefined) throw new Error(`this program has no networks of the family ${name}`)
  return loaded.family
}
