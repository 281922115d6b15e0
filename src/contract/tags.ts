/** What the tags of the operations are about, in the order of the contract. */
export const TAGS = {
  Transfers: 'Withdrawals, deposits and internal transfers: the records of every movement of money.',
  Orchestrations: 'Automated movements from a source to a destination, and the rules that start them.',
  Statements: 'What a customer has earned, month by month.',
  Sandbox: 'Deposits that are simulated, for testing.',
  Accounts: 'Accounts of identities, with members and profiles.',
  'Market Data': 'Markets and their historical prices.',
  Profiles: 'What holds balances.',
  Identities: 'Persons and institutions.',
} satisfies Record<string, string>
export type Tag = keyof typeof TAGS
