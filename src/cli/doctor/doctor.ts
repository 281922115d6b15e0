import { styleText } from 'node:util'
import type { Command } from 'commander'
import { readSettings, SETTINGS, SettingsError, type Settings } from '../../settings.ts'
import { group, offline } from '../define.ts'
import type { Finding } from '../../finding.ts'
import { examine, type Checked } from './checks.ts'
import { readScreen } from '../output.ts'
import { tableOf } from '../table.ts'
import { ownProcess } from '../own-process.ts'

export function doctorCommand(program: Command): void {
  group(program, [], offline, {
    '--all': ['print every setting, also those that have their default'],
    '--token-file <path>': [
      'a file with an access token of the external issuer: is it accepted, and if not, why',
    ],
  }).command('doctor [--all] [--token-file <path>]', {
    about: 'check settings, database, keys and networks, and say how to fix each fault; changes nothing',
    json: 'print JSON, with every setting',
    help: '\nExit code 1 when a check FAILs. A WARN is for you to judge.',
    async run(_, { token_file }) {
      const checks = await runChecks(token_file)
      const settings = listSettings(ownProcess().env, checks)
      return { healthy: checks.every(({ result }) => result !== 'FAIL'), settings, checks }
    },
    says: ({ checks, settings }, { all = false }) =>
      `${describeChecks(checks)}\n\n${describeSettings(settings, all)}`,
    fails: ({ healthy }) => !healthy,
  })
}

const SEVERITY = { FAIL: 0, WARN: 1, OK: 2 } as const

/** The findings as lines, the most severe first, and their numbers. */
function describeChecks(checks: Checked[]): string {
  const sorted = checks.toSorted((a, b) => SEVERITY[a.result] - SEVERITY[b.result])
  const count = (result: Finding['result']) => checks.filter((check) => check.result === result).length
  return [
    ...sorted.map(
      ({ check, result, says, advice }) =>
        `${colour(result)} ${check}: ${says}${advice === undefined ? '' : ` -> ${advice}`}`,
    ),
    '',
    `${count('FAIL')} FAIL, ${count('WARN')} WARN, ${count('OK')} OK`,
  ].join('\n')
}

/** The settings as a table; without `showsDefaults`, only those that the environment sets. */
function describeSettings(settings: Setting[], showsDefaults: boolean): string {
  const shown = settings.filter(({ from }) => showsDefaults || from === 'environment')
  const hidden = settings.length - shown.length
  return [
    ...(shown.length === 0
      ? []
      : [tableOf(shown, [['setting', ({ name }) => name], 'value', 'from'], undefined)]),
    ...(hidden === 0 ? [] : [`${hidden} settings have their default: bursar doctor --all shows them`]),
  ].join('\n')
}

/** Runs the checks. If there are wrong settings, they are the only findings, because no check can run with them. */
async function runChecks(tokenFile: string | undefined): Promise<Checked[]> {
  let settings: Settings
  try {
    settings = readSettings(ownProcess().env)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    const advice = 'correct it (bursar serve --help lists all settings); the other checks run after that'
    return error.message.split('\n').map((says) => ({ check: 'settings', result: 'FAIL', says, advice }))
  }
  return examine(settings, tokenFile)
}

interface Setting {
  name: string
  value: string | undefined
  from: 'environment' | 'default'
}

/** Lists every setting with its value and its source. Secrets, and values that a check refuses, are hidden. */
function listSettings(environment: Record<string, string | undefined>, checks: Checked[]): Setting[] {
  return Object.entries(SETTINGS).map(([name, spec]) => {
    const given = environment[name]
    const isHidden =
      SECRETS.has(name) ||
      checks.some(({ check, says }) => check === 'settings' && says.startsWith(`${name}:`))
    if (given !== undefined && given !== '')
      return { name, value: isHidden ? HIDDEN : shown(given), from: 'environment' }
    const fallback = (spec as { default?: string | number | boolean }).default
    return { name, value: fallback === undefined ? undefined : String(fallback), from: 'default' }
  })
}

const HIDDEN = '***'
/** Settings that are secrets as a whole. The path of an endpoint may be one. */
const SECRETS = new Set(['BURSAR_MASTER_KEY', 'BURSAR_SCREENING_URL'])

/** The members of a database's address that say nothing secret. */
const SHOWN = new Set([
  'host',
  'port',
  'user',
  'sslmode',
  'sslrootcert',
  'application_name',
  'connect_timeout',
])

/** Shows of an address what is known to be harmless, and nothing of a value that may be part of one. */
function shown(value: string): string {
  if (!URL.canParse(value)) return value.includes('@') ? HIDDEN : value
  const url = new URL(value)
  if (url.password !== '') url.password = HIDDEN
  for (const name of url.searchParams.keys()) if (!SHOWN.has(name)) url.searchParams.set(name, HIDDEN)
  return url.password === HIDDEN || url.search.includes(HIDDEN) ? url.href : value
}

const COLOURS = { OK: 'green', WARN: 'yellow', FAIL: 'red' } as const

function colour(result: Finding['result']): string {
  const text = result.padEnd(4)
  return readScreen().hasColour ? styleText(COLOURS[result], text) : text
}
