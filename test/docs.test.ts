import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CRYPTO_NETWORKS } from '../src/assets/catalogue.ts'
import { curlSession } from '../src/demo.ts'
import { MAGIC_OUTCOMES, magicAddress } from '../src/networks/magic-addresses.ts'

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
})
