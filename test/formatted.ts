import { readFile } from 'node:fs/promises'
import { format, type FormatConfig } from 'oxfmt'

const OPTIONS = new URL('../.oxfmtrc.json', import.meta.url)

/** Returns generated TypeScript or JSON in the layout that `npm run check` asks for. Throws where the text is invalid. */
export async function formatted(file: string, text: string): Promise<string> {
  const options = JSON.parse(await readFile(OPTIONS, 'utf8')) as FormatConfig
  const { code, errors } = await format(file, text, options)
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join('; ')}`)
  return code
}
