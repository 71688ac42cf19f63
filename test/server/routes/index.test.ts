import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { routes } from '@gateway/server/routes';

const index = suite('server/routes/index');

index('no two routes have the same method and path', () => {
  const keys = routes.map(({ method, path, reach }) => `${method} ${reach} ${path}`);
  assert.is(new Set(keys).size, keys.length);
});

index.run();
