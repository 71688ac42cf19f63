import type { Project } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { toast } from '../../components/feedback/toast.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { TextField } from '../../components/form/field.js';
import { navigate } from '../../router/location.js';
import { readProjects } from '../../session/projects.js';

/** Deletes a project once the user has typed its name. */
export function DeleteProject({ project: { uid, name } }: { readonly project: Project }) {
  const [typed, setTyped] = useState('');
  return (
    <ConfirmButton
      label="Delete the project…"
      title={`Delete ${name}?`}
      verb="Delete"
      isReady={typed.trim() === name}
      work={async () => {
        await api().projects.delete(uid);
        toast(`${name} was deleted.`);
        // Must precede the navigation, which opens the last project.
        await readProjects();
        navigate('/', { replace: true });
      }}
    >
      <p>
        Its sources stop, its API keys are revoked, and deliveries that wait are discarded. This
        cannot be undone.
      </p>
      <TextField label={`Type ${name} to delete it`} value={typed} onChange={setTyped} hasFocus />
    </ConfirmButton>
  );
}
