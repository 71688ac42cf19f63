import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { typeMismatch, withSentence } from '#core/routing/mismatch';

const mismatch = suite('core/routing/mismatch');

const sentenceOf = (...[it]: Parameters<typeof withSentence>) => withSentence(it).sentence;

mismatch('why a subscription does not match is a sentence', () => {
  const body = { part: 'body', path: 'total', operator: '$gte', wanted: 100, found: 12 } as const;
  assert.is(sentenceOf(body), 'the filter requires total to be at least 100, but it is 12');
  assert.is(
    sentenceOf({ ...body, part: 'headers', operator: '$eq', wanted: 'a', found: undefined }),
    'the filter requires the header total to be "a", but it is missing',
  );
  assert.is(
    sentenceOf({ ...body, path: '', operator: '$or', wanted: [{ n: 1 }, { n: 2 }] }),
    'none of the alternatives of $or matches the body',
  );
  assert.ok(sentenceOf({ ...body, found: 'x'.repeat(10_000) }).length < 250);
  assert.is(
    typeMismatch(['a', 'b.*'], 'order.paid')?.sentence,
    'the event type order.paid does not match a, b.*',
  );
  assert.is(typeMismatch(['order.*'], 'order.paid'), undefined);
});

mismatch.run();
