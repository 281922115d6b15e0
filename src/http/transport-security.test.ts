import { expect, test } from 'vitest'
import { readSettings } from '../settings.ts'
import { plainTransports } from './transport-security.ts'

const LIVE = { BURSAR_MODE: 'live' }
const REMOTE = 'postgres://bursar:secret@db.example/bursar'

test.each<[string, Record<string, string>, string[]]>([
  ['nothing is set', LIVE, []],
  ['a sandbox', { DATABASE_URL: REMOTE, BURSAR_BASE_URL: 'http://bursar.example' }, []],
  [
    'every connection is plain',
    {
      ...LIVE,
      DATABASE_URL: REMOTE,
      BURSAR_BASE_URL: 'http://bursar.example',
      BURSAR_OAUTH_ISSUER: 'http://issuer.example',
    },
    ['BURSAR_BASE_URL', 'BURSAR_OAUTH_ISSUER', 'DATABASE_URL'],
  ],
  [
    'every connection is local',
    {
      ...LIVE,
      DATABASE_URL: 'postgres://u:p@127.0.0.1/d',
      BURSAR_BASE_URL: 'http://localhost:8080',
      BURSAR_OAUTH_ISSUER: 'http://[::1]:9000',
    },
    [],
  ],
  ['a socket', { ...LIVE, DATABASE_URL: 'postgres://u:p@x/d?host=/var/run/postgresql' }, []],
  ['TLS is not checked', { ...LIVE, DATABASE_URL: `${REMOTE}?sslmode=no-verify` }, ['DATABASE_URL']],
  [
    'TLS is verified',
    { ...LIVE, DATABASE_URL: `${REMOTE}?sslmode=verify-full`, BURSAR_BASE_URL: 'https://bursar.example' },
    [],
  ],
])('plain transports when %s', (_when, environment, settings) => {
  const found = plainTransports(readSettings(environment))
  expect(found.map(({ advice }) => /[A-Z_]{4,}/.exec(advice!)![0])).toEqual(settings)
  expect(JSON.stringify(found)).not.toContain('secret@')
})
