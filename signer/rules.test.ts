import { rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { SignerConfig } from './config.ts'
import { Journal } from './journal.ts'
import { Refused } from './refused.ts'
import { foresee, requireNotStopped, steadyClock, type PaymentToJudge } from './rules.ts'
import { atEnd, ownFolder } from '../test/at-end.ts'

test('only a folder that can be searched and does not have the stop file lets anything out', async () => {
  const folder = await ownFolder()
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

/** Sets the clock of the machine this far from where it is, until the work is done. */
const whileOff = (ms: number, work: () => void) => {
  vi.useFakeTimers({ toFake: ['Date'], now: performance.timeOrigin + performance.now() + ms })
  try {
    work()
  } finally {
    vi.useRealTimers()
  }
}

test('a clock that was set, forward or back, opens no window again, and goes on once it is right', () => {
  const clock = steadyClock({ newest: 0 })
  clock()
  for (const off of [3_600, -3_600])
    whileOff(off * 1_000, () =>
      expect(clock).toThrow(
        new RegExp(`^the clock is ${off} s from the time since .* set it right, and .* goes on`),
      ),
    )
  // By less than a minute it is taken for exact, and windows count what has passed.
  const before = clock().getTime()
  whileOff(50_000, () => expect(clock().getTime() - before).toBeLessThan(5_000))
  whileOff(-50_000, () => expect(clock().getTime()).toBeGreaterThanOrEqual(before))
})

test('a clock that is behind the newest line of the journal at the start signs nothing until it is right', () => {
  const journal = { newest: performance.timeOrigin + performance.now() + 3_600_000 }
  const clock = steadyClock(journal)
  for (const ms of [0, 3_500_000])
    whileOff(ms, () =>
      expect(clock).toThrow(/^the clock is -\d+ s from the journal's newest line, of .* wait until then$/),
    )
  whileOff(3_600_000, () => expect(clock).not.toThrow())
  expect(clock).toThrow(/^the clock is -3600 s from/)
})

test('a question about more payments than a worker has in a round is refused before any is judged', () => {
  const payments = Array.from({ length: 251 }, () => ({}) as PaymentToJudge)
  const judge = () => foresee({} as SignerConfig, {} as Journal, payments, new Map(), new Date())
  expect(judge).toThrow(Refused)
  expect(judge).toThrow('at most 250 payments are judged at a time')
})

test("an earlier version's VOID is no ALLOW: it counts for what was signed alone, and the rest is asked for again", async () => {
  const folder = await ownFolder()
  const path = join(folder, 'journal')
  const of = { at: '2026-01-02T00:00:00.000Z', network: 'ETHEREUM', wallet: '0x1' }
  const [unsigned, made] = ['019b0000-0000-7000-8000-000000000001', '019b0000-0000-7000-8000-000000000002']
  const lines = [
    { kind: 'OPEN', ...of, next_nonce: 0, transfers_from: '2036-01-01T00:00:00.000Z' },
    { kind: 'ALLOW', ...of, transfer_ids: [made] },
    { kind: 'SIGN', ...of, nonce: 0, transfer_id: made, asset: 'ETH', units: '1', fee: '1' },
    { kind: 'VOID', ...of, nonce: 0, transfer_id: made },
    { kind: 'VOID', ...of, nonce: 1, transfer_id: unsigned },
  ]
  await writeFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const journal = await Journal.open(path, new Map())
  atEnd(() => journal.close())
  expect(journal.signedFor(made)).toBeUndefined()
  expect(journal.objectionTo('ETHEREUM', made)).toBeUndefined()
  expect(journal.objectionTo('ETHEREUM', unsigned)).toContain("'bursar signer allow' allows it")
})
