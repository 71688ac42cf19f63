import { effect, signal } from '@preact/signals';
import { GatewayApiError } from '@gateway/client';
import { accountApi, refusals, setCsrfToken, setKey } from '../api/client.js';
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
    const isKnown = error instanceof GatewayApiError && (error.status === 401 || error.status === 404);
    if (isKnown) end();
    else sessionProblem.value = error as Error;
  }
}

/** Signs in. Rejects with the error of the API. */
export async function signIn(email: string, password: string): Promise<void> {
  await call('POST', 'login', { email, password });
  begin(await call<Session>('GET', 'session'));
}

/** Signs in with a personal key, which is kept in memory alone. */
export async function signInWithKey(key: string): Promise<void> {
  setKey(key);
  const { content } = await accountApi().organisations.list();
  const organisations = content.map(({ uid, name }) => ({ uid, name, role: '' }));
  begin({ user: { uid: '', email: 'API key', first_name: 'API', last_name: 'key' }, organisations, csrf_token: '' });
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
  setKey(undefined);
  forgetResources();
  session.value = null;
}

/** Shows the sign-in page when the server refuses the session. */
effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});
