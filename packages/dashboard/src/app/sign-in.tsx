import type { SignInMethods } from '@gateway/client';
import { useEffect, useState } from 'preact/hooks';
import { accountApi, useAction } from '../api/index.js';
import {
  Button,
  ButtonLink,
  Form,
  Loading,
  Problem,
  TextField,
  useForm,
} from '../components/index.js';
import { href, navigate } from '../router/location.js';
import { leaveForProvider, returnFromProvider, signIn } from '../session/session.js';
import { brandName } from '../session/theme.js';
import { ForgotPassword } from './reset-password.js';
import { SignedOut } from './signed-out.js';

export function SignIn() {
  const [methods, setMethods] = useState<SignInMethods>();
  useEffect(() => {
    accountApi()
      .auth.methods()
      .then(setMethods, () => setMethods({ password: true, password_reset: false, oidc: null }));
  }, []);
  if (!methods) return null;
  return (
    <SignedOut title="Sign in" heading={`Sign in to ${brandName}`} hasBrand>
      {methods.oidc && <Provider label={methods.oidc.label} isOnly={!methods.password} />}
      {methods.password && (
        <>
          <Password hasFocus={!methods.oidc} />
          {methods.password_reset && <ForgotPassword />}
          <p class="muted">
            The first user is created by <code>gateway bootstrap</code>, which prints the password.
          </p>
        </>
      )}
    </SignedOut>
  );
}

export function Provider({ label, isOnly }: { label: string; isOnly: boolean }) {
  const action = useAction(leaveForProvider);
  return (
    <>
      {action.error && <Problem error={action.error} />}
      <Button kind={isOnly ? 'main' : 'plain'} isRunning={action.isRunning} onPress={action.run}>
        Sign in with {label}
      </Button>
    </>
  );
}

function Password({ hasFocus }: { hasFocus: boolean }) {
  const form = useForm({ email: '', password: '' }, ({ email, password }) =>
    signIn(email, password),
  );
  return (
    <Form action={form} verb="Sign in">
      <TextField
        label="Email"
        type="email"
        name="email"
        autocomplete="username"
        {...form.text('email')}
        isRequired
        hasFocus={hasFocus}
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        {...form.text('password')}
        isRequired
      />
    </Form>
  );
}

/** Registered as redirect URI at the OpenID Connect provider. */
export const RETURN_PATH = '/sign-in/callback';

export function SignInReturn() {
  const action = useAction(async () => navigate(await returnFromProvider(), { replace: true }));
  useEffect(() => action.run(), []);
  return (
    <SignedOut title="Sign in" heading={`Sign in to ${brandName}`} hasBrand>
      {action.error ? <Problem error={action.error} /> : <Loading />}
      {action.error && <ButtonLink href={href('/')}>Back to the sign-in page</ButtonLink>}
    </SignedOut>
  );
}
