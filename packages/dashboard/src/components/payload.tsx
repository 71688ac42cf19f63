import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { isRawNumber } from '../format/exact-json.js';
import { Button } from './layout.js';

/** Tabs without content are left out. */
type Form = readonly [label: string, content: ComponentChildren];

export function Payload({ label, forms }: { label: string; forms: readonly (Form | false)[] }) {
  const known = forms.filter((form) => form !== false);
  const [chosen, setChosen] = useState('');
  const [shown, content] = known.find(([name]) => name === chosen) ?? known[0] ?? ['', null];
  return (
    <div class="payload">
      <nav class="tabs" aria-label={label}>
        {known.map(([name]) => (
          <button
            key={name}
            type="button"
            aria-current={name === shown ? 'true' : undefined}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </nav>
      {content}
    </div>
  );
}

const OPEN_LEVELS = 3;
const MEMBERS = 100;

/** Objects and arrays fold. A tooltip names the path of each member. */
export function Tree({ label, value }: { label: string; value: unknown }) {
  return (
    <div class="tree" role="group" aria-label={label} tabIndex={0}>
      <ul>
        <Member value={value} path="" level={0} />
      </ul>
    </div>
  );
}

function Member({
  name,
  value,
  path,
  level,
}: {
  name?: string;
  value: unknown;
  path: string;
  level: number;
}) {
  const members = membersOf(value);
  const title = name !== undefined && (
    <span class="tree-name" title={path}>
      {name}
    </span>
  );
  if (!members) {
    return (
      <li>
        {title}
        {title && ': '}
        <span class={typeof value === 'object' ? 'number' : typeof value}>
          {JSON.stringify(value)}
        </span>
      </li>
    );
  }
  return (
    <li>
      <Folder title={title} value={value} members={members} path={path} level={level} />
    </li>
  );
}

function Folder({
  title,
  value,
  members,
  path,
  level,
}: {
  title: ComponentChildren;
  value: unknown;
  members: readonly (readonly [string, unknown])[];
  path: string;
  level: number;
}) {
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS);
  const [shownCount, setShownCount] = useState(MEMBERS);
  const isList = Array.isArray(value);
  const count = isList ? `[${members.length}]` : `{${members.length}}`;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {title} <span class="muted">{count}</span>
      </summary>
      {isOpen && (
        <ul>
          {members.slice(0, shownCount).map(([name, member]) => (
            <Member
              key={name}
              name={name}
              value={member}
              path={isList ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`}
              level={level + 1}
            />
          ))}
          {members.length > shownCount && (
            <li>
              <Button kind="quiet" onPress={() => setShownCount(shownCount + MEMBERS)}>
                {`Show ${Math.min(MEMBERS, members.length - shownCount)} more`}
              </Button>
            </li>
          )}
        </ul>
      )}
    </details>
  );
}

/** Undefined for other values, including numbers that keep their source text. */
function membersOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return undefined;
  return Object.entries(value);
}
