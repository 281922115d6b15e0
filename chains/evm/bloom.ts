import type { Hex } from 'viem'
import { hexToBytes, keccak256 } from 'viem/utils'

/**
 * Whether a block's bloom filter (2,048 bits, Ethereum's yellow paper, 4.3.1) may have an address or a topic. False is
 * certain; true is wrong now and then.
 */
export function bloomMayHave(bloom: Hex, item: Hex): boolean {
  const bits = hexToBytes(bloom)
  const hash = hexToBytes(keccak256(item))
  return [0, 2, 4].every((start) => {
    const bit = ((hash[start]! << 8) | hash[start + 1]!) & 2047
    return (bits[255 - (bit >> 3)]! & (1 << (bit & 7))) !== 0
  })
}
