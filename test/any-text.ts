import fc from 'fast-check'

/** Any character of Unicode: all code points except surrogates. */
const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))

/**
 * Texts of any characters. The library's `string({ unit: 'binary' })` first builds a table of all characters, which
 * takes 1.5 s of CPU in each worker.
 */
export const anyText = (constraints: { maxLength?: number } = {}) =>
  fc.string({ ...constraints, unit: anyCharacter })
