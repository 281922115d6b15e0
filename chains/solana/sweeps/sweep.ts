import type { Instruction } from '@solana/kit'
import { transaction, type Database } from '../../../src/db/database.ts'
import { RecordFailure } from '../../../src/db/each-alone.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'
import { leastWorth } from '../../../src/networks/sweep-worth.ts'
import { mintOf, readAccounts, tokenAccountOf } from '../accounts.ts'
import { chainDecimals, GAS_ASSET, NETWORK, offChain, type Facts, type SolanaChain } from '../chain.ts'
import { unitsIn } from '../deposit-accounts.ts'
import { priceFor, simulate, unitPriceNow } from '../fees.ts'
import { associatedOf, createAssociated } from '../instructions.ts'
import { keepUsed, lanesIn, lockLanes, sweepAccounts, type Lane } from '../lanes.ts'
import { feeOf, instructionsOf, SIGNATURE_FEE, signOnNonce } from '../transaction.ts'
import { signedMove } from '../asked-bytes.ts'
import { followSweeps } from './follow.ts'
import { markStale } from '../../kit/holdings.ts'
import { larger } from '../../kit/units.ts'
import { collectingFailures, insertSweep, stepEach, unlessTaken } from '../../kit/sweeps.ts'
import { selectWorth, type SweepPlace } from './holdings.ts'

/**
 * Moves deposits from their addresses to the hot wallet. The hot wallet pays the fee, so that an address needs none of its own:
 * a sweep is one transaction, which is stored before it is broadcast. It takes a nonce account that only sweeps use. The
 * database transaction that ends it posts its cost.
 *
 * On a frozen network nothing is signed, and stored transactions are still followed. Returns the number of steps taken. Throws
 * an AggregateError of all failures, once the other addresses are done.
 */
export async function sweep(
  db: Database,
  chain: SolanaChain,
  keys: NonNullable<SolanaChain['depositKeys']>,
  round: SweepRound,
): Promise<number> {
  const facts = await chain.facts()
  return collectingFailures(async (failed) => {
    const followed = await followSweeps(db, chain, round, failed)
    const lanes = await freeLanes(db, chain)
    if (lanes.length === 0 || (await transaction(db, (tx) => round.isFrozen(tx, NETWORK)))) return followed
    const market = { ...round, price: await unitPriceNow(chain) }
    const places = await worthSweeping(db, chain, facts, market, lanes.length, failed)
    const begun = await stepEach(
      places,
      ({ asset, address }) => `${asset} at ${address}`,
      failed,
      async (place) => {
        const [lane] = lanes
        const plan = lane && (await planOf(db, chain, facts, market, place))
        if (plan === undefined || !(await signAndKeep(db, chain, keys, round, { place, plan, lane: lane! })))
          return false
        lanes.shift()
        return true
      },
    )
    return followed + begun + (await followSweeps(db, chain, round, failed))
  })
}

/** The lanes of sweeps whose values no sweep was signed with. */
async function freeLanes(db: Database, chain: SolanaChain): Promise<Lane[]> {
  const made = sweepAccounts(chain)
  const named = made.map(({ account }) => account)
  const lanes = lanesIn(await readAccounts(chain.rpc, named), made)
  const { rows } = await db.query<{ nonce_account: string; used_nonce: string | null }>(
    'select nonce_account, used_nonce from solana_lanes where network = $1 and nonce_account = any ($2)',
    [NETWORK, named],
  )
  const used = new Map(rows.map((row) => [row.nonce_account, row.used_nonce]))
  return lanes.filter(({ nonceAccount, nonce }) => used.get(nonceAccount) !== nonce)
}

type Market = Pick<SweepRound, 'prices'> & {
  /** The price of a compute unit. */
  price: bigint
}

const leastOf = (chain: SolanaChain, { prices }: Market, asset: string, cost: bigint) =>
  leastWorth(NETWORK, chain.sweepWorth, chainDecimals, prices, asset, cost)

/** The cost of a sweep, which two keys sign. */
const costOf = (terms: { unitLimit: number; unitPrice: bigint }) => feeOf(terms) + SIGNATURE_FEE

/** How many places are tried for each free lane: some may not be worth it, or fail. */
const TRIED_FOR_LANE = 4

async function worthSweeping(
  db: Database,
  chain: SolanaChain,
  { tokens }: Facts,
  market: Market,
  lanes: number,
  failed: (error: unknown) => void,
): Promise<SweepPlace[]> {
  // The least that any sweep costs: each is looked at again with what it costs itself.
  const cost = 2n * SIGNATURE_FEE
  const least = new Map<string, string>()
  for (const asset of [GAS_ASSET, ...tokens.keys()]) {
    const units = leastOf(chain, market, asset, cost)
    if (units !== undefined) least.set(asset, offChain(asset, units))
    else
      failed(
        new RecordFailure(
          `sweeps of ${asset}`,
          `market history has no price of ${asset} and ${GAS_ASSET}: set sweep_minimum.${asset}, the amount from which on it is swept`,
        ),
      )
  }
  return selectWorth(db, chain, least, lanes * TRIED_FOR_LANE)
}

interface Plan {
  units: bigint
  instructions: Instruction[]
  unitLimit: number
  unitPrice: bigint
}

/** Plans the sweep of a place, by what it holds now; undefined where it is not worth it. Throws an Error where it would fail. */
async function planOf(
  db: Database,
  chain: SolanaChain,
  facts: Facts,
  market: Market,
  place: SweepPlace,
): Promise<Plan | undefined> {
  const { address, asset, account } = place
  const wallet = chain.hotWallet.address
  const token = facts.tokens.get(asset)
  const own = token && associatedOf(wallet, token.mint, token.program)
  const accounts = await readAccounts(chain.rpc, [wallet, account, ...(token ? [token.mint, own!] : [])])
  const units = unitsIn(place, accounts)
  if (units === 0n) {
    // As after a sweep that a restored database does not know.
    await markStale(db, { network: NETWORK }, place)
    return undefined
  }
  const mint = token && mintOf(accounts.get(token.mint))
  // The customer is owed the whole deposit: what would stay behind would be the platform's loss.
  if (mint?.takesFee) throw new Error(`${asset} takes a fee from each transfer`)
  const makesOwn = own !== undefined && tokenAccountOf(accounts.get(own)) === undefined
  const instructions = instructionsOf({ from: address, to: wallet, units, token, memo: null })
  if (token !== undefined && makesOwn) {
    const { mint, program } = token
    instructions.unshift(createAssociated(program, { payer: wallet, account: own, owner: wallet, mint }))
  }
  const trial = await simulate(chain, instructions)
  if (trial.err !== null) throw new Error(`the sweep would fail: ${JSON.stringify(trial.err)}`)
  const { unitLimit } = trial
  const unitPrice = larger(market.price, priceFor(chain, market.price, unitLimit))
  const cost = costOf({ unitLimit, unitPrice })
  // It would wait on its lane until prices fall.
  if (cost > chain.feeCeiling) return undefined
  const least = leastOf(chain, market, asset, cost)
  if (least === undefined || units < least) return undefined
  const rent = makesOwn ? facts.rentOfToken(token!.program) : 0n
  if ((accounts.get(wallet)?.lamports ?? 0n) < facts.rentOfWallet + cost + rent)
    throw new Error(`the hot wallet has too little ${GAS_ASSET} for the fee`)
  return { units, instructions, unitLimit, unitPrice }
}

/** Signs a sweep and stores it with the lane's value. False where another worker was faster, or the network is frozen. */
async function signAndKeep(
  db: Database,
  chain: SolanaChain,
  keys: NonNullable<SolanaChain['depositKeys']>,
  { isFrozen }: SweepRound,
  { place, plan, lane }: { place: SweepPlace; plan: Plan; lane: Lane },
): Promise<boolean> {
  const { customer_id, address, asset, derivation } = place
  const owner = keys.signerOf(address, derivation)
  if (owner === undefined)
    throw new Error(`${address} was derived from another deposit_key than the one given`)
  const { units, instructions, unitLimit, unitPrice } = plan
  const asked = signOnNonce(chain.hotWallet, instructions, { ...lane, unitLimit, unitPrice }, owner)
  const bytes = await signedMove(chain, asked, { address, derivation })
  return unlessTaken(db, NETWORK, isFrozen, async (tx) => {
    const rows = await lockLanes(tx, [lane.nonceAccount])
    if (rows.get(lane.nonceAccount)!.used_nonce === lane.nonce) return false
    const amount = offChain(asset, units)
    await insertSweep(tx, NETWORK, { customer_id, address, kind: 'SWEEP', asset, amount }, bytes)
    await keepUsed(tx, [{ ...lane, signature: bytes.crypto_tx_hash }])
    return true
  })
}
