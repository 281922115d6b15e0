/** Descriptions of the operations' tags, in the order of the contract. */
export const TAGS = {
  Transfers: 'Withdrawals, deposits and internal transfers: the records of every movement of money.',
  Conversions: 'Conversions between USD and stablecoins, one to one.',
  Orchestrations: 'Automated movements from a source to a destination, and the rules that start them.',
  Statements: 'Monthly statements of the rewards that a customer earned.',
  Sandbox: 'Simulated deposits, for testing.',
  Accounts: 'Accounts of identities, with members and profiles.',
  'Market Data': 'Markets and their historical prices.',
  'Assets and Networks': 'The assets that a profile can hold, and the networks that carry them.',
  Profiles: 'Profiles, which hold balances.',
  Identities: 'Persons and institutions.',
  'API Credentials': 'The API clients of the customer: what its programs sign in with.',
  Approvals: 'Withdrawals and changes that wait for the signatures of approvers.',
  'Events and Webhooks': 'Changes of status, and the endpoints that are told of them.',
  Governance: 'Who may do what, and who did it.',
} satisfies Record<string, string>
export type Tag = keyof typeof TAGS
