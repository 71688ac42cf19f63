import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { importExtra, missingExtra } from '#core/process/extra-package';

const extra = suite('core/process/extra-package');

extra('a package that is installed is imported', async () => {
  assert.is(missingExtra('@gateway/archive', 'archive.url'), undefined);
  const exports = await importExtra<object>('@gateway/archive', 'archive.url');
  assert.equal(Object.keys(exports), ['openArchive']);
});

extra('a missing package is told with what needs it, and how to install it', async () => {
  const nowhere = '@gateway/nowhere' as '@gateway/archive';
  const error = await importExtra(nowhere, 'archive.url').catch((it: unknown) => it);
  assert.match(
    String(error),
    /^archive\.url needs the package @gateway\/nowhere, which is not installed\nrun `npm install @gateway\/nowhere@\d/,
  );
});

extra.run();
