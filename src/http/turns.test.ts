import { EventEmitter } from 'node:events'
import type { FastifyReply } from 'fastify'
import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

const newReply = () => ({ raw: new EventEmitter() }) as unknown as FastifyReply

test('a client has 16 turns until it has read the answers; other clients do not wait for it', async () => {
  const turns = new Turns(16)
  const replies = Array.from({ length: 40 }, newReply)
  const begun: number[] = []
  const refused: number[] = []
  replies.forEach((reply, n) => {
    void turns.take('one', reply).then(
      () => begun.push(n),
      () => refused.push(n),
    )
  })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  await settled()
  expect(begun).toHaveLength(16)
  await turns.take('two', newReply())
  // A waiting request disconnects, and takes no turn.
  replies[16]!.raw.emit('close')
  replies[0]!.raw.emit('close')
  await settled()
  expect([begun.at(-1), begun.length, refused]).toEqual([17, 17, [16]])
  for (const n of begun) replies[n]!.raw.emit('close')
  await settled()
  expect(begun).toHaveLength(17 + 16)
  for (const reply of replies) reply.raw.emit('close')
  await settled()
  expect(begun).toHaveLength(39)
  // No turn was lost: a full new round starts at once.
  for (const reply of replies) reply.raw.emit('close')
  await Promise.all(Array.from({ length: 16 }, () => turns.take('one', newReply())))
})
