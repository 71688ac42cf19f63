import type { Endpoint } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, given } from '../../api/index.js';
import {
  Button,
  type TableColumns,
  DialogButton,
  FormDialog,
  NewSecret,
  Panel,
  Select,
  Table,
  TextField,
  Time,
  useForm,
} from '../../components/index.js';
import { mayManage } from '../../session/session.js';
import { VerifySample } from './verify.js';

type Secret = Endpoint['secrets'][number];

/** Hours for which the old secrets remain valid. */
const OVERLAPS = [
  ['24', 'In a day'],
  ['1', 'In an hour'],
  ['168', 'In a week'],
  ['720', 'In 30 days'],
  ['0', 'Now'],
] as const;

export function Secrets({ endpoint: { uid, secrets } }: { endpoint: Endpoint }) {
  return (
    <Panel
      title="Secrets"
      actions={
        mayManage() && (
          <DialogButton dialog={(close) => <Rotate endpointId={uid} onClose={close} />}>
            Rotate…
          </DialogButton>
        )
      }
    >
      <p class="muted">
        Every request is signed with each of these secrets, so a receiver can verify it with any of
        them.
      </p>
      <Table label="Secrets" rows={secrets} columns={columns} />
      <VerifySample />
    </Panel>
  );
}

const columns: TableColumns<Secret> = {
  Secret: ({ value }) => <span class="mono">{value}</span>,
  Created: ({ created_at: at }) => <Time at={at} />,
  Status: ({ expires_at: at }) =>
    at ? (
      <>
        Expires <Time at={at} />{' '}
        <span class="muted">
          (<Time at={at} look="relative" />)
        </span>
      </>
    ) : (
      'Active'
    ),
};

function Rotate({ endpointId, onClose }: { endpointId: string; onClose: () => void }) {
  const [rotated, setRotated] = useState<Endpoint>();
  const form = useForm({ hours: '24', secret: '' }, async ({ hours, secret }) => {
    const change = { expiration: Number(hours), ...given({ secret }) };
    setRotated(await api().endpoints.expireSecret(endpointId, change));
  });
  return (
    <FormDialog
      title={rotated ? 'New secret' : 'Rotate secret'}
      verb="Rotate"
      action={form}
      onClose={onClose}
      done={rotated && <Rotated secrets={rotated.secrets} />}
      doneActions={<Button onPress={onClose}>Close</Button>}
    >
      <Select label="Old secret expires" options={OVERLAPS} {...form.text('hours')} />
      <TextField
        label="New secret"
        isMono
        hint="Leave empty to generate one."
        {...form.text('secret')}
      />
    </FormDialog>
  );
}

function Rotated({ secrets }: { secrets: readonly Secret[] }) {
  const shown = secrets.find(({ expires_at: end }) => end === null);
  const end = secrets.findLast(({ expires_at: it }) => it !== null)?.expires_at;
  return (
    <NewSecret what="secret" secret={shown?.value ?? ''}>
      {end ? (
        <p>
          The old secret stays valid until <Time at={end} />; update the receiver before then.
        </p>
      ) : (
        <p>The old secret is no longer valid; update the receiver now.</p>
      )}
    </NewSecret>
  );
}
