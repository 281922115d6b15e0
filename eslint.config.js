import tseslint from 'typescript-eslint'

/** Lines that a function may have, without comments and blank ones. */
const FUNCTION_LINES_MAX = 80
/**
 * The longest functions by file: each declares the commands of one group below each other, a table of data. A number may
 * only fall, and a file only leave the list.
 */
const LONGER_FUNCTIONS = {
  'src/commands/customers.ts': 164,
  'src/commands/deposits.ts': 97,
  'src/commands/networks.ts': 137,
  'src/commands/prices.ts': 94,
  'src/commands/statements.ts': 120,
  'src/commands/treasury.ts': 156,
  'src/commands/wires.ts': 107,
}
const functionLines = (files, max) => ({
  files,
  ignores: ['**/*.test.ts'],
  rules: { 'max-lines-per-function': ['error', { max, skipBlankLines: true, skipComments: true }] },
})

export default tseslint.config(
  { ignores: ['**/dist/', '*.config.js'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true, varsIgnorePattern: '^_$' }],
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
    },
  },
  functionLines(['src/**/*.ts', 'client/src/**/*.ts'], FUNCTION_LINES_MAX),
  ...Object.entries(LONGER_FUNCTIONS).map(([file, lines]) => functionLines([file], lines)),
)
