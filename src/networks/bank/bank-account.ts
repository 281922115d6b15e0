import { readFile } from 'node:fs/promises'
import { Ajv, type ErrorObject } from 'ajv'
import { Type, type Static } from 'typebox'
import { identifierFault } from '../../contract/bank-identifiers.ts'
import { Closed } from '../../contract/fields.ts'

/** The platform's own bank account, which customers send wires to. In live mode it is in a JSON file, `BURSAR_BANK_FILE`. */

const Line = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S' })
const Address = Closed({
  /** ISO 3166-1, two letters. */
  country: Type.String({ pattern: '^[A-Z]{2}$' }),
  address1: Line,
  address2: Type.Optional(Line),
  city: Line,
  province: Type.Optional(Line),
  zip_code: Type.Optional(Line),
})

const BankAccount = Closed({
  /** An account number or an IBAN. */
  account_number: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9 -]{2,38}[A-Za-z0-9]$' }),
  account_owner: Line,
  account_owner_address: Address,
  bank_name: Line,
  bank_address: Address,
  routing_numbers: Closed(
    {
      ABA: Type.Optional(Type.String()),
      /** A BIC (ISO 9362). */
      SWIFT: Type.Optional(Type.String()),
    },
    { minProperties: 1 },
  ),
})
export type BankAccount = Static<typeof BankAccount>
export type RoutingNumberType = keyof BankAccount['routing_numbers']

export interface Bank {
  /** The platform's account there, which customers send wires to. */
  bankAccount?: BankAccount
  /** The missing field without which it cannot pay an account, as a path below `wire`. */
  missingOfAccount?(wire: {
    account_number?: string
    routing_details?: { routing_number?: string }
  }): string | undefined
  /** Whether it would pay to this account. */
  acceptsAccount?(accountNumber: string): Promise<boolean>
  /** Of a simulated bank: how long an announced wire is PENDING, in milliseconds. */
  simulatedWireMs?: number
}

const SANDBOX_ADDRESS = {
  country: 'US',
  address1: '1 Sandbox Plaza',
  city: 'New York',
  province: 'NY',
  zip_code: '10001',
}

/** The sandbox's bank. Its routing number is the usual example in banks' documents. */
export const SANDBOX_ACCOUNT: BankAccount = {
  account_number: '000123456789',
  account_owner: 'Bursar Sandbox',
  account_owner_address: SANDBOX_ADDRESS,
  bank_name: 'Bursar Sandbox Bank',
  bank_address: SANDBOX_ADDRESS,
  routing_numbers: { ABA: '021000021', SWIFT: 'BRSRUS33XXX' },
}

/** The account's routing number of this type, or of the other type where it has none of this one. */
export function routingOf(
  { routing_numbers }: BankAccount,
  wanted: RoutingNumberType = 'ABA',
): { routing_number_type: RoutingNumberType; routing_number: string } {
  const routing_number_type =
    routing_numbers[wanted] !== undefined ? wanted : wanted === 'ABA' ? 'SWIFT' : 'ABA'
  return { routing_number_type, routing_number: routing_numbers[routing_number_type]! }
}

const ajv = new Ajv({ allErrors: true, strict: true, strictTypes: false })

/** The rule for a field, where its pattern alone would not explain it. */
const MUST_BE: Record<string, string> = {
  account_number: 'must have 4 to 40 letters, digits, spaces or dashes',
  country: 'must be two capital letters (ISO 3166-1), such as US',
  routing_numbers: 'must be an object with ABA, SWIFT or both',
}

/** Reads the bank account in a JSON file. Throws an Error that names each wrong field and its rule. */
export async function readBankAccount(path: string): Promise<BankAccount> {
  const content = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code})`)
  })
  let account: unknown
  try {
    account = JSON.parse(content)
  } catch {
    throw new Error(`${path} is not JSON`)
  }
  const complaints = ajv.validate(BankAccount, account)
    ? identifierFaults(account)
    : (ajv.errors ?? []).map(complaint)
  if (complaints.length > 0) throw new Error([...new Set(complaints)].join('; '))
  return account as BankAccount
}

function identifierFaults({ account_number, routing_numbers }: BankAccount): string[] {
  const numbers = [
    ['account_number', 'account_number', account_number],
    ['routing_numbers.ABA', 'ABA', routing_numbers.ABA],
    ['routing_numbers.SWIFT', 'SWIFT', routing_numbers.SWIFT],
  ] as const
  return numbers.flatMap(([field, identifier, text]) => {
    const fault = text === undefined ? undefined : identifierFault(identifier, text)
    return fault === undefined ? [] : [`${field} ${fault}`]
  })
}

function complaint({ instancePath, keyword, params, message }: ErrorObject): string {
  const path = instancePath.split('/').slice(1)
  const named = params as { missingProperty?: string; additionalProperty?: string }
  if (keyword === 'required') return `${[...path, named.missingProperty].join('.')} is required`
  if (keyword === 'additionalProperties')
    return `${[...path, named.additionalProperty].join('.')} is not a known field`
  if (path.length === 0) return 'it must be a JSON object'
  return `${path.join('.')} ${MUST_BE[path.at(-1)!] ?? (keyword === 'pattern' ? 'must not be blank' : message)}`
}
