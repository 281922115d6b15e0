import { readFile } from 'node:fs/promises'
import { InvalidArgumentError, type Command } from 'commander'
import { AUDIT_ACTIONS, type AuditAction } from '../contract/audit-actions.ts'
import { PLATFORM_ID, UUID } from '../db/ids.ts'
import { readAuditHeads, type AuditHead } from '../audit/audit.ts'
import { verifyAuditChains } from '../money/verify/audit-chains.ts'
import type { ChainFault } from '../money/verify/chain-check.ts'
import { selectAuditRecords } from '../access/audit-log/audit-records.ts'
import { COMMON, wholeNumber } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'

const LIST_MAX = 1_000
const LISTED = 20

const WORDS = {
  ...COMMON,
  '--actor <id>': ['changes by this API client, operator, loop or user'],
  '--action <action>': ['changes of this kind, such as transfer.create', action],
  '--subject <id>': ['changes of this record'],
  '--refused': ['only changes that were refused'],
  '--limit <number>': [`most records (1 to ${LIST_MAX}, default: ${LISTED})`, wholeNumber(1, LIST_MAX)],
  '--head <file>': ['the chains must still contain the heads in this file (bursar audit head --json)'],
} as const

export function auditCommands(program: Command): void {
  const about = 'the audit log: who changed what, and its chain'
  const audit = group(program, ['audit', about], inDatabase, WORDS)
  audit.list(
    'list [--customer <id>] [--actor <id>] [--action <action>] [--subject <id>] [--refused] [--limit <number>]',
    {
      about: 'list records of the audit log, newest first: of a customer, or else of the platform',
      none: 'there are no such records',
      run({ db }, { customer, actor, action, subject, refused, limit = LISTED }) {
        const filters = {
          actor_ids: actor === undefined ? undefined : [actor],
          actions: action === undefined ? undefined : [action],
          subject_ids: subject === undefined ? undefined : [subject],
          outcomes: refused ? ['REFUSED' as const] : undefined,
        }
        const page = { limit, descending: true, from: 0, to: Number.MAX_SAFE_INTEGER }
        return selectAuditRecords(db, customer ?? PLATFORM_ID, filters, page)
      },
      columns: [
        'at',
        [
          'actor',
          ({ actor: { type, id, name } }) => `${type} ${name === undefined ? id : `${name} (${id})`}`,
        ],
        'action',
        ['subject', ({ subject }) => subject.id],
        'outcome',
        ['request', ({ request_id }) => request_id],
      ],
    },
  )
  audit.command('verify [--customer <id>] [--head <file>]', {
    about:
      'recompute the chain of the audit log and of the ledger entries, and name the first record of each chain that was changed; exit code 1 on a fault',
    async run({ db }, { customer: customerId, head }) {
      const anchors = head === undefined ? [] : readAnchors(await readFile(head, 'utf8'), head)
      const found = await verifyAuditChains(db, { anchors, customerId })
      return { clean: found.faults.length === 0, ...found }
    },
    says({ clean, faults, chains, links, records, anchors, covered_from }, { head }) {
      const verdict = clean ? 'Clean' : `${faults.length} chains were changed`
      const anchored = head === undefined ? '' : `, ${anchors} anchored heads`
      const text = [
        ...faults.map(textOf),
        `${verdict}: ${chains} chains, ${links} links, ${records} records${anchored}.`,
        covered_from !== null &&
          `All chains have begun by ${covered_from}. What was posted before its customer's chain began, by a version without the audit log, is in none: bursar audit head has each beginning.`,
      ]
      return text.filter(Boolean).join('\n')
    },
    fails: ({ clean }) => !clean,
  })
  audit.list('head', {
    about: 'show the heads of all chains, to keep them where the database cannot change them',
    key: 'heads',
    run: ({ db }) => readAuditHeads(db),
    columns: [
      ['customer', ({ customer_id }) => customer_id],
      ...(['>position', 'hash'] as const),
      ['entries covered from', ({ covered_from }) => covered_from],
    ],
  })
}

function action(text: string): AuditAction {
  const known = AUDIT_ACTIONS.find((action) => action === text)
  if (known === undefined)
    throw new InvalidArgumentError('must be an action, such as transfer.create or webhook.update.')
  return known
}

function textOf({ customer_id, created_at, action, subject_ids = [], fault }: ChainFault): string {
  const subjects =
    subject_ids.length > 1 ? `${subject_ids[0]!} and ${subject_ids.length - 1} more` : subject_ids[0]
  const record = [action, subjects].filter((part) => part !== undefined).join(' of ')
  const details = [record, created_at].filter((part) => part !== undefined && part !== '').join(', ')
  return `${customer_id}: ${fault}${details === '' ? '' : ` (${details})`}`
}

const HASH = /^[0-9a-f]{64}$/

/**
 * Reads anchored heads: the output of `bursar audit head --json`, or lines of the log that have `heads`. Throws an Error
 * for a file without heads, and for a head that is malformed.
 */
export function readAnchors(text: string, file: string): AuditHead[] {
  const heads = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap((line) => headsOf(line))
  if (heads.length === 0) throw new Error(`${file} has no heads: bursar audit head --json writes them`)
  for (const head of heads)
    if (
      !UUID.test(String(head.customer_id)) ||
      !Number.isSafeInteger(head.position) ||
      !HASH.test(String(head.hash))
    )
      throw new Error(`${file} has a malformed head: ${JSON.stringify(head)}`)
  // A chain without links has nothing to anchor.
  return heads.filter(({ position }) => position > 0)
}

function headsOf(line: string): AuditHead[] {
  try {
    const { heads } = JSON.parse(line) as { heads?: unknown }
    return Array.isArray(heads) ? (heads as AuditHead[]) : []
  } catch {
    // A log may have lines that are not JSON.
    return []
  }
}
