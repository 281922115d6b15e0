import { Type, type Static } from 'typebox'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, OneOf, Timestamp } from '../../contract/fields.ts'
import { poolOf } from '../../db/customer-pool.ts'
import { forAll, type Queryable } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { lookAt, type Look } from './look.ts'
import { sumsOf } from './custody.ts'
import { ASKS_SIGNER, freezesOn, refillsOn, uncreditedOn } from './network-status.ts'

const Count = (description: string) => Type.Integer({ description })

/** What operators see of a network. */
export const OperatorFigures = Type.Object(
  {
    reachable: Type.Optional(
      Type.Boolean({ description: 'Whether its node answers; absent where it is simulated.' }),
    ),
    error: Type.Optional(Type.String({ description: 'Why it does not.' })),
    height: Type.Optional(Type.Integer({ description: 'The newest block of the node.' })),
    hot_wallet: Type.Optional(
      Type.Object(
        {
          asset: AssetSymbol,
          amount: Amount('What the hot wallet holds.'),
          low_mark: Type.Optional(Amount('What it should hold at least.')),
          below_low_mark: Type.Boolean({ description: 'Whether it holds less.' }),
        },
        { description: "The hot wallet's amount of the network's own asset, which pays the fees." },
      ),
    ),
    custody: Type.Array(
      Type.Object({
        asset: AssetSymbol,
        in_custody: Amount('What the ledgers of all customers have there.'),
        held: Type.Optional(Amount('What the wallet holds; absent while its node does not answer.')),
        difference: Type.Optional(
          Type.String({ description: 'Held beyond custody. Payments under way explain a small difference.' }),
        ),
      }),
      { description: 'Empty where the network is simulated: nothing is on a chain.' },
    ),
    lanes: Type.Optional(
      Type.Array(
        Type.Object({
          lane: Type.String({ description: 'The address of the wallet.' }),
          holds: Type.Array(Type.Object({ asset: AssetSymbol, amount: Amount('What it holds.') })),
          in_flight: Count('Its transactions that are signed and not mined.'),
          journal: Type.Optional(
            Type.Object(
              {
                next_nonce: Count('Its next nonce.'),
                ahead: Count('Signatures that this database does not know; negative: not signed yet.'),
              },
              { description: 'By the journal of the signer process.' },
            ),
          ),
          blocked: Type.Optional(
            Type.Object({
              code: Type.String({ description: 'Why nothing is signed from it.' }),
              detail: Type.String({ description: 'The same for people.' }),
            }),
          ),
        }),
        { description: 'The wallets that pay, where there is more than one, or a signer process.' },
      ),
    ),
    signer: Type.Optional(
      Type.Object(
        {
          reachable: Type.Boolean({ description: 'Whether it answers.' }),
          error: Type.Optional(Type.String({ description: 'Why it does not.' })),
        },
        { description: 'The signer process; absent where there is none.' },
      ),
    ),
    asked: Type.Optional(
      Type.Object(
        { count: Count('How many wait.'), since: Timestamp('Since when the first waits.') },
        { description: 'Withdrawals that wait for the signer process.' },
      ),
    ),
    asks: Type.Array(
      Type.Object({
        kind: OneOf(
          ['REFILL', 'SEND'],
          'REFILL: the hot wallet is below its low mark. SEND: it is above its high mark.',
        ),
        asset: AssetSymbol,
        amount: Amount('What brings it to its target.'),
        to: Type.Optional(Type.String({ description: 'Of a send: the address in cold storage.' })),
      }),
      { description: 'The refills and sends to cold storage that people are asked for.' },
    ),
    refills: Type.Array(
      Type.Object({
        crypto_tx_hash: Type.String({ description: 'The transaction.' }),
        since: Timestamp('When it was found.'),
        detail: Type.Optional(
          Type.String({ description: 'Why it could not be posted; absent before the first attempt.' }),
        ),
      }),
      { description: 'Payments from cold storage that are not posted yet.' },
    ),
    in_flight: Count('Withdrawals that have not ended.'),
    waiting: Type.Array(
      Type.Object({
        code: Type.String({ description: 'Why they wait.' }),
        detail: Type.String({ description: 'The same for people.' }),
        count: Count('How many wait.'),
        since: Timestamp('Since when the first waits.'),
      }),
    ),
    frozen: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'Reason of the freeze.' }),
        detail: Type.String({ description: 'Why it was placed.' }),
        since: Timestamp('When it was placed.'),
      }),
      { description: 'The freezes of the network, and of everything.' },
    ),
    uncredited: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'Why deposits are not credited.' }),
        count: Count('How many are not.'),
        since: Timestamp('When the first was found.'),
      }),
    ),
  },
  {
    description:
      'Figures of the whole deployment, for operators with the scope `operators:read_network` alone.',
  },
)
type OperatorFigures = Static<typeof OperatorFigures>

const amountsOf = (held: Record<string, string>) =>
  Object.entries(held).map(([asset, amount]) => ({ asset, amount }))

/** Time for which an answer is reused. Several operators look at once, and each look asks every node. */
const FRESH_MS = 10_000
/**
 * An answer this old at most is returned while the next one is read. The sum of custody grows with the ledger: a
 * million entries of one network took 1.4 s on a loaded machine, and a page should not wait for that.
 */
const KEPT_MS = 60_000

type Figures = ReadonlyMap<CryptoNetwork, OperatorFigures>
interface KeptFigures {
  readAt: number
  /** When it was last read or began to be read again. */
  askedAt: number
  figures: Promise<Figures>
}
const kept = new WeakMap<Queryable, KeptFigures>()

/** Returns the figures of all connected networks, at most a minute old. Throws when the database does not answer. */
export function operatorFigures(asked: Queryable, networks: Networks): Promise<Figures> {
  const db = forAll(poolOf(asked))
  const known = kept.get(db)
  const now = performance.now()
  const isUsable = known !== undefined && now - known.readAt < KEPT_MS
  if (isUsable && now - known.askedAt < FRESH_MS) return known.figures
  const figures = readOperatorFigures(db, networks)
  // After a failure, the next caller reads again.
  figures.catch(() => kept.delete(db))
  if (!isUsable) {
    kept.set(db, { readAt: now, askedAt: now, figures })
    return figures
  }
  known.askedAt = now
  void figures.then(
    () => kept.set(db, { readAt: now, askedAt: now, figures }),
    () => undefined,
  )
  return known.figures
}

/** Reads the figures of all connected networks: some statements for each, and a question to each node. */
export async function readOperatorFigures(db: Queryable, networks: Networks): Promise<Figures> {
  const adapters = [...networks].flatMap(([network, adapter]) =>
    network === 'WIRE' ? [] : [[network, adapter] as const],
  )
  const unended = await unendedWithdrawals(db)
  const figures = adapters.map(async ([network, adapter]): Promise<[CryptoNetwork, OperatorFigures]> => {
    const isReal = adapter.status !== undefined
    const [look, custody, frozen, uncredited, refills] = await Promise.all([
      isReal ? lookAt(db, network, adapter).catch((error: Error) => error) : undefined,
      isReal ? sumsOf(db, `custody:${network}`) : new Map<string, bigint>(),
      freezesOn(db, network),
      uncreditedOn(db, network),
      isReal ? refillsOn(db, network) : [],
    ])
    const own = unended.filter((row) => row.network === network)
    const asked = own.filter((row) => row.asked_since !== null)
    const askedSince = asked.map((row) => row.asked_since!).sort()[0]
    return [
      network,
      {
        ...figuresOfLook(network, adapter, look, custody),
        ...(askedSince !== undefined && {
          asked: { count: asked.reduce((sum, row) => sum + Number(row.asked), 0), since: askedSince },
        }),
        in_flight: own.reduce((sum, { count }) => sum + Number(count), 0),
        waiting: own.flatMap(({ code, detail, since, count }) =>
          code === null ? [] : [{ code, detail: detail!, count: Number(count), since: since! }],
        ),
        frozen,
        uncredited,
        refills: refills.map((refill) => presentOf(refill)),
      },
    ]
  })
  return new Map(await Promise.all(figures))
}

function figuresOfLook(
  network: CryptoNetwork,
  { treasury }: NetworkAdapter,
  look: Look | Error | undefined,
  custody: ReadonlyMap<string, bigint>,
): Omit<OperatorFigures, 'asked' | 'in_flight' | 'waiting' | 'frozen' | 'uncredited' | 'refills'> {
  const text = (minor: bigint, asset: string) => formatAmount(minor, decimalsOf(asset))
  if (look === undefined || look instanceof Error)
    return {
      ...(look !== undefined && { reachable: false, error: look.message }),
      asks: [],
      custody: [...custody].map(([asset, minor]) => ({ asset, in_custody: text(minor, asset) })),
    }
  const { status, asks } = look
  const { held, hotWallet = held, height, lanes, signer } = status
  const minorOf = (amounts: Record<string, string>, asset: string) =>
    parseAmount(amounts[asset] ?? '0', decimalsOf(asset))!
  const { gasAsset: asset } = NETWORKS[network]
  const low = treasury?.marks[asset]?.low
  return {
    reachable: true,
    height,
    hot_wallet: {
      asset,
      amount: text(minorOf(hotWallet, asset), asset),
      ...(low !== undefined && { low_mark: low }),
      below_low_mark: asks.some((ask) => ask.kind === 'REFILL' && ask.asset === asset),
    },
    asks,
    ...(lanes && {
      lanes: lanes.map(({ held: ofLane = {}, ...lane }) => ({ ...lane, holds: amountsOf(ofLane) })),
    }),
    ...(signer && { signer }),
    custody: [...new Set([...Object.keys(held), ...custody.keys()])].sort().map((asset) => {
      const [has, owed] = [minorOf(held, asset), custody.get(asset) ?? 0n]
      const difference = text(has - owed, asset)
      return { asset, in_custody: text(owed, asset), held: text(has, asset), difference }
    }),
  }
}

interface Unended {
  network: string
  code: string | null
  detail: string | null
  count: string
  since: string | null
  asked: string
  asked_since: string | null
}

/** Withdrawals that have not ended, by network and reason for waiting. Only they have a due_at, so the index is short. */
async function unendedWithdrawals(db: Queryable): Promise<Unended[]> {
  const { rows } = await db.query<Unended>(`
    select network, waiting_code as code, waiting_detail as detail, count(*), min(waiting_since) as since,
           count(*) filter (where ${ASKS_SIGNER}) as asked,
           min(coalesce(signed_at, created_at)) filter (where ${ASKS_SIGNER}) as asked_since
    from outgoing_transfers
    where due_at is not null
    group by network, waiting_code, waiting_detail
    order by min(waiting_since)`)
  return rows
}
