import { rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { SignerConfig } from './config.ts'
import { Journal } from './journal.ts'
import { foresee, Refused, requireNotStopped, steadyClock, type PaymentToJudge } from './rules.ts'
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
    if (isRefused)
      expect(clock).toThrow(
        /^the clock is -?3600 s from the time .* or the machine was suspended; .* start the signer again$/,
      )
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
  const journal = await Journal.open(path)
  atEnd(() => journal.close())
  expect(journal.signedFor(made)).toBeUndefined()
  expect(journal.objectionTo('ETHEREUM', made)).toBeUndefined()
  expect(journal.objectionTo('ETHEREUM', unsigned)).toContain("'bursar signer allow' allows it")
})
