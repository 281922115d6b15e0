/** Whether walks take every step and properties run every case: TEST_EVERY_STEP=1. Throws for any other value. */
export const EVERY_STEP = readEveryStep(process.env.TEST_EVERY_STEP)

function readEveryStep(value: string | undefined): boolean {
  if (value === undefined || value === '') return false
  if (value !== '1') throw new Error(`TEST_EVERY_STEP must be 1 or unset, not ${JSON.stringify(value)}`)
  return true
}
