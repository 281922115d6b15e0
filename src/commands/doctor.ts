import { styleText } from 'node:util'
import type { Command } from 'commander'
import { readSettings, SETTINGS, SettingsError, type Settings } from '../settings.ts'
import { EXIT } from './command-line.ts'
import { examine, type Finding } from './doctor-checks.ts'
import { print, screen, table } from './output.ts'

/** `bursar doctor`. `nodeNeeded` is what the package says of Node. */
export function doctorCommand(program: Command, nodeNeeded: string): void {
  program
    .command('doctor')
    .description('what is configured, what answers, what is wrong and what to do about it; changes nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit code 1 when something FAILs. A WARN is for you to judge.')
    .action(async ({ json }: { json?: true }) => {
      const settings = configured(process.env)
      const checks = await checksOf(nodeNeeded)
      const healthy = checks.every(({ result }) => result !== 'FAIL')
      if (json) print({ healthy, settings, checks })
      else {
        print(
          table(
            ['setting', 'value', 'from'],
            settings.map(({ name, value, from }) => [name, value, from]),
          ),
        )
        print('')
        for (const { check, result, says, advice } of checks)
          print(`${marked(result)} ${check}: ${says}${advice === undefined ? '' : ` -> ${advice}`}`)
      }
      if (!healthy) process.exitCode = EXIT.failed
    })
}

async function checksOf(nodeNeeded: string): Promise<Finding[]> {
  let settings: Settings
  try {
    settings = readSettings(process.env)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    const advice = 'bursar serve --help lists all settings; the rest is looked at when they are right'
    return error.message.split('\n').map((says) => ({ check: 'settings', result: 'FAIL', says, advice }))
  }
  return examine(settings, nodeNeeded)
}

interface Setting {
  name: string
  value: string | undefined
  from: 'environment' | 'default'
}

/** Every setting as it is given, with what is secret in it hidden. */
function configured(environment: Record<string, string | undefined>): Setting[] {
  return Object.entries(SETTINGS).map(([name, spec]) => {
    const given = environment[name]
    if (given !== undefined && given !== '')
      return { name, value: SECRETS.has(name) ? HIDDEN : masked(given), from: 'environment' }
    const fallback = (spec as { default?: string | number | boolean }).default
    return { name, value: fallback === undefined ? undefined : String(fallback), from: 'default' }
  })
}

const HIDDEN = '***'
/** Settings that are secrets as a whole. */
const SECRETS = new Set(['BURSAR_MASTER_KEY'])

/** Without the password of an address, wherever it stands; what looks like an address and is none is hidden whole. */
function masked(value: string): string {
  if (!URL.canParse(value)) return /[/@]/.test(value) && value.includes('@') ? HIDDEN : value
  const url = new URL(value)
  if (url.password !== '') url.password = HIDDEN
  for (const name of [...url.searchParams.keys()])
    if (/password|secret|key|token/i.test(name)) url.searchParams.set(name, HIDDEN)
  return url.password === HIDDEN || url.search.includes(HIDDEN) ? url.href : value
}

const COLOURS = { OK: 'green', WARN: 'yellow', FAIL: 'red' } as const

function marked(result: Finding['result']): string {
  const text = result.padEnd(4)
  return screen().hasColour ? styleText(COLOURS[result], text) : text
}
