import http from 'node:http';
import https from 'node:https';
import { ErrorChain, explainNetwork, PluginError } from '../errors.js';
import { glueHeaders } from './glue.js';
import type { RegistrySettings } from './settings.js';

const ANSWER_BYTES = 4 * 1024 * 1024;

export interface RegistryAnswer {
  readonly status: number;
  readonly text: string;
}

export interface RegistryRequest {
  readonly path: string;
  /** Posted, to AWS Glue. */
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * Sends a request to a registry.
 * @throws `PluginError` if it does not answer, or refuses the credentials
 */
export async function askRegistry(
  settings: RegistrySettings,
  { path, body, signal }: RegistryRequest,
): Promise<RegistryAnswer> {
  const { url: base, ca, client_cert: cert, client_key: key, framing } = settings;
  const url = parsed(`${base.replace(/\/+$/, '')}${path}`);
  const place = `schema registry at ${url.host}`;
  const options: https.RequestOptions = {
    method: body === undefined ? 'GET' : 'POST',
    headers:
      framing === 'glue'
        ? glueHeaders(settings, url, body ?? '')
        : {
            accept: 'application/vnd.schemaregistry.v1+json, application/json, */*',
            ...credentials(settings),
          },
    signal,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
  };
  const answer = await answerOf(url, options, body).catch((error: unknown) => {
    throw explained(error, place);
  });
  if (answer.status !== 401 && answer.status !== 403) return answer;
  throw new PluginError(`The ${place} refuses the credentials (${answer.status}).`, {
    fix: 'Correct registry.username and registry.password, or registry.token, and what they may read.',
    said: answer.text,
  });
}

function parsed(text: string): URL {
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text);
  throw new PluginError('registry.url is not an http or https URL.', {
    fix: 'Give registry.url as in https://registry.example.com.',
  });
}

function credentials({ username, password = '', token }: RegistrySettings): Record<string, string> {
  if (token) return { authorization: `Bearer ${token}` };
  if (username === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

function answerOf(
  url: URL,
  options: https.RequestOptions,
  body: string | undefined,
): Promise<RegistryAnswer> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, options, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES)
          response.destroy(new Error(`The answer has more than ${ANSWER_BYTES} bytes.`));
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

function explained(error: unknown, place: string): PluginError {
  const fixes = {
    wrongHost: 'Use the host name of its certificate in registry.url.',
    expired: 'Renew the certificate of the registry.',
    untrusted: 'Give the certificate that signed it in registry.ca.',
    noTls: 'Use http:// in registry.url, or the port with TLS.',
    unresolved: 'Correct the host name in registry.url.',
    refused: 'Correct the port in registry.url, or start the registry.',
    silent: 'Check registry.url, and that this machine can reach it.',
  };
  const authority = 'an authority that this machine trusts';
  const chain = new ErrorChain(error);
  return (
    explainNetwork(chain, { place: `The ${place}`, authority, fixes }) ??
    new PluginError(`The ${place} cannot be read.`, {
      fix: 'Check registry.url, and the log of the registry.',
      cause: error,
      said: chain.messages,
    })
  );
}
