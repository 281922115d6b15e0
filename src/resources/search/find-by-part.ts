import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import { AMOUNT_LENGTH_MAX } from '../../contract/fields.ts'
import type { Queryable } from '../../db/database.ts'
import { UUID } from '../../db/ids.ts'
import { bankReference } from '../../money/records/bank-wires.ts'
import { FOUND_MAX, RECORDS, type FoundRow } from './find-by-whole-name.ts'

/** Finds records by a part of a name: the beginning of an id, hash, address or name, any part of a bank's reference; or by an amount. */

/** How many of the newest records of a type are searched where no index serves the search: by name and by amount. */
const SEARCHED_MAX = 10_000
/** The shortest part of a bank's reference. */
const REFERENCE_PART = 4
/** The shortest beginning of a name. Two signs of Chinese, Japanese or Korean are a name. */
const NAME_BEGINNING = /...|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]{2}/u

/**
 * `$2` and `$3`: the lowest and highest id; `$4`: a pattern of ids; `$5` and `$6`: the beginnings of hashes and addresses;
 * `$7`: a pattern of either, in lower case; `$8`: an expression of names; `$9` and `$10`: an amount, and its asset;
 * `$11`: all networks; `$12`: the types; `$13`: the limit; `$14`: how many records are searched; `$15`: a part of a bank's
 * reference. Null finds nothing.
 *
 * A beginning is a range of an index: `U+10FFFF` is the last character of Unicode. The newest of the last hash or address
 * in that range are read, so that a beginning of many names reads no more than the limit.
 */
const FIND = `
  select distinct found.type, found.id, found.found_by, found.status, found.created_at
  from (
    (select n.type, n.id, 'PREFIX' as found_by, n.status, n.created_at
     from (${RECORDS}) n
     where n.type = any ($12) and n.id >= $2 and n.id <= $3 and n.id::text like $4 order by n.id desc limit $13)
    -- A withdrawal that is under way has no hash of its own yet.
    union all select 'transfer', t.id, 'PREFIX', t.status, t.created_at
    from unnest($5::text[]) as hashes (beginning)
    cross join lateral (
      (select id from transfers
       where customer_id = $1 and crypto_tx_hash >= hashes.beginning
         and crypto_tx_hash < hashes.beginning || '\u{10ffff}' and lower(crypto_tx_hash collate "C") like $7
       order by crypto_tx_hash desc limit $13)
      union all (select transfer_id from outgoing_transfers
       where customer_id = $1 and network = any ($11) and crypto_tx_hash >= hashes.beginning
         and crypto_tx_hash < hashes.beginning || '\u{10ffff}' and lower(crypto_tx_hash collate "C") like $7
       limit $13)
      union all (select transfer_id from replaced_transactions
       where customer_id = $1 and crypto_tx_hash >= hashes.beginning
         and crypto_tx_hash < hashes.beginning || '\u{10ffff}' and lower(crypto_tx_hash collate "C") like $7
       limit $13)
    ) n
    join transfers t on t.customer_id = $1 and t.id = n.id
    union all select 'transfer', t.id, 'PREFIX', t.status, t.created_at
    from unnest($6::text[]) as addresses (beginning)
    cross join lateral (
      select transfer_id from withdrawal_names
      where customer_id = $1 and name >= addresses.beginning and name < addresses.beginning || '\u{10ffff}'
        and lower(name collate "C") like $7
      order by name desc, transfer_id desc
      limit $13
    ) n
    join transfers t on t.customer_id = $1 and t.id = n.transfer_id
    union all select 'deposit_address', n.id, 'PREFIX', null, n.created_at
    from unnest($6::text[]) as addresses (beginning)
    cross join lateral (
      select id, created_at from deposit_addresses
      where customer_id = $1 and address >= addresses.beginning and address < addresses.beginning || '\u{10ffff}'
        and lower(address collate "C") like $7
      limit $13
    ) n
    union all select 'destination_address', n.id, 'PREFIX', n.status, n.created_at
    from unnest($6::text[]) as addresses (beginning)
    cross join lateral (
      select id, status, created_at from crypto_destination_addresses
      where customer_id = $1 and crypto_network = any ($11) and canonical_address >= addresses.beginning
        and canonical_address < addresses.beginning || '\u{10ffff}' and lower(canonical_address collate "C") like $7
      limit $13
    ) n
    -- Names, of the newest records of each type.
    union all (select n.type, n.id, 'NAME', n.status, n.created_at
     from (
       (select 'profile' as type, id, null as status, created_at, nickname as name
        from profiles where customer_id = $1 and $8::text is not null order by id desc limit $14)
       union all select 'identity', i.id, i.status, i.created_at, names.name
       from (select * from identities where customer_id = $1 and $8::text is not null order by id desc limit $14) i
       cross join lateral (values (details ->> 'name'), (details ->> 'last_name'),
         (concat_ws(' ', details ->> 'first_name', details ->> 'last_name'))) names (name)
       union all (select 'api_client', id, null, created_at, case when disabled_at is null then name end
        from api_clients where customer_id = $1 and $8::text is not null order by id desc limit $14)
       union all (select 'webhook', id, status, created_at, name
        from webhooks where customer_id = $1 and $8::text is not null order by id desc limit $14)
     ) n
     where n.type = any ($12) and n.name ~ $8
     group by n.type, n.id, n.status, n.created_at
     order by n.created_at desc limit $13)
    -- The bank's references, of the newest wires.
    union all (select 'transfer', t.id, 'BANK_REFERENCE', t.status, t.created_at
     from (select id, status, created_at from transfers
           where customer_id = $1 and $15::text is not null and type in ('WIRE_DEPOSIT', 'WIRE_WITHDRAWAL')
           order by id desc limit $14) t
     join bank_wires w on w.transfer_id = t.id
     where strpos(w.bank_reference, $15) > 0
     order by t.id desc limit $13)
    -- Amounts, of the newest transfers.
    union all (select 'transfer', id, 'AMOUNT', status, created_at
     from (select * from transfers where customer_id = $1 and $9::numeric is not null order by id desc limit $14) t
     where (amount = $9 and ($10::text is null or asset = $10))
       or (total = $9 and ($10::text is null or coalesce(balance_asset, asset) = $10))
     order by id desc limit $13)
  ) found
  where found.type = any ($12)
  order by found.created_at desc, found.id desc
  limit $13`

/** Finds the customer's records of these types with this part of a name, or with this amount, newest first. */
export async function findByPart(
  db: Queryable,
  customerId: string,
  text: string,
  types: readonly string[],
): Promise<FoundRow[]> {
  // A whole id, of which there is no longer one, and no name.
  if (UUID.test(text)) return []
  const { prefix, suffix } = partsOf(text)
  const ids = idsFrom(prefix)
  const beginning = /^[0-9A-Za-z:]+$/.test(prefix) && prefix.replace(/^0x/i, '').length >= 6
  const isName = NAME_BEGINNING.test(text) && suffix === '' && !/^0x/i.test(text)
  const name = isName ? namesFrom(text) : undefined
  const amount = amountOf(text)
  const reference = text.length >= REFERENCE_PART ? bankReference(text) : undefined
  if ([ids, name, amount, reference].every((found) => found === undefined) && !beginning) return []
  // The statement has no name: a plan that was made while its tables were empty would stay.
  const { rows } = await db.query<FoundRow>(FIND, [
    customerId,
    ids?.lowest,
    ids?.highest,
    `%${suffix.toLowerCase()}`,
    beginning ? [...new Set([prefix, prefix.toLowerCase()])] : [],
    beginning ? beginningsOf(prefix) : [],
    `${literal(prefix.toLowerCase())}%${suffix.toLowerCase()}`,
    name,
    amount?.amount,
    amount?.asset,
    CRYPTO_NETWORKS,
    types,
    FOUND_MAX,
    SEARCHED_MAX,
    reference,
  ])
  return rows
}

/** The beginning and the end of a name. The console writes long names as `0x529084…169EE7`. */
function partsOf(text: string): { prefix: string; suffix: string } {
  const [, prefix, suffix] = /^(\w{6,})(?:…|\.{3})(\w{4,})$/.exec(text) ?? []
  return prefix === undefined ? { prefix: text, suffix: '' } : { prefix, suffix: suffix! }
}

/** The ids that begin like this: at least 8 hexadecimal digits, with or without hyphens. A whole id has 32. */
function idsFrom(prefix: string): { lowest: string; highest: string } | undefined {
  const digits = prefix.replaceAll('-', '')
  if (!/^[0-9a-f]{8,31}$/i.test(digits)) return undefined
  return { lowest: digits.padEnd(32, '0'), highest: digits.padEnd(32, 'f') }
}

/** Addresses of EVM networks have capitals as a checksum, which people leave out: each way to write their first six digits. */
function beginningsOf(prefix: string): string[] {
  const [, digits] = /^0x([0-9a-f]{6})[0-9a-f]*$/i.exec(prefix) ?? []
  if (digits === undefined) return [prefix]
  let beginnings = ['0x']
  for (const digit of digits)
    beginnings = beginnings.flatMap((beginning) =>
      [...new Set([digit.toLowerCase(), digit.toUpperCase()])].map((way) => beginning + way),
    )
  return beginnings
}

/** Text in capitals: ß and ẞ are SS, ς is Σ, and both ways to write É are one. İ is I. */
const capitals = (text: string) =>
  text.normalize('NFC').toLowerCase().toUpperCase().normalize('NFC').replaceAll('İ', 'I')

/** Characters by what they are in capitals. The first search by name fills it, in some 30 ms. */
const SPELLINGS = new Map<string, string[]>()

/**
 * A regular expression of the names that begin like this in any case. It lists the spellings of each character: what
 * PostgreSQL makes of case depends on the database's locale and encoding.
 */
function namesFrom(text: string): string {
  for (let code = SPELLINGS.size === 0 ? 0 : 0x1f000; code < 0x1f000; code++) {
    const sign = String.fromCodePoint(code)
    if (!/\p{Changes_When_Casemapped}/u.test(sign)) continue
    SPELLINGS.set(capitals(sign), [...(SPELLINGS.get(capitals(sign)) ?? []), sign])
  }
  const waysOf = (signs: string) =>
    (SPELLINGS.get(signs) ?? [signs])
      .flatMap((way) => [way, way.normalize('NFD')])
      .map((way) => way.replaceAll(/[!-/:-@[-`{-~]/g, String.raw`\$&`))
      .join('|')
  // SS may be one character, and FFI.
  const several = [...SPELLINGS.keys()].filter((key) => key.length > 1).sort((a, b) => b.length - a.length)
  const names = capitals(text).replaceAll(new RegExp(`${several.join('|')}|.`, 'gsu'), (part) => {
    const apart = Array.from(part, (sign) => `(?:${waysOf(sign)})`)
    return `(?:${waysOf(part)}|${apart.join('')})`
  })
  return `^${names}`
}

/** Text as a pattern of `like` that matches itself. */
const literal = (text: string) => text.replaceAll(/[\\%_]/g, String.raw`\$&`)

/** `26`, `26.5 USDP`, or an amount as the console writes it: with a sign, and its digits in groups. */
function amountOf(text: string): { amount: string; asset: string | undefined } | undefined {
  const [, amount, asset] =
    /^[+−-]?(\d{1,3}(?:[ \u202f,]\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:\s+([A-Za-z0-9]+))?$/.exec(text) ?? []
  const digits = amount?.replaceAll(/[ \u202f,]/g, '')
  if (digits === undefined || digits.length > AMOUNT_LENGTH_MAX) return undefined
  return { amount: digits, asset: asset?.toUpperCase() }
}
