import type { Reporter, TestModule, TestSuite, Vitest } from 'vitest/node'

/** Prints the skipped suites as the last lines of a run: earlier lines scroll by unread. */
export default class SkippedReporter implements Reporter {
  #filtered = false

  onInit(vitest: Vitest): void {
    this.#filtered = vitest.config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
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
