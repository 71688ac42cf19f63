import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { fieldError, TextField } from '../../components/field.js';
import { Form } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { readSession, session } from '../../session/session.js';

export function Profile() {
  const user = session.value?.user;
  const [first, setFirst] = useState(user?.first_name ?? '');
  const [last, setLast] = useState(user?.last_name ?? '');
  const action = useAction(async () => {
    await accountApi().users.updateMe({ first_name: first.trim(), last_name: last.trim() });
    await readSession();
    toast('Your name was changed.');
  });
  return (
    <Panel title="Name">
      <Form
        action={action}
        verb="Save the name"
        kind="plain"
        isReady={first.trim() !== user?.first_name || last.trim() !== user.last_name}
      >
        <TextField
          label="First name"
          autocomplete="given-name"
          value={first}
          onChange={setFirst}
          error={fieldError(action.error, 'first_name')}
        />
        <TextField
          label="Last name"
          autocomplete="family-name"
          value={last}
          onChange={setLast}
          error={fieldError(action.error, 'last_name')}
        />
        <p class="muted">
          You sign in with {user?.email}. An address is not changed: have an admin invite the new
          one, and remove the old.
        </p>
      </Form>
    </Panel>
  );
}

/** Changes the password, which ends the user's other sessions. */
export function Password() {
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const action = useAction(async () => {
    await accountApi().users.changePassword({ current_password: current, password });
    setCurrent('');
    setPassword('');
    toast('Your password was changed. Your other sessions have ended.');
  });
  return (
    <Panel title="Password">
      <Form action={action} verb="Change the password" kind="plain">
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
          value={current}
          onChange={setCurrent}
          error={fieldError(action.error, 'current_password')}
          isRequired
        />
        <TextField
          label="New password"
          hint="At least 12 characters."
          type="password"
          autocomplete="new-password"
          value={password}
          onChange={setPassword}
          error={fieldError(action.error, 'password')}
          isRequired
        />
      </Form>
    </Panel>
  );
}
