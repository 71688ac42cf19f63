import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { colourOf, contrastOf } from '#dashboard/format/colour';
import { themeOf } from '#dashboard/session/portal-theme';
import { withFirstPage } from '#dashboard/api/read';
import { isRawNumber, parseExactly } from '#dashboard/format/exact-json';
import { objectOf, pretty } from '#dashboard/format/json';
import { bytes, percent, rate } from '#dashboard/format/number';
import { milliseconds, relative, span } from '#dashboard/format/time';
import { actionWords } from '#dashboard/pages/audit/actions';
import { reasonOf } from '#dashboard/pages/quarantine/reasons';
import { searchOf } from '#dashboard/components/log/filter-bar';
import { match } from '#dashboard/router/route';

const logic = suite('dashboard/logic');

const pageOf = (uids: string, cursor: string | null = 'next') => ({
  content: Array.from(uids).map((uid) => ({ uid })),
  pagination: {
    per_page: 3,
    has_next_page: cursor !== null,
    has_prev_page: false,
    next_page_cursor: cursor,
    prev_page_cursor: null,
  },
});
const stateOf = (uids: string | undefined, cursor: string | null = 'old') => ({
  key: 'k',
  rows: uids === undefined ? undefined : Array.from(uids).map((uid) => ({ uid })),
  cursor,
  error: undefined,
  held: undefined,
});
const shown = ({ rows }: { rows: readonly { uid: string }[] | undefined }) =>
  rows?.map(({ uid }) => uid).join('');

logic('the first page replaces what it covers of a list, and keeps what was loaded below', () => {
  assert.is(shown(withFirstPage(stateOf(undefined), pageOf('abc'), false)), 'abc');
  const followed = withFirstPage(stateOf('cdefgh'), pageOf('abc'), false);
  assert.equal([shown(followed), followed.cursor], ['abcdefgh', 'old']);
  assert.is(
    shown(withFirstPage(stateOf('abcdef'), pageOf('acd'), false)),
    'acdef',
    'b no longer matches the filter',
  );
  const jumped = withFirstPage(stateOf('xyz'), pageOf('abc'), false);
  assert.equal(
    [shown(jumped), jumped.cursor],
    ['abc', 'next'],
    'rows are missing between: begin anew',
  );
});

logic('rows that are held back move nothing, and known rows are brought up to date', () => {
  const held = withFirstPage(stateOf('cdef'), pageOf('abc'), true);
  assert.equal([shown(held), held.held?.content.length], ['cdef', 3]);
  assert.is(shown(withFirstPage(held, held.held!, false)), 'abcdef');
  assert.is(shown(withFirstPage(stateOf('abcd'), pageOf('abc'), true)), 'abcd');
});

logic('JSON is indented without a change of its numbers and strings; other text stays', () => {
  const text =
    '{"n":1.10,"big":12345678901234567890,"s":"a: {b}, \\"c\\"","e":[],"o":{},"l":[1,true,null]}';
  const laidOut = pretty(text);
  assert.match(
    laidOut,
    '"n": 1.10,\n  "big": 12345678901234567890,\n  "s": "a: {b}, \\"c\\"",\n  "e": [],\n  "o": {},\n  "l": [\n    1,',
  );
  assert.equal(JSON.parse(laidOut), JSON.parse(text));
  assert.is(pretty('<b>{not json}'), '<b>{not json}');
});

logic('numbers and times are short, and 100% only when nothing is missing', () => {
  assert.equal([1, 0.99999, 0.995, 0.5, 0.012, 0].map(percent), [
    '100%',
    '99.9%',
    '99.5%',
    '50%',
    '1.2%',
    '0.0%',
  ]);
  assert.equal([0, 0.04, 0.4, 12.4, 1250].map(rate), [
    '0/s',
    '2.4/min',
    '0.4/s',
    '12/s',
    '1,250/s',
  ]);
  assert.equal([999, 1200, 2_500_000].map(bytes), ['999 B', '1.2 kB', '2.5 MB']);
  assert.equal([12, 1400, 180_000].map(milliseconds), ['12 ms', '1.4 s', '3 min']);
  assert.equal([45, 7200, 172_800].map(span), ['45 s', '2 h', '2 d']);
  const now = Date.parse('2026-11-25T10:00:00Z');
  assert.equal(
    ['2026-11-25T09:57:00Z', '2026-11-25T10:00:20Z', '2026-11-25T10:00:00.5Z'].map((at) =>
      relative(at, now),
    ),
    ['3 min ago', 'in 20 s', 'now'],
  );
});

logic('a search is the start of an id or an event type', () => {
  assert.equal(searchOf('  order.paid '), { event_type: 'order.paid' });
  assert.equal(searchOf('01A21114'), { query: '01a21114' });
  assert.equal(searchOf('01a21114-d9a9-76'), { query: '01a21114-d9a9-76' });
  assert.equal(searchOf('deadbeef.created'), { event_type: 'deadbeef.created' });
  assert.equal(searchOf(' '), {});
});

logic('paths give their parameters', () => {
  assert.equal(match('/projects/:project/events/:id', '/projects/a/events/b%20c/'), {
    project: 'a',
    id: 'b c',
  });
  assert.is(match('/projects/:project/events', '/projects/a/events/b'), undefined);
  assert.equal(match('/x/:id', '/x/%E0%A4%A'), { id: '%E0%A4%A' }, 'a broken escape is text');
});

logic(
  'the theme of a portal link is made of colours that can be read, and of nothing else that a link holds',
  () => {
    const themed = (text: string) => themeOf(new URLSearchParams(text));
    assert.equal(
      themed(
        'token=gw_x&accent=url(x)&background=red&surface=%23fff&radius=1e9&font=Arial&theme=blue',
      ),
      {
        scheme: undefined,
        properties: {},
      },
    );
    for (const word of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      assert.equal(themed(`font=${word}&accent=${word}&theme=${word}`).properties, {}, word);
      assert.equal(
        [reasonOf(word).label, actionWords(`${word}.${word}`).toLowerCase().includes('function')],
        [word, false],
      );
    }
    assert.equal(themed('radius=99&theme=dark'), {
      scheme: 'dark',
      properties: { '--radius': '16px', '--radius-s': '10px' },
    });
    // Yellow text is unreadable on white, but black is readable on yellow.
    const yellow = themed('accent=ffdd00').properties;
    assert.equal([yellow['--accent-fill'], yellow['--on-accent']], ['#ffdd00', '#000000']);
    const [, light = '', dark = ''] =
      /light-dark\((#\w+), (#\w+)\)/.exec(yellow['--accent'] ?? '') ?? [];
    const contrast = (one: string, other: string) => contrastOf(colourOf(one)!, colourOf(other)!);
    assert.ok(
      contrast(light, '#ffffff') >= 4.5 && contrast(dark, '#161a21') >= 4.5,
      `${light} ${dark}`,
    );
    // The backgrounds decide between light and dark; unreadable text discards all of them.
    const night = themed('background=101820&text=f0f0f0&theme=light');
    assert.equal([night.scheme, night.properties['--surface']], ['dark', '#101820']);
    assert.ok(
      contrast(night.properties['--muted'] ?? '', night.properties['--sunken'] ?? '') >= 4.5,
    );
    assert.equal(themed('background=808080&text=909090').properties, {});
  },
);

logic(
  'numbers keep their digits from the API to the API, also in browsers without JSON.rawJSON',
  () => {
    const text =
      '{"id":1830000000000000001,"total":1.10,"many":[1E2,-0,0.1,42],"text":"1.10 \\"2.0\\"","9007199254740993":null}';
    const value = parseExactly(text) as { id: unknown; many: unknown[] };
    assert.is(JSON.stringify(value), text);
    assert.is(
      JSON.stringify(JSON.parse(JSON.stringify({ value: [value] })) as unknown).length > 0,
      true,
    );
    assert.is(JSON.stringify({ value }, null, 2).includes('"id": 1830000000000000001'), true);
    assert.equal(
      [isRawNumber(value.id), isRawNumber(value.many[3]), value.many[3]],
      [true, false, 42],
    );
    const typed = objectOf('{"id": 1830000000000000001}');
    assert.is(JSON.stringify('value' in typed && typed.value), '{"id":1830000000000000001}');
    assert.is(objectOf('1830000000000000001').problem, 'must be a JSON object: {…}');
    assert.throws(() => parseExactly('{"a":01}'), SyntaxError);
  },
);

logic.run();
