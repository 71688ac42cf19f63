import type { InstanceSetting } from '@gateway/client';
import { useRef, useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Table } from '../../components/data/table.js';
import { Empty } from '../../components/feedback/empty.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Checkbox } from '../../components/form/field.js';
import { Description } from '../../components/schema-form/description.js';
import { count } from '../../format/number.js';
import { useShortcuts } from '../../keyboard/use-shortcuts.js';
import { param, query, setQuery } from '../../router/location.js';
import { matching, textOf } from './setting-filter.js';

type Row = InstanceSetting & { readonly uid: string };

/** The settings of the responding server, each with its default and the origin of its value. */
export function Settings() {
  const settings = useResource(
    'instance settings',
    async (signal) => (await accountApi().instance.listSettings({ signal })).content,
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
          aria-label="Search the settings"
          aria-keyshortcuts="/"
          title="Key: /"
          onInput={({ currentTarget: { value } }) => {
            setSearch(value);
            setQuery({ search: value }, { replace: true });
          }}
        />
        <Checkbox
          label="Only those that were set"
          isOn={isSet}
          onChange={(isOn) => setQuery({ set: isOn ? '1' : undefined })}
        />
      </div>
      <p class="muted">
        Of the server that answers; agents have their own. Secrets are masked. A setting changes in
        the file, variable or flag that it came from, and with a restart.
      </p>
      <Loaded resource={settings} lines={12}>
        {(all) => {
          const shown = matching(all, { search, isSet });
          return shown.length === 0 ? (
            <Empty title="No setting matches" />
          ) : (
            <>
              <Table<Row>
                label="Settings"
                columns={columns}
                rows={shown.map((it) => ({ ...it, uid: it.key }))}
              />
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

const columns = [
  {
    name: 'Setting',
    cell: ({ key, summary }: Row) => (
      <span class="setting-name">
        <code>{key}</code>
        <span class="muted">
          <Description text={summary} />
        </span>
      </span>
    ),
  },
  {
    name: 'Value',
    cell: ({ value, origin }: Row) => (
      <code class={origin === 'default' ? '' : 'setting-set'}>{textOf(value)}</code>
    ),
  },
  { name: 'Default', cell: ({ default: usual }: Row) => <code>{textOf(usual)}</code> },
  {
    name: 'Came from',
    cell: ({ origin }: Row) =>
      origin === 'default' ? <span class="muted">default</span> : <code>{origin}</code>,
  },
];
