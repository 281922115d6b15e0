import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))
const POLL_MS = 100
const STEP_MS_MAX = 600_000
const WITHDRAWAL = {
  profile_id: '{profile_id}',
  asset: 'USDP',
  balance_asset: 'USD',
  crypto_network: 'ETHEREUM',
  amount: '25',
  destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
  ref_id: 'first-payout',
}

/** Seconds of each step of the README, in a fresh clone. */
export interface FirstSession {
  round: number
  'git clone': number
  'npm ci': number
  'npm start, to the credentials': number
  'to the paid withdrawal': number
  total: number
}

/**
 * Follows the README in a fresh clone of the last commit: installs, starts, and makes a withdrawal with `bursar api`. Measures
 * until the withdrawal is COMPLETED. npm keeps its cache of earlier downloads.
 */
export async function measureFirstSession(rounds: number): Promise<FirstSession[]> {
  const figures: FirstSession[] = []
  for (let round = 1; round <= rounds; round++) {
    const folder = await mkdtemp(join(tmpdir(), 'bursar-clone-'))
    try {
      figures.push({ round, ...(await firstSession(join(folder, 'bursar'))) })
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    }
  }
  return figures
}

async function firstSession(clone: string): Promise<Omit<FirstSession, 'round'>> {
  const times = [performance.now()]
  const step = () => times.push(performance.now())
  const run = (command: string, args: string[], cwd = clone) =>
    promisify(execFile)(command, args, { cwd, timeout: STEP_MS_MAX, maxBuffer: 64 * 1024 * 1024 })
  await run('git', ['clone', '--quiet', REPOSITORY, clone], tmpdir())
  step()
  await run('npm', ['ci'])
  step()
  // npm starts a shell, which starts the service. A signal to the process group ends all three.
  const service = spawn('npm', ['start'], {
    cwd: clone,
    env: { ...process.env, PORT: '0' },
    stdio: 'ignore',
    detached: true,
  })
  const ended = once(service, 'exit')
  try {
    const credentials = join(clone, '.bursar', 'sandbox-credentials.json')
    while ((await readFile(credentials).catch(() => undefined)) === undefined) {
      if (service.exitCode !== null) throw new Error(`npm start ended with ${service.exitCode}`)
      await pause(POLL_MS)
    }
    step()
    const api = (...args: string[]) => run('npx', ['bursar', 'api', ...args])
    await api('POST', '/v2/transfer/crypto-withdrawals', JSON.stringify(WITHDRAWAL))
    const list = `/v2/transfer/transfers?ref_ids=${WITHDRAWAL.ref_id}`
    while (!(await api('GET', list)).stdout.includes('COMPLETED')) await pause(POLL_MS)
    step()
  } finally {
    process.kill(-service.pid!, 'SIGTERM')
    await ended
  }
  const seconds = (from: number, to: number) => Number(((times[to]! - times[from]!) / 1000).toFixed(1))
  return {
    'git clone': seconds(0, 1),
    'npm ci': seconds(1, 2),
    'npm start, to the credentials': seconds(2, 3),
    'to the paid withdrawal': seconds(3, 4),
    total: seconds(0, 4),
  }
}
