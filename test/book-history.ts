import { originOfLoop } from '../src/contract/actor.ts'
import { formatAmount } from '../src/contract/assets/amount.ts'
import { ASSETS, CRYPTO_NETWORKS, decimalsOf, NETWORKS } from '../src/contract/assets/catalogue.ts'
import { transaction, type Database } from '../src/db/database.ts'
import { idsAt, momentAt, PLATFORM_ID } from '../src/db/ids.ts'
import { onProfileAs } from '../src/money/ledger/conversion.ts'
import {
  coldEntries,
  networkFeeEntries,
  onPlatform,
  onProfile,
  type Entry,
  type PlatformAccount,
} from '../src/money/ledger/entries.ts'
import { LedgerTransaction } from '../src/money/ledger/ledger-transaction.ts'
import { TransferType, type Transfer } from '../src/money/ledger/transfer.ts'

const origin = originOfLoop('test')
const TYPES = TransferType.enum
const BATCH_MAX = 200
const FIRST_DAY = Date.UTC(2024, 0, 1)

/** Ref_ids that try to add lines, directives, tags and strings to a file. */
export const HOSTILE = [
  'x\n2024-01-01 open Assets:Injected',
  'x"\n2024-01-01 * "y"\n  Assets:Bank  1 USD\n  Equity:Opening',
  'x\\',
  'a, date:1999-01-01',
  '; include /etc/passwd',
  '\r\naccount assets:injected',
  '\u2028!include /etc/passwd',
  'price: }} {USD} @@ 3 EUR',
  '=cmd|calc, "quoted" <xml>&amp;]]>',
  'ordinary-1',
]

interface Holder {
  customer_id: string
  profile_ids: readonly string[]
}

/** A withdrawal that has not ended. */
interface Open {
  holder: Holder
  id: string
  account: PlatformAccount
  entries: Entry[]
}

/**
 * Posts a random history of `count` transfers of all types, with their ends, sweeps and what the platform moves to cold storage,
 * through the ledger in batches over two years, the latest of which is past. `random` gives numbers from 0 to below 1.
 */
export async function makeBooks(
  db: Database,
  holders: readonly Holder[],
  count: number,
  random: () => number,
): Promise<void> {
  const below = (max: number) => Math.floor(random() * max)
  const pick = <T>(from: readonly T[]): T => from[below(from.length)]!
  const opened: Open[] = []
  const owed: { from: string; asset: string; minor: bigint }[] = []
  let made = 0

  const minorOf = (asset: string) =>
    BigInt(1 + below(10 ** (1 + below(8)))) * 10n ** BigInt(below(decimalsOf(asset) + 1))
  const refId = () => {
    const text = `${pick(HOSTILE)} ${made}`
    return random() < 0.3 ? undefined : text
  }

  /** One transfer, or both sides of one: what the ledger takes, unless a balance is too small. */
  function transfersOf(holder: Holder, ledger: LedgerTransaction, newId: () => string) {
    const type = pick(TYPES)
    const profile_id = pick(holder.profile_ids)
    const asset = pick(ASSETS).symbol
    const network = pick(CRYPTO_NETWORKS)
    const minor = minorOf(asset)
    const fee = random() < 0.5 ? 0n : minorOf(asset) / 1000n
    const record = (kind: Transfer['type'], owner: string, given: Partial<Transfer> & { minor: bigint }) => {
      const { minor: amount, ...more } = given
      const isDebit = /DEBIT|WITHDRAWAL/.test(kind)
      const text = formatAmount(amount, decimalsOf(more.asset ?? asset))
      return {
        ...{
          id: newId(),
          customer_id: holder.customer_id,
          profile_id: owner,
          type: kind,
          asset,
          balance_asset: asset,
        },
        ...{ direction: isDebit ? ('DEBIT' as const) : ('CREDIT' as const), status: 'COMPLETED' as const },
        ...{
          amount: text,
          fee: '0',
          total: text,
          ref_id: refId(),
          memo: random() < 0.2 ? pick(HOSTILE) : undefined,
        },
        ...{ created_at: ledger.now.text, updated_at: ledger.now.text },
        ...more,
      }
    }
    const isFor = (entries: Entry[]) => ledger.shortOf(entries) === undefined
    const only = (transfer: ReturnType<typeof record>, entries: Entry[]) =>
      isFor(entries) ? [{ transfer, entries }] : []

    if (type === 'INTERNAL_TRANSFER_DEBIT' || type === 'INTERNAL_TRANSFER_CREDIT') {
      const to = pick(holder.profile_ids)
      const group_id = newId()
      const debit = [onProfile(profile_id, asset, -minor), onPlatform('internal', asset, minor)]
      if (!isFor(debit)) return []
      const credit = [onPlatform('internal', asset, -minor), onProfile(to, asset, minor)]
      const sides = [
        { transfer: record('INTERNAL_TRANSFER_DEBIT', profile_id, { minor, group_id }), entries: debit },
        {
          transfer: record('INTERNAL_TRANSFER_CREDIT', to, { minor, group_id, ref_id: undefined! }),
          entries: credit,
        },
      ]
      return sides
    }
    if (type === 'PAXOS_TRANSFER_DEBIT') {
      const entries = [onProfile(profile_id, asset, -minor), onPlatform('between_customers', asset, minor)]
      if (isFor(entries)) owed.push({ from: holder.customer_id, asset, minor })
      return only(record(type, profile_id, { minor }), entries)
    }
    if (type === 'PAXOS_TRANSFER_CREDIT') {
      const index = owed.findIndex(({ from }) => from !== holder.customer_id)
      const [due] = index < 0 ? [] : owed.splice(index, 1)
      const from = due === undefined ? 'rewards' : 'between_customers'
      const came = due ?? { asset, minor }
      const entries = [
        onPlatform(from, came.asset, -came.minor),
        onProfile(profile_id, came.asset, came.minor),
      ]
      return only(
        record(type, profile_id, { minor: came.minor, asset: came.asset, balance_asset: came.asset }),
        entries,
      )
    }
    const isCrypto = type.startsWith('CRYPTO')
    if (type.endsWith('DEPOSIT')) {
      const account = isCrypto ? (`${pick(['custody', 'simulated'] as const)}:${network}` as const) : 'bank'
      return only(record(type, profile_id, { minor }), [
        onPlatform(account, asset, -minor),
        onProfile(profile_id, asset, minor),
      ])
    }
    const isConverted = asset === 'USDP' && random() < 0.5
    const cents = 10n ** 16n
    const [amount, charged] = isConverted
      ? [(minor / cents + 1n) * cents, (fee / cents) * cents]
      : [minor, fee]
    const account = isCrypto ? (`in_flight:${network}` as const) : 'in_flight:WIRE'
    const balance_asset = isConverted ? 'USD' : asset
    const entries = [
      ...onProfileAs(profile_id, balance_asset, -(amount + charged), asset),
      onPlatform(account, asset, amount),
      onPlatform('fees', asset, charged),
    ]
    const decimals = decimalsOf(asset)
    const given = { minor: amount, balance_asset, status: 'PENDING' as const }
    const totals = { fee: formatAmount(charged, decimals), total: formatAmount(amount + charged, decimals) }
    const transfer = record(type, profile_id, { ...given, ...totals })
    if (isFor(entries)) opened.push({ holder, id: transfer.id, account, entries })
    return only(transfer, entries)
  }

  /** Ends a withdrawal: the money leaves, or comes back. */
  function endOf({ account, entries }: Open): { event: 'SETTLED' | 'REFUNDED'; entries: Entry[] } {
    const network = pick(CRYPTO_NETWORKS)
    const cost = networkFeeEntries(
      network,
      NETWORKS[network].gasAsset,
      minorOf(NETWORKS[network].gasAsset) / 100n,
    )
    const costs = account === 'in_flight:WIRE' ? [] : cost
    if (random() < 0.2)
      return {
        event: 'REFUNDED',
        entries: [...entries.map((entry) => ({ ...entry, amount: -entry.amount })), ...costs],
      }
    const { asset, amount } = entries.find((entry) => entry.account === account)!
    const left = account === 'in_flight:WIRE' ? 'bank' : (`custody:${network}` as const)
    return {
      event: 'SETTLED',
      entries: [onPlatform(account, asset, -amount), onPlatform(left, asset, amount), ...costs],
    }
  }

  for (let batches = 0; made < count;) {
    const at = momentAt(
      new Date(FIRST_DAY + Math.floor((made / count) * 730 * 86_400_000)).toISOString().replace('Z', '000Z'),
    )
    // In turn: few batches, drawn, would leave somebody out in some runs.
    const holder = holders[batches++ % holders.length]!
    const keys = holder.profile_ids.flatMap((profile_id) =>
      ASSETS.map(({ symbol }) => ({ profile_id, asset: symbol })),
    )
    await transaction(db, async (tx) => {
      const ledger = await LedgerTransaction.open(tx, holder.customer_id, keys, { at })
      const newId = idsAt(ledger.now)
      const own = opened.filter((open) => open.holder === holder && random() < 0.8)
      for (const open of own) {
        ledger.post({ transfer_id: open.id, ...endOf(open), origin })
        opened.splice(opened.indexOf(open), 1)
      }
      const transfers = []
      const until = Math.min(count, made + 1 + below(BATCH_MAX))
      for (let tries = 0; made < until && tries < 10 * BATCH_MAX; tries++)
        for (const { transfer, entries } of transfersOf(holder, ledger, newId)) {
          ledger.post({ transfer_id: transfer.id, event: 'CREATED', entries, origin })
          transfers.push({ transfer })
          made++
        }
      const network = pick(CRYPTO_NETWORKS)
      const { gasAsset } = NETWORKS[network]
      ledger.post({
        transfer_id: newId(),
        event: 'SWEPT',
        entries: networkFeeEntries(network, gasAsset, minorOf(gasAsset)),
        origin,
      })
      await ledger.write(transfers)
      const platform = await LedgerTransaction.open(tx, PLATFORM_ID, [], { at: ledger.now })
      const entries = coldEntries(network, gasAsset, (random() < 0.5 ? 1n : -1n) * minorOf(gasAsset))
      platform.post({ transfer_id: newId(), event: 'SETTLED', entries, origin })
      await platform.write()
    })
  }
}

/** Numbers from 0 to below 1 that a seed decides (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
