import { createHash, createHmac } from 'node:crypto';
import type { RegistrySettings } from './settings.js';

/** Headers of a request to AWS Glue, signed with the access key: Signature Version 4. */
export function glueHeaders(
  { username = '', password = '', region = '' }: RegistrySettings,
  url: URL,
  body: string,
  now = new Date(),
): Record<string, string> {
  const time = now.toISOString().replaceAll(/[:-]|\.\d+/g, '');
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    'content-type': 'application/x-amz-json-1.1',
    host: url.host,
    'x-amz-date': time,
    'x-amz-target': 'AWSGlue.GetSchemaVersion',
  };
  const names = Object.keys(headers).join(';');
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const canonical = ['POST', url.pathname, '', lines.join(''), names, digest(body)].join('\n');
  const scope = `${day}/${region}/glue/aws4_request`;
  const signed = ['AWS4-HMAC-SHA256', time, scope, digest(canonical)].join('\n');
  let key: Buffer | string = `AWS4${password}`;
  for (const part of [day, region, 'glue', 'aws4_request']) key = hmac(key, part);
  const signature = hmac(key, signed).toString('hex');
  const { host: _, ...sent } = headers;
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${username}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex');
const hmac = (key: Buffer | string, text: string) =>
  createHmac('sha256', key).update(text).digest();
