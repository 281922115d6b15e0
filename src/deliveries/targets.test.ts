import { describe, expect, test } from 'vitest'
import { faultOfAddress, faultOfTarget, targetRules } from './targets.ts'

const LIVE = targetRules({ mode: 'live' })
const SANDBOX = targetRules({ mode: 'sandbox' })

describe('live mode', () => {
  test.each([
    '127.0.0.1',
    '127.255.255.254',
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '100.127.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.250',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '64:ff9b:1::8.8.8.8',
    '2002:7f00:1::',
    '2001:0:4136:e378::1',
    '2001:db8::1',
    '3fff::1',
    '100::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%1',
    'fec0::1',
    'ff02::1',
    '4000::1',
    'localhost',
    '0x7f.1',
  ])('refuses the address %s', (address) => {
    expect(faultOfAddress(address, LIVE)).toContain(address)
  })

  test.each(['8.8.8.8', '1.1.1.1', '172.15.0.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111'])(
    'allows the address %s',
    (address) => {
      expect(faultOfAddress(address, LIVE)).toBeUndefined()
    },
  )

  test.each([
    'https://127.0.0.1/',
    'https://127.0.0.1./',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://%31%32%37.0.0.1/',
    'https://１２７.０.０.１/',
    'https://①②⑦.0.0.1/',
    'https://127。0。0。1/',
    'https://0/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[0:0:0:0:0:ffff:127.0.0.1]/',
    'https://[64:ff9b::10.0.0.1]/',
    'https://[fe80::1]/',
    'https://169.254.169.254/latest/meta-data',
    'https://localhost/',
    'https://LOCALHOST:8443/',
    'https://localhost./',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://a.localhost/',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://metadata/',
    'https://router.home.arpa/',
    'http://example.com/',
    'ftp://example.com/',
    'https://user:secret@example.com/',
    'https://user@example.com/',
    'https://example.com/#part',
    'https://example.com/#',
    'https://example.com:0/',
    'https://exa mple.com/',
    'https://a..example.com/',
    `https://${'a'.repeat(64)}.example.com/`,
    'https:///',
    'example.com',
    '/hook',
    '',
  ])('refuses the URL %s', (url) => {
    expect(faultOfTarget(url, LIVE)).toMatch(/./)
  })

  test.each([
    'https://example.com/hook?customer=1',
    'https://example.com./',
    'https://hooks.example.com:8443/a/b',
    'https://bücher.example/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]:443/',
    'https://notlocalhost.com/',
  ])('allows the URL %s', (url) => {
    expect(faultOfTarget(url, LIVE)).toBeUndefined()
  })

  test('allows the networks of the allow-list, and nothing else', () => {
    const rules = targetRules({
      mode: 'live',
      webhookAllowedNetworks: '10.1.0.0/16, 192.168.7.7,fd00:1::/32',
    })
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '192.168.7.7', 'fd00:1::5', '8.8.8.8'])
      expect(faultOfAddress(address, rules), address).toBeUndefined()
    for (const address of ['10.2.0.1', '192.168.7.8', 'fd00:2::5', '127.0.0.1', '::ffff:127.0.0.1', '::1'])
      expect(faultOfAddress(address, rules), address).toContain('not a public address')
    expect(faultOfTarget('https://10.1.2.3/', rules)).toBeUndefined()
    expect(faultOfTarget('https://hooks.internal/', rules)).toBeUndefined()
    expect(faultOfTarget('https://hooks/', rules)).toBeUndefined()
    expect(faultOfTarget('http://10.1.2.3/', rules)).toBe('must begin with https://')
    expect(faultOfTarget('https://10.2.0.1/', rules)).toContain('not a public address')
  })
})

describe('a sandbox', () => {
  test.each(['http://127.0.0.1:3000/hook', 'http://localhost/', 'https://[::1]/', 'http://receiver:8080/'])(
    'allows the URL %s',
    (url) => {
      expect(faultOfTarget(url, SANDBOX)).toBeUndefined()
    },
  )

  test.each(['ftp://localhost/', 'file:///etc/passwd', 'http://user:secret@localhost/', 'localhost'])(
    'refuses the URL %s',
    (url) => {
      expect(faultOfTarget(url, SANDBOX)).toMatch(/./)
    },
  )
})
