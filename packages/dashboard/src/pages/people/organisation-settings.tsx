import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { toast } from '../../components/feedback/toast.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { fieldError, TextField } from '../../components/form/field.js';
import { Form } from '../../components/form/form.js';
import { Panel } from '../../components/layout/panel.js';
import { setQuery } from '../../router/location.js';
import { may } from '../../session/access.js';
import { readSession } from '../../session/session.js';
import type { ShownOrganisation } from './organisation.js';

/** Renames the organisation, or creates another. */
export function OrganisationSettings({
  organisation: { uid, name: known, role },
}: {
  readonly organisation: ShownOrganisation;
}) {
  const [name, setName] = useState(known);
  const action = useAction(async () => {
    await accountApi().organisations.update(uid, { name: name.trim() });
    await readSession();
    toast('The organisation was renamed.');
  });
  return (
    <Panel title="Organisation" actions={<NewOrganisation />}>
      {may('admin', role) ? (
        <Form action={action} verb="Rename" kind="plain" isReady={name.trim() !== known}>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            error={fieldError(action.error, 'name')}
            isRequired
          />
        </Form>
      ) : (
        <p>
          {known}: your role in it is {role}.
        </p>
      )}
    </Panel>
  );
}

function NewOrganisation() {
  const [name, setName] = useState('');
  return (
    <ConfirmButton
      label="New organisation…"
      title="New organisation"
      verb="Create"
      kind="main"
      isReady={name.trim() !== ''}
      work={async () => {
        const { uid } = await accountApi().organisations.create({ name: name.trim() });
        await readSession();
        setQuery({ organisation: uid });
        toast('The organisation was created; you own it.');
      }}
    >
      <p>An organisation has its own people, projects and audit log. You become its owner.</p>
      <TextField label="Name" value={name} onChange={setName} isRequired hasFocus />
    </ConfirmButton>
  );
}
