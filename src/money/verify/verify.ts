import { NETWORKS } from '../../contract/assets/catalogue.ts'
import type { SignedPayment } from '../../networks/signed-payment.ts'
import { disagreementOf, type TokenAddresses } from '../../networks/signed-payments.ts'
import { inOrder, planWith, transaction, type Database, type Transaction } from '../../db/database.ts'
import { ownRowMacs, type RowMacs } from '../../audit/sealed-rows.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { changedDays, CLOSED_DAY_RULES } from './closed-days.ts'
import { EVENT_RULES } from './event-rules.ts'
import { POLICY_RULES } from './policy-rules.ts'
import { rowDisagreements } from './row-rules.ts'
import { PAYOUT_NETWORK, PAYOUT_TYPES, WITHDRAWAL_TYPES } from '../../contract/payout-sql.ts'
import { notAccepted } from '../movements/accepted-withdrawals.ts'
import { forgedBalances } from '../ledger/sealed-balances.ts'

/** A broken rule: its name, and the record that breaks it. */
interface Disagreement {
  customer_id: string
  rule: string
  detail: string
}

export interface Verification {
  customers: number
  entries: number
  balances: number
  transfers: number
  disagreements: Disagreement[]
}

/** Most disagreements reported per rule and customer: enough to see a pattern. */
const SHOWN_MAX = 100

/** The gas asset of each network, as rows of SQL. */
const GAS_ASSETS = Object.entries(NETWORKS)
  .map(([network, { gasAsset }]) => `('${network}', '${gasAsset}')`)
  .join(', ')

/** The rules of every customer's ledger. Each query returns the rows that break its rule. */
const RULES: Record<string, string> = {
  'every ledger transaction sums to zero per asset': `
    select format('transfer %s, %s: %s sums to %s', transfer_id, event, asset, sum(amount)) as detail
    from entries where customer_id = $1
    group by transfer_id, event, asset having sum(amount) <> 0`,
  'every balance equals the sum of its entries': `
    select format('profile %s: %s is %s, its entries say %s', coalesce(b.profile_id, e.profile_id),
                  coalesce(b.asset, e.asset), b.available, e.sum) as detail
    from (select profile_id, asset, available, version from balances where customer_id = $1) b
    full join (
      select profile_id, asset, sum(amount), count(*), max(version) as version
      from entries where customer_id = $1 and profile_id is not null
      group by profile_id, asset
    ) e on b.profile_id = e.profile_id and b.asset = e.asset
    where (b.available, b.version, b.version) is distinct from (e.sum, e.count, e.version)`,
  'every balance_after equals the balance before it plus the amount': `
    select format('profile %s, %s, version %s: %s, expected %s', profile_id, asset, version, balance_after, expected)
      as detail
    from (
      select profile_id, asset, version, balance_after, created_at,
             coalesce(lag(balance_after) over history, 0) + amount as expected,
             coalesce(lag(version) over history, 0) + 1 as expected_version,
             lag(created_at) over history as earlier
      from entries where customer_id = $1 and profile_id is not null
      window history as (partition by profile_id, asset order by version)
    ) e
    where balance_after <> expected or version <> expected_version or created_at < earlier or balance_after < 0`,
  'every transfer has the postings of its status': `
    select format('transfer %s (%s, %s): %s', t.id, t.type, t.status, coalesce(e.events, 'no entries')) as detail
    from transfers t
    left join (
      select transfer_id, string_agg(distinct event, ', ' order by event) as events
      from entries where customer_id = $1 group by transfer_id
    ) e on e.transfer_id = t.id
    where t.customer_id = $1
      and e.events is distinct from case
        when t.customer_id = '${PLATFORM_ID}' then case
          when t.status = 'COMPLETED' then 'SETTLED'
          -- A transaction that failed on the chain still cost its fee.
          when t.status = 'FAILED' and e.events = 'REFUNDED' then 'REFUNDED'
        end
        -- A deposit is credited when it is deep enough. One that was seen before has no entries until then.
        when t.type in ('CRYPTO_DEPOSIT', 'WIRE_DEPOSIT') and t.status <> 'COMPLETED' then null
        when t.status = 'FAILED' then 'CREATED, REFUNDED'
        when t.status = 'COMPLETED' and t.type in ${WITHDRAWAL_TYPES} then 'CREATED, SETTLED'
        else 'CREATED'
      end`,
  'every deposit that was seen has the state of its transfer': `
    select format('transfer %s is %s, its deposit was seen and is %s', s.transfer_id, coalesce(t.status, 'missing'), s.state)
      as detail
    from seen_deposits s
    left join transfers t on t.customer_id = $1 and t.id = s.transfer_id and t.type in ('CRYPTO_DEPOSIT', 'WIRE_DEPOSIT')
    where s.customer_id = $1 and t.status is distinct from s.state`,
  'every credited deposit has its completed transfer': `
    select format('%s %s, output %s: %s %s are %s, transfer %s is %s', i.network, i.crypto_tx_hash, i.crypto_tx_index,
                  trim_scale(i.amount), i.asset, i.state, i.transfer_id, coalesce(t.status, 'missing')) as detail
    from incoming_transfers i
    left join transfers t on t.customer_id = $1 and t.id = i.transfer_id
    where i.customer_id = $1 and i.state in ('CREDITED', 'REORGANISED')
      and (t.type, t.status, t.crypto_tx_hash) is distinct from ('CRYPTO_DEPOSIT', 'COMPLETED', i.crypto_tx_hash)`,
  'every send to cold storage posts its amount there, and a consolidation posts nothing': `
    select format('transfer %s (%s, %s): %s of %s to cold storage', t.id, t.type, t.status, coalesce(e.cold, 0), t.amount)
      as detail
    from transfers t
    left join (
      select transfer_id, asset, -sum(amount) as cold
      from entries where customer_id = $1 and account like 'cold:%' group by transfer_id, asset
    ) e on e.transfer_id = t.id and e.asset = t.asset
    where t.customer_id = $1 and t.customer_id = '${PLATFORM_ID}'
      and coalesce(e.cold, 0)
          <> case when t.type = 'TREASURY_SEND' and t.status = 'COMPLETED' then t.amount else 0 end`,
  'every entry belongs to a transfer, to a sweep or to an acknowledged transaction': `
    select format('%s %s is missing', case when e.swept then 'sweep' else 'transfer' end, e.transfer_id) as detail
    from (select distinct transfer_id, event = 'SWEPT' as swept from entries where customer_id = $1) e
    left join transfers t on t.customer_id = $1 and t.id = e.transfer_id and not e.swept
    left join sweeps s on s.customer_id = $1 and s.id = e.transfer_id and e.swept
    left join acknowledged_transactions a on $1 = '${PLATFORM_ID}' and a.id = e.transfer_id and not e.swept
    where t.id is null and s.id is null and a.id is null`,
  'every ended sweep has its network fee posted, and no other sweep does': `
    select format('sweep %s (%s) has cost %s, posted: %s', s.id, s.state, s.network_fee, e.posted) as detail
    from sweeps s
    join (values ${GAS_ASSETS}) as gas (network, asset) on gas.network = s.network
    left join (
      select transfer_id, string_agg(concat_ws(' ', account, asset, trim_scale(amount)), ', ' order by position) as posted
      from entries where customer_id = $1 and event = 'SWEPT' group by transfer_id
    ) e on e.transfer_id = s.id
    where s.customer_id = $1
      and e.posted is distinct from case when s.network_fee > 0 then
        format('network_fees:%s %s -%s, custody:%1$s %2$s %3$s', s.network, gas.asset, trim_scale(s.network_fee)) end`,
  'every transfer changes its balance by its total': `
    select format('transfer %s: total %s, entry %s', t.id, t.total, e.amount) as detail
    from transfers t
    join entries e on e.customer_id = $1 and e.transfer_id = t.id and e.event = 'CREATED' and e.profile_id is not null
    where t.customer_id = $1
      and (e.profile_id, e.asset, e.amount)
          is distinct from (t.profile_id, coalesce(t.balance_asset, t.asset),
                            case t.direction when 'DEBIT' then -t.total else t.total end)`,
  'every conversion is one to one': `
    select format('transfer %s, %s: sums to %s', transfer_id, event, sum(amount)) as detail
    from entries where customer_id = $1 and account = 'conversion'
    group by transfer_id, event having sum(amount) <> 0`,
  'every internal transfer has two legs that cancel out': `
    select format('group %s: the legs sum to %s %s, %s transfers', t.group_id, sum(e.amount), e.asset,
                  count(distinct t.id)) as detail
    from transfers t
    join entries e on e.customer_id = $1 and e.transfer_id = t.id and e.account = 'internal'
    where t.customer_id = $1
    group by t.group_id, e.asset having sum(e.amount) <> 0 or count(distinct t.id) <> 2`,
  'every recorded bank wire matches its transfer': `
    select format('transfer %s (%s, %s, %s %s): the bank recorded %s %s %s, %s', t.id, t.type, t.status, t.amount, t.asset,
                  w.kind, w.amount, w.asset, w.bank_reference) as detail
    from transfers t
    join bank_wires w on w.transfer_id = t.id
    where t.customer_id = $1
      and (t.type, t.status, t.asset, t.amount)
          is distinct from (case w.direction when 'OUT' then 'WIRE_WITHDRAWAL' else 'WIRE_DEPOSIT' end,
                            case w.kind when 'SENT_BACK' then 'FAILED' else 'COMPLETED' end,
                            w.asset, w.amount)`,
  'every completed wire of an operator has a bank reference': `
    select format('transfer %s', t.id) as detail
    from transfers t
    join outgoing_transfers b on b.customer_id = $1 and b.transfer_id = t.id
    where t.customer_id = $1 and t.type = 'WIRE_WITHDRAWAL' and t.status = 'COMPLETED'
      and substring(b.raw_transaction from 1 for 5) = convert_to('wire ', 'UTF8')
      and not exists (select 1 from bank_wires w where w.transfer_id = t.id and w.kind = 'SENT')`,
  'every orchestration has the outcome of its destination transfer': `
    select format('orchestration %s is %s, its transfer %s is %s', o.id, o.status, o.destination_transfer_id, t.status)
      as detail
    from orchestrations o
    left join transfers t on t.customer_id = $1 and t.id = o.destination_transfer_id
    where o.customer_id = $1 and o.destination_transfer_id is not null
      and (t.status is null or t.group_id is distinct from o.id
           or t.status <> case o.status when 'PROCESSING' then 'PENDING' else o.status end)`,
  'every orchestration is paid out once': `
    select format('orchestration %s: %s transfers debit it', o.id, count(*)) as detail
    from orchestrations o
    join transfers t on t.customer_id = $1 and t.group_id = o.id and t.direction = 'DEBIT'
    where o.customer_id = $1
    group by o.id, o.destination_transfer_id having count(*) > 1 or o.destination_transfer_id is null`,
  'every orchestration has the payout that was recorded': `
    select format('orchestration %s (%s) has transfer %s, recorded was %s', d.orchestration_id, o.status,
                  coalesce(o.destination_transfer_id::text, 'none'), coalesce(d.transfer_id::text, 'none')) as detail
    from decided_orchestrations d
    left join orchestrations o on o.customer_id = $1 and o.id = d.orchestration_id
    where d.customer_id = $1
      and (o.id is null or o.destination_transfer_id is distinct from d.transfer_id
           or d.transfer_id is null and o.status <> 'FAILED')`,
  'every statement is paid exactly once, with the amount owed, and taken back at most once': `
    select format('statement %s is %s, %s owed, credits of %s, %s taken back', s.id, s.status, s.total_amount_owed,
                  coalesce(sum(t.amount) filter (where t.direction = 'CREDIT'), 0),
                  coalesce(sum(t.amount) filter (where t.direction = 'DEBIT'), 0)) as detail
    from statements s
    left join transfers t on t.customer_id = $1 and t.group_id = s.id and t.status = 'COMPLETED'
    where s.customer_id = $1
    group by s.customer_id, s.id
    having coalesce(sum(t.amount) filter (where t.direction = 'CREDIT'), 0)
           <> case s.status when 'STATEMENT_STATUS_PAID' then s.total_amount_owed else 0 end
       or coalesce(sum(t.amount) filter (where t.direction = 'DEBIT'), 0)
          not in (0, coalesce(sum(t.amount) filter (where t.direction = 'CREDIT'), 0))`,
  'every orchestration has its source transfer': `
    select format('orchestration %s: transfer %s', o.id, o.source_transfer_id) as detail
    from orchestrations o
    left join transfers t on t.customer_id = $1 and t.id = o.source_transfer_id
    where o.customer_id = $1 and t.group_id is distinct from o.id`,
}

const EVERY_RULE = Object.entries({ ...RULES, ...CLOSED_DAY_RULES, ...EVENT_RULES, ...POLICY_RULES })

/**
 * With at most this many rows of each kind, a customer's rules are planned once for each session: planning takes four times as
 * long as checking does. The plan that is best for a few rows may take forever for a million.
 */
const FEW_ROWS = 1_000

/** The customers of all records, including records whose customer does not exist, and the platform. */
const CUSTOMERS = `
  select id, bool_or(there) as there
  from (
    select id, true as there from customers
    union select '${PLATFORM_ID}', true
    union select distinct customer_id, false from entries
    union select distinct customer_id, false from balances
    union select distinct customer_id, false from transfers
    union select distinct customer_id, false from events
  ) all_of
  group by id
  order by id`

export interface VerifyOptions {
  onCustomer?: () => void
  /** Checks the MACs of withdrawals; needs the master key. */
  macs?: RowMacs | undefined
  /** Checks the MACs of rows, and compares rows that authenticate with the audit log; needs the master key. */
  rowMacs?: RowMacs | undefined
  /** Token contracts that differ from the catalogue. */
  tokens?: TokenAddresses
}

/** Most withdrawals whose signed transactions one statement reads. */
const TRANSFERS_PAGE = 2_000

/** Withdrawals with their signed transactions: the current and the replaced ones. */
const SIGNED = `
  with page as (
    select t.id as transfer_id, ${PAYOUT_NETWORK} as network, t.asset, t.amount, t.memo,
           coalesce(t.destination_address, (
             select f.fiat_network_instructions -> 'wire' ->> 'account_number'
             from fiat_accounts f
             where f.customer_id = $1 and f.id = t.fiat_account_id
           ), '') as destination_address,
           (
             select jsonb_build_object('fiat_account_owner', f.fiat_account_owner,
                                       'fiat_network_instructions', f.fiat_network_instructions)
             from fiat_accounts f
             where f.customer_id = $1 and f.id = t.fiat_account_id
           ) as payee
    from transfers t
    where t.customer_id = $1 and t.id > $2 and t.type in ${PAYOUT_TYPES}
    order by t.id
    limit ${TRANSFERS_PAGE}
  )
  select $1::uuid as customer_id, page.*, s.raw_transaction, s.crypto_tx_hash
  from page
  left join lateral (
    select coalesce(b.raw_transaction, n.raw_transaction) as raw_transaction, b.crypto_tx_hash
    from outgoing_transfers b
    left join network_transactions n on n.network = b.network and n.crypto_tx_hash = b.crypto_tx_hash
    where b.customer_id = $1 and b.transfer_id = page.transfer_id
    union all
    select coalesce(r.raw_transaction, n.raw_transaction), r.crypto_tx_hash
    from replaced_transactions r
    left join network_transactions n on n.network = page.network and n.crypto_tx_hash = r.crypto_tx_hash
    where r.customer_id = $1 and r.transfer_id = page.transfer_id
  ) s on true
  order by page.transfer_id`

type SignedRow = Omit<SignedPayment, 'raw_transaction'> & {
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
}

/** Finds signed transactions that do not pay what their withdrawal asks for. */
async function wronglySigned(tx: Transaction, id: string, tokens: TokenAddresses): Promise<string[]> {
  const found: string[] = []
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const { rows } = await tx.query<SignedRow>({ name: 'verify signed', text: SIGNED, values: [id, after] })
    for (const { raw_transaction, crypto_tx_hash, ...row } of rows) {
      const disagreement =
        raw_transaction === null ? undefined : await disagreementOf({ ...row, raw_transaction }, tokens)
      if (disagreement !== undefined)
        found.push(`transfer ${row.transfer_id}, ${crypto_tx_hash}: ${disagreement}`)
    }
    if (rows.length < TRANSFERS_PAGE) return found
    after = rows.at(-1)!.transfer_id
  }
}

/**
 * Recomputes every balance and every zero-sum from the entries, and compares signed transactions with their
 * withdrawals. Each customer is checked in one snapshot.
 */
export async function verify(
  db: Database,
  { onCustomer = () => undefined, macs, rowMacs, tokens = new Map() }: VerifyOptions = {},
): Promise<Verification> {
  const found: Verification = { customers: 0, entries: 0, balances: 0, transfers: 0, disagreements: [] }
  const customers = await transaction(
    db,
    async (tx) => {
      await tx.query('set local enable_seqscan = on')
      return tx.query<{ id: string; there: boolean }>(CUSTOMERS)
    },
    'isolation level repeatable read read only',
  )
  for (const { id, there } of customers.rows) {
    if (!there)
      found.disagreements.push({
        customer_id: id,
        rule: 'every record belongs to a customer',
        detail: `customer ${id} does not exist`,
      })
    await transaction(
      db,
      (tx) => verifyCustomer(tx, id, found, { macs, rowMacs, tokens }),
      'isolation level repeatable read read only',
    )
    if (there && id !== PLATFORM_ID) onCustomer()
  }
  found.disagreements.push(...(await halfTransfers(db)), ...(await changedDays(db)))
  return found
}

/** Transfers between customers of which one side is missing or differs. Each side has one entry that the other cancels out. */
async function halfTransfers(db: Database): Promise<Disagreement[]> {
  const { rows } = await transaction(
    db,
    async (tx) => {
      await tx.query('set local enable_seqscan = on')
      return tx.query<{ customer_id: string; detail: string }>(`
    select min(e.customer_id::text) as customer_id,
           format('group %s: %s sides sum to %s %s', t.group_id, count(*), sum(e.amount), e.asset) as detail
    from entries e
    join transfers t on t.customer_id = e.customer_id and t.id = e.transfer_id
    where e.account = 'between_customers'
    group by t.group_id, e.asset having sum(e.amount) <> 0 or count(*) <> 2
    limit ${SHOWN_MAX}`)
    },
    'isolation level repeatable read read only',
  )
  return rows.map((row) => ({ ...row, rule: 'every transfer between customers has both sides' }))
}

async function verifyCustomer(
  tx: Transaction,
  id: string,
  found: Verification,
  { macs, rowMacs, tokens }: Pick<VerifyOptions, 'macs' | 'rowMacs'> & { tokens: TokenAddresses },
): Promise<void> {
  if (id !== PLATFORM_ID) found.customers += 1
  await tx.query('set local enable_seqscan = on')
  const counts = await inOrder(
    (['entries', 'balances', 'transfers', 'events'] as const).map(async (table) => {
      const text = `select count(*) from ${table} where customer_id = $1`
      const { rows } = await tx.query<{ count: string }>({ name: `verify ${table}`, text, values: [id] })
      const count = Number(rows[0]!.count)
      if (table !== 'events') found[table] += count
      return count
    }),
  )
  await planWith(tx, Math.max(...counts) > FEW_ROWS ? 'custom' : 'generic')
  const broken = await inOrder(
    EVERY_RULE.map(async ([rule, text], index) => {
      const query = { name: `verify ${index}`, text: `${text} limit ${SHOWN_MAX}`, values: [id] }
      const { rows } = await tx.query<{ detail: string }>(query)
      return rows.map(({ detail }) => ({ customer_id: id, rule, detail }))
    }),
  )
  found.disagreements.push(...broken.flat())
  const report = (rule: string, details: readonly string[]) =>
    found.disagreements.push(
      ...details.slice(0, SHOWN_MAX).map((detail) => ({ customer_id: id, rule, detail })),
    )
  report('every signed transaction pays its withdrawal', await wronglySigned(tx, id, tokens))
  if (macs !== undefined) {
    const changed = await notAccepted(tx, id, macs)
    report(
      'every withdrawal matches its MAC',
      changed.map(({ id, objection }) => `transfer ${id}: ${objection}`),
    )
  }
  if (rowMacs === undefined) return
  report('every balance is as Bursar wrote it', await forgedBalances(tx, await ownRowMacs(), id))
  for (const { rule, detail } of (await rowDisagreements(tx, id, rowMacs)).slice(0, SHOWN_MAX))
    report(rule, [detail])
}
