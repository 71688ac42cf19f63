import type { OpenInvitation, SignInMethods } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { accountApi, useAction, useResource } from '../api/index.js';
import {
  Button,
  ButtonLink,
  DialogButton,
  Form,
  FormDialog,
  Loaded,
  Loading,
  Problem,
  TextField,
  toast,
  useForm,
} from '../components/index.js';
import { href, navigate } from '../router/location.js';
import { invitationLink, resetLink } from '../session/link-token.js';
import {
  begin,
  leaveForProvider,
  returnFromProvider,
  session,
  signIn,
} from '../session/session.js';
import { brandName } from '../session/theme.js';

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

function Provider({ label, isOnly }: { label: string; isOnly: boolean }) {
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

function ForgotPassword() {
  return (
    <DialogButton kind="quiet" dialog={(close) => <ResetRequest onClose={close} />}>
      Forgot your password?
    </DialogButton>
  );
}

function ResetRequest({ onClose }: { onClose: () => void }) {
  const form = useForm({ email: '' }, async ({ email }) => {
    await accountApi().auth.forgotPassword({ email: email.trim() });
    toast('If an account uses this address, a reset link has been sent to it.');
    onClose();
  });
  return (
    <FormDialog title="Reset your password" verb="Send reset link" action={form} onClose={onClose}>
      <TextField
        label="Email"
        hint="The reset link is valid for one hour."
        type="email"
        autocomplete="username"
        {...form.text('email')}
        isRequired
        hasFocus
      />
    </FormDialog>
  );
}

export function ResetPassword({ token }: { token: string }) {
  const form = useForm({ password: '' }, async ({ password }) => {
    await accountApi().auth.resetPassword({ token, password });
    // The user's sessions have ended, also in this browser.
    session.value = null;
    resetLink.leave();
    toast('Password changed. Sign in with your new password.');
  });
  return (
    <SignedOut title="Choose a new password">
      <Form action={form} verb="Change password">
        <TextField
          label="New password"
          hint="At least 12 characters. This ends all your sessions."
          type="password"
          autocomplete="new-password"
          {...form.text('password')}
          isRequired
          hasFocus
        />
      </Form>
      <Button kind="quiet" onPress={resetLink.leave}>
        Sign in instead
      </Button>
    </SignedOut>
  );
}

export function AcceptInvitation({ token }: { token: string }) {
  const invitation = useResource(`invitation ${token}`, async (options) => {
    const [it, methods] = await Promise.all([
      accountApi().auth.showInvitation({ token }, options),
      accountApi().auth.methods(options),
    ]);
    return { it, methods };
  });
  return (
    <SignedOut title="Invitation" heading={`Join ${brandName}`} hasBrand>
      <Loaded resource={invitation}>{(data) => <Ways token={token} {...data} />}</Loaded>
      {session.value && (
        <p class="muted">
          You are signed in as {session.value.user.email}.{' '}
          <Button kind="quiet" onPress={invitationLink.leave}>
            Ignore invitation
          </Button>
        </p>
      )}
      {session.value === null && invitation.error && (
        <Button onPress={invitationLink.leave}>Sign in instead</Button>
      )}
    </SignedOut>
  );
}

/** Through the provider, which knows the email address, or with a password. */
function Ways({
  token,
  it,
  methods: { oidc, password },
}: {
  token: string;
  it: OpenInvitation;
  methods: SignInMethods;
}) {
  return (
    <>
      <p>
        You are invited to join <strong>{it.organisation}</strong> as {it.role}.
      </p>
      {oidc && (
        <>
          <p class="muted">Sign in as {it.email} to accept the invitation.</p>
          <Provider label={oidc.label} isOnly={!password} />
        </>
      )}
      {password && <Accept token={token} invitation={it} />}
    </>
  );
}

function Accept({ token, invitation: it }: { token: string; invitation: OpenInvitation }) {
  const form = useForm({ first: '', last: '', password: '' }, async (values) => {
    const { first, last, password } = values;
    const names = { first_name: first.trim(), last_name: last.trim() };
    const begun = await accountApi().auth.acceptInvitation({ token, password, ...names });
    invitationLink.leave();
    begin(begun);
    navigate('/', { replace: true });
  });
  return (
    <Form action={form} verb="Accept and sign in">
      <div class="field">
        <label for="invited-email">Email</label>
        <input id="invited-email" type="email" autocomplete="username" value={it.email} readOnly />
      </div>
      <TextField label="First name" autocomplete="given-name" {...form.text('first')} hasFocus />
      <TextField label="Last name" autocomplete="family-name" {...form.text('last')} />
      <TextField
        label="Password"
        hint="The password of your account. If you have none, at least 12 characters for a new one."
        type="password"
        autocomplete="new-password"
        {...form.text('password')}
        isRequired
      />
    </Form>
  );
}

/** The frame of pages without a session. `title` is also the title of the window. */
function SignedOut({
  title,
  heading = title,
  hasBrand = false,
  children,
}: {
  title: string;
  heading?: string;
  hasBrand?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · ${brandName}`;
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        {hasBrand && <span class="brand" aria-hidden="true" />}
        <h1>{heading}</h1>
        {children}
      </div>
    </main>
  );
}
