import { Buffer } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Unzip, UnzipInflate } from 'fflate'

/** A fault in a price file, with its line and column where it has one. */
export class PriceFileError extends Error {}

/** The first bytes of files that are not text, and what such a file is. */
const BINARY: readonly [string, string][] = [
  ['PAR1', 'a Parquet file'],
  ['\xd0\xcf\x11\xe0', 'an Excel workbook (.xls)'],
  ['%PDF', 'a PDF file'],
  ['BZh', 'compressed by bzip2'],
  ['\xfd7zXZ', 'compressed by xz'],
  ['(\xb5/\xfd', 'compressed by zstd'],
  ['7z\xbc\xaf', 'a 7z archive'],
  ['SQLite format 3', 'a SQLite database'],
]

/** How text begins that is not CSV, and what such text is. */
const TEXT: readonly [RegExp, string][] = [
  [/^\s*[[{]/, 'JSON'],
  [/^\s*<(?:!doctype|html|\?xml)/i, 'a web page or XML'],
]

/** Number of bytes at the start of the text that decide its layout. */
const HEAD_BYTES = 64 * 1024

/** The text of a file: plain, gzipped, or in a zip archive of one file. */
export interface OpenFile {
  /** The first bytes of the text. */
  head: Buffer
  text(): AsyncGenerator<Buffer>
  close(): void
}

/** Opens a file. Throws PriceFileError for a file that is not CSV, and names what it is. */
export async function openPriceFile(
  path: string,
  name: string,
  onBytes: (bytes: number) => void,
): Promise<OpenFile> {
  const start = await firstBytesOf(path)
  const unpack = start.startsWith('\x1f\x8b')
    ? createGunzip()
    : start.startsWith('PK\x03\x04')
      ? unzip(name)
      : undefined
  refuse(name, BINARY.find(([first]) => start.startsWith(first))?.[1])
  const source = createReadStream(path, { highWaterMark: 256 * 1024 })
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      onBytes(chunk.length)
      done(null, chunk)
    },
  })
  // A failure destroys the last stream, and reading from it throws the failure.
  pipeline(unpack === undefined ? [source, count] : [source, count, unpack], () => undefined)
  const chunks = (unpack ?? count)[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const first: Buffer[] = []
  let length = 0
  let failure: unknown
  try {
    while (length < HEAD_BYTES) {
      const next = await chunks.next()
      if (next.done === true) break
      first.push(next.value)
      length += next.value.length
    }
  } catch (error) {
    // The bytes before the failure are used; `text` throws the failure after them.
    if (first.length === 0) throw error
    failure = error
  }
  const head = Buffer.concat(first).subarray(0, HEAD_BYTES)
  const begins = head.toString('latin1', 0, 200).replace(/^\xef\xbb\xbf/, '')
  refuse(name, TEXT.find(([pattern]) => pattern.test(begins))?.[1])
  return {
    head,
    async *text() {
      yield* first
      if (failure !== undefined) throw failure as Error
      yield* { [Symbol.asyncIterator]: () => chunks }
    },
    close: () => source.destroy(),
  }
}

function refuse(name: string, what: string | undefined): void {
  if (what !== undefined)
    throw new PriceFileError(`${name}: this is ${what}, not CSV: export or convert it as CSV`)
}

async function firstBytesOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Unpacks the only file of a zip archive. Folders, and files that macOS adds, do not count. */
function unzip(name: string): Transform {
  const files: string[] = []
  let isWhole = false
  let failure: Error | null = null
  const archive = new Unzip((file) => {
    if (/\/$|^__MACOSX\/|(?:^|\/)\.[^/]*$/.test(file.name)) return
    files.push(file.name)
    if (file.name === '[Content_Types].xml')
      failure ??= new PriceFileError(`${name}: this is an Excel workbook (.xlsx), not CSV: save it as CSV`)
    if (files.length > 1)
      failure ??= new PriceFileError(
        `${name}: the archive has several files (${files.join(', ')}): unpack it, and import each one`,
      )
    file.ondata = (error, data, isLast) => {
      isWhole ||= isLast
      if (error !== null) failure ??= error
      else text.push(Buffer.from(data))
    }
    if (failure === null) file.start()
  })
  archive.register(UnzipInflate)
  const push = (chunk: Uint8Array, isLast: boolean, done: (error: Error | null) => void) => {
    try {
      archive.push(chunk, isLast)
    } catch (error) {
      failure ??= error as Error
    }
    done(failure)
  }
  const text = new Transform({
    transform: (chunk: Buffer, _encoding, done) => push(chunk, false, done),
    flush: (done) =>
      push(new Uint8Array(0), true, (error) => {
        if (error !== null || (files.length > 0 && isWhole)) return done(error)
        done(
          files.length === 0
            ? new PriceFileError(`${name}: the archive has no file`)
            : new Error('the archive ends too early'),
        )
      }),
  })
  return text
}
