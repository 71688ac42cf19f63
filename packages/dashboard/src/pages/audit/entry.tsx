import type { AuditEntry } from '@gateway/client';
import { useState } from 'preact/hooks';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime, Time } from '../../components/data/time.js';
import { Button } from '../../components/layout/button.js';
import { href, setQuery } from '../../router/location.js';
import { projects } from '../../session/projects.js';
import { actionWords, pageOf, resourceName } from './actions.js';
import { Changes } from './changes-table.js';

const ACTORS = {
  user: 'a user',
  project: 'an API key of the project',
  portal: 'a portal link',
  process: 'a key of the server',
} as const;

/** One change in a line; expanded: who, from which address, and each value before and after. */
export function Entry({
  entry,
  onFocus,
}: {
  readonly entry: AuditEntry;
  readonly onFocus: () => void;
}) {
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

function Details({ entry }: { readonly entry: AuditEntry }) {
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
        rows={[
          ['When', <FullTime at={at} />],
          [
            'Who',
            <>
              {actor.name ?? ''} ({ACTORS[actor.type]}){' '}
              <Only label="All they did" filter={{ who: actor.id }} />
            </>,
          ],
          ['With the key', actor.key_id && <Copyable text={actor.key_id} what="key id" />],
          ['From', address],
          [
            'What',
            resource && (
              <>
                {page ? <a href={href(page)}>{resourceName(entry)}</a> : resourceName(entry)}{' '}
                <code>{action}</code> <Only label="Its history" filter={{ search: resource }} />
              </>
            ),
          ],
          ['Id', resource && <Copyable text={resource} what="id" />],
          [
            'Project',
            project && (projects.value?.find(({ uid }) => uid === project)?.name ?? project),
          ],
          ['Request', <Copyable text={request} what="request id" />],
        ]}
      />
    </div>
  );
}

function Only({
  label,
  filter,
}: {
  readonly label: string;
  readonly filter: Readonly<Record<string, string>>;
}) {
  return (
    <Button kind="quiet" onPress={() => setQuery(filter)}>
      {label}
    </Button>
  );
}
