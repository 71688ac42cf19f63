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

/** The hours for which the old secrets remain valid, with labels. */
const OVERLAPS = [
  ['24', 'for a day'],
  ['1', 'for an hour'],
  ['168', 'for a week'],
  ['720', 'for 30 days'],
  ['0', 'no longer: they end now'],
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
        Every request is signed with each of them, so a receiver that knows one of them can verify
        it.
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
    name: 'Signs until',
    cell: ({ expires_at: at }: Secret) =>
      at ? (
        <>
          <Time at={at} />{' '}
          <span class="muted">
            (<Time at={at} look="relative" />)
          </span>
        </>
      ) : (
        'it is rotated'
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
        title="The new secret"
        onClose={onClose}
        actions={<Button onPress={onClose}>Close</Button>}
      >
        <NewSecret what="secret" secret={shown?.value ?? ''}>
          {old?.expires_at ? (
            <p>
              The old one signs until <Time at={old.expires_at} />: give the receiver the new one
              before.
            </p>
          ) : (
            <p>The old one does not sign any more: give the receiver the new one now.</p>
          )}
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Rotate the secret" verb="Rotate" action={rotate} onClose={onClose}>
      <Select
        label="The present secret signs"
        value={values.hours}
        options={OVERLAPS}
        onChange={set('hours')}
      />
      <TextField
        label="New secret"
        isMono
        hint="Leave it empty to have one made."
        value={values.secret}
        onChange={set('secret')}
        error={fieldError(rotate.error, 'secret')}
      />
    </FormDialog>
  );
}
