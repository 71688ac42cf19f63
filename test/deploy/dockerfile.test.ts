import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { summaries } from '#cli/app/command-index';

const dockerfile = suite('deploy/dockerfile');

const text = fs.readFileSync(
  fileURLToPath(new URL('../../deploy/image/Dockerfile', import.meta.url)),
  'utf8',
);
const image = text.slice(text.lastIndexOf('\nFROM '));
const instruction = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(image)?.[1] ?? '';

dockerfile('the image needs neither root nor a shell', () => {
  assert.match(image, /^\nFROM scratch\n/);
  assert.not.match(image, /^RUN /m);
  assert.match(instruction('USER'), /^[1-9]\d*:[1-9]\d*$/);
  for (const name of ['ENTRYPOINT', 'CMD'])
    assert.ok(Array.isArray(JSON.parse(instruction(name))), `${name} is a list`);
});

dockerfile('the base is the one argument of all stages', () => {
  assert.match(text, /^ARG BASE=\S*node:24-[a-z]+-slim(@sha256:[0-9a-f]{64})?$/m);
  assert.equal(
    [...text.matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, from = '']) =>
      from.replace(/[{}]/g, ''),
    ),
    ['$BASE', '$BASE', 'scratch'],
  );
});

dockerfile('packages are installed by their lock file', () => {
  assert.match(text, /^COPY package\.json package-lock\.json /m);
  assert.match(text, /&& npm ci /);
});

dockerfile('the health check is a command of the gateway', () => {
  const [program, ...words] = JSON.parse(
    instruction('HEALTHCHECK').replace(/^.* CMD /, ''),
  ) as string[];
  assert.is(program, 'gateway');
  assert.ok(Object.hasOwn(summaries, words.join(':')));
});

dockerfile.run();
