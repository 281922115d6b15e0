import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Changes, type Idle, type LoopRest } from './changes.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const IDLE_MS = 3_000
const never = async () => undefined
const idle = (dueIn: Idle['dueIn'] = never): Idle => ({ usualMs: 100, dueIn })
const isOver = ({ endedBy }: LoopRest) => endedBy?.aborted

test('a loop rests as usual soon after a change, and long when nothing has changed since', async () => {
  const changes = new Changes()
  const restOf = changes.restsOfLoop()
  expect(await restOf(idle(), changes.count)).toEqual({ ms: 100 })
  vi.advanceTimersByTime(10_000)
  expect(await restOf(idle(), changes.count)).toMatchObject({ ms: IDLE_MS })
  changes.note()
  expect(await restOf(idle(), changes.count)).toEqual({ ms: 100 })
})

test('a change ends the long rests of all loops, and no usual one', async () => {
  const changes = new Changes()
  const [one, other] = [changes.restsOfLoop(), changes.restsOfLoop()]
  const usual = await one(idle(), changes.count)
  vi.advanceTimersByTime(10_000)
  const rests = [await one(idle(), changes.count), await other(idle(), changes.count)]
  expect(rests.map(isOver)).toEqual([false, false])
  changes.note()
  expect(rests.map(isOver)).toEqual([true, true])
  expect(usual.endedBy).toBeUndefined()
})

test('a change during the look or during the question for what is due is looked for at once', async () => {
  const changes = new Changes()
  const restOf = changes.restsOfLoop()
  vi.advanceTimersByTime(10_000)
  const seen = changes.count
  const noted = async () => {
    changes.note()
    return undefined
  }
  expect(await restOf(idle(noted), seen)).toEqual({ ms: 0 })
})

test('a long rest ends when something is due, which is asked once for each time and after each change', async () => {
  const changes = new Changes()
  const restOf = changes.restsOfLoop()
  const dueIn = vi.fn(async (): Promise<number | undefined> => IDLE_MS + 1_500)
  vi.advanceTimersByTime(10_000)
  const restMs = async () => (await restOf(idle(dueIn), changes.count)).ms
  expect(await restMs()).toBe(IDLE_MS)
  vi.advanceTimersByTime(IDLE_MS)
  expect(await restMs()).toBe(1_500)
  vi.advanceTimersByTime(1_000)
  expect(await restMs()).toBe(500)
  expect(dueIn).toHaveBeenCalledOnce()
  // What is due in no time rests as usual, such as what another process has leased.
  vi.advanceTimersByTime(500)
  dueIn.mockResolvedValue(-1)
  expect(await restMs()).toBe(100)
  changes.note()
  vi.advanceTimersByTime(10_000)
  dueIn.mockResolvedValue(undefined)
  expect(await restMs()).toBe(IDLE_MS)
  expect(dueIn).toHaveBeenCalledTimes(3)
})

test('other processes are told at once, and together of what follows within 50 ms', async () => {
  const changes = new Changes()
  const query = vi.fn(async () => undefined)
  changes.tellOthers({ query } as never, () => undefined)
  changes.note()
  expect(query).toHaveBeenCalledTimes(1)
  changes.note()
  changes.note()
  expect(query).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(50)
  expect(query).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(500)
  changes.note()
  expect(query).toHaveBeenCalledTimes(3)
})
