import type { CreateNotificationChannel, NotificationChannel } from '@gateway/client';
import { api, type List, useAction, useList } from '../../api/index.js';
import {
  Badge,
  Button,
  type TableColumns,
  ConfirmButton,
  DialogButton,
  FormDialog,
  Paged,
  Panel,
  Problem,
  Select,
  Table,
  TextField,
  Time,
  toast,
  useForm,
} from '../../components/index.js';
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

export function NotificationChannels() {
  const list = useList<NotificationChannel>(
    'notification channels',
    (page, options) => api().notificationChannels.list(page, options),
    LIVE_MS,
  );
  const mayChange = may('member');
  const columns: TableColumns<NotificationChannel> = {
    Name: ({ name }) => name,
    Type: ({ type }) => TYPES[type][0],
    'Last request': (row) => <Outcome row={row} />,
    Actions: mayChange && ((row) => <Actions row={row} list={list} />),
  };
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
          <DialogButton dialog={(close) => <NewChannel list={list} onClose={close} />}>
            Add channel…
          </DialogButton>
        </div>
      )}
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
        verb="Delete"
        title={`Delete ${row.name}?`}
        what={`the channel ${row.name}`}
        isRow
        work={() => api().notificationChannels.delete(row.uid)}
        onDone={list.refresh}
      >
        <p>Notifications are no longer sent to this channel.</p>
      </ConfirmButton>
      {testing.error && <Problem error={testing.error} />}
    </span>
  );
}

function NewChannel({ list, onClose }: { list: List<NotificationChannel>; onClose: () => void }) {
  const initial = {
    ...{ name: '', type: 'slack' as Type },
    ...{ url: '', secret: '', routing_key: '', api_key: '', api_url: '' },
  };
  const form = useForm(initial, async ({ name, type, ...values }) => {
    const given = names.flatMap((it) => (values[it].trim() ? [[it, values[it].trim()]] : []));
    await api().notificationChannels.create({
      name: name.trim(),
      type,
      settings: Object.fromEntries(given) as CreateNotificationChannel['settings'],
    });
    list.refresh();
    onClose();
  });
  const { text } = form;
  const { type } = form.values;
  const labels = TYPES[type][1];
  const names = Object.keys(labels) as Exclude<keyof typeof initial, 'name' | 'type'>[];
  return (
    <FormDialog title="Add notification channel" verb="Add channel" action={form} onClose={onClose}>
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
