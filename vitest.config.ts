import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: 'test/global-setup.ts',
    reporters: ['default', 'test/skipped-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores, and a PostgreSQL beside the tests.
    maxWorkers: 2,
  },
})
