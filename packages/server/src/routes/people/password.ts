import { Type } from '@sinclair/typebox';
import { Shares } from '../../api/shares.js';

// https://pages.nist.gov/800-63-4/sp800-63b.html#password: length counts, kinds of characters do not.
export const Password = Type.String({ minLength: 12, maxLength: 1024, description: 'At least 12 characters.' });
export const PersonName = Type.String({ maxLength: 100 });

/** A hash takes 128 MB and half a second of one core: one at a time, and at most a hundred wait. */
const turns = new Shares(1, 'one password at a time');

export async function withPasswordTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const release = await turns.take('password');
  try {
    return await work();
  } finally {
    release();
  }
}
