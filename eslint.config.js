// Lint is for correctness; prettier formats the code. Each rule prevents a way in which a gateway
// loses messages or says something untrue, except one that keeps comments readable.
import { commentFragments } from './scripts/lint/comment-fragments.mjs';
import tseslint from 'typescript-eslint';

/** Mistakes that show without types. */
const plain = {
  'array-callback-return': 'error',
  'constructor-super': 'error',
  eqeqeq: 'error',
  'for-direction': 'error',
  'no-async-promise-executor': 'error',
  'no-class-assign': 'error',
  'no-compare-neg-zero': 'error',
  'no-cond-assign': 'error',
  'no-constant-binary-expression': 'error',
  'no-control-regex': 'error',
  'no-debugger': 'error',
  'no-dupe-else-if': 'error',
  'no-duplicate-case': 'error',
  'no-ex-assign': 'error',
  'no-fallthrough': 'error',
  'no-loss-of-precision': 'error',
  'no-self-assign': 'error',
  'no-self-compare': 'error',
  'no-sparse-arrays': 'error',
  'no-template-curly-in-string': 'error',
  'no-unreachable': 'error',
  'no-unreachable-loop': 'error',
  'no-unsafe-finally': 'error',
  'no-unsafe-negation': 'error',
  'no-unsafe-optional-chaining': 'error',
  'no-unused-private-class-members': 'error',
  'no-useless-backreference': 'error',
  'no-var': 'error',
  'prefer-const': 'error',
  'use-isnan': 'error',
  'valid-typeof': 'error',
};

/** Mistakes that types reveal: above all promises that are not awaited, and unhandled cases. */
const typed = {
  '@typescript-eslint/await-thenable': 'error',
  '@typescript-eslint/no-array-delete': 'error',
  '@typescript-eslint/no-base-to-string': 'error',
  '@typescript-eslint/no-floating-promises': 'error',
  '@typescript-eslint/no-for-in-array': 'error',
  '@typescript-eslint/no-implied-eval': 'error',
  '@typescript-eslint/no-misused-promises': 'error',
  '@typescript-eslint/no-misused-spread': 'error',
  '@typescript-eslint/no-unnecessary-type-assertion': 'error',
  '@typescript-eslint/no-unsafe-enum-comparison': 'error',
  '@typescript-eslint/no-unsafe-unary-minus': 'error',
  '@typescript-eslint/only-throw-error': 'error',
  '@typescript-eslint/prefer-promise-reject-errors': 'error',
  '@typescript-eslint/restrict-plus-operands': 'error',
  '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
  '@typescript-eslint/switch-exhaustiveness-check': [
    'error',
    { considerDefaultExhaustiveForUnions: true },
  ],
};

/** Mistakes that `any` hides, most often from `JSON.parse`. */
const unsafe = {
  '@typescript-eslint/no-unsafe-argument': 'error',
  '@typescript-eslint/no-unsafe-assignment': 'error',
  '@typescript-eslint/no-unsafe-call': 'error',
  '@typescript-eslint/no-unsafe-member-access': 'error',
  '@typescript-eslint/no-unsafe-return': 'error',
};

const syntax = {
  '@typescript-eslint/ban-ts-comment': 'error',
  '@typescript-eslint/consistent-type-imports': [
    'error',
    { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
  ],
  '@typescript-eslint/no-explicit-any': 'error',
  '@typescript-eslint/no-non-null-asserted-optional-chain': 'error',
  '@typescript-eslint/no-unused-expressions': 'error',
  '@typescript-eslint/no-unused-vars': [
    'error',
    { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
  ],
};

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      'coverage/**',
      '.gateway/**',
      '.cache/**',
      '.tests/**',
      'test/fixtures/**',
      'packages/client/src/generated.ts',
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    plugins: { house: { rules: { 'comment-fragments': commentFragments } } },
    rules: { 'house/comment-fragments': 'error' },
  },
  {
    files: [
      'packages/*/src/**/*.{ts,tsx}',
      'plugins/*/src/**/*.{ts,tsx}',
      'extras/*/src/**/*.{ts,tsx}',
      'test/**/*.ts',
      'scripts/**/*.mjs',
    ],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: { ...plain, ...syntax, ...typed },
  },
  {
    files: ['packages', 'plugins', 'extras'].map((group) => `${group}/*/src/**/*.{ts,tsx}`),
    rules: unsafe,
  },
  {
    // No project of TypeScript holds these.
    files: ['bin/**/*.js', 'eslint.config.js', 'test/**/*.mjs'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parser: tseslint.parser },
    rules: { ...plain, ...syntax },
  },
  {
    // `@ts-check` is what makes them part of the type check.
    files: ['scripts/**/*.mjs', 'test/**/*.mjs'],
    rules: { '@typescript-eslint/ban-ts-comment': 'off' },
  },
);
