import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

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
  assert.match(text, /^ARG BASE=.*node:24\b/m);
  assert.equal(
    [...text.matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, from = '']) =>
      from.replace(/[{}]/g, ''),
    ),
    ['$BASE', '$BASE', 'scratch'],
  );
});

dockerfile('the health check is a program of Node that compiles', () => {
  const [program, flag, script = ''] = JSON.parse(
    instruction('HEALTHCHECK').replace(/^.* CMD /, ''),
  ) as string[];
  assert.equal([program, flag], ['node', '-e']);
  assert.not.throws(() => new vm.Script(script));
});

dockerfile.run();
