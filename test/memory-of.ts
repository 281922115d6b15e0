import { open, readdir, readFile, readlink } from 'node:fs/promises'

const CHUNK_BYTES = 16 * 1024 * 1024

/** What of these is in the memory, the environment or the open files of a process of Linux. */
export async function foundIn(
  pid: number,
  wanted: ReadonlyMap<string, readonly Buffer[]>,
): Promise<string[]> {
  const found = new Set<string>()
  const look = (bytes: Buffer) => {
    for (const [name, forms] of wanted) if (forms.some((form) => bytes.includes(form))) found.add(name)
  }
  const maps = (await readFile(`/proc/${pid}/maps`, 'utf8')).trim().split('\n')
  const memory = await open(`/proc/${pid}/mem`)
  const longest = Math.max(...[...wanted.values()].flat().map(({ length }) => length))
  try {
    for (const line of maps.filter((text) => /^\S+ rw/.test(text))) {
      const [from, to] = line
        .split(' ')[0]!
        .split('-')
        .map((hex) => Number.parseInt(hex, 16)) as [number, number]
      for (let at = from; at < to; at += CHUNK_BYTES) {
        const length = Math.min(to - at, CHUNK_BYTES + longest)
        // Pages may have gone since the map was read.
        const read = await memory.read(Buffer.alloc(length), 0, length, at).catch(() => undefined)
        if (read !== undefined) look(read.buffer.subarray(0, read.bytesRead))
      }
    }
  } finally {
    await memory.close()
  }
  look(await readFile(`/proc/${pid}/environ`))
  for (const name of await readdir(`/proc/${pid}/fd`)) {
    const path = await readlink(`/proc/${pid}/fd/${name}`).catch(() => '')
    if (path.startsWith('/') && !path.startsWith('/dev/'))
      look(await readFile(path).catch(() => Buffer.alloc(0)))
  }
  return [...found].sort()
}

/** The forms in which a program may hold a text: as bytes, and as a string of two bytes a character. */
export const formsOf = (text: string): Buffer[] => [Buffer.from(text), Buffer.from(text, 'utf16le')]
