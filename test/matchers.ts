import { expect } from 'vitest'

// What answers are compared with.

/** The id of no record. */
export const NOBODY = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'

export const A_UUID = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
) as string
export const A_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string

/** An answer that refuses a request, with this text in its detail. */
export const refusedWith = (status: number, detail: string) => ({
  status,
  body: { detail: expect.stringContaining(detail) as string },
})
