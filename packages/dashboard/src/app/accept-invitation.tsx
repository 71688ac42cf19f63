import type { OpenInvitation, SignInMethods } from '@gateway/client';
import { useEffect } from 'preact/hooks';
import { useAction, useDraft } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { useResource } from '../api/read.js';
import { Loaded } from '../components/feedback.js';
import { TextField, textsOf } from '../components/field.js';
import { Form } from '../components/form.js';
import { Button } from '../components/layout.js';
import { navigate } from '../router/location.js';
import { invitationLink } from '../session/link-token.js';
import { begin, session } from '../session/session.js';
import { brandName } from '../session/theme.js';
import { Provider } from './sign-in.js';

export function AcceptInvitation({ token }: { token: string }) {
  const invitation = useResource(`invitation ${token}`, async (signal) => {
    const [it, methods] = await Promise.all([
      accountApi().auth.showInvitation({ token }, { signal }),
      accountApi().auth.methods({ signal }),
    ]);
    return { it, methods };
  });
  useEffect(() => {
    document.title = `Invitation · ${brandName}`;
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        <span class="brand" aria-hidden="true" />
        <h1>Join {brandName}</h1>
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
      </div>
    </main>
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
  const draft = useDraft({ first: '', last: '', password: '' });
  const action = useAction(async () => {
    const { first, last, password } = draft.values;
    const names = { first_name: first.trim(), last_name: last.trim() };
    const begun = await accountApi().auth.acceptInvitation({ token, password, ...names });
    invitationLink.leave();
    begin(begun);
    navigate('/', { replace: true });
  });
  const text = textsOf(draft, action.error);
  return (
    <Form action={action} verb="Accept and sign in">
      <div class="field">
        <label for="invited-email">Email</label>
        <input id="invited-email" type="email" autocomplete="username" value={it.email} readOnly />
      </div>
      <TextField label="First name" autocomplete="given-name" {...text('first')} hasFocus />
      <TextField label="Last name" autocomplete="family-name" {...text('last')} />
      <TextField
        label="Password"
        hint="The password of your account. If you have none, at least 12 characters for a new one."
        type="password"
        autocomplete="new-password"
        {...text('password')}
        isRequired
      />
    </Form>
  );
}
