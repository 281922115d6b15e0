import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freePort } from './free-port.ts'
import { ENVIRONMENT } from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

test('the example on a local anvil works unchanged', async () => {
  const script = join(ROOT, 'examples/withdraw-on-anvil.sh')
  const ports = { PORT: String(await freePort()), CHAIN_PORT: String(await freePort()) }
  const { stdout, stderr } = await promisify(execFile)('bash', [script], {
    env: { ...ENVIRONMENT, ...ports },
  })
  expect(stderr).toBe('')
  const lines = stdout.split('\n')
  const behind = (said: string) => lines[lines.findIndex((line) => line.startsWith(said)) + 1]!
  expect(JSON.parse(behind('They have arrived'))).toMatchObject({
    items: [
      {
        status: 'COMPLETED',
        amount: '1.5',
        crypto_tx_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) as string,
      },
    ],
  })
  expect(behind('And so says the chain')).toBe('1500000000000000000n')
  expect(stdout).toMatch(/"type":"CRYPTO_DEPOSIT".*"amount":"2"|"amount":"2".*"type":"CRYPTO_DEPOSIT"/)
  expect(stdout).toMatch(/^ETHEREUM: at height \d+, 1 confirmations$/m)
})
