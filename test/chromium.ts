import { existsSync } from 'node:fs'

/** Debian's package `chromium`. */
export const CHROMIUM = '/usr/bin/chromium'
export const HAS_CHROMIUM = existsSync(CHROMIUM)

/** A browser that shows pages and does nothing else: no services of its own, no updates. */
export const CHROMIUM_ARGS = [
  '--headless',
  // As root, in a container, there is no sandbox to be had; it opens our own pages only.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
