import { electronicFormatIBAN, getCountrySpecifications, isValidBIC, isValidIBAN } from 'ibantools'

/** The numbers that address a wire. */
export type BankIdentifier = 'account_number' | 'ABA' | 'SWIFT'

/**
 * A rule that refuses numbers which no bank has. It is the same for every bank, and for the platform's own numbers.
 * docs/reference/refused-destinations.md shows all of them.
 */
export interface BankRule {
  identifier: BankIdentifier
  refuses: string
  source: string
  /** Whether the rule refuses this text, which the identifier's earlier rules have accepted. */
  isBroken(text: string): boolean
  /** What the text must be, as the rest of a sentence about it. */
  mustBe: string
  example: string
}

const ABA_SOURCE = 'https://www.aba.com/about-us/routing-number'
const ABA_WEIGHTS = [3, 7, 1, 3, 7, 1, 3, 7, 1]
const ibanOf = (text: string) => electronicFormatIBAN(text) ?? ''

export const BANK_RULES: readonly BankRule[] = [
  {
    identifier: 'account_number',
    refuses: 'masked numbers: with `*`, or two or more `X` in a row that are no part of an IBAN',
    source: 'https://en.wikipedia.org/wiki/Payment_card_number#Security_measures',
    isBroken: (text) => /[*\u2022]/.test(text) || (/x{2}/i.test(text) && !isValidIBAN(ibanOf(text))),
    mustBe: 'must be the whole number: some of its digits are hidden',
    example: 'XXXXXX1234',
  },
  {
    identifier: 'account_number',
    refuses:
      'other characters than letters and digits of ASCII, spaces, dots, dashes and slashes; a number without a digit or letter',
    source: 'https://www.iso20022.org/iso-20022-message-definitions',
    isBroken: (text) => !/^[A-Za-z0-9 ./-]*[A-Za-z0-9][A-Za-z0-9 ./-]*$/.test(text),
    mustBe: 'must have only the letters A to Z, the digits 0 to 9, spaces, dots, dashes and slashes',
    example: '١٢٣٤',
  },
  {
    identifier: 'account_number',
    refuses:
      'a number of the form of an IBAN (15 to 34 characters that begin with a country of the registry and two digits) of another length, with other characters, or with wrong check digits (the remainder by 97)',
    source: 'https://www.swift.com/standards/data-standards/iban-international-bank-account-number',
    isBroken: (text) => looksLikeIban(ibanOf(text)) && !isValidIBAN(ibanOf(text)),
    mustBe: 'must be an IBAN of the length of its country, with valid check digits: copy it again',
    example: 'DE89370400440532013001',
  },
  {
    identifier: 'ABA',
    refuses: 'anything but nine digits of ASCII',
    source: ABA_SOURCE,
    isBroken: (text) => !/^[0-9]{9}$/.test(text),
    mustBe: 'must be 9 digits with a valid check digit, zeros at its start included',
    example: '21000021',
  },
  {
    identifier: 'ABA',
    refuses: 'a wrong check digit: the sum of the digits by the weights 3, 7 and 1 must be a multiple of 10',
    source: ABA_SOURCE,
    isBroken: (text) =>
      [...text].reduce((sum, digit, index) => sum + Number(digit) * ABA_WEIGHTS[index]!, 0) % 10 !== 0,
    mustBe: 'must be 9 digits with a valid check digit',
    example: '021000022',
  },
  {
    identifier: 'ABA',
    refuses: 'first digits that no bank has: those of banks are 01 to 12, 21 to 32, 61 to 72 and 80',
    source: 'https://www.frbservices.org/resources/routing-number-directory',
    isBroken: (text) => !/^(?:0[1-9]|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/.test(text),
    mustBe: 'must begin with 01 to 12, 21 to 32, 61 to 72 or 80',
    example: '000000000',
  },
  {
    identifier: 'SWIFT',
    refuses: 'anything but a BIC: 8 or 11 capitals and digits, with the code of a country in its middle',
    source: 'https://www.iso.org/standard/84108.html',
    isBroken: (text) => !/^[A-Z0-9]*$/.test(text) || !isValidBIC(text),
    mustBe: 'must be a BIC of 8 or 11 capital letters and digits (ISO 9362)',
    example: 'DEUTZZFF',
  },
]

const looksLikeIban = (text: string): boolean =>
  /^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$/.test(text) &&
  getCountrySpecifications()[text.slice(0, 2)]?.IBANRegistry === true

/** Why no bank has this number, as the rest of a sentence about it; undefined where no rule says so. */
export const identifierFault = (identifier: BankIdentifier, text: string): string | undefined =>
  BANK_RULES.find((rule) => rule.identifier === identifier && rule.isBroken(text))?.mustBe

/** The numbers of a bank account, as a request has them. */
interface PayeeNumbers {
  account_number?: string | undefined
  routing_details?:
    | { routing_number_type?: 'ABA' | 'SWIFT' | undefined; routing_number?: string | undefined }
    | undefined
}

/** The first field of a wire with a number that no bank has, and why; undefined where all may exist or are absent. */
export function wireFault({ account_number, routing_details }: PayeeNumbers): string | undefined {
  const { routing_number_type: type, routing_number } = routing_details ?? {}
  const inAccount =
    account_number === undefined ? undefined : identifierFault('account_number', account_number)
  if (inAccount !== undefined) return `account_number ${inAccount}`
  if (routing_number === undefined) return undefined
  // Without a type, the number says what it is: digits alone are an ABA number.
  const inRouting = identifierFault(type ?? (/^\d+$/.test(routing_number) ? 'ABA' : 'SWIFT'), routing_number)
  return inRouting && `routing_details.routing_number ${inRouting}`
}
