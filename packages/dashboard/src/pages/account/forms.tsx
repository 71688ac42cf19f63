import { accountApi } from '../../api/index.js';
import { Form, Panel, TextField, toast, useForm } from '../../components/index.js';
import { readSession, session } from '../../session/session.js';

export function Profile() {
  const user = session.value?.user;
  const form = useForm(
    { first_name: user?.first_name ?? '', last_name: user?.last_name ?? '' },
    async () => {
      await accountApi().users.updateMe({ first_name: first, last_name: last });
      await readSession();
      toast('Name changed.');
    },
  );
  const [first, last] = [form.values.first_name.trim(), form.values.last_name.trim()];
  return (
    <Panel title="Name">
      <Form
        action={form}
        verb="Save name"
        kind="plain"
        isReady={first !== user?.first_name || last !== user.last_name}
      >
        <TextField label="First name" autocomplete="given-name" {...form.text('first_name')} />
        <TextField label="Last name" autocomplete="family-name" {...form.text('last_name')} />
        <p class="muted">
          You sign in with {user?.email}. To change your address, ask an admin to invite the new one
          and remove the old one.
        </p>
      </Form>
    </Panel>
  );
}

const NO_PASSWORD = { current_password: '', password: '' };

export function Password() {
  const form = useForm(NO_PASSWORD, async (values) => {
    await accountApi().users.changePassword(values);
    form.replace(NO_PASSWORD);
    toast('Password changed. Your other sessions have ended.');
  });
  return (
    <Panel title="Password">
      <Form action={form} verb="Change password" kind="plain">
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
          {...form.text('current_password')}
          isRequired
        />
        <TextField
          label="New password"
          hint="At least 12 characters."
          type="password"
          autocomplete="new-password"
          {...form.text('password')}
          isRequired
        />
      </Form>
    </Panel>
  );
}
