/** Descriptions of the operations' tags, in the order in which a newcomer needs them. */
export const TAGS = {
  Profiles: 'Profiles, which hold balances.',
  Sandbox: 'Simulated deposits, for testing.',
  Transfers: 'Withdrawals, deposits and internal transfers: the records of every movement of money.',
  Conversions: 'Conversions between USD and stablecoins, one to one.',
  Orchestrations: 'Automated movements from a source to a destination, and the rules that start them.',
  Statements: 'Monthly statements of the rewards that a customer earned.',
  Reports: 'What the ledger says of a time, for whoever keeps the books.',
  'Events and Webhooks': 'Changes of status, and the endpoints that are told of them.',
  Identities: 'Persons and institutions.',
  Accounts: 'Accounts of identities, with members and profiles.',
  'Assets and Networks': 'The assets that a profile can hold, and the networks that carry them.',
  'Market Data': 'Markets and their historical prices.',
  Governance: 'Who may do what, and who did it.',
  Approvals: 'Withdrawals and changes that wait for the signatures of approvers.',
  'API Credentials': 'The API clients of the customer: what its programs sign in with.',
  Operators: 'The work of people: what they decide, and what only they see.',
} satisfies Record<string, string>
export type Tag = keyof typeof TAGS
