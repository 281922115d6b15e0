/*
 * Three processes on one database, killed and started again while 200 payments are sent to them at once, against a limit
 * that 50 of them fill: exactly 50 are made. The same for crypto withdrawals, wires and orchestrations.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { SCOPES } from '../src/contract/scopes.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { verifyAuditChains } from '../src/money/verify/audit-chains.ts'
import { verify } from '../src/money/verify/verify.ts'
import { setPolicy } from './policies.ts'
import {
  ROW_MACS,
  BASE_URL,
  credit,
  DESTINATION,
  remoteCaller,
  spawnBursar,
  type BursarProcess,
  type RemoteCaller,
  ownDatabase,
} from './support.ts'
import { ownFolder } from './at-end.ts'

const PROCESSES = 3
const PAYMENTS = 200
const FIT = 50
/** Most attempts of one payment: its process may be killed each time. */
const ATTEMPTS_MAX = 50

interface Member {
  process: BursarProcess
  call: RemoteCaller
}

const members: Member[] = []

async function start(): Promise<Member> {
  const process = await spawnBursar({
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: dataDir,
    BURSAR_BASE_URL: BASE_URL,
    BURSAR_WORKER_INTERVAL_MS: '100',
  })
  return { process, call: await remoteCaller(process.address, client) }
}

const database = await ownDatabase()
const dataDir = await ownFolder()
const customer = await createCustomer(database.db, 'Test')
const client = await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES)
members.push(...(await Promise.all(Array.from({ length: PROCESSES }, start))))
await credit(new Ledger(database.db), customer, 'USD', '1000000')
afterAll(() => Promise.all(members.map(({ process }) => process.end('SIGKILL'))))

/** Sends a payment until it is answered, each time to another process. Returns whether it was made. */
async function sendUntilAnswered(number: number, path: string, body: object): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const { call } = members[(number + attempt) % PROCESSES]!
    const answer = await call<{ type: string }>('POST', path, body).catch(() => undefined)
    if (answer?.status === 200) return true
    if (answer?.status === 409) {
      expect(answer.body.type).toMatch(/already-exists$/)
      return true
    }
    if (answer?.status === 403) {
      expect(answer.body.type).toMatch(/policy-refused$/)
      return false
    }
    // The process was killed, or its connection: the outcome is unknown.
    await pause(200)
  }
  throw new Error(`payment ${number} was never answered`)
}

test.each(['crypto', 'wire', 'orchestration'] as const)(
  `${PAYMENTS} payments at once (%s) against a limit of ${FIT} make exactly ${FIT}, with processes that are killed`,
  async (kind) => {
    await setPolicy(database.db, customer.customer_id, {
      rules: [
        {
          id: kind,
          limit: { amount: String(FIT * 10), asset: 'USD', period_seconds: 86_400, per: 'CUSTOMER' },
          action: 'BLOCK',
        },
      ],
    })
    const { profile_id } = customer
    let fiat_account_id = ''
    if (kind === 'wire') {
      const { body } = await members[0]!.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
        fiat_account_owner: { institution_details: { name: 'A' } },
        fiat_network_instructions: { wire: { account_number: '1' } },
      })
      fiat_account_id = body.id
    }
    const paymentOf = (ref_id: string): [path: string, body: object] => {
      if (kind === 'wire')
        return [
          '/v2/transfer/fiat-withdrawals',
          { profile_id, asset: 'USD', total: '10', fiat_account_id, ref_id },
        ]
      if (kind === 'crypto')
        return [
          '/v2/transfer/crypto-withdrawals',
          {
            ...{ profile_id, asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM' },
            ...{ destination_address: DESTINATION, total: '10', ref_id },
          },
        ]
      return [
        '/v2/orchestration/orchestrations',
        {
          ...{ source_asset: 'USD', destination_asset: 'USDG', source_amount: '10', ref_id },
          source: { profile: { profile_id } },
          destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
        },
      ]
    }
    const sent = Array.from({ length: PAYMENTS }, (_, number) =>
      sendUntilAnswered(number, ...paymentOf(`${kind}-${number}`)),
    )
    for (const index of [0, 1]) {
      await pause(30)
      await members[index]!.process.end('SIGKILL')
      members[index] = await start()
    }
    const made = await Promise.all(sent)
    expect(made.filter(Boolean)).toHaveLength(FIT)
    const { rows } = await database.db.query<{ counted: string }>(
      `select sum((bucket ->> 1)::numeric) as counted
       from policy_windows, jsonb_array_elements(buckets) as bucket
       where customer_id = $1 and rule_id = $2`,
      [customer.customer_id, kind],
    )
    // In the smallest units of values in USD, which have eight decimals.
    expect(rows[0]!.counted).toBe(`${FIT * 10}00000000`)
    expect((await verify(database.db)).disagreements).toEqual([])
    expect((await verifyAuditChains(database.db)).faults).toEqual([])
  },
  180_000,
)
