import { signal } from '@preact/signals';
import { GatewayClient, type ClientOptions } from '@gateway/client';
import { projectId } from '../router/project-path.js';
import { root } from '../router/location.js';
import { parseExactly } from './exact-json.js';

/** Raised when the server refuses the session: it ended, or never was. */
export const refusals = signal(0);

/** False while the server cannot be reached. */
export const isConnected = signal(true);

let csrfToken: string | undefined;

/** The token that changes are sent with. */
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
      // Payloads are shown with the digits that they have.
      response.json = () => response.text().then(parseExactly);
      return response;
    } catch (error) {
      if ((error as Error).name === 'TypeError') isConnected.value = false;
      throw error;
    }
  },
};
let account = new GatewayClient(options);

/** Sends this key with each request, instead of the cookie of a session. */
export function setKey(key: string): void {
  account = new GatewayClient({ ...options, key });
}

/** The API, for what is not about a project. */
export function accountApi(): GatewayClient {
  return account;
}

/** The API for the shown project, or the given one. */
export function api(id = projectId.value ?? ''): GatewayClient {
  return account.project(id);
}
