import { readdir, readFile } from 'node:fs/promises'

export const TICKS_A_SECOND = 100

/** The CPU time, in ticks, of a process and its descendants, including descendants that have ended. */
export async function ticksOf(root: number): Promise<number> {
  const stats = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => {
        const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
        const fields = text
          ?.slice(text.lastIndexOf(')') + 2)
          .split(' ')
          .map(Number)
        return fields === undefined
          ? []
          : [{ pid: Number(pid), parent: fields[1]!, ticks: fields.slice(11, 15).reduce((a, b) => a + b) }]
      }),
  )
  const all = stats.flat()
  const family = new Set([root])
  for (let size = 0; size < family.size;) {
    size = family.size
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid)
  }
  return all.reduce((sum, { pid, ticks }) => (family.has(pid) ? sum + ticks : sum), 0)
}
