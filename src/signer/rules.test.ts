import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { atEnd } from '../../test/support.ts'
import type { SignerConfig } from './config.ts'
import type { Journal } from './journal.ts'
import { foresee, Refused, requireNotStopped, steadyClock, type PaymentToJudge } from './rules.ts'

test('only a folder that can be searched and does not have the stop file lets anything out', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bursar-stop-'))
  atEnd(() => rm(folder, { recursive: true }))
  const stopFile = join(folder, 'stop')
  const judge = () => requireNotStopped(stopFile)
  expect(judge).not.toThrow()
  await symlink('/nowhere', stopFile)
  expect(judge).toThrow(/^everything is stopped by .*: it is there$/)
  await rm(stopFile)
  // Root may search every folder, so the folder goes, and something else takes its place.
  await rename(folder, `${folder}-away`)
  expect(judge).toThrow(/: its folder is not there$/)
  await writeFile(folder, '')
  expect(judge).toThrow(/: ENOTDIR/)
  await rm(folder)
  await rename(`${folder}-away`, folder)
  expect(judge).not.toThrow()
})

test('a clock that was set, forward or back, opens no window again', () => {
  const clock = steadyClock()
  atEnd(async () => void vi.useRealTimers())
  for (const [ms, isRefused] of [
    [50_000, false],
    [3_600_000, true],
    [-3_600_000, true],
    [0, false],
  ] as const) {
    vi.useFakeTimers({ toFake: ['Date'], now: performance.timeOrigin + performance.now() + ms })
    if (isRefused) expect(clock).toThrow(/^the clock was set by -?3600 s since the signer started/)
    else expect(clock).not.toThrow()
    vi.useRealTimers()
  }
})

test('a question about more payments than a worker has in a round is refused before any is judged', () => {
  const payments = Array.from({ length: 251 }, () => ({}) as PaymentToJudge)
  const judge = () => foresee({} as SignerConfig, {} as Journal, payments, new Map(), new Date())
  expect(judge).toThrow(Refused)
  expect(judge).toThrow('at most 250 payments are judged at a time')
})
