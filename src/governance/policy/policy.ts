import { LRUCache } from 'lru-cache'
import { Type, type Static } from 'typebox'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { canonicalJson } from '../../contract/canonical-json.ts'
import { NamedObject, Timestamp } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { type Queryable, type Transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { Macs } from '../../keys/macs.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { newestUsdPrices } from '../../money/records/usd-prices.ts'
import { PolicyDocument } from './policy-document.ts'
import { insertPolicy } from '../../money/records/policies.ts'

/**
 * A customer's policy: the rules for its payments, and what needs approval (API behaviour, Policy). Each change makes a
 * new version. A version never changes, and its MAC covers all of it.
 */

export const Policy = NamedObject('Policy', {
  version: Type.Integer({
    minimum: 0,
    description: 'Number of the version: 1, 2, ...; 0 where there is none.',
  }),
  ...PolicyDocument.properties,
  created_at: Type.Optional(Timestamp('When it was made.')),
})

/** A version of a customer's policy, whose MAC was checked. */
export interface PolicyVersion {
  version: number
  document: PolicyDocument
  created_at: string
}

/** A version of a customer's policy, whether or not it can be trusted. */
export interface ExaminedVersion extends PolicyVersion {
  customer_id: string
  /** The master key that its MAC needs; empty for a MAC that names none. */
  master_key_id: string
  /** What is wrong with its MAC; undefined when it is what was accepted. */
  objection: string | undefined
}

/** Most bytes of policies that a process keeps, and an estimate for one rule as an object. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024
const RULE_BYTES = 2_048
/** Most customers of which a process knows the last version. */
const LAST_PLACES_MAX = 10_000

/** Older prices do not count for limits: without a price, a payment is beyond every limit in USD. */
const PRICE_AGE_MAX_MINUTES = 60
const PRICES_KEPT_MS = 10_000

/** Versions that one statement reads where any number may exist. Each can have a hundred rules. */
const VERSIONS_READ = 20

type PolicyRow = PolicyVersion & { mac: string }
type RowOfAll = PolicyRow & { customer_id: string }

/** Reads a version, the newest if none is given. */
async function selectVersion(
  db: Queryable,
  customerId: string,
  version?: number,
): Promise<PolicyRow | undefined> {
  const { rows } = await db.query<PolicyRow>({
    name: 'policy version',
    text: `
      select version, document, mac, created_at from policies
      where customer_id = $1 and ($2::integer is null or version = $2)
      order by version desc
      limit 1`,
    values: [customerId, version],
  })
  return rows[0]
}

/** Reads and writes the versions of policies, with MACs by a key derived from the master key. */
export class Policies {
  readonly #macs: Macs
  /** The MACs of the address book, by the same master keys. */
  readonly rows: RowMacs
  /** Checked versions by customer, version and MAC: they never change. */
  readonly #checked = new LRUCache<string, PolicyVersion>({
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ document }) => RULE_BYTES * (1 + document.rules.length),
  })

  /** The `POLICY_PLACE` of the version by which each customer's payments were last judged. */
  readonly #lastPlaces = new LRUCache<string, string>({ max: LAST_PLACES_MAX })

  readonly #sandbox: boolean
  #prices: { readAt: number; prices: UsdPrices } | undefined

  /** With `sandbox`, simulated prices and reference prices count, too. */
  constructor(masterKeys: MasterKeys, { sandbox = false }: { sandbox?: boolean } = {}) {
    this.#macs = new Macs(masterKeys, 'policies')
    this.rows = new RowMacs(masterKeys)
    this.#sandbox = sandbox
  }

  /** Returns prices for limits in USD: of the last hour, and read in the last ten seconds. */
  async prices(tx: Transaction): Promise<UsdPrices> {
    const now = performance.now()
    if (this.#prices === undefined || now - this.#prices.readAt >= PRICES_KEPT_MS) {
      const prices = await newestUsdPrices(tx, this.#sandbox, {
        ageMaxMinutes: PRICE_AGE_MAX_MINUTES,
      })
      this.#prices = { readAt: now, prices }
    }
    return this.#prices.prices
  }

  /** Reads the version in force; undefined where the customer has no policy. Throws as `get` does. */
  async newest(db: Queryable, customerId: string): Promise<PolicyVersion | undefined> {
    const row = await selectVersion(db, customerId)
    return row && this.#check(customerId, row)
  }

  /**
   * Returns the version that a batch of payments found to be the newest, mostly without a statement. `place` is its
   * version and MAC as `POLICY_PLACE` writes them. Throws unavailable for a version without a valid MAC: somebody may have
   * loosened the rules, so nothing is paid under them.
   */
  async get(db: Queryable, customerId: string, place: string): Promise<PolicyVersion> {
    let known = this.#checked.get(`${customerId} ${place}`)
    if (known === undefined) {
      const version = Number(place.slice(0, place.indexOf(' ')))
      known = this.#check(customerId, (await selectVersion(db, customerId, version))!)
    }
    this.#lastPlaces.set(customerId, place)
    return known
  }

  /**
   * Returns the version that `get` returned last for this customer, if it is still cached. It may be an old version: it
   * suggests which windows to lock early, and decides nothing.
   */
  last(customerId: string): PolicyVersion | undefined {
    const place = this.#lastPlaces.get(customerId)
    return place === undefined ? undefined : this.#checked.get(`${customerId} ${place}`)
  }

  /**
   * Adds a version. `replaces` is the version that its author read, if known: throws already-exists, with the newest
   * version, when the newest is another one. Of two versions added at the same time, the second violates `policies_pkey`.
   */
  async add(
    tx: Transaction,
    customerId: string,
    document: PolicyDocument,
    now: Moment,
    replaces?: number,
  ): Promise<PolicyVersion> {
    const version = (await selectVersion(tx, customerId))?.version ?? 0
    if (replaces !== undefined && replaces !== version)
      throw problem.alreadyExists('version', policyToWire((await this.newest(tx, customerId)) ?? NO_POLICY))
    const made = { version: version + 1, document, created_at: now.text }
    await insertPolicy(tx, customerId, { ...made, mac: this.#macs.make(textOf(customerId, made)) })
    return made
  }

  /** Reads versions, newest first, and whether each can be trusted. */
  async versions(
    db: Queryable,
    customerId: string,
    before: number | undefined,
    max: number,
  ): Promise<(PolicyVersion & { trusted: boolean })[]> {
    const { rows } = await db.query<PolicyRow>(
      `select version, document, mac, created_at from policies
       where customer_id = $1 and ($2::integer is null or version < $2)
       order by version desc
       limit $3`,
      [customerId, before, max],
    )
    return rows.map(({ mac, ...row }) => ({
      ...row,
      trusted: this.objectionTo(customerId, { mac, ...row }) === undefined,
    }))
  }

  /** Reads the newest version that can be trusted, skipping any that cannot; undefined where there is none. */
  async newestTrusted(db: Queryable, customerId: string): Promise<PolicyVersion | undefined> {
    let before: number | undefined
    for (;;) {
      const read = await this.versions(db, customerId, before, VERSIONS_READ)
      const found = read.find(({ trusted }) => trusted)
      if (found !== undefined || read.length < VERSIONS_READ) return found
      before = read.at(-1)!.version
    }
  }

  /** Reads a version, the newest if none is given, and examines its MAC; undefined where there is none. */
  async examine(db: Queryable, customerId: string, version?: number): Promise<ExaminedVersion | undefined> {
    const row = await selectVersion(db, customerId, version)
    return row && this.#examined(customerId, row)
  }

  async *newestOfAll(db: Queryable): AsyncGenerator<ExaminedVersion> {
    let after: string | null = null
    for (;;) {
      const { rows }: { rows: RowOfAll[] } = await db.query<RowOfAll>(
        `select distinct on (customer_id) customer_id, version, document, mac, created_at
         from policies
         where $1::uuid is null or customer_id > $1
         order by customer_id, version desc
         limit $2`,
        [after, VERSIONS_READ],
      )
      for (const { customer_id, ...row } of rows) yield this.#examined(customer_id, row)
      if (rows.length < VERSIONS_READ) return
      after = rows.at(-1)!.customer_id
    }
  }

  #examined(customer_id: string, { mac, ...row }: PolicyRow): ExaminedVersion {
    const master_key_id = /^[0-9a-f]{8}(?=\.)/.exec(mac)?.[0] ?? ''
    return { customer_id, ...row, master_key_id, objection: this.objectionTo(customer_id, { mac, ...row }) }
  }

  /** Checks a version's MAC. Returns what is wrong with it; undefined when it is what was accepted. */
  objectionTo(customerId: string, row: PolicyRow): string | undefined {
    return this.#macs.objectionTo(textOf(customerId, row), row.mac)
  }

  #check(customerId: string, { mac, ...row }: PolicyRow): PolicyVersion {
    const objection = this.objectionTo(customerId, { mac, ...row })
    if (objection !== undefined)
      throw problem.unavailable(
        `version ${row.version} of the policy cannot be trusted, and nothing is paid until its operator has looked at it: ${objection}`,
      )
    this.#checked.set(`${customerId} ${row.version} ${mac}`, row)
    return row
  }
}

/** The text that a version's MAC covers: all of the version, unambiguously. */
const textOf = (customerId: string, { version, document, created_at }: PolicyVersion): string =>
  JSON.stringify([customerId, version, created_at, canonicalJson(document)])

export const NO_POLICY = { version: 0, document: { rules: [] } }

export const policyToWire = ({
  version,
  document,
  created_at,
}: Omit<PolicyVersion, 'created_at'> & { created_at?: string }): Static<typeof Policy> => ({
  version,
  ...document,
  ...(created_at !== undefined && { created_at }),
})
