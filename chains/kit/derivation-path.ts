import assert from 'node:assert/strict'
import { UUID } from '../../src/db/ids.ts'

/** The bits of a path component. The highest of 32 would make it hardened. */
const COMPONENT_BITS = 31
/** Components that hold the 128 bits of an id. */
const COMPONENTS = 5

/** The digits of the id as a number in base 2^31, the highest first: no two ids share a path. */
export function pathOf(id: string): number[] {
  assert(UUID.test(id), `${id} is no id to derive an address from`)
  const bits = BigInt(`0x${id.replaceAll('-', '')}`)
  return Array.from({ length: COMPONENTS }, (_, place) =>
    Number(BigInt.asUintN(COMPONENT_BITS, bits >> BigInt(COMPONENT_BITS * (COMPONENTS - 1 - place)))),
  )
}
