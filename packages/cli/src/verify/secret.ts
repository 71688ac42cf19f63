/** A secret as a receiver was given it. */
export interface GivenSecret {
  readonly text: string;
  /** The key of the Standard Webhooks signature. */
  readonly key: Buffer;
  /** What a receiver's library may refuse about its form. */
  readonly problem: string | undefined;
}

/**
 * Reads a secret: `whsec_` and base64 of 24 to 64 bytes. What has another form is read as well as can be, and told.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme
 */
export function givenSecret(given: string): GivenSecret {
  const text = given.trim().replace(/^(["'])(.*)\1$/s, '$2');
  const base64 = text.replace(/^whsec_/, '');
  return { text, key: Buffer.from(base64, 'base64'), problem: problemOf(text, base64) };
}

function problemOf(text: string, base64: string): string | undefined {
  if (text === '') return 'the secret is empty';
  if (text.includes('****')) return 'the secret is masked; the API shows one only when it is made, so rotate it to have a new one';
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return 'the secret is not whsec_ and base64, as the gateway makes secrets';
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== base64.replace(/=+$/, ''))
    return 'the secret is cut off: its base64 has no whole number of bytes';
  if (bytes.length < 24 || bytes.length > 64)
    return `the secret holds ${bytes.length} bytes; one of the gateway has 24 to 64, so it may be cut off`;
  return text.startsWith('whsec_') ? undefined : 'the secret lacks whsec_ at its beginning';
}
