import { type ClientOptions, GatewayClient } from '@gateway/client';
import { signal } from '@preact/signals';
import { parseExactly } from '../format/exact-json.js';
import { own } from '../format/text.js';
import { projectId, root } from '../router/location.js';

/** Each 401 response means that the session has ended or never existed. */
export const refusals = signal(0);

/** Undefined while the API answers as it should. */
export const outage = signal<{ readonly sentence: string; readonly since: string } | undefined>(
  undefined,
);

const OUTAGES: Readonly<Record<string, string>> = {
  database_away: 'Postgres cannot be reached',
  database_takes_no_writes: 'Postgres accepts no writes',
};

function noteOutage(sentence: string | undefined): void {
  if (outage.value?.sentence !== sentence)
    outage.value = sentence ? { sentence, since: new Date().toISOString() } : undefined;
}

async function outageOf(response: Response): Promise<string | undefined> {
  if (response.status !== 503) return undefined;
  const body = (await response
    .clone()
    .json()
    .catch(() => ({}))) as { readonly code?: string };
  return own(OUTAGES, body.code ?? '');
}

/** Health reports are answered without Postgres. */
function isHealthReport({ url }: Response): boolean {
  return url.endsWith('/health');
}

let csrfToken: string | undefined;

export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

const options: ClientOptions = {
  url: (typeof location === 'undefined' ? 'http://localhost' : location.origin) + root,
  csrfToken: () => csrfToken,
  retries: 1,
  fetch: async (...request: Parameters<typeof fetch>) => {
    try {
      const response = await fetch(...request);
      const sentence = await outageOf(response);
      if (sentence || !isHealthReport(response)) noteOutage(sentence);
      if (response.status === 401) refusals.value++;
      // Parse payloads so that numbers keep their digits.
      response.json = () => response.text().then(parseExactly);
      return response;
    } catch (error) {
      if ((error as Error).name === 'TypeError') noteOutage('The server cannot be reached');
      throw error;
    }
  },
};
let account = new GatewayClient(options);

/** Instead of the session cookie. */
export function setKey(key: string): void {
  account = new GatewayClient({ ...options, key });
}

/** For the API outside projects. */
export function accountApi(): GatewayClient {
  return account;
}

/** By default, for the project shown. */
export function api(id = projectId.value ?? ''): GatewayClient {
  return account.project(id);
}

type Listed = {
  [Name in keyof GatewayClient]: GatewayClient[Name] extends { list: unknown } ? Name : never;
}[keyof GatewayClient];

/** The filters of a list of the project. */
export type ListQuery<Name extends Listed> = NonNullable<
  Parameters<GatewayClient[Name]['list']>[0]
>;

/** Removes undefined, null and `''`, so that the request omits them. */
export function given<Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined | null | ''> } {
  const entries = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return Object.fromEntries(entries) as ReturnType<typeof given<Values>>;
}
