import { signal } from '@preact/signals';
import { GatewayClient, type ClientOptions } from '@gateway/client';
import { projectId } from '../router/project-path.js';
import { root } from '../router/location.js';
import { parseExactly } from './exact-json.js';

/** Incremented when the server answers 401: the session has ended or never existed. */
export const refusals = signal(0);

export const isConnected = signal(true);

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
      isConnected.value = true;
      if (response.status === 401) refusals.value++;
      // Keeps the exact digits of numbers in payloads.
      response.json = () => response.text().then(parseExactly);
      return response;
    } catch (error) {
      if ((error as Error).name === 'TypeError') isConnected.value = false;
      throw error;
    }
  },
};
let account = new GatewayClient(options);

/** Authenticates requests with this key instead of the session cookie. */
export function setKey(key: string): void {
  account = new GatewayClient({ ...options, key });
}

/** The API outside projects. */
export function accountApi(): GatewayClient {
  return account;
}

/** The API of the shown project, or of the given one. */
export function api(id = projectId.value ?? ''): GatewayClient {
  return account.project(id);
}
