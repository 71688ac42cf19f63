import { clip } from '@gateway/plugin';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('plugin/clip');

test('text is cut between characters as people see them, at every length', () => {
  const graphemes = ['a', '😀', '👨‍👩‍👧‍👦', 'e\u0301', '🇩🇪', '&amp;', '&#x1F600;', '&', ';', '👍🏽', '한'];
  const text = graphemes.join('').repeat(30);
  const all = Array.from({ length: 30 }, () => graphemes).flat();
  const ends = new Set<number>();
  for (let at = 0, k = 0; k < all.length; at += all[k]!.length, k += 1) ends.add(at);
  for (let max = 1; max < text.length; max += 1) {
    const cut = clip(text, max);
    assert.ok(cut.length <= max && cut.length > max - 20, `${max}: ${cut.length}`);
    assert.ok(cut.endsWith('…') && text.startsWith(cut.slice(0, -1)), cut);
    assert.ok(ends.has(cut.length - 1), `${max}: ${cut.slice(-20)}`);
  }
});

test('text that fits is whole, and the mark is within the length', () => {
  assert.is(clip('abc', 3), 'abc');
  assert.is(clip('abcd', 3), 'ab…');
  assert.is(clip('abcd', 3, ''), 'abc');
  assert.is(clip('aaa&amp;', 7), 'aaa…');
  assert.is(clip('AT&T and more', 7), 'AT&T a…');
  assert.is(clip('😀😀', 3), '😀…');
});

test('a grapheme without end is cut between code points, in constant time', () => {
  const cut = clip(`a${'\u0301'.repeat(1e6)}`, 500);
  assert.is(cut.length, 500);
  assert.ok(clip('😀\u200d'.repeat(1000), 500).isWellFormed());
});

test.run();
