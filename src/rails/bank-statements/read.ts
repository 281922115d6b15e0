import { isUtf8 } from 'node:buffer'
import { readBai2 } from './bai2.ts'
import { readCamt053 } from './camt-053.ts'
import { readMt940 } from './mt940.ts'
import { refuse, Statements, type BankStatement } from './statement.ts'

/** Largest file that is read. */
export const FILE_BYTES_MAX = 16 * 1024 * 1024

/** Reads the statements of a file, camt.053, MT940 or BAI2, in the order of their dates. Throws a Refusal that names what is wrong. */
export async function readStatements(file: Buffer): Promise<BankStatement[]> {
  if (file.length > FILE_BYTES_MAX) refuse(`the file is larger than ${FILE_BYTES_MAX} bytes`)
  // Banks write UTF-8 or a character set of one byte, whatever they say.
  const decoded = isUtf8(file) ? file.toString('utf8') : new TextDecoder('windows-1252').decode(file)
  const text = decoded.replace(/^\ufeff?\s*/, '').replace(/\r\n/g, '\n')
  const [begin, statements] = [text.slice(0, 1_000), new Statements()]
  if (begin.startsWith('<')) await readCamt053(text, statements)
  else if (begin.startsWith('01,')) await readBai2(text, statements)
  else if (/^(?:\{1:|:20:)/m.test(begin)) await readMt940(text, statements)
  else refuse('unknown format: the file is no camt.053, MT940 or BAI2')
  statements.finish()
  if (statements.finished.length === 0) refuse('the file has no statement')
  return statements.finished.toSorted((a, b) => a.date.localeCompare(b.date))
}
