import { expect, test } from 'vitest'
import { judgeNodeClock, judgePlugins, judgeShards, NODE_SKEW_MS_MAX } from './check-nodes.ts'

test('the clock of a node may differ by a bound', () => {
  expect(judgeNodeClock('a:1', NODE_SKEW_MS_MAX).result).toBe('OK')
  expect(judgeNodeClock('a:1', NODE_SKEW_MS_MAX + 1)).toMatchObject({
    result: 'WARN',
    says: "the clock of node a:1 is 501 ms from the coordinator's",
  })
})

test('shards of append-only tables that the service may change are named', () => {
  expect(judgeShards('a:1', [])).toEqual([])
  expect(
    judgeShards('a:1', ['entries_102008', 'entries_102009', 'audit_log_102010', 'audit_log_102011']),
  ).toMatchObject([
    {
      result: 'FAIL',
      says: 'on node a:1 the service may change rows of entries_102008, entries_102009, audit_log_102010 and 1 more',
    },
  ])
})

test('a node that cannot isolate a tenant is reported, and one without the setting is not', () => {
  expect(judgePlugins('a:1', undefined)).toEqual([])
  expect(judgePlugins('a:1', 'pgoutput, citus, test_decoding')).toEqual([])
  expect(judgePlugins('a:1', 'pgoutput, citus_pgoutput')).toMatchObject([{ result: 'WARN' }])
})
