import type { Endpoint } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction, useDraft } from '../../api/change.js';
import { api, given } from '../../api/client.js';
import { NewSecret, Table, Time } from '../../components/data.js';
import { fieldError, Select, TextField } from '../../components/field.js';
import { Dialog, FormDialog } from '../../components/form.js';
import { Button, Panel } from '../../components/layout.js';
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

export function Secrets({
  endpoint: { uid, secrets },
  onChange,
}: {
  readonly endpoint: Endpoint;
  readonly onChange: () => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Panel
      title="Secrets"
      actions={mayManage() && <Button onPress={() => setOpen(true)}>Rotate…</Button>}
    >
      <p class="muted">
        Every request is signed with each of these secrets, so a receiver can verify it with any of
        them.
      </p>
      <Table<Secret> label="Secrets" rows={secrets} columns={columns} />
      <VerifySample />
      {isOpen && <Rotate endpointId={uid} onRotated={onChange} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

const columns = [
  { name: 'Secret', cell: ({ value }: Secret) => <span class="mono">{value}</span> },
  { name: 'Created', cell: ({ created_at: at }: Secret) => <Time at={at} /> },
  {
    name: 'Status',
    cell: ({ expires_at: at }: Secret) =>
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
  },
];

function Rotate({
  endpointId,
  onRotated,
  onClose,
}: {
  readonly endpointId: string;
  readonly onRotated: () => void;
  readonly onClose: () => void;
}) {
  const { values, set } = useDraft<{ hours: string; secret: string }>({
    hours: OVERLAPS[0][0],
    secret: '',
  });
  const [rotated, setRotated] = useState<Endpoint>();
  const rotate = useAction(async () => {
    const { hours, secret } = values;
    setRotated(
      await api().endpoints.expireSecret(endpointId, {
        expiration: Number(hours),
        ...given({ secret }),
      }),
    );
    onRotated();
  });
  if (rotated) {
    const shown = rotated.secrets.find(({ expires_at: end }) => end === null);
    const old = rotated.secrets.filter(({ expires_at: end }) => end !== null).at(-1);
    return (
      <Dialog
        title="New secret"
        onClose={onClose}
        actions={<Button onPress={onClose}>Close</Button>}
      >
        <NewSecret what="secret" secret={shown?.value ?? ''}>
          {old?.expires_at ? (
            <p>
              The old secret stays valid until <Time at={old.expires_at} />; update the receiver
              before then.
            </p>
          ) : (
            <p>The old secret is no longer valid; update the receiver now.</p>
          )}
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Rotate secret" verb="Rotate" action={rotate} onClose={onClose}>
      <Select
        label="Old secret expires"
        value={values.hours}
        options={OVERLAPS}
        onChange={set('hours')}
      />
      <TextField
        label="New secret"
        isMono
        hint="Leave empty to generate one."
        value={values.secret}
        onChange={set('secret')}
        error={fieldError(rotate.error, 'secret')}
      />
    </FormDialog>
  );
}
