import { expect, test } from 'vitest'
import { Places } from './places.ts'

const SUCCESS = { succeeded: true }
const FAILURE = { succeeded: false }

/** Takes all free places of an endpoint. */
function takeAll(places: Places, id: string, now?: number) {
  const releases = []
  while (places.free(id, now) > 0) releases.push(places.take(id, now))
  return releases
}

test('a new endpoint has a few places, one more after each success', () => {
  const places = new Places()
  expect(places.free('a')).toBe(8)
  for (const release of takeAll(places, 'a')) release(SUCCESS)
  expect(places.free('a')).toBe(16)
  for (let round = 0; round < 20; round++) for (const release of takeAll(places, 'a')) release(SUCCESS)
  expect(places.free('a')).toBe(64)
})

test('a failing endpoint keeps one place', () => {
  const places = new Places()
  for (let round = 0; round < 5; round++) for (const release of takeAll(places, 'a')) release(FAILURE)
  expect(places.free('a')).toBe(1)
  const [release] = takeAll(places, 'a')
  expect(places.full()).toEqual(['a'])
  release!(SUCCESS)
  expect(places.full()).toEqual([])
  expect(places.free('a')).toBe(2)
})

test('a request that was not made changes no window, and a place is given back once', () => {
  const places = new Places()
  const release = places.take('a')
  release(undefined)
  release(SUCCESS)
  expect(places.free('a')).toBe(8)
})

test('dead and slow endpoints leave half of the places to those that answer fast', () => {
  const places = new Places()
  const now = performance.now()
  // A healthy endpoint, and one that is healthy until its requests hang.
  for (const id of ['healthy', 'hanging']) for (const release of takeAll(places, id)) release(SUCCESS)
  const hanging = takeAll(places, 'hanging', now)
  expect(hanging).toHaveLength(16)
  expect(places.free('hanging', now + 2_000)).toBe(0)
  const dead = Array.from({ length: 500 }, (_, index) => takeAll(places, `dead ${index}`, now))
  expect(places.free('one more', now)).toBe(0)
  expect(places.areFull).toBe(false)
  expect(places.free('healthy', now)).toBe(16)
  // A look for work that found the waiting dead ones would not find the healthy one.
  expect(places.admitted(now)).toEqual(['healthy'])
  dead[0]![0]!(FAILURE)
  expect(places.admitted(now)).toBeUndefined()
})
