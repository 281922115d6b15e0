import type { Reporter, TestModule, TestRunEndReason, TestSuite, Vitest } from 'vitest/node'

/** Prints the skipped suites, and the seed of a run that failed, as its last lines: earlier lines scroll by unread. */
export default class SkippedReporter implements Reporter {
  #filtered = false

  onInit(vitest: Vitest): void {
    this.#filtered = vitest.config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    if (reason === 'failed') console.warn(`drawn by TEST_SEED=${process.env.TEST_SEED}`)
    // With a name pattern, all other tests count as skipped.
    if (this.#filtered) return
    for (const file of modules) {
      for (const suite of skippedSuites(file)) {
        const count = [...suite.children.allTests()].length
        console.warn(`skipped: ${file.relativeModuleId}: ${suite.fullName} (${count} tests)`)
      }
    }
  }
}

const skippedSuites = (file: TestModule): TestSuite[] =>
  [...file.children.suites()].filter(({ options }) => options.mode === 'skip')
