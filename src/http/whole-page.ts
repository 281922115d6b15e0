import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { TObject, TSchema } from 'typebox'
import { serializerCompiler } from './validation.ts'

/**
 * A part of a page, as a list answers it. A page whose records exceed `PARTS.bytesMax` (http/lists.ts) comes in parts;
 * `left` is how many records the page still has room for.
 */
export type PagePart = Record<string, unknown> & { left?: number; next_page_cursor?: string }

/** Reads the part of a page after a cursor, with at most `limit` records. */
export type ReadPart = (limit: number, page_cursor: string) => Promise<PagePart>

export interface WholePages {
  /** Whether the answer has its records under two names. Writing the second list needs a copy of the first one's text. */
  copied: boolean
  /** The JSON of a page, as a stream that reads each part when the client has taken the one before. */
  write(first: PagePart, read: ReadPart): Readable
}

/**
 * Answers whole pages of a list whose records are large. A page of the largest records has 1,000 times 64 KiB. It is read
 * and written in parts, so it takes the memory of one part. A failure in the middle ends the connection, so that no client
 * takes a beginning for the whole page.
 */
export function wholePages(
  app: FastifyInstance,
  { properties }: TObject,
  url: string,
  shared: (schema: TSchema | object) => object,
): WholePages {
  const [list = '', ...copies] = Object.keys(properties).filter(
    (name) => (properties[name] as { type?: string }).type === 'array',
  )
  const serialize = serializerCompiler(app)({
    schema: shared(properties[list] ?? {}),
    httpStatus: '200',
    method: 'GET',
    url,
  }) as (records: unknown) => string

  async function* write(first: PagePart, read: ReadPart): AsyncGenerator<string | Buffer> {
    const text: Buffer[] = []
    yield '{'
    const others = Object.entries(first).filter(([name]) => ![list, ...copies, ...OF_PARTS].includes(name))
    for (const [name, value] of others) yield `${JSON.stringify(name)}:${JSON.stringify(value)},`
    yield `"${list}":[`
    let part = first
    for (let separator = ''; ; separator = ',') {
      const records = part[list] as unknown[]
      const json = Buffer.from(records.length === 0 ? '' : separator + serialize(records).slice(1, -1))
      yield json
      if (copies.length > 0) text.push(json)
      if (part.left === undefined) break
      // Parts of about the same size: reading many more records than fit, to drop them, would cost more than the page.
      part = await readOf(part, records.length * 2, read)
    }
    yield ']'
    for (const copy of copies) {
      yield `,"${copy}":[`
      yield* text
      yield ']'
    }
    for (const name of ENDS) if (part[name] !== undefined) yield `,"${name}":${JSON.stringify(part[name])}`
    yield '}'
  }

  return { copied: copies.length > 0, write: (first, read) => Readable.from(write(first, read)) }
}

const ENDS = ['next_page_cursor', 'complete_until']
/** Members of a part that are not members of its page, or only at the end. */
const OF_PARTS = ['left', ...ENDS]

/** Reads the part after this one. Where it asks for fewer records than the page lacks, its end is not the page's end. */
async function readOf(before: PagePart, most: number, read: ReadPart): Promise<PagePart> {
  const left = before.left!
  const limit = Math.min(left, most)
  const part = await read(limit, before.next_page_cursor!)
  if (part.next_page_cursor === undefined) return part
  const lacking = left - limit + (part.left ?? 0)
  return lacking === 0 ? part : { ...part, left: lacking }
}
