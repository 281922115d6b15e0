/** Makes a function that asks once for each key: many withdrawals may have the same transaction. */
export function onceForEach<Of, Answer>(
  keyOf: (of: Of) => string,
  ask: (of: Of) => Promise<Answer>,
): (of: Of) => Promise<Answer> {
  const asked = new Map<string, Promise<Answer>>()
  return (of) => {
    const answer = asked.get(keyOf(of)) ?? ask(of)
    asked.set(keyOf(of), answer)
    return answer
  }
}
