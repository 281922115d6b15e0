import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { Shares } from './shares.ts'

const newResponse = () => {
  const response = Object.assign(new EventEmitter(), { destroyed: false })
  response.once('close', () => (response.destroyed = true))
  return response as unknown as ServerResponse
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a customer has its places until it has read the answers; other customers do not wait for it', async () => {
  const lists = new Shares(16)
  const replies = Array.from({ length: 40 }, newResponse)
  const begun: number[] = []
  const refused: number[] = []
  replies.forEach((reply, n) => {
    void lists.takeUntilAnswered('one', reply).then(
      () => begun.push(n),
      () => refused.push(n),
    )
  })
  await settled()
  expect(begun).toHaveLength(16)
  await lists.takeUntilAnswered('two', newResponse())
  // A waiting request disconnects, and takes no place.
  replies[16]!.emit('close')
  replies[0]!.emit('close')
  await settled()
  expect([begun.at(-1), begun.length, refused]).toEqual([17, 17, [16]])
  for (const n of begun) replies[n]!.emit('close')
  await settled()
  expect(begun).toHaveLength(17 + 16)
  for (const reply of replies) reply.emit('close')
  await settled()
  expect(begun).toHaveLength(39)
  for (const reply of replies) reply.emit('close')
  // No place was lost: a full new round starts at once.
  await Promise.all(Array.from({ length: 16 }, () => lists.takeUntilAnswered('one', newResponse())))
})

test('work that fails gives its place back, and work that waits ends with its client', async () => {
  const shares = new Shares(1)
  await expect(shares.run('one', newResponse(), () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  const [stays, leaves] = [newResponse(), newResponse()]
  let end!: () => void
  const first = shares.run('one', stays, () => new Promise<void>((resolve) => (end = resolve)))
  await settled()
  let worked = false
  const second = shares.run('one', leaves, async () => void (worked = true))
  const third = shares.run('one', stays, async () => 'answer')
  leaves.emit('close')
  end()
  await first
  await expect(second).rejects.toThrow('disconnected')
  expect([worked, await third]).toEqual([false, 'answer'])
  await expect(shares.run('one', leaves, async () => 'too late')).rejects.toThrow('disconnected')
})
