/** The console on a real network: what a withdrawal's fee was, and what its transaction has cost. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { transaction } from '../../src/db/database.ts'
import { lockMarket, writePrices } from '../../src/money/records/write-prices.ts'
import {
  HAS_CHROMIUM,
  isWithinWindow,
  openPage,
  PHONE,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from '../../test/browser.ts'
import { evmWorld, networksFile } from '../../test/real-networks.ts'
import { MASTER_KEY, remoteCaller, runBursar, type RemoteCaller } from '../../test/support.ts'
import { hurry, mine } from '../../test/work-off.ts'

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let world: Awaited<ReturnType<typeof evmWorld>>
  let file: Awaited<ReturnType<typeof networksFile>>
  let call: RemoteCaller
  let customer_id: string
  let profile_id: string

  const command = async (...args: string[]) =>
    JSON.parse((await runBursar([...args, '--json'], started.environment)).stdout) as Record<string, string>

  /** Mines blocks and makes everything due, until the assertion holds. */
  const until = (holds: () => Promise<void>) =>
    vi.waitFor(
      async () => {
        await mine(world.mining)
        await hurry(started.database.db)
        await holds()
      },
      { timeout: 60_000, interval: 100 },
    )

  beforeAll(async () => {
    world = await evmWorld()
    const further = generatePrivateKey()
    world.secrets.FURTHER_KEY = further
    file = await networksFile([world], {
      further_hot_wallets: [{ address: privateKeyToAccount(further).address, key: { env: 'FURTHER_KEY' } }],
      low_mark: { USDG: '100' },
      target: { USDG: '1000' },
    })
    started = await startBrowserTest({
      ...file.environment,
      BURSAR_MASTER_KEY: MASTER_KEY,
      BURSAR_WORKER_INTERVAL_MS: '100',
    })
    const customer = await command('customer', 'create', '--name', 'Acme')
    customer_id = customer.customer_id!
    profile_id = customer.profile_id!
    const client = await command('client', 'create', '--customer', customer_id, '--scopes', 'all')
    call = await remoteCaller(started.bursar.address, {
      client_id: client.client_id!,
      client_secret: client.client_secret!,
    })
    const price = Math.floor(Date.now() / 60_000) - 1
    await transaction(started.database.db, async (tx) => {
      const id = await lockMarket(tx, 'ETHUSD', 'REAL')
      await writePrices(tx, id!, { coversMinutes: 1, minute: [price], second: [0], prices: [['3000']] })
    })
    const isRead = () =>
      started.database.db.query('select from network_cursors where network = $1', [world.network])
    await until(async () => expect((await isRead()).rowCount).toBe(1))
    const { body } = await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
      profile_id,
      crypto_network: world.network,
    })
    await world.pay(body.address, 'ETH', '3')
    await world.pay(body.address, 'USDG', '50')
    const deposits = '/v2/transfer/transfers?type=CRYPTO_DEPOSIT&statuses=COMPLETED'
    await until(async () =>
      expect((await call<{ items: object[] }>('GET', deposits)).body.items).toHaveLength(2),
    )
  })
  afterAll(async () => {
    await started?.close()
    await file?.remove()
    await world?.stop()
  })

  /** Withdraws with a fee quote, to the end. Returns the transfer's id. */
  async function withdraw(asset: string, amount: string): Promise<string> {
    const request = { asset, crypto_network: world.network, destination_address: await world.newAddress() }
    const { body: quote } = await call<{ id: string }>('POST', '/v2/transfer/fees/crypto-withdrawal', {
      ...request,
      amount,
    })
    const { status, body } = await call<{ id: string }>('POST', '/v2/transfer/crypto-withdrawals', {
      ...request,
      profile_id,
      amount,
      fee_id: quote.id,
    })
    expect([status, body]).toEqual([200, expect.objectContaining({ id: expect.any(String) as unknown })])
    await until(async () =>
      expect((await call('GET', `/v2/transfer/transfers/${body.id}`)).body).toMatchObject({
        status: 'COMPLETED',
      }),
    )
    return body.id
  }

  test('the wallets of a network, and the refill that its low mark asks for', async () => {
    const named = ['--name', 'Grace', '--role', 'VIEWER', '--customer', customer_id]
    const { operator_id } = await command('operator', 'create', ...named)
    const { link } = await command('console', 'link', operator_id!)
    const { page, complaints } = await openPage(started.context, link!)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.goto(`${started.bursar.address}/console/networks`)
    const wallets = page.getByRole('region', { name: `Wallets on ${world.network}` }).locator('tbody tr')
    await expect.poll(() => wallets.count()).toBe(2)
    expect(await wallets.allInnerTexts()).toEqual([
      expect.stringMatching(/ETH.*USDG.*yes$/s),
      expect.stringMatching(/ETH.*USDG.*yes$/s),
    ])
    const ask = page.locator('p', { hasText: 'Cold storage is asked for' })
    // The sweep of the deposit of 50 USDG may come before the first look at the wallet.
    expect(await ask.innerText()).toMatch(
      /^BELOW Cold storage is asked for (1\s000|950) USDG: bursar treasury refill$/i,
    )
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await seriousFaults(page)).toEqual([])
    }
    await page.setViewportSize(PHONE)
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'console-wallets-phone')
    expect(complaints).toEqual([])
  })

  test('the quoted fee, the fee charged, what the network took, and the difference', async () => {
    const named = ['--name', 'Ada', '--role', 'VIEWER', '--customer', customer_id]
    const { operator_id } = await command('operator', 'create', ...named)
    const { link } = await command('console', 'link', operator_id!)
    const { page, complaints } = await openPage(started.context, link!)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    const fees = page.getByRole('region', { name: 'Fees' }).locator('tbody tr')
    for (const [asset, amount] of [
      ['ETH', '0.5'],
      ['USDG', '10'],
    ] as const) {
      const id = await withdraw(asset, amount)
      const { body } = await call<{ fees: Record<'network_fee_value' | 'difference', string> }>(
        'GET',
        `/v2/transfer/transfers/${id}/history`,
      )
      await page.goto(`${started.bursar.address}/console/transfers/${id}`)
      await expect.poll(() => fees.count()).toBe(4)
      const [quoted, charged, paid, difference] = await fees.allInnerTexts()
      expect(quoted).toMatch(/^Quoted fee\s+[\d.]+ \w+\s+quote .* valid until/)
      const fee = /[\d.]+/.exec(quoted!)![0]
      expect(charged).toMatch(new RegExp(`^Fee charged\\s+${fee.replace('.', '\\.')} ${asset}\\s+as quoted`))
      expect(paid).toMatch(/^Network fee paid\s+0\.\d+ ETH/)
      expect(paid!.includes('at the prices of that time')).toBe(asset !== 'ETH')
      expect(paid).toContain(body.fees.network_fee_value)
      expect(difference).toContain(body.fees.difference.replace('-', '−'))
      expect(difference).toMatch(body.fees.difference.startsWith('-') ? /lost/ : /kept/)
      expect(await seriousFaults(page)).toEqual([])
      await shoot(page, `console-fees-${asset}`)
    }
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(PHONE)
    expect(await seriousFaults(page)).toEqual([])
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'console-fees-phone')
    expect(complaints).toEqual([])
  })
})
