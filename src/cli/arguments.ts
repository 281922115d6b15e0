import { InvalidArgumentError } from 'commander'
import { UUID } from '../db/ids.ts'

/** How commands read what they are given, and the words of several. This module loads nothing that works on the database. */

export function uuid(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError('must be a UUID.')
  return text.toLowerCase()
}

export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    if (!/^\d{1,10}$/.test(text) || Number(text) < min || Number(text) > max)
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`)
    return Number(text)
  }

export const textUpTo =
  (max: number) =>
  (text: string): string => {
    if (text.trim() === '' || text.length > max)
      throw new InvalidArgumentError(`must have 1 to ${max} characters.`)
    return text.trim()
  }

/** Reads the hash of a transaction of any family. Which hashes a network has, the work itself checks. */
export function transactionHash(text: string): string {
  if (!/^[0-9A-Za-z]{64,90}$/.test(text))
    throw new InvalidArgumentError('must be the hash of a transaction: 64 to 90 letters and digits.')
  return text
}

/** Words that mean the same in every group. */
export const COMMON = {
  '--customer <id>': ['customer', uuid],
  /** Of commands whose change a policy can make dependent on approvers. */
  '--approval <id>': ['approval of this change, where the policy requires one', uuid],
} as const
