import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { nest, settingAt, type Resolved } from '@gateway/core/config';
import { fileReason } from '@gateway/core/errors';
import { wrongUse } from '../app/flag-values.js';

type Content = Readonly<Record<string, unknown>>;

export const isStored = (key: string) => /^(?:database|kv)\./.test(key);

/** The environment, the settings of database and KV that were given, and the encryption key. */
export function fileContent({ config, origins }: Resolved): Content {
  const given = [...origins].filter(([key, origin]) => isStored(key) && origin !== 'default');
  return nest(
    new Map<string, unknown>([
      ['env', origins.get('env') === 'default' ? 'production' : config.env],
      ['encryption_key', config.encryption_key ?? randomBytes(32).toString('base64')],
      ...given.map(([key]) => [key, settingAt(config, key)] as const),
    ]),
  );
}

/** Only the owner can read the file, which is written whole or not at all. Throws `wrong_use`. */
export function writeConfigFile(path: string, content: Content): void {
  const unfinished = `${path}.${process.pid}`;
  try {
    const text = `${JSON.stringify(content, null, 2)}\n`;
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw wrongUse(
      `the configuration file ${path} cannot be written: ${fileReason(error)}`,
      'run the command in a folder that this user can write to, or name another file with --config',
    );
  }
}
