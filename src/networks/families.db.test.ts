import { expect, test } from 'vitest'
import { familyOf } from './families.ts'

// All tests of src on a database run so (`coreAlone` in test/projects.ts): what needs a family fails.
test('the tests of src run without families of chains', async () => {
  await expect(familyOf('evm')).rejects.toThrow('stand without the folders chains and signer')
})
