import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { toast } from '../../components/feedback/toast.js';
import { fieldError, TextField } from '../../components/form/field.js';
import { Form } from '../../components/form/form.js';
import { Panel } from '../../components/layout/panel.js';
import { session } from '../../session/session.js';

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
