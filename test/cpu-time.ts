/** Counts the CPU of this process; returns a function that tells its milliseconds so far. A busy machine does not change them. */
export function countCpu(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}
