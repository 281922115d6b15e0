import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ENVIRONMENT } from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return String(port)
}

test('what README says about a local anvil works as it stands there', { timeout: 120_000 }, async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const block = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)]
    .map(([, code]) => code!)
    .find((code) => code.includes('bin/anvil'))!
  // Its ports may be taken here, and what is tested is what stands in src.
  const own = block
    .replaceAll('8081', await freePort())
    .replaceAll('8545', await freePort())
    .replaceAll('node dist/main.js', 'node --import tsx src/main.ts')
  expect(own).not.toMatch(/8081|8545|dist/)
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', own], { cwd: ROOT, env: ENVIRONMENT })
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
