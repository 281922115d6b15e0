/** One of `of` payments that share a fee: `rank` is its place, from 0. A payment with a rank below 0 pays none of the fee. */
export interface FeeShare {
  of: number
  rank: number
}
/** A payment's part of a fee, in minor units. All parts add up to the fee, to the last unit. */
export function partOf(fee: bigint, { of, rank }: FeeShare): bigint {
  if (rank < 0) return 0n
  const upTo = (count: number) => (fee * BigInt(count)) / BigInt(of)
  return upTo(rank + 1) - upTo(rank)
}
