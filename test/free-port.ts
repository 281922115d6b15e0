import { randomInt } from 'node:crypto'
import { holdPort } from '../src/ports.ts'

const SHARE = 2_400
/** Each process of the tests draws from its own ports: below those of the service, and of outgoing connections. */
const FIRST = 10_100 + SHARE * (Number(process.env.VITEST_POOL_ID ?? 0) % 4)
let drawn = randomInt(SHARE)

/** A port of 127.0.0.1 on which nothing listens, and which nothing else takes before a test listens on it. */
export async function freePort(): Promise<number> {
  const port = FIRST + (drawn++ % SHARE)
  return holdPort(port, '127.0.0.1')
    .then((release) => release())
    .then(() => port, freePort)
}
