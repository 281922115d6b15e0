import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished, TestRunner } from 'vitest'

/** Runs at the end of the test, also when it fails; outside of tests, behind the last one of the file. Not for hooks. */
export function atEnd(work: () => Promise<unknown>): void {
  if (TestRunner.getCurrentTest() === undefined) afterAll(work)
  else onTestFinished(async () => void (await work()))
}

/** A temporary folder of the test, or of the file that calls this outside of its tests: it is removed at the end. */
export async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bursar-test-'))
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

const children = new Set<ChildProcess>()
process.once('SIGTERM', () => process.exit())
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))

/** Ends a process with this worker at the latest: Vitest runs no hook of a file where `-t` leaves out every test. */
export function endWithWorker(child: ChildProcess): void {
  children.add(child)
  child.once('exit', () => children.delete(child))
}
