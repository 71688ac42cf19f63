import { effect, signal } from '@preact/signals';
import { GatewayApiError, type Session } from '@gateway/client';
import { accountApi, refusals, setCsrfToken } from '../api/client.js';
import { forgetResources } from '../api/use-resource.js';
import { isOwnPath, path } from '../router/location.js';
import { newKey } from './new-key.js';

/** The session; null if signed out, undefined until the server answers. */
export const session = signal<Session | null | undefined>(undefined);

export const sessionProblem = signal<Error | undefined>(undefined);

export async function readSession(): Promise<void> {
  try {
    begin(await accountApi().auth.session());
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 401) end();
    else sessionProblem.value = error as Error;
  }
}

/** Rejects with the API's error. */
export async function signIn(email: string, password: string): Promise<void> {
  begin(await accountApi().auth.login({ email, password }));
}

/** Key of the page to return to after signing in at the provider, per tab. */
const LEFT = 'gateway-left';

/** Redirects to the OpenID Connect provider. Rejects with the API's error. */
export async function leaveForProvider(): Promise<void> {
  const { url } = await accountApi().auth.startOidc();
  sessionStorage.setItem(LEFT, path.value + location.search);
  location.assign(url);
}

/**
 * Signs in with the query of the provider's redirect. Returns the page to continue with. Rejects
 * with the API's error.
 */
export async function returnFromProvider(): Promise<string> {
  begin(await accountApi().auth.completeOidc({ query: location.search }));
  const left = sessionStorage.getItem(LEFT) ?? '/';
  sessionStorage.removeItem(LEFT);
  return isOwnPath(left) ? left : '/';
}

export async function signOut(): Promise<void> {
  await accountApi()
    .auth.logout()
    .catch(() => undefined);
  end();
}

/** Starts a new session, for example after an invitation. */
export function begin(begun: Session): void {
  setCsrfToken(begun.csrf_token);
  sessionProblem.value = undefined;
  session.value = begun;
}

function end(): void {
  setCsrfToken(undefined);
  forgetResources();
  newKey.value = undefined;
  session.value = null;
}

/** Shows the sign-in page once the server refuses the session. */
effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});
