import { text } from 'node:stream/consumers'
import Fastify from 'fastify'
import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { wholePages, type PagePart } from './whole-page.ts'

const pages = wholePages(
  Fastify(),
  Type.Object({ items: Type.Array(Type.String()), copies: Type.Array(Type.String()), market: Type.String() }),
  '/v2/things',
  (schema) => schema,
)
const first: PagePart = { market: 'é', items: ['a', 'b'], copies: ['a', 'b'], next_page_cursor: '2', left: 4 }

test('a page is read on until it has its records; each list of the answer has them all', async () => {
  const asked: [number, string][] = []
  const stream = pages.write(first, async (limit, cursor) => {
    asked.push([limit, cursor])
    if (cursor === '2') return { items: ['c'], next_page_cursor: '3', left: 3 }
    return { items: ['d', 'e'].slice(0, limit), next_page_cursor: String(Number(cursor) + limit) }
  })
  expect(JSON.parse(await text(stream))).toEqual({
    market: 'é',
    items: ['a', 'b', 'c', 'd', 'e', 'd'],
    copies: ['a', 'b', 'c', 'd', 'e', 'd'],
    next_page_cursor: '6',
  })
  expect(asked).toEqual([
    [4, '2'],
    [2, '3'],
    [1, '5'],
  ])
})

test('a failure in the middle ends the answer with an error, never with a shorter page', async () => {
  const stream = pages.write(first, () => Promise.reject(new Error('lost')))
  await expect(text(stream)).rejects.toThrow('lost')
})
