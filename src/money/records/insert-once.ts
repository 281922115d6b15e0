import { problem } from '../../contract/problems.ts'
import { violatedConstraint } from '../../db/database.ts'

/**
 * Inserts a record with a unique value, such as its `ref_id`. Throws already-exists with the existing record, whether
 * an earlier request or a concurrent one inserted it.
 */
export async function insertOnce<T>({
  field = 'ref_id',
  constraint,
  find,
  insert,
}: {
  /** The client's name for the unique field. */
  field?: string
  /** The unique key that a second record violates. */
  constraint: string
  /** Reads the existing record, as the API shows it; undefined if there is none. */
  find: () => Promise<object | undefined>
  /** Checks the records that the new record names, and inserts it. */
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
