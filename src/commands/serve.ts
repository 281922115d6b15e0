import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import type { Command } from 'commander'
import { credentialsFile } from '../demo/credentials.ts'
import { curlSession } from '../demo/curl-session.ts'
import { openLog } from '../log.ts'
import { serve } from '../serve.ts'
import { readSettings, SETTINGS } from '../settings.ts'
import { fail } from './command-line.ts'
import { print } from './output.ts'

/** `bursar serve`. */
export function serveCommand(program: Command): void {
  program
    .command('serve')
    .description('run the API and the settlement worker')
    .option('--json', 'print one JSON line when ready, instead of text')
    .addHelpText('after', () => `\n${settingsHelp()}`)
    .action(async ({ json }: { json?: true }) => {
      const settings = readSettings(process.env)
      const starting = serve(settings, openLog(settings))
      stopOnSignal(async () => (await starting).close())
      const service = await starting
      const file = credentialsFile(settings.dataDir)
      if (json) {
        const { address } = service
        const { mode } = settings
        print({
          ready: true,
          address,
          mode,
          ...(mode === 'sandbox' && existsSync(file) && { credentials_file: file }),
        })
      } else {
        console.log(`Bursar is ready at ${service.address} (${settings.mode} mode)`)
        if (service.demo !== undefined) {
          console.log(`\nA demo customer was made; its credentials are in ${file}. To try it, paste:`)
          console.log(curlSession(relative(process.cwd(), file)))
        }
      }
    })
}

function settingsHelp(): string {
  const lines = Object.entries(SETTINGS).map(([name, spec]) => {
    const { desc, default: fallback } = spec as { desc?: string; default?: string | number | boolean }
    return `  ${name.padEnd(34)}${desc}${fallback === undefined ? '' : ` [${fallback}]`}`
  })
  return `Settings, from the environment:\n${lines.join('\n')}`
}

/** The first signal stops in order, if need be after the start; a second one ends at once. */
function stopOnSignal(close: () => Promise<void>): void {
  let stopping = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130)
      stopping = true
      close().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      )
    })
  }
}
