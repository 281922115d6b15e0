import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Commands that change no record. `migrate` and `serve` have logs of their own. */
const CHANGES_NOTHING = new Set([
  ...['check', 'completion', 'doctor', 'explain', 'list', 'migrate', 'serve', 'show', 'status', 'verify'],
  // These commands change prices only, whose records name their origin.
  ...['follow', 'import'],
  'passkeys',
  'sessions',
  // Prints a public key, and makes a file with an approver's key.
  ...['deposit-key', 'key'],
  // Prints the head of a chain.
  'head',
  // Names of groups.
  ...[
    'account',
    'audit',
    'client',
    'customer',
    'deployment',
    'deposits',
    'freeze',
    'identity',
    'transfer',
    'balance',
    'ledger',
    'keys',
    'networks',
  ],
  ...[
    'operator',
    'prices',
    'rate',
    'rewards',
    'sandbox',
    'screening',
    'statements',
    'console',
    'limits',
    'treasury',
    'wallet',
    'wire',
    'withdrawal',
  ],
])

/** The commands of these files are a client's requests, which the service logs. */
const CALL_THE_API = new Set(['api.ts', 'events.ts', 'listen.ts', 'trigger.ts', 'webhooks.ts'])

test('each command that changes a record logs its operator', () => {
  const folder = new URL('.', import.meta.url)
  const files = readdirSync(folder).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !CALL_THE_API.has(name),
  )
  const silent = files.flatMap((file) => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    // Commands that call the API are requests of a client, which the service logs. They do not reach the database.
    if (text.includes('openApi(') && !/with(Migrated)?Database\(/.test(text)) return []
    // Functions that log for a command: for each call of the log, the last function that begins before it.
    const helpers = [...text.matchAll(/logOperator\(/g)].flatMap(({ index }) => {
      const before = [
        ...text
          .slice(0, index)
          .matchAll(/^ {0,2}(?:async )?function (\w+)|^ {0,2}const (\w+) = (?:async )?\(/gm),
      ]
      return before.at(-1)?.[1] ?? before.at(-1)?.[2] ?? []
    })
    const [, ...commands] = text.split(/\.command\((?=['`\n])/)
    return commands
      .map((command) => ({ name: /^\s*['`]([\w$-]+)/.exec(command)?.[1] ?? '', command }))
      .filter(({ name }) => !CHANGES_NOTHING.has(name))
      .filter(
        ({ command }) =>
          !command.includes('logOperator(') && !helpers.some((name) => command.includes(`${name}(`)),
      )
      .map(({ name }) => `${file}: ${name}`)
  })
  expect(silent).toEqual([])
})
