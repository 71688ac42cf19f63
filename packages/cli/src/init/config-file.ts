import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { nest, settingAt, type Resolved } from '@gateway/core/config';
import { fileReason } from '@gateway/core/errors';
import { merged } from '@gateway/core/json';
import { wrongUse } from '../app/flag-values.js';

type Content = Readonly<Record<string, unknown>>;

export const isStored = (key: string) => /^(?:database|kv)\./.test(key);

/**
 * The settings of database and KV that were given, and the encryption key, generated unless there
 * is one. A new file also names the environment.
 *
 * @param before content to keep
 */
export function fileContent({ config, origins }: Resolved, before: Content): Content {
  const given = [...origins].filter(([key, origin]) => isStored(key) && origin !== 'default');
  const key = config.encryption_key ?? randomBytes(32).toString('base64');
  const values = given.map(([it]) => [it, settingAt(config, it)] as const);
  const env = origins.get('env') === 'default' ? 'production' : config.env;
  const kept = Object.keys(before).length > 0 ? before : { env };
  return merged(kept, nest(new Map([['encryption_key', key], ...values])));
}

export function readContent(path: string): Content {
  return JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, '')) as Content;
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
