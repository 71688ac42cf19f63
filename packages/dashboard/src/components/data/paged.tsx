import type { ComponentChildren } from 'preact';
import type { List } from '../../api/use-list.js';
import { Loading } from '../feedback/loading.js';
import { Problem } from '../feedback/problem.js';
import { Button } from '../layout/button.js';

/** A usually short list: its first page and a button for more. */
export function Paged<Row>({
  list: { rows, error, hasMore, refresh, loadMore },
  lines = 4,
  children,
}: {
  readonly list: List<Row>;
  readonly lines?: number;
  readonly children: (rows: readonly Row[]) => ComponentChildren;
}) {
  return (
    <>
      {error && <Problem error={error} retry={refresh} />}
      {rows ? children(rows) : !error && <Loading lines={lines} />}
      {hasMore && rows && (
        <div>
          <Button onPress={loadMore}>Show more</Button>
        </div>
      )}
    </>
  );
}
