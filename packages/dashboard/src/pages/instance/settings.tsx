import type { InstanceSetting } from '@gateway/client';
import { useRef, useState } from 'preact/hooks';
import { accountApi, useResource } from '../../api/index.js';
import {
  Checkbox,
  type TableColumns,
  Description,
  Empty,
  Loaded,
  Table,
  useShortcuts,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { param, query, setQuery } from '../../router/location.js';

export function Settings() {
  const settings = useResource(
    'instance settings',
    async (options) => (await accountApi().instance.listSettings(options)).content,
  );
  const field = useRef<HTMLInputElement>(null);
  const [search, setSearch] = useState(param('search'));
  const isSet = query.value.get('set') === '1';
  useShortcuts([{ keys: '/', label: 'Search', run: () => field.current?.select() }]);
  return (
    <>
      <div class="setting-filter" role="search">
        <input
          ref={field}
          type="search"
          value={search}
          placeholder="Name, description, value or origin"
          aria-label="Search settings"
          aria-keyshortcuts="/"
          title="Key: /"
          onInput={({ currentTarget: { value } }) => {
            setSearch(value);
            setQuery({ search: value }, { replace: true });
          }}
        />
        <Checkbox
          label="Only explicitly set"
          isOn={isSet}
          onChange={(isOn) => setQuery({ set: isOn ? '1' : undefined })}
        />
      </div>
      <p class="muted">
        These are the settings of the server that responded; agents have their own. Secrets are
        masked. To change a setting, edit its file, variable or flag and restart.
      </p>
      <Loaded resource={settings} lines={12}>
        {(all) => {
          const shown = matching(all, { search, isSet });
          return shown.length === 0 ? (
            <Empty title="No settings match" />
          ) : (
            <>
              <Table label="Settings" columns={columns} rows={shown} idOf={({ key }) => key} />
              <p class="muted" role="status">
                {count(shown.length)} of {count(all.length)} settings
              </p>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

const columns: TableColumns<InstanceSetting> = {
  Setting: ({ key, summary }) => (
    <span class="setting-name">
      <code>{key}</code>
      <span class="muted">
        <Description text={summary} />
      </span>
    </span>
  ),
  Value: ({ value, origin }) => (
    <code class={origin === 'default' ? '' : 'setting-set'}>{textOf(value)}</code>
  ),
  Default: ({ default: usual }) => <code>{textOf(usual)}</code>,
  Origin: ({ origin }) =>
    origin === 'default' ? <span class="muted">default</span> : <code>{origin}</code>,
};

interface SettingFilter {
  /** All words must occur in the setting's key, summary, value or origin, ignoring case. */
  readonly search: string;
  readonly isSet: boolean;
}

export function matching(
  settings: readonly InstanceSetting[],
  { search, isSet }: SettingFilter,
): InstanceSetting[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((setting) => {
    const text =
      `${setting.key} ${setting.summary} ${textOf(setting.value)} ${setting.origin}`.toLowerCase();
    return (!isSet || setting.origin !== 'default') && words.every((word) => text.includes(word));
  });
}

/** As in a configuration file, except that lists use commas and an empty value is `–`. */
export function textOf(value: unknown): string {
  if (value === null || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
