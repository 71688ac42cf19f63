import type { AuditEntry } from '@gateway/client';
import { useState } from 'preact/hooks';
import {
  Button,
  type TableColumns,
  Copyable,
  Facts,
  FullTime,
  Table,
  Time,
} from '../../components/index.js';
import { href, setQuery } from '../../router/location.js';
import { projects } from '../../session/session.js';
import { actionWords, pageOf, resourceName } from './actions.js';

const ACTORS = {
  user: 'user',
  project: 'project API key',
  portal: 'portal link',
  process: 'server key',
} as const;

export function Entry({ entry, onFocus }: { entry: AuditEntry; onFocus: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const { actor, action, created_at: at, address } = entry;
  return (
    <li>
      <details class="audit-entry" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary onFocus={onFocus}>
          <Time at={at} look="row" />
          <span class="cut">{actor.name ?? ACTORS[actor.type]}</span>
          <strong class="cut">{actionWords(action)}</strong>
          <span class="cut">{resourceName(entry)}</span>
          <span class="audit-address muted">{address}</span>
        </summary>
        {isOpen && <Details entry={entry} />}
      </details>
    </li>
  );
}

function Details({ entry }: { entry: AuditEntry }) {
  const {
    actor,
    action,
    created_at: at,
    address,
    project_id: project,
    resource_id: resource,
    request_id: request,
  } = entry;
  const page = pageOf(entry);
  return (
    <div class="audit-details">
      <Changes changes={entry.changes} />
      <Facts
        rows={{
          Time: <FullTime at={at} />,
          Actor: (
            <>
              {actor.name ?? ''} ({ACTORS[actor.type]}){' '}
              <Only label="All changes by this actor" filter={{ who: actor.id }} />
            </>
          ),
          'API key': actor.key_id && <Copyable text={actor.key_id} what="key ID" />,
          'IP address': address,
          Resource: resource && (
            <>
              {page ? <a href={href(page)}>{resourceName(entry)}</a> : resourceName(entry)}{' '}
              <code>{action}</code> <Only label="History" filter={{ search: resource }} />
            </>
          ),
          'Resource ID': resource && <Copyable text={resource} what="resource ID" />,
          Project: project && (projects.value?.find(({ uid }) => uid === project)?.name ?? project),
          'Request ID': <Copyable text={request} what="request ID" />,
        }}
      />
    </div>
  );
}

function Only({ label, filter }: { label: string; filter: Readonly<Record<string, string>> }) {
  return (
    <Button kind="quiet" onPress={() => setQuery(filter)}>
      {label}
    </Button>
  );
}

function Changes({ changes }: Pick<AuditEntry, 'changes'>) {
  const rows = changesOf(changes);
  if (rows.length === 0) return <p class="muted">No values changed.</p>;
  return (
    <div class="changes">
      <Table label="Changes" columns={columns} rows={rows} idOf={({ field }) => field} />
    </div>
  );
}

const columns: TableColumns<Change> = {
  Field: ({ field }) => <code>{field}</code>,
  Before: ({ before }) => before !== undefined && <del>{before}</del>,
  After: ({ after }) => after !== undefined && <ins>{after}</ins>,
};

/** A side without a value is undefined. */
interface Change {
  readonly field: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Objects are compared property by property. */
export function changesOf(changes: AuditEntry['changes']): Change[] {
  return Object.entries(changes).flatMap(([field, { before, after }]) =>
    differences(field, before, after),
  );
}

function differences(field: string, before: unknown, after: unknown): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differences(`${field}.${name}`, before[name], after[name]));
  }
  return [{ field, before: textOf(before), after: textOf(after) }];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string without quotes, so that functions keep their lines, and any other value as JSON. */
function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
