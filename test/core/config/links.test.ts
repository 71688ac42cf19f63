import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { isGatewayError } from '#core/errors/errors';
import { linksOf } from '#core/config/links';

const links = suite('core/config/links');

const of = (file: Record<string, unknown>) => linksOf(resolveConfig({ env: {}, file }).config);

links(
  'a host makes links absolute, with the scheme that it begins with or else that of the process',
  () => {
    const cases: [file: Record<string, unknown>, base: string][] = [
      [{}, ''],
      [{ root_path: '/gateway' }, '/gateway'],
      [{ host: 'gateway.example.com' }, 'http://gateway.example.com'],
      [
        { host: 'gateway.example.com:8443', server: { http: { ssl: true } } },
        'https://gateway.example.com:8443',
      ],
      [
        { host: 'https://gateway.example.com', root_path: '/gateway' },
        'https://gateway.example.com/gateway',
      ],
      [{ host: 'https://gateway.example.com/' }, 'https://gateway.example.com'],
      [{ host: 'http://[::1]:5005', server: { http: { ssl: true } } }, 'http://[::1]:5005'],
    ];
    for (const [file, base] of cases) assert.is(of(file).base, base);
  },
);

links('the URL is that of the public name, or the address of the process', () => {
  assert.is(of({}).url(5005), 'http://localhost:5005');
  assert.is(
    of({ server: { http: { bind: '::1', ssl: true } }, root_path: '/gateway' }).url(1),
    'https://[::1]:1/gateway',
  );
  assert.is(of({ host: 'gateway.example.com' }).url(5005), 'http://gateway.example.com');
});

links('without a public name, an answer names the address that its client has used', () => {
  const request = { headers: { host: 'internal:8080' }, socket: { localPort: 5005 } };
  assert.is(of({ root_path: '/gateway' }).ofRequest(request), 'http://internal:8080/gateway');
  assert.is(of({}).ofRequest({ ...request, headers: {} }), 'http://localhost:5005');
  assert.is(
    of({ host: 'https://gateway.example.com' }).ofRequest(request),
    'https://gateway.example.com',
  );
});

links('what is no public name is refused with what is wrong about it', () => {
  const cases: [host: string, sentence: RegExp][] = [
    ['gateway.example.com/path', /more than a name and a port; set a path with root_path/],
    ['https://gateway.example.com?x=1', /more than a name/],
    ['ftp://gateway.example.com', /scheme is not http/],
    ['two words', /not a host name/],
    ['gateway.example.com:99999', /not a host name/],
  ];
  for (const [host, sentence] of cases) {
    try {
      of({ host });
      assert.unreachable(host);
    } catch (error) {
      assert.ok(isGatewayError(error, 'host_invalid'), String(error));
      assert.match(error.message, sentence);
      assert.match(error.fix, /--host.*GATEWAY_HOST/);
    }
  }
});

links.run();
