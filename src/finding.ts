/** What a check finds. `bursar doctor` prints each finding. A FAIL of some checks keeps `bursar serve` from starting. */
export interface Finding {
  result: 'OK' | 'WARN' | 'FAIL'
  says: string
  advice?: string
}

export const ok = (says: string): Finding => ({ result: 'OK', says })
export const warn = (says: string, advice: string): Finding => ({ result: 'WARN', says, advice })
export const failed = (says: string, advice: string): Finding => ({ result: 'FAIL', says, advice })

export type WarningRule = [holds: boolean, says: string, advice: string]

export const warnings = (...rules: WarningRule[]): Finding[] =>
  rules.flatMap(([holds, says, advice]) => (holds ? [warn(says, advice)] : []))

export const orElse = (found: Finding[], fine: string): Finding[] => (found.length > 0 ? found : [ok(fine)])
