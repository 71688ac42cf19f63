import type { SignInMethods } from '@gateway/client';
import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { Loading, Problem } from '../components/feedback.js';
import { TextField } from '../components/field.js';
import { Form } from '../components/form.js';
import { Button, ButtonLink } from '../components/layout.js';
import { href, navigate } from '../router/location.js';
import { ForgotPassword } from './reset-password.js';
import { leaveForProvider, returnFromProvider, signIn } from '../session/session.js';
import { brandName } from '../session/theme.js';

export function SignIn() {
  const [methods, setMethods] = useState<SignInMethods>();
  useEffect(() => {
    document.title = `Sign in · ${brandName}`;
    accountApi()
      .auth.methods()
      .then(setMethods, () => setMethods({ password: true, password_reset: false, oidc: null }));
  }, []);
  if (!methods) return null;
  return (
    <main class="sign-in">
      <div class="form">
        <span class="brand" aria-hidden="true" />
        <h1>Sign in to {brandName}</h1>
        {methods.oidc && <Provider label={methods.oidc.label} isOnly={!methods.password} />}
        {methods.password && (
          <>
            <Password hasFocus={!methods.oidc} />
            {methods.password_reset && <ForgotPassword />}
            <p class="muted">
              The first user is created by <code>gateway bootstrap</code>, which prints the
              password.
            </p>
          </>
        )}
      </div>
    </main>
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
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const action = useAction(() => signIn(email, password));
  return (
    <Form action={action} verb="Sign in">
      <TextField
        label="Email"
        type="email"
        name="email"
        autocomplete="username"
        value={email}
        onChange={setEmail}
        isRequired
        hasFocus={hasFocus}
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        value={password}
        onChange={setPassword}
        isRequired
      />
    </Form>
  );
}

/** Registered as redirect URI at the OpenID Connect provider. */
export const RETURN_PATH = '/sign-in/callback';

export function SignInReturn() {
  const action = useAction(async () => navigate(await returnFromProvider(), { replace: true }));
  useEffect(() => {
    document.title = `Sign in · ${brandName}`;
    action.run();
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        <span class="brand" aria-hidden="true" />
        <h1>Sign in to {brandName}</h1>
        {action.error ? <Problem error={action.error} /> : <Loading />}
        {action.error && <ButtonLink href={href('/')}>Back to the sign-in page</ButtonLink>}
      </div>
    </main>
  );
}
