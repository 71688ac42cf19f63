import type { CreateNotificationChannel, NotificationChannel } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction, useDraft } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useList, type List } from '../../api/read.js';
import { Badge, Paged, Table, Time, type TableColumn } from '../../components/data.js';
import { Problem, toast } from '../../components/feedback.js';
import { Select, TextField, textsOf } from '../../components/field.js';
import { ConfirmButton, FormDialog } from '../../components/form.js';
import { Button, Panel } from '../../components/layout.js';
import { may } from '../../session/session.js';

type Type = CreateNotificationChannel['type'];

/** The name of each type, and the labels of its settings. */
const TYPES: Readonly<Record<Type, readonly [name: string, settings: Record<string, string>]>> = {
  slack: ['Slack', { url: 'Incoming webhook URL' }],
  teams: ['Microsoft Teams', { url: 'Workflow URL' }],
  pagerduty: ['PagerDuty', { routing_key: 'Integration key', api_url: 'API URL (optional)' }],
  opsgenie: ['Opsgenie', { api_key: 'API key', api_url: 'API URL (optional)' }],
  webhook: ['Webhook', { url: 'URL', secret: 'Signing secret (optional)' }],
  events: ['Events of this project', {}],
};
const LIVE_MS = 3_000;
const CHOICES = (Object.keys(TYPES) as Type[]).map((type) => [type, TYPES[type][0]] as const);

/** The channels of the project, to which its notifications are sent beside email. */
export function NotificationChannels() {
  const [isNew, setNew] = useState(false);
  const list = useList<NotificationChannel>(
    'notification channels',
    (page, signal) => api().notificationChannels.list(page, { signal }).page(),
    { everyMs: LIVE_MS },
  );
  const mayChange = may('member');
  const columns: readonly TableColumn<NotificationChannel>[] = [
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Type', cell: ({ type }) => TYPES[type][0] },
    { name: 'Last request', cell: (row) => <Outcome row={row} /> },
    ...(mayChange
      ? [
          {
            name: 'Actions',
            cell: (row: NotificationChannel) => <Actions row={row} list={list} />,
          },
        ]
      : []),
  ];
  return (
    <Panel title="Notification channels">
      <p class="muted">
        Failing endpoints and sources are reported to these channels, and by email if it is set up.
        An events channel reports them to endpoints of this project.
      </p>
      <Paged list={list} lines={2}>
        {(rows) =>
          rows.length > 0 && <Table label="Notification channels" columns={columns} rows={rows} />
        }
      </Paged>
      {mayChange && (
        <div>
          <Button onPress={() => setNew(true)}>Add channel…</Button>
        </div>
      )}
      {isNew && <NewChannel list={list} onClose={() => setNew(false)} />}
    </Panel>
  );
}

function Outcome({ row }: { row: NotificationChannel }) {
  if (!row.enabled) return <Badge status="disabled" />;
  if (row.last_error !== null) return <Badge status="failed" tone="bad" label={row.last_error} />;
  return row.last_sent_at === null ? <>never</> : <Time at={row.last_sent_at} look="relative" />;
}

function Actions({ row, list }: { row: NotificationChannel; list: List<NotificationChannel> }) {
  const testing = useAction(async () => {
    await api().notificationChannels.test(row.uid);
    toast('Test sent. The result appears here within ten seconds.');
    list.refresh();
  });
  return (
    <span class="row-actions">
      <Button
        label={`Send test to ${row.name}`}
        isRunning={testing.isRunning}
        onPress={testing.run}
      >
        Send test
      </Button>
      <ConfirmButton
        label="Delete…"
        spoken={`Delete the channel ${row.name}`}
        title={`Delete ${row.name}?`}
        verb="Delete"
        work={async () => {
          await api().notificationChannels.delete(row.uid);
          list.refresh();
        }}
      >
        <p>Notifications are no longer sent to this channel.</p>
      </ConfirmButton>
      {testing.error && <Problem error={testing.error} />}
    </span>
  );
}

function NewChannel({ list, onClose }: { list: List<NotificationChannel>; onClose: () => void }) {
  const draft = useDraft({
    name: '',
    type: 'slack',
    ...{ url: '', secret: '', routing_key: '', api_key: '', api_url: '' },
  });
  const { name, type, ...values } = draft.values;
  const labels = TYPES[type as Type][1];
  const names = Object.keys(labels) as (keyof typeof values)[];
  const action = useAction(async () => {
    const given = names.flatMap((it) => (values[it].trim() ? [[it, values[it].trim()]] : []));
    await api().notificationChannels.create({
      name: name.trim(),
      type: type as Type,
      settings: Object.fromEntries(given) as CreateNotificationChannel['settings'],
    });
    list.refresh();
    onClose();
  });
  const text = textsOf(draft, action.error);
  return (
    <FormDialog
      title="Add notification channel"
      verb="Add channel"
      action={action}
      onClose={onClose}
    >
      <TextField label="Name" {...text('name')} isRequired hasFocus />
      <Select
        label="Type"
        options={CHOICES}
        hint={type === 'events' && 'Endpoints that subscribe to gateway.* receive signed events.'}
        {...text('type')}
      />
      {names.map((it) => (
        <TextField key={it} label={labels[it]!} isMono {...text(it, `settings.${it}`)} />
      ))}
    </FormDialog>
  );
}
