import { problem } from '../contract/problems.ts'
import { violatedConstraint } from '../db/database.ts'

/**
 * Inserts a record of which there may be one: with its `ref_id`, or with another value that is unique. Where there is one,
 * by an earlier request or by one that was first by a moment, it answers instead. Throws already-exists with that record.
 */
export async function insertOnce<T>({
  field = 'ref_id',
  constraint,
  find,
  insert,
}: {
  /** What is unique, as the client named it. */
  field?: string
  /** The unique key that a second record violates. */
  constraint: string
  /** The record that is there already, as the API shows it; undefined where there is none. */
  find: () => Promise<object | undefined>
  /** Checks what the new record names, and inserts it. */
  insert: () => Promise<T>
}): Promise<T> {
  const existing = await find()
  if (existing !== undefined) throw problem.alreadyExists(field, existing)
  try {
    return await insert()
  } catch (error) {
    if (violatedConstraint(error) !== constraint) throw error
    throw problem.alreadyExists(field, await find())
  }
}
