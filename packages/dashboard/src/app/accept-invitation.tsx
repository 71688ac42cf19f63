import type { OpenInvitation, SignInMethods } from '@gateway/client';
import { accountApi, useResource } from '../api/index.js';
import { Button, Form, Loaded, TextField, useForm } from '../components/index.js';
import { navigate } from '../router/location.js';
import { invitationLink } from '../session/link-token.js';
import { begin, session } from '../session/session.js';
import { brandName } from '../session/theme.js';
import { Provider } from './sign-in.js';
import { SignedOut } from './signed-out.js';

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
        hint="Your password or, for a new account, at least 12 characters."
        type="password"
        autocomplete="new-password"
        {...form.text('password')}
        isRequired
      />
    </Form>
  );
}
