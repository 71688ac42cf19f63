import { useRef, useState } from 'preact/hooks';
import { GatewayApiError, type CallOptions } from '@gateway/client';
import { useAction } from './use-action.js';

interface Versioned {
  readonly updated_at: string;
}

export interface Edit<Resource, Changes> {
  /**
   * The version that the changes apply to: the one read when the edit began, or another user's
   * newer version.
   */
  readonly base: Resource;
  readonly save: (changes: Changes) => void;
  readonly isRunning: boolean;
  /** Why saving failed; undefined for a conflict. */
  readonly error: Error | undefined;
  /** The newer version that another user saved meanwhile; nothing was saved here. */
  readonly conflict: Resource | undefined;
  /** Applies the changes on top of the newer version. */
  readonly saveAnyway: () => void;
  /** Discards the changes and continues from the newer version. */
  readonly takeTheirs: () => void;
}

/**
 * Edits a resource under optimistic locking: saves only if it has not changed since it was read.
 *
 * @param resource as first read; later values are ignored
 * @param edit.write sends the changes with the options and returns the saved resource
 * @param edit.read returns the current resource
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
      const saved = await edit.write(changes, {
        headers: { 'if-match': `"${version.updated_at}"` },
      });
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
    saveAnyway: () =>
      conflict && refused.current !== undefined && action.run(refused.current, conflict),
    takeTheirs: () => {
      if (conflict) setBase(conflict);
      setConflict(undefined);
      action.clear();
    },
  };
}
