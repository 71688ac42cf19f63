import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';

// scrypt with N 2^17, r 8 and p 1 needs 128 MB per hash:
// https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt
const LOG_N = 17;
const R = 8;
const P = 1;
const KEY_BYTES = 32;

/** 24 characters (144 bits). */
export function generatePassword(): string {
  return randomBytes(18).toString('base64url');
}

/** `scrypt$<log2 N>$<r>$<p>$<salt>$<hash>`, with salt and hash in base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, { logN: LOG_N, r: R, p: P });
  return ['scrypt', LOG_N, R, P, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** False if the stored string has a different format. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const parts = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(stored);
  if (!parts) return false;
  const expected = Buffer.from(parts[5]!, 'base64url');
  const given = await derive(password, Buffer.from(parts[4]!, 'base64url'), {
    logN: Number(parts[1]),
    r: Number(parts[2]),
    p: Number(parts[3]),
  });
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function derive(
  password: string,
  salt: Buffer,
  { logN, r, p }: { logN: number; r: number; p: number },
): Promise<Buffer> {
  const N = 2 ** logN;
  const options: ScryptOptions = { N, r, p, maxmem: 256 * N * r };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
