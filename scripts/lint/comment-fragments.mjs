// @ts-check
/** First words of a fragment: the comment has no subject, or names it by a pronoun alone. */
const FRAGMENT = /^[*\s]*(Of|That|Those|What|Which|Who|Whose)\s/;

/**
 * ESLint rule: a comment begins with a sentence or a noun phrase.
 * @type {import('eslint').Rule.RuleModule}
 */
export const commentFragments = {
  create: ({ sourceCode, report }) => ({
    Program() {
      for (const { value, loc } of sourceCode.getAllComments()) {
        const [, word] = FRAGMENT.exec(value) ?? [];
        if (word && loc)
          report({ loc, message: `A comment does not begin with "${word}": name the subject.` });
      }
    },
  }),
};
