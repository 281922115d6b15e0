import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { parseEther, type Hex } from 'viem'
import { expect, test } from 'vitest'
import { ownEvmSigner } from '../test/evm-signer.ts'

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address
const [A, B, C, D] = [1, 2, 3, 4].map(newAddress) as [Hex, Hex, Hex, Hex]
const ALL = { asset: 'ETH', period_seconds: 3_600, amount: '1000' }
const START = Date.parse('2026-11-29T12:00:00.000Z')

/** A signer with these windows and destinations, opened, with a clock of the test's. */
async function opened(section: object) {
  let time = START
  const own = await ownEvmSigner(section, { now: () => new Date(time) })
  const from = new Date(0).toISOString()
  await own.change({ kind: 'OPEN', wallet: own.wallet, next_nonce: 0, transfers_from: from }, 1)
  return { ...own, later: (seconds: number) => void (time += seconds * 1_000) }
}

test.each([
  { per: 'customer', same: { customer: 'c1', to: B }, other: { customer: 'c2', to: A } },
  { per: 'destination', same: { customer: 'c2', to: A }, other: { customer: 'c1', to: B } },
])('no more leaves for one $per than its window, whoever else is paid', async ({ per, same, other }) => {
  const own = await opened({ windows: [ALL, { asset: 'ETH', period_seconds: 600, amount: '5', per }] })
  const first = own.payment({ customer: 'c1', to: A, amount: '3' })
  await own.sign(first, 0, A, parseEther('3'))
  const [more, elsewhere] = [own.payment({ ...same, amount: '3' }), own.payment({ ...other, amount: '3' })]
  const refusal = `more ETH would leave than the window of one ${per} of 600 s allows`
  expect(await own.signer.check([more, elsewhere])).toEqual([refusal, null])
  await expect(own.sign(more, 1, same.to, parseEther('3'))).rejects.toThrow(refusal)
  // What was foreseen and not signed counts, too.
  expect(await own.signer.check([own.payment({ ...other, amount: '3' })])).toEqual([refusal])
  // The same question again is the same payment.
  await own.sign(first, 0, A, parseEther('3'))
  own.later(700)
  expect(await own.signer.check([more])).toEqual([null])
})

test('no more payments leave than a count, of all or of one customer', async () => {
  const count = { asset: 'ETH', period_seconds: 600, count: 2 }
  const own = await opened({ windows: [ALL, { ...count, per: 'customer' }, { ...count, count: 3 }] })
  const payments = ['c1', 'c1', 'c1', 'c2', 'c3'].map((customer) =>
    own.payment({ customer, to: newAddress() }),
  )
  expect(await own.signer.check(payments)).toEqual([
    null,
    null,
    'more than 2 payments of ETH would leave within the window of one customer of 600 s',
    null,
    'more than 3 payments of ETH would leave within its window of 600 s',
  ])
})

test('a window of a customer or of a count alone lets nothing out: the asset needs an amount for all', async () => {
  const own = await opened({
    windows: [
      { asset: 'ETH', period_seconds: 600, count: 5 },
      { asset: 'ETH', period_seconds: 600, amount: '5', per: 'customer' },
    ],
  })
  expect(await own.signer.check([own.payment({ to: A })])).toEqual(['no window is configured for ETH'])
  await expect(opened({ windows: [{ asset: 'ETH', period_seconds: 600 }] })).rejects.toThrow(
    'networks.ETHEREUM.windows[0] must have an amount, a count or both',
  )
})

test('from an amount on, a destination is paid once people have named it and its time has passed', async () => {
  const rule = { asset: 'ETH', from: '10', required: 2, cooling_seconds: 3_600 }
  const own = await opened({ windows: [ALL], destinations: [rule] })
  const judged = async (to: Hex, amount = '10') => (await own.signer.check([own.payment({ to, amount })]))[0]
  const name = (destinations: Hex[], people: number, more: object = {}) =>
    own.change({ kind: 'DESTINATION', asset: 'ETH', destinations, ...more }, people)
  expect(await judged(A)).toMatch(/^2 approvers must have named its destination: 'bursar signer destination'/)
  expect(await judged(A, '9.999999999999999999')).toBeNull()
  await name([A.toLowerCase() as Hex, B], 1)
  expect(await judged(A)).toMatch(/^2 approvers must have named/)
  await name([A, B], 2)
  expect(await judged(A)).toMatch(
    /^its destination was named at 2026-11-29T12:00:00.000Z, and is paid from 2026-11-29T13/,
  )
  own.later(3_599)
  expect(await judged(A)).toMatch(/^its destination was named/)
  // Named again, its time does not begin anew.
  await name([A], 2)
  own.later(1)
  expect([await judged(A), await judged(B)]).toEqual([null, null])
  expect(await judged(C)).toMatch(/^2 approvers must have named/)
  await name([B], 1, { remove: true })
  expect([await judged(A), await judged(B)]).toEqual([null, expect.stringMatching(/^2 approvers must/)])
  await expect(name([D], 0)).rejects.toThrow('1 approvers must sign this, and 0 have')
  await expect(opened({ windows: [ALL], destinations: [{ ...rule, required: 3 }] })).rejects.toThrow(
    'approvers names 2 keys, and 3 approvals are required',
  )
})

test('a destination whose name was taken back is not named again by approvals that named it before', async () => {
  const rule = { asset: 'ETH', from: '10', required: 1, cooling_seconds: 0 }
  const own = await opened({ windows: [ALL], destinations: [rule] })
  const judged = async (to: Hex) => (await own.signer.check([own.payment({ to, amount: '10' })]))[0]
  const name = (destinations: Hex[], people: number, more: object = {}) =>
    own.change({ kind: 'DESTINATION', asset: 'ETH', destinations, ...more }, people)
  await name([A, B], 2)
  await name([A], 1, { remove: true })
  // A thief of the worker has kept what was carried there, and leaves one approval out.
  await name([A, B], 1)
  expect([await judged(A), await judged(B)]).toEqual([expect.stringMatching(/^1 approvers must/), null])
  own.later(1)
  await name([A], 1)
  expect(await judged(A)).toBeNull()
})
