import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { createCustomer } from './customers/create-customer.ts'
import { transaction, type Database } from './db/database.ts'
import { SCOPES } from './http/scopes.ts'
import { createApiClient } from './oauth/api-clients.ts'
import { blame } from './settings.ts'
import { insertInstructions } from './transfers/create-fiat-deposit-instructions.ts'

/** What an integrator needs to begin: the content of sandbox-credentials.json. */
export interface SandboxCredentials {
  base_url: string
  token_url: string
  client_id: string
  client_secret: string
  customer_id: string
  profile_id: string
  memo_id: string
}

export const credentialsFile = (dataDir: string) => join(dataDir, 'sandbox-credentials.json')

const ADVISORY_LOCK = 7_311_003

/**
 * Makes the demo customer on an empty database; undefined where there is a customer already. Of processes that
 * start together one makes it, and it is not there without its credentials in the file.
 */
export async function makeDemo(
  db: Database,
  { dataDir, baseUrl }: { dataDir: string; baseUrl: string },
): Promise<SandboxCredentials | undefined> {
  return transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const { rows } = await tx.query('select 1 from customers limit 1')
    if (rows.length > 0) {
      await followBaseUrl(credentialsFile(dataDir), baseUrl)
      return undefined
    }

    const { customer_id, profile_id } = await createCustomer(tx, 'Demo')
    const client = await createApiClient(tx, customer_id, SCOPES)
    const { memo_id } = await insertInstructions(tx, customer_id, { profile_id, fiat_network: 'WIRE' })
    const credentials: SandboxCredentials = {
      ...addresses(baseUrl),
      ...client,
      customer_id,
      profile_id,
      memo_id,
    }
    await writeCredentials(credentialsFile(dataDir), credentials)
    return credentials
  })
}

const addresses = (baseUrl: string) => ({ base_url: baseUrl, token_url: `${baseUrl}/oauth2/token` })

/** A later start may be at another address: a file that is there follows it. */
async function followBaseUrl(path: string, baseUrl: string): Promise<void> {
  const content = await readFile(path, 'utf8').catch(() => undefined)
  if (content === undefined) return
  const credentials = JSON.parse(content) as SandboxCredentials
  if (credentials.base_url === baseUrl) return
  await writeCredentials(path, { ...credentials, ...addresses(baseUrl) })
}

/** Written beside and renamed, so that a reader sees the old file or the whole new one. Readable by its owner only. */
async function writeCredentials(path: string, credentials: SandboxCredentials): Promise<void> {
  const content = `${JSON.stringify(credentials, null, 2)}\n`
  await writeSecretFile(path, content).catch(blame('BURSAR_DATA_DIR'))
}

async function writeSecretFile(path: string, content: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  const temporary = `${path}.${randomUUID()}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}

/** A first session, ready to paste. README shows the same. */
export const curlSession = (file: string) => `
  c() { node -p "JSON.parse(fs.readFileSync('${file}'))['$1']"; }
  TOKEN=$(curl -s $(c token_url) -u $(c client_id):$(c client_secret) -d grant_type=client_credentials | node -p 'JSON.parse(fs.readFileSync(0)).access_token')
  api() { curl -s -w '\\n' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' $(c base_url)"$@"; }

  echo 'A wire of 250 USD arrives:'
  api /v2/sandbox/fiat-deposits -d '{"amount":"250.00","asset":"USD","memo_id":"'$(c memo_id)'","fiat_network_instructions":{"wire":{}}}'
  echo 'The balance is there:'
  api /v2/profiles/$(c profile_id)/balances
  echo '25 USDP leave for Ethereum, paid from the USD:'
  api /v2/transfer/crypto-withdrawals -d '{"profile_id":"'$(c profile_id)'","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"first-payout"}'
  echo 'A few seconds later they have arrived:'
  sleep 4; api "/v2/transfer/transfers?ref_ids=first-payout"
`
