/*
 * The MACs of rows that were sealed before. If one of these changes, no existing row of its kind verifies any more.
 */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { masterKeysOf } from '../keys/master-keys.ts'
import { objectionToOrder } from '../money/records/orchestration.ts'
import { macOfBalance, objectionToBalance } from './balance-macs.ts'
import { RowMacs, SEALED_TABLES, sealOf } from './sealed-rows.ts'
import { macOfWithdrawal } from './withdrawal-macs.ts'

const keys = masterKeysOf(
  [Buffer.from(Array.from({ length: 32 }, (_, n) => 7 * n)).toString('hex')],
  'BURSAR_MASTER_KEY',
)
const macs = new RowMacs(keys)
const id = (n: number) => `0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0${n}`
const withdrawal = {
  customer_id: id(1),
  id: id(2),
  profile_id: id(3),
  asset: 'USDP',
  amount: '10.5',
  network: 'ETHEREUM',
  destination: '0x5290',
  memo: null,
} as const

test('rows of tables: what each MAC covers, as SQL, and how it is made', () => {
  const digest = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 12)
  expect(SEALED_TABLES.map((table) => [table, digest(sealOf(table)), macs.macOf(table, '["a row"]')]))
    .toMatchInlineSnapshot(`
      [
        [
          "api_clients",
          "1XG8pUgxYen4",
          "0d4f84fd.Eeq0es-ru34t3j6OHgoD5m4AiG2beaXlFAqPYGNuDbA",
        ],
        [
          "operators",
          "AoSWTZ2bOXTT",
          "0d4f84fd.beBLCE6XXtiXPNQk0_E8gQNffj1LVA9_y9YlQ0Cs7A0",
        ],
        [
          "operator_sessions",
          "D2rxJXrBvM2C",
          "0d4f84fd.p3vqRVjIWq7DeSIfzbJlADfD8wYV1AQXORUmbHKCll0",
        ],
        [
          "operator_links",
          "y6O8LJ-nGnrH",
          "0d4f84fd.RdTH7vmTzWDUAVGkNu6ED-GK0stLWS7ttA_EU9Qb6Is",
        ],
        [
          "operator_passkeys",
          "kVY5fnaEdthk",
          "0d4f84fd.uzi0lh1l6dtScQRqBBvIwh18nk36RG-J6IaRuAVL3QI",
        ],
        [
          "crypto_destination_addresses",
          "VIuAsWJ1easY",
          "0d4f84fd.5ak69-nirA1bh-P78gShkYKpibZ79NomuegtVtDWFaY",
        ],
        [
          "deposit_addresses",
          "zaRkGWuzXVXM",
          "0d4f84fd.eCrVRI2xF3F2RjD3ht7MiXPmycFUxeoR29ee8yDpl3M",
        ],
        [
          "orchestration_rules",
          "xBvkz8zcmDf4",
          "0d4f84fd.npbT-T48_3yNt48EzCo7XeoDeAQbLyH0zIMPYAZXSYc",
        ],
        [
          "fiat_deposit_instructions",
          "AcNIsJcHAf69",
          "0d4f84fd.ZzKKSW7nTqbxavP81GD5zVw7Q4LQPuj_fA6BI0A0oHw",
        ],
        [
          "incoming_transfers",
          "_cOWTzAw1Qwp",
          "0d4f84fd.3KJJupkFPRwFJ8xLeO5-_aRjO9I5hbwLU9qVcBzI4-0",
        ],
        [
          "reward_rates",
          "X_xrLtEbgVHE",
          "0d4f84fd.eEQ_4gbV-jgSaD54QUkoBKWPrv_ljCn_hQ2GFKPGFVI",
        ],
        [
          "bank_statements",
          "kpYLDY-t3mAw",
          "0d4f84fd.ieFdDwanfUi8YdPFp6h0KMAQ-3fSHE8xoHQSoR34EKQ",
        ],
        [
          "fee_quotes",
          "NEeeEvW1d8X3",
          "0d4f84fd.X0IH5i_wvHGYPP5aLUGYWQVdefkhPc0LWzrtzwi5KWM",
        ],
        [
          "markets",
          "fzp8PDcsqn1P",
          "0d4f84fd.MeGNSQorjpxuNCvxbVh5HXgE0A0sLOTtbAQlNPJHcDI",
        ],
        [
          "deployment",
          "T4_r7BxHJodA",
          "0d4f84fd.kvE5BYNXuKRgaU-u8I7WKaL21oOg_vZZ5QaQ_OfseTY",
        ],
        [
          "freezes",
          "S0KngEa297OJ",
          "0d4f84fd.hG-gLxLCKDTUSJBCPHcQKvGHhsEtZr5RgK3vGTqf1KI",
        ],
        [
          "customer_freezes",
          "YzBhNe8TYuxo",
          "0d4f84fd.94gQx0CRgTme6xNS1MICsMhDg-GBFxxMWhd12SO6xV0",
        ],
      ]
    `)
})

test('withdrawals, with and without approvers', () => {
  const approval = {
    id: id(4),
    required: 2,
    role: 'APPROVER',
    rule_id: 'large',
    policy_version: 3,
    initiator: { type: 'API_CLIENT', id: id(5) },
    deadline: '2026-01-02T03:04:05.000006Z',
  } as const
  expect([macOfWithdrawal(macs, withdrawal), macOfWithdrawal(macs, { ...withdrawal, approval })])
    .toMatchInlineSnapshot(`
    [
      "0d4f84fd.F4AH2dyHx0QHZszPupN0Sk",
      "0d4f84fd.8sdL8WSACVge4SF0qt9jw3",
    ]
  `)
})

test('balances', () => {
  const balance = { profile_id: id(3), asset: 'USD', available: 1_050n, version: 7 }
  const updated_at = '2026-01-02T03:04:05.000006Z'
  const mac = macOfBalance(macs, id(1), balance, updated_at)
  expect(mac).toMatchInlineSnapshot(`"0d4f84fd.wBPtrg2Naq0yovRCn-fBdF"`)
  expect(objectionToBalance(new RowMacs(keys), id(1), balance, { updated_at, mac })).toBeUndefined()
})

test('orchestrations', () => {
  const order = {
    id: id(2),
    customer_id: id(1),
    profile_id: id(3),
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '10.50',
    destination: { crypto: { network: 'ETHEREUM', address: '0x5290' } },
  }
  const text = JSON.stringify([
    id(1),
    id(2),
    id(3),
    null,
    null,
    'USD',
    'USDP',
    '10.5',
    null,
    null,
    ['ETHEREUM', '0x5290'],
  ])
  const mac = macs.of('orchestrations').make(text)
  expect(mac).toMatchInlineSnapshot(`"0d4f84fd.egRIkad_YaFKHqM97R_8ixvLR0NMILgE3yoPFB4QiSU"`)
  expect(objectionToOrder(macs, order as never, mac)).toBeUndefined()
})
