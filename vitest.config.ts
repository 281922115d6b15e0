import { randomInt } from 'node:crypto'
import { defineConfig } from 'vitest/config'
import { coreAlone, filesOf, PROJECTS } from './test/projects.ts'

// One seed for all workers of a run (test/seed.ts).
process.env.TEST_SEED ??= String(randomInt(2 ** 31))

export default defineConfig({
  test: {
    projects: PROJECTS.map((name) => ({
      extends: true as const,
      plugins: name === 'core' ? [coreAlone] : [],
      test: {
        name,
        ...filesOf(name),
        // Unit tests never wait, so a third worker on two cores only loads their modules once more.
        ...(name === 'unit'
          ? { maxWorkers: 2, sequence: { groupOrder: 1 } }
          : // On two cores: tests also wait, for a program to start or for a block.
            { maxWorkers: 3, globalSetup: 'test/global-setup.ts' }),
      },
    })),
    reporters: ['default', './test/skipped-reporter.ts'],
    // Only what hangs is ended: a machine may be busy with other work.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    setupFiles: ['test/patience.ts', 'test/left-behind.ts'],
    // In CI what fails is run once more, and the report says so: machines there may stand still for seconds, and some
    // tests hold the program to its times. Seeds stay the same, so that a property that failed fails again.
    retry: process.env.CI === undefined ? 0 : 1,
    // `npm run coverage`: the tests that run in one process. What needs the built program or a chain is not counted.
    coverage: {
      include: ['{src,chains,signer}/**/*.ts'],
      reporter: ['text-summary', 'html'],
      thresholds: { lines: 72 },
    },
    // The files that a worker runs share its process and its modules: to load all of them anew for each took as long as
    // most of the files do (18 of them: 75 s of CPU, instead of 42). So a test puts back what it changes there.
    isolate: false,
    // Transpiled modules stay in node_modules for the next run: a tenth of what the unit tests cost.
    experimental: { fsModuleCache: true },
  },
})
