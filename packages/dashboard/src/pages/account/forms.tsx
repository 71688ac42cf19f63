import { useAction, useDraft } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { TextField, textsOf } from '../../components/field.js';
import { Form } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { readSession, session } from '../../session/session.js';

export function Profile() {
  const user = session.value?.user;
  const draft = useDraft({ first: user?.first_name ?? '', last: user?.last_name ?? '' });
  const [first, last] = [draft.values.first.trim(), draft.values.last.trim()];
  const action = useAction(async () => {
    await accountApi().users.updateMe({ first_name: first, last_name: last });
    await readSession();
    toast('Name changed.');
  });
  const text = textsOf(draft, action.error);
  return (
    <Panel title="Name">
      <Form
        action={action}
        verb="Save name"
        kind="plain"
        isReady={first !== user?.first_name || last !== user.last_name}
      >
        <TextField label="First name" autocomplete="given-name" {...text('first', 'first_name')} />
        <TextField label="Last name" autocomplete="family-name" {...text('last', 'last_name')} />
        <p class="muted">
          You sign in with {user?.email}. To change your address, ask an admin to invite the new one
          and remove the old one.
        </p>
      </Form>
    </Panel>
  );
}

const NO_PASSWORD = { current_password: '', password: '' };

/** A new password ends the user's other sessions. */
export function Password() {
  const draft = useDraft(NO_PASSWORD);
  const action = useAction(async () => {
    await accountApi().users.changePassword(draft.values);
    draft.replace(NO_PASSWORD);
    toast('Password changed. Your other sessions have ended.');
  });
  const text = textsOf(draft, action.error);
  return (
    <Panel title="Password">
      <Form action={action} verb="Change password" kind="plain">
        {/* A hidden user name for password managers. */}
        <input
          type="email"
          autocomplete="username"
          value={session.value?.user.email}
          readOnly
          hidden
        />
        <TextField
          label="Current password"
          type="password"
          autocomplete="current-password"
          {...text('current_password')}
          isRequired
        />
        <TextField
          label="New password"
          hint="At least 12 characters."
          type="password"
          autocomplete="new-password"
          {...text('password')}
          isRequired
        />
      </Form>
    </Panel>
  );
}
