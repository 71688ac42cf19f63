import type { AuditEntry } from '@gateway/client';
import { changesOf } from './changes.js';

/** Each value that changed, before and after. */
export function Changes({ changes }: Pick<AuditEntry, 'changes'>) {
  const rows = changesOf(changes);
  if (rows.length === 0) return <p class="muted">No value changed.</p>;
  return (
    <div class="table" role="group" aria-label="Changes" tabIndex={0}>
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ field, before, after }) => (
            <tr key={field}>
              <td>
                <code>{field}</code>
              </td>
              <td>{before !== undefined && <del>{before}</del>}</td>
              <td>{after !== undefined && <ins>{after}</ins>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
