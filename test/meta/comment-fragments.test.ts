import { Linter } from 'eslint';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { commentFragments } from '../../scripts/lint/comment-fragments.mjs';

const fragments = suite('meta/comment-fragments');

const linter = new Linter();
const messages = (text: string) =>
  linter
    .verify(text, {
      plugins: { house: { rules: { 'comment-fragments': commentFragments } } },
      rules: { 'house/comment-fragments': 'error' },
    })
    .map(({ line, message }) => `${line}: ${message}`);

fragments('a comment that begins with a pronoun or "Of" is an error, and a sentence is not', () => {
  assert.equal(messages('// Of a new endpoint.\nlet a;\n/** That are kept. */\nlet b;'), [
    '1: A comment does not begin with "Of": name the subject.',
    '3: A comment does not begin with "That": name the subject.',
  ]);
  assert.equal(messages('/**\n * What it holds.\n */'), [
    '1: A comment does not begin with "What": name the subject.',
  ]);
  assert.equal(messages('// Offsets of a partition.\n/** The limit of what is held. */'), []);
});

fragments.run();
