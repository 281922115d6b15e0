/** Two texts line by line: what is removed, what is added. */

interface DiffLine {
  kind: '+' | '−' | ' '
  text: string
}

/** Most pairs of lines that are compared. Beyond, all lines count as removed and added. */
const PAIRS_MAX = 4_000_000

/** The lines of both, in order, with as few removed and added ones as possible. */
export function diffOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  const most = Math.min(before.length, after.length) - start
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++
  const same = (lines: readonly string[]) => lines.map((text): DiffLine => ({ kind: ' ', text }))
  return [
    ...same(before.slice(0, start)),
    ...middleOf(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ]
}

/** The difference by the longest common subsequence. */
function middleOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  const width = after.length + 1
  const isCompared = before.length * after.length <= PAIRS_MAX
  /** By the lines that are left of both: how many they have in common. */
  const common = new Uint32Array(isCompared ? (before.length + 1) * width : 0)
  const commonAt = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = before.length - 1; isCompared && row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      common[row * width + column] =
        before[row] === after[column]
          ? commonAt(row + 1, column + 1) + 1
          : Math.max(commonAt(row + 1, column), commonAt(row, column + 1))
  const lines: DiffLine[] = []
  let [row, column] = [0, 0]
  while (row < before.length || column < after.length) {
    const [removed, added] = [before[row], after[column]]
    if (isCompared && removed !== undefined && removed === added) {
      lines.push({ kind: ' ', text: removed })
      row++
      column++
    } else if (
      added === undefined ||
      (row < before.length && commonAt(row + 1, column) >= commonAt(row, column + 1))
    ) {
      lines.push({ kind: '−', text: removed! })
      row++
    } else {
      lines.push({ kind: '+', text: added })
      column++
    }
  }
  return lines
}
