/*
 * Invariants of every orchestration, wherever and however often the worker fails, and however many workers there are:
 * 1. a deposit starts at most one orchestration: of the active rule at its own place, else of the rule on its
 * profile, for its asset; none after the rule was deleted;
 * 2. it ends as its destination prescribes, COMPLETED or FAILED, unless the destination never confirms;
 * 3. it and its transfers name each other: source_transfer, destination_transfer and group_id;
 * 4. a FAILED orchestration has a reason and has debited nothing: the money is on the profile, in the source asset;
 * 5. any other has debited its amount once, less the part that its destination has no decimals for;
 * 6. no money appears or vanishes in conversions: `verify` finds nothing.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { FAILURES, Failures, dieAtEachStep, sendingBy, type Failure } from '../../../test/failures.ts'
import { partOf, runs } from '../../../test/seed.ts'
import {
  approve,
  BASE_URL,
  caller,
  everyTable,
  MASTER_KEY,
  MASTER_KEYS,
  newCustomer,
  refusing,
  ROW_MACS,
  TEST_ORIGIN,
  ownTestService,
} from '../../../test/support.ts'
import type { Answer, TestCustomer } from '../../../test/support.ts'
import { hurryUnlocked } from '../../../test/work-off.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import {
  CRYPTO_NETWORKS,
  decimalsOf,
  findAsset,
  NETWORKS,
  type CryptoNetwork,
} from '../../contract/assets/catalogue.ts'
import { openDatabase, type Database } from '../../db/database.ts'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import type { OrchestrationRule } from '../../money/records/orchestration-rule.ts'
import { sealOrders, type Orchestration } from '../../money/records/orchestration.ts'
import { TRANSFER_COLUMNS, transferToWire, type Transfer } from '../../money/ledger/transfer.ts'
import type { TransferRow } from '../../money/ledger/transfer.ts'
import { freeze, unfreeze, type FreezeTarget } from '../../money/records/freezes.ts'
import { verify } from '../../money/verify/verify.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'
import { MAGIC_OUTCOMES, magicAccountNumber, magicAddress } from '../../networks/simulated/magic-addresses.ts'
import type { MagicOutcome } from '../../networks/simulated/magic-addresses.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { creditDeposits } from '../../../test/credit-deposits.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { CLAIM_MAX, runOrchestrations } from './run-orchestrations.ts'
import { buildApp } from '../../program/build-app.ts'
import { atEnd } from '../../../test/at-end.ts'

// Holds last until `hurry` ends them.
const service = await ownTestService({ BURSAR_SIMULATED_HOLD_MS: '3600000' })
// Only their own test handles withdrawals that never confirm.
afterEach(() => giveUp())

// ---------------------------------------------------------------------------------------------- the API

/** A customer with a profile of each kind, and with the owners of the profiles. */
interface World {
  customer: TestCustomer
  /** Two profiles without an account, one with an account, and one that receives payouts. */
  profiles: string[]
  /** The identity of the account, and the identity that deposit instructions name. */
  identities: string[]
  account: string
  fiatAccounts: Map<Outcome, string>
}
const ACCOUNTS_PROFILE = 2
const SPENT_TO = 3

type Outcome = MagicOutcome | 'ORDINARY'

const RULES = '/v2/orchestration/rules'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'

function body<T>({ status, body }: Answer<T>): T {
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const post = async <T = { id: string }>({ customer }: World, url: string, content: unknown): Promise<T> =>
  body(await customer.call<T>('POST', url, content))

async function newWorld(): Promise<World> {
  const customer = await newCustomer(service)
  const world: World = { customer, profiles: [], identities: [], account: '', fiatAccounts: new Map() }
  for (const ref_id of ['of the account', 'of instructions']) {
    const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
    const { id } = await post<{ id: string }>(world, '/v2/identity/identities', { ref_id, person_details })
    await approve(customer, id)
    world.identities.push(id)
  }
  const account = await post<{ id: string; profile_id: string }>(world, '/v2/identity/accounts', {
    account: { identity_id: world.identities[0] },
    create_profile: true,
  })
  world.account = account.id
  const newProfile = async () => (await post(world, '/v2/profiles', { nickname: randomUUID() })).id
  world.profiles = [customer.profile_id, await newProfile(), account.profile_id, await newProfile()]
  return world
}

const ORDINARY_DESTINATION = Buffer.from('an ordinary destination address!')
const ORDINARY_ACCOUNT = '000987654321'

/** The destination as plain values; profiles are numbered. */
type Destination =
  | { to: 'crypto'; network: CryptoNetwork; outcome: Outcome }
  | { to: 'fiat'; outcome: Outcome }
  | { to: 'profile'; profile: number }

const addressOf = (network: CryptoNetwork, outcome: Outcome) =>
  outcome === 'ORDINARY' ? addressFromBytes(network, ORDINARY_DESTINATION) : magicAddress(network, outcome)
const accountNumberOf = (outcome: Outcome) =>
  outcome === 'ORDINARY' ? ORDINARY_ACCOUNT : magicAccountNumber(outcome)

/** Builds the destination as a request needs it. */
async function destinationOf(world: World, destination: Destination) {
  switch (destination.to) {
    case 'crypto': {
      const { network, outcome } = destination
      return { crypto: { network, address: addressOf(network, outcome)! } }
    }
    case 'fiat':
      return { fiat: { fiat_account_id: await fiatAccountOf(world, destination.outcome), memo: 'rent' } }
    case 'profile':
      return { profile: { profile_id: world.profiles[destination.profile]! } }
  }
}

async function fiatAccountOf(world: World, outcome: Outcome): Promise<string> {
  const known = world.fiatAccounts.get(outcome)
  if (known !== undefined) return known
  const { id } = await post(world, '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Example Ltd' } },
    fiat_network_instructions: { wire: { account_number: accountNumberOf(outcome)! } },
  })
  world.fiatAccounts.set(outcome, id)
  return id
}

/** A rule, as plain values. */
interface RuleSpec {
  profile: number
  source: { kind: 'fiat' } | { kind: 'crypto'; network: CryptoNetwork } | { kind: 'profile' }
  source_asset: string
  destination_asset: string
  destination: Destination
}

async function createRule(world: World, spec: RuleSpec): Promise<Answer<{ rule: OrchestrationRule }>> {
  const { profile, source, source_asset, destination_asset, destination } = spec
  const profile_id = world.profiles[profile]!
  const sources = {
    fiat: { fiat: { network: 'WIRE' } },
    crypto: { crypto: { network: 'network' in source ? source.network : undefined } },
    profile: { profile: { profile_id } },
  }
  return world.customer.call('POST', RULES, {
    ref_id: randomUUID(),
    profile_id,
    source_asset,
    destination_asset,
    source: sources[source.kind],
    destination: await destinationOf(world, destination),
  })
}
const newRule = async (world: World, spec: RuleSpec) => body(await createRule(world, spec)).rule

const deleteRule = async ({ customer }: World, { id }: { id: string }) =>
  body(await customer.call<{ rule: OrchestrationRule }>('DELETE', `${RULES}/${id}`)).rule

/** Simulates a wire. Returns the deposit. */
async function wire(world: World, memo_id: string, amount: string): Promise<Transfer> {
  await post(world, '/v2/sandbox/fiat-deposits', {
    amount,
    asset: 'USD',
    memo_id,
    fiat_network_instructions: { wire: {} },
  })
  const { items } = await get<{ items: Transfer[] }>(
    world,
    '/v2/transfer/transfers?type=WIRE_DEPOSIT&limit=1',
  )
  return items[0]!
}

/** Simulates a deposit to a profile, over a network to an address if given. Returns the deposit. */
async function deposit(
  world: World,
  profile: number,
  asset: string,
  amount: string,
  to: { crypto_network?: CryptoNetwork; crypto_address?: string } = {},
): Promise<Transfer> {
  const url = `/v2/sandbox/profiles/${world.profiles[profile]!}/deposit`
  const { activity_id } = await post<{ activity_id: string }>(world, url, { asset, amount, ...to })
  return get(world, `/v2/transfer/transfers/${activity_id}`)
}

/** Sets an identity's verification status and flags. */
const setStanding = async ({ customer, identities }: World, identity: number, standing: object) =>
  body(
    await customer.call('PUT', `/v2/identity/identities/${identities[identity]!}/sandbox-status`, standing),
  )

const get = async <T>({ customer }: World, url: string): Promise<T> =>
  body(await customer.call<T>('GET', url))
const read = (world: World, id: string) => get<Orchestration>(world, `${ORCHESTRATIONS}/${id}`)
/** Reads the orchestration that a deposit started. */
const startedBy = async (world: World, { group_id }: Transfer) => {
  expect(group_id).toBeDefined()
  return read(world, group_id!)
}

/** Reads the non-zero balances of the profiles, by number and asset. */
async function balancesOf(world: World): Promise<Record<string, string>> {
  const lists = await Promise.all(
    world.profiles.map((id) =>
      get<{ items: { asset: string; available: string }[] }>(world, `/v2/profiles/${id}/balances`),
    ),
  )
  return Object.fromEntries(
    lists.flatMap(({ items }, profile) =>
      items.flatMap(({ asset, available }) =>
        available === '0' ? [] : [[`${profile} ${asset}`, available]],
      ),
    ),
  )
}

// ---------------------------------------------------------------------------------------------- the worker

/** Makes all deferred work due now. */
const hurry = () => hurryUnlocked(service.db)
const giveUp = () => service.db.query('update outgoing_transfers set due_at = null')

/** Far more rounds than any withdrawal needs: new, held, signed, sent, dropped, signed, sent, done. */
const ROUNDS_MAX = 60

const contextWith = (networks: Networks) => ({ networks, settings: service.settings, macs: service.macs })

/** Runs the worker's first half until no orchestration waits for its destination transfer. */
async function payAll(): Promise<void> {
  await untilNone(
    `select from orchestrations where status = 'PROCESSING' and destination_transfer_id is null`,
    () => runOrchestrations(service.db, contextWith(service.networks)),
  )
}

const UNCONFIRMED = [...CRYPTO_NETWORKS.map((network) => magicAddress(network, 'NEVER_CONFIRMS'))]

/** Runs the worker's second half until only withdrawals that never confirm are left. */
async function settleAll(): Promise<void> {
  const pending = `
    select from transfers t
    left join fiat_accounts f on f.customer_id = t.customer_id and f.id = t.fiat_account_id
    where t.status = 'PENDING'
      and coalesce(t.destination_address, '') <> all ($1)
      and coalesce(f.fiat_network_instructions -> 'wire' ->> 'account_number', '') <> $2`
  await untilNone(pending, async () => {
    await hurry()
    await settleWithdrawals(service.db, service.networks)
  }, [UNCONFIRMED, magicAccountNumber('NEVER_CONFIRMS')])
}

async function untilNone(query: string, work: () => Promise<unknown>, values: unknown[] = []): Promise<void> {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    if ((await service.db.query(query, values)).rowCount === 0) return
    await work()
    // A terminated connection may hold its locks for a moment longer.
    if (round > 10) await pause(20)
  }
  throw new Error('the worker does not come to an end')
}

async function finish(): Promise<void> {
  await payAll()
  await settleAll()
}

// ---------------------------------------------------------------------------------------------- the invariants

const DEPOSITS = new Set(['WIRE_DEPOSIT', 'CRYPTO_DEPOSIT'])

/** Checks ended orchestrations against invariants 1 to 5, in plain code. Returns them all, oldest first. */
async function requireSound(world: World) {
  const { customer_id } = world.customer
  const byGroup = new Map<string, Transfer[]>()
  const transfers = await service.db.query<TransferRow>(
    `select ${TRANSFER_COLUMNS} from transfers t where t.customer_id = $1 order by t.id`,
    [customer_id],
  )
  const deposits: Transfer[] = []
  for (const transfer of transfers.rows.map(transferToWire)) {
    if (DEPOSITS.has(transfer.type)) deposits.push(transfer)
    const { group_id = transfer.id } = transfer
    byGroup.set(group_id, [...(byGroup.get(group_id) ?? []), transfer])
  }
  const takenBy = await netChanges(customer_id)
  const sent = await sentTransfers()

  const orchestrations = await listAll(world)
  for (const orchestration of orchestrations) {
    const { id, status, source_transfer, destination_transfer, orchestration_rule_id } = orchestration
    const group = byGroup.get(id) ?? []
    const started = group.filter(({ type }) => DEPOSITS.has(type))
    const made = group.filter(({ type }) => !DEPOSITS.has(type))

    // 1 and 3: the source.
    if (orchestration_rule_id === undefined) {
      expect(started).toEqual([])
      expect(source_transfer).toEqual({ transfer_id: made[0]!.id, status: made[0]!.status })
    } else {
      expect(started).toMatchObject([
        {
          id: source_transfer!.transfer_id,
          profile_id: orchestration.profile_id,
          balance_asset: orchestration.source_asset,
          total: orchestration.source_amount,
        },
      ])
      expect(holderOf(orchestration)).toEqual(holderOf(started[0]!))
    }

    // 2 and 3: the destination.
    const { crypto, fiat, profile } = orchestration.destination
    const destination = group.find((transfer) => transfer.id === destination_transfer?.transfer_id)
    const has = { asset: orchestration.destination_asset, status: TRANSFER_STATUS[status] }
    if (crypto !== undefined && destination !== undefined) {
      const { network: crypto_network, address: destination_address } = crypto
      expect(destination).toMatchObject({
        type: 'CRYPTO_WITHDRAWAL',
        crypto_network,
        destination_address,
        ...has,
      })
    }
    if (fiat !== undefined && destination !== undefined) {
      const { bank_account_id: fiat_account_id, memo } = fiat
      expect(destination).toMatchObject({ type: 'WIRE_WITHDRAWAL', fiat_account_id, memo, ...has })
    }
    if (profile !== undefined && destination !== undefined) {
      expect(destination).toMatchObject({ type: 'INTERNAL_TRANSFER_CREDIT', ...profile, ...has })
    }
    expect(made).toHaveLength(destination === undefined ? 0 : profile === undefined ? 1 : 2)
    if (status !== 'FAILED') expect(destination).toBeDefined()
    const isSent = sent.get(destination?.id ?? '') ?? 0
    if (status === 'COMPLETED') expect(isSent).toBe(profile === undefined ? 1 : 0)
    if (status === 'FAILED') expect(isSent).toBe(0)

    // 4 and 5: the debited amount.
    const taken = made.flatMap((transfer) => takenBy.get(transfer.id) ?? [])
    const from = `${orchestration.profile_id} ${orchestration.source_asset}`
    if (status === 'FAILED') {
      expect(orchestration.fail_reason!.detail).toMatch(/\w/)
      expect(taken).toEqual([])
    } else {
      expect(orchestration.fail_reason).toBeUndefined()
      const source = taken.find(({ account }) => account === from)
      const { source_amount } = orchestration
      const rest = parseAmount(source_amount, DECIMALS)! + source!.amount
      expect([rest >= 0n, rest < unitAt(orchestration)]).toEqual([true, true])
    }
  }
  // 1: every orchestration of a deposit is in the list, and each deposit started at most one.
  const ids = new Set(orchestrations.map(({ id }) => id))
  expect(deposits.filter(({ group_id }) => group_id !== undefined && !ids.has(group_id))).toEqual([])
  return { orchestrations, deposits }
}

const holderOf = ({ account_id, identity_id, metadata }: Transfer | Orchestration) => {
  return { account_id, identity_id, metadata }
}
const TRANSFER_STATUS = { PROCESSING: 'PENDING', COMPLETED: 'COMPLETED', FAILED: 'FAILED' } as const

async function listAll(world: World): Promise<Orchestration[]> {
  const found: Orchestration[] = []
  let cursor = ''
  do {
    const page = await get<{ items: Orchestration[]; next_page_cursor?: string }>(
      world,
      `${ORCHESTRATIONS}?order=ASC&limit=1000${cursor}`,
    )
    found.push(...page.items)
    cursor = page.next_page_cursor === undefined ? '' : `&page_cursor=${page.next_page_cursor}`
  } while (cursor !== '')
  return found
}

/** All amounts are compared as whole numbers of the smallest unit of the finest asset. */
const DECIMALS = 18
const text = (amount: bigint) => formatAmount(amount, DECIMALS)
/** The smallest amount that the destination can represent. */
const unitAt = ({ source_asset, destination_asset, destination }: Orchestration) =>
  unitOf(source_asset, destination_asset, destination.crypto?.network)

function unitOf(source: string, destination: string, network: CryptoNetwork | undefined): bigint {
  const onNetwork = network && findAsset(destination)!.networks[network]!.decimals
  const decimals = Math.min(decimalsOf(source), decimalsOf(destination), onNetwork ?? DECIMALS)
  return 10n ** BigInt(DECIMALS - decimals)
}

/** The net change of each transfer by account, without zeros. */
async function netChanges(customerId: string) {
  const { rows } = await service.db.query<{
    transfer_id: string
    account: string
    sum: string
  }>(
    `select transfer_id, coalesce(profile_id::text, account) || ' ' || asset as account, sum(amount)
     from entries where customer_id = $1
     group by 1, 2 having sum(amount) <> 0`,
    [customerId],
  )
  const changes = new Map<string, { account: string; amount: bigint }[]>()
  for (const { transfer_id, account, sum } of rows) {
    const change = { account, amount: parseStoredAmount(sum, DECIMALS) }
    changes.set(transfer_id, [...(changes.get(transfer_id) ?? []), change])
  }
  return changes
}

/** Counts each transfer on the simulated networks and at the bank: the outside view. */
async function sentTransfers(): Promise<Map<string, number>> {
  const { rows } = await service.db.query<{ id: string; count: number }>(
    `select convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id' as id, count(*)::int
     from simulated_chain group by 1`,
  )
  return new Map(rows.map(({ id, count }) => [id, count]))
}

const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

// ---------------------------------------------------------------------------------------------- examples

const ETHEREUM = { to: 'crypto', network: 'ETHEREUM', outcome: 'ORDINARY' } as const
const BANK = { to: 'fiat', outcome: 'ORDINARY' } as const
const toProfile = (profile: number) => ({ to: 'profile', profile }) as const

/** Wires to USDP on ETHEREUM, with changes. */
const ruleOf = (changes: Partial<RuleSpec> = {}): RuleSpec => ({
  profile: 0,
  source: { kind: 'fiat' },
  source_asset: 'USD',
  destination_asset: 'USDP',
  destination: ETHEREUM,
  ...changes,
})
const memoOf = ({ source }: OrchestrationRule) => source.fiat!.memo_id
const destinationTransfer = (world: World, { destination_transfer }: Orchestration) =>
  get<Transfer>(world, `/v2/transfer/transfers/${destination_transfer!.transfer_id}`)

test('a deposit below the minimum withdrawal stays, and its orchestration ends FAILED with the reason', async () => {
  const world = await newWorld()
  const rule = await newRule(world, ruleOf())
  const deposit = await wire(world, memoOf(rule), '1.99')
  const started = await startedBy(world, deposit)
  expect(started).toMatchObject({
    status: 'PROCESSING',
    source_amount: '1.99',
    orchestration_rule_id: rule.id,
  })
  await finish()
  const { updated_at, ...ended } = await read(world, started.id)
  expect(ended).toEqual({
    ...(({ updated_at: _, ...rest }) => rest)(started),
    status: 'FAILED',
    fail_reason: { detail: 'source_amount less the fee of 1 is below the minimum of 1 USDP' },
  })
  expect(updated_at > started.updated_at).toBe(true)
  expect(await balancesOf(world)).toEqual({ '0 USD': '1.99' })
  await requireSound(world)
})

test('the part that the destination has no decimals for stays on the profile', async () => {
  const world = await newWorld()
  const spec = { source: { kind: 'profile' }, source_asset: 'USDP', destination_asset: 'USD' } as const
  await newRule(world, ruleOf({ ...spec, destination: BANK }))
  const paid = await startedBy(world, await deposit(world, 0, 'USDP', '1.239000000000000001'))
  const tooLittle = await startedBy(world, await deposit(world, 0, 'USDP', '0.009'))
  await finish()
  const ended = await read(world, paid.id)
  expect(ended).toMatchObject({ status: 'COMPLETED', source_amount: '1.239000000000000001' })
  expect(await destinationTransfer(world, ended)).toMatchObject({ type: 'WIRE_WITHDRAWAL', amount: '1.23' })
  expect(await read(world, tooLittle.id)).toMatchObject({
    status: 'FAILED',
    fail_reason: { detail: expect.stringContaining('too little') as string },
  })
  expect(await balancesOf(world)).toEqual({ '0 USDP': '0.018000000000000001' })
  await requireSound(world)
})

test('the address of a rule on an EVM network takes its deposits on the others too', async () => {
  const world = await newWorld()
  const spec = { source: { kind: 'crypto', network: 'ETHEREUM' }, source_asset: 'USDG' } as const
  const rule = await newRule(world, ruleOf({ ...spec, destination_asset: 'USD', destination: BANK }))
  const { address_id, address } = rule.source.crypto!
  for (const crypto_network of ['ETHEREUM', 'INK', 'XLAYER'] as const) {
    for (const crypto_address of [address, address.toLowerCase()]) {
      const started = await startedBy(
        world,
        await deposit(world, 0, 'USDG', '3', { crypto_network, crypto_address }),
      )
      expect(started.source).toEqual({ crypto: { address_id, address, network: 'ETHEREUM' } })
      expect(started.orchestration_rule_id).toBe(rule.id)
    }
  }
  const url = `/v2/sandbox/profiles/${world.profiles[0]!}/deposit`
  const onSolana = { asset: 'USDG', amount: '3', crypto_network: 'SOLANA', crypto_address: address }
  expect((await world.customer.call('POST', url, onSolana)).status).toBe(400)
  await finish()
  const { orchestrations } = await requireSound(world)
  expect(orchestrations.map(({ status }) => status)).toEqual(Array(6).fill('COMPLETED'))
})

describe('a conversion', () => {
  const profileSource = { kind: 'profile' } as const
  test.each<[string, Partial<RuleSpec>, string, Partial<Transfer>, Record<string, string>]>([
    [
      'of USD to USDP goes to an address',
      {},
      '20.5',
      {
        type: 'CRYPTO_WITHDRAWAL',
        asset: 'USDP',
        amount: '19.5',
        fee: '1',
        total: '20.5',
        balance_asset: 'USD',
      },
      {},
    ],
    [
      'of USDP to USD goes by wire',
      { source: profileSource, source_asset: 'USDP', destination_asset: 'USD', destination: BANK },
      '20.5',
      {
        type: 'WIRE_WITHDRAWAL',
        asset: 'USD',
        amount: '20.5',
        fee: '0',
        balance_asset: 'USDP',
        memo: 'rent',
      },
      {},
    ],
    [
      'of USDG to PYUSD goes to another profile',
      { source: profileSource, source_asset: 'USDG', destination_asset: 'PYUSD', destination: toProfile(1) },
      '20.000001',
      { type: 'INTERNAL_TRANSFER_CREDIT', asset: 'PYUSD', amount: '20.000001', balance_asset: 'PYUSD' },
      { '1 PYUSD': '20.000001' },
    ],
    [
      'of USDG to PYUSD goes onto the same profile',
      { source: profileSource, source_asset: 'USDG', destination_asset: 'PYUSD', destination: toProfile(0) },
      '20.000001',
      { type: 'INTERNAL_TRANSFER_CREDIT', asset: 'PYUSD', amount: '20.000001', balance_asset: 'PYUSD' },
      { '0 PYUSD': '20.000001' },
    ],
  ])('%s', async (_, changes, amount, transfer, balances) => {
    const world = await newWorld()
    const spec = ruleOf(changes)
    const rule = await newRule(world, spec)
    const arrived =
      spec.source.kind === 'fiat'
        ? await wire(world, memoOf(rule), amount)
        : await deposit(world, 0, spec.source_asset, amount)
    const { id } = await startedBy(world, arrived)
    await finish()
    const ended = await read(world, id)
    expect(ended).toMatchObject({ status: 'COMPLETED', source_amount: amount })
    expect(await destinationTransfer(world, ended)).toMatchObject({
      ...transfer,
      group_id: id,
      status: 'COMPLETED',
    })
    expect(await balancesOf(world)).toEqual(balances)
    await requireSound(world)
    await requireClean()
  })
})

test('a rule may not pay an address of its own customer, which would start it again and again', async () => {
  const world = await newWorld()
  const profile_id = world.profiles[0]!
  const { address } = await post<{ address: string }>(world, '/v2/transfer/deposit-addresses', {
    profile_id,
    crypto_network: 'ETHEREUM',
  })
  const asked = {
    ref_id: randomUUID(),
    profile_id,
    source_asset: 'USDG',
    destination_asset: 'USDG',
    source: { profile: { profile_id } },
    destination: { crypto: { network: 'ETHEREUM', address: address.toLowerCase() } },
  }
  const refused = await world.customer.call('POST', RULES, asked)
  expect(refused.status).toBe(400)
  expect(refused.body.detail).toContain('destination.crypto.address is a deposit address of this customer')
})

test('rules of two customers that pay each other come to an end', async () => {
  const [one, other] = [await newWorld(), await newWorld()]
  const network = 'SOLANA'
  const depositAddress = async (world: World) => {
    const asked = { profile_id: world.profiles[0]!, crypto_network: network }
    return (await post<{ address: string }>(world, '/v2/transfer/deposit-addresses', asked)).address
  }
  const addresses = [await depositAddress(one), await depositAddress(other)] as const
  for (const [world, address] of [
    [one, addresses[1]],
    [other, addresses[0]],
  ] as const)
    await post(world, RULES, {
      ref_id: randomUUID(),
      profile_id: world.profiles[0]!,
      source_asset: 'USDG',
      destination_asset: 'USDG',
      source: { profile: { profile_id: world.profiles[0]! } },
      destination: { crypto: { network, address } },
    })
  await deposit(one, 0, 'USDG', '100', { crypto_network: network, crypto_address: addresses[0] })

  const listed = async (world: World) =>
    (await get<{ items: Orchestration[] }>(world, `${ORCHESTRATIONS}?order=ASC`)).items
  await expect
    .poll(
      async () => {
        await finish()
        await creditDeposits(service)
        return [...(await listed(one)), ...(await listed(other))].map(({ status }) => status)
      },
      { timeout: 30_000 },
    )
    .toContain('FAILED')
  const [first, second] = [await listed(one), await listed(other)]
  expect(first.map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED'])
  expect(second.map(({ status }) => status)).toEqual(['COMPLETED', 'FAILED'])
  expect(second[1]!.fail_reason!.detail).toMatch(/^the deposit has passed through 3 orchestrations/)
  // The money of the last deposit stays on the profile.
  expect(await balancesOf(one)).toEqual({})
  expect(await balancesOf(other)).toEqual({ '0 USDG': second[1]!.source_amount })
  await Promise.all([requireSound(one), requireSound(other), requireClean()])
})

test("a deposit of an asset other than the rule's starts nothing", async () => {
  const world = await newWorld()
  const spec = { source_asset: 'USDG', destination_asset: 'USD', destination: BANK }
  const own = await newRule(world, ruleOf({ ...spec, source: { kind: 'crypto', network: 'ETHEREUM' } }))
  await newRule(world, ruleOf({ ...spec, source: { kind: 'profile' } }))
  const { address: crypto_address } = own.source.crypto!
  for (const asset of ['USDP', 'PYUSD', 'ETH']) {
    const arrived = await deposit(world, 0, asset, '5', { crypto_network: 'ETHEREUM', crypto_address })
    expect(arrived.group_id).toBeUndefined()
  }
  expect((await deposit(world, 0, 'USD', '5')).group_id).toBeUndefined()
  await finish()
  expect(await requireSound(world)).toMatchObject({ orchestrations: [] })
  expect(await balancesOf(world)).toEqual({ '0 USDP': '5', '0 PYUSD': '5', '0 ETH': '5', '0 USD': '5' })
})

test("the rule of a deposit's own place precedes the profile's rule, which takes the other deposits", async () => {
  const world = await newWorld()
  const onProfile = await newRule(world, ruleOf({ source: { kind: 'profile' }, destination: toProfile(1) }))
  const own = await newRule(world, ruleOf())
  const ruleOfWire = async (memo: string) =>
    (await startedBy(world, await wire(world, memo, '5'))).orchestration_rule_id
  const { memo_id } = await post<{ memo_id: string }>(world, '/v2/transfer/fiat-deposit-instructions', {
    profile_id: world.profiles[0],
    fiat_network: 'WIRE',
  })
  expect(await ruleOfWire(memoOf(own))).toBe(own.id)
  expect(await ruleOfWire(memo_id)).toBe(onProfile.id)
  expect((await startedBy(world, await deposit(world, 0, 'USD', '5'))).orchestration_rule_id).toBe(
    onProfile.id,
  )
  // The address or instructions remain when the rule is deleted.
  await deleteRule(world, own)
  expect(await ruleOfWire(memoOf(own))).toBe(onProfile.id)
  await deleteRule(world, onProfile)
  expect((await wire(world, memoOf(own), '5')).group_id).toBeUndefined()
})

describe('Delete Orchestration Rule', () => {
  test('a deleted rule leaves later deposits on the profile, and its orchestrations go on', async () => {
    const world = await newWorld()
    const rule = await newRule(world, ruleOf())
    const before = await startedBy(world, await wire(world, memoOf(rule), '5'))
    await payAll()
    const inFlight = await startedBy(world, await wire(world, memoOf(rule), '6'))
    const deleted = await deleteRule(world, rule)
    expect(deleted).toEqual({ ...rule, status: 'DELETED', updated_at: deleted.updated_at })
    expect(await deleteRule(world, rule)).toEqual(deleted)
    expect((await wire(world, memoOf(rule), '7')).group_id).toBeUndefined()
    await finish()
    for (const { id } of [before, inFlight]) expect((await read(world, id)).status).toBe('COMPLETED')
    expect(await balancesOf(world)).toEqual({ '0 USD': '7' })
    expect((await requireSound(world)).orchestrations).toHaveLength(2)
  })
})

/** The `fail_reason` of each permanently refused destination. */
const REFUSED: Partial<Record<Outcome, RegExp>> = {
  INVALID_DESTINATION_ADDRESS: /refused the destination address/,
  STALE_FEE_QUOTE: /fee rose/,
  MISSING_TRUSTLINE: /trustline/,
  MAX_RENT_EXCEEDED: /rent/,
  TRAVEL_RULE_REJECTED: /travel rule/,
  CUSTOMER_REJECTED: /customer rejected/,
}

describe('the sandbox returns the funds with the reason', () => {
  const destinations = Object.keys(REFUSED).flatMap((name): Destination[] => {
    const outcome = name as MagicOutcome
    const networks = (['ETHEREUM', 'SOLANA', 'STELLAR'] as const).filter((one) => addressOf(one, outcome))
    const byWire = magicAccountNumber(outcome) === undefined ? [] : [{ to: 'fiat', outcome } as const]
    return [...networks.map((network) => ({ to: 'crypto', network, outcome }) as const), ...byWire]
  })
  test.each(destinations)('after a failure: %o', async (destination) => {
    const world = await newWorld()
    const destination_asset = destination.to === 'fiat' ? 'USD' : 'PYUSD'
    const spec = { source_asset: 'USDG', destination_asset, destination }
    await newRule(world, ruleOf({ ...spec, source: { kind: 'profile' } }))
    const { id } = await startedBy(world, await deposit(world, 0, 'USDG', '7.25'))
    await payAll()
    expect(await balancesOf(world)).toEqual({})
    expect((await read(world, id)).status).toBe('PROCESSING')
    await settleAll()
    const { status, fail_reason, destination_transfer } = await read(world, id)
    expect({ status, fail_reason }).toEqual({
      status: 'FAILED',
      fail_reason: {
        detail: expect.stringMatching(
          REFUSED['outcome' in destination ? destination.outcome : 'ORDINARY']!,
        ) as string,
      },
    })
    expect(fail_reason!.detail).toMatch(/^the destination transfer failed: /)
    expect(destination_transfer).toBeDefined()
    expect(await balancesOf(world)).toEqual({ '0 USDG': '7.25' })
    await requireSound(world)
  })
})

test.each<[string, (world: World) => FreezeTarget]>([
  [
    'its profile',
    ({ customer: { customer_id }, profiles: [profile_id] }) => ({
      kind: 'PROFILE',
      customer_id,
      profile_id: profile_id!,
    }),
  ],
  ['its customer', ({ customer: { customer_id } }) => ({ kind: 'CUSTOMER', customer_id })],
])('an orchestration waits while %s is frozen, and goes on', async (what, targetOf) => {
  const world = await newWorld()
  await newRule(world, ruleOf({ profile: 0, source: { kind: 'profile' } }))
  await newRule(world, ruleOf({ profile: 1, source: { kind: 'profile' } }))
  await freeze(service.db, TEST_ORIGIN, targetOf(world), 'OPERATOR', 'a leak')
  const waiting = await startedBy(world, await deposit(world, 0, 'USD', '5'))
  const other = await startedBy(world, await deposit(world, 1, 'USD', '5'))
  for (let round = 1; round <= 3; round++) await runOrchestrations(service.db, service)
  const isPaid = async ({ id }: { id: string }) => (await read(world, id)).destination_transfer !== undefined
  expect((await read(world, waiting.id)).status).toBe('PROCESSING')
  expect([await isPaid(waiting), await isPaid(other)]).toEqual([false, what === 'its profile'])
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, targetOf(world))
  await finish()
  expect((await read(world, waiting.id)).status).toBe('COMPLETED')
  expect((await read(world, other.id)).status).toBe('COMPLETED')
  await requireSound(world)
})

describe('the money stays on the profile', () => {
  test.each<[string, profile: number, identity: number, named: (world: World) => object]>([
    ['the account of the profile', ACCOUNTS_PROFILE, 0, () => ({})],
    ['the account that the deposit names', 1, 0, ({ account }) => ({ account_id: account })],
    ['the identity that the deposit names', 1, 1, ({ identities }) => ({ identity_id: identities[1] })],
  ])('if %s has been barred since', async (_, profile, identity, named) => {
    const world = await newWorld()
    const { memo_id } = await post<{ memo_id: string }>(world, '/v2/transfer/fiat-deposit-instructions', {
      profile_id: world.profiles[profile],
      fiat_network: 'WIRE',
      metadata: { order: '1041' },
      ...named(world),
    })
    await newRule(world, ruleOf({ profile, source: { kind: 'profile' } }))
    const send = async () => (await startedBy(world, await wire(world, memo_id, '5'))).id
    const barred = await send()
    await setStanding(world, identity, { status: 'DENIED' })
    await finish()
    await setStanding(world, identity, { status: 'APPROVED' })
    const free = await send()
    await finish()
    expect(await read(world, barred)).toMatchObject({
      status: 'FAILED',
      fail_reason: { detail: expect.stringMatching(/ is DENIED: nothing can be withdrawn/) as string },
      metadata: { order: '1041' },
    })
    expect((await read(world, free)).status).toBe('COMPLETED')
    expect(await balancesOf(world)).toEqual({ [`${profile} USD`]: '5' })
    await requireSound(world)
  })

  test('if the bank account has been rejected since', async () => {
    const world = await newWorld()
    const rule = await newRule(world, ruleOf({ destination_asset: 'USD', destination: BANK }))
    const { id } = await startedBy(world, await wire(world, memoOf(rule), '5'))
    // As if the bank had rejected it at once.
    const { customer_id } = world.customer
    await service.owner.query(`update fiat_accounts set status = 'REJECTED' where customer_id = $1`, [
      customer_id,
    ])
    await service.owner.query(
      `update events set type = 'fiat_account.rejected', object = object || '{"status": "REJECTED"}'
       where customer_id = $1 and type = 'fiat_account.approved'`,
      [customer_id],
    )
    await finish()
    expect(await read(world, id)).toMatchObject({
      status: 'FAILED',
      fail_reason: { detail: expect.stringMatching(/fiat account .* is REJECTED/) as string },
    })
    expect(await balancesOf(world)).toEqual({ '0 USD': '5' })
  })
})

// ---------------------------------------------------------------------------------------------- direct ones

/** The request body of an orchestration from a profile. */
async function directOf(world: World, changes: Record<string, unknown> = {}) {
  return {
    ref_id: randomUUID(),
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '20',
    source: { profile: { profile_id: world.profiles[0]! } },
    destination: await destinationOf(world, ETHEREUM),
    ...changes,
  }
}
const start = (world: World, request: object) =>
  world.customer.call<Orchestration>('POST', ORCHESTRATIONS, request)

/** A second service on the database, which shares no state in memory. */
async function secondProcess() {
  const db = openDatabase(service.url, { max: 4, onError: () => undefined })
  const ledger = new Ledger(db)
  const { networks, settings } = service
  const app = await buildApp({
    db,
    ledger,
    networks,
    settings,
    masterKeys: MASTER_KEYS,
    baseUrl: BASE_URL,
    log: pino({ level: 'silent' }),
  })
  atEnd(async () => {
    await app.close()
    await ledger.drain()
    await db.end()
  })
  return app
}

describe('Create Orchestration', () => {
  test('debits the money immediately and ends as its destination does', async () => {
    const world = await newWorld()
    await deposit(world, 0, 'USD', '20')
    const metadata = { order: '1041' }
    const request = await directOf(world, { metadata, source_amount: '20.00' })
    const started = body(await start(world, request))
    expect(started).toMatchObject({
      status: 'PROCESSING',
      ref_id: request.ref_id,
      source_amount: '20',
      metadata,
    })
    expect(await balancesOf(world)).toEqual({})
    expect(await read(world, started.id)).toEqual(started)
    await finish()
    const { updated_at, ...ended } = await read(world, started.id)
    const link = { ...started.source_transfer!, status: 'COMPLETED' }
    const links = { source_transfer: link, destination_transfer: link }
    expect({ ...ended, updated_at: started.updated_at }).toEqual({
      ...started,
      ...links,
      status: 'COMPLETED',
    })
    expect(updated_at > started.updated_at).toBe(true)
    expect(await destinationTransfer(world, started)).toMatchObject({ metadata, amount: '19' })
    await requireSound(world)
  })

  test('one that converts on the profile is COMPLETED in the answer', async () => {
    const world = await newWorld()
    await deposit(world, 0, 'USD', '20')
    const started = body(await start(world, { ...(await directOf(world)), destination: undefined }))
    expect(started).toMatchObject({
      status: 'COMPLETED',
      destination: { profile: { profile_id: world.profiles[0] } },
    })
    expect(await balancesOf(world)).toEqual({ '0 USDP': '20' })
    await requireSound(world)
  })

  test('is refused as its destination transfer would be, and changes nothing', async () => {
    const world = await newWorld()
    await deposit(world, 0, 'USD', '19.99')
    await deposit(world, ACCOUNTS_PROFILE, 'USD', '100')
    await setStanding(world, 0, { status: 'DENIED' })
    const fromAccount = { source: { profile: { profile_id: world.profiles[ACCOUNTS_PROFILE] } } }
    const crypto = (network: CryptoNetwork, address: string) => ({
      destination: { crypto: { network, address } },
    })
    const refusals: [changes: Record<string, unknown>, status: number, body: object][] = [
      [{}, 403, { meta: { profile_id: world.profiles[0], asset: 'USD', available: '19.99', needed: '20' } }],
      [fromAccount, 403, { title: 'Identity Verification Required' }],
      [{ source_amount: '1.99' }, 400, { title: 'Withdrawal Amount Too Small' }],
      [{ source_amount: '1000002' }, 400, { title: 'Withdrawal Amount Too Large' }],
      [{ source_amount: '5.001' }, 400, { title: 'Exceeds Maximum Precision Allowed' }],
      [{ source_amount: '0' }, 400, {}],
      [{ destination_asset: 'BTC' }, 400, {}],
      [{ destination_asset: 'NONE' }, 400, {}],
      [crypto('BITCOIN', addressOf('BITCOIN', 'ORDINARY')!), 400, { title: 'Unsupported Network' }],
      [crypto('SOLANA', addressOf('ETHEREUM', 'ORDINARY')!), 400, { title: 'Unsupported Address' }],
      [{ destination: { profile: { profile_id: randomUUID() } } }, 404, {}],
      [{ destination: { fiat: { fiat_account_id: randomUUID() } }, destination_asset: 'USD' }, 404, {}],
      [{ source: { profile: { profile_id: randomUUID() } } }, 404, {}],
      [{ destination: undefined, destination_asset: 'USD' }, 400, {}],
    ]
    const before = await everyTable(service.db)
    for (const [changes, status, body] of refusals) {
      expect(await start(world, await directOf(world, changes))).toMatchObject({
        status,
        body: { status, ...body },
      })
    }
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('of two simultaneous requests with one ref_id one succeeds, and the other gets its record', async () => {
    const world = await newWorld()
    await deposit(world, 0, 'USD', '1000')
    // In one process, a batch of the ledger decides; in two processes, a unique key.
    const { call, token } = world.customer
    for (const other of [call, caller(await secondProcess(), token)]) {
      for (let round = 1; round <= 10; round++) {
        const request = await directOf(world)
        const answers = await Promise.all([call, other].map((one) => one('POST', ORCHESTRATIONS, request)))
        const [made, refused] = answers.sort((a, b) => a.status - b.status)
        expect([made!.status, refused!.status]).toEqual([200, 409])
        expect(refused!.body.meta).toMatchObject({ existing: made!.body })
      }
    }
    expect(await balancesOf(world)).toEqual({ '0 USD': '600' })
    await finish()
    expect((await requireSound(world)).orchestrations).toHaveLength(20)
  })
})

describe('a rule on a profile', () => {
  const spec = ruleOf({ source: { kind: 'profile' } })

  test('is the only active one for its asset', async () => {
    const world = await newWorld()
    const rule = await newRule(world, spec)
    const second = await createRule(world, { ...spec, destination: toProfile(1) })
    expect(second).toMatchObject({ status: 409, body: { title: 'Already Exists', meta: { existing: rule } } })
    await newRule(world, { ...spec, source_asset: 'USDG' })
    await newRule(world, { ...spec, profile: 1 })
    await deleteRule(world, rule)
    expect((await newRule(world, spec)).status).toBe('ACTIVE')
  })

  test('is created once by two simultaneous requests', async () => {
    for (let round = 1; round <= 5; round++) {
      const world = await newWorld()
      const answers = await Promise.all([createRule(world, spec), createRule(world, spec)])
      const [made, refused] = answers.sort((a, b) => a.status - b.status)
      expect([made.status, refused.status]).toEqual([200, 409])
      expect(refused.body).toMatchObject({ meta: { existing: made.body.rule } })
    }
  })
})

// ---------------------------------------------------------------------------------------------- failures

/** The routes of an orchestration, each with its end. */
const WAYS: Record<string, { spec: Partial<RuleSpec>; amount: string; status: Orchestration['status'] }> = {
  'to an address': { spec: {}, amount: '5', status: 'COMPLETED' },
  'to an address that is refused': {
    spec: { destination: { ...ETHEREUM, outcome: 'STALE_FEE_QUOTE' } },
    amount: '5',
    status: 'FAILED',
  },
  'to an address, but too little': { spec: {}, amount: '1', status: 'FAILED' },
  'to a bank account': {
    spec: { destination_asset: 'USD', destination: BANK },
    amount: '5',
    status: 'COMPLETED',
  },
  'to another profile': { spec: { destination: toProfile(1) }, amount: '5', status: 'COMPLETED' },
}
const cases = FAILURES.flatMap((failure) => partOf(Object.keys(WAYS)).map((way) => [failure, way] as const))

describe('when the worker dies', () => {
  test.each(cases)(
    '%s any one step of its first half, an orchestration %s is paid once',
    async (failure, way) => {
      await walk(failure, way, async (failures) => {
        await runOrchestrations(failures.database(service.db), contextWith(service.networks))
      })
    },
  )

  test.each(cases)(
    '%s any one step of its second half, an orchestration %s ends once',
    async (failure, way) => {
      await walk(failure, way, async (failures) => {
        await payAll()
        const [db, networks] = [failures.database(service.db), failures.networks(service.networks)]
        for (let round = 1; round <= 4; round++) {
          await hurry()
          await settleWithdrawals(db, networks).catch(() => undefined)
        }
      })
    },
  )
})

/** Lets the worker die at its first step, then, for another orchestration, at its second, and so on. */
async function walk(failure: Failure, way: string, work: (failures: Failures) => Promise<void>) {
  const { spec, amount, status } = WAYS[way]!
  const world = await newWorld()
  const rule = await newRule(world, ruleOf(spec))
  await dieAtEachStep(failure, 3, async (failures) => {
    const { id } = await startedBy(world, await wire(world, memoOf(rule), amount))
    await work(failures).catch(() => undefined)
    await finish()
    expect((await read(world, id)).status).toBe(status)
  })
  await requireSound(world)
  await requireClean()
}

test("one customer's broken record delays no other customer", async () => {
  const worlds = [await newWorld(), await newWorld()]
  for (const broken of worlds) {
    const started: [World, string][] = []
    for (const world of worlds) {
      const rule = await newRule(world, ruleOf())
      started.push([world, (await startedBy(world, await wire(world, memoOf(rule), '5'))).id])
    }
    const { customer_id } = broken.customer
    const open = `customer_id = $1 and destination_transfer_id is null`
    await service.owner.query(`update orchestrations set destination = '{"crypto": null}' where ${open}`, [
      customer_id,
    ])
    const { networks, settings } = service
    // Without the MACs, which would refuse the record before.
    await expect(runOrchestrations(service.db, { networks, settings })).rejects.toThrow('1 payouts failed')
    for (const [world, id] of started) {
      const { destination_transfer } = await read(world, id)
      expect(destination_transfer === undefined).toBe(world === broken)
    }
    const repaired = await destinationOf(broken, ETHEREUM)
    await service.owner.query(`update orchestrations set destination = $2 where ${open}`, [
      customer_id,
      repaired,
    ])
    await finish()
  }
  for (const world of worlds) {
    const { orchestrations } = await requireSound(world)
    expect(orchestrations.map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED'])
  }
})

describe("the service's role without the master key", () => {
  /** A worker with the master key, which stops at nothing. */
  const withKeys = () => ({ ...contextWith(service.networks), macs: new RowMacs(MASTER_KEYS) })
  const verified = async () => (await verify(service.db, { rowMacs: ROW_MACS })).disagreements
  const ordered = async () => {
    const world = await newWorld()
    const rule = await newRule(world, ruleOf())
    return { world, one: await startedBy(world, await wire(world, memoOf(rule), '5')) }
  }
  const NO_MAC = 'it has no MAC'
  const CHANGED = 'its MAC does not match: it was changed, or no Bursar with the master key made it'
  const copy = `
    insert into orchestrations (customer_id, id, profile_id, source_asset, destination_asset, source_amount, source_transfer_id,
                                source, destination, status, created_at, updated_at, orchestration_rule_id, mac)
    select customer_id, gen_random_uuid(), profile_id, source_asset, destination_asset, source_amount, source_transfer_id, source,
           destination, status, created_at, updated_at, orchestration_rule_id, MAC
    from orchestrations where customer_id = $1 and id = $2 returning id`

  test.each([
    ['copies', copy.replace('MAC\n', 'mac\n'), CHANGED],
    ['copies without its MAC', copy.replace('MAC\n', 'null\n'), NO_MAC],
  ])('%s an orchestration: it is not paid, and verify finds it', async (_, statement, fail_reason) => {
    const { world, one } = await ordered()
    const { rows } = await service.db.query<{ id: string }>(statement, [one.customer_id, one.id])
    const { id } = rows[0]!
    expect(await verified()).toContainEqual({
      customer_id: one.customer_id,
      rule: 'every orchestration that is to be paid was ordered',
      detail: `${id}: ${fail_reason}`,
    })
    await runOrchestrations(service.db, withKeys())
    expect(await read(world, id)).toMatchObject({ status: 'FAILED', fail_reason: { detail: fail_reason } })
    expect((await read(world, one.id)).destination_transfer).toBeDefined()
    for (const made of [
      'orchestrations where id',
      'decided_orchestrations where orchestration_id',
      'events where object_id',
    ])
      await service.owner.query(`delete from ${made} = $1`, [id])
    await finish()
  })

  test.each([
    ['amount', 'source_amount = source_amount - 1'],
    [
      'destination',
      `destination = jsonb_set(destination, '{crypto,address}', '"${addressFromBytes('ETHEREUM', Buffer.alloc(32, 7))}"')`,
    ],
    ['asset', `destination_asset = 'USDG'`],
  ])('an orchestration with another %s is not paid', async (_, change) => {
    const { world, one } = await ordered()
    // The role itself may not; a database without the second role may.
    await service.owner.query(`update orchestrations set ${change} where customer_id = $1 and id = $2`, [
      one.customer_id,
      one.id,
    ])
    await runOrchestrations(service.db, withKeys())
    expect(await read(world, one.id)).toMatchObject({ status: 'FAILED', fail_reason: { detail: CHANGED } })
  })

  test.each([
    ['orchestration', []],
    [
      'orchestration and its transfer',
      [
        `update transfers set group_id = null where customer_id = $1 and group_id = $2 and direction = 'DEBIT'`,
      ],
    ],
  ])('sets a paid %s back: it is paid once', async (_, changes) => {
    const { world, one } = await ordered()
    await deposit(world, 0, 'USD', '5')
    await runOrchestrations(service.db, withKeys())
    const { destination_transfer } = await read(world, one.id)
    const set = `update orchestrations set destination_transfer_id = $3 where customer_id = $1 and id = $2`
    await service.db.query(set, [one.customer_id, one.id, null])
    for (const change of changes) await service.db.query(change, [one.customer_id, one.id])
    await runOrchestrations(service.db, withKeys())
    expect(await read(world, one.id)).toMatchObject({
      status: 'FAILED',
      fail_reason: { detail: 'it was paid or refused before' },
    })
    expect((await verified()).map(({ rule }) => rule)).toContain(
      'every orchestration has the payout that was recorded',
    )
    await service.db.query('update transfers set group_id = $2 where id = $1', [
      destination_transfer!.transfer_id,
      one.id,
    ])
    const mended = `update orchestrations set destination_transfer_id = $3, status = 'PROCESSING', fail_reason = null
                    where customer_id = $1 and id = $2`
    await service.db.query(mended, [one.customer_id, one.id, destination_transfer!.transfer_id])
    await service.owner.query(`delete from events where object_id = $1 and type = 'orchestration.failed'`, [
      one.id,
    ])
    await finish()
  })

  test('a process with a newer master key makes the MACs again', async () => {
    const { world, one } = await ordered()
    const newer = randomBytes(32).toString('hex')
    const withBoth = masterKeysOf([newer, MASTER_KEY], 'BURSAR_MASTER_KEY')
    expect(await sealOrders(service.db, 'OF_OLDER_KEYS', new RowMacs(withBoth))).toBe(1)
    const macs = new RowMacs(masterKeysOf([newer], 'BURSAR_MASTER_KEY'))
    await runOrchestrations(service.db, { ...contextWith(service.networks), macs })
    expect((await read(world, one.id)).destination_transfer).toBeDefined()
    await finish()
  })
})

test.each([
  ['an address', 'ETHEREUM', ruleOf()],
  ['a bank account', 'WIRE', ruleOf({ destination_asset: 'USD', destination: BANK })],
] as const)('one to %s waits for %s to be connected, and holds up no other', async (_, missing, spec) => {
  const world = await newWorld()
  const send = async (spec: RuleSpec) =>
    startedBy(world, await wire(world, memoOf(await newRule(world, spec)), '5'))
  const [waiting, other] = [await send(spec), await send(ruleOf({ destination: toProfile(1) }))]
  const without = new Map([...service.networks].filter(([network]) => network !== missing))
  expect(await runOrchestrations(service.db, contextWith(without))).toBe(1)
  expect(await read(world, waiting.id)).toEqual(waiting)
  expect((await read(world, other.id)).status).toBe('COMPLETED')
  await finish()
  expect((await read(world, waiting.id)).status).toBe('COMPLETED')
  await requireSound(world)
})

/** The first statement that writes balances. */
const POSTING = /^(new |\+)?balances\b/

test('a payout whose network cost is not known yet waits for the next round, and takes it', async () => {
  const world = await newWorld()
  const destination = (outcome: Outcome) => ({ to: 'crypto', network: 'ETHEREUM', outcome }) as const
  const first = await newRule(world, ruleOf({ destination: destination('ORDINARY') }))
  const second = await newRule(world, ruleOf({ destination: destination('NEVER_CONFIRMS') }))
  const early = await startedBy(world, await wire(world, memoOf(first), '100'))
  let late: Promise<Transfer> | undefined
  const adapter: NetworkAdapter = {
    ...service.networks.get('ETHEREUM')!,
    // The other deposit is credited when the costs of the round are asked for.
    async estimateFee() {
      await (late ??= wire(world, memoOf(second), '100'))
      return { asset: 'USDP', amount: '7' }
    },
  }
  const context = contextWith(new Map([...service.networks, ['ETHEREUM', adapter]]))
  const feeOf = async ({ id }: Orchestration) => {
    const now = await read(world, id)
    return now.destination_transfer && (await destinationTransfer(world, now)).fee
  }
  expect(await runOrchestrations(service.db, context)).toBe(1)
  const other = await startedBy(world, (await late)!)
  expect([await feeOf(early), await feeOf(other)]).toEqual(['7', undefined])
  expect(await runOrchestrations(service.db, context)).toBe(1)
  expect(await feeOf(other)).toBe('7')
})

test('a payout that loses the race to create a balance is made in the next round', async () => {
  const world = await newWorld()
  const rule = await newRule(world, ruleOf({ destination: toProfile(1) }))
  const { id } = await startedBy(world, await wire(world, memoOf(rule), '5'))
  let deposited: Promise<Transfer> | undefined
  const raced = before(service.db, POSTING, () => (deposited ??= deposit(world, 1, 'USDP', '1')))
  expect(await runOrchestrations(raced, contextWith(service.networks))).toBe(0)
  expect((await read(world, id)).status).toBe('PROCESSING')
  expect(await runOrchestrations(service.db, contextWith(service.networks))).toBe(1)
  expect((await read(world, id)).status).toBe('COMPLETED')
  expect(await balancesOf(world)).toEqual({ '1 USDP': '6' })
  await requireSound(world)
})

/** A database that runs `happens` right before each statement with such a name. */
function before(db: Database, name: RegExp, happens: () => Promise<unknown>): Database {
  return {
    query: db.query.bind(db),
    connect: async () => {
      const client = await db.connect()
      return sendingBy(client, async (send, query) => {
        if (name.test((query as { name?: string }).name ?? '')) await happens()
        return send()
      })
    },
  } as unknown as Database
}

test('a backlog above the size of one transaction is paid, and never debits more than the balance', async () => {
  const world = await newWorld()
  const rule = await newRule(world, ruleOf({ destination: toProfile(1) }))
  await Promise.all(Array.from({ length: CLAIM_MAX + 20 }, () => wire(world, memoOf(rule), '1')))
  const amount = String(CLAIM_MAX)
  await post(world, '/v2/transfer/internal', {
    asset: 'USD',
    amount,
    from_profile_id: world.profiles[0],
    to_profile_id: world.profiles[SPENT_TO],
  })
  expect(await runOrchestrations(service.db, contextWith(service.networks))).toBe(CLAIM_MAX)
  expect(await runOrchestrations(service.db, contextWith(service.networks))).toBe(20)
  const { orchestrations } = await requireSound(world)
  const statuses = orchestrations.map(({ status }) => status)
  expect(statuses).toEqual(orchestrations.map((_, index) => (index < 20 ? 'COMPLETED' : 'FAILED')))
  expect(orchestrations.at(-1)!.fail_reason).toEqual({
    detail: 'the profile has 0 USD available and 1 are needed',
  })
  expect(await balancesOf(world)).toEqual({ '1 USDP': '20', [`${SPENT_TO} USD`]: amount })
})

// ---------------------------------------------------------------------------------------------- several workers

test('several simultaneous workers debit nothing twice, while deposits, payments and rules change', async () => {
  const WORKERS = 3
  const world = await newWorld()
  const pools = Array.from({ length: WORKERS }, () =>
    openDatabase(service.url, { max: 4, onError: () => undefined }),
  )
  let ordering = true
  const working = pools.map(async (pool, worker) => {
    // One of the workers dies now and then.
    const failures = new Failures(() =>
      worker === 0 && Math.random() < 0.02 ? (Math.random() < 0.5 ? 'BEFORE' : 'AFTER') : undefined,
    )
    const db = before(failures.database(pool), POSTING, () => pause(Math.random() * 5))
    while (ordering) {
      await runOrchestrations(db, contextWith(service.networks)).catch(() => undefined)
      await hurry()
      await settleWithdrawals(db, service.networks).catch(() => undefined)
    }
  })

  const crypto = { kind: 'crypto', network: 'SOLANA' } as const
  const specs = [
    ruleOf(),
    ruleOf({ destination: { ...ETHEREUM, outcome: 'CUSTOMER_REJECTED' } }),
    ruleOf({ destination_asset: 'USD', destination: { to: 'fiat', outcome: 'INVALID_DESTINATION_ADDRESS' } }),
    ruleOf({ source: crypto, source_asset: 'USDG', destination_asset: 'USD', destination: BANK }),
    ruleOf({ source: crypto, source_asset: 'USDP', destination: { ...ETHEREUM, outcome: 'DROPPED_ONCE' } }),
  ]
  const send = ({ source, source_asset }: OrchestrationRule) =>
    source.fiat !== undefined
      ? wire(world, source.fiat.memo_id, '5.01')
      : deposit(world, 0, source_asset, '5.000001', {
          crypto_network: source.crypto!.network,
          crypto_address: source.crypto!.address,
        })
  const spend = (asset: string) =>
    world.customer.call('POST', '/v2/transfer/internal', {
      asset,
      amount: '5',
      from_profile_id: world.profiles[0],
      to_profile_id: world.profiles[SPENT_TO],
    })
  const later: Transfer[] = []
  for (let round = 1; round <= 8; round++) {
    // No one has this balance yet: payouts and deposits race to create it.
    world.profiles.push((await post(world, '/v2/profiles', { nickname: randomUUID() })).id)
    const fresh = world.profiles.length - 1
    const rules = await Promise.all(
      [...specs, ruleOf({ destination: toProfile(fresh) })].map((spec) => newRule(world, spec)),
    )
    const direct = { source_amount: '1', destination: { profile: { profile_id: world.profiles[fresh] } } }
    await Promise.all([
      ...[...rules, ...rules, ...rules].map(send),
      ...['USD', 'USDG', 'USDP'].map(spend),
      deposit(world, fresh, 'USDP', '1'),
      directOf(world, direct).then((request) => start(world, request)),
    ])
    await Promise.all(rules.map((rule) => deleteRule(world, rule)))
    later.push(...(await Promise.all(rules.slice(3, 5).map(send))))
  }
  ordering = false
  await Promise.all(working)
  await finish()
  await Promise.all(pools.map((pool) => pool.end()))

  const { orchestrations, deposits } = await requireSound(world)
  expect(later.map(({ group_id }) => group_id)).toEqual(later.map(() => undefined))
  const startedByRules = orchestrations.filter((one) => one.orchestration_rule_id !== undefined)
  expect(startedByRules).toHaveLength(8 * (specs.length + 1) * 3)
  expect(deposits.filter(({ group_id }) => group_id !== undefined)).toHaveLength(startedByRules.length)
  expect(orchestrations.filter(({ status }) => status === 'PROCESSING')).toEqual([])
  await requireClean()
})

// ---------------------------------------------------------------------------------------------- the model

const STABLECOINS = ['USDP', 'USDG', 'PYUSD']
const ASSETS = ['USD', ...STABLECOINS, 'ETH']
const networksOf = (asset: string) => Object.keys(findAsset(asset)!.networks) as CryptoNetwork[]

/** Requests and events as plain values. A number selects among the existing records. */
type Step =
  | { step: 'rule'; rule: RuleSpec }
  | { step: 'delete'; rule: number }
  | { step: 'send'; place: number; asset: number; network: number; amount: Sum }
  | { step: 'deposit'; profile: number; asset: string; amount: Sum }
  | { step: 'direct'; order: RuleSpec; named: boolean; amount: Sum }
  | {
      step: 'stand'
      identity: number
      standing: { status: 'APPROVED' | 'DENIED' } | { user_disabled: boolean }
    }
  | { step: 'spend'; profile: number; asset: string; all: boolean }
  | { step: 'pay' | 'settle'; failing: (Failure | undefined)[]; workers: number }

/** An amount plus a number of smallest units. */
interface Sum {
  base: string
  dust: number
}

const anyOutcome = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Outcome>('ORDINARY') },
  { weight: 4, arbitrary: fc.constantFrom<Outcome>(...MAGIC_OUTCOMES) },
)
const anySum = fc.record({
  base: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('5', '12.34', '40') },
    { weight: 3, arbitrary: fc.constantFrom('0', '0.01', '1.5', '2') },
    { weight: 1, arbitrary: fc.constantFrom('1000001', '10000001') },
  ),
  dust: fc.constantFrom(0, 0, 0, 1, 999),
})
const anyProfile = fc.nat(2)

const toAnyProfile = anyProfile.map((profile): Destination => ({ to: 'profile', profile }))
const toAnyBank = anyOutcome
  .filter((outcome) => accountNumberOf(outcome) !== undefined)
  .map((outcome): Destination => ({ to: 'fiat', outcome }))
const toAnyAddress = (asset: string) =>
  fc
    .record({ network: fc.constantFrom(...networksOf(asset)), outcome: anyOutcome })
    .filter(({ network, outcome }) => addressOf(network, outcome) !== undefined)
    .map((end): Destination => ({ to: 'crypto', ...end }))
const anyDestination = (asset: string) =>
  fc.oneof(toAnyProfile, { weight: 2, arbitrary: asset === 'USD' ? toAnyBank : toAnyAddress(asset) })

const anySource = (asset: string): fc.Arbitrary<RuleSpec['source']> =>
  fc.constantFrom<RuleSpec['source'][]>(
    { kind: 'profile' },
    ...(asset === 'USD' ? [{ kind: 'fiat' } as const] : []),
    ...networksOf(asset).map((network) => ({ kind: 'crypto', network }) as const),
  )
const anyRule = fc
  .record({ from: fc.constantFrom('USD', ...ASSETS), to: fc.constantFrom('USD', ...STABLECOINS) })
  .map(({ from, to }) => ({ source_asset: from, destination_asset: from === 'ETH' ? from : to }))
  .chain((assets) =>
    fc.record({
      profile: anyProfile,
      source: anySource(assets.source_asset),
      destination: anyDestination(assets.destination_asset),
      source_asset: fc.constant(assets.source_asset),
      destination_asset: fc.constant(assets.destination_asset),
    }),
  )
  .map((rule): RuleSpec => {
    const { destination, profile } = rule
    // A payout to the same profile must change the asset.
    const isItself = destination.to === 'profile' && destination.profile === profile
    if (!isItself || rule.source_asset !== rule.destination_asset) return rule
    return { ...rule, destination: { to: 'profile', profile: (profile + 1) % 3 } }
  })

/** Most steps of the worker succeed, so that some orchestrations get far enough to fail late. */
const anyFailures = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom<Failure>('BEFORE', 'AFTER') },
  ),
  { minLength: 10, maxLength: 60, size: 'max' },
)
const aStep = <S extends Step['step'], R>(step: S, rest: { [K in keyof R]: fc.Arbitrary<R[K]> }) =>
  fc.record(rest).map((values) => ({ step, ...values }))
const ofWorker = { failing: anyFailures, workers: fc.integer({ min: 1, max: 2 }) }
const anyRuleStep = aStep('rule', { rule: anyRule })
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: anyRuleStep },
  { weight: 1, arbitrary: aStep('delete', { rule: fc.nat() }) },
  {
    weight: 10,
    arbitrary: aStep('send', { place: fc.nat(), asset: fc.nat(), network: fc.nat(), amount: anySum }),
  },
  {
    weight: 3,
    arbitrary: aStep('deposit', { profile: anyProfile, asset: fc.constantFrom(...ASSETS), amount: anySum }),
  },
  { weight: 3, arbitrary: aStep('direct', { order: anyRule, named: fc.boolean(), amount: anySum }) },
  {
    weight: 1,
    arbitrary: aStep('stand', {
      identity: fc.nat(1),
      standing: fc.constantFrom(
        { status: 'DENIED' as const },
        { status: 'APPROVED' as const },
        { user_disabled: true },
        { user_disabled: false },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: aStep('spend', { profile: anyProfile, asset: fc.constantFrom(...ASSETS), all: fc.boolean() }),
  },
  { weight: 3, arbitrary: aStep('pay', ofWorker) },
  { weight: 2, arbitrary: aStep('settle', ofWorker) },
)

/** A payout, and its holders, who must not be barred. */
interface Order {
  profile: number
  source_asset: string
  destination_asset: string
  destination: Destination
  amount: bigint
  holders: number[]
}

/** The expected outcome of an order. */
interface Expected {
  order: Order
  rule: string | undefined
  status: Orchestration['status']
  reason?: RegExp
  /** Returns the debited money. */
  undo?: () => void
}

/** A place that receives deposits. */
interface Place {
  id: string
  profile: number
  /** A fiat place has a memo; a crypto place has an address of a network. */
  memo?: string
  address?: { network: CryptoNetwork; address: string }
  /** The asset of most deposits here. */
  asset: string
  toUsd?: boolean
  identity?: number
}

type Payable = { whole: bigint; fee: bigint } | { refusal: RegExp; status: number }

/** The orchestrations of one customer as a person would keep them: in memory, one after the other. */
class Model {
  readonly started: Expected[] = []
  /** The orchestration that each deposit has started, if any. */
  readonly deposits: (Expected | undefined)[] = []
  /** The balance of each account in each asset. Money comes from outside and goes back there. */
  readonly books = new Map<string, bigint>()
  readonly rules: { id: string; spec: RuleSpec; sourceId: string; active: boolean }[] = []
  readonly standing = [
    { status: 'APPROVED', user_disabled: false },
    { status: 'APPROVED', user_disabled: false },
  ]
  #unpaid: Expected[] = []
  #unsettled: Expected[] = []

  has = (profile: number, asset: string): bigint => this.books.get(`profile ${profile} ${asset}`) ?? 0n

  move(asset: string, amount: bigint, from: string, to: string): void {
    for (const [account, change] of [
      [`${from} ${asset}`, -amount],
      [`${to} ${asset}`, amount],
    ] as const) {
      this.books.set(account, (this.books.get(account) ?? 0n) + change)
    }
  }

  /** Moves the same value in another asset, through a conversion. */
  #moveAs(order: Order, amount: bigint, to: string): void {
    const { profile, source_asset, destination_asset } = order
    if (source_asset === destination_asset) return this.move(source_asset, amount, `profile ${profile}`, to)
    this.move(source_asset, amount, `profile ${profile}`, 'conversion')
    this.move(destination_asset, amount, 'conversion', to)
  }

  isBarred = (holders: number[]): boolean =>
    holders.some((identity) => {
      const { status, user_disabled } = this.standing[identity]!
      return user_disabled || status !== 'APPROVED'
    })

  activeRule(sourceId: string, asset: string) {
    return this.rules.find(
      (rule) => rule.active && rule.sourceId === sourceId && rule.spec.source_asset === asset,
    )
  }

  arrives(profile: number, profileId: string, asset: string, amount: bigint, place?: Place): void {
    const converts = place?.toUsd === true && STABLECOINS.includes(asset) && amount % 10n ** 16n === 0n
    const credited = converts ? 'USD' : asset
    if (converts) {
      this.move(asset, amount, 'outside', 'conversion')
      this.move('USD', amount, 'conversion', `profile ${profile}`)
    } else {
      this.move(asset, amount, 'outside', `profile ${profile}`)
    }
    const own = place && this.activeRule(place.id, credited)
    const rule = own ?? this.activeRule(profileId, credited)
    const holders = [...holdersOf(profile), ...(place?.identity === undefined ? [] : [place.identity])]
    const expected: Expected | undefined = rule && {
      order: { ...rule.spec, profile, amount, holders },
      rule: rule.id,
      status: 'PROCESSING',
    }
    this.deposits.push(expected)
    if (expected !== undefined) {
      this.started.push(expected)
      this.#unpaid.push(expected)
    }
  }

  /** Debits a direct orchestration, or returns the status of its refusal. */
  direct(order: Order): number {
    const payable = this.#payable(order, { whole: true })
    if ('refusal' in payable) return payable.status
    const expected: Expected = { order, rule: undefined, status: 'PROCESSING' }
    this.started.push(expected)
    this.#take(expected, payable)
    return 200
  }

  /** Pays the waiting payouts. Returns whether the money was short, so that the order of payouts matters. */
  pay(): { short: boolean } {
    let short = false
    for (const expected of this.#unpaid) {
      const payable = this.#payable(expected.order, { whole: false })
      if ('refusal' in payable) {
        Object.assign(expected, { status: 'FAILED', reason: payable.refusal })
        short ||= payable.refusal === SHORT
      } else this.#take(expected, payable)
    }
    this.#unpaid = []
    return { short }
  }

  /** Ends the payments that were sent. */
  settle(): void {
    for (const expected of this.#unsettled) {
      const { destination, destination_asset } = expected.order
      const outcome = 'outcome' in destination ? destination.outcome : 'ORDINARY'
      if (outcome === 'NEVER_CONFIRMS') continue
      const reason = REFUSED[outcome]
      if (reason === undefined) {
        expected.status = 'COMPLETED'
        this.move(destination_asset, this.#sent.get(expected)!, 'in_flight', 'outside')
      } else {
        Object.assign(expected, { status: 'FAILED', reason })
        expected.undo!()
      }
    }
    this.#unsettled = []
  }
  #sent = new Map<Expected, bigint>()

  #take(expected: Expected, { whole, fee }: { whole: bigint; fee: bigint }): void {
    const { order } = expected
    const { destination, profile, source_asset, destination_asset } = order
    if (destination.to === 'profile') {
      this.#moveAs(order, whole, `profile ${destination.profile}`)
      expected.status = 'COMPLETED'
      return
    }
    this.#moveAs(order, whole, 'in_flight')
    this.move(destination_asset, fee, 'in_flight', 'fees')
    this.#unsettled.push(expected)
    this.#sent.set(expected, whole - fee)
    expected.undo = () => {
      this.move(destination_asset, fee, 'fees', 'in_flight')
      if (source_asset === destination_asset) {
        return this.move(source_asset, whole, 'in_flight', `profile ${profile}`)
      }
      this.move(destination_asset, whole, 'in_flight', 'conversion')
      this.move(source_asset, whole, 'conversion', `profile ${profile}`)
    }
  }

  /** Returns the amount and fee of a payout, or its refusal. */
  #payable(order: Order, only: { whole: boolean }): Payable {
    const { destination, destination_asset, source_asset, amount, profile, holders } = order
    const network = destination.to === 'crypto' ? destination.network : undefined
    const rest = amount % unitOf(source_asset, destination_asset, network)
    const whole = amount - rest
    if (amount === 0n || (only.whole && rest !== 0n)) return { refusal: /never/, status: 400 }
    if (whole === 0n) return { refusal: /too little/, status: 400 }
    let fee = 0n
    let [minimum, maximum] = ['0', destination.to === 'fiat' ? '10000000' : text(whole)]
    if (network !== undefined) {
      const carried = findAsset(destination_asset)!.networks[network]!
      fee = parseAmount(carried.fee, DECIMALS)!
      ;({ minimum, maximum } = carried)
    }
    if (whole - fee < parseAmount(minimum, DECIMALS)!) return { refusal: /below the minimum/, status: 400 }
    if (whole - fee > parseAmount(maximum, DECIMALS)!) return { refusal: /above the maximum/, status: 400 }
    if (this.isBarred(holders)) return { refusal: /nothing can be withdrawn/, status: 403 }
    if (this.has(profile, source_asset) < whole) return { refusal: SHORT, status: 403 }
    return { whole, fee }
  }
}
const SHORT = /available and .* needed/
const holdersOf = (profile: number) => (profile === ACCOUNTS_PROFILE ? [0] : [])

/** Applies the steps to the service and to the model, and compares the two. */
class Play {
  readonly model = new Model()
  readonly world: World
  /** Places of rules, and some without a rule. */
  #places: Place[]

  constructor(world: World, places: Place[]) {
    this.world = world
    this.#places = places
  }

  static async begin(): Promise<Play> {
    const world = await newWorld()
    const fiat = (profile: number, more: object = {}) =>
      post<{ id: string; memo_id: string }>(world, '/v2/transfer/fiat-deposit-instructions', {
        profile_id: world.profiles[profile],
        fiat_network: 'WIRE',
        ...more,
      })
    const crypto = (profile: number, crypto_network: CryptoNetwork, conversion_target_asset: string) =>
      post<{ id: string; address: string }>(world, '/v2/transfer/deposit-addresses', {
        profile_id: world.profiles[profile],
        crypto_network,
        conversion_target_asset,
      })
    const [plain, named] = [await fiat(0), await fiat(1, { identity_id: world.identities[1] })]
    const [toUsd, asIs] = [await crypto(0, 'ETHEREUM', 'USD'), await crypto(1, 'SOLANA', 'NO_CONVERSION')]
    const play = new Play(world, [
      { ...plain, memo: plain.memo_id, profile: 0, asset: 'USD' },
      { ...named, memo: named.memo_id, profile: 1, asset: 'USD', identity: 1 },
      {
        id: toUsd.id,
        address: { network: 'ETHEREUM', address: toUsd.address },
        profile: 0,
        asset: 'USDG',
        toUsd: true,
      },
      { id: asIs.id, address: { network: 'SOLANA', address: asIs.address }, profile: 1, asset: 'USDP' },
    ])
    for (const profile of [0, 1, 2]) {
      for (const asset of ASSETS) {
        await play.take({ step: 'deposit', profile, asset, amount: { base: '10', dust: 0 } })
      }
    }
    return play
  }

  async take(step: Step): Promise<void> {
    const { model, world } = this
    switch (step.step) {
      case 'rule':
        return this.#addRule(step.rule)
      case 'delete': {
        const rule = pick(model.rules, step.rule)
        if (rule === undefined) return
        await deleteRule(world, rule)
        rule.active = false
        return
      }
      case 'send':
        return this.#send(step)
      case 'deposit': {
        const { profile, asset } = step
        const amount = amountOf(step.amount, asset, networksOf(asset)[0])
        if (amount === 0n) return
        await deposit(world, profile, asset, text(amount))
        return model.arrives(profile, world.profiles[profile]!, asset, amount)
      }
      case 'direct':
        return this.#direct(step)
      case 'stand': {
        await setStanding(world, step.identity, step.standing)
        Object.assign(model.standing[step.identity]!, step.standing)
        return
      }
      case 'spend':
        return this.#spend(step)
      case 'pay': {
        const { short } = model.pay()
        const failures = new Failures((at) => step.failing[at])
        const db = failures.database(service.db)
        for (let round = 1; round <= 3; round++) {
          await Promise.all(
            // If two payouts share a short balance, either may be first.
            Array.from({ length: short ? 1 : step.workers }, () =>
              runOrchestrations(db, contextWith(service.networks)).catch(() => undefined),
            ),
          )
        }
        return payAll()
      }
      case 'settle': {
        model.settle()
        const failures = new Failures((at) => step.failing[at])
        const [db, networks] = [failures.database(service.db), failures.networks(service.networks)]
        for (let round = 1; round <= 4; round++) {
          await hurry()
          await Promise.all(
            Array.from({ length: step.workers }, () =>
              settleWithdrawals(db, networks).catch(() => undefined),
            ),
          )
        }
        // A withdrawal of a barred identity waits. It goes on when the identity is no longer barred.
        const { rows: barred } = await service.owner.query<{
          id: string
          status: string
          user_disabled: boolean
        }>('select id, status, user_disabled from identities')
        await service.owner.query(`update identities set status = 'APPROVED', user_disabled = false`)
        await settleAll()
        for (const { id, status, user_disabled } of barred)
          await service.owner.query('update identities set status = $2, user_disabled = $3 where id = $1', [
            id,
            status,
            user_disabled,
          ])
        return
      }
    }
  }

  async #addRule(spec: RuleSpec): Promise<void> {
    const { profile, source, source_asset } = spec
    const profileId = this.world.profiles[profile]!
    const taken = source.kind === 'profile' && this.model.activeRule(profileId, source_asset) !== undefined
    const answer = await createRule(this.world, spec)
    // A rule with its own address is for customers who may deposit.
    const isBarred = source.kind === 'crypto' && this.model.isBarred(holdersOf(profile))
    expect({ spec, ...answer }).toMatchObject({ status: taken ? 409 : isBarred ? 403 : 200 })
    if (taken || isBarred) return
    const { id, source: made } = answer.body.rule
    const sourceId = made.fiat?.deposit_instructions_id ?? made.crypto?.address_id ?? profileId
    this.model.rules.push({ id, spec, sourceId, active: true })
    const place = { id: sourceId, profile, asset: source_asset }
    if (made.fiat !== undefined) this.#places.push({ ...place, memo: made.fiat.memo_id })
    if (made.crypto !== undefined) this.#places.push({ ...place, address: made.crypto })
  }

  async #send({ place: number, asset, network, amount }: Extract<Step, { step: 'send' }>): Promise<void> {
    const { model, world } = this
    // Mostly a place of a rule: the first four places have none.
    const own = this.#places.slice(4)
    const place = pick(number % 4 > 0 && own.length > 0 ? own : this.#places, number)!
    const { profile, memo, address } = place
    const profileId = world.profiles[profile]!
    if (memo !== undefined) {
      const sum = amountOf(amount, 'USD', undefined)
      if (sum === 0n) return
      await wire(world, memo, text(sum))
      return model.arrives(profile, profileId, 'USD', sum, place)
    }
    const { family } = NETWORKS[address!.network]
    const reachable = CRYPTO_NETWORKS.filter((one) =>
      family === 'evm' ? NETWORKS[one].family === family : one === address!.network,
    )
    // Mostly the asset of the place.
    const symbol = asset % 3 > 0 ? place.asset : pick([...STABLECOINS, 'ETH'], asset)!
    const crypto_network = pick(
      reachable.filter((one) => networksOf(symbol).includes(one)),
      network,
    )
    const sum = amountOf(amount, symbol, crypto_network)
    if (crypto_network === undefined || sum === 0n) return
    const to = { crypto_network, crypto_address: address!.address }
    await deposit(world, profile, symbol, text(sum), to)
    model.arrives(profile, profileId, symbol, sum, place)
  }

  async #direct({ order, named, amount: sum }: Extract<Step, { step: 'direct' }>): Promise<void> {
    const { model, world } = this
    const { profile, source_asset, destination_asset } = order
    const amount = amountOf(sum, source_asset, undefined)
    const holders = [...holdersOf(profile), ...(named ? [1] : [])]
    const { status } = await start(world, {
      ref_id: randomUUID(),
      source_asset,
      destination_asset,
      source_amount: text(amount),
      source: { profile: { profile_id: world.profiles[profile] } },
      destination: await destinationOf(world, order.destination),
      ...(named && { identity_id: world.identities[1] }),
    })
    const has = text(model.has(profile, source_asset))
    expect({ order, named, amount, has, status }).toMatchObject({
      status: model.direct({ ...order, amount, holders }),
    })
  }

  async #spend({ profile, asset, all }: Extract<Step, { step: 'spend' }>): Promise<void> {
    const { model, world } = this
    const unit = unitOf(asset, asset, undefined)
    const available = model.has(profile, asset)
    const amount = all ? available : available - unit
    if (amount <= 0n) return
    const { status } = await world.customer.call('POST', '/v2/transfer/internal', {
      asset,
      amount: text(amount),
      from_profile_id: world.profiles[profile],
      to_profile_id: world.profiles[SPENT_TO],
    })
    const isBarred = model.isBarred(holdersOf(profile))
    expect(status).toBe(isBarred ? 403 : 200)
    if (!isBarred) model.move(asset, amount, `profile ${profile}`, `profile ${SPENT_TO}`)
  }

  /** Lets everything end, and compares the result with the model. */
  async end(): Promise<void> {
    await this.take({ step: 'pay', failing: [], workers: 1 })
    await this.take({ step: 'settle', failing: [], workers: 1 })
    const { world, model } = this
    const { orchestrations, deposits } = await requireSound(world)
    expect(orchestrations).toHaveLength(model.started.length)
    orchestrations.forEach((orchestration, index) => {
      const { order, rule, status, reason } = model.started[index]!
      const { source_asset, destination_asset } = order
      expect({ order, ...orchestration }).toMatchObject({
        ...{ source_asset, destination_asset, status },
        source_amount: text(order.amount),
        profile_id: world.profiles[order.profile],
      })
      expect(orchestration.orchestration_rule_id).toBe(rule)
      if (reason !== undefined) expect(orchestration.fail_reason!.detail).toMatch(reason)
    })
    const startedOf = new Map(model.started.map((expected, index) => [expected, orchestrations[index]!.id]))
    expect(deposits.map(({ group_id }) => group_id)).toEqual(
      model.deposits.map((expected) => expected && startedOf.get(expected)),
    )
    expect(await this.#accounts()).toEqual(new Map([...model.books].filter(([, amount]) => amount !== 0n)))
  }

  /** The ledger's balances, with the model's account names. */
  async #accounts(): Promise<Map<string, bigint>> {
    const { rows } = await service.db.query<{
      account: string
      profile_id: string
      asset: string
      sum: string
    }>(
      `select account, profile_id, asset, sum(amount) from entries where customer_id = $1
       group by account, profile_id, asset`,
      [this.world.customer.customer_id],
    )
    const accounts = new Map<string, bigint>()
    for (const { account, profile_id, asset, sum } of rows) {
      const kind = account.replace(/:.*/, '').replace(/^(bank|simulated)$/, 'outside')
      const name = kind === 'profile' ? `profile ${this.world.profiles.indexOf(profile_id)}` : kind
      const key = `${name} ${asset}`
      accounts.set(key, (accounts.get(key) ?? 0n) + parseStoredAmount(sum, DECIMALS))
    }
    return new Map([...accounts].filter(([, amount]) => amount !== 0n))
  }
}

const pick = <T>(values: readonly T[], number: number): T | undefined => values[number % values.length]

/** The amount in an asset, with the decimals of the network that carries it, if any. */
const amountOf = ({ base, dust }: Sum, asset: string, network: CryptoNetwork | undefined): bigint =>
  parseAmount(base, DECIMALS)! + BigInt(dust) * unitOf(asset, asset, network)

test('with any deposits, orders, payments, bars and failures, the result equals the model', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyRuleStep, { minLength: 2, maxLength: 6, size: 'max' }),
      fc.array(anyStep, { minLength: 15, maxLength: 40, size: 'max' }),
      async (rules, steps) => {
        const play = await Play.begin()
        for (const step of [...rules, ...steps]) await play.take(step)
        await play.end()
        await giveUp()
      },
    ),
    { ...runs(30), endOnFailure: true },
  )
  await requireClean()
})

test('an orchestration that the database refuses to advance keeps no other from its payout', async () => {
  const world = await newWorld()
  const rule = await newRule(world, {
    profile: 0,
    source: { kind: 'profile' },
    source_asset: 'USDG',
    destination_asset: 'USDG',
    destination: { to: 'profile', profile: SPENT_TO },
  })
  const started: Orchestration[] = []
  for (const amount of ['1', '2', '3'])
    started.push(await startedBy(world, await deposit(world, 0, 'USDG', amount)))
  expect(started).toHaveLength(3)
  const odd = started[1]!
  await refusing(service, 'orchestrations', `id <> '${odd.id}' or status = 'PROCESSING'`, async () => {
    const running = runOrchestrations(service.db, contextWith(service.networks))
    await expect(running).rejects.toMatchObject({ errors: [{ record: `orchestration ${odd.id}` }] })
  })
  const statuses = await Promise.all(started.map(async ({ id }) => (await read(world, id)).status))
  expect(statuses).toEqual(['COMPLETED', 'PROCESSING', 'COMPLETED'])
  await payAll()
  expect((await read(world, odd.id)).status).toBe('COMPLETED')
  await deleteRule(world, rule)
})
