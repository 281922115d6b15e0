import { insertAccount } from '../accounts/create-account.ts'
import { createCustomer } from '../customers/create-customer.ts'
import { transaction } from '../db/database.ts'
import { readClock } from '../db/ids.ts'
import type { Context } from '../http/operation.ts'
import { SCOPES } from '../http/scopes.ts'
import { insertIdentity } from '../identities/create-identity.ts'
import type { Movement } from '../ledger/ledger.ts'
import { deposit } from '../ledger/movements/deposit.ts'
import { insertFiatAccount } from '../ledger/records/fiat-account.ts'
import { insertInstructions, type InstructionsRow } from '../ledger/records/fiat-deposit-instructions.ts'
import { createApiClient } from '../oauth/api-clients.ts'
import { insertRule } from '../orchestrations/create-orchestration-rule.ts'
import {
  addresses,
  credentialsFile,
  followBaseUrl,
  writeCredentials,
  type SandboxCredentials,
} from './credentials.ts'
import { DEMO } from './demo-records.ts'
import { firstMoment, lastMonths, makeHistory, makeStatements } from './history.ts'

const ADVISORY_LOCK = 7_311_003

/**
 * Makes the demo customer on an empty database; undefined where there is a customer already. Of processes that
 * start together one makes it, and it is not there without its credentials in the file. It has been there for three
 * months. Then wires arrive, one for itself and one for its rule, and its statements are made, so that there is something
 * to look at and to spend.
 */
export async function makeDemo(
  { db, ledger, networks }: Pick<Context, 'db' | 'ledger' | 'networks'>,
  { dataDir, baseUrl }: { dataDir: string; baseUrl: string },
): Promise<SandboxCredentials | undefined> {
  const made = await transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const { rows } = await tx.query('select 1 from customers limit 1')
    if (rows.length > 0) {
      await followBaseUrl(credentialsFile(dataDir), baseUrl)
      return undefined
    }

    const months = lastMonths(await readClock(tx))
    const { customer_id, profile_id } = await createCustomer(tx, DEMO.name, firstMoment(months))
    await makeHistory(tx, { customer_id, profile_id }, months)
    const client = await createApiClient(tx, customer_id, SCOPES)
    const instructions = await insertInstructions(tx, customer_id, { profile_id, fiat_network: 'WIRE' })
    const person_details = { first_name: 'Ada', last_name: 'Example' }
    const identity = await insertIdentity(
      tx,
      customer_id,
      { ref_id: DEMO.identity, person_details },
      'APPROVED',
    )
    const account = await insertAccount(
      tx,
      customer_id,
      client.client_id,
      { identity_id: identity.id, ref_id: DEMO.account, description: 'Savings of Ada Example' },
      true,
    )
    await insertFiatAccount(tx, customer_id, {
      ref_id: DEMO.fiatAccount,
      identity_id: identity.id,
      fiat_account_owner: { person_details },
      fiat_network_instructions: { wire: { account_number: '000987654321' } },
      status: 'APPROVED',
    })
    const rule = await insertRule(tx, networks, customer_id, {
      ref_id: DEMO.rule,
      profile_id: account.profile_id!,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: { network: 'WIRE' } },
      destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
      nickname: 'Wires become USDP on Ethereum',
    })
    const credentials: SandboxCredentials = {
      ...addresses(baseUrl),
      ...client,
      customer_id,
      profile_id,
      memo_id: instructions.memo_id,
      identity_id: identity.id,
      account_id: account.id,
      orchestration_rule_id: rule.id,
      orchestration_memo_id: rule.source.fiat!.memo_id,
    }
    await writeCredentials(credentialsFile(dataDir), credentials)
    return { credentials, instructions, rule, months }
  })
  if (made === undefined) return undefined
  const { credentials, instructions, rule } = made
  const { deposit_instructions_id: id, memo_id } = rule.source.fiat!
  await ledger.submit(credentials.customer_id, wire(instructions, 10_000_00n))
  await ledger.submit(credentials.customer_id, wire({ ...rule, id, memo_id }, 100_00n))
  await makeStatements(db, credentials.customer_id, made.months)
  return credentials
}

const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

/** A wire that carries the memo of these instructions. */
function wire(
  {
    customer_id,
    profile_id,
    id,
    memo_id,
  }: Pick<InstructionsRow, 'customer_id' | 'profile_id' | 'id' | 'memo_id'>,
  minor: bigint,
): Movement {
  return deposit(customer_id, {
    profile_id,
    type: 'WIRE_DEPOSIT',
    asset: 'USD',
    minor,
    arrivedAt: 'bank',
    place: { id },
    record: { memo: memo_id },
  })
}
