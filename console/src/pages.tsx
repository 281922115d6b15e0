import type { ComponentType } from 'preact'
import { ApprovalPage } from './pages/approval.tsx'
import { ApprovalsPage } from './pages/approvals.tsx'
import { BankPage } from './pages/bank.tsx'
import { AuditLogPage } from './pages/audit-log.tsx'
import { ClientsPage } from './pages/clients.tsx'
import { CustomersPage } from './pages/customers.tsx'
import { EventsPage } from './pages/events.tsx'
import { Home } from './pages/home.tsx'
import { IdentitiesPage, IdentityPage } from './pages/identities.tsx'
import { AccountPage, LedgerPage } from './pages/ledger.tsx'
import { MarketPage, MarketsPage } from './pages/markets.tsx'
import { NetworksPage } from './pages/networks.tsx'
import { NoSuchPage } from './pages/no-such-page.tsx'
import { OrchestrationPage, OrchestrationsPage, RulePage, RulesPage } from './pages/orchestrations.tsx'
import { OperatorsPage } from './pages/operators.tsx'
import { OwnSignInPage } from './pages/own-sign-in.tsx'
import { PolicyPage } from './pages/policy.tsx'
import { ProfilePage, ProfilesPage } from './pages/profiles.tsx'
import { SandboxPage } from './pages/sandbox.tsx'
import { SearchPage } from './pages/search.tsx'
import { StatementPage, StatementsPage } from './pages/statements.tsx'
import { TransferPage } from './pages/transfer.tsx'
import { TransfersPage } from './pages/transfers.tsx'
import { WiresPage } from './pages/wires.tsx'
import { may, service } from './session.ts'

/** The console's pages: a line each, in the order of the list on the page. */

interface PageAt {
  page: ComponentType<Record<string, string>>
  parameters: Record<string, string>
}

/** Addresses and their pages. `:id` matches one part of an address. */
const ROUTES: [pattern: string, page: ComponentType<never>][] = [
  ['', Home],
  ['search', SearchPage],
  ['events', EventsPage],
  ['approvals', ApprovalsPage],
  ['approvals/:id', ApprovalPage],
  ['policy', PolicyPage],
  ['audit-log', AuditLogPage],
  ['orchestrations', OrchestrationsPage],
  ['orchestrations/rules', RulesPage],
  ['orchestrations/rules/:id', RulePage],
  ['orchestrations/:id', OrchestrationPage],
  ['bank', BankPage],
  ['ledger', LedgerPage],
  ['ledger/accounts', AccountPage],
  ['markets', MarketsPage],
  ['markets/:market', MarketPage],
  ['networks', NetworksPage],
  ['clients', ClientsPage],
  ['sandbox', SandboxPage],
  ['customers', CustomersPage],
  ['identities', IdentitiesPage],
  ['identities/:id', IdentityPage],
  ['operators', OperatorsPage],
  ['sign-in/own', OwnSignInPage],
  ['profiles', ProfilesPage],
  ['profiles/:id', ProfilePage],
  ['statements', StatementsPage],
  ['statements/:id', StatementPage],
  ['transfers', TransfersPage],
  ['transfers/:id', TransferPage],
  ['wires', WiresPage],
]

interface Listed {
  name: string
  to: string
  /** The scope without which the page has nothing to show. */
  scope?: string
  /** The mode of the service that has the page; absent: both. */
  onlyIn?: 'sandbox' | 'live'
}

/** The pages that the console lists, by what they are about. */
const PAGES: { group: string; pages: Listed[] }[] = [
  {
    group: 'Money',
    pages: [
      { name: 'Home', to: '' },
      { name: 'Transfers', to: 'transfers' },
      { name: 'Approvals', to: 'approvals' },
      { name: 'Profiles', to: 'profiles' },
      { name: 'Identities', to: 'identities', scope: 'identity:read_identity' },
      { name: 'Wires', to: 'wires', scope: 'operators:read_wire', onlyIn: 'live' },
      { name: 'Bank', to: 'bank', scope: 'operators:read_wire', onlyIn: 'live' },
      { name: 'Ledger', to: 'ledger', scope: 'operators:read_ledger' },
      { name: 'Orchestrations', to: 'orchestrations' },
      { name: 'Statements', to: 'statements' },
    ],
  },
  {
    group: 'Markets',
    pages: [
      { name: 'Markets', to: 'markets' },
      { name: 'Networks', to: 'networks' },
    ],
  },
  {
    group: 'Developers',
    pages: [
      { name: 'Events and webhooks', to: 'events' },
      { name: 'API clients', to: 'clients' },
      { name: 'Sandbox', to: 'sandbox', onlyIn: 'sandbox' },
    ],
  },
  {
    group: 'Administration',
    pages: [
      { name: 'Customers', to: 'customers', scope: 'operators:read_customer' },
      { name: 'Operators', to: 'operators' },
      { name: 'Policy', to: 'policy' },
      { name: 'Audit log', to: 'audit-log' },
      { name: 'Your sign-in', to: 'sign-in/own' },
    ],
  },
]

/** The pages that this operator can use in this mode. */
export const listedPages = () =>
  PAGES.map(({ group, pages }) => ({
    group,
    pages: pages.filter(
      ({ scope, onlyIn }) =>
        (scope === undefined || may(scope)) && (onlyIn === undefined || onlyIn === service.value?.mode),
    ),
  }))

/** The page at this path, and the parts of the path that its pattern names. */
export function pageAt(path: string): PageAt {
  for (const [pattern, page] of ROUTES) {
    const parameters = match(pattern, path)
    if (parameters !== undefined) return { page: page as PageAt['page'], parameters }
  }
  return { page: NoSuchPage, parameters: {} }
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index]!
    if (part.startsWith(':')) parameters[part.slice(1)] = decodeURIComponent(value)
    else if (part !== value) return undefined
  }
  return parameters
}
