import ts from 'typescript';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { settings, type SettingsTable } from '#core/config/settings';
import { parse, read, sources } from './house.js';

const words = suite('meta/words');

/** A text that users read, with the place of its source. */
interface Text {
  readonly place: string;
  readonly text: string;
}

/** The strings and JSX texts of a file, except module names and types. */
function textsOf(file: string): Text[] {
  const source = parse(file);
  const texts: Text[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    const text =
      ts.isJsxText(node) || ts.isStringLiteralLike(node)
        ? node.text
        : ts.isTemplateExpression(node)
          ? node.getText().slice(1, -1)
          : '';
    if (/\p{L}{2}/u.test(text)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      texts.push({ place: `${file}:${line + 1}`, text: text.replaceAll(/\s+/g, ' ').trim() });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return texts;
}

/** A clause without a subject, which reads as if something were missing before it. */
const OPENING = /^(That|What|Of|Whether|Which|Whom|Whose)\b|^(that|what|whether|whom|whose) /;

/** Phrases with a standard term or a plainer sentence. */
const PHRASES: Readonly<Record<string, string>> = {
  'all times': 'any time',
  'attempted without this': 'already scheduled for a retry',
  'bytes that came': 'the original',
  'dead without': 'lease expires',
  'deliveries that ended': 'completed deliveries',
  'drop mine': 'discard mine',
  'endpoints that fail': 'failing endpoints',
  'have one made': 'generate one',
  'in the last minutes': 'average of the last 5 minutes',
  'its text': 'message body',
  'leave it away': 'omit it',
  'make the link': 'create link',
  'may also do': 'includes',
  'only then acknowledged': 'then acknowledged',
  'save mine': 'overwrite with mine',
  'signs until': 'active',
  'the present one': 'the current secret',
  'the signature alone': 'signature only',
  'tried in': 'next try in',
  'who changed what': 'history',
};

function faultOf(text: string): string | undefined {
  if (OPENING.test(text)) return 'begins with a relative clause';
  const phrase = Object.keys(PHRASES).find((it) => text.toLowerCase().includes(it));
  return phrase && `“${phrase}” → “${PHRASES[phrase]}”`;
}

const faultsOf = (texts: readonly Text[]) =>
  texts.flatMap(({ place, text }) => {
    const fault = faultOf(text);
    return fault ? [`${place} ${fault}: ${text}`] : [];
  });

words('relative clauses and translated phrases are found, and plain sentences are not', () => {
  for (const text of ['That it subscribes to.', 'what admins may', 'Its text', 'tried in 4 min'])
    assert.ok(faultOf(text), text);
  for (const text of ['Event types to receive.', 'of 12 in the last 15 minutes', 'Offset'])
    assert.is(faultOf(text), undefined, text);
});

words('the strings of a page are read from its JSX, its props and its templates', () => {
  const texts = textsOf('packages/dashboard/src/pages/people/members.tsx').map(({ text }) => text);
  for (const text of ['Change role', 'Members']) assert.ok(texts.includes(text), text);
  assert.ok(texts.some((text) => text.endsWith(' was removed.')));
  assert.not.ok(texts.some((text) => text.includes('preact')));
});

words('the dashboard speaks in plain sentences', () => {
  const files = sources('packages/dashboard/src');
  assert.ok(files.length > 100);
  assert.equal(faultsOf(files.flatMap(textsOf)), []);
});

words('the OpenAPI document names the subject of each summary and description', () => {
  const texts: Text[] = [];
  JSON.parse(read('docs/reference/openapi.json'), (key, value: unknown) => {
    // `Whether the delivery is held` is how a boolean is described.
    if ((key === 'summary' || key === 'description') && typeof value === 'string')
      texts.push({ place: 'openapi.json', text: value.replace(/^Whether /, '') });
    return value;
  });
  assert.ok(texts.length > 500);
  assert.equal(faultsOf(texts), []);
});

words('settings, commands and flags are described in plain sentences', () => {
  const rows: SettingsTable = settings;
  const summaries = Object.entries(rows).map(([place, { summary }]) => ({ place, text: summary }));
  const lines = read('docs/reference/cli.md').split('\n');
  const help = lines.map((line, index) => ({
    place: `docs/reference/cli.md:${index + 1}`,
    text: line.replace(/^- `[^`]*`: /, ''),
  }));
  assert.equal(faultsOf([...summaries, ...help]), []);
});

words.run();
