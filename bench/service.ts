import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { createCustomer } from '../src/money/records/customer.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { originOfLoop } from '../src/contract/actor.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import type { Database } from '../src/db/database.ts'
import { openMasterKeys } from '../src/keys/master-keys.ts'
import { onPlatform, onProfile } from '../src/money/ledger/entries.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { insertProfile } from '../src/money/records/profile.ts'
import { readSettings } from '../src/settings.ts'

const PROFILES = 100
const PORT = 18_080

/** The database that all parts of a run share, and how long each part measures. */
export interface Bench {
  db: Database
  /** For the owner's role, which has the benchmark's own tables. */
  ownerUrl: string
  /** For the service's role. */
  databaseUrl: string
  dataDir: string
  rounds: number
  seconds: number
}

/** A customer with funded profiles. */
export interface Owner {
  customerId: string
  profileIds: string[]
}

/** A customer whose requests have an access token. */
export interface Caller extends Owner {
  token: string
}

export interface Api extends Caller {
  baseUrl: string
  process: ChildProcess
}

/** Starts the built `bursar serve` in a separate process, by default without its worker, which would add load. */
export async function startService(
  { databaseUrl, dataDir }: Bench,
  environment: Record<string, string> = {},
): Promise<{ baseUrl: string; process: ChildProcess }> {
  // The command of `npm start`.
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: { start: string } }
  const [, ...startArguments] = scripts.start.split(' ')
  const child = spawn(process.execPath, [...startArguments, '--json'], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      BURSAR_DATA_DIR: dataDir,
      PORT: String(PORT),
      BURSAR_WORKER: 'false',
      BURSAR_LOG_LEVEL: 'warn',
      BURSAR_RATE_LIMIT_PER_SECOND: '0',
      BURSAR_TOKEN_TTL_SECONDS: '86400',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(createInterface(child.stdout), 'line')
  return { baseUrl: `http://127.0.0.1:${PORT}`, process: child }
}

export async function stopService(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM')
  await once(child, 'exit')
}

export async function withApi<T>(bench: Bench, work: (api: Api) => Promise<T>): Promise<T> {
  const service = await startService(bench)
  try {
    return await work({ ...service, ...(await newCaller(bench, service.baseUrl, PROFILES)) })
  } finally {
    await stopService(service.process)
  }
}

/** Makes a customer with funded profiles. */
export async function newOwner(db: Database, profiles = PROFILES): Promise<Owner> {
  const { customer_id: customerId } = await createCustomer(db, 'Bench')
  const profileIds: string[] = []
  for (let n = 0; n < profiles; n++) {
    const profile = await insertProfile(db, customerId, { type: 'NORMAL', nickname: `Bench ${n}` })
    profileIds.push(profile.id)
  }
  await fundProfiles(db, customerId, profileIds)
  return { customerId, profileIds }
}

/** Makes a customer with funded profiles and a token of the service at `baseUrl`. */
export async function newCaller({ db, dataDir }: Bench, baseUrl: string, profiles: number): Promise<Caller> {
  const owner = await newOwner(db, profiles)
  const macs = new RowMacs(await openMasterKeys({ ...readSettings({}), dataDir }))
  const client = await createApiClient(db, macs, owner.customerId, SCOPES)
  const reply = await fetch(`${baseUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
  })
  const { access_token: token } = (await reply.json()) as { access_token: string }
  return { ...owner, token }
}

async function fundProfiles(db: Database, customer_id: string, profileIds: string[]): Promise<void> {
  const ledger = new Ledger(db)
  const minor = 10n ** 30n
  await Promise.all(
    profileIds.map((profile_id) =>
      ledger.submit(customer_id, {
        origin: originOfLoop('bench'),
        balances: [{ profile_id, asset: 'USDP' }],
        decide: ({ now, newId }) => ({
          transfer: {
            id: newId(),
            customer_id,
            profile_id,
            type: 'CRYPTO_DEPOSIT',
            direction: 'CREDIT',
            status: 'COMPLETED',
            asset: 'USDP',
            amount: '1000000000000',
            fee: '0',
            total: '1000000000000',
            created_at: now.text,
            updated_at: now.text,
          },
          entries: [onPlatform('custody:ETHEREUM', 'USDP', -minor), onProfile(profile_id, 'USDP', minor)],
        }),
      }),
    ),
  )
}
