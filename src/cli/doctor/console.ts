import { isConsoleBuilt } from '../../access/console/files.ts'
import type { Settings } from '../../settings.ts'

interface Verdict {
  result: 'OK' | 'WARN'
  says: string
  advice?: string
}

/** The console as configured (docs/guides/console.md): whether it exists, and whether its links and cookies are safe. */
export function examineConsole(
  settings: Pick<Settings, 'console' | 'mode' | 'baseUrl'>,
  isBuilt = isConsoleBuilt(),
): Verdict[] {
  const { mode, baseUrl } = settings
  if (!settings.console) return [{ result: 'OK', says: 'switched off' }]
  if (!isBuilt)
    return [
      {
        result: 'WARN',
        says: 'it is not built, so /console answers 404',
        advice: 'npm run build:console, or BURSAR_CONSOLE=false',
      },
    ]
  if (mode === 'sandbox')
    return [{ result: 'OK', says: 'browsers on this machine open it with the demo, others sign in' }]
  if (baseUrl === undefined)
    return [
      {
        result: 'WARN',
        says: 'its links name this machine, and its cookies may travel without TLS: BURSAR_BASE_URL is not set',
        advice: 'set BURSAR_BASE_URL to the https address of the service',
      },
    ]
  return [{ result: 'OK', says: `operators sign in at ${baseUrl}/console` }]
}
