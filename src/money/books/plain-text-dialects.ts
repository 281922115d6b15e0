import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { BookEntry } from './read-entries.ts'

/** The programs that read books as plain text. */
export type Program = 'hledger' | 'beancount'

/** A line of a transaction: an account of the chart, and an amount in minor units of the asset. */
export interface Posted {
  name: string
  asset: string
  minor: bigint
}

interface Dialect {
  begin: string[]
  asset: (asset: string) => string[]
  account: (name: string, day: string) => string[]
  /** The lines of a transaction before its postings. */
  head: (day: string, label: string, first?: BookEntry) => string[]
  /** Has the program compare its own balances at the end of a day. */
  end: (day: string, balances: { name: string; amount: string }[]) => string[]
}

/**
 * Text of a client as part of a line. What ends a line, a string or a tag of either program is percent-encoded, as in
 * addresses of the web: a ref_id must not add a line, or a tag such as hledger's `date:`.
 */
const plain = (text: string) => text.replaceAll(/[%"\\,;\p{C}\p{Zl}\p{Zp}]/gu, hexOf)
const hexOf = (character: string) =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

const factsOf = ({ created_at, customer_id, ref_id }: BookEntry): [name: string, value: string][] => [
  ['time', created_at],
  ...(customer_id === PLATFORM_ID ? [] : ([['customer_id', customer_id]] as [string, string][])),
  ...(ref_id === undefined ? [] : ([['ref_id', plain(ref_id)]] as [string, string][])),
]

export const DIALECTS: Record<Program, Dialect> = {
  hledger: {
    begin: ['decimal-mark .'],
    // It balances transactions to this precision.
    asset: (asset) => [`commodity 1000.${'0'.repeat(decimalsOf(asset))} ${asset}`],
    account: (name) => [`account ${name}`],
    head: (day, label, first) => [
      `${day}${first === undefined ? '' : ` (${first.transfer_id})`} ${label}`,
      ...(first === undefined ? [] : factsOf(first).map(([name, value]) => `  ; ${name}:${value}`)),
    ],
    end: (day, balances) => [
      `${day} Closing balances`,
      ...balances.map(({ name, amount }) => `  ${name}  0 ${amount.split(' ')[1]} = ${amount}`),
    ],
  },
  beancount: {
    begin: [],
    asset: () => [],
    account: (name, day) => [`${day} open ${name}`],
    head: (day, label, first) => [
      `${day} * "${label}"${first === undefined ? '' : ` ^${first.transfer_id}`}`,
      ...(first === undefined ? [] : factsOf(first).map(([name, value]) => `  ${name}: "${value}"`)),
    ],
    // A balance is that at the beginning of a day. Without `~ 0`, a difference of one unit is none.
    end: (day, balances) =>
      balances.map(({ name, amount }) => `${dayAfter(day)} balance ${name}  ${amount.replace(' ', ' ~ 0 ')}`),
  },
}

const dayAfter = (day: string) => new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)
