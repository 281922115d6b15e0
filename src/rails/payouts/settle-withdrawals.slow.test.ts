/*
 * Invariants of every withdrawal, wherever and however often the worker fails, and however many workers there are:
 * 1. it is paid exactly once or not at all: one transaction on its network if it was paid, none if it was refused;
 * 2. the bytes of a broadcast were recorded before, and are the same in every broadcast;
 * 3. a refused withdrawal returns its total, to the last unit, in the debited asset;
 * 4. no money appears or vanishes: per asset, profiles + in flight + custody + wired + fees equal the deposits;
 * 5. it ends as its destination prescribes, unless the network never confirms it;
 * 6. a failing network delays no other network, and a failing customer no other customer.
 */
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { dieAtEachStep, Failures, type Failure } from '../../../test/failures.ts'
import { partOf, runs } from '../../../test/seed.ts'
import { credit, newCustomer, TEST_ORIGIN, ownTestService } from '../../../test/support.ts'
import type { TestCustomer } from '../../../test/support.ts'
import { availableOf, networksWith as changed, readTransfer } from '../../../test/payouts.ts'
import { hurryUnlocked, settle as settleIn } from '../../../test/work-off.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { ASSETS, CRYPTO_NETWORKS, decimalsOf, NETWORKS } from '../../contract/assets/catalogue.ts'
import type { Asset, CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { openDatabase, type Database } from '../../db/database.ts'
import { RecordFailure } from '../../db/each-alone.ts'
import {
  TRANSFER_COLUMNS,
  transferToWire,
  type Transfer,
  type TransferRow,
} from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'
import {
  MAGIC_OUTCOMES,
  magicAccountNumber,
  magicAddress,
  type MagicOutcome,
} from '../../networks/simulated/magic-addresses.ts'
import type {
  BroadcastWithdrawal,
  PayoutNetwork,
  NetworkAdapter,
  Networks,
  Withdrawal,
} from '../../networks/network.ts'
import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import { resolveWithdrawal } from './resolve-withdrawal.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'

// No hold ends by time here: `hurry` ends it.
const service = await ownTestService({ BURSAR_SIMULATED_HOLD_MS: '3600000' })
// Only their own test handles withdrawals that never confirm.
afterEach(() => giveUp())

// ---------------------------------------------------------------------------------------------- withdrawals

type Outcome = MagicOutcome | 'ORDINARY'
const OUTCOMES: Outcome[] = ['ORDINARY', ...MAGIC_OUTCOMES]

const ORDINARY_DESTINATION = Buffer.from('an ordinary destination address!')
/** Returns an address; for a wire, an account number. */
function destinationOf(network: PayoutNetwork, outcome: Outcome): string | undefined {
  if (network === 'WIRE') return outcome === 'ORDINARY' ? '000987654321' : magicAccountNumber(outcome)
  return outcome === 'ORDINARY'
    ? addressFromBytes(network, ORDINARY_DESTINATION)
    : magicAddress(network, outcome)
}

const EVERY_NETWORK: readonly PayoutNetwork[] = [...CRYPTO_NETWORKS, 'WIRE']
/** Every network with this outcome, and every asset that the network lists. */
const networksWith = (outcome: Outcome) =>
  EVERY_NETWORK.filter((network) => destinationOf(network, outcome) !== undefined)
const assetsOn = (network: PayoutNetwork) =>
  ASSETS.filter(({ symbol, networks }) => (network === 'WIRE' ? symbol === 'USD' : networks[network]))

/** The smallest withdrawal of an asset times a factor, with an odd last digit. */
function amountOf(asset: Asset, network: PayoutNetwork, times = 2): string {
  const { minimum, decimals } = network === 'WIRE' ? { minimum: '0.01', ...asset } : asset.networks[network]!
  const scale = Math.min(asset.decimals, decimals)
  return formatAmount(parseAmount(minimum, scale)! * BigInt(times) + 7n, scale)
}

interface Order {
  network: PayoutNetwork
  asset?: Asset
  outcome: Outcome
  times?: number
  /** Debits USD instead of the asset, if that is possible. */
  fromUsd?: boolean
}

/** Withdrawals that never confirm. */
const endless: string[] = []

/** Orders a withdrawal through the API, from a balance that was credited with slightly more. */
async function withdraw(customer: TestCustomer, order: Order): Promise<Transfer> {
  const { network, outcome, times, fromUsd = false } = order
  const asset = order.asset ?? assetsOn(network)[0]!
  const usd = fromUsd && asset.platformStablecoin
  const balanceAsset = usd ? 'USD' : asset.symbol
  await credit(service.ledger, customer, balanceAsset, formatAmount(1_000n, 0))
  const destination = destinationOf(network, outcome)!
  const { status, body } = await customer.call<Transfer>(
    'POST',
    `/v2/transfer/${network === 'WIRE' ? 'fiat' : 'crypto'}-withdrawals`,
    {
      profile_id: customer.profile_id,
      asset: asset.symbol,
      amount: usd ? String(times ?? 2) : amountOf(asset, network, times),
      ...(network === 'WIRE'
        ? { fiat_account_id: await newFiatAccount(customer, destination) }
        : { balance_asset: balanceAsset, crypto_network: network, destination_address: destination }),
    },
  )
  expect({ status, body }).toMatchObject({ status: 200, body: { status: 'PENDING' } })
  if (outcome === 'NEVER_CONFIRMS') endless.push(body.id)
  return body
}

async function newFiatAccount(customer: TestCustomer, account_number: string): Promise<string> {
  const { body } = await customer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number } },
  })
  return body.id
}

// ---------------------------------------------------------------------------------------------- the worker

/** Makes all deferred work due now. */
const hurry = () => hurryUnlocked(service.db)
const giveUp = () => service.db.query('update outgoing_transfers set due_at = null')

/**
 * Whether only withdrawals that never confirm are left, and these are on their networks. The worker then only asks
 * for their status. What a failed test has given up is not waited for.
 */
async function isSettled(): Promise<boolean> {
  const { rowCount } = await service.db.query(
    `select from transfers t left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
     where t.status = 'PENDING' and (t.id <> all ($1) or b.state is distinct from 'BROADCAST')
       and (b.transfer_id is null or b.due_at is not null)
     limit 1`,
    [endless],
  )
  return rowCount === 0
}

/** Runs a failing worker until all is settled, at most for this many rounds, and then a round without work. */
async function failFor(roundsMax: number, work: () => Promise<unknown>): Promise<void> {
  for (let round = 1, isLast = false; round <= roundsMax && !isLast; round++) {
    isLast = await isSettled()
    await hurry()
    await work()
  }
}

/** Far more rounds than any withdrawal needs: new, held, signed, broadcast, dropped, signed, broadcast, done. */
const ROUNDS_MAX = 60

/** Runs the worker until only withdrawals that never confirm are left. */
async function settleAll(networks = service.networks, db: Database = service.db): Promise<void> {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    await hurry()
    await settleWithdrawals(db, networks)
    if (await isSettled()) return
    // A cut connection may hold its locks a moment longer.
    if (round > 10) await pause(20)
  }
  throw new Error('the worker does not come to an end')
}

/** Returns the transactions of a transfer on the simulated networks: the outside view. */
async function onChain(transferId: string) {
  const { rows } = await service.db.query<{
    hash: string
    raw_transaction: Buffer
    broadcast_at: string
    dropped_at: string | null
  }>(
    `select hash, raw_transaction, broadcast_at, dropped_at from simulated_chain
     where position(convert_to($1, 'UTF8') in raw_transaction) > 0`,
    [transferId],
  )
  return rows
}

/** Returns the balances of one transfer by account and asset, without zeros. */
async function holdings(transferId: string): Promise<Record<string, string>> {
  const { rows } = await service.db.query<{ account: string; asset: string; sum: string }>(
    `select account, asset, sum(amount) from entries where transfer_id = $1
     group by account, asset having sum(amount) <> 0`,
    [transferId],
  )
  return Object.fromEntries(
    rows.map(({ account, asset, sum }) => {
      const decimals = decimalsOf(asset)
      return [`${account} ${asset}`, formatAmount(parseStoredAmount(sum, decimals), decimals)]
    }),
  )
}

const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

/** Records every call to the networks, in order. */
class Spy {
  readonly calls: { call: string; transfer_id: string; raw_transaction?: Buffer; answer: unknown }[] = []
  readonly networks: Networks

  constructor(latencyMs: () => number = () => 0) {
    const adapter = service.networks.get('ETHEREUM')!
    const watch =
      <W extends { transfer_id: string; raw_transaction?: Buffer }, A>(
        call: string,
        work: (withdrawals: W[]) => Promise<A[]>,
      ) =>
      async (withdrawals: W[]): Promise<A[]> => {
        await pause(latencyMs())
        const answers = await work(withdrawals)
        withdrawals.forEach(({ transfer_id, raw_transaction }, index) => {
          this.calls.push({
            call,
            transfer_id,
            ...(raw_transaction && { raw_transaction }),
            answer: answers[index],
          })
        })
        await pause(latencyMs())
        return answers
      }
    const watched: NetworkAdapter = {
      pollMs: adapter.pollMs,
      review: (withdrawal) => {
        const answer = adapter.review(withdrawal)
        this.calls.push({ call: 'review', transfer_id: withdrawal.transfer_id, answer })
        return answer
      },
      sign: (tx, withdrawals) => watch('sign', (all: Withdrawal[]) => adapter.sign(tx, all))(withdrawals),
      broadcast: watch('broadcast', (withdrawals) => adapter.broadcast(withdrawals)),
      checkStatus: watch('progress', (withdrawals) => adapter.checkStatus(withdrawals)),
    }
    this.networks = new Map(EVERY_NETWORK.map((network) => [network, watched]))
  }

  of(call: string, { id }: { id: string }) {
    return this.calls.filter((made) => made.call === call && made.transfer_id === id)
  }
}

// ---------------------------------------------------------------------------------------------- each destination

const SOME_TEXT = expect.any(String) as string

/** Compares an ended withdrawal with the outcome that its destination prescribes. */
async function requireEnd(created: Transfer, ended: Transfer, outcome: Outcome): Promise<void> {
  const chain = await onChain(created.id)
  const { asset, amount, fee, total } = created
  const network = created.crypto_network ?? 'WIRE'
  const destination_address = created.destination_address ?? destinationOf(network, outcome)!

  if (outcome === 'NEVER_CONFIRMS') {
    expect(ended).toEqual(created)
    expect(chain).toHaveLength(1)
    expect(await holdings(created.id)).toMatchObject({ [`in_flight:${network} ${asset}`]: amount })
    return
  }

  const refusals: Partial<Record<Outcome, Partial<Transfer>>> = {
    INVALID_DESTINATION_ADDRESS: {
      status_details: { invalid_destination_address: { message: SOME_TEXT, destination_address } },
    },
    STALE_FEE_QUOTE: { status_details: { stale_fee_quote: { message: SOME_TEXT } } },
    MISSING_TRUSTLINE: {
      status_details: { missing_trustline: { message: SOME_TEXT, destination_address, asset } },
    },
    MAX_RENT_EXCEEDED: { status_details: { max_rent_exceeded: { message: SOME_TEXT, destination_address } } },
    TRAVEL_RULE_REJECTED: { secondary_status: { name: 'TRAVEL_RULE_REJECTED', detail: SOME_TEXT } },
    CUSTOMER_REJECTED: { secondary_status: { name: 'CUSTOMER_REJECTED', detail: SOME_TEXT } },
  }
  const updated_at = SOME_TEXT
  expect(ended.updated_at > created.updated_at).toBe(true)

  const refusal = refusals[outcome]
  if (refusal !== undefined) {
    expect(ended).toEqual({ ...created, status: 'FAILED', updated_at, ...refusal })
    expect(chain).toEqual([])
    expect(await holdings(created.id)).toEqual({})
    return
  }

  expect(chain).toHaveLength(1)
  const { hash, raw_transaction } = chain[0]!
  const onNetwork = network !== 'WIRE' && { crypto_tx_hash: hash, crypto_tx_index: '0' }
  expect(ended).toEqual({ ...created, status: 'COMPLETED', updated_at, ...onNetwork })
  if (network !== 'WIRE') expect(hash).toMatch(HASHES[NETWORKS[network].family])
  expect(JSON.parse(raw_transaction.toString())).toMatchObject({ asset, amount, network })
  const paidFrom =
    created.balance_asset === asset
      ? { [`profile ${asset}`]: `-${total}` }
      : {
          [`profile ${created.balance_asset!}`]: `-${total}`,
          [`conversion ${created.balance_asset!}`]: total,
          [`conversion ${asset}`]: `-${total}`,
        }
  expect(await holdings(created.id)).toEqual({
    ...paidFrom,
    [`${network === 'WIRE' ? 'bank' : `simulated:${network}`} ${asset}`]: amount,
    ...(fee !== '0' && { [`fees ${asset}`]: fee }),
  })
}

const HASHES = {
  evm: /^0x[0-9a-f]{64}$/,
  bitcoin: /^[0-9a-f]{64}$/,
  stellar: /^[0-9a-f]{64}$/,
  solana: /^[1-9A-HJ-NP-Za-km-z]{86,88}$/,
}

describe('a withdrawal to', () => {
  test.each(OUTCOMES)('%s ends as documented, on every network', async (outcome) => {
    const customer = await newCustomer(service)
    const orders = networksWith(outcome).flatMap((network): Order[] => {
      const stablecoin = assetsOn(network).find((asset) => asset.platformStablecoin)
      const fromUsd = stablecoin && { network, asset: stablecoin, outcome, fromUsd: true }
      return [
        { network, outcome },
        { network, asset: assetsOn(network).at(-1)!, outcome },
      ].concat(fromUsd ?? [])
    })
    const created: Transfer[] = []
    const balances = new Map<string, string>()
    for (const order of orders) {
      const transfer = await withdraw(customer, order)
      created.push(transfer)
      const asset = transfer.balance_asset!
      balances.set(asset, await availableOf(customer, asset))
    }
    await settleAll()

    for (const transfer of created)
      await requireEnd(transfer, await readTransfer(customer, transfer), outcome)
    const isRefused = (await readTransfer(customer, created[0]!)).status === 'FAILED'
    for (const [asset, before] of balances) {
      const decimals = decimalsOf(asset)
      const back = created
        .filter(({ balance_asset }) => isRefused && balance_asset === asset)
        .reduce((sum, { total }) => sum + parseAmount(total, decimals)!, 0n)
      const expected = formatAmount(parseAmount(before, decimals)! + back, decimals)
      expect([asset, await availableOf(customer, asset)]).toEqual([asset, expected])
    }
    await requireClean()
  })

  test.each(['TRAVEL_RULE_INFO_REQUESTED', 'PENDING_CUSTOMER_APPROVAL'] as const)(
    '%s is held with this secondary status, unsigned, until the hold is over',
    async (outcome) => {
      const customer = await newCustomer(service)
      const created = await withdraw(customer, { network: 'SOLANA', outcome })
      const spy = new Spy()
      // The hold lasts an hour, so that no round of the worker meets its end.
      for (let round = 1; round <= 5; round++) await settleWithdrawals(service.db, spy.networks)
      const held = await readTransfer(customer, created)
      expect(held).toEqual({
        ...created,
        secondary_status: { name: outcome, detail: expect.any(String) as string },
        ...(outcome === 'PENDING_CUSTOMER_APPROVAL' && {
          status_details: { pending_customer_approval: { message: expect.any(String) as string } },
        }),
        updated_at: expect.any(String) as string,
      })
      expect(spy.calls).toMatchObject([{ call: 'review', transfer_id: created.id }])

      await hurry()
      await settleWithdrawals(service.db, spy.networks)
      const { secondary_status, status_details, ...released } = await readTransfer(customer, created)
      expect([secondary_status, status_details]).toEqual([undefined, undefined])
      expect(released.status).toBe('PENDING')
      await settleAll(spy.networks)
      expect(await readTransfer(customer, created)).toMatchObject({ status: 'COMPLETED' })
      expect(spy.of('review', created)).toHaveLength(1)
    },
  )

  test('DROPPED_ONCE is broadcast again with the same bytes after it was dropped', async () => {
    const customer = await newCustomer(service)
    const created = await withdraw(customer, { network: 'LITECOIN', outcome: 'DROPPED_ONCE' })
    const spy = new Spy()
    await settleAll(spy.networks)
    const [first, second, ...others] = spy.of('broadcast', created)
    expect(others).toEqual([])
    expect(second!.raw_transaction).toEqual(first!.raw_transaction)
    expect(spy.of('sign', created)).toHaveLength(1)
    const [transaction] = await onChain(created.id)
    expect(transaction!.raw_transaction).toEqual(first!.raw_transaction)
    expect(transaction!.broadcast_at > transaction!.dropped_at!).toBe(true)
    expect((await readTransfer(customer, created)).status).toBe('COMPLETED')
  })

  test('NEVER_CONFIRMS is polled repeatedly, and never paid again', async () => {
    const customer = await newCustomer(service)
    const created = await withdraw(customer, { network: 'BITCOIN_CASH', outcome: 'NEVER_CONFIRMS' })
    const spy = new Spy()
    await settleIn({ db: service.db, networks: spy.networks }, 8)
    expect(spy.of('progress', created).length).toBeGreaterThan(3)
    expect(spy.of('broadcast', created)).toHaveLength(1)
    expect((await readTransfer(customer, created)).status).toBe('PENDING')
    expect(await onChain(created.id)).toHaveLength(1)
  })

  test('an undecidable withdrawal stays PENDING with the reason: not refunded, replaced or signed again', async () => {
    const customer = await newCustomer(service)
    const spy = new Spy()
    const judged = {
      state: 'UNRESOLVED',
      reason: { code: 'UNRESOLVED', detail: 'the receipt lacks the transfer' },
    } as const
    let replacements = 0
    const adapter: NetworkAdapter = {
      ...spy.networks.get('ETHEREUM')!,
      signsAlone: true,
      stuckAfterMs: 0,
      checkStatus: async (withdrawals) => withdrawals.map(() => judged),
      replace: async (_tx, withdrawals) => {
        replacements += withdrawals.length
        return withdrawals.map(() => undefined)
      },
    }
    const unresolved: Networks = new Map([...spy.networks, ['ETHEREUM', adapter] as const])
    const settle = () => settleIn({ db: service.db, networks: unresolved }, 4)
    const created = await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' })
    await settle()
    const later = await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' })
    await settle()
    for (const one of [created, later]) {
      const { rows } = await service.db.query(
        'select state, waiting_code as code, waiting_detail as detail, due_at is not null as asked from outgoing_transfers where transfer_id = $1',
        [one.id],
      )
      expect(rows).toEqual([{ state: 'BROADCAST', ...judged.reason, asked: true }])
      expect(await readTransfer(customer, one)).toMatchObject({ status: 'PENDING' })
      expect(spy.of('sign', one)).toHaveLength(1)
      expect(spy.of('broadcast', one)).toHaveLength(1)
    }
    expect(replacements).toBe(0)
    // With a decidable answer of the network, the withdrawal ends and the reason is cleared.
    await settleAll(spy.networks)
    for (const one of [created, later]) await requireEnd(one, await readTransfer(customer, one), 'ORDINARY')
    await requireClean()
  })

  test.each(['checkStatus', 'broadcast'] as const)(
    'one for which %s throws keeps no other from its end, and an operator can end it',
    async (method) => {
      const customer = await newCustomer(service)
      const created: Transfer[] = []
      for (let count = 1; count <= 3; count++)
        created.push(await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' }))
      const [one, odd, other] = created as [Transfer, Transfer, Transfer]
      const ethereum = service.networks.get('ETHEREUM')!
      const failing = async <T>(withdrawals: Withdrawal[], ask: () => Promise<T[]>): Promise<T[]> => {
        if (withdrawals.some(({ transfer_id }) => transfer_id === odd.id)) throw new Error('an odd answer')
        return ask()
      }
      const adapter: NetworkAdapter = {
        ...ethereum,
        [method]: (asked: BroadcastWithdrawal[]) => failing<unknown>(asked, () => ethereum[method](asked)),
      }
      const networks: Networks = new Map([...service.networks, ['ETHEREUM', adapter] as const])
      const said: unknown[] = []
      for (let round = 1; round <= 6; round++) {
        await hurry()
        await settleWithdrawals(service.db, networks).catch((error: AggregateError) =>
          said.push(...(error.errors as unknown[])),
        )
      }
      for (const good of [one, other]) await requireEnd(good, await readTransfer(customer, good), 'ORDINARY')
      expect(await readTransfer(customer, odd)).toMatchObject({ status: 'PENDING' })
      expect(said[0]).toBeInstanceOf(RecordFailure)
      expect(said[0]).toMatchObject({ record: `withdrawal ${odd.id}`, cause: { message: 'an odd answer' } })
      if (method === 'checkStatus') {
        const { rows } = await service.db.query(
          'select state, waiting_code, waiting_detail from outgoing_transfers where transfer_id = $1',
          [odd.id],
        )
        const waiting_detail = expect.stringContaining('(an odd answer)') as string
        expect(rows).toEqual([{ state: 'BROADCAST', waiting_code: 'UNRESOLVED', waiting_detail }])
        // It may be mined yet: a refund might pay it twice.
        const resolve = (outcome: 'PAID' | 'NOT_PAID') =>
          resolveWithdrawal(service.db, networks, odd.id, {
            outcome,
            evidence: 'looked',
            origin: TEST_ORIGIN,
          })
        await expect(resolve('NOT_PAID')).rejects.toThrow('may be paid yet')
        expect(await resolve('PAID')).toMatchObject({ status: 'COMPLETED' })
      }
      await settleAll()
      expect(await readTransfer(customer, odd)).toMatchObject({ status: 'COMPLETED' })
      await requireClean()
    },
  )

  test('a magic destination in another spelling has the same outcome', async () => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'ETH', '1')
    const created = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: customer.profile_id,
      asset: 'ETH',
      crypto_network: 'BASE',
      destination_address: magicAddress('BASE', 'CUSTOMER_REJECTED')!.toLowerCase(),
      amount: '0.01',
    })
    await settleAll()
    await requireEnd(created.body, await readTransfer(customer, created.body), 'CUSTOMER_REJECTED')
  })
})

// ---------------------------------------------------------------------------------------------- failures

describe('when the worker dies', () => {
  const scenarios: [PayoutNetwork, Outcome][] = [
    ['ETHEREUM', 'ORDINARY'],
    ['ETHEREUM', 'DROPPED_ONCE'],
    ['ETHEREUM', 'STALE_FEE_QUOTE'],
    ['ETHEREUM', 'CUSTOMER_REJECTED'],
    ['ETHEREUM', 'TRAVEL_RULE_INFO_REQUESTED'],
    ['WIRE', 'DROPPED_ONCE'],
    ['WIRE', 'INVALID_DESTINATION_ADDRESS'],
  ]
  const cases = scenarios.flatMap((scenario) =>
    (['BEFORE', 'AFTER'] as const).map((failure) => [failure, ...scenario] as const),
  )

  test.each(partOf(cases))('%s any one step, %s: %s is settled once', async (failure, network, outcome) => {
    const customer = await newCustomer(service)
    await dieAtEachStep(failure, 13, async (failures) => {
      const created = await withdraw(customer, { network, outcome })
      const [db, networks] = [failures.database(service.db), failures.networks(service.networks)]
      await failFor(8, () => settleWithdrawals(db, networks).catch(() => undefined))
      await settleAll()
      await requireEnd(created, await readTransfer(customer, created), outcome)
    })
    await requireClean()
  })
})

// Both orders: in one of them the failing one comes first.
test.each([
  ['ETHEREUM', 'STELLAR'],
  ['STELLAR', 'ETHEREUM'],
] as const)('when %s fails, it holds up no other network and no other customer', async (failing, working) => {
  const customers = [await newCustomer(service), await newCustomer(service)]
  const withdrawAllOver = (network: CryptoNetwork) =>
    Promise.all(customers.map((customer) => withdraw(customer, { network, outcome: 'ORDINARY' })))
  const [down, up] = [await withdrawAllOver(failing), await withdrawAllOver(working)]
  const failures = new Failures(() => 'BEFORE').networks(service.networks)
  const networks = new Map([...service.networks, [failing, failures.get(failing)!] as const])
  for (let round = 1; round <= 5; round++) {
    await hurry()
    await expect(settleWithdrawals(service.db, networks)).rejects.toThrow()
  }
  const statuses = async (transfers: Transfer[]) =>
    (await Promise.all(transfers.map((transfer, index) => readTransfer(customers[index]!, transfer)))).map(
      ({ status }) => status,
    )
  expect(await statuses(up)).toEqual(['COMPLETED', 'COMPLETED'])
  expect(await statuses(down)).toEqual(['PENDING', 'PENDING'])
  await settleAll()
  expect(await statuses(down)).toEqual(['COMPLETED', 'COMPLETED'])
})

describe('a node', () => {
  const CUSTOMERS = 5
  const ANSWERS_MS = 300

  /** Ethereum, whose calls in `failing` take a while and then fail; `asked` counts the calls. */
  function ethereumFailing(failing: ('sign' | 'broadcast' | 'progress')[], failure: () => Error) {
    const real = service.networks.get('ETHEREUM')!
    const fail = async () => {
      ethereum.asked++
      await pause(ANSWERS_MS)
      throw failure()
    }
    const adapter = { ...real, ...Object.fromEntries(failing.map((call) => [call, fail])) }
    const networks: Networks = new Map([...service.networks, ['ETHEREUM', adapter] as const])
    const ethereum = { asked: 0, networks }
    return ethereum
  }
  const everyCustomer = <T>(make: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: CUSTOMERS }, (_, index) => make(index)))
  const standings = async (transfers: Transfer[]) => {
    const { rows } = await service.db.query<{ state: string; waiting_detail: string | null }>(
      'select state, waiting_detail from outgoing_transfers where transfer_id = any ($1)',
      [transfers.map(({ id }) => id)],
    )
    return rows
  }
  const times = <T>(value: T) => Array.from({ length: CUSTOMERS }, () => value)

  test('that does not answer costs one timeout per round; all other work goes on', async () => {
    const customers = await everyCustomer(() => newCustomer(service))
    const withdrawAll = (network: PayoutNetwork) =>
      everyCustomer((index) => withdraw(customers[index]!, { network, outcome: 'ORDINARY' }))
    const signed = await withdrawAll('ETHEREUM')
    const refusal = () => new NodeRefusal('broadcast: no')
    await settleWithdrawals(service.db, ethereumFailing(['broadcast'], refusal).networks)
    expect(await standings(signed)).toEqual(times({ state: 'SIGNED', waiting_detail: 'broadcast: no' }))
    const [fresh, elsewhere] = [await withdrawAll('ETHEREUM'), await withdrawAll('STELLAR')]
    await hurry()

    let failures = 0
    const down = ethereumFailing(
      ['sign', 'broadcast', 'progress'],
      () => new NodeFailure(`does not answer (${++failures})`),
    )
    await expect(settleWithdrawals(service.db, down.networks)).rejects.toThrow('5 steps')
    expect(down.asked).toBe(1)
    const waiting_detail = 'does not answer (1)'
    expect(await standings(fresh)).toEqual(times({ state: 'HELD', waiting_detail }))
    expect(await standings(signed)).toEqual(times({ state: 'SIGNED', waiting_detail }))
    expect(await standings(elsewhere)).toEqual(times({ state: 'BROADCAST', waiting_detail: null }))
    // The next round asks the node again.
    await hurry()
    await expect(settleWithdrawals(service.db, down.networks)).rejects.toThrow('5 steps')
    expect(down.asked).toBe(2)
    await settleAll()
    await requireClean()
  })

  test('that answers with a refusal is asked for every customer', async () => {
    const transfers = await everyCustomer(async () =>
      withdraw(await newCustomer(service), { network: 'ETHEREUM', outcome: 'ORDINARY' }),
    )
    const refusing = ethereumFailing(['sign'], () => new NodeRefusal('eth_call: no'))
    await settleWithdrawals(service.db, refusing.networks)
    // On a busy machine, the first is due again before the last was asked.
    expect(refusing.asked).toBeGreaterThanOrEqual(CUSTOMERS)
    expect(await standings(transfers)).toEqual(times({ state: 'HELD', waiting_detail: 'eth_call: no' }))
    await settleAll()
  })
})

describe('over a node', () => {
  /** ETHEREUM as a node outside of the database: first, each call does what `calls` names. */
  const overNode = (calls: Partial<NetworkAdapter>) =>
    changed(service.networks, { signsAlone: true, asksNode: true, ...calls })
  const inStates = async (transfers: Transfer[]) => {
    const { rows } = await service.db.query<{ state: string; count: number }>(
      `select coalesce(b.state, 'NEW') as state, count(*)::int
       from transfers t left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
       where t.id = any ($1) group by 1 order by 1`,
      [transfers.map(({ id }) => id)],
    )
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
  }

  const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 40_000 })

  test('signatures are recorded in small batches: a failure loses its own batch only', async () => {
    const customer = await newCustomer(service)
    const created: Transfer[] = []
    for (let order = 1; order <= 110; order++)
      created.push(await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' }))
    const real = service.networks.get('ETHEREUM')!
    let batches = 0
    const networks = overNode({
      sign: async (tx, withdrawals) => {
        if (++batches > 1) throw new Error('the worker died here')
        return real.sign(tx, withdrawals)
      },
    })
    await expect(settleWithdrawals(service.db, networks)).rejects.toThrow('steps of settlement failed')
    expect(await inStates(created)).toEqual({ BROADCAST: 100, NEW: 10 })
    await settleAll(overNode({}))
    for (const one of created) await requireEnd(one, await readTransfer(customer, one), 'ORDINARY')
  })

  test('no transaction is open during a request, and leases of another worker are respected', async () => {
    const customer = await newCustomer(service)
    const created = await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' })
    const real = service.networks.get('ETHEREUM')!
    const open: unknown[] = []
    let asked = 0
    const look = async () => {
      asked += 1
      const { rows } = await service.db.query<{ query: string }>(
        `select query from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'`,
      )
      open.push(...rows)
      // Another worker runs while everything is due.
      await hurry()
      if (asked < 5) await settleWithdrawals(service.db, networks)
    }
    const networks: Networks = overNode({
      broadcast: async (withdrawals) => {
        await look()
        return real.broadcast(withdrawals)
      },
      checkStatus: async (withdrawals) => {
        await look()
        return real.checkStatus(withdrawals)
      },
    })
    await settleAll(networks)
    await requireEnd(created, await readTransfer(customer, created), 'ORDINARY')
    expect(open).toEqual([])
    expect(asked).toBe(2)
  })

  test('a result is not recorded if another worker has advanced the withdrawal meanwhile', async () => {
    const customer = await newCustomer(service)
    const created = await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' })
    const real = service.networks.get('ETHEREUM')!
    await settleWithdrawals(service.db, overNode({}))
    await pause(50)
    await hurry()
    let lateAnswers = 0
    const slow = overNode({
      checkStatus: async (withdrawals) => {
        const answers = await real.checkStatus(withdrawals)
        expect(answers).toMatchObject([{ state: 'CONFIRMED' }])
        // The lease has expired: another worker settles the withdrawal first.
        await service.db.query('update outgoing_transfers set leased_until = null where transfer_id = $1', [
          created.id,
        ])
        if (lateAnswers++ === 0) await settleWithdrawals(service.db, overNode({}))
        return answers
      },
    })
    expect(await settleWithdrawals(service.db, slow)).toBe(0)
    expect(lateAnswers).toBe(1)
    await requireEnd(created, await readTransfer(customer, created), 'ORDINARY')
    await requireClean()
  })

  test("a living worker keeps its lease, and what a dead one held is soon another's", async () => {
    const customer = await newCustomer(service)
    const created = await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' })
    const row = async () => {
      const { rows } = await service.db.query<{
        leased_until: string | null
        state: string
        seconds: number
      }>(
        `select leased_until, state, extract(epoch from leased_until - clock_timestamp())::float8 as seconds
         from outgoing_transfers where transfer_id = $1`,
        [created.id],
      )
      return rows[0]
    }
    const dying = openDatabase(service.url, { max: 4, onError: () => undefined })
    let wake: (error: Error) => void = () => undefined
    const hangs = new Promise<never>((_, reject) => (wake = reject))
    const worker = settleWithdrawals(dying, overNode({ broadcast: () => hangs })).catch(() => 0)
    await eventually(async () => expect((await row())?.leased_until).toEqual(expect.any(String)))
    const { leased_until, seconds } = (await row())!
    const first = leased_until!
    expect(seconds).toBeLessThan(10)
    const others: NetworkAdapter['broadcast'] = () => expect.fail('another worker has leased it')
    await eventually(async () => {
      await settleWithdrawals(service.db, overNode({ broadcast: others }))
      expect((await row())!.leased_until! > first).toBe(true)
    })
    // The worker loses its sessions, and comes back after another has gone on in its place.
    await dying.end()
    const real = service.networks.get('ETHEREUM')!
    const broadcast = vi.fn(real.broadcast.bind(real))
    await eventually(async () => {
      await settleWithdrawals(service.db, overNode({ broadcast }))
      expect((await row())!.state).toBe('BROADCAST')
    })
    wake(new Error('too late'))
    await worker
    await settleAll(overNode({ broadcast }))
    expect(broadcast).toHaveBeenCalledTimes(1)
    await requireEnd(created, await readTransfer(customer, created), 'ORDINARY')
    await requireClean()
  })
  /** Signed withdrawals of several customers, and when each one's lease ends. */
  async function signedOf(customers: number) {
    const made = Array.from({ length: customers }, async () => {
      const customer = await newCustomer(service)
      return { customer, created: await withdraw(customer, { network: 'ETHEREUM', outcome: 'ORDINARY' }) }
    })
    const all = await Promise.all(made)
    const down = () => Promise.reject(new NodeFailure('down'))
    await settleWithdrawals(service.db, overNode({ broadcast: down })).catch(() => 0)
    expect(await inStates(all.map(({ created }) => created))).toEqual({ SIGNED: customers })
    await hurry()
    const leases = async () => {
      const { rows } = await service.db.query<{ customer_id: string; leased_until: string | null }>(
        'select customer_id, leased_until from outgoing_transfers where transfer_id = any ($1)',
        [all.map(({ created }) => created.id)],
      )
      return new Map(rows.map((row) => [row.customer_id, row.leased_until]))
    }
    const requireEnds = async () => {
      await settleAll(overNode({}))
      for (const { customer, created } of all)
        await requireEnd(created, await readTransfer(customer, created), 'ORDINARY')
      await requireClean()
    }
    return { leases, requireEnds }
  }

  test('leases are renewed while others are taken, and none waits for the renewal of another', async () => {
    const { leases, requireEnds } = await signedOf(2)
    const own = openDatabase(service.url, { max: 6, onError: () => undefined })
    const send = own.query.bind(own) as (...query: unknown[]) => Promise<unknown>
    const leased: string[] = []
    const grows = async (customer: string) => {
      const before = (await leases()).get(customer)!
      await eventually(async () => expect((await leases()).get(customer)! > before).toBe(true))
    }
    let stuck: () => void = () => undefined
    const firstIsStuck = new Promise<void>((resolve) => (stuck = resolve))
    let isTaken = false
    own.query = (async (...query: unknown[]) => {
      const { text = String(query[0]), values = query[1] } = query[0] as { text?: string; values?: unknown }
      const [customer] = values as string[]
      if (text.includes('with leased as')) {
        // The second lease is taken once the first was renewed.
        if (leased.length > 0) await grows(leased[0]!)
        leased.push(customer!)
      } else if (isTaken && text.includes('returning leased_until') && customer === leased[0])
        await firstIsStuck
      return send(...query)
    }) as Database['query']
    try {
      const broadcast: NetworkAdapter['broadcast'] = async (withdrawals) => {
        isTaken = true
        await grows(leased[1]!)
        stuck()
        return service.networks.get('ETHEREUM')!.broadcast(withdrawals)
      }
      expect(await settleWithdrawals(own, overNode({ broadcast }))).toBe(2)
      expect(leased).toHaveLength(2)
    } finally {
      stuck()
      await own.end()
    }
    await requireEnds()
  })

  test('a worker that hangs does not renew its lease for ever', async () => {
    const { leases, requireEnds } = await signedOf(1)
    const real = service.networks.get('ETHEREUM')!
    let wake: () => void = () => undefined
    const hangs = new Promise<void>((resolve) => (wake = resolve))
    const hanging = vi.fn<NetworkAdapter['broadcast']>(async (withdrawals) => {
      await hangs
      return real.broadcast(withdrawals)
    })
    const worker = settleWithdrawals(service.db, overNode({ broadcast: hanging }))
    await eventually(async () => expect(hanging).toHaveBeenCalled())
    const clock = vi.spyOn(performance, 'now')
    const began = performance.timeOrigin
    try {
      clock.mockImplementation(() => Date.now() - began + 61_000)
      const broadcast = vi.fn(real.broadcast.bind(real))
      await eventually(async () => {
        await settleWithdrawals(service.db, overNode({ broadcast }))
        expect(broadcast).toHaveBeenCalledTimes(1)
      })
    } finally {
      clock.mockRestore()
      wake()
    }
    // What the other has recorded stands.
    expect(await worker).toBe(0)
    expect([...(await leases()).values()]).toEqual([null])
    await requireEnds()
  })
})

test('a withdrawal waits for its network to be connected, and is then reviewed like any other', async () => {
  const customer = await newCustomer(service)
  const refused = await withdraw(customer, { network: 'INK', outcome: 'TRAVEL_RULE_REJECTED' })
  const paid = await withdraw(customer, { network: 'INK', outcome: 'ORDINARY' })
  const without = new Map([...service.networks].filter(([network]) => network !== 'INK'))
  await settleIn({ db: service.db, networks: without }, 4)
  expect(await readTransfer(customer, refused)).toEqual(refused)
  expect(await readTransfer(customer, paid)).toEqual(paid)
  await settleAll()
  await requireEnd(refused, await readTransfer(customer, refused), 'TRAVEL_RULE_REJECTED')
  await requireEnd(paid, await readTransfer(customer, paid), 'ORDINARY')
})

// ---------------------------------------------------------------------------------------------- several workers

test('several simultaneous workers take no step twice', async () => {
  const WORKERS = 3
  const customer = await newCustomer(service)
  const pools = Array.from({ length: WORKERS }, () =>
    openDatabase(service.url, { max: 4, onError: () => undefined }),
  )
  const spy = new Spy(() => Math.random() * 3)
  const created: { transfer: Transfer; outcome: Outcome }[] = []
  let ordering = true
  const working = pools.map(async (pool) => {
    while (ordering) {
      await hurry()
      await settleWithdrawals(pool, spy.networks)
    }
  })
  const outcomes: Outcome[] = ['ORDINARY', 'ORDINARY', 'DROPPED_ONCE', 'STALE_FEE_QUOTE', 'CUSTOMER_REJECTED']
  for (let order = 0; order < 150; order++) {
    const outcome = outcomes[order % outcomes.length]!
    const network = CRYPTO_NETWORKS[order % 3]!
    created.push({ transfer: await withdraw(customer, { network, outcome }), outcome })
  }
  ordering = false
  await Promise.all(working)
  await settleAll(spy.networks, pools[0])
  await Promise.all(pools.map((pool) => pool.end()))

  for (const { transfer, outcome } of created) {
    const times = (call: string) => spy.of(call, transfer).length
    const isRejected = outcome === 'CUSTOMER_REJECTED'
    const confirmed = spy
      .of('progress', transfer)
      .filter(({ answer }) => (answer as { state: string }).state === 'CONFIRMED')
    expect({
      outcome,
      review: times('review'),
      sign: times('sign'),
      broadcast: times('broadcast'),
      confirmed: confirmed.length,
    }).toEqual({
      outcome,
      review: 1,
      sign: isRejected ? 0 : 1,
      broadcast: isRejected ? 0 : outcome === 'DROPPED_ONCE' ? 2 : 1,
      confirmed: isRejected || outcome === 'STALE_FEE_QUOTE' ? 0 : 1,
    })
    await requireEnd(transfer, await readTransfer(customer, transfer), outcome)
  }
  await requireClean()
})

// ---------------------------------------------------------------------------------------------- all together

describe('with any withdrawals and any failures', () => {
  const order = fc
    .record({
      network: fc.constantFrom(...EVERY_NETWORK),
      outcome: fc.constantFrom(...OUTCOMES),
      asset: fc.nat(),
      times: fc.integer({ min: 2, max: 9 }),
      fromUsd: fc.boolean(),
    })
    .filter(({ network, outcome }) => destinationOf(network, outcome) !== undefined)
    .map(({ asset, ...order }): Order => {
      const assets = assetsOn(order.network)
      return { ...order, asset: assets[asset % assets.length]! }
    })
  /** Most steps succeed, so that some withdrawals get far enough to fail late. */
  const failures = fc.array(
    fc.oneof(
      { weight: 12, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom<Failure>('BEFORE', 'AFTER') },
    ),
    { minLength: 50, maxLength: 250, size: 'max' },
  )

  test('every withdrawal ends, and no money appears or vanishes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(order, { minLength: 1, maxLength: 12 }),
        failures,
        fc.integer({ min: 1, max: 2 }),
        async (orders, failing, workers) => {
          const customer = await newCustomer(service)
          const created: { transfer: Transfer; outcome: Outcome }[] = []
          for (const order of orders) {
            created.push({ transfer: await withdraw(customer, order), outcome: order.outcome })
          }
          const failures = new Failures((step) => failing[step])
          const [db, networks] = [failures.database(service.db), failures.networks(service.networks)]
          await failFor(10, () =>
            Promise.all(
              Array.from({ length: workers }, () => settleWithdrawals(db, networks).catch(() => undefined)),
            ),
          )
          await settleAll()

          const ended = await Promise.all(created.map(({ transfer }) => readTransfer(customer, transfer)))
          for (const [index, { transfer, outcome }] of created.entries()) {
            await requireEnd(transfer, ended[index]!, outcome)
          }
          await requireConserved(customer, ended)
          await giveUp()
        },
      ),
      runs(30),
    )
    await requireClean()
  })
})

/** Invariant 4: the balances of the accounts follow from the transfers. */
async function requireConserved(customer: TestCustomer, withdrawals: Transfer[]): Promise<void> {
  const { rows } = await service.db.query<{ account: string; asset: string; sum: string }>(
    'select account, asset, sum(amount) from entries where customer_id = $1 group by account, asset',
    [customer.customer_id],
  )
  const held = new Map<string, bigint>()
  const add = (to: Map<string, bigint>, account: string, asset: string, minor: bigint) =>
    to.set(`${account} ${asset}`, (to.get(`${account} ${asset}`) ?? 0n) + minor)
  for (const { account, asset, sum } of rows) {
    const name = account.replace(/:.*/, '')
    add(held, name, asset, parseStoredAmount(sum, decimalsOf(asset)))
  }

  const expected = new Map<string, bigint>()
  const deposits = await service.db.query<TransferRow>(
    `select ${TRANSFER_COLUMNS} from transfers t where customer_id = $1 and direction = 'CREDIT'`,
    [customer.customer_id],
  )
  for (const { asset, total } of deposits.rows.map(transferToWire)) {
    const minor = parseAmount(total, decimalsOf(asset))!
    add(expected, 'profile', asset, minor)
    add(expected, 'bank', asset, -minor)
  }
  for (const { status, type, asset, balance_asset, amount, fee, total } of withdrawals) {
    if (status === 'FAILED') continue
    const outside = type === 'WIRE_WITHDRAWAL' ? 'bank' : 'simulated'
    const minor = (text: string, of = asset) => parseAmount(text, decimalsOf(of))!
    add(expected, 'profile', balance_asset!, -minor(total, balance_asset))
    add(expected, status === 'COMPLETED' ? outside : 'in_flight', asset, minor(amount))
    add(expected, 'fees', asset, minor(fee))
    if (balance_asset !== asset) {
      add(expected, 'conversion', balance_asset!, minor(total, balance_asset))
      add(expected, 'conversion', asset, -minor(total))
    }
  }
  const nonZero = (sums: Map<string, bigint>) => new Map([...sums].filter(([, sum]) => sum !== 0n))
  expect(nonZero(held)).toEqual(nonZero(expected))
}
