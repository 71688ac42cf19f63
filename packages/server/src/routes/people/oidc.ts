import { GatewayError, isGatewayError } from '@gateway/core/errors';
import type { OidcProvider } from '../../auth/oidc/provider.js';
import {
  namedObject,
  openRoute,
  string,
  Type,
  type OpenCall,
  type Route,
} from '../../api/vocabulary.js';
import { admitPerson } from './admit-person.js';
import { requireNative, Session, startSession } from './session.js';

/**
 * The dashboard redirects the browser to the provider and submits the query string with which the
 * browser returns.
 */
export const oidcRoutes: readonly Route[] = [
  openRoute(
    'POST /auth/oidc/start',
    'Starts a sign-in with the OpenID Connect provider: returns the URL to send the browser to, and sets a cookie that the callback requires.',
    { data: namedObject('StartedSignIn', { url: string() }), name: 'startOidc' },
    async (call) => {
      const { url, pending, expiresAt } = await providerOf(call).begin();
      return {
        message: 'continue at the provider',
        data: { url },
        headers: {
          'set-cookie': call.auth.sessions.signIn.write(call.request, pending, expiresAt),
        },
      };
    },
  ),
  openRoute(
    'POST /auth/oidc/complete',
    "Completes a sign-in with the query of the provider's callback, and sets the session cookie.",
    {
      body: namedObject('CompletedSignIn', {
        query: Type.String({
          maxLength: 16_384,
          description:
            'Query parameters of the callback URL that the provider redirected the browser to.',
        }),
      }),
      data: Session,
      name: 'completeOidc',
    },
    async (call) => {
      const { auth, request } = call;
      const person = await signedInPerson(call);
      const { user, joined, taken } = await admitPerson(call, person);
      const { headers, ...answer } = await startSession(call, user, { method: 'oidc', joined });
      const ended =
        'signed in; the password, sessions and API keys of the account were revoked, because its email address had not been verified';
      return {
        ...answer,
        message: taken ? ended : answer.message,
        headers: { 'set-cookie': [...headers['set-cookie'], auth.sessions.signIn.write(request)] },
      };
    },
  ),
];

function providerOf(call: OpenCall): OidcProvider {
  if (!call.auth.oidc) throw new GatewayError('oidc_off');
  requireNative(call);
  return call.auth.oidc;
}

/** Failures count like wrong passwords, because each costs requests to the provider. */
async function signedInPerson(call: OpenCall<{ query: string }>) {
  const { body, auth, request, addressOf } = call;
  const provider = providerOf(call);
  let problem: unknown;
  const person = await auth.logins.check(
    request,
    { kind: 'oidc', name: addressOf(request), credential: body.query },
    async () => {
      try {
        return await provider.complete(body.query, auth.sessions.signIn.read(request));
      } catch (error) {
        if (!isGatewayError(error, 'oidc_failed')) throw error;
        problem = error;
        return undefined;
      }
    },
  );
  if (!person) throw problem;
  return person;
}
