import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import type { Command } from 'commander'
import { credentialsFile } from '../program/demo/credentials.ts'
import { firstSession } from '../program/demo/first-session.ts'
import { openLog, type Log } from '../log.ts'
import { connectService } from '../program/connect.ts'
import type { Service } from '../program/serve.ts'
import { readSettings, SETTINGS, type Settings } from '../settings.ts'
import { group, offline } from './define.ts'
import { EXIT, fail, stopSignal } from './exit.ts'
import { print } from './output.ts'
import { ownProcess } from './own-process.ts'

export function serveCommand(program: Command): void {
  group(program, [], offline).command('serve', {
    about: 'run the API and the settlement worker',
    json: 'print one line of JSON when ready, instead of text',
    help: () => `\n${describeSettings()}`,
    async run(_, { json }) {
      const settings = readSettings(ownProcess().env)
      const log = await openLog(settings, ownProcess().log)
      let running: Promise<Service>
      const beginAnew = async () => {
        await (await import('./sandbox.ts')).requireMayBeEmptied()
        running = running.then((service) => restartEmpty(service, settings, log, beginAnew))
        running.catch(fail)
      }
      running = begin(settings, log, beginAnew)
      stopOnSignal(async () => {
        await (await running).close()
        log.close()
      })
      try {
        await announce(await running, settings, json)
      } catch (error) {
        log.close()
        throw error
      }
    },
  })
}

/** Starts the service. Its modules are loaded while the embedded PostgreSQL starts, which takes as long. */
async function begin(settings: Settings, log: Log, beginAnew: () => Promise<void>): Promise<Service> {
  const connecting = connectService(settings, log.log)
  connecting.catch(() => undefined)
  const { serve } = await import('../program/serve.ts')
  return serve(settings, log, { beginAnew, connecting })
}

/** Stops the service, empties its sandbox, and starts it again at its address. A sandbox that cannot be emptied is kept. */
async function restartEmpty(
  service: Service,
  settings: Settings,
  log: Log,
  beginAnew: () => Promise<void>,
): Promise<Service> {
  log.log.warn('an empty sandbox was asked for: the service stops, and begins anew')
  await service.close()
  const { emptyStopped } = await import('./sandbox.ts')
  await emptyStopped().catch((err: unknown) => log.log.error({ err }, 'the sandbox was not emptied'))
  return begin({ ...settings, port: Number(new URL(service.address).port) }, log, beginAnew)
}

/** What is printed at the start: the address, the pages, the credentials file and how to stop. */
async function announce(
  { address, addressOf, demo }: Service,
  settings: Settings,
  isForPrograms: boolean | undefined,
): Promise<void> {
  const { isConsoleBuilt } = await import('../access/console/files.ts')
  const { mode, docs } = settings
  const file = credentialsFile(settings.dataDir)
  const shown = relative(process.cwd(), file)
  const hasConsole = settings.console && isConsoleBuilt()
  const hasCredentials = mode === 'sandbox' && existsSync(file)
  const lines: [string, string][] = [
    ...(hasConsole ? [['console', addressOf('/console')] as [string, string]] : []),
    ...(docs ? [['API reference', addressOf('/docs')] as [string, string]] : []),
    ...(hasCredentials ? [['credentials', shown] as [string, string]] : []),
    ['stop', 'Ctrl+C'],
  ]
  const width = Math.max(...lines.map(([name]) => name.length))
  const text = [
    `Bursar is ready at ${address} (${mode} mode)`,
    ...lines.map(([name, says]) => `  ${name.padEnd(width)}  ${says}`),
    ...(demo === undefined
      ? []
      : ['\nA demo customer was created. To try it, paste into another terminal:', firstSession(shown)]),
  ]
  const json = {
    ...{ ready: true, address, mode },
    ...(hasConsole && { console: addressOf('/console') }),
    ...(hasCredentials && { credentials_file: file }),
  }
  print(isForPrograms ? json : text.join('\n'))
}

function describeSettings(): string {
  const width = Math.max(...Object.keys(SETTINGS).map(({ length }) => length)) + 2
  const lines = Object.entries(SETTINGS).map(([name, spec]) => {
    const { desc, default: fallback } = spec as { desc?: string; default?: string | number | boolean }
    return `  ${name.padEnd(width)}${desc}${fallback === undefined ? '' : ` [${fallback}]`}`
  })
  return `Settings, from the environment:\n${lines.join('\n')}`
}

/** The first signal shuts down in order. If the start is still under way, the shutdown follows it. */
function stopOnSignal(close: () => Promise<void>): void {
  stopSignal().addEventListener('abort', () => void close().then(() => ownProcess().exit(EXIT.done), fail))
}
