import { GatewayError, isGatewayError } from '@gateway/core/errors';
import { sealer, type Sealer } from '@gateway/core/crypto';
import { readInput } from './app/read-input.js';

/**
 * The sealer of a new encryption key that stands in a file.
 *
 * @throws GatewayError `wrong_use` for a file that cannot be read, holds no key, or holds the present one
 */
export async function newSealer(file: string, present: Pick<Sealer, 'open'>): Promise<Sealer> {
  const text = (await readInput('--encryption-key-file', file)).toString('utf8').trim();
  const fix = 'make one with `openssl rand -base64 32 > new.key`, and name that file';
  let made: Sealer;
  try {
    made = sealer(text);
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    throw new GatewayError('wrong_use', { sentence: `${file} does not hold an encryption key: it is not 32 bytes in base64`, fix });
  }
  try {
    present.open(made.seal(''));
  } catch {
    return made;
  }
  throw new GatewayError('wrong_use', { sentence: `${file} holds the present encryption key, not a new one`, fix });
}
