import { effect, signal } from '@preact/signals';
import { GatewayApiError } from '@gateway/client';
import { refusals, setCsrfToken } from '../api/client.js';
import { forgetResources } from '../api/use-resource.js';
import { root } from '../router/location.js';

export interface User {
  readonly uid: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
}

interface Session {
  readonly user: User;
  readonly organisations: readonly { readonly uid: string; readonly name: string; readonly role: string }[];
  readonly csrf_token: string;
}

/** Who is signed in; null for nobody, undefined before the server has answered. */
export const session = signal<Session | null | undefined>(undefined);

/** Why the server could not say who is signed in. */
export const sessionProblem = signal<Error | undefined>(undefined);

async function call<Data>(method: 'GET' | 'POST', path: string, body?: object): Promise<Data> {
  const response = await fetch(`${root}/api/v1/auth/${path}`, {
    method,
    credentials: 'same-origin',
    headers: {
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(session.value ? { 'x-csrf-token': session.value.csrf_token } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = (await response.json()) as { data: Data } & ConstructorParameters<typeof GatewayApiError>[1];
  if (!response.ok) throw new GatewayApiError(response.status, answer);
  return answer.data;
}

/** Asks the server who is signed in. */
export async function readSession(): Promise<void> {
  try {
    begin(await call<Session>('GET', 'session'));
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 401) end();
    else sessionProblem.value = error as Error;
  }
}

/** Signs in. Rejects with the error of the API. */
export async function signIn(email: string, password: string): Promise<void> {
  begin(await call<Session>('POST', 'login', { email, password }));
}

/** Signs out, here and on the server. */
export async function signOut(): Promise<void> {
  await call('POST', 'logout').catch(() => undefined);
  end();
}

function begin(begun: Session): void {
  setCsrfToken(begun.csrf_token);
  sessionProblem.value = undefined;
  session.value = begun;
}

function end(): void {
  setCsrfToken(undefined);
  forgetResources();
  session.value = null;
}

/** Shows the sign-in page when the server refuses the session. */
effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});
