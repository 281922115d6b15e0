import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { ShapeBench } from './shapes.ts'

/** How long the process works before it is killed, and the longest wait for a paid withdrawal. */
const WORK_MS = 2_000
const PAID_MS_MAX = 60_000
const ROUND_CALLERS = 32

export interface Recovery {
  round: number
  'withdrawals before': number
  'to the next answer ms': number
  'to the next paid withdrawal ms': number
}

/** Starts the service with its worker. The returned `process` ends it. */
type Start = () => Promise<ShapeBench>

/**
 * Kills the service with SIGKILL while withdrawals are made and paid, starts it again at once, and measures from the kill
 * until a new withdrawal is answered and until it is COMPLETED.
 */
export async function measureRecovery(start: Start, rounds: number): Promise<Recovery[]> {
  const figures: Recovery[] = []
  let api = await start()
  for (let round = 1; round <= rounds; round++) {
    let made = 0
    let isKilled = false
    const callers = Array.from({ length: ROUND_CALLERS }, async () => {
      while (!isKilled) if (await withdraw(api).catch(() => undefined)) made += 1
    })
    await pause(WORK_MS)
    const ended = once(api.process, 'exit')
    const killedAt = performance.now()
    isKilled = true
    api.process.kill('SIGKILL')
    await ended
    const again = await start()
    const id = await withdraw(again)
    const answered = performance.now() - killedAt
    await paid(again, id!)
    figures.push({
      round,
      'withdrawals before': made,
      'to the next answer ms': Math.round(answered),
      'to the next paid withdrawal ms': Math.round(performance.now() - killedAt),
    })
    await Promise.all(callers)
    api = again
  }
  api.process.kill('SIGTERM')
  await once(api.process, 'exit')
  return figures
}

async function withdraw({ baseUrl, token, profileIds }: ShapeBench): Promise<string | undefined> {
  const reply = await fetch(`${baseUrl}/v2/transfer/crypto-withdrawals`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      profile_id: profileIds[Math.floor(Math.random() * profileIds.length)],
      asset: 'USDP',
      crypto_network: 'ETHEREUM',
      amount: '1.25',
      destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    }),
  })
  if (reply.status !== 200) throw new Error(`a withdrawal was answered with ${reply.status}`)
  return ((await reply.json()) as { id: string }).id
}

async function paid({ baseUrl, token }: ShapeBench, id: string): Promise<void> {
  const end = performance.now() + PAID_MS_MAX
  while (performance.now() < end) {
    const reply = await fetch(`${baseUrl}/v2/transfer/transfers/${id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    if (((await reply.json()) as { status: string }).status === 'COMPLETED') return
    await pause(10)
  }
  throw new Error(`withdrawal ${id} was not paid within ${PAID_MS_MAX} ms`)
}
