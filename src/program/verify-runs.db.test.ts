import { expect, test } from 'vitest'
import { outputOf, ownTestService } from '../../test/support.ts'
import { checkVerify, recordVerify, stampDatabase } from './deployment.ts'

const service = await ownTestService()
await stampDatabase(service.db, { mode: 'sandbox', baseUrl: undefined, oauthIssuer: undefined })

const checked = async () => {
  const [{ result, says }] = (await checkVerify(service.db, { mode: 'live' })) as [
    { result: string; says: string },
  ]
  return `${result} ${says}`
}

test('doctor tells when verify last ended in another process, how old that is, and what it found', async () => {
  expect(await checked()).toBe('WARN bursar verify has not run yet')
  await outputOf(['verify'], { DATABASE_URL: service.url })
  expect(await checked()).toBe('OK clean 0 hours ago')
  await service.owner.query(
    `update deployment set verified_at = (select clock_timestamp() - interval '3 days')`,
  )
  expect(await checked()).toBe('WARN bursar verify ran 72 hours ago')
  await recordVerify(service.db, 3)
  expect(await checked()).toBe('FAIL bursar verify found 3 disagreements 0 hours ago')
})
