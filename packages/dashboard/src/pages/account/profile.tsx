import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { toast } from '../../components/feedback/toast.js';
import { fieldError, TextField } from '../../components/form/field.js';
import { Form } from '../../components/form/form.js';
import { Panel } from '../../components/layout/panel.js';
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
