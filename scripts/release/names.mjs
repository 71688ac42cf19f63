// @ts-check
/**
 * The names under which the project is published. The repository uses the scope `@gateway`; the
 * packages that a release makes have this one everywhere: in imports, help, errors and templates.
 */
export const names = {
  /** The owner of the packages on npm. */
  scope: '@gateway',
  /** Where the source is read: links in packages lead there. */
  repository: 'https://example.com/gateway/gateway',
};
