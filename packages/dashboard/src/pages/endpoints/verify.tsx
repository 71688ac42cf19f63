import { Code } from '../../components/index.js';

/** A Node.js module without dependencies. */
export const VERIFY = `import { createHmac, timingSafeEqual } from 'node:crypto';

/** Throws an error unless we sent the request. \`body\` is the raw body, before it is parsed. */
export function verify(body, headers, secret) {
  const timestamp = headers['webhook-timestamp'];
  if (!(Math.abs(Date.now() / 1000 - timestamp) < 300))
    throw new Error('The timestamp is too old, or missing.');
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  const expected = createHmac('sha256', key)
    .update(\`\${headers['webhook-id']}.\${timestamp}.\`)
    .update(body)
    .digest();
  const isSigned = String(headers['webhook-signature'])
    .split(' ')
    .map((signature) => Buffer.from(signature.replace('v1,', ''), 'base64'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
  if (!isSigned) throw new Error('The signature does not match.');
}`;

export function VerifySample() {
  return (
    <details class="more-fields">
      <summary>Verify signatures in your code</summary>
      <p>
        Requests follow <a href="https://www.standardwebhooks.com/">Standard Webhooks</a>, which has
        libraries for many languages. In Node.js, this function is enough:
      </p>
      <Code isRaw label="verify.mjs" text={VERIFY} />
      <p>
        Answer with a status of 2xx as soon as you have stored the message. Messages can arrive more
        than once: ignore a <code>webhook-id</code> you have already stored.
      </p>
    </details>
  );
}
