import { useRef, useState } from 'preact/hooks';
import { GatewayApiError, type CallOptions } from '@gateway/client';
import { useAction } from './use-action.js';

interface Versioned {
  readonly updated_at: string;
}

export interface Edit<Resource, Changes> {
  /** What the changes are made to: as it was read when the edit began, or what somebody else has made of it. */
  readonly base: Resource;
  readonly save: (changes: Changes) => void;
  readonly isRunning: boolean;
  /** Why it was not saved, unless somebody else was first. */
  readonly error: Error | undefined;
  /** What somebody else has made of it meanwhile: nothing was saved. */
  readonly conflict: Resource | undefined;
  /** Saves the changes on top of those of the other. */
  readonly saveAnyway: () => void;
  /** Goes on from what the other has made. */
  readonly takeTheirs: () => void;
}

/**
 * An edit of something that others may change at the same time: it is saved only if it is still what was read.
 *
 * @param resource as it was read, once: later values are ignored
 * @param edit.write sends the changes with the options, and gives what was saved
 * @param edit.read gives what it is now
 */
export function useEdit<Resource extends Versioned, Changes>(
  resource: Resource,
  edit: {
    readonly write: (changes: Changes, options: CallOptions) => Promise<Resource>;
    readonly read: () => Promise<Resource>;
    readonly onSaved: (saved: Resource) => void;
  },
): Edit<Resource, Changes> {
  const [base, setBase] = useState(resource);
  const [conflict, setConflict] = useState<Resource>();
  const refused = useRef<Changes | undefined>(undefined);
  const action = useAction(async (changes: Changes, version: Resource) => {
    try {
      const saved = await edit.write(changes, { headers: { 'if-match': `"${version.updated_at}"` } });
      setConflict(undefined);
      setBase(saved);
      edit.onSaved(saved);
    } catch (error) {
      if (!(error instanceof GatewayApiError && error.code === 'stale')) throw error;
      refused.current = changes;
      setConflict(await edit.read());
    }
  });
  return {
    base,
    save: (changes) => action.run(changes, base),
    isRunning: action.isRunning,
    error: action.error,
    conflict,
    saveAnyway: () => conflict && refused.current !== undefined && action.run(refused.current, conflict),
    takeTheirs: () => {
      if (conflict) setBase(conflict);
      setConflict(undefined);
      action.clear();
    },
  };
}
