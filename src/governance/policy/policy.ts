import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Type, type Static } from 'typebox'
import { parseAmount } from '../../contract/assets/amount.ts'
import { CRYPTO_NETWORKS, findAsset } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, Lines, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { coordinatorOf, type Queryable, type Transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { Macs } from '../../keys/macs.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { VALUE_DECIMALS, type UsdPrices } from '../../contract/assets/usd-value.ts'
import { GOVERNED_TYPES } from '../../money/movements/decision.ts'
import { RowMacs } from '../../money/records/row-macs.ts'
import { newestUsdPrices } from '../../money/records/usd-prices.ts'

/**
 * A customer's policy: the rules for its payments, and what needs approval (API behaviour, Policy). Each change makes a
 * new version. A version never changes, and its MAC covers all of it.
 */

/** Whose payments a limit can count together. */
export const LIMIT_SUBJECTS = ['PROFILE', 'IDENTITY', 'CUSTOMER', 'DESTINATION'] as const

const APPROVALS_MAX = 10
/** The longest period of a limit: a leap year. */
const PERIOD_SECONDS_MAX = 31_622_400
/** Limits of the deadline of approvals: a minute, and 30 days. */
const DEADLINE_SECONDS = { minimum: 60, maximum: 2_592_000 }
/** The longest cooling time of a new address: 30 days. */
const COOLING_SECONDS_MAX = 2_592_000
const RULES_MAX = 100
const VALUES_MAX = 100

const Values = <T extends Parameters<typeof Type.Array>[0]>(item: T, description: string) =>
  Type.Optional(Type.Array(item, { minItems: 1, maxItems: VALUES_MAX, uniqueItems: true, description }))

const Approvals = Type.Integer({
  minimum: 1,
  maximum: APPROVALS_MAX,
  description: 'How many different approvers must say yes.',
})
const Role = Type.String({
  minLength: 1,
  maxLength: 32,
  pattern: '^[A-Z][A-Z0-9_]*$',
  inWords: 'must be capitals, digits and underscores',
  description: 'Role of the approvers who decide; APPROVER by default.',
})

const Match = Type.Object(
  {
    client_ids: Values(
      Text(100, 'Id.', 1),
      'Ids of the API clients or operators that make the payment. An orchestration counts as made by the client that made it or its rule.',
    ),
    profile_ids: Values(Uuid('Profile.'), 'Profiles that pay.'),
    identity_ids: Values(
      Uuid('Identity.'),
      "Identities that pay: the payment's own, and that of its account and of its profile's account.",
    ),
    transfer_types: Values(
      Type.Enum([...GOVERNED_TYPES], { type: 'string', description: 'Transfer type.' }),
      'Kinds of payment.',
    ),
    assets: Values(AssetSymbol, 'Assets that are paid.'),
    networks: Values(
      Type.Enum([...CRYPTO_NETWORKS, 'WIRE'], { type: 'string', description: 'Network.' }),
      'Networks that the payment goes over. Internal transfers go over none.',
    ),
    destination: Type.Optional(
      Type.Union(
        [
          Type.Enum(['ANY', 'ADDRESS_BOOK'], { type: 'string' }),
          Type.Array(Uuid('Id.'), { minItems: 1, maxItems: VALUES_MAX, uniqueItems: true }),
        ],
        {
          description:
            'ANY; ADDRESS_BOOK: an APPROVED address of the address book; or a list of ids of such addresses, of fiat accounts and of profiles.',
        },
      ),
    ),
  },
  {
    additionalProperties: false,
    description:
      'The payments that the rule fits. An absent member fits all; a rule without any fits every payment.',
  },
)

const Limit = Type.Object(
  {
    amount: Amount('The limit. The total of a payment counts, its fee included.'),
    asset: {
      ...AssetSymbol,
      description:
        'USD: the value in USD of payments of any asset. Another asset: payments of that asset only.',
      examples: ['USD'],
    },
    period_seconds: Type.Integer({
      minimum: 0,
      maximum: PERIOD_SECONDS_MAX,
      description: 'The limit holds for all payments of any period of this length; 0: for each one.',
    }),
    per: Type.Optional(
      Type.Enum([...LIMIT_SUBJECTS], {
        type: 'string',
        description:
          'Whose payments are counted together; CUSTOMER by default. PROFILE is no limit of a customer: who makes profiles and moves money between them has it several times.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type Limit = Static<typeof Limit>

const RuleBody = {
  description: Type.Optional(Lines(200, 'Why the rule exists.')),
  match: Type.Optional(Match),
  limit: Type.Optional(Limit),
  action: Type.Enum(['ALLOW', 'BLOCK', 'APPROVE'], {
    type: 'string',
    description:
      'With a limit, ALLOW decides while the payment stays within it, BLOCK and APPROVE when it goes beyond it.',
  }),
  approvals: Type.Optional(Approvals),
  role: Type.Optional(Role),
}
const RuleId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
  inWords: 'must be letters, digits, dots, underscores and hyphens',
  description: 'Id of the rule, which refusals name. Its counts go with it from version to version.',
})

/** A rule as clients send it. */
const NewRule = Type.Object({ id: Type.Optional(RuleId), ...RuleBody }, { additionalProperties: false })
const Rule = Type.Object({ id: RuleId, ...RuleBody })
export type Rule = Static<typeof Rule>

/** The changes that can need approval. */
export const CHANGE_SUBJECTS = [
  'POLICY',
  'APPROVERS',
  'WEBHOOKS',
  'CREDENTIALS',
  'OPERATORS',
  'ADDRESS_BOOK',
] as const
export type ChangeSubject = (typeof CHANGE_SUBJECTS)[number]

const Rest = {
  approvals: Type.Optional(
    Type.Object(
      {
        deadline_seconds: Type.Integer({
          ...DEADLINE_SECONDS,
          description: 'How long approvers have to decide; a day by default.',
        }),
      },
      { additionalProperties: false, description: 'Terms of approvals.' },
    ),
  ),
  address_book: Type.Optional(
    Type.Object(
      {
        cooling_seconds: Type.Integer({
          minimum: 0,
          maximum: COOLING_SECONDS_MAX,
          description: 'How long a new address waits before it can be paid by its id.',
        }),
      },
      { additionalProperties: false, description: 'Terms of the address book.' },
    ),
  ),
  changes: Type.Optional(
    Type.Object(
      {
        subjects: Type.Array(
          Type.Enum([...CHANGE_SUBJECTS], { type: 'string', description: 'What is changed.' }),
          { minItems: 1, maxItems: CHANGE_SUBJECTS.length, uniqueItems: true },
        ),
        approvals: Approvals,
        role: Type.Optional(Role),
      },
      { additionalProperties: false, description: 'Changes that need approval.' },
    ),
  ),
}

/** A policy as clients send it: the ids of its rules may be left out. */
export const NewPolicyDocument = Type.Object(
  {
    rules: Type.Array(NewRule, {
      maxItems: RULES_MAX,
      description:
        'The rules, in order: the first that decides wins. A payment that none decides is allowed.',
    }),
    ...Rest,
  },
  { additionalProperties: false },
)
export type NewPolicyDocument = Static<typeof NewPolicyDocument>
const PolicyDocument = Type.Object({ rules: Type.Array(Rule), ...Rest })
export type PolicyDocument = Static<typeof PolicyDocument>

/** A version of a customer's policy. */
export const Policy = Type.Object(
  {
    version: Type.Integer({
      minimum: 0,
      description: 'Number of the version: 1, 2, ...; 0 where there is none.',
    }),
    ...PolicyDocument.properties,
    created_at: Type.Optional(Timestamp('When it was made.')),
  },
  { $id: 'Policy' },
)

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

/** The role of approvers where the policy names none. */
export const DEFAULT_ROLE = 'APPROVER'
/** How long approvers have where the policy does not say: a day. */
export const DEFAULT_DEADLINE_SECONDS = 86_400
/** Decimals of values in USD in limits. */
const USD_DECIMALS = 2

/** Returns the decimals in which payments are counted for a limit. */
export const decimalsCounted = ({ asset }: Limit): number =>
  asset === 'USD' ? VALUE_DECIMALS : findAsset(asset)!.decimals

/**
 * Checks a document beyond its schema, and gives an id to each rule without one: a digest of the rule, so that the same
 * rule keeps its id. Throws bad-request, which names the member.
 */
export function completeDocument(document: NewPolicyDocument): PolicyDocument {
  const ids = new Set(document.rules.flatMap(({ id }) => id ?? []))
  const given = document.rules.length - document.rules.filter(({ id }) => id === undefined).length
  if (ids.size < given) throw problem.badRequest('rules: each rule must have an id of its own', 'rules')
  const rules = document.rules.map((rule, index): Rule => {
    requireSense(rule, `rules.${index}`)
    if (rule.id !== undefined) return rule as Rule
    const digest = hash('sha256', canonicalJson(rule), 'hex').slice(0, 12)
    let id = `rule-${digest}`
    for (let copy = 2; ids.has(id); copy++) id = `rule-${digest}-${copy}`
    ids.add(id)
    return { ...rule, id }
  })
  return { ...document, rules }
}

function requireSense(
  { match = {}, limit, action, approvals, role }: NewPolicyDocument['rules'][number],
  at: string,
): void {
  for (const asset of match.assets ?? []) requireAsset(asset, `${at}.match.assets`)
  if (action === 'APPROVE' && approvals === undefined)
    throw problem.badRequest(`${at}.approvals is required for the action APPROVE`, `${at}.approvals`)
  if (action !== 'APPROVE' && (approvals ?? role) !== undefined)
    throw problem.badRequest(
      `${at}.${approvals === undefined ? 'role' : 'approvals'} goes with the action APPROVE only`,
      `${at}.${approvals === undefined ? 'role' : 'approvals'}`,
    )
  if (limit === undefined) return
  requireAsset(limit.asset, `${at}.limit.asset`)
  if (parseAmount(limit.amount, decimalsOfLimit(limit)) === undefined)
    throw problem.badRequest(
      `${at}.limit.amount has more than ${decimalsOfLimit(limit)} decimals, the maximum for ${limit.asset}`,
      `${at}.limit.amount`,
    )
}

function requireAsset(symbol: string, at: string): void {
  if (findAsset(symbol) === undefined) throw problem.badRequest(`${at}: asset ${symbol} is unknown`, at)
}

/** Returns the decimals of a limit's amount: those of its asset, two for values in USD. */
const decimalsOfLimit = ({ asset }: Limit): number =>
  asset === 'USD' ? USD_DECIMALS : findAsset(asset)!.decimals

/** Most bytes of policies that a process keeps, and an estimate for one rule as an object. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024
const RULE_BYTES = 2_048
/** Most customers of which a process knows the last version. */
const LAST_PLACES_MAX = 10_000

/** Older prices do not count for limits: without a price, a payment is beyond every limit in USD. */
const PRICE_AGE_MAX_MINUTES = 60
const PRICES_KEPT_MS = 10_000

/** Versions that are read at a time, where any number may exist: each can have a hundred rules. */
const VERSIONS_READ = 20

interface PolicyRow {
  version: number
  document: PolicyDocument
  mac: string
  created_at: string
}

/** Reads and writes the versions of policies, with MACs by a key derived from the master key. */
export class Policies {
  readonly #macs: Macs
  /** With the same keys, of the address book. */
  readonly rows: RowMacs
  /** Checked versions by customer, version and MAC: they never change. */
  readonly #checked = new LRUCache<string, PolicyVersion>({
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ document }) => RULE_BYTES * (1 + document.rules.length),
  })

  /** The place of the version that each customer's payments were last judged by. */
  readonly #lastPlaces = new LRUCache<string, string>({ max: LAST_PLACES_MAX })

  readonly #sandbox: boolean
  #prices: { readAt: number; prices: UsdPrices } | undefined

  /** In a `sandbox`, simulated prices and reference prices count, too. */
  constructor(masterKeys: MasterKeys, { sandbox = false }: { sandbox?: boolean } = {}) {
    this.#macs = new Macs(masterKeys, 'policies')
    this.rows = new RowMacs(masterKeys)
    this.#sandbox = sandbox
  }

  /**
   * Returns prices for limits in USD: of the last hour, and read in the last ten seconds. On a cluster the coordinator has
   * them.
   */
  async prices(tx: Transaction): Promise<UsdPrices> {
    const now = performance.now()
    if (this.#prices === undefined || now - this.#prices.readAt >= PRICES_KEPT_MS) {
      const prices = await newestUsdPrices(coordinatorOf(tx) ?? tx, this.#sandbox, {
        ageMaxMinutes: PRICE_AGE_MAX_MINUTES,
      })
      this.#prices = { readAt: now, prices }
    }
    return this.#prices.prices
  }

  /** Reads the version that counts; undefined where the customer has no policy. Throws as `get` does. */
  async newest(db: Queryable, customerId: string): Promise<PolicyVersion | undefined> {
    const { rows } = await db.query<PolicyRow>({
      name: 'newest policy',
      text: `
      select version, document, mac, created_at from policies
      where customer_id = $1
      order by version desc
      limit 1`,
      values: [customerId],
    })
    return rows[0] && this.#check(customerId, rows[0])
  }

  /**
   * Returns the version that a batch of payments found to be the newest, mostly without a statement. `place` is its
   * version and MAC as `POLICY_PLACE` writes them. Throws unavailable for a version without a valid MAC: somebody may
   * have loosened it, so nothing is paid under it.
   */
  async get(db: Queryable, customerId: string, place: string): Promise<PolicyVersion> {
    const known = this.#checked.get(`${customerId} ${place}`) ?? (await this.#read(db, customerId, place))
    this.#lastPlaces.set(customerId, place)
    return known
  }

  /**
   * Returns the version that `get` returned last for this customer, if it is still kept. It may be an old one: it tells
   * which windows are worth locking early, and decides nothing.
   */
  last(customerId: string): PolicyVersion | undefined {
    const place = this.#lastPlaces.get(customerId)
    return place === undefined ? undefined : this.#checked.get(`${customerId} ${place}`)
  }

  async #read(db: Queryable, customerId: string, place: string): Promise<PolicyVersion> {
    const { rows } = await db.query<PolicyRow>(
      'select version, document, mac, created_at from policies where customer_id = $1 and version = $2',
      [customerId, place.slice(0, place.indexOf(' '))],
    )
    return this.#check(customerId, rows[0]!)
  }

  /**
   * Adds a version. `replaces` is the version that its author read, where it is known: throws already-exists, with the
   * newest version, when that is another one. Two that are added at the same time violate `policies_pkey`.
   */
  async add(
    tx: Transaction,
    customerId: string,
    document: PolicyDocument,
    now: Moment,
    replaces?: number,
  ): Promise<PolicyVersion> {
    const { rows } = await tx.query<{ version: number }>(
      'select version from policies where customer_id = $1 order by version desc limit 1',
      [customerId],
    )
    const version = rows[0]?.version ?? 0
    if (replaces !== undefined && replaces !== version)
      throw problem.alreadyExists('version', policyToWire((await this.newest(tx, customerId)) ?? NO_POLICY))
    const made = { version: version + 1, document, created_at: now.text }
    await tx.query(
      'insert into policies (customer_id, version, document, mac, created_at) values ($1, $2, $3, $4, $5)',
      [customerId, made.version, document, this.#macs.make(textOf(customerId, made)), made.created_at],
    )
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

  /** Reads the newest version that can be trusted, below any that cannot; undefined where there is none. */
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
    const { rows } = await db.query<PolicyRow>(
      `select version, document, mac, created_at from policies
       where customer_id = $1 and ($2::integer is null or version = $2)
       order by version desc
       limit 1`,
      [customerId, version],
    )
    return rows[0] && this.#examined(customerId, rows[0])
  }

  /** Reads the newest version of each customer, and examines its MAC. */
  async *newestOfAll(db: Queryable): AsyncGenerator<ExaminedVersion> {
    let after: string | null = null
    for (;;) {
      const { rows }: { rows: (PolicyRow & { customer_id: string })[] } = await db.query<
        PolicyRow & { customer_id: string }
      >(
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

/** In SQL: the version and MAC of a row of `policies`, as `Policies.get` takes them. */
export const POLICY_PLACE = "version || ' ' || mac"

/** Everything of a version, unambiguously. */
const textOf = (customerId: string, { version, document, created_at }: PolicyVersion): string =>
  JSON.stringify([customerId, version, created_at, canonicalJson(document)])

/** JSON with the members of each object in order: jsonb does not keep theirs. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member !== 'object' || member === null || Array.isArray(member)
      ? member
      : Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))),
  )
}

/** The policy of a customer that has none. */
export const NO_POLICY = { version: 0, document: { rules: [] } }

/** A version as the API shows it. */
export const policyToWire = ({
  version,
  document,
  created_at,
}: Omit<PolicyVersion, 'created_at'> & { created_at?: string }): Static<typeof Policy> => ({
  version,
  ...document,
  ...(created_at !== undefined && { created_at }),
})
