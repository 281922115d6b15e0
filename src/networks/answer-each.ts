/** Answers each in the order of the list: those with an objection by `held`, the others, together, by `work`. */
export async function answerEach<Asked, Answer, Objection>(
  asked: readonly Asked[],
  objections: readonly (Objection | undefined)[],
  work: (others: Asked[]) => Promise<Answer[]>,
  held: (objection: Objection, asked: Asked) => Answer,
): Promise<Answer[]> {
  const others = asked.filter((_, index) => objections[index] === undefined)
  const answers = others.length === 0 ? [] : await work(others)
  let next = 0
  return asked.map((item, index) => {
    const objection = objections[index]
    return objection === undefined ? (answers[next++] as Answer) : held(objection, item)
  })
}
