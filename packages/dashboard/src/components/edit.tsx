import type { AuditEntry, CallOptions } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { changed, ifMatch, isStale, useAction, useDraft, type Versioned } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { useResource } from '../api/read.js';
import { clip } from '../format/text.js';
import { projectId } from '../router/location.js';
import { may, projects } from '../session/session.js';
import { Time } from './data.js';
import { textsOf } from './field.js';
import type { FormState } from './form.js';
import { Button } from './layout.js';

/**
 * Optimistic locking: saves the changes only if the resource has not changed since it was read.
 * Otherwise, the form names the other user and the changes, and offers two ways to resolve the
 * conflict.
 *
 * @param resource the resource as first read; later values are ignored
 * @param edit.what the kind of resource, such as `endpoint`
 * @param edit.rows the resources of this kind in the API
 * @param edit.fieldsOf the draft for the API, undefined while it is not valid
 * @param edit.ignored the fields that change without user action
 */
export function useEdit<Resource extends Versioned, Values extends object, Fields extends object>(
  resource: Resource,
  edit: {
    what: string;
    rows: {
      get: (uid: string) => Promise<Resource>;
      update: (uid: string, changes: Partial<Fields>, options: CallOptions) => Promise<Resource>;
    };
    draftOf: (resource: Resource) => Values;
    fieldsOf: (values: Values) => Fields | undefined;
    ignored?: readonly (keyof Resource)[];
    onSaved: () => void;
  },
): FormState<Values> & { base: Resource; isReady: boolean; isChanged: boolean } {
  const { what, rows, draftOf, fieldsOf, ignored = [] } = edit;
  const draft = useDraft(draftOf(resource));
  const [base, setBase] = useState(resource);
  const [theirs, setTheirs] = useState<Resource>();
  const [before, after] = [fieldsOf(draftOf(base)), fieldsOf(draft.values)];
  const changes = before && after ? changed(before, after) : {};
  const saving = useAction(async (version: Resource) => {
    try {
      const saved = await rows.update(version.uid, changes, ifMatch(version));
      setTheirs(undefined);
      setBase(saved);
      edit.onSaved();
    } catch (error) {
      if (!isStale(error)) throw error;
      setTheirs(await rows.get(version.uid));
    }
  });
  const takeTheirs = (it: Resource) => {
    setBase(it);
    setTheirs(undefined);
    saving.clear();
    draft.replace(draftOf(it));
  };
  return {
    ...draft,
    ...saving,
    run: () => after && saving.run(base),
    text: textsOf(draft, saving.error),
    base,
    isReady: after !== undefined,
    isChanged: Object.keys(changes).length > 0,
    notice: theirs && (
      <Conflict what={what} base={base} theirs={theirs} ignored={[...ignored, 'updated_at']}>
        <Button isRunning={saving.isRunning} onPress={() => saving.run(theirs)}>
          Overwrite with mine
        </Button>
        <Button onPress={() => takeTheirs(theirs)}>Discard mine</Button>
      </Conflict>
    ),
  };
}

const SHOWN_CHARACTERS = 80;

function Conflict<Resource extends Versioned>({
  what,
  base,
  theirs,
  ignored,
  children,
}: {
  what: string;
  base: Resource;
  theirs: Resource;
  ignored: readonly (keyof Resource)[];
  children: ComponentChildren;
}) {
  const change = useResource(`change ${theirs.uid} ${theirs.updated_at}`, () =>
    lastChange(base.uid, base.updated_at),
  );
  const text = (value: unknown) => JSON.stringify(value ?? null);
  const shown = (value: unknown) => clip(text(value), SHOWN_CHARACTERS + 1);
  const fields = (Object.keys(theirs) as (keyof Resource & string)[]).filter(
    (field) => !ignored.includes(field) && text(base[field]) !== text(theirs[field]),
  );
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">
        {change.data?.actor.name ?? 'Someone'} changed this {what}{' '}
        <Time at={theirs.updated_at} look="relative" />. Your changes are not saved.
      </p>
      <ul>
        {fields.map((field) => (
          <li key={field}>
            <code>{field}</code> changed from {shown(base[field])} to {shown(theirs[field])}
          </li>
        ))}
      </ul>
      <div class="form-actions">{children}</div>
    </div>
  );
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
