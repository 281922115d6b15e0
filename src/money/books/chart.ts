/** The chart of accounts in the words of bookkeeping. The ledger's signs: negative is what the platform has or has paid. */

export type AccountKind = 'ASSET' | 'LIABILITY' | 'INCOME' | 'EXPENSE' | 'CLEARING'

const CHART: Record<string, readonly [name: string, kind: AccountKind]> = {
  profile: ['Owed to profiles', 'LIABILITY'],
  in_flight: ['Withdrawals under way', 'LIABILITY'],
  bank: ['Bank account', 'ASSET'],
  custody: ['Hot wallets', 'ASSET'],
  cold: ['Cold storage', 'ASSET'],
  simulated: ['Simulated network', 'ASSET'],
  fees: ['Fees charged', 'INCOME'],
  network_fees: ['Network fees paid', 'EXPENSE'],
  rewards: ['Rewards paid', 'EXPENSE'],
  conversion: ['Conversions', 'CLEARING'],
  internal: ['Internal transfers', 'CLEARING'],
  between_customers: ['Transfers between customers', 'CLEARING'],
}

/** An account of the ledger, such as `custody:LITECOIN`, in words, and its kind. */
export function inChart(account: string): { name: string; kind: AccountKind } {
  const [family, network] = account.split(':') as [string, string | undefined]
  const [name, kind] = CHART[family] ?? [account, 'CLEARING']
  return { name: network === undefined ? name : `${name}, ${network}`, kind }
}
