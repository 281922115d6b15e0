import { randomUUID } from 'node:crypto'
import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { createCustomer } from '../customers/create-customer.ts'
import type { Database } from '../db/database.ts'
import { SCOPES } from '../http/scopes.ts'
import { createApiClient } from '../oauth/api-clients.ts'
import { insertInstructions } from '../transfers/create-fiat-deposit-instructions.ts'

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

/** Makes the demo customer on an empty database; undefined where there is a customer already. */
export async function makeDemo(
  db: Database,
  { dataDir, baseUrl }: { dataDir: string; baseUrl: string },
): Promise<SandboxCredentials | undefined> {
  const { rows } = await db.query('select 1 from customers limit 1')
  if (rows.length > 0) return undefined

  const { customer_id, profile_id } = await createCustomer(db, 'Demo')
  const client = await createApiClient(db, customer_id, SCOPES)
  const instructions = await insertInstructions(db, customer_id, { profile_id, fiat_network: 'WIRE' })
  const credentials: SandboxCredentials = {
    base_url: baseUrl,
    token_url: `${baseUrl}/oauth2/token`,
    ...client,
    customer_id,
    profile_id,
    memo_id: instructions.memo_id,
  }
  await writeSecretFile(credentialsFile(dataDir), `${JSON.stringify(credentials, null, 2)}\n`)
  return credentials
}

/** Written beside and renamed, so that a reader sees the old file or the whole new one. Readable by its owner only. */
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
  c() { node -p "JSON.parse(fs.readFileSync('${file}'))['$1']"; }   # reads the credentials
  TOKEN=$(curl -s $(c token_url) -u $(c client_id):$(c client_secret) -d grant_type=client_credentials | node -p 'JSON.parse(fs.readFileSync(0)).access_token')

  # 1. A wire of 250 USD arrives.
  curl -s $(c base_url)/v2/sandbox/fiat-deposits -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
    -d '{"amount":"250.00","asset":"USD","memo_id":"'$(c memo_id)'","fiat_network_instructions":{"wire":{}}}'

  # 2. The balance is there.
  curl -s $(c base_url)/v2/profiles/$(c profile_id)/balances -H "Authorization: Bearer $TOKEN"

  # 3. 25 USDP leave for Ethereum, paid from the USD balance. Run it twice: the second is a 409 with the first's record.
  curl -s $(c base_url)/v2/transfer/crypto-withdrawals -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
    -d '{"profile_id":"'$(c profile_id)'","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"first-payout"}'

  # 4. A few seconds later it is COMPLETED, with its crypto_tx_hash.
  sleep 4; curl -s "$(c base_url)/v2/transfer/transfers?ref_ids=first-payout" -H "Authorization: Bearer $TOKEN"
`
