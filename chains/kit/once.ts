/** Asks once for each key: the withdrawals of a transaction share its answers. */
export function once<Of, T>(ask: (of: Of) => Promise<T>): (key: string, of: Of) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (key, of) => {
    const answer = asked.get(key) ?? ask(of)
    asked.set(key, answer)
    return answer
  }
}
