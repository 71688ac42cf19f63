import type { InstanceFeatureFlag, InstanceLicense, InstancePlugin } from '@gateway/client';
import { accountApi, useResource } from '../../api/index.js';
import {
  Badge,
  type TableColumns,
  Facts,
  FullTime,
  Loaded,
  Panel,
  Table,
} from '../../components/index.js';
import { capital } from '../../format/text.js';

export function Extensions() {
  const all = useResource('instance extensions', async (options) => {
    const { instance } = accountApi();
    const [plugins, flags, licence] = await Promise.all([
      instance.listPlugins(options),
      instance.listFeatureFlags(options),
      instance.getLicense(options),
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
              rows={plugins}
              idOf={({ kind, name }) => `${kind} ${name}`}
            />
          </Panel>
          <Panel title="Feature flags">
            {flags.length === 0 ? (
              <p class="muted">No installed plugin declares a feature flag.</p>
            ) : (
              <Table
                label="Feature flags"
                columns={flagColumns}
                rows={flags}
                idOf={({ name }) => name}
              />
            )}
          </Panel>
        </>
      )}
    </Loaded>
  );
}

const pluginColumns: TableColumns<InstancePlugin> = {
  Plugin: ({ name, kind }) => `${name} (${kind})`,
  State: ({ state }) => <Badge status={state} tone={state === 'active' ? 'ok' : 'plain'} />,
  Reason: ({ reason, fix }) =>
    reason && (
      <>
        {capital(reason)} {fix && <span class="muted">{capital(fix)}</span>}
      </>
    ),
  Version: ({ version }) => version,
  From: ({ from }) => from,
};

const flagColumns: TableColumns<InstanceFeatureFlag> = {
  Flag: ({ name }) => <code>{name}</code>,
  State: ({ enabled }) => <Badge status={enabled ? 'on' : 'off'} tone={enabled ? 'ok' : 'plain'} />,
  Description: ({ summary }) => summary,
  Stability: ({ stability }) => stability,
  'Set by': ({ origin }) => origin,
  'Declared by': ({ declared_by: by }) => <code>{by}</code>,
};

const FEW_DAYS = 30;

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
        rows={{
          'Issued to': organisation,
          Includes: entitlements.join(', ') || 'all features that need no licence',
          Unused:
            unknown.length > 0 && `${unknown.join(', ')}: not declared by any installed plugin`,
          Issued: issued && <FullTime at={issued} />,
          Expires: expires && <FullTime at={expires} />,
        }}
      />
    </Panel>
  );
}
