import { readFile } from 'node:fs/promises';
import { fileReason, GatewayError } from '@gateway/core/errors';

/**
 * The bytes of a file that a user named, `-` for standard input.
 *
 * @param given how it was named, for the sentence: `--body`, or the name of an argument
 * @throws GatewayError `wrong_use` when it cannot be read
 */
export async function readInput(given: string, path: string): Promise<Buffer> {
  if (path === '-') return standardInput(given);
  try {
    return await readFile(path);
  } catch (error) {
    throw new GatewayError('wrong_use', {
      sentence: `the file ${path} of ${given} cannot be read: ${fileReason(error)}`,
      fix: 'name a readable file, or - for standard input',
    });
  }
}

async function standardInput(given: string): Promise<Buffer> {
  if (process.stdin.isTTY) process.stderr.write(`reading ${given} from standard input; end it with Ctrl-D\n`);
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
