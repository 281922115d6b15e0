import { expect, test } from 'vitest'
import type { Database } from './database.ts'
import { setParts, type Part } from './parts.ts'
import { RefreshedParts } from './refreshed-parts.ts'
import { Refreshed } from './refreshed.ts'

function pending<T>() {
  let resolve!: (value: T) => void
  return { promise: new Promise<T>((done) => (resolve = done)), resolve: (value: T) => resolve(value) }
}
const noFailure = (error: unknown) => expect.unreachable(String(error))

test('readings at the same time are one, and the value is as old as its beginning', async () => {
  const reading = pending<number>()
  let readings = 0
  const number = new Refreshed(
    0,
    () => {
      readings += 1
      return reading.promise
    },
    noFailure,
  )
  const before = performance.now()
  const both = [number.read(), number.again()]
  const begun = performance.now()
  expect(number.triedAt).toBe(-Infinity)
  reading.resolve(7)
  await Promise.all(both)
  expect(readings).toBe(1)
  expect(number.value).toBe(7)
  expect(number.readAt).toBeGreaterThanOrEqual(before)
  expect(number.readAt).toBeLessThanOrEqual(begun)
  expect(number.triedAt).toBeGreaterThanOrEqual(number.readAt)
})

test('the first of several failures is reported, and the last value stays', async () => {
  const failures: string[] = []
  let failing = false
  const count = new Refreshed(
    0,
    async (last) => {
      if (failing) throw new Error('gone')
      return last + 1
    },
    (error) => failures.push((error as Error).message),
  )
  await count.again()
  failing = true
  await expect(count.read()).rejects.toThrow('gone')
  expect(failures).toEqual([])
  for (let times = 0; times < 3; times++) await count.again()
  expect(failures).toEqual(['gone'])
  expect(count).toMatchObject({ value: 1, isFailing: true })
  failing = false
  await count.again()
  expect(count).toMatchObject({ value: 2, isFailing: false })
})

test('the value is read again until the end', async () => {
  const twice = pending<void>()
  const count = new Refreshed(
    0,
    async (last) => {
      if (last === 1) twice.resolve()
      return last + 1
    },
    noFailure,
  )
  count.follow(1)
  await twice.promise
  await count.stop()
  const last = count.value
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(count.value).toBe(last)
})

test('each part of a database has its value: a part that hangs delays no other, and one without customers is forgotten', async () => {
  const names = new Map<unknown, string>()
  const partNamed = (name: string): Part => {
    const db = {} as Database
    names.set(db, name)
    return { name, db }
  }
  let listed = [partNamed('a'), partNamed('b')]
  const db = {} as Database
  setParts(db, {
    of: (customerId) => listed.find(({ name }) => name === customerId)!,
    list: () => listed,
    refresh: async () => undefined,
  })
  const hanging = pending<string>()
  const values = new RefreshedParts(
    db,
    '',
    async (from, whose) => {
      const name = names.get(from) ?? 'nobody'
      return name === 'b' ? hanging.promise : `${name} ${whose}`
    },
    noFailure,
  )
  const valueOf = (name: string) => values.of(name)[0]!
  const starting = values.start(1)
  await expect.poll(() => valueOf('a').value).toBe('a CUSTOMERS')
  expect(valueOf('b').value).toBe('')
  const b = valueOf('b')
  listed = [...listed, partNamed('c')]
  hanging.resolve('b after all')
  await starting
  await expect.poll(() => valueOf('c').value).toBe('c CUSTOMERS')
  await expect.poll(() => valueOf('b').value).toBe('b after all')
  expect(valueOf('b')).toBe(b)
  listed = [listed[0]!]
  expect(values.all.map(({ value }) => value)).toEqual(['a CUSTOMERS', 'nobody NOBODY'])
  await values.stop()
})
