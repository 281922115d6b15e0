/** What the service and its worker are put together of. */
const PARTS =
  'resources upkeep access rails governance deliveries money audit networks http contract db keys log settings ports finding'

/**
 * The floors of the program, and the floors that each may import: a floor is a folder of src, a file directly in src, or one of the
 * folders chains and signer. Imports point down this table and never up, so a floor can be read without those above it.
 */
export const MAY_IMPORT: Record<string, readonly string[]> = {
  main: ['cli', 'package'],
  /** The script that bundles the program. */
  build: ['package'],
  /** The command line. */
  cli: ['program', 'signer', 'package', ...PARTS.split(' ')],
  /** The service and its worker, put together. */
  program: PARTS.split(' '),
  /** The operations of the API. */
  resources:
    'access rails governance deliveries money audit networks http contract db settings finding'.split(' '),
  /** Metrics, health and deletion by age. */
  upkeep: 'rails governance deliveries money networks http contract db settings finding package'.split(' '),
  /** Who may call: API clients, operators and the console in which they sign in. */
  access: 'governance money audit http contract db keys settings finding package'.split(' '),
  /** The process that has the keys of the hot wallets. It uses no database. */
  signer: ['governance', 'chains', 'networks', 'contract', 'db'],
  /** Payments and deposits on networks: the worker's effects outside the database. */
  rails: 'governance money audit networks http contract db keys settings finding'.split(' '),
  /** What customers have decided about their own payments: policies and approvals. */
  governance: ['money', 'audit', 'contract', 'db', 'keys', 'finding'],
  /** Events to the endpoints of customers. */
  deliveries: ['money', 'audit', 'http', 'contract', 'db', 'settings', 'finding', 'package'],
  money: ['audit', 'networks', 'contract', 'db', 'keys', 'finding'],
  /** The audit log and its chain, and the MACs of rows, balances and withdrawals. */
  audit: ['networks', 'contract', 'db', 'keys'],
  /** Each family of chains. */
  chains: ['networks', 'contract', 'db'],
  /** What the core asks of a network, and the simulated networks. */
  networks: ['contract', 'db'],
  /** Requests and answers. This floor knows no asset, bank or orchestration. */
  http: ['contract', 'db', 'settings', 'finding', 'package'],
  /** The API's vocabulary: fields, problems, scopes, assets. */
  contract: [],
  db: ['ports', 'finding', 'package'],
  /** The master keys: their configuration and the keys derived from them. */
  keys: ['settings', 'finding'],
  log: ['settings'],
  settings: [],
  /** The ports that a service chooses. */
  ports: [],
  /** What checks find: `bursar doctor` prints it. */
  finding: [],
  /** What package.json says. */
  package: [],
}

/** `src/money/ledger/transfer.ts` is on the floor money, `src/main.ts` on the floor main, `chains/evm/gas.ts` on the floor chains. */
export const floorOf = (file: string) =>
  file
    .replace(/^src\//, '')
    .split('/')[0]!
    .replace(/\.ts$/, '')
