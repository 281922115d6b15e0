/*
 * Every command with a hash that a text of the program or of a guide tells an operator to type can be typed, on each family of
 * networks. No node is there: a hash of the network gets as far as the node, and a hash of another family does not.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { base58 } from '@scure/base'
import { Keypair } from '@stellar/stellar-base'
import { expect, test } from 'vitest'
import { credit, DESTINATION, newCustomer, runBursar, ownTestService } from '../test/support.ts'
import { addressFromBytes } from '../src/contract/addresses/addresses.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { ownFolder } from '../test/at-end.ts'

const NOWHERE = 'http://127.0.0.1:1'
const HEX = 'Ab'.repeat(32)
/** Of each family: a section, an asset with a destination, and a hash. */
const FAMILIES = {
  BITCOIN: {
    section: {
      ...{ adapter: 'bitcoin-core', rpc_url: NOWHERE, rpc_user: 'bursar', rpc_password: { env: 'PASSWORD' } },
      ...{ wallet: 'bursar', fee_ceiling: '0.001', confirmations: 6 },
    },
    paid: ['BTC', addressFromBytes('BITCOIN', randomBytes(32))],
    hash: HEX,
  },
  ETHEREUM: {
    section: {
      ...{ adapter: 'evm', rpc_url: NOWHERE, hot_wallet_key: { env: 'KEY' } },
      ...{ chain_id: 11155111, fee_ceiling: '200', confirmations: 12 },
    },
    paid: ['ETH', DESTINATION],
    hash: `0x${HEX}`,
  },
  SOLANA: {
    section: {
      adapter: 'solana',
      rpc_url: NOWHERE,
      hot_wallet_key: { env: 'SEED' },
      fee_ceiling: '0.01',
      confirmations: 'finalized',
    },
    paid: ['SOL', base58.encode(randomBytes(32))],
    hash: base58.encode(randomBytes(64)),
  },
  STELLAR: {
    section: {
      ...{
        adapter: 'stellar',
        rpc_url: NOWHERE,
        hot_wallet_key: { env: 'STELLAR_SEED' },
        fee_ceiling: '0.01',
      },
    },
    paid: ['XLM', Keypair.random().publicKey()],
    hash: HEX,
  },
} as const
type Network = keyof typeof FAMILIES

/** The commands, as the texts have them. */
const COMMANDS = {
  'withdrawal mark-paid --tx-hash': (withdrawal: string, _: Network, hash: string) => [
    ...['withdrawal', 'mark-paid', withdrawal, '--tx-hash', hash],
  ],
  'withdrawal resolve --used-by': (withdrawal: string, _: Network, hash: string) => [
    ...['withdrawal', 'resolve', withdrawal, '--outcome', 'sign-anew', '--used-by', hash],
  ],
  'wallet acknowledge --tx-hash': (_: string, network: Network, hash: string) => [
    ...['wallet', 'acknowledge', '--network', network, '--tx-hash', hash],
  ],
  'deposits credit --tx-hash': (_: string, network: Network, hash: string) => [
    ...['deposits', 'credit', '--network', network, '--tx-hash', hash],
    ...['--address', 'x', '--asset', FAMILIES[network].paid[0], '--amount', '1'],
  ],
}

const folder = await ownFolder()
const service = await ownTestService()
const customer = await newCustomer(service)
const sections = Object.entries(FAMILIES).map(([network, { section }]) => [network, section])
await writeFile(join(folder, 'networks.json'), JSON.stringify(Object.fromEntries(sections)))
const environment: Record<string, string> = {
  ...{ DATABASE_URL: service.url, BURSAR_NETWORKS_FILE: join(folder, 'networks.json') },
  ...{ PASSWORD: 'x', KEY: `0x${'1'.repeat(64)}`, SEED: base58.encode(randomBytes(32)) },
  STELLAR_SEED: Keypair.random().secret(),
}

/** A withdrawal over a network, as the sandbox has signed it. */
async function signed(network: Network): Promise<string> {
  const [asset, destination_address] = FAMILIES[network].paid
  await credit(service.ledger, customer, asset, '100')
  const { status, body } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', {
    ...{ profile_id: customer.profile_id, asset, balance_asset: asset, amount: '1' },
    ...{ crypto_network: network, destination_address },
  })
  expect({ status, detail: body.detail }).toEqual({ status: 200 })
  await settleWithdrawals(service.db, service.networks)
  return String(body.id)
}

test.each(Object.keys(FAMILIES) as Network[])('on %s', async (network) => {
  const withdrawal = await signed(network)
  const { hash } = FAMILIES[network]
  const foreign = network === 'SOLANA' ? HEX.replaceAll('b', '0') : FAMILIES.SOLANA.hash
  for (const [name, command] of Object.entries(COMMANDS)) {
    const refused = await runBursar(command(withdrawal, network, foreign), environment)
    expect(refused, name).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr, name).toContain(`${foreign} is no hash of a transaction of ${network}`)
    const { stderr } = await runBursar(command(withdrawal, network, hash), environment)
    expect(stderr, name).not.toMatch(/^error: |is no hash|^$/)
  }
})

test('these are the commands that texts and guides tell to type', () => {
  const files = execFileSync('git', ['ls-files', 'src', 'chains', 'docs', 'ops', 'console'], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => /\.(tsx?|md|yml)$/.test(file) && !/\.test\.ts$/.test(file))
  const told = files.flatMap((file) =>
    [
      ...readFileSync(file, 'utf8').matchAll(
        /bursar (withdrawal|wallet|deposits) ([\w-]+)[^'`\n]*?(?:` \+\n *`)?[^'`\n]*?(--tx-hash|--used-by)/g,
      ),
    ].map(([, ...words]) => words.join(' ')),
  )
  expect([...new Set(told)].sort()).toEqual(Object.keys(COMMANDS).sort())
})
