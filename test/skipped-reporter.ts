import type { Reporter, TestModule, TestSuite, Vitest } from 'vitest/node'

/** Says what was not tested, and why, in the last lines of a run: what scrolls by is not read. */
export default class SkippedReporter implements Reporter {
  #filtered = false

  onInit(vitest: Vitest): void {
    this.#filtered = vitest.config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // What was not asked for is skipped, too.
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
