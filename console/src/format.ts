import { formatAmount } from '../../src/contract/assets/amount.ts'

/** How values are written. Amounts are strings and stay strings: no digit is lost or rounded. */

/** Groups the digits before the point by three: `1234567.5` is `1 234 567.5`, with narrow spaces that do not break. */
export function groupDigits(amount: string): string {
  const [, sign = '', whole = '', rest = ''] = /^([+-]?)(\d+)(\..*)?$/.exec(amount) ?? ['', '', amount, '']
  return sign.replace('-', '−') + whole.replaceAll(/\B(?=(\d{3})+$)/g, '\u202f') + rest
}

/** The sum of amounts, to the last digit. */
export function sumOf(amounts: readonly string[]): string {
  const places = Math.max(0, ...amounts.map((amount) => amount.split('.')[1]?.length ?? 0))
  const units = amounts.map((amount) => {
    const [whole = '', rest = ''] = amount.split('.')
    return BigInt(whole + rest.padEnd(places, '0'))
  })
  return formatAmount(
    units.reduce((sum, amount) => sum + amount, 0n),
    places,
  )
}

/** The amount with a sign, also where it is positive. */
export const signed = (amount: string): string => (amount.startsWith('-') ? '' : '+') + groupDigits(amount)

/** Names whose display text is not made from their words. */
const WRITTEN: Record<string, string> = {
  API_CLIENT: 'API client',
  api_client: 'API client',
  address1: 'Address, line 1',
  address2: 'Address, line 2',
  ARBITRUM_ONE: 'Arbitrum One',
  BITCOIN_CASH: 'Bitcoin Cash',
  PAXOS_TRANSFER_CREDIT: 'Reward (internal transfer)',
  PAXOS_TRANSFER_DEBIT: 'Reward taken back',
  POLYGON_POS: 'Polygon PoS',
  XLAYER: 'X Layer',
}

/** A share as percent, from its digits: `0.041` is `4.1 %`. */
export function percentOf(share: string): string {
  const [whole = '', rest = ''] = share.split('.')
  const digits = rest.padEnd(2, '0')
  const shown = `${whole}${digits.slice(0, 2)}`.replace(/^0+(?=\d)/, '')
  return `${shown}${digits.length > 2 ? `.${digits.slice(2)}` : ''} %`
}

/** The change of a price in percent, with a sign unless it is zero; a dash where one is zero, which is no price. */
export function changeOf(price: string, before: string): string {
  if (Number(price) * Number(before) === 0) return '–'
  const percent = (Number(price) / Number(before) - 1) * 100
  const shown = Math.abs(percent).toFixed(2)
  const sign = Number(shown) === 0 ? '' : percent < 0 ? '−' : '+'
  return `${sign}${shown} %`
}

/** `CRYPTO_WITHDRAWAL` is `Crypto withdrawal`. */
export function inWords(name: string): string {
  if (WRITTEN[name] !== undefined) return WRITTEN[name]
  const words = name.replaceAll('_', ' ').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const DAY = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
})

/** The UTC day of a timestamp of the API, and its time to the second or millisecond, which is cut out of the text. */
export const dayOf = (timestamp: string): string => DAY.format(new Date(timestamp))
export const timeOf = (timestamp: string, precise: boolean): string => timestamp.slice(11, precise ? 23 : 19)

/** A moment as text. */
export const moment = (timestamp: string): string => `${dayOf(timestamp)}, ${timeOf(timestamp, false)} UTC`

const LOCAL = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })

/** The time where the reader is, with its zone. */
export const localTimeOf = (timestamp: string): string => LOCAL.format(new Date(timestamp))

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** How long ago a moment was, or how far away it is, as people say it: `3 hours ago`. `now` in milliseconds. */
export function ago(timestamp: string, now: number): string {
  const seconds = Math.round((Date.parse(timestamp) - now) / 1000)
  const [unit, length] = UNITS.find(([, shortest]) => Math.abs(seconds) >= shortest) ?? UNITS[3]
  return RELATIVE.format(Math.trunc(seconds / length), unit)
}

/** A length of time in its largest unit, as people say it: `3 minutes`. */
export function lengthOf(seconds: number): string {
  const [unit, length] = UNITS.find(([, shortest]) => Math.round(seconds) >= shortest) ?? UNITS[3]
  const style = { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 } as const
  return new Intl.NumberFormat('en', style).format(Math.trunc(seconds / length) || 1)
}

/** A period: its first day, and the day after its last one. */
interface Days {
  from: string
  before: string
}
export const PERIODS = ['Today', 'This month', 'Last month'] as const

/** The days of a period, in UTC. `now` in milliseconds. */
export function daysOf(period: (typeof PERIODS)[number], now: number): Days {
  const date = new Date(now)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  const text = (...date: [year: number, month: number, day: number]) =>
    new Date(Date.UTC(...date)).toISOString().slice(0, 10)
  if (period === 'Today') return { from: text(year, month, day), before: text(year, month, day + 1) }
  const first = period === 'This month' ? month : month - 1
  return { from: text(year, first, 1), before: text(year, first + 1, 1) }
}

/** When a record was made, from its id (a UUIDv7), to the millisecond. */
export const timeOfId = (id: string): string =>
  new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()

/** How long after another moment something happened, such as `+2.1 s`. */
export function after(from: string, to: string): string {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000
  if (seconds < 1) return `+${Math.round(seconds * 1000)} ms`
  if (seconds < 120) return `+${seconds.toFixed(1)} s`
  if (seconds < 7_200) return `+${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `+${Math.round(seconds / 3600)} h`
  return `+${Math.round(seconds / 86_400)} days`
}

/** A long id or hash, shortened in its middle. */
export const short = (text: string): string =>
  text.length <= 18 ? text : `${text.slice(0, 8)}…${text.slice(-6)}`

/** A text of the service for people: ids in it are shortened, as in the profile of an account, and times written out. */
export const readable = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, short)
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => (Number.isNaN(Date.parse(time)) ? time : moment(time)))
