import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseDatabaseOptions, type LibpqOptions } from '#core/config/database-options';

const options = suite('core/config/database-options');

function read(text: string): LibpqOptions {
  const parsed = parseDatabaseOptions(text);
  assert.ok('options' in parsed, JSON.stringify(parsed));
  return parsed.options;
}

function wrong(text: string): string {
  const parsed = parseDatabaseOptions(text);
  assert.ok('wrong' in parsed, `${text} was accepted`);
  return `database.options ${parsed.wrong}${parsed.hint ?? ''}`;
}

options('nothing said is no TLS, and what is said is taken in the words of libpq', () => {
  assert.is(read('').sslmode, 'disable');
  for (const mode of ['disable', 'allow', 'prefer', 'require', 'verify-full'] as const)
    assert.is(read(`sslmode=${mode}`).sslmode, mode);
  const it = read(
    '?sslmode=verify-ca&sslrootcert=/a%20b/c+d.pem&options=-c search_path=x&connect_timeout=30&application_name=a&keepalives=0',
  );
  assert.equal(
    [it.sslmode, it.sslrootcert, it.session],
    ['verify-ca', '/a b/c+d.pem', '-c search_path=x'],
  );
  assert.equal([it.connectTimeoutSeconds, it.applicationName, it.keepAlive], [30, 'a', false]);
  assert.is(read('ssl=true').sslmode, 'require');
  assert.is(
    read(
      'sslmode=require&channel_binding=prefer&gssencmode=disable&target_session_attrs=any&uselibpqcompat=true',
    ).channelBinding,
    true,
  );
});

options('what cannot be is refused with what is wrong and what was meant', () => {
  const modes = 'disable, allow, prefer, require, verify-ca, verify-full';
  const expected: [string, string | RegExp][] = [
    [
      'sslmode=requre',
      `database.options has sslmode of "requre"; it must be one of ${modes}; did you mean require?`,
    ],
    ['sslmode=no-verify', /it must be one of disable/],
    [
      'ssl_mode=require',
      /^database\.options names "ssl_mode", which is not an option \(known: sslmode, .*\); did you mean sslmode\?$/,
    ],
    ['sslmode', /"sslmode" is not$/],
    ['sslmode=%zz', /holds a "%" in "sslmode"/],
    ['password=hunter2', 'database.options names password, which is the setting database.password'],
    ['statement_timeout=5', /for the session it is options=-c statement_timeout=<value>$/],
    ['connect_timeout=-1', /must be whole seconds/],
    ['connect_timeout=9999999', /at most 2147483$/],
    ['sslrootcert=/ca.pem', /without sslmode, so TLS would not be used; add sslmode=verify-full$/],
    ['sslmode=verify-ca', /without sslrootcert/],
    ['sslmode=require&sslrootcert=system', /set sslmode=verify-full$/],
    [
      'sslmode=require&sslcert=/a.pem',
      'database.options must have both sslcert and sslkey, or neither',
    ],
    ['sslmode=prefer&sslnegotiation=direct', /it needs at least sslmode=require$/],
    [
      'sslmode=require&channel_binding=require',
      /has channel_binding of "require"; it must be one of disable, prefer/,
    ],
    ['sslmode=require&ssl=true', /has both ssl and sslmode/],
  ];
  for (const [text, sentence] of expected) {
    if (typeof sentence === 'string') assert.is(wrong(text), sentence);
    else assert.ok(sentence.test(wrong(text)), `${text}: ${wrong(text)}`);
  }
  assert.not.match(wrong('password=hunter2'), 'hunter2');
});

options.run();
