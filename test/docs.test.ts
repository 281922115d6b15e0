import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CRYPTO_NETWORKS } from '../src/assets/catalogue.ts'
import { curlSession } from '../src/demo/curl-session.ts'
import {
  MAGIC_OUTCOMES,
  magicAccountNumber,
  magicAddress,
  REJECTED_ACCOUNT_NUMBER,
} from '../src/networks/simulated/magic-addresses.ts'

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')

test('README shows the session that the console shows', () => {
  const session = curlSession('.bursar/sandbox-credentials.json').trim().split('\n')
  const readme = read('README.md')
  for (const line of session) expect(readme).toContain(line.trim())
})

test('every magic destination is documented', () => {
  const page = read('docs/magic-destinations.md')
  for (const network of CRYPTO_NETWORKS) {
    expect(page).toContain(network)
    for (const outcome of MAGIC_OUTCOMES) {
      const address = magicAddress(network, outcome)
      if (address !== undefined) expect(page).toContain(`| ${outcome} | \`${address}\` |`)
    }
  }
  for (const outcome of MAGIC_OUTCOMES) {
    const accountNumber = magicAccountNumber(outcome)
    if (accountNumber !== undefined) expect(page).toContain(`| ${outcome} | \`${accountNumber}\` |`)
  }
  expect(page).toContain(REJECTED_ACCOUNT_NUMBER)
})
