import { expect, test } from 'vitest'
import { AUDIT_ACTIONS, AUDIT_SUBJECTS, subjectOfAction } from './audit-actions.ts'

test('every action is <subject>.<verb>, once', () => {
  expect(new Set(AUDIT_ACTIONS).size).toBe(AUDIT_ACTIONS.length)
  for (const action of AUDIT_ACTIONS) {
    expect(action).toMatch(/^[a-z_]+\.[a-z_]+$/)
    expect(AUDIT_SUBJECTS).toContain(subjectOfAction(action))
  }
})
