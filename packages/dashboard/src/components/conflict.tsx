import { clip } from '../format/text.js';
import type { AuditEntry } from '@gateway/client';
import type { Edit } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { useResource } from '../api/read.js';
import { projectId } from '../router/location.js';
import { may, projects } from '../session/session.js';
import { Time } from './data.js';
import { Button } from './layout.js';

const SHOWN_CHARACTERS = 80;

/**
 * Names the other user and the changes, and offers two ways to resolve the conflict.
 *
 * @param props.what the kind of resource, such as `endpoint`
 * @param props.ignored the fields that change without user action
 * @param props.onTheirs shows the other version
 */
export function Conflict<Resource extends { readonly uid: string; readonly updated_at: string }>({
  what,
  edit: { base, conflict, saveAnyway, takeTheirs, isRunning },
  ignored = [],
  onTheirs,
}: {
  what: string;
  edit: Pick<
    Edit<Resource, never>,
    'base' | 'conflict' | 'saveAnyway' | 'takeTheirs' | 'isRunning'
  >;
  ignored?: readonly (keyof Resource)[];
  onTheirs: (theirs: Resource) => void;
}) {
  const change = useResource(conflict && `change ${conflict.uid} ${conflict.updated_at}`, () =>
    lastChange(base.uid, base.updated_at),
  );
  if (!conflict) return null;
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">
        {change.data?.actor.name ?? 'Someone'} changed this {what}{' '}
        <Time at={conflict.updated_at} look="relative" />. Your changes are not saved.
      </p>
      <ul>
        {differences(base, conflict, [...ignored, 'updated_at']).map(({ field, before, after }) => (
          <li key={field}>
            <code>{field}</code> changed from {before} to {after}
          </li>
        ))}
      </ul>
      <div class="form-actions">
        <Button isRunning={isRunning} onPress={saveAnyway}>
          Overwrite with mine
        </Button>
        <Button
          onPress={() => {
            takeTheirs();
            onTheirs(conflict);
          }}
        >
          Discard mine
        </Button>
      </div>
    </div>
  );
}

interface Difference {
  readonly field: string;
  readonly before: string;
  readonly after: string;
}

/** Values are truncated JSON. */
function differences<Resource extends object>(
  before: Resource,
  after: Resource,
  ignored: readonly (keyof Resource)[],
): Difference[] {
  const text = (value: unknown) => JSON.stringify(value ?? null);
  const short = (value: string) => clip(value, SHOWN_CHARACTERS + 1);
  return (Object.keys(after) as (keyof Resource & string)[])
    .filter((field) => !ignored.includes(field) && text(before[field]) !== text(after[field]))
    .map((field) => ({
      field,
      before: short(text(before[field])),
      after: short(text(after[field])),
    }));
}

/** Undefined if the user may not read the audit log. */
async function lastChange(resourceId: string, since: string): Promise<AuditEntry | undefined> {
  const project = projects.value?.find(({ uid }) => uid === projectId.value);
  if (!project || !may('admin')) return undefined;
  const log = accountApi().auditLog.list(project.organisation_id, {
    projectId: project.uid,
    resourceId,
    startDate: since,
    perPage: 1,
  });
  return (await log.page()).content[0];
}
