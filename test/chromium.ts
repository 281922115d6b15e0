import { existsSync } from 'node:fs'

/** Debian's package `chromium`. */
export const CHROMIUM = '/usr/bin/chromium'
export const HAS_CHROMIUM = existsSync(CHROMIUM)

/** Options of a browser that only shows pages: no background services, no updates. */
export const CHROMIUM_ARGS = [
  '--headless',
  // Root in a container has no sandbox. The browser opens only our own pages.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
