import { isUtf8 } from 'node:buffer'
import { readBai2 } from './bai2.ts'
import { readCamt053 } from './camt-053.ts'
import { readMt940 } from './mt940.ts'
import { refuse, Statements, type BankStatement } from './statement.ts'

/** Largest file that is read. */
export const FILE_BYTES_MAX = 16 * 1024 * 1024

/** What a file of a format begins with, and what reads it. */
const FORMATS = [
  [/^</, readCamt053],
  [/^01,/, readBai2],
  [/^(?:\{1:|:20:)/m, readMt940],
] as const

/**
 * Reads the statements of a file, camt.053, MT940 or BAI2, in the order of their dates. Each leads from its opening to its closing
 * balance. Throws a Refusal that names what is wrong.
 */
export async function readStatements(file: Buffer): Promise<BankStatement[]> {
  if (file.length > FILE_BYTES_MAX) refuse(`the file is larger than ${FILE_BYTES_MAX} bytes`)
  // Banks write UTF-8 or a character set of one byte, whatever they say.
  const decoded = isUtf8(file) ? file.toString('utf8') : new TextDecoder('windows-1252').decode(file)
  const text = decoded.replace(/^\ufeff?\s*/, '').replace(/\r\n/g, '\n')
  const format = FORMATS.find(([begin]) => begin.test(text.slice(0, 1_000)))
  const [, read] = format ?? refuse('unknown format: the file is no camt.053, MT940 or BAI2')
  const statements = new Statements()
  await read(text, statements)
  statements.finish()
  if (statements.finished.length === 0) refuse('the file has no statement')
  // Statements of one day stay in the order of the file.
  return statements.finished.toSorted((a, b) => a.date.localeCompare(b.date))
}
