import type { InstanceFeatureFlag, InstanceLicense, InstancePlugin } from '@gateway/client';
import { accountApi } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Facts, FullTime, Table, type TableColumn } from '../../components/data.js';
import { Loaded } from '../../components/feedback.js';
import { Panel } from '../../components/layout.js';
import { capital } from '../../format/text.js';

type Plugin = InstancePlugin & { readonly uid: string };
type Flag = InstanceFeatureFlag & { readonly uid: string };

/** Plugins, feature flags and licence entitlements, and why some are not active. */
export function Extensions() {
  const all = useResource('instance extensions', async (signal) => {
    const { instance } = accountApi();
    const [plugins, flags, licence] = await Promise.all([
      instance.listPlugins({ signal }),
      instance.listFeatureFlags({ signal }),
      instance.getLicense({ signal }),
    ]);
    return { plugins: plugins.content, flags: flags.content, licence };
  });
  return (
    <Loaded resource={all}>
      {({ plugins, flags, licence }) => (
        <>
          <LicencePanel licence={licence} />
          <Panel title="Plugins">
            <Table
              label="Plugins"
              columns={pluginColumns}
              rows={plugins.map((it) => ({ ...it, uid: `${it.kind} ${it.name}` }))}
            />
          </Panel>
          <Panel title="Feature flags">
            {flags.length === 0 ? (
              <p class="muted">No installed plugin declares a feature flag.</p>
            ) : (
              <Table
                label="Feature flags"
                columns={flagColumns}
                rows={flags.map((it) => ({ ...it, uid: it.name }))}
              />
            )}
          </Panel>
        </>
      )}
    </Loaded>
  );
}

const pluginColumns: readonly TableColumn<Plugin>[] = [
  { name: 'Plugin', cell: ({ name, kind }) => `${name} (${kind})` },
  {
    name: 'State',
    cell: ({ state }) => <Badge status={state} tone={state === 'active' ? 'ok' : 'plain'} />,
  },
  {
    name: 'Reason',
    cell: ({ reason, fix }) =>
      reason && (
        <>
          {capital(reason)} {fix && <span class="muted">{capital(fix)}</span>}
        </>
      ),
  },
  { name: 'Version', cell: ({ version }) => version },
  { name: 'From', cell: ({ from }) => from },
];

const flagColumns: readonly TableColumn<Flag>[] = [
  { name: 'Flag', cell: ({ name }) => <code>{name}</code> },
  {
    name: 'State',
    cell: ({ enabled }) => (
      <Badge status={enabled ? 'on' : 'off'} tone={enabled ? 'ok' : 'plain'} />
    ),
  },
  { name: 'Description', cell: ({ summary }) => summary },
  { name: 'Stability', cell: ({ stability }) => stability },
  { name: 'Set by', cell: ({ origin }) => origin },
  { name: 'Declared by', cell: ({ declared_by: by }) => <code>{by}</code> },
];

const FEW_DAYS = 30;

/** Also the problem if the given licence is not valid. */
function LicencePanel({ licence }: { licence: InstanceLicense }) {
  const {
    kind,
    organisation,
    entitlements,
    unknown_entitlements: unknown,
    issued_at: issued,
    expires_at: expires,
    days_left: days,
  } = licence;
  const isEnding = days !== null && days <= FEW_DAYS;
  return (
    <Panel
      title="Licence"
      actions={
        <Badge
          status={kind}
          tone={licence.problem ? 'bad' : isEnding ? 'warn' : kind === 'licensed' ? 'ok' : 'plain'}
        />
      }
    >
      {licence.problem && (
        <div class="problem">
          <p class="problem-sentence">{capital(licence.problem.sentence)}</p>
          <p>{capital(licence.problem.fix)}</p>
        </div>
      )}
      <Facts
        rows={[
          ['Issued to', organisation],
          [
            'Includes',
            entitlements.length > 0 ? entitlements.join(', ') : 'all features that need no licence',
          ],
          [
            'Unused',
            unknown.length > 0
              ? `${unknown.join(', ')}: not declared by any installed plugin`
              : null,
          ],
          ['Issued', issued && <FullTime at={issued} />],
          ['Expires', expires && <FullTime at={expires} />],
        ]}
      />
    </Panel>
  );
}
