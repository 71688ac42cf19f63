import { effect, signal } from '@preact/signals';
import { GatewayApiError, type Session } from '@gateway/client';
import { accountApi, refusals, setCsrfToken } from '../api/client.js';
import { forgetResources } from '../api/use-resource.js';
import { isOwnPath, path } from '../router/location.js';
import { newKey } from './new-key.js';

/** Who is signed in; null for nobody, undefined before the server has answered. */
export const session = signal<Session | null | undefined>(undefined);

/** Why the server could not say who is signed in. */
export const sessionProblem = signal<Error | undefined>(undefined);

/** Asks the server who is signed in. */
export async function readSession(): Promise<void> {
  try {
    begin(await accountApi().auth.session());
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 401) end();
    else sessionProblem.value = error as Error;
  }
}

/** Signs in. Rejects with the error of the API. */
export async function signIn(email: string, password: string): Promise<void> {
  begin(await accountApi().auth.login({ email, password }));
}

/** Where the browser was before it left for the provider, in this tab. */
const LEFT = 'gateway-left';

/** Leaves for the OpenID Connect provider. Rejects with the error of the API. */
export async function leaveForProvider(): Promise<void> {
  const { url } = await accountApi().auth.startOidc();
  sessionStorage.setItem(LEFT, path.value + location.search);
  location.assign(url);
}

/** Signs in with what the provider has sent the browser back with. Returns the page that was left. Rejects with the error of the API. */
export async function returnFromProvider(): Promise<string> {
  begin(await accountApi().auth.completeOidc({ query: location.search }));
  const left = sessionStorage.getItem(LEFT) ?? '/';
  sessionStorage.removeItem(LEFT);
  return isOwnPath(left) ? left : '/';
}

/** Signs out, here and on the server. */
export async function signOut(): Promise<void> {
  await accountApi()
    .auth.logout()
    .catch(() => undefined);
  end();
}

/** Shows the dashboard to the user of a session that has begun: after an invitation too. */
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

/** Shows the sign-in page when the server refuses the session. */
effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});
