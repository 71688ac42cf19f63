import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readDocument } from '#cli/app/parse-document';
import { extractEventTypes, type AnnouncedEventType } from '#core/openapi/extract';
import { isGatewayError } from '#core/errors/errors';

const extract = suite('core/openapi/extract');

const folder = mkdtempSync(join(tmpdir(), 'gateway-extract-'));
extract.after(() => rmSync(folder, { recursive: true, force: true }));

/** The event types of the first file; it can refer to the others. */
async function from(
  files: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, AnnouncedEventType>> {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return extractEventTypes([await readDocument(join(folder, Object.keys(files)[0]!))]);
}

async function refusal(files: Readonly<Record<string, string>>): Promise<string> {
  try {
    await from(files);
  } catch (error) {
    assert.ok(isGatewayError(error, 'openapi_broken'), String(error));
    return error.message;
  }
  throw new Error('nothing was refused');
}

function withSchema(schema: unknown, more: object = {}, openapi = '3.1.0'): string {
  const content = { 'application/json': { schema } };
  return JSON.stringify({
    openapi,
    webhooks: { a: { post: { requestBody: { content } } } },
    'x-webhooks': {},
    ...more,
  });
}

for (const [name, content, sentence] of [
  [
    'broken.yaml',
    'openapi: 3.1.0\nwebhooks:\n  a: [1, 2\n  b: x\n',
    /broken\.yaml: it is neither YAML nor JSON: .* \(line 4, column 3\)/,
  ],
  [
    'broken.json',
    '{"openapi": "3.1.0",\n "webhooks": {,}}',
    /broken\.json: it is neither YAML nor JSON: .* \(line 2, column 15\)/,
  ],
  [
    'swagger.yaml',
    'swagger: "2.0"\n',
    /swagger\.yaml: it is Swagger "2\.0", which has no webhooks/,
  ],
  ['future.yaml', 'openapi: 4.0.0\n', /future\.yaml: its version "4\.0\.0" is not known/],
  ['text.txt', 'hello', /text\.txt: it is not an OpenAPI document: it holds no object/],
  ['other.json', '{"a":1}', /other\.json: it is not an OpenAPI document: it has no field openapi/],
  [
    'dangling.yaml',
    'openapi: 3.1.0\nwebhooks: { a: { $ref: "#/nope" } }',
    /dangling\.yaml: its reference #\/nope does not resolve/,
  ],
  [
    'circle.yaml',
    'openapi: 3.1.0\nwebhooks: { a: { $ref: "#/webhooks/a" } }',
    /circle\.yaml: its reference #\/webhooks\/a is circular/,
  ],
  [
    'nameless.yaml',
    'openapi: 3.1.0\nwebhooks: { "a\\tb": { post: {} } }',
    /its webhook "a\\tb" cannot be an event type/,
  ],
] as const) {
  extract(
    `a document that cannot be read is refused with its name and the place: ${name}`,
    async () => {
      assert.match(await refusal({ [name]: content }), sentence);
    },
  );
}

extract(
  'the example is that of the body, the first of several, or that of its schema',
  async () => {
    const example = async (media: object, more: object = {}) => {
      const requestBody = { content: { 'application/json': media } };
      return (
        await from({
          'example.json': JSON.stringify({
            openapi: '3.1.0',
            webhooks: { a: { post: { requestBody } } },
            ...more,
          }),
        })
      ).get('a')!.example;
    };
    const components = {
      examples: { Paid: { value: { id: 2 } } },
      schemas: { Order: { examples: [{ id: 3 }, { id: 4 }] } },
    };
    assert.equal(await example({ example: { id: 1 }, examples: { b: { value: 0 } } }), { id: 1 });
    assert.equal(
      await example(
        { examples: { paid: { $ref: '#/components/examples/Paid' }, b: { value: 0 } } },
        { components },
      ),
      { id: 2 },
    );
    assert.equal(
      await example({ schema: { $ref: '#/components/schemas/Order' } }, { components }),
      { id: 3 },
    );
    assert.equal(await example({ schema: { example: [5] } }), [5]);
    assert.equal(
      [
        await example({ schema: {} }),
        await example({ schema: true }),
        await example({ examples: { a: {} } }),
      ],
      [null, null, null],
    );
  },
);

extract('a reference by an anchor is refused, for what it names is not looked for', async () => {
  const components = { schemas: { Money: { $anchor: 'Money', type: 'integer' } } };
  assert.match(
    await refusal({ 'anchor.json': withSchema({ $ref: '#Money' }, { components }) }),
    /its reference #Money names an anchor/,
  );
});

extract('a reference may hold a percent sign that escapes nothing', async () => {
  const components = { schemas: { '100%': { type: 'integer' } } };
  const { schema } = (
    await from({
      'percent.json': withSchema({ $ref: '#/components/schemas/100%' }, { components }),
    })
  ).get('a')!;
  assert.is(schema?.['type'], 'integer');
});

extract('a URL is refused, without its credentials', async () => {
  const message = await readDocument('http://ada:hunter2@127.0.0.1:1/a.yaml').then(
    () => '',
    (error: Error) => error.message,
  );
  assert.match(message, /^http:\/\/\*+@127\.0\.0\.1:1\/a\.yaml: only files are read/);
});

extract(
  'references are found in schemas that have an $id, and beside definitions of their own',
  async () => {
    const components = {
      schemas: {
        Money: { $id: 'Money', type: 'integer' },
        Cart: { $id: 'Cart', properties: { sum: { $ref: '#/components/schemas/Money' } } },
      },
    };
    const own = {
      $defs: { Money: { type: 'string' } },
      properties: { cart: { $ref: '#/components/schemas/Cart' } },
    };
    const { schema } = (await from({ 'id.json': withSchema(own, { components }) })).get('a')!;
    assert.equal(schema!['$defs'], {
      Money: { type: 'string' },
      Cart: { properties: { sum: { $ref: '#/$defs/Money_2' } } },
      Money_2: { type: 'integer' },
    });
  },
);

extract('a file that another one refers to may be broken as well, and is named', async () => {
  const files = { 'whole.json': withSchema({ $ref: 'part.yaml#/A' }), 'part.yaml': 'A: [' };
  assert.match(await refusal(files), /whole\.json: \S+part\.yaml is neither YAML nor JSON/);
  assert.match(
    await refusal({ 'whole.json': withSchema({ $ref: 'absent.yaml#/A' }) }),
    /whole\.json: \S+absent\.yaml cannot be read: there is no such file or folder/,
  );
});

extract('what no webhook refers to is not read', async () => {
  const components = {
    schemas: { B: { $ref: 'https://example.com/never.yaml' }, C: { $ref: '#/nowhere' } },
  };
  assert.equal(
    (await from({ 'unused.json': withSchema({ type: 'object' }, { components }) })).get('a')!
      .schema,
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
    },
  );
});

extract('two components of one name in two files stay apart', async () => {
  const files = {
    'first.json': withSchema(
      {
        properties: {
          mine: { $ref: '#/components/schemas/Money' },
          theirs: { $ref: 'second.json#/components/schemas/Money' },
        },
      },
      { components: { schemas: { Money: { type: 'integer' } } } },
    ),
    'second.json': JSON.stringify({ components: { schemas: { Money: { type: 'string' } } } }),
  };
  const schema = (await from(files)).get('a')!.schema!;
  assert.equal(schema['$defs'], { Money: { type: 'integer' } });
  assert.equal(schema['properties'], {
    mine: { $ref: '#/$defs/Money' },
    theirs: { type: 'string' },
  });
});

extract('a body that is its own component refers to itself', async () => {
  const components = {
    schemas: { Node: { properties: { next: { $ref: '#/components/schemas/Node' } } } },
  };
  const { schema } = (
    await from({ 'node.json': withSchema({ $ref: '#/components/schemas/Node' }, { components }) })
  ).get('a')!;
  assert.equal(schema, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: { next: { $ref: '#' } },
  });
});

extract('of several operations of a webhook the one with a body has the name', async () => {
  const webhooks = { a: { get: {}, put: { requestBody: { content: {} } }, description: 'Both.' } };
  const types = await from({ 'several.json': JSON.stringify({ openapi: '3.1.0', webhooks }) });
  assert.equal([...types.keys()], ['a', 'a.get']);
  assert.equal(
    [types.get('a')!.description, types.get('a')!.source.endsWith('#/webhooks/a/put')],
    ['Both.', true],
  );
});

extract('a large document lets other work run meanwhile', async () => {
  const properties = Object.fromEntries(Array.from({ length: 20_000 }, (_, k) => [`p${k}`, {}]));
  const root: unknown = JSON.parse(withSchema({ properties }));
  let turns = 0;
  const count = setInterval(() => turns++, 0);
  await extractEventTypes([{ name: 'a.json', root }]);
  clearInterval(count);
  assert.ok(turns >= 3, `${turns} turns of the event loop`);
});

extract.run();
